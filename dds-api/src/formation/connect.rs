//! Endpoints and the group: engine, links, ports, statuses, threads.

use std::sync::Arc;

use crossbeam_queue::ArrayQueue;
use spindle_dds_core::{Engine, EngineConfig, Lane, SubgroupId, TopicKey};
use spindle_dds_qos::WriterDataLifecycle;
use spindle_dds_transport::{Fabric, Rank};

use super::announcement::{Announcement, WriterEntry};
use super::matching::{Match, is_inconsistent};
use super::plan::{Plan, Segments, impossible};
use crate::driver::{
    Crew, Fate, Link, MatchedWriter, Port, Routes, Session, Sink, Sleepers, Targets,
};
use crate::error::{Error, Result};
use crate::handle::InstanceHandle;
use crate::participant::ParticipantCore;
use crate::publication::{PublisherCore, WriterCore};
use crate::status::StatusMask;
use crate::subscription::{ReaderCore, SubscriberCore};
use crate::topic::TopicCore;
use crate::wire::Wire;

/// The entities of a participant when it is enabled. The announcement lists
/// writers and readers in the same order.
pub(super) struct Endpoints {
    pub(super) topics: Vec<Arc<TopicCore>>,
    pub(super) writers: Vec<(Arc<PublisherCore>, Arc<WriterCore>)>,
    pub(super) readers: Vec<(Arc<SubscriberCore>, Arc<ReaderCore>)>,
}

impl Endpoints {
    pub(super) fn of(participant: &ParticipantCore) -> Self {
        let entities = participant.entities();
        let mut endpoints = Self {
            topics: entities.topics.clone(),
            writers: Vec::new(),
            readers: Vec::new(),
        };
        for publisher in &entities.publishers {
            let writers = publisher.writers().clone();
            let of = |writer| (publisher.clone(), writer);
            endpoints.writers.extend(writers.into_iter().map(of));
        }
        for subscriber in &entities.subscribers {
            let readers = subscriber.readers().clone();
            let of = |reader| (subscriber.clone(), reader);
            endpoints.readers.extend(readers.into_iter().map(of));
        }
        endpoints
    }
}

/// Puts everything together over a fabric that is there.
pub(super) fn connect(
    participant: &ParticipantCore,
    endpoints: Endpoints,
    announcements: &[Announcement],
    plan: &Plan,
    pids: Vec<u32>,
    segments: Segments,
    crew: Crew,
) -> Result<Arc<Session<Wire>>> {
    let me = segments.control.me();
    let mine = &announcements[me.index()];
    let fate = Arc::<Fate>::default();
    let left = Arc::new(ArrayQueue::new(announcements.len()));
    let mut routes = Routes::new(plan.subgroups as usize);
    for ((_, reader), entry) in endpoints.readers.iter().zip(&mine.readers) {
        let subgroup = SubgroupId(entry.endpoint.subgroup);
        let topic = TopicKey::of_name(&entry.endpoint.topic);
        routes.add(subgroup, topic, reader.inlet.clone());
    }
    let bells = participant.bells().clone();
    let sink = Sink::new(routes, fate.clone(), bells.clone(), left.clone(), pids);
    let engine = Engine::new(segments.control, EngineConfig::default(), sink);
    for (lane, segment) in segments.lanes {
        engine.add_lane(&lane, segment).map_err(impossible)?;
    }
    let depart = |control: &Wire| control.whole().leave();
    let session = Session::new(engine, fate, bells, left, depart);

    find_inconsistent(&endpoints, announcements, me);
    for (at, (_, reader)) in endpoints.readers.iter().enumerate() {
        connect_reader(reader, at, announcements, plan, me, &session)?;
    }
    for (at, (_, writer)) in endpoints.writers.iter().enumerate() {
        connect_writer(writer, at, announcements, me, &session)?;
    }
    // Listeners are called from now on, and use what contains their entities.
    participant.enable_contained();
    // Deleted while the group was being formed: matched above all the same.
    let deleted = endpoints.readers.iter();
    let deleted = deleted.filter(|(_, reader)| reader.base.is_deleted());
    deleted.for_each(|(_, reader)| reader.tell_writers());

    let writers = endpoints.writers.into_iter().map(|(_, writer)| writer);
    let readers = endpoints.readers.into_iter().map(|(_, reader)| reader);
    let (writers, readers) = (writers.collect::<Vec<_>>(), readers.collect::<Vec<_>>());
    let targets = Targets {
        participant: participant.weak(),
        topics: endpoints.topics,
        writers: writers.clone(),
        readers: readers.clone(),
    };
    let sleepers = Sleepers { writers, readers };
    session.begin(
        crew,
        participant.config.wait,
        |session| targets.run(session),
        |session| sleepers.run(session),
    );
    Ok(session)
}

