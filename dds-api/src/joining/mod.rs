//! How a participant gets into the group of its domain.
//!
//! ```text
//!   newcomer                         a living member (its sponsor)
//!   what to do: join_protocol
//!     no member lives, and
//!     it may: found it, be view 1
//!     else: connect, Ask ----------> does it fit? --no--> Refused
//!                                    Engine::request(Join) ... the next view may have it
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
//! - `network`: the addresses and limits, from the properties.

mod join_protocol;
mod network;
mod newcomer;
mod packet;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Instant;

use spindle_dds_transport::RdmaError;
use spindle_dds_transport::hybrid::HybridError;
use spindle_dds_transport::shm::{SetupError, StationError};

use self::newcomer::{Joined, Newcomer};
use crate::driver::{
    AnnouncementReader, CancelToken, ControlQueue, ControlThread, Dispatcher, Session,
    SessionStart, StreamWaker, Threads,
};
use crate::error::{Error, Result};
use crate::participant::ParticipantCore;
use crate::properties::{PREFER_AVAILABILITY, RDMA, pin};

#[cfg(test)]
pub(crate) use self::packet::Ask;
pub(crate) use self::packet::Packet;

/// Joins the domain's group, or founds it. Blocks until the participant is in a view, or `cancel` is
/// cancelled.
pub(crate) fn join(participant: &ParticipantCore, cancel: &CancelToken) -> Result<Arc<Session>> {
    let config = &participant.config;
    warn_of_unused_pins(participant);
    warn_of_two_groups(participant);
    // Resources come before promises to other members.
    let threads = Threads::spawn(&config.threads)?;
    let local_endpoints = &participant.local_endpoints;
    let newcomer = Newcomer::new(participant)?;
    let sleep_segment = newcomer.sleep_segment()?;
    let joined = newcomer.enter(Instant::now() + config.join_timeout, cancel)?;
    let Joined {
        newcomer,
        view,
        digest,
        preparation,
        ready,
    } = joined;
    let Newcomer {
        station,
        register,
        me,
        ..
    } = newcomer;
    let control_queue = Arc::new(ControlQueue::new(station.clone()));
    let start = SessionStart {
        id: me.id,
        limit: config.failure_limit,
        prefer_availability: config.prefer_availability,
        wait: config.wait,
        engine: config.engine,
        first: view.clone(),
    };
    let notifier = participant.notifier().clone();
    let session = Session::new(
        sleep_segment,
        start,
        local_endpoints.clone(),
        participant.group_status.clone(),
        notifier,
        control_queue,
    );
    // Listeners are called from now on, and use the entities that contain theirs.
    participant.enable_contained();
    local_endpoints.enter(me.id, &session)?;
    let control = ControlThread {
        station,
        register,
        local_endpoints: local_endpoints.clone(),
        announcements: AnnouncementReader::new(me.id),
        me: me.id,
        subgroups: config.subgroups,
        limit: config.failure_limit,
        view,
        digest,
        preparation,
        ready,
        gave_up: BTreeMap::new(),
        asked: BTreeSet::new(),
        lost: BTreeSet::new(),
        later: VecDeque::new(),
    };
    let dispatcher = Dispatcher::new(participant.weak(), local_endpoints.clone());
    let stream_waker = StreamWaker::new(local_endpoints.clone());
    threads.begin(&session, control, dispatcher, stream_waker);
    let begun = session.wait_begun();
    begun.inspect_err(|_| session.abandon())?;
    Ok(session)
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

fn refused(error: SetupError) -> Error {
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
