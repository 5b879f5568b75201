//! Holds a listener, which is taken out while it is called, so that no lock is held.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::status::StatusMask;

/// A listener that its entity shares with the application.
pub type SharedListener<L> = Arc<Mutex<L>>;

/// A listener to be set, with its mask.
pub(crate) struct NewListener<L: ?Sized> {
    pub(crate) mask: StatusMask,
    listener: Option<Box<L>>,
    /// The same as a [`SharedListener`], if it is one.
    shared: Option<Box<dyn Any + Send>>,
}

impl<L: ?Sized> NewListener<L> {
    /// One that the entity alone has.
    pub(crate) fn new(mask: StatusMask, listener: Option<Box<L>>) -> Self {
        Self {
            mask,
            listener,
            shared: None,
        }
    }

    /// One that the application has too, a [`SharedListener`].
    pub(crate) fn shared<S: Clone + Send + 'static>(
        mask: StatusMask,
        listener: Option<S>,
        erase: impl FnOnce(S) -> Box<L>,
    ) -> Self {
        let shared = listener.clone();
        Self {
            mask,
            listener: listener.map(erase),
            shared: shared.map(|shared| Box::new(shared) as Box<dyn Any + Send>),
        }
    }
}

/// A listener with its mask.
pub(crate) struct ListenerSlot<L: ?Sized>(Mutex<Slot<L>>);

struct Slot<L: ?Sized> {
    mask: StatusMask,
    listener: Option<Box<L>>,
    shared: Option<Box<dyn Any + Send>>,
    /// Rises with each `set`: a listener that was replaced while it was called is dropped.
    version: u64,
}

impl<L: ?Sized> ListenerSlot<L> {
    fn lock(&self) -> MutexGuard<'_, Slot<L>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the listener. A call that is under way is not interrupted.
    pub(crate) fn set(&self, new: NewListener<L>) {
        let mut slot = self.lock();
        slot.version += 1;
        slot.mask = new.mask;
        let old = (
            std::mem::replace(&mut slot.listener, new.listener),
            std::mem::replace(&mut slot.shared, new.shared),
        );
        drop(slot);
        // Without the lock: its destructor is user code.
        drop(old);
    }

    /// Calls the listener if its mask has the status. True if it has: the listener was called,
    /// or there is none and the mask swallows the status.
    pub(crate) fn call(&self, status: StatusMask, callback: impl FnOnce(&mut L)) -> bool {
        let mut slot = self.lock();
        if !slot.mask.contains(status) {
            return false;
        }
        let version = slot.version;
        let taken = slot.listener.take();
        drop(slot);
        let Some(mut listener) = taken else {
            return true;
        };
        // A panic of a listener is the application's error: the listener stays, and so does
        // the thread. The panic hook has printed it.
        let called = catch_unwind(AssertUnwindSafe(|| callback(&mut listener)));
        if called.is_err() {
            tracing::error!(?status, "a listener panicked");
        }
        let mut slot = self.lock();
        if slot.version == version {
            slot.listener = Some(listener);
        }
        true
    }

    /// The listener, if it is shared with the application as an `S`.
    pub(crate) fn shared<S: Clone + 'static>(&self) -> Option<S> {
        self.lock().shared.as_ref()?.downcast_ref::<S>().cloned()
    }

    /// Whether the mask has the status.
    pub(crate) fn wants(&self, status: StatusMask) -> bool {
        self.lock().mask.contains(status)
    }
}

impl<L: ?Sized> Default for ListenerSlot<L> {
    fn default() -> Self {
        Self(Mutex::new(Slot {
            mask: StatusMask::NONE,
            listener: None,
            shared: None,
            version: 0,
        }))
    }
}

impl<L: ?Sized> fmt::Debug for ListenerSlot<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slot = self.lock();
        f.debug_struct("ListenerSlot")
            .field("mask", &slot.mask)
            .field("set", &slot.listener.is_some())
            .finish_non_exhaustive()
    }
}