/// Topics of which another participant has another idea.
fn find_inconsistent(endpoints: &Endpoints, announcements: &[Announcement], me: Rank) {
    let mine = &announcements[me.index()];
    for topic in &endpoints.topics {
        let Some(here) = mine
            .endpoints()
            .find(|endpoint| endpoint.topic == topic.name)
        else {
            continue;
        };
        let others = announcements.iter().filter(|other| {
            other.guid != mine.guid && other.endpoints().any(|there| is_inconsistent(here, there))
        });
        others.for_each(|_| topic.found_inconsistent());
    }
}

fn connect_reader(
    reader: &ReaderCore,
    at: usize,
    announcements: &[Announcement],
    plan: &Plan,
    me: Rank,
    session: &Arc<Session<Wire>>,
) -> Result<()> {
    let entry = &announcements[me.index()].readers[at];
    let subgroup = SubgroupId(entry.endpoint.subgroup);
    let mut matched = Vec::new();
    let mut refused = false;
    for (rank, writer) in writers(announcements) {
        match Match::of(writer, entry) {
            Match::Apart => {}
            Match::Matched => {
                matched.extend(plan.place(subgroup, rank).map(|place| MatchedWriter {
                    place,
                    rank,
                    number: writer.number,
                    ring: writer.ring(),
                    handle: InstanceHandle::of_entity(writer.endpoint.guid),
                    autodispose: lifecycle(writer).autodispose_unregistered_instances,
                }))
            }
            Match::Incompatible(policies) => {
                refused = true;
                reader
                    .inlet
                    .with_statuses(|statuses| statuses.incompatible.add(policies));
            }
        }
    }
    let mut rings: Vec<_> = matched
        .iter()
        .map(|writer| (writer.place, writer.ring))
        .collect();
    rings.sort_unstable();
    rings.dedup();
    let sizes = rings
        .iter()
        .map(|(place, ring)| plan.messages(subgroup, *place, *ring));
    let (in_flight, ring_max) = (sizes.clone().sum(), sizes.max().unwrap_or(0));
    let (lane, fate) = (lane(session, subgroup)?, session.fate().clone());
    let link = Link::new(lane, fate, matched, in_flight);
    reader.inlet.connect(link, ring_max);
    if refused {
        reader
            .beacon()
            .raise(StatusMask::REQUESTED_INCOMPATIBLE_QOS);
    }
    reader.base.set_enabled();
    Ok(())
}

fn lifecycle(writer: &WriterEntry) -> WriterDataLifecycle {
    writer.qos.writer_data_lifecycle
}

fn connect_writer(
    writer: &WriterCore,
    at: usize,
    announcements: &[Announcement],
    me: Rank,
    session: &Arc<Session<Wire>>,
) -> Result<()> {
    let entry = &announcements[me.index()].writers[at];
    let mut raised = StatusMask::NONE;
    for (announcement, rank) in announcements.iter().zip(0..) {
        for reader in &announcement.readers {
            match Match::of(entry, reader) {
                Match::Apart => {}
                Match::Matched => {
                    let handle = InstanceHandle::of_entity(reader.endpoint.guid);
                    let mut statuses = writer.statuses();
                    statuses.matched.matched(handle);
                    statuses.readers.push((Rank(rank), handle));
                    raised |= StatusMask::PUBLICATION_MATCHED;
                }
                Match::Incompatible(policies) => {
                    writer.statuses().incompatible.add(policies);
                    raised |= StatusMask::OFFERED_INCOMPATIBLE_QOS;
                }
            }
        }
    }
    if !raised.is_empty() {
        writer.base.beacon().raise(raised);
    }
    let subgroup = SubgroupId(entry.endpoint.subgroup);
    let topic = TopicKey::of_name(&entry.endpoint.topic);
    let lane = lane(session, subgroup)?;
    writer.connect(Port::new(session.clone(), lane, entry.ring(), topic));
    Ok(())
}

fn lane(session: &Session<Wire>, subgroup: SubgroupId) -> Result<Arc<Lane<Wire>>> {
    let lane = session.lane(subgroup).cloned();
    lane.ok_or_else(|| Error::Error(format!("subgroup {subgroup} has no lane here")))
}

fn writers(announcements: &[Announcement]) -> impl Iterator<Item = (Rank, &WriterEntry)> {
    let ranked = announcements.iter().zip(0..);
    ranked.flat_map(|(announcement, rank)| {
        announcement
            .writers
            .iter()
            .map(move |writer| (Rank(rank), writer))
    })
}
