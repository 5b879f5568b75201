//! The figures of a participant, gathered when a monitor asks.

use std::collections::BTreeMap;
use std::thread;

use spindle_dds_core::Figures;
use spindle_dds_core::membership::{Member, MemberId};

use crate::discovery::ParticipantInfo;
use crate::driver::endpoints::local_endpoints::{LocalEndpoint, LocalEndpoints};
use crate::driver::session::Session;
use crate::history::HistoryService;
use crate::monitor::{
    Latencies, MemberFigures, MemoryFigures, MismatchFigures, ParticipantFigures, TopicFigures,
    TopicLogFigures, VERSION,
};

pub(crate) fn of(
    session: &Session,
    local_endpoints: &LocalEndpoints,
    me: MemberId,
    (memory, logs): (Vec<MemoryFigures>, Vec<TopicLogFigures>),
    (mismatches, unlisted_mismatches): (Vec<MismatchFigures>, u64),
) -> ParticipantFigures {
    let view = session.control_queue().view();
    let members = view.iter().flat_map(|view| &view.members);
    let members: Vec<MemberFigures> = members.map(|it| member(session, it)).collect();
    let engine = session.engine().figures();
    let [latency_own, latency_others] = latencies(session);
    let mut topics = topics(local_endpoints, &engine);
    add_kept(&mut topics, session.history());
    ParticipantFigures {
        version: VERSION,
        pid: std::process::id(),
        member: name(me),
        taken_at_ns: session.now(),
        view: view.as_ref().map_or(0, |view| view.id),
        members,
        fabric: session.handle().traffic(),
        station: session.control_queue().station_traffic(),
        streams: session.control_queue().stream_calls(),
        wake_ups: session.wake_ups(),
        topics,
        transfers: session.history().figures(),
        logs,
        waits: session.send_waiters().figures(),
        mismatches,
        unlisted_mismatches,
        memory,
        latency_own,
        latency_others,
        engine,
    }
}

/// A member's name in figures.
fn name(id: MemberId) -> String {
    format!("{:032x}", id.0)
}

fn member(session: &Session, member: &Member) -> MemberFigures {
    let info = ParticipantInfo::of(member).ok();
    let (announced, pid) = info.map_or_else(Default::default, |info| (info.name, info.pid));
    MemberFigures {
        member: name(member.id),
        name: announced,
        pid,
        host: format!("{:032x}", member.host.0),
        path: session.control_queue().path_to(member.id),
        encrypted: session.control_queue().encrypts_to(member.id),
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
            // Another thread steps, for some microseconds.
            None => thread::yield_now(),
        }
    }
}

/// Adds what is kept beyond its writers.
fn add_kept(topics: &mut [TopicFigures], history: &HistoryService) {
    for topic in topics {
        if let Some(kept) = history.topics().get(&topic.topic) {
            let kept = kept.history.figures();
            topic.kept += kept.samples;
            topic.kept_bytes += kept.bytes;
        }
    }
}

fn topics(local_endpoints: &LocalEndpoints, engine: &Figures) -> Vec<TopicFigures> {
    let mut topics: BTreeMap<String, TopicFigures> = BTreeMap::new();
    for (number, own) in local_endpoints.numbered() {
        let name = match &own {
            LocalEndpoint::Writer(writer) => &writer.topic.name,
            LocalEndpoint::Reader(reader) => &reader.topic.name,
        };
        let topic = topics.entry(name.clone()).or_insert_with(|| TopicFigures {
            topic: name.clone(),
            subgroup: local_endpoints.subgroup_of(name),
            ..TopicFigures::default()
        });
        match own {
            LocalEndpoint::Writer(writer) => {
                topic.writers += 1;
                let [waiting, bytes] = writer.waiting();
                topic.waiting += waiting;
                topic.waiting_bytes += bytes;
                if let Some(kept) = writer.side.history() {
                    let kept = kept.history.figures();
                    topic.kept += kept.samples;
                    topic.kept_bytes += kept.bytes;
                }
                let mut known = engine.writers.iter();
                if let Some(known) = known.find(|it| u64::from(it.writer) == number) {
                    topic.sent += known.messages;
                    topic.sent_bytes += known.bytes;
                }
            }
            LocalEndpoint::Reader(reader) => {
                topic.readers += 1;
                let [samples, bytes] = reader.side.port.received();
                topic.received += samples;
                topic.received_bytes += bytes;
                topic.full_readers += u32::from(reader.side.port.is_full());
            }
        }
    }
    topics.into_values().collect()
}
