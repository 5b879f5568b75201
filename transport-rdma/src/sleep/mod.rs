//! Sleeping and waking without a lost wake-up: the part that needs a proof.
//!
//! A member writes only its own row, so the two sides meet over two words that each side
//! stores itself, as in Dekker's algorithm:
//!
//! ```text
//!   sleeper                                pusher
//!   -------                                ------
//!   epoch := odd           (announce)      word := value
//!   fence(SeqCst)          (announce)      fence(SeqCst)   (fence_before_wake)
//!   look: is value there?                  epoch odd?      (Fenced::epoch)
//!     yes: do not sleep                      yes: wake the sleeper
//!     no:  sleep until woken                 no:  nothing
//! ```
//!
//! Sequentially consistent fences have one total order. If the sleeper's fence comes first,
//! the pusher's load after its own fence sees the odd epoch, and the pusher wakes it. If
//! the pusher's comes first, the sleeper's look after its own fence sees the value. Without
//! either fence both may read the old words, and the sleeper sleeps for ever.
//! (`tests/loom_sleep.rs` runs this code under loom, with and without the fence.)
//!
//! A lock may replace the pusher's fence: a thread that leaves work under the lock under
//! which the sleeper looks, and reads the epoch before it releases that lock, needs none
//! ([`epoch_under_lock`]). If the sleeper held the lock before, after it had announced, its
//! epoch is visible; if it gets the lock later, its look sees the work.
//!
//! The doorbell may be anything that remembers one signal: the sleeper notes the doorbell's
//! state before it announces, and blocks only while that is unchanged. Several sleepers may
//! share one: see [`broadcast`].

pub mod broadcast;
pub(crate) mod eventfd;
pub mod news;
pub mod poller_role;

use core::sync::atomic::Ordering;

/// An atomic word of 64 bits; loom has its own type.
pub trait Word {
    /// Loads without ordering.
    fn load_relaxed(&self) -> u64;
    /// Stores with release ordering; pairs with the acquire loads of
    /// [`Region::load`](crate::Region::load).
    fn store_release(&self, value: u64);
    /// Stores, and returns the value before, without ordering.
    fn swap_relaxed(&self, value: u64) -> u64;
}

impl Word for core::sync::atomic::AtomicU64 {
    fn load_relaxed(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    fn store_release(&self, value: u64) {
        self.store(value, Ordering::Release);
    }

    fn swap_relaxed(&self, value: u64) -> u64 {
        self.swap(value, Ordering::Relaxed)
    }
}

#[cfg(loom)]
impl Word for loom::sync::atomic::AtomicU64 {
    fn load_relaxed(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    fn store_release(&self, value: u64) {
        self.store(value, Ordering::Release);
    }

    fn swap_relaxed(&self, value: u64) -> u64 {
        self.swap(value, Ordering::Relaxed)
    }
}

fn fence_seq_cst() {
    #[cfg(not(loom))]
    core::sync::atomic::fence(Ordering::SeqCst);
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}

/// The sleeper publishes its odd epoch. Its next look sees all that was stored by a pusher
/// that did not see the epoch.
pub fn announce(epoch_word: &impl Word, odd: u64) {
    epoch_word.store_release(odd);
    fence_seq_cst();
}

/// The pusher's fence, between its last store and its first load of an epoch.
pub fn fence_before_wake() -> Fenced {
    fence_seq_cst();
    Fenced(())
}

/// A sleeper's epoch, for a caller that holds the lock under which the sleeper looks: the
/// epoch is visible if the sleeper has held the lock since it announced.
pub fn epoch_under_lock(epoch_word: &impl Word) -> u64 {
    epoch_word.load_relaxed()
}

/// Proof that a fence stands between the stores before it and the epochs read through it.
#[derive(Debug)]
pub struct Fenced(());

impl Fenced {
    /// A sleeper's epoch.
    pub fn epoch(&self, epoch_word: &impl Word) -> u64 {
        epoch_word.load_relaxed()
    }
}
