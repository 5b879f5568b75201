//! Access to internal state for tests, and for measurements that step the engine by hand. Not
//! part of the public interface.

use std::sync::Arc;

use crate::condition::WaitSet;
use crate::discovery::LocalType;
pub use crate::discovery::fuzzing::{Announced, announce, meet};
use crate::driver::Session;
use crate::error::{Error, Result};
pub use crate::history::LogDirectory;
use crate::log::LogPlace;
use crate::participant::DomainParticipant;
use crate::publication::{DataWriter, Loan};
use crate::subscription::DataReader;
use spindle_dds_core::membership::Endpoint;
use spindle_dds_core::storage::log::{LogError, LogHead, TopicLog};
use spindle_dds_core::storage::{LogEnd, LogId};
use spindle_dds_core::{SubgroupId, TopicKey};
use spindle_dds_transport::{Fabric, Rank};
use spindle_dds_xtypes::{DynamicType, Resolved};

/// Address and length of each row that this participant sees in its subgroups.
///
/// # Errors
/// NOT_ENABLED, ALREADY_DELETED.
pub fn rows(participant: &DomainParticipant) -> Result<Vec<(usize, usize)>> {
    let session = participant.core.ready()?;
    let handle = session.handle();
    let subgroups = handle.subgroups();
    let subgroups = subgroups.iter().filter_map(|id| handle.subgroup(*id));
    let rows = subgroups.flat_map(|subgroup| {
        let fabric = subgroup.fabric();
        let rows = (0..fabric.members()).map(|rank| fabric.row(Rank(rank as u16)));
        rows.map(|row| (row.address(), row.len()))
            .collect::<Vec<_>>()
    });
    Ok(rows.collect())
}

/// The memory in which a builder would build a sample.
///
/// # Errors
/// Those of [`DataWriter::loan`].
pub fn loan<T>(writer: &DataWriter<T>, len: usize) -> Result<Loan<T>> {
    Loan::reserve(&writer.core, len, None)
}

/// How many messages of the writer's ring all members have released, in its present epoch.
///
/// # Errors
/// NOT_ENABLED, ALREADY_DELETED.
pub fn released<T>(writer: &DataWriter<T>) -> Result<u64> {
    Ok(writer.core.port()?.released().index)
}

/// Whether a thread is in `enable` of the participant, before it has joined.
pub fn is_enabling(participant: &DomainParticipant) -> bool {
    participant.core.is_enabling()
}

/// Requests to join the group that the participant has accepted so far.
///
/// # Errors
/// NOT_ENABLED, ALREADY_DELETED.
pub fn join_requests(participant: &DomainParticipant) -> Result<u64> {
    Ok(participant.core.ready()?.control_queue().join_requests())
}

/// Fails the participant, as if its driver could not enter the next view, for this reason.
///
/// # Errors
/// NOT_ENABLED, ALREADY_DELETED.
pub fn fail(participant: &DomainParticipant, why: &str) -> Result<()> {
    participant.core.ready()?.fail(why);
    Ok(())
}

/// Threads that wait for room in the rings of the participant, or within RESOURCE_LIMITS of
/// its writers.
///
/// # Errors
/// NOT_ENABLED, ALREADY_DELETED.
pub fn waiting_writers(participant: &DomainParticipant) -> Result<u64> {
    let waits = participant.core.ready()?.send_waiters().figures();
    Ok(waits.iter().map(|subgroup| subgroup.waiting).sum())
}

/// How often a thread of the participant has begun to wait for ring space or within RESOURCE_LIMITS.
///
/// # Errors
/// NOT_ENABLED, ALREADY_DELETED.
pub fn waits_for_room(participant: &DomainParticipant) -> Result<u64> {
    let waits = participant.core.ready()?.send_waiters().figures();
    Ok(waits.iter().map(|subgroup| subgroup.times).sum())
}

/// Futures and status streams of the participant that have a registered waker, or had one.
pub fn waiting_futures(participant: &DomainParticipant) -> usize {
    participant.core.notifier().futures.len()
}

/// Whether anything of the participant waits for acknowledgments.
pub fn is_accepting(participant: &DomainParticipant) -> bool {
    participant
        .core
        .lasting()
        .send_waiters
        .has_acceptance_waits()
}

/// Whether a thread waits on the wait-set.
pub fn is_waiting(wait_set: &WaitSet) -> bool {
    wait_set.is_waiting()
}

/// Whether a stream of the reader has a registered waker.
pub fn has_waiting_stream<T>(reader: &DataReader<T>) -> bool {
    reader.core.side.streams.is_waited_for()
}

/// A new log on disk, as a participant makes it.
///
/// # Errors
/// There is one already, or a file cannot be written.
pub fn create_log(
    place: &LogPlace,
    id: LogId,
    head: &LogHead,
) -> Result<TopicLog<LogDirectory>, LogError> {
    let disk = LogDirectory::create(&place.path);
    let disk = disk.map_err(|error| LogError::Unreadable {
        file: place.path.display().to_string(),
        why: error.to_string(),
    })?;
    TopicLog::create(disk, id, head)
}

