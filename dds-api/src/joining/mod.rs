//! How a participant gets into the group of its domain.
//!
//! ```text
//!   newcomer                         a living member (its sponsor)
//!   what to do: join_protocol
//!     no member lives, and
//!     it may: found it, be view 1
//!     else: connect, Ask ----------> does it fit? --no--> Refused
//!                                    Engine::request(Join) ... the next view may have it
//!     wait longer <----------------- Waits ... if others have asked before
//!     make its segments <----------- Prepare
//!     Prepared, or what it lacks --> ... the next view has it
//!     enter that view <------------- Welcome
//!
//!                                    another newcomer
//!           connect, Ask ----------> NotYet: it waits for the one that asks, or not
//! ```
//!
//! If the sponsor ends before that, another one is asked: a newcomer that asks twice joins once.
//!
//! - `join_protocol`: which member a newcomer asks, what it promises, when it founds; no I/O.
//! - `newcomer`: does what the protocol says. `packet`: the packets.
//! - `rejoin`: the way back of a participant that has lost its group.
//! - `network`: the addresses and limits, from the properties.

mod join_protocol;
mod network;
mod newcomer;
mod packet;
mod rejoin;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use spindle_dds_core::membership::{DeliveredHistory, MemberId};
use spindle_dds_transport::RdmaError;
use spindle_dds_transport::hybrid::HybridError;
use spindle_dds_transport::shm::{SetupError, StationError};

use self::newcomer::{Joined, Newcomer};
use self::rejoin::keep_sent;
use crate::driver::{
    AnnouncementReader, CancelToken, ControlQueue, ControlThread, Dispatcher, MemoryWatch, Session,
    SessionStart, StreamWaker, Threads,
};
use crate::error::{Error, Result};
use crate::participant::ParticipantCore;
use crate::properties::{PREFER_AVAILABILITY, RDMA, pin};
use crate::wire::Wire;

#[cfg(test)]
pub(crate) use self::packet::Ask;
pub(crate) use self::packet::Packet;
pub(crate) use self::rejoin::rejoin;

/// Joins the domain's group, or founds it, with these threads of the participant. Blocks until the
/// participant is in a view, or `cancel` is cancelled. The waking thread may be the calling one.
pub(crate) fn join(
    participant: &ParticipantCore,
    threads: Threads,
    cancel: &CancelToken,
) -> Result<Arc<Session>> {
    warn_of_unused_pins(participant);
    warn_of_two_groups(participant);
    let entry = Entry::prepare(participant, threads, None)?;
    let session = entry.enter(cancel)?.begin(participant, None);
    let begun = session.wait_begun();
    begun.inspect_err(|_| session.abandon())?;
    Ok(session)
}

/// What a participant needs to join. Resources come before promises to other members.
struct Entry {
    threads: Threads,
    newcomer: Newcomer,
    sleep_segment: Wire,
    timeout: Duration,
}

/// A participant that is in its first view, before it does anything in it.
struct Entered {
    threads: Threads,
    sleep_segment: Wire,
    joined: Joined,
}

impl Entry {
    /// `was`: the member that the participant was before it lost its group.
    fn prepare(
        participant: &ParticipantCore,
        threads: Threads,
        was: Option<MemberId>,
    ) -> Result<Self> {
        let newcomer = Newcomer::new(participant, was)?;
        Ok(Self {
            threads,
            sleep_segment: newcomer.sleep_segment()?,
            newcomer,
            timeout: participant.config.join_timeout,
        })
    }

    fn enter(self, cancel: &CancelToken) -> Result<Entered> {
        Ok(Entered {
            joined: self.newcomer.enter(self.timeout, cancel)?,
            threads: self.threads,
            sleep_segment: self.sleep_segment,
        })
    }
}

