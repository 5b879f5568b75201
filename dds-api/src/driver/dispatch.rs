//! The dispatch thread: calls listeners, wakes streams.

use std::sync::{Arc, Weak};
use std::task::Waker;
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
        session.bell().is_mine();
        let mut spare = Vec::new();
        let mut told = false;
        while !session.is_stopping() {
            let mut any = self.members_left(session);
            if !told && let Some(reason) = session.fate().failure() {
                told = true;
                any = true;
                self.failed(reason, &mut spare);
            }
            any |= self.statuses(&mut spare);
            if !any {
                thread::park();
            }
        }
        // Streams find out that it is over.
        self.readers
            .iter()
            .for_each(|reader| reader.wake_streams(&mut spare));
    }

    fn members_left(&self, session: &Session<Wire>) -> bool {
        let mut any = false;
        while let Some(rank) = session.left.pop() {
            self.writers
                .iter()
                .for_each(|writer| writer.member_left(rank));
            any = true;
        }
        any
    }

    fn failed(&self, reason: &str, spare: &mut Vec<Waker>) {
        tracing::error!("{reason}");
        self.readers
            .iter()
            .for_each(|reader| reader.wake_streams(spare));
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

    fn statuses(&self, spare: &mut Vec<Waker>) -> bool {
        // Streams first: a listener may take its time.
        for reader in &self.readers {
            if reader.beacon().is_pending(StatusMask::DATA_AVAILABLE) {
                reader.wake_streams(spare);
            }
        }
        let mut any = false;
        for reader in &self.readers {
            let statuses = reader.beacon().take_pending();
            if !statuses.is_empty() {
                any = true;
                if statuses.contains(StatusMask::DATA_AVAILABLE) {
                    // Once more: it may have come after the first look.
                    reader.wake_streams(spare);
                }
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