/// What the head of a log has of a type.
///
/// # Errors
/// BAD_PARAMETER for what cannot be the type of a topic.
pub fn type_in_head(ty: &DynamicType) -> Result<Vec<u8>> {
    let (graph, ty) = (ty.graph().clone(), ty.ty().clone());
    let local = LocalType::of_resolved(Resolved { graph, ty });
    let bytes = local.and_then(|it| it.logged());
    bytes.map_err(|error| Error::BadParameter(error.to_string()))
}

/// While this exists, the polling thread of a participant is paused, and the owner of this value
/// steps the engine. Heartbeats are sent only by those steps.
#[derive(Debug)]
pub struct ByHand(Arc<Session>);

impl ByHand {
    /// Waits until the polling thread is paused. A participant has at most one.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn new(participant: &DomainParticipant) -> Result<Self> {
        let session = participant.core.ready()?;
        session.pause_polling(true);
        Ok(Self(session))
    }

    /// One step of the engine. Returns whether it made progress.
    pub fn step(&self) -> bool {
        self.0.step().is_some_and(|outcome| outcome.progress)
    }
}

impl Drop for ByHand {
    fn drop(&mut self) {
        self.0.resume_polling();
    }
}

/// While this exists, the polling thread of a participant is paused: data arrives only through
/// threads that step the engine themselves.
#[derive(Debug)]
pub struct Still(Arc<Session>);

impl Still {
    /// Waits until the polling thread is paused. A participant has at most one, and no
    /// [`ByHand`] beside it.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn new(participant: &DomainParticipant) -> Result<Self> {
        let session = participant.core.ready()?;
        session.pause_polling(false);
        Ok(Self(session))
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        self.0.resume_polling();
    }
}

/// The number of the endpoint that a made log has.
const MADE_LOG: u64 = 1 << 40;

/// Announces a log of a topic that is not there, with this identity; if another log was the first of
/// the topic, it has caught up with that one.
///
/// # Errors
/// NOT_ENABLED, ALREADY_DELETED.
pub fn announce_log(
    participant: &DomainParticipant,
    topic: &str,
    (log, first): (u128, Option<u128>),
) -> Result<()> {
    let core = &participant.core;
    core.ready()?;
    let endpoint = Endpoint {
        subgroup: SubgroupId(core.config.subgroup_of(topic)),
        topic: TopicKey::of_name(topic),
        ring: None,
        info: Vec::new(),
        log: Some(LogEnd {
            log: LogId(log),
            lineage: first.unwrap_or(0),
            generation: 0,
            end: 0,
            confirmed: None,
            proposed: Vec::new(),
            follows: first.map(|_| 1),
            as_of: 0,
        }),
    };
    core.local_endpoints.put_made(MADE_LOG, Some(endpoint));
    Ok(())
}

/// The loggers of a topic, and the position at which the present epoch of its subgroup begins.
///
/// # Errors
/// NOT_ENABLED, ALREADY_DELETED.
pub fn loggers(participant: &DomainParticipant, topic: &str) -> Result<(usize, u64)> {
    let session = participant.core.ready()?;
    let subgroup = SubgroupId(participant.core.config.subgroup_of(topic));
    let view = session.view();
    let group = view
        .as_ref()
        .and_then(|it| it.logs.get(&TopicKey::of_name(topic)));
    let handle = session.handle().subgroup(subgroup);
    let base = handle.map_or(0, |handle| handle.base());
    Ok((group.map_or(0, |it| it.loggers.len()), base))
}

/// Runs something while the log of a topic stands still, as if its disk stalled.
///
/// # Errors
/// ALREADY_DELETED; PRECONDITION_NOT_MET if the participant does not log the topic.
pub fn stall_log<R>(
    participant: &DomainParticipant,
    topic: &str,
    run: impl FnOnce() -> R,
) -> Result<R> {
    let core = &participant.core;
    core.base.alive()?;
    let logged = core.logs.topics().into_iter().find(|it| it.name == topic);
    let logged = logged
        .ok_or_else(|| Error::PreconditionNotMet(format!("topic {topic} is not logged here")))?;
    Ok(logged.stall(run))
}

/// A made log has all below this position.
///
/// # Errors
/// NOT_ENABLED, ALREADY_DELETED.
pub fn persist(participant: &DomainParticipant, topic: &str, position: u64) -> Result<()> {
    let session = participant.core.ready()?;
    let subgroup = SubgroupId(participant.core.config.subgroup_of(topic));
    if let Some(handle) = session.handle().subgroup(subgroup) {
        handle.set_persisted(position);
    }
    Ok(())
}
