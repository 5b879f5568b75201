//! How a participant stands, gathered when somebody asks.

use std::collections::BTreeMap;
use std::thread;

use spindle_dds_core::Figures;
use spindle_dds_core::membership::{Member, MemberId};

use super::session::Session;
use crate::discovery::{Own, ParticipantInfo, Roll};
use crate::monitor::{Latencies, MemberFigures, ParticipantFigures, TopicFigures, VERSION};

pub(super) fn of(session: &Session, roll: &Roll, me: MemberId) -> ParticipantFigures {
    let view = session.desk().view();
    let members = view.iter().flat_map(|view| &view.members);
    let members: Vec<MemberFigures> = members.map(|it| member(session, it)).collect();
    let engine = session.engine().figures();
    let [latency_own, latency_others] = latencies(session);
    ParticipantFigures {
        version: VERSION,
        pid: std::process::id(),
        member: name(me),
        taken_at_ns: session.now(),
        view: view.as_ref().map_or(0, |view| view.id),
        members,
        fabric: session.handle().traffic(),
        wake_ups: session.wake_ups(),
        topics: topics(roll, &engine),
        waits: session.room().figures(),
        latency_own,
        latency_others,
        engine,
    }
}

/// What a member is called.
fn name(id: MemberId) -> String {
    format!("{:032x}", id.0)
}

fn member(session: &Session, member: &Member) -> MemberFigures {
    let info = ParticipantInfo::of(member).ok();
    MemberFigures {
        member: name(member.id),
        pid: info.map_or(0, |info| info.pid),
        host: format!("{:032x}", member.host.0),
        way: session.desk().way(member.id),
    }
}

fn latencies(session: &Session) -> [Latencies; 2] {
    loop {
        let timed = session.engine().with_sink(|sink| {
            let watch = sink.time_deliveries();
            watch.latencies().map(Clone::clone)
        });
        match timed {
            Some(timed) => return timed,
            // Somebody steps, for some microseconds.
            None => thread::yield_now(),
        }
    }
}

fn topics(roll: &Roll, engine: &Figures) -> Vec<TopicFigures> {
    let mut topics: BTreeMap<String, TopicFigures> = BTreeMap::new();
    for (number, own) in roll.numbered() {
        let name = match &own {
            Own::Writer(writer) => &writer.topic.name,
            Own::Reader(reader) => &reader.topic.name,
        };
        let topic = topics.entry(name.clone()).or_insert_with(|| TopicFigures {
            topic: name.clone(),
            subgroup: roll.subgroup_of(name),
            ..TopicFigures::default()
        });
        match own {
            Own::Writer(_) => {
                topic.writers += 1;
                let mut known = engine.writers.iter();
                if let Some(known) = known.find(|it| u64::from(it.writer) == number) {
                    topic.sent += known.messages;
                    topic.sent_bytes += known.bytes;
                }
            }
            Own::Reader(reader) => {
                topic.readers += 1;
                let [samples, bytes] = reader.side.inlet.arrived();
                topic.received += samples;
                topic.received_bytes += bytes;
                topic.full_readers += u32::from(reader.side.inlet.is_full());
            }
        }
    }
    topics.into_values().collect()
}
