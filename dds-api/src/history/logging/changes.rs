//! What the group is to be told of the logs of a participant.
//!
//! A participant that joins a group announces its logs with its request. What the log thread has found
//! out in an earlier group stands for nothing in the new one: so it says of which group a change
//! is, as a count of joins.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spindle_dds_core::storage::LogEnd;

use super::topic::LoggedTopic;

/// What the group is to be told of a log.
#[derive(Debug)]
pub(crate) enum LogChange {
    /// There is one, or it has changed.
    Put(Arc<LoggedTopic>, LogEnd),
    /// It is not written any more.
    Removed(Arc<LoggedTopic>),
}

/// What the group is to be told, in order.
#[derive(Debug, Default)]
pub(super) struct LogChanges {
    changes: Mutex<Vec<LogChange>>,
    any: AtomicBool,
    /// How often the participant has joined a group. Changes under the lock.
    joins: AtomicU64,
    /// A log waits until others are ready.
    awaits_words: AtomicBool,
}

impl LogChanges {
    fn changes(&self) -> MutexGuard<'_, Vec<LogChange>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A change that the present group, or the next one, is to be told.
    pub(super) fn push(&self, change: LogChange) {
        self.changes().push(change);
        self.any.store(true, Ordering::Release);
    }

    /// A change in the group that was joined at this count. It is dropped if another group is joined since.
    pub(super) fn push_of(&self, join: u64, change: LogChange) {
        let mut changes = self.changes();
        if self.joins() == join {
            changes.push(change);
            self.any.store(true, Ordering::Release);
        }
    }

    /// The participant is about to join a group, to which it tells itself what logs there are. Returns the
    /// count of joins.
    pub(super) fn begin_join(&self) -> u64 {
        let mut changes = self.changes();
        changes.clear();
        self.joins.fetch_add(1, Ordering::AcqRel) + 1
    }

    pub(super) fn joins(&self) -> u64 {
        self.joins.load(Ordering::Acquire)
    }

    pub(super) fn take(&self) -> Vec<LogChange> {
        if !self.any.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *self.changes())
    }

    /// Called by the log thread before it looks at the words of others: it is woken by those that it
    /// does not see then.
    pub(super) fn set_awaits_words(&self, awaits: bool) {
        self.awaits_words.store(awaits, Ordering::Relaxed);
        // Pairs with the one in `awaits_words`.
        fence(Ordering::SeqCst);
    }

    /// Called by the thread that has found words that have risen.
    pub(super) fn awaits_words(&self) -> bool {
        fence(Ordering::SeqCst);
        self.awaits_words.load(Ordering::Relaxed)
    }
}
