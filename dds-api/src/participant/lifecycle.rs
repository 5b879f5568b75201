//! Where a participant is in its life.
//!
//! ```text
//!             enable()             the group is formed
//!   Disabled ----------> Enabling -------------------> Enabled
//!     |  ^                |   |                           |
//!     |  '----------------'   | close(): called off       | close()
//!     |    no group           v                           v
//!     |                    Closing <----------------------'
//!     | close()               | has left, or was never in
//!     '-------> Closed <------'
//! ```
//!
//! One lock guards it. It is not held while the group is formed or left, so
//! that `close` can call a rendezvous off; it is held while an endpoint is added:
//! either the endpoint is announced, or it is refused.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use spindle_dds_transport::shm::Cancel;

use crate::driver::Session;
use crate::error::{Error, Result};
use crate::wire::Wire;

#[derive(Debug)]
enum Stage {
    Disabled,
    /// A thread is at the rendezvous.
    Enabling(Cancel),
    Enabled(Arc<Session<Wire>>),
    Closing,
    Closed,
}

/// The stage of a participant, and who waits for its end.
#[derive(Debug)]
pub(super) struct Lifecycle {
    stage: Mutex<Stage>,
    closed: Condvar,
}

/// As long as this is held, the participant stays disabled.
pub(crate) struct StaysDisabled<'a> {
    _stage: MutexGuard<'a, Stage>,
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

    /// Of an enabled participant.
    pub(super) fn session(&self) -> Option<Arc<Session<Wire>>> {
        match &*self.stage() {
            Stage::Enabled(session) => Some(session.clone()),
            _ => None,
        }
    }

    /// Endpoints are part of what the group is formed of: they are added while
    /// this is held.
    pub(super) fn stays_disabled(&self) -> Result<StaysDisabled<'_>> {
        let stage = self.stage();
        match *stage {
            Stage::Disabled => Ok(StaysDisabled { _stage: stage }),
            Stage::Enabling(_) | Stage::Enabled(_) => Err(Error::PreconditionNotMet(
                "writers and readers are created before their participant is enabled: build it \
                 with disabled(), create them, then call enable()"
                    .to_owned(),
            )),
            Stage::Closing | Stage::Closed => Err(was_deleted()),
        }
    }

    /// The calling thread goes to the rendezvous. `None` when there is no need.
    pub(super) fn begin_enabling(&self) -> Result<Option<Cancel>> {
        let mut stage = self.stage();
        match *stage {
            Stage::Disabled => {
                let cancel = Cancel::new();
                let cancel = cancel.map_err(|error| Error::OutOfResources(error.to_string()))?;
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

    /// The calling thread is back. If nobody has closed the participant meanwhile,
    /// it is enabled now, and `enabled` is called; or disabled as before. Otherwise
    /// it leaves the group if it got into one.
    pub(super) fn end_enabling(
        &self,
        formed: Result<Arc<Session<Wire>>>,
        enabled: impl FnOnce(),
    ) -> Result<()> {
        let mut stage = self.stage();
        if matches!(*stage, Stage::Enabling(_)) {
            return match formed {
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
        let error = match formed {
            Err(error @ Error::AlreadyDeleted(_)) => error,
            Err(_) => was_deleted(),
            Ok(session) => {
                if let Err(error) = session.close() {
                    tracing::warn!(%error, "leaving a group that was formed while it was called off");
                }
                was_deleted()
            }
        };
        self.end_closing();
        Err(error)
    }

    /// The calling thread closes the participant, and calls
    /// [`end_closing`](Self::end_closing) once it has left the session that this
    /// returns. Without one, it may [`wait`](Self::wait_closed) for the end.
    pub(super) fn begin_closing(&self) -> Result<Option<Arc<Session<Wire>>>> {
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

    /// The participant is in no group any more.
    pub(super) fn end_closing(&self) {
        *self.stage() = Stage::Closed;
        self.closed.notify_all();
    }

    /// Blocks until the participant is in no group any more.
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
