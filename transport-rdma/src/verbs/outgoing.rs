//! My pushes to one peer: the queue of what waits, and its poster.
//!
//! There are two locks, and no thread blocks while it holds one. The queue's lock is held to
//! append and to take, the poster's to post. A pushing thread only tries the poster's lock:
//! if it is taken, the thread leaves its records in the queue, and the holder looks at the
//! queue again after it has released the lock.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::link_counters::LinkCounters;
use super::poster::{PostState, Poster};
use crate::fabric::WakeReason;
use crate::push_queue::{Full, OwnSegment, Push, PushQueue};

/// How many records may wait for one peer before it has failed.
const WAITING_MAX: usize = 1 << 16;

/// Bytes that wait for the end of a batch, at most; beyond that they are sent at once.
const BATCH_LEN: usize = 1 << 16;

/// One in this many upkeeps also looks for failed work requests.
const UPKEEP_EVERY: u64 = 256;

#[derive(Debug)]
pub(super) struct Outgoing {
    /// `None` once the link is closed.
    queue: Mutex<Option<PushQueue>>,
    poster: Mutex<Option<Poster>>,
    /// Records were appended since the last batch ended.
    held_back: AtomicBool,
    /// Something waited for slots or for the peer when it was last posted.
    waits: AtomicBool,
    /// My sleep word that is still to be sent to the peer, or 0.
    tell: AtomicU64,
    upkeeps: AtomicU64,
    pub(super) counters: LinkCounters,
}

impl Outgoing {
    pub(super) fn new(poster: Poster) -> Self {
        Self {
            queue: Mutex::new(Some(PushQueue::new(WAITING_MAX))),
            poster: Mutex::new(Some(poster)),
            held_back: AtomicBool::new(false),
            waits: AtomicBool::new(false),
            tell: AtomicU64::new(0),
            upkeeps: AtomicU64::new(0),
            counters: LinkCounters::default(),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Option<PushQueue>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks for the poster's lock; not for the path of a message.
    pub(super) fn poster(&self) -> MutexGuard<'_, Option<Poster>> {
        self.poster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the slot of a segment, until [`shut`](Self::shut).
    pub(super) fn open(&self, own: &Arc<OwnSegment>) -> Result<(), Full> {
        match &mut *self.queue() {
            Some(queue) => queue.open(own).map(drop),
            None => Ok(()),
        }
    }

    /// Appends a push. True if so much waits that it should be sent now.
    pub(super) fn put(&self, push: Push) -> Result<bool, Full> {
        let mut queue = self.queue();
        let Some(queue) = &mut *queue else {
            return Ok(false);
        };
        if !self.held_back.swap(true, Ordering::Relaxed) {
            queue.begin_batch();
        }
        queue.put(push)?;
        Ok(queue.bytes() >= BATCH_LEN)
    }

    /// Appends a doorbell.
    pub(super) fn put_wake(&self, reason: WakeReason) -> Result<(), Full> {
        self.put(Push::Wake(reason)).map(drop)
    }

    /// Appends the end of a segment.
    pub(super) fn shut(&self, slot: u16) -> Result<(), Full> {
        match &mut *self.queue() {
            Some(queue) => queue.shut(slot)?,
            None => return Ok(()),
        }
        self.held_back.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Sets my sleep word, which is sent with the next chain.
    pub(super) fn tell(&self, word: u64) {
        self.tell.store(word, Ordering::Release);
    }

    /// Posts what was held back. Never blocks. After an error the queue pair is unusable.
    pub(super) fn end_batch(&self, attentive: bool) -> Result<(), String> {
        match self.held_back.swap(false, Ordering::Relaxed) {
            true => self.send(attentive),
            false => Ok(()),
        }
    }

    /// Posts what waits, or leaves it to the thread that is posting. Never blocks.
    pub(super) fn send(&self, attentive: bool) -> Result<(), String> {
        loop {
            let poster = match self.poster.try_lock() {
                Ok(poster) => poster,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return Ok(()),
            };
            let waits = self.post(poster, attentive)?;
            // A thread may have found the lock taken after all was posted.
            let untold = self.tell.load(Ordering::Acquire) != 0;
            let more = match waits {
                PostState::Slots => false,
                PostState::Peer => untold,
                PostState::No => untold || self.queue().as_ref().is_some_and(|it| !it.is_empty()),
            };
            if !more {
                return Ok(());
            }
        }
    }

    fn post(
        &self,
        mut poster: MutexGuard<'_, Option<Poster>>,
        attentive: bool,
    ) -> Result<PostState, String> {
        let Some(poster) = &mut *poster else {
            self.tell.store(0, Ordering::Relaxed);
            return Ok(PostState::No);
        };
        let mut queue = self.queue();
        let Some(queue) = &mut *queue else {
            self.tell.store(0, Ordering::Relaxed);
            return Ok(PostState::No);
        };
        // Acquire: pairs with the release in `tell`.
        let word = self.tell.swap(0, Ordering::Acquire);
        if let Some(word) = poster.post(queue, word, attentive, &self.counters)? {
            // There was no slot for it. A newer word, if there is one by now, replaces it.
            let _ = self
                .tell
                .compare_exchange(0, word, Ordering::Release, Ordering::Relaxed);
        }
        let waits = poster.waits();
        self.waits.store(waits != PostState::No, Ordering::Relaxed);
        Ok(waits)
    }

    /// Posts what waited; now and then looks for failed work requests.
    pub(super) fn upkeep(&self, attentive: bool) -> Result<(), String> {
        let turn = self.upkeeps.fetch_add(1, Ordering::Relaxed);
        if turn.is_multiple_of(UPKEEP_EVERY)
            && let Ok(mut poster) = self.poster.try_lock()
            && let Some(poster) = &mut *poster
            && poster.awaits()
        {
            poster.reap(&self.counters)?;
        }
        match self.waits.load(Ordering::Relaxed) {
            true => self.send(attentive),
            false => Ok(()),
        }
    }

    /// Called by the completion thread: work requests are complete.
    pub(super) fn go_on(&self, attentive: bool) -> Result<(), String> {
        if let Some(poster) = &mut *self.poster() {
            poster.heard();
            poster.reap(&self.counters)?;
        }
        self.send(attentive)
    }

    /// Discards what waits and what is appended later; nothing is posted any more.
    pub(super) fn close(&self) -> Option<Poster> {
        *self.queue() = None;
        self.poster().take()
    }

    /// Whether nothing waits and all that was posted is complete.
    pub(super) fn is_still(&self) -> Result<bool, String> {
        let mut poster = self.poster();
        let Some(poster) = &mut *poster else {
            return Ok(true);
        };
        let queue = self.queue();
        let empty = queue.as_ref().is_none_or(PushQueue::is_empty) && poster.express.is_empty();
        drop(queue);
        Ok(poster.is_still(&self.counters)? && empty)
    }
}
