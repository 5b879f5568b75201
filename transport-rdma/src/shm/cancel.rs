//! Ending a join from another thread.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::descriptor;
use super::error::JoinError;

/// Ends a [`join`](super::join), or the [`build`](super::Formation::build) after
/// it, that another thread waits in. Its clones are one and the same.
#[derive(Clone)]
pub struct Cancel(Arc<Inner>);

struct Inner {
    said: AtomicBool,
    /// Readable from the moment that it is said.
    event: OwnedFd,
}

impl Cancel {
    /// One that nobody has said yet.
    ///
    /// # Errors
    /// [`JoinError::System`] when there are no descriptors left.
    pub fn new() -> Result<Self, JoinError> {
        let event = descriptor::event()?;
        Ok(Self(Arc::new(Inner {
            said: AtomicBool::new(false),
            event,
        })))
    }

    /// Says it, once and for all. Whoever waits gives up with
    /// [`JoinError::Cancelled`], unless the group has been formed by then. Never blocks.
    pub fn cancel(&self) {
        if !self.0.said.swap(true, Ordering::SeqCst) {
            // The first write to an event descriptor has room.
            let written = rustix::io::write(&self.0.event, &1_u64.to_ne_bytes());
            debug_assert!(written.is_ok());
        }
    }

    /// Whether it has been said.
    pub fn is_cancelled(&self) -> bool {
        self.0.said.load(Ordering::SeqCst)
    }

    pub(super) fn event(&self) -> &OwnedFd {
        &self.0.event
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}
