//! Conditions on the statuses of an entity.

use std::sync::Arc;

use super::observers::Observers;
use crate::handle::InstanceHandle;
use crate::status::{Beacon, StatusMask};

/// Holds while one of its enabled statuses of an entity has changed and was not
/// read since (DDS 1.4 §2.2.2.1.9).
#[derive(Debug, Clone)]
pub struct StatusCondition {
    beacon: Arc<Beacon>,
    entity: InstanceHandle,
}

impl StatusCondition {
    pub(crate) fn new(beacon: Arc<Beacon>, entity: InstanceHandle) -> Self {
        Self { beacon, entity }
    }

    /// The statuses that it looks at; all of them at first.
    pub fn enabled_statuses(&self) -> StatusMask {
        self.beacon.enabled()
    }

    /// Chooses the statuses that it looks at.
    pub fn set_enabled_statuses(&self, statuses: StatusMask) {
        self.beacon.set_enabled(statuses);
    }

    /// Whether it holds.
    pub fn trigger_value(&self) -> bool {
        self.beacon.is_triggered()
    }

    /// Handle of the entity that it belongs to.
    pub fn entity(&self) -> InstanceHandle {
        self.entity
    }

    pub(super) fn observers(&self) -> &Observers {
        self.beacon.observers()
    }

    pub(super) fn beacon(&self) -> &Beacon {
        &self.beacon
    }
}

impl PartialEq for StatusCondition {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.beacon, &other.beacon)
    }
}

impl Eq for StatusCondition {}
