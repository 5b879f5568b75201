//! The lifecycle of a participant.
//!
//! ```text
//!             enable()               it is a member
//!   Disabled ----------> Enabling -------------------> Enabled
//!     |  ^                |   |                           |
//!     |  '----------------'   | close(): cancelled        | close()
//!     |    join failed        v                           v
//!     |                    Closing <----------------------'
//!     | close()               | it is no member any more
//!     '-------> Closed <------'
//! ```
//!
//! One lock guards the stage. It is not held while the group is joined or left, so that
//! `close` can cancel a join.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::driver::{CancelToken, Session};
use crate::error::{Error, Result};

#[derive(Debug)]
enum Stage {
    Disabled,
    /// A thread is joining; the token cancels it.
    Enabling(CancelToken),
    Enabled(Arc<Session>),
    Closing,
    Closed,
}

/// The stage of a participant.
#[derive(Debug)]
pub(super) struct Lifecycle {
    stage: Mutex<Stage>,
    /// Notified when the stage becomes `Closed`.
    closed: Condvar,
}

impl Lifecycle {
    pub(super) fn new() -> Self {
        Self {
            stage: Mutex::new(Stage::Disabled),
            closed: Condvar::new(),
        }
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of an enabled participant.
    pub(super) fn session(&self) -> Option<Arc<Session>> {
        match &*self.stage() {
            Stage::Enabled(session) => Some(session.clone()),
            _ => None,
        }
    }

    /// In a child of `fork`: the session is not dropped with this.
    pub(super) fn leak_session(&mut self) {
        let stage = self.stage.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::forget(std::mem::replace(stage, Stage::Closed));
    }

    pub(super) fn is_enabling(&self) -> bool {
        matches!(*self.stage(), Stage::Enabling(_))
    }

    /// The calling thread begins to join. Returns `None` if the participant is enabled already.
    pub(super) fn begin_enabling(&self) -> Result<Option<CancelToken>> {
        let mut stage = self.stage();
        match *stage {
            Stage::Disabled => {
                let cancel = CancelToken::default();
                *stage = Stage::Enabling(cancel.clone());
                Ok(Some(cancel))
            }
            Stage::Enabling(_) => {
                let text = "another thread is enabling this participant";
                Err(Error::PreconditionNotMet(text.to_owned()))
            }
            Stage::Enabled(_) => Ok(None),
            Stage::Closing | Stage::Closed => Err(was_deleted()),
        }
    }

    /// The calling thread has joined, or failed to. Unless the participant was closed
    /// meanwhile, it becomes enabled, and `enabled` is called; or disabled again after a
    /// failure. If it was closed, it leaves the group that it joined.
    pub(super) fn end_enabling(
        &self,
        joined: Result<Arc<Session>>,
        enabled: impl FnOnce(),
    ) -> Result<()> {
        let mut stage = self.stage();
        if matches!(*stage, Stage::Enabling(_)) {
            return match joined {
                Ok(session) => {
                    *stage = Stage::Enabled(session);
                    enabled();
                    Ok(())
                }
                Err(error) => {
                    *stage = Stage::Disabled;
                    Err(error)
                }
            };
        }
        drop(stage);
        let error = match joined {
            Err(error @ Error::AlreadyDeleted(_)) => error,
            Err(_) => was_deleted(),
            Ok(session) => {
                if let Err(error) = session.close() {
                    tracing::warn!(%error, "leaving a group that was joined while the join was cancelled");
                }
                was_deleted()
            }
        };
        self.end_closing();
        Err(error)
    }

    /// The calling thread closes the participant. If this returns a session, it has to leave
    /// that and call [`end_closing`](Self::end_closing); otherwise it may
    /// [wait](Self::wait_closed) for the end.
    pub(super) fn begin_closing(&self) -> Result<Option<Arc<Session>>> {
        let mut stage = self.stage();
        let (next, session) = match &*stage {
            Stage::Disabled => (Stage::Closed, None),
            Stage::Enabling(cancel) => {
                cancel.cancel();
                (Stage::Closing, None)
            }
            Stage::Enabled(session) => (Stage::Closing, Some(session.clone())),
            Stage::Closing | Stage::Closed => return Err(was_deleted()),
        };
        *stage = next;
        Ok(session)
    }

    /// The participant has left its group.
    pub(super) fn end_closing(&self) {
        *self.stage() = Stage::Closed;
        self.closed.notify_all();
    }

    /// Blocks until the participant has left its group.
    pub(super) fn wait_closed(&self) {
        let stage = self.stage();
        let open = |stage: &mut Stage| !matches!(stage, Stage::Closed);
        let closed = self.closed.wait_while(stage, open);
        drop(closed.unwrap_or_else(PoisonError::into_inner));
    }
}

fn was_deleted() -> Error {
    Error::AlreadyDeleted("the participant was deleted".to_owned())
}
