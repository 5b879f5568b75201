//! Conditions on the samples of a reader.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::observers::Observers;
use super::states::StateMasks;
use crate::error::{Error, Result};
use crate::status::StatusFlags;
use crate::subscription::{AnyDataReader, ReaderCore};

/// Holds while its reader has a sample in the given states (DDS 1.4 §2.2.2.5.8), whether or not a
/// listener was told of it. It also holds when the reader was deleted, or when the participant has
/// lost its group for good, so that a thread that waits goes on: `take` then says why there is
/// nothing (the standard knows no such case).
#[derive(Debug, Clone)]
pub struct ReadCondition(Arc<OfReader>);

#[derive(Debug)]
struct OfReader {
    reader: Arc<ReaderCore>,
    masks: StateMasks,
    deleted: AtomicBool,
}

impl ReadCondition {
    pub(crate) fn new(reader: Arc<ReaderCore>, masks: StateMasks) -> Self {
        let of_reader = Arc::new(OfReader {
            reader,
            masks,
            deleted: AtomicBool::new(false),
        });
        of_reader.reader.side.conditions.add(&of_reader);
        Self(of_reader)
    }

    /// The states of samples for which it holds.
    pub fn masks(&self) -> StateMasks {
        self.0.masks
    }

    /// Its reader (`get_datareader`).
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn reader(&self) -> Result<AnyDataReader> {
        let core = &self.0.reader;
        core.base.alive()?;
        let deleted = || Error::AlreadyDeleted("the condition's reader was deleted".to_owned());
        Ok(AnyDataReader {
            participant: core.participant.upgrade().ok_or_else(deleted)?,
            core: core.clone(),
        })
    }

    /// Whether it holds. Never once it is deleted while its reader is not.
    pub fn trigger_value(&self) -> bool {
        let is_deleted = self.is_deleted() && !self.0.reader.base.is_deleted();
        !is_deleted && self.0.reader.has_samples(&self.0.masks)
    }

    /// Whether the reader can be read with it.
    pub(crate) fn is_of(&self, reader: &Arc<ReaderCore>) -> bool {
        Arc::ptr_eq(&self.0.reader, reader) && !self.is_deleted()
    }

    pub(crate) fn delete(&self) {
        self.0.deleted.store(true, Ordering::Release);
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.0.deleted.load(Ordering::Acquire)
    }

    pub(super) fn observers(&self) -> &Observers {
        self.status_flags().observers()
    }

    pub(super) fn status_flags(&self) -> &StatusFlags {
        self.0.reader.status_flags()
    }
}

impl PartialEq for ReadCondition {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ReadCondition {}

/// The conditions of a reader that are neither dropped nor deleted.
#[derive(Debug, Default)]
pub(crate) struct ReadConditions(Mutex<Vec<Weak<OfReader>>>);

impl ReadConditions {
    fn existing(&self) -> MutexGuard<'_, Vec<Weak<OfReader>>> {
        let mut conditions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Not by upgrading: the last handle would be dropped, and with it the reader, under the
        // lock.
        conditions.retain(|condition| condition.strong_count() != 0);
        conditions
    }

    fn add(&self, condition: &Arc<OfReader>) {
        self.existing().push(Arc::downgrade(condition));
    }

    fn all(&self) -> Vec<ReadCondition> {
        let conditions = self.existing().clone();
        let all = conditions.iter().filter_map(Weak::upgrade);
        all.map(ReadCondition).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.all().iter().filter(|it| !it.is_deleted()).count()
    }

    pub(crate) fn delete_all(&self) {
        self.all().iter().for_each(ReadCondition::delete);
    }
}
