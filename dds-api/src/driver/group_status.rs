//! Whether the group goes on, has failed, or was left.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};

/// Shared by all that ends when the group does.
#[derive(Debug, Default)]
pub(crate) struct GroupStatus {
    failed: OnceLock<String>,
    closed: AtomicBool,
}

impl GroupStatus {
    /// The group has failed; the first reason counts.
    pub(crate) fn fail(&self, reason: String) {
        let _ = self.failed.set(reason);
    }

    /// This participant leaves.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    pub(crate) fn check(&self) -> Result<()> {
        if let Some(reason) = self.failure() {
            return Err(Error::Error(reason.to_owned()));
        }
        if self.is_closed() {
            return Err(Error::AlreadyDeleted(
                "the participant has left its group".to_owned(),
            ));
        }
        Ok(())
    }
}

/// Cancels what another thread waits in. Clones share one state.
#[derive(Debug, Clone, Default)]
pub(crate) struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Cancels, for good.
    pub(crate) fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
