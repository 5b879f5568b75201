//! The dispatch thread: calls listeners, one after the other.
//!
//! Where a listener may be told of data, it looks for that itself as a thread in a WaitSet
//! does (see [`super::seat`]): what comes wakes it, and not the polling thread first.

use std::sync::{Arc, Weak};

use super::glance::this_thread_calls_back;
use super::session::Session;
use crate::discovery::{Own, Roll};
use crate::entity::EntityBase;
use crate::participant::{DomainParticipant, ParticipantCore};
use crate::status::StatusMask;
use crate::topic::TopicCore;

/// The entities of a participant that have statuses.
#[derive(Debug)]
pub(crate) struct Targets {
    participant: Weak<ParticipantCore>,
    roll: Arc<Roll>,
}

/// An endpoint, and by which signs it or its topic calls.
struct Caller {
    signs: u64,
    endpoint: Own,
}

impl Caller {
    fn new(endpoint: Own) -> Self {
        let (base, topic) = parts(&endpoint);
        let signs = base.beacon().sign() | topic.base.beacon().sign();
        Self { signs, endpoint }
    }
}

fn parts(endpoint: &Own) -> (&EntityBase, &Arc<TopicCore>) {
    match endpoint {
        Own::Reader(reader) => (&reader.base, &reader.topic),
        Own::Writer(writer) => (&writer.base, &writer.topic),
    }
}

impl Targets {
    pub(crate) fn new(participant: Weak<ParticipantCore>, roll: Arc<Roll>) -> Self {
        Self { participant, roll }
    }

    /// Runs until the participant leaves. Allocates only when endpoints came or went.
    pub(crate) fn run(self, session: &Session) {
        let bells = session.bells();
        let bell = &bells.listeners;
        bell.begin(bells.couch());
        this_thread_calls_back();
        let mut told = false;
        let mut own = Vec::new();
        let mut generation = None;
        loop {
            bell.signal().reset();
            if session.is_stopping() {
                break;
            }
            let mut calls = bells.take_calls();
            let now = Some(self.roll.generation());
            if generation != now {
                generation = now;
                own = self.roll.all().into_iter().map(Caller::new).collect();
                // Who came may have called before it was here.
                calls = u64::MAX;
            }
            let mut any = false;
            if !told && let Some(reason) = session.fate().failure() {
                told = true;
                any = true;
                self.failed(reason);
            }
            any |= self.statuses(&own, calls);
            if any || generation != Some(self.roll.generation()) {
                continue;
            }
            session.wait_as(bell.signal(), bells.are_heard(StatusMask::DATA_AVAILABLE));
        }
        bell.end();
    }

    fn failed(&self, reason: &str) {
        tracing::error!("{reason}");
        if let Some(core) = self.participant.upgrade() {
            let participant = DomainParticipant::of(core);
            participant
                .core
                .listener
                .call(StatusMask::NONE, |listener| {
                    listener.on_failed(&participant, reason);
                });
        }
    }

    /// Those of endpoints that have one of these signs, or their topics do.
    fn statuses(&self, own: &[Caller], calls: u64) -> bool {
        let mut any = false;
        for Caller { endpoint, .. } in own.iter().filter(|it| it.signs & calls != 0) {
            let (base, topic) = parts(endpoint);
            let statuses = base.beacon().take_pending();
            if !statuses.is_empty() {
                any = true;
                match endpoint {
                    _ if base.is_deleted() => {}
                    Own::Reader(reader) => reader.dispatch(statuses),
                    Own::Writer(writer) => writer.dispatch(statuses),
                }
            }
            any |= self.topic(topic);
        }
        any
    }

    /// A topic that no endpoint uses has nothing to tell.
    fn topic(&self, topic: &Arc<TopicCore>) -> bool {
        let any = !topic.base.beacon().take_pending().is_empty();
        if any && let Some(core) = self.participant.upgrade() {
            topic.dispatch(&DomainParticipant::of(core));
        }
        any
    }
}
