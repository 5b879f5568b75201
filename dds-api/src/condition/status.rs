//! Conditions on the statuses of an entity.

use std::sync::Arc;

use super::observers::Observers;
use crate::handle::InstanceHandle;
use crate::status::{StatusFlags, StatusMask};

/// Holds while one of the enabled statuses of an entity has changed and was not read since
/// (DDS 1.4 §2.2.2.1.9).
#[derive(Debug, Clone)]
pub struct StatusCondition {
    status_flags: Arc<StatusFlags>,
    entity: InstanceHandle,
}

impl StatusCondition {
    pub(crate) fn new(status_flags: Arc<StatusFlags>, entity: InstanceHandle) -> Self {
        Self {
            status_flags,
            entity,
        }
    }

    /// The enabled statuses; by default all.
    pub fn enabled_statuses(&self) -> StatusMask {
        self.status_flags.enabled()
    }

    /// Sets the enabled statuses.
    pub fn set_enabled_statuses(&self, statuses: StatusMask) {
        self.status_flags.set_enabled(statuses);
    }

    /// Whether it holds.
    pub fn trigger_value(&self) -> bool {
        self.status_flags.is_triggered()
    }

    /// The handle of its entity.
    pub fn entity(&self) -> InstanceHandle {
        self.entity
    }

    pub(super) fn observers(&self) -> &Observers {
        self.status_flags.observers()
    }

    pub(super) fn status_flags(&self) -> &StatusFlags {
        &self.status_flags
    }
}

impl PartialEq for StatusCondition {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.status_flags, &other.status_flags)
    }
}

impl Eq for StatusCondition {}
