//! Conditions on the samples of a reader.

use std::sync::Arc;

use super::observers::Observers;
use super::states::StateMasks;
use crate::status::StatusFlags;
use crate::subscription::ReaderCore;

/// Holds while its reader has a sample in the given states (DDS 1.4 §2.2.2.5.8).
#[derive(Debug, Clone)]
pub struct ReadCondition(Arc<OfReader>);

#[derive(Debug)]
struct OfReader {
    reader: Arc<ReaderCore>,
    masks: StateMasks,
}

impl ReadCondition {
    pub(crate) fn new(reader: Arc<ReaderCore>, masks: StateMasks) -> Self {
        Self(Arc::new(OfReader { reader, masks }))
    }

    /// The states of samples for which it holds.
    pub fn masks(&self) -> StateMasks {
        self.0.masks
    }

    /// Whether it holds.
    pub fn trigger_value(&self) -> bool {
        self.0.reader.has_samples(&self.0.masks)
    }

    pub(crate) fn is_of(&self, reader: &Arc<ReaderCore>) -> bool {
        Arc::ptr_eq(&self.0.reader, reader)
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
