//! My pushes to one peer: what waits for it, and whoever posts it.
//!
//! Two locks, neither held while anybody waits. The queue's is held to put and to take;
//! the poster's to post. Those who push only try that one: who finds it taken leaves what
//! it has put, and the holder looks at the queue again after it has let go.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::counters::Counters;
use super::poster::{Poster, Waits};
use crate::fabric::WakeReason;
use crate::queue::{Full, Own, Push, Pushes};

/// How many records may wait for one peer before it has failed.
const WAITING_MAX: usize = 1 << 16;

/// Bytes that wait for the end of the batch, at most: more are sent at once.
const BATCH_LEN: usize = 1 << 16;

/// One in so many times that somebody looks whether something is to be sent, it is
/// looked whether something has failed.
const UPKEEP_EVERY: u64 = 256;

#[derive(Debug)]
pub(super) struct Outgoing {
    /// `None` once nothing is sent any more.
    queue: Mutex<Option<Pushes>>,
    poster: Mutex<Option<Poster>>,
    /// Something waits since the last batch ended.
    held_back: AtomicBool,
    /// Something waited for slots or for the peer when it was last posted.
    waits: AtomicBool,
    /// My sleep word that the peer does not know yet, or 0.
    tell: AtomicU64,
    upkeeps: AtomicU64,
    pub(super) counters: Counters,
}

impl Outgoing {
    pub(super) fn new(poster: Poster) -> Self {
        Self {
            queue: Mutex::new(Some(Pushes::new(WAITING_MAX))),
            poster: Mutex::new(Some(poster)),
            held_back: AtomicBool::new(false),
            waits: AtomicBool::new(false),
            tell: AtomicU64::new(0),
            upkeeps: AtomicU64::new(0),
            counters: Counters::default(),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Option<Pushes>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For what is not on the path of a message.
    pub(super) fn poster(&self) -> MutexGuard<'_, Option<Poster>> {
        self.poster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A segment whose pushes come from here on, until [`shut`](Self::shut).
    pub(super) fn open(&self, own: &Arc<Own>) -> Result<(), Full> {
        match &mut *self.queue() {
            Some(queue) => queue.open(own).map(drop),
            None => Ok(()),
        }
    }

    /// Appends a push. Whether so much waits that it had better be sent now.
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
    pub(super) fn put_wake(&self, ring: WakeReason) -> Result<(), Full> {
        self.put(Push::Wake(ring)).map(drop)
    }

    /// The last of a segment.
    pub(super) fn shut(&self, slot: u16) -> Result<(), Full> {
        match &mut *self.queue() {
            Some(queue) => queue.shut(slot)?,
            None => return Ok(()),
        }
        self.held_back.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// My sleep word: goes out with what is sent next.
    pub(super) fn tell(&self, word: u64) {
        self.tell.store(word, Ordering::Release);
    }

    /// Posts what was held back. Never blocks. An error is the end of the queue pair.
    pub(super) fn end_batch(&self, attentive: bool) -> Result<(), String> {
        match self.held_back.swap(false, Ordering::Relaxed) {
            true => self.send(attentive),
            false => Ok(()),
        }
    }

    /// Posts what waits, or leaves it to whoever is at it. Never blocks.
    pub(super) fn send(&self, attentive: bool) -> Result<(), String> {
        loop {
            let poster = match self.poster.try_lock() {
                Ok(poster) => poster,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return Ok(()),
            };
            let waits = self.post(poster, attentive)?;
            // Somebody may have found the lock taken after all was posted.
            let untold = self.tell.load(Ordering::Acquire) != 0;
            let more = match waits {
                Waits::Slots => false,
                Waits::Peer => untold,
                Waits::No => untold || self.queue().as_ref().is_some_and(|it| !it.is_empty()),
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
    ) -> Result<Waits, String> {
        let Some(poster) = &mut *poster else {
            self.tell.store(0, Ordering::Relaxed);
            return Ok(Waits::No);
        };
        let mut queue = self.queue();
        let Some(queue) = &mut *queue else {
            self.tell.store(0, Ordering::Relaxed);
            return Ok(Waits::No);
        };
        // Acquire: pairs with `tell`.
        let word = self.tell.swap(0, Ordering::Acquire);
        if let Some(word) = poster.post(queue, word, attentive, &self.counters)? {
            // It found no slot. If there is a newer one by now, that one is told.
            let _ = self
                .tell
                .compare_exchange(0, word, Ordering::Release, Ordering::Relaxed);
        }
        let waits = poster.waits();
        self.waits.store(waits != Waits::No, Ordering::Relaxed);
        Ok(waits)
    }

    /// Goes on with what waited; now and then looks whether something has failed.
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

    /// By the thread: something is complete.
    pub(super) fn go_on(&self, attentive: bool) -> Result<(), String> {
        if let Some(poster) = &mut *self.poster() {
            poster.heard();
            poster.reap(&self.counters)?;
        }
        self.send(attentive)
    }

    /// Drops what waits and what comes. Nothing is posted any more.
    pub(super) fn close(&self) -> Option<Poster> {
        *self.queue() = None;
        self.poster().take()
    }

    /// Whether nothing waits, and all that was posted is complete.
    pub(super) fn is_still(&self) -> Result<bool, String> {
        let mut poster = self.poster();
        let Some(poster) = &mut *poster else {
            return Ok(true);
        };
        let queue = self.queue();
        let empty = queue.as_ref().is_none_or(Pushes::is_empty) && poster.express.is_empty();
        drop(queue);
        Ok(poster.is_still(&self.counters)? && empty)
    }
}
