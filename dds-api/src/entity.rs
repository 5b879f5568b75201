//! What all entities have in common (DDS 1.4 §2.2.2.1.1).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use spindle_dds_transport::fork::{self, OwnerProcess};

use crate::condition::StatusCondition;
use crate::driver::Notifier;
use crate::error::{Error, Result};
use crate::handle::{Guid, InstanceHandle};
use crate::participant::ParticipantCore;
use crate::status::{StatusFlags, StatusMask};

/// Identity, life and statuses of an entity.
#[derive(Debug)]
pub(crate) struct EntityBase {
    guid: Guid,
    /// For messages: kind and name.
    what: String,
    /// ENTITY_NAME, for people and for look-ups.
    name: OnceLock<String>,
    /// Its participant, which may be itself.
    participant: Weak<ParticipantCore>,
    status_flags: Arc<StatusFlags>,
    owner: OwnerProcess,
    /// The number of its process while it is enabled and not deleted: one comparison with that of
    /// the calling process tells whether it can be used.
    usable_in: AtomicU32,
    enabled: AtomicBool,
    deleted: AtomicBool,
}

/// In `usable_in`: not enabled yet.
const DISABLED: u32 = 0;
/// In `usable_in`: deleted, for good. No process has that number.
const DELETED: u32 = u32::MAX;

impl EntityBase {
    /// `container` has the statuses of the entity that contains it.
    pub(crate) fn new(
        guid: Guid,
        what: String,
        participant: Weak<ParticipantCore>,
        notifier: &Arc<Notifier>,
        container: Option<Arc<StatusFlags>>,
    ) -> Self {
        Self {
            guid,
            what,
            name: OnceLock::new(),
            participant,
            status_flags: Arc::new(StatusFlags::new(notifier.clone(), container)),
            owner: OwnerProcess::this(),
            usable_in: AtomicU32::new(DISABLED),
            enabled: AtomicBool::new(false),
            deleted: AtomicBool::new(false),
        }
    }

    pub(crate) fn guid(&self) -> Guid {
        self.guid
    }

    /// Its participant, which may be itself; `None` while that is dropped.
    pub(crate) fn participant(&self) -> Option<Arc<ParticipantCore>> {
        self.participant.upgrade()
    }

    pub(crate) fn handle(&self) -> InstanceHandle {
        InstanceHandle::of_entity(self.guid)
    }

    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// Its name; empty if it has none.
    pub(crate) fn name(&self) -> &str {
        self.name.get().map_or("", String::as_str)
    }

    /// Names it, before it is known to others.
    pub(crate) fn set_name(&self, name: Option<String>) {
        if let Some(name) = name {
            let _ = self.name.set(name);
        }
    }

    pub(crate) fn status_flags(&self) -> &Arc<StatusFlags> {
        &self.status_flags
    }

    /// A listener with this mask is about to be set.
    pub(crate) fn hears(&self, mask: StatusMask) {
        self.status_flags.hears(mask);
    }

    pub(crate) fn condition(&self) -> StatusCondition {
        let participant = self.participant.clone();
        StatusCondition::new(self.status_flags.clone(), self.handle(), participant)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Acquire)
    }

    pub(crate) fn set_enabled(&self) {
        self.enabled.store(true, Ordering::Release);
        let (own, order) = (self.owner.number(), Ordering::AcqRel);
        let _ = self
            .usable_in
            .compare_exchange(DISABLED, own, order, Ordering::Relaxed);
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    /// Marks it deleted; false when it was already.
    pub(crate) fn delete(&self) -> bool {
        let first = !self.deleted.swap(true, Ordering::AcqRel);
        self.usable_in.store(DELETED, Ordering::Release);
        if first {
            self.status_flags.end();
        }
        first
    }

    /// Whether this process has inherited it by `fork`: it belongs to the parent.
    pub(crate) fn is_inherited(&self) -> bool {
        self.owner.is_inherited()
    }

    /// For operations that take no notice of deletion.
    pub(crate) fn not_inherited(&self) -> Result<()> {
        match self.is_inherited() {
            true => Err(inherited(&self.what)),
            false => Ok(()),
        }
    }

    /// For operations that a disabled entity has too.
    pub(crate) fn alive(&self) -> Result<()> {
        self.not_inherited()?;
        if self.is_deleted() {
            return Err(self.gone());
        }
        Ok(())
    }

    /// For operations that need an enabled entity.
    #[inline]
    pub(crate) fn ready(&self) -> Result<()> {
        if self.usable_in.load(Ordering::Acquire) == fork::number() {
            return Ok(());
        }
        Err(self.unready())
    }

    /// Why it cannot be used.
    #[cold]
    fn unready(&self) -> Error {
        match self.alive() {
            Err(error) => error,
            Ok(()) => Error::NotEnabled(format!(
                "{} is disabled; call enable() on its participant first",
                self.what
            )),
        }
    }

    #[cold]
    fn gone(&self) -> Error {
        Error::AlreadyDeleted(format!("{} was deleted", self.what))
    }
}

