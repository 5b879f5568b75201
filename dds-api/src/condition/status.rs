//! Conditions on the statuses of an entity.

use std::sync::{Arc, Weak};

use super::observers::Observers;
use crate::error::{Error, Result};
use crate::handle::InstanceHandle;
use crate::participant::{AnyEntity, ParticipantCore};
use crate::status::{StatusFlags, StatusMask};

/// Holds while one of the enabled statuses of an entity has changed and was not read since
/// (DDS 1.4 §2.2.2.1.9).
#[derive(Debug, Clone)]
pub struct StatusCondition {
    status_flags: Arc<StatusFlags>,
    entity: InstanceHandle,
    participant: Weak<ParticipantCore>,
}

impl StatusCondition {
    pub(crate) fn new(
        status_flags: Arc<StatusFlags>,
        entity: InstanceHandle,
        participant: Weak<ParticipantCore>,
    ) -> Self {
        Self {
            status_flags,
            entity,
            participant,
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

    /// Whether it holds. A status that a listener has to be told of makes it hold, but a WaitSet
    /// returns for it only after the listener was called.
    pub fn trigger_value(&self) -> bool {
        self.status_flags.is_triggered()
    }

    /// Its entity (`get_entity`).
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn entity(&self) -> Result<AnyEntity> {
        let participant = self.participant.upgrade();
        let entity = participant.and_then(|it| AnyEntity::find(&it, self.entity));
        let deleted = || Error::AlreadyDeleted("the condition's entity was deleted".to_owned());
        entity.ok_or_else(deleted)
    }

    /// Whether it makes a wait-set return.
    pub(super) fn is_signaled(&self) -> bool {
        self.status_flags.is_signaled()
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
