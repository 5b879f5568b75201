//! What all entities have in common (DDS 1.4 §2.2.2.1.1).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::condition::StatusCondition;
use crate::driver::Notifier;
use crate::error::{Error, Result};
use crate::handle::{Guid, InstanceHandle};
use crate::status::{StatusFlags, StatusMask};

/// Identity, life and statuses of an entity.
#[derive(Debug)]
pub(crate) struct EntityBase {
    guid: Guid,
    /// For messages: kind and name.
    what: String,
    status_flags: Arc<StatusFlags>,
    enabled: AtomicBool,
    deleted: AtomicBool,
}

impl EntityBase {
    pub(crate) fn new(guid: Guid, what: String, notifier: &Arc<Notifier>) -> Self {
        Self {
            guid,
            what,
            status_flags: Arc::new(StatusFlags::new(notifier.clone())),
            enabled: AtomicBool::new(false),
            deleted: AtomicBool::new(false),
        }
    }

    pub(crate) fn guid(&self) -> Guid {
        self.guid
    }

    pub(crate) fn handle(&self) -> InstanceHandle {
        InstanceHandle::of_entity(self.guid)
    }

    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    pub(crate) fn status_flags(&self) -> &Arc<StatusFlags> {
        &self.status_flags
    }

    /// A listener with this mask is about to be set.
    pub(crate) fn hears(&self, mask: StatusMask) {
        self.status_flags.hears(mask);
    }

    pub(crate) fn condition(&self) -> StatusCondition {
        StatusCondition::new(self.status_flags.clone(), self.handle())
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Acquire)
    }

    pub(crate) fn set_enabled(&self) {
        self.enabled.store(true, Ordering::Release);
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    /// Marks it deleted; false when it was already.
    pub(crate) fn delete(&self) -> bool {
        let first = !self.deleted.swap(true, Ordering::AcqRel);
        if first {
            self.status_flags.end();
        }
        first
    }

    /// For operations that a disabled entity has too.
    pub(crate) fn alive(&self) -> Result<()> {
        if self.is_deleted() {
            return Err(self.gone());
        }
        Ok(())
    }

    /// For operations that need an enabled entity.
    pub(crate) fn ready(&self) -> Result<()> {
        if self.is_enabled() && !self.is_deleted() {
            return Ok(());
        }
        self.alive()?;
        Err(Error::NotEnabled(format!(
            "{} is disabled; call enable() on its participant first",
            self.what
        )))
    }

    #[cold]
    fn gone(&self) -> Error {
        Error::AlreadyDeleted(format!("{} was deleted", self.what))
    }
}

/// The operations of `Entity` that need nothing but the base.
macro_rules! entity_operations {
    ($entity:ident $(<$parameter:ident>)?) => {
        impl$(<$parameter>)? $entity$(<$parameter>)? {
            /// The condition on the statuses of this entity (`get_statuscondition`).
            ///
            /// # Errors
            /// ALREADY_DELETED.
            pub fn status_condition(
                &self,
            ) -> $crate::error::Result<$crate::condition::StatusCondition> {
                self.core.base.alive()?;
                Ok(self.core.base.condition())
            }

            /// The statuses that changed and were not read since (`get_status_changes`).
            ///
            /// # Errors
            /// ALREADY_DELETED.
            pub fn status_changes(&self) -> $crate::error::Result<$crate::status::StatusMask> {
                self.core.base.alive()?;
                Ok(self.core.base.status_flags().changes())
            }

            /// The handle that names this entity in its domain.
            pub fn instance_handle(&self) -> $crate::handle::InstanceHandle {
                self.core.base.handle()
            }

            /// Whether it has been enabled.
            pub fn is_enabled(&self) -> bool {
                self.core.base.is_enabled()
            }
        }
    };
}

pub(crate) use entity_operations;
