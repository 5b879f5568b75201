//! The dispatch thread: calls listeners, one after the other.
//!
//! Where a listener may be told of data, it looks for that itself as a thread in a WaitSet
//! does (see [`super::seat`]): what comes wakes it, and not the polling thread first.

use std::sync::{Arc, Weak};

use super::glance::this_thread_calls_back;
use super::session::Session;
use crate::discovery::{Own, Roll};
use crate::participant::{DomainParticipant, ParticipantCore};
use crate::status::StatusMask;
use crate::topic::TopicCore;

/// The entities of a participant that have statuses.
#[derive(Debug)]
pub(crate) struct Targets {
    participant: Weak<ParticipantCore>,
    roll: Arc<Roll>,
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
            let now = Some(self.roll.generation());
            if generation != now {
                generation = now;
                own = self.roll.all();
            }
            let mut any = false;
            if !told && let Some(reason) = session.fate().failure() {
                told = true;
                any = true;
                self.failed(reason);
            }
            any |= self.statuses(&own);
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

    fn statuses(&self, own: &[Own]) -> bool {
        let mut any = false;
        for endpoint in own {
            let (base, topic) = match endpoint {
                Own::Reader(reader) => (&reader.base, &reader.topic),
                Own::Writer(writer) => (&writer.base, &writer.topic),
            };
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
