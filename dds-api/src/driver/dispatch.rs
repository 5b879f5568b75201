//! The dispatch thread: calls listeners, one after the other.

use std::sync::{Arc, Weak};
use std::thread;

use super::session::Session;
use crate::participant::{DomainParticipant, ParticipantCore};
use crate::publication::WriterCore;
use crate::status::StatusMask;
use crate::subscription::ReaderCore;
use crate::topic::TopicCore;
use crate::wire::Wire;

/// The entities of a participant that have statuses.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    pub(crate) participant: Weak<ParticipantCore>,
    pub(crate) topics: Vec<Arc<TopicCore>>,
    pub(crate) writers: Vec<Arc<WriterCore>>,
    pub(crate) readers: Vec<Arc<ReaderCore>>,
}

impl Targets {
    /// Runs until the participant leaves. Allocates nothing once warm.
    pub(crate) fn run(self, session: &Session<Wire>) {
        session.bells().listeners.is_mine();
        let mut told = false;
        while !session.is_stopping() {
            let mut any = false;
            if !told && let Some(reason) = session.fate().failure() {
                told = true;
                any = true;
                self.failed(reason);
            }
            any |= self.statuses();
            if !any {
                thread::park();
            }
        }
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

    fn statuses(&self) -> bool {
        let mut any = false;
        for reader in &self.readers {
            let statuses = reader.beacon().take_pending();
            if !statuses.is_empty() {
                any = true;
                if !reader.base.is_deleted() {
                    reader.dispatch(statuses);
                }
            }
        }
        for writer in &self.writers {
            let statuses = writer.base.beacon().take_pending();
            if !statuses.is_empty() {
                any = true;
                if !writer.base.is_deleted() {
                    writer.dispatch(statuses);
                }
            }
        }
        for topic in &self.topics {
            if !topic.base.beacon().take_pending().is_empty() {
                any = true;
                if let Some(core) = self.participant.upgrade() {
                    topic.dispatch(&DomainParticipant::of(core));
                }
            }
        }
        any
    }
}