/// Something was made before this process was forked, and belongs to its parent.
#[cold]
pub(crate) fn inherited(what: &str) -> Error {
    Error::AlreadyDeleted(format!(
        "{what} was inherited by fork and belongs to the parent process; this process has to \
         create a participant of its own"
    ))
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

            /// The changes of these statuses of this entity as a stream, for any executor. Each item is
            /// the set of those that have changed since the last one, whether they were read meanwhile or
            /// not; the first has also those that changed before and were not read. The stream ends when
            /// the entity is deleted, does not keep it alive, and takes no notice of listeners.
            ///
            /// # Errors
            /// ALREADY_DELETED.
            pub fn status_stream(
                &self,
                statuses: $crate::status::StatusMask,
            ) -> $crate::error::Result<$crate::status::StatusStream> {
                self.core.base.alive()?;
                let flags = self.core.base.status_flags().clone();
                Ok($crate::status::StatusStream::new(flags, statuses))
            }

            /// The handle that names this entity in its domain.
            pub fn instance_handle(&self) -> $crate::handle::InstanceHandle {
                self.core.base.handle()
            }

            /// Its name (ENTITY_NAME), for people and for look-ups: given to its builder, or by the
            /// file from which it was created. Empty if it has none.
            pub fn entity_name(&self) -> &str {
                self.core.base.name()
            }

            /// Whether it has been enabled.
            pub fn is_enabled(&self) -> bool {
                self.core.base.is_enabled()
            }
        }
    };
}

/// The operations on the listener of an entity, whose core has `set_listener`. `$erase` makes a
/// `Box<dyn $listener>` what the core holds.
macro_rules! listener_operations {
    ($listener:path, $erase:expr) => {
        /// Sets the listener, and the statuses that it is called for.
        ///
        /// # Errors
        /// ALREADY_DELETED.
        pub fn set_listener(
            &self,
            mask: $crate::status::StatusMask,
            listener: Option<Box<dyn $listener>>,
        ) -> $crate::error::Result<()> {
            let erase = $erase;
            self.core.base.alive()?;
            let new = $crate::listener::NewListener::new(mask, listener.map(|it| erase(it)));
            self.core.set_listener(new);
            Ok(())
        }

        /// Sets a listener that the application has too.
        pub(crate) fn set_shared_listener(
            &self,
            mask: $crate::status::StatusMask,
            listener: Option<$crate::listener::SharedListener<dyn $listener>>,
        ) -> $crate::error::Result<()> {
            let erase = $erase;
            self.core.base.alive()?;
            let erase = |listener| erase(Box::new(listener) as Box<dyn $listener>);
            let new = $crate::listener::NewListener::shared(mask, listener, erase);
            self.core.set_listener(new);
            Ok(())
        }

        /// The listener, if the application has it too.
        pub(crate) fn shared_listener(
            &self,
        ) -> Option<$crate::listener::SharedListener<dyn $listener>> {
            self.core.listener.shared()
        }
    };
}

pub(crate) use {entity_operations, listener_operations};
