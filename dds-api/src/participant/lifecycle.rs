//! The lifecycle of a participant.
//!
//! ```text
//!             enable()               it is a member
//!   Disabled ----------> Enabling -------------------> Enabled
//!     |  ^                |   |                          | |  ^
//!     |  '----------------'   | close(): cancelled       | |  | it is a member again
//!     |    join failed        v                  close() | |  |
//!     |                    Closing <---------------------' |  |
//!     |                    |  ^                            v  |
//!     |                    |  '----------------------- Returning
//!     | close()            |     close(): cancelled        it has lost its group
//!     '-------> Closed <---'
//!                         it is no member any more
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
    /// A thread is joining again, after the session has ended; the token cancels it.
    Returning(CancelToken, Arc<Session>),
    Closing,
    Closed,
}

/// The stage of a participant.
#[derive(Debug)]
pub(super) struct Lifecycle {
    stage: Mutex<Stage>,
    /// Notified when the stage has changed.
    changed: Condvar,
}

impl Lifecycle {
    pub(super) fn new() -> Self {
        Self {
            stage: Mutex::new(Stage::Disabled),
            changed: Condvar::new(),
        }
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of an enabled participant.
    pub(super) fn session(&self) -> Option<Arc<Session>> {
        match &*self.stage() {
            Stage::Enabled(session) | Stage::Returning(_, session) => Some(session.clone()),
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
        self.begin_enabling_alone().unwrap_or_else(|| {
            let text = "another thread is enabling this participant";
            Err(Error::PreconditionNotMet(text.to_owned()))
        })
    }

    /// The same; `None` while another thread is enabling it.
    pub(super) fn begin_enabling_alone(&self) -> Option<Result<Option<CancelToken>>> {
        let mut stage = self.stage();
        Some(match *stage {
            Stage::Disabled => {
                let cancel = CancelToken::default();
                *stage = Stage::Enabling(cancel.clone());
                Ok(Some(cancel))
            }
            Stage::Enabling(_) => return None,
            Stage::Enabled(_) | Stage::Returning(..) => Ok(None),
            Stage::Closing | Stage::Closed => Err(was_deleted()),
        })
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
                    self.changed.notify_all();
                    Ok(())
                }
                Err(error) => {
                    *stage = Stage::Disabled;
                    self.changed.notify_all();
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
            Stage::Returning(cancel, _) => {
                cancel.cancel();
                (Stage::Closing, None)
            }
            Stage::Closing | Stage::Closed => return Err(was_deleted()),
        };
        *stage = next;
        self.changed.notify_all();
        Ok(session)
    }

    /// The group has ended for this session, and the participant is to come back. Blocks while it is
    /// being enabled. `None` if it is closed, was not enabled, or has another session.
    pub(super) fn begin_returning(&self, session: &Arc<Session>) -> Option<CancelToken> {
        let waits = |stage: &mut Stage| {
            matches!(stage, Stage::Enabling(_))
                || matches!(stage, Stage::Returning(_, before) if !Arc::ptr_eq(before, session))
        };
        let stage = self.changed.wait_while(self.stage(), waits);
        let mut stage = stage.unwrap_or_else(PoisonError::into_inner);
        match &*stage {
            Stage::Enabled(now) if Arc::ptr_eq(now, session) => {
                let cancel = CancelToken::default();
                *stage = Stage::Returning(cancel.clone(), session.clone());
                self.changed.notify_all();
                Some(cancel)
            }
            _ => None,
        }
    }

    /// The participant is about to be a member again. False if it is closed meanwhile: then the
    /// caller has to leave the group, and call [`end_closing`](Self::end_closing).
    pub(super) fn end_returning(&self, session: &Arc<Session>) -> bool {
        let mut stage = self.stage();
        let is_wanted = matches!(*stage, Stage::Returning(..));
        if is_wanted {
            *stage = Stage::Enabled(session.clone());
            self.changed.notify_all();
        }
        is_wanted
    }

    /// The participant is dropped: it does not come back.
    pub(super) fn cancel_return(&self) {
        if let Stage::Returning(cancel, _) = &*self.stage() {
            cancel.cancel();
        }
    }

    /// The participant has left its group.
    pub(super) fn end_closing(&self) {
        *self.stage() = Stage::Closed;
        self.changed.notify_all();
    }

    /// Whether the participant has left its group.
    pub(super) fn is_closed(&self) -> bool {
        matches!(*self.stage(), Stage::Closed)
    }

    /// Blocks until the participant has left its group.
    pub(super) fn wait_closed(&self) {
        let stage = self.stage();
        let open = |stage: &mut Stage| !matches!(stage, Stage::Closed);
        let closed = self.changed.wait_while(stage, open);
        drop(closed.unwrap_or_else(PoisonError::into_inner));
    }
}

fn was_deleted() -> Error {
    Error::AlreadyDeleted("the participant was deleted".to_owned())
}
