//! Enabling and closing a participant, as futures.
//!
//! Both take a while, and may block: files, sockets, the other members. So the participant's waking thread
//! does it:
//!
//! ```text
//!   enable   the first poll starts the four threads of the participant, and waits for nothing; the
//!            waking thread joins the group, and then begins with its work
//!   close    the waking thread deletes the entities and leaves the group; its work ends with that
//! ```
//!
//! A participant that is disabled has no such thread, and no group to leave: it is closed by the poll
//! itself.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use super::{DomainParticipant, ParticipantCore};
use crate::driver::{CancelToken, Threads, WaitingFuture};
use crate::error::Result;

/// What another thread has come to.
#[derive(Debug, Clone, Default)]
struct Outcome(Arc<Mutex<Option<Result<()>>>>);

impl Outcome {
    fn set(&self, outcome: Result<()>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }

    fn get(&self) -> Option<Result<()>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The waking thread enables the participant. Dropped before it has, this calls the join off.
struct Enabling {
    outcome: Outcome,
    cancel: CancelToken,
}

impl Drop for Enabling {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl Enabling {
    fn begin(participant: &Arc<ParticipantCore>, cancel: CancelToken) -> Self {
        let outcome = Outcome::default();
        let this = Self {
            outcome: outcome.clone(),
            cancel: cancel.clone(),
        };
        match Threads::spawn(&participant.config.threads) {
            Ok(threads) => {
                let participant = participant.clone();
                threads.run_first(move |threads| {
                    outcome.set(participant.join(Ok(threads), &cancel));
                    participant.lifecycle_changed();
                });
            }
            error => outcome.set(participant.join(error, &cancel)),
        }
        this
    }
}

impl ParticipantCore {
    async fn enable_async(self: &Arc<Self>) -> Result<()> {
        self.base.not_inherited()?;
        let waits = WaitingFuture::new(self.notifier(), None);
        let mut enabling = None::<Enabling>;
        poll_fn(|context| {
            waits.set_waker(context.waker());
            let enabling = match &mut enabling {
                Some(enabling) => enabling,
                None => match self.lifecycle().begin_enabling_alone() {
                    // What comes of that, the next look shows.
                    None => return Poll::Pending,
                    Some(Ok(Some(cancel))) => enabling.insert(Enabling::begin(self, cancel)),
                    Some(Ok(None)) => return Poll::Ready(Ok(())),
                    Some(Err(error)) => return Poll::Ready(Err(error)),
                },
            };
            enabling.outcome.get().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    async fn close_async(self: &Arc<Self>) -> Result<()> {
        self.base.not_inherited()?;
        let waits = WaitingFuture::new(self.notifier(), None);
        let session = self.lifecycle().begin_closing()?;
        let outcome = Outcome::default();
        let (participant, left) = (self.clone(), outcome.clone());
        self.notifier().let_waking_thread_run(move || {
            left.set(participant.leave(session));
            participant.lifecycle_changed();
        });
        poll_fn(|context| {
            waits.set_waker(context.waker());
            let left = outcome.get().filter(|_| self.lifecycle().is_closed());
            left.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

impl DomainParticipant {
    /// As [`enable`](Self::enable), as a future. The first poll starts the threads of the participant;
    /// one of them does the rest. If another thread or future is enabling the participant, this one
    /// waits for that, and tries itself if that has failed.
    ///
    /// If it is dropped before it is ready, the join is called off, and the participant is disabled as
    /// before, unless it is a member already.
    ///
    /// # Errors
    /// As for [`enable`](Self::enable).
    pub async fn enable_async(&self) -> Result<()> {
        self.core.enable_async().await
    }

    /// As [`close`](Self::close), as a future. Nothing is done before it is polled; then the participant
    /// is closed, even if the future is dropped.
    ///
    /// # Errors
    /// As for [`close`](Self::close).
    pub async fn close_async(&self) -> Result<()> {
        self.core.close_async().await
    }
}