impl Entered {
    /// Begins the session: the threads install the view. `ended`: the session before, if the
    /// participant comes back; its threads end, and writers keep what the group has not delivered.
    fn begin(self, participant: &ParticipantCore, ended: Option<&Session>) -> Arc<Session> {
        let config = &participant.config;
        let lasting = participant.lasting();
        let local_endpoints = &participant.local_endpoints;
        let Joined {
            newcomer,
            view,
            digest,
            preparation,
            ready,
        } = self.joined;
        let Newcomer {
            station,
            register,
            me,
            delivered,
            history,
            ..
        } = newcomer;
        let threads_before = ended.map_or_else(Vec::new, Session::retire);
        let writers = ended.map(|ended| keep_sent(participant, ended, delivered.as_ref()));
        let control_queue = Arc::new(ControlQueue::new(station.clone()));
        let start = SessionStart {
            id: me.id,
            limit: config.failure_limit,
            prefer_availability: config.prefer_availability,
            wait: config.wait,
            engine: config.engine,
            first: view.clone(),
            writers: writers.unwrap_or_default(),
        };
        let session = Session::new(self.sleep_segment, start, lasting, control_queue);
        // Listeners are called from now on, and use the entities that contain theirs.
        participant.enable_contained();
        local_endpoints.enter(me.id, &session);
        let control = ControlThread {
            participant: participant.weak(),
            station,
            register,
            local_endpoints: local_endpoints.clone(),
            history: participant.history.clone(),
            logs: participant.logs.clone(),
            announcements: AnnouncementReader::new(me.id),
            me: me.id,
            subgroups: config.subgroups,
            limit: config.failure_limit,
            view,
            digest,
            preparation,
            ready,
            gave_up: BTreeMap::new(),
            asked: Vec::new(),
            were: BTreeMap::new(),
            delivered: DeliveredHistory::default(),
            lost: BTreeSet::new(),
            later: history,
            memory_watch: MemoryWatch::default(),
        };
        let endpoints = local_endpoints.clone();
        let dispatcher = Dispatcher::new(participant.weak(), endpoints, threads_before);
        let stream_waker = StreamWaker::new(local_endpoints.clone());
        self.threads
            .begin(&session, control, dispatcher, stream_waker);
        session
    }
}

/// A random id, unique in practice.
pub(crate) fn random_id() -> u128 {
    let draw = || {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        hasher.write_i64(crate::stamps::source_timestamp());
        u128::from(hasher.finish())
    };
    draw() << 64 | draw()
}

/// A profile may be shared by participants with different topics; or a name may be misspelled.
fn warn_of_unused_pins(participant: &ParticipantCore) {
    let entities = participant.entities();
    for name in participant.config.pins.keys() {
        if !entities.topics.iter().any(|topic| topic.name == *name) {
            tracing::warn!(
                property = pin(name),
                "the participant has no topic of this name yet: the property has no effect"
            );
        }
    }
}

fn warn_of_two_groups(participant: &ParticipantCore) {
    if participant.config.prefer_availability {
        tracing::warn!(
            property = PREFER_AVAILABILITY,
            domain = participant.domain_id,
            "members that are cut off from each other all go on: the domain may fall apart into \
             groups with different orders, which never become one again"
        );
    }
}

pub(crate) fn refused(error: SetupError) -> Error {
    let text = error.to_string();
    match error {
        _ if error.is_out_of_resources() => Error::OutOfResources(text),
        SetupError::NoFutexWaitv => Error::Unsupported(text),
        _ => Error::Error(text),
    }
}

fn unavailable(error: &RdmaError) -> String {
    format!("property {RDMA} is required, but {error}")
}

pub(crate) fn unmade(error: HybridError) -> Error {
    match error {
        HybridError::Join(error) | HybridError::Station(StationError::System(error)) => {
            refused(error)
        }
        HybridError::Rdma(error @ RdmaError::NotBuilt) => Error::Unsupported(unavailable(&error)),
        HybridError::Rdma(error @ RdmaError::Memlock { .. }) => {
            Error::OutOfResources(unavailable(&error))
        }
        HybridError::Rdma(error) => Error::Error(unavailable(&error)),
        error => Error::Error(error.to_string()),
    }
}
