//! Sleep and wake without a lost wake-up: the part that needs a proof.
//!
//! Nobody writes into another's row, so the two sides meet over two words that
//! each side stores itself, as in Dekker's algorithm:
//!
//! ```text
//!   sleeper                             pusher
//!   -------                             ------
//!   epoch := odd          (announce)    word := value
//!   fence(SeqCst)         (announce)    fence(SeqCst)      (fence_before_wake)
//!   look: value there?                  epoch odd?         (Fenced::epoch)
//!     yes: do not sleep                   yes: ring
//!     no:  sleep until rung               no:  nothing
//! ```
//!
//! Sequentially consistent fences have one total order. If the sleeper's comes
//! first, the pusher's load after its own fence sees the odd epoch and rings;
//! if the pusher's comes first, the sleeper's look after its own fence sees
//! the value. Without either fence both may read the old words, and the sleeper
//! sleeps for ever. (`tests/loom_sleep.rs` runs this very code under loom, with
//! and without the fence.)
//!
//! A lock may take the fences' place: who leaves work under one that the sleeper has for its
//! look, after it has announced, and looks at the epoch before it gives the lock back, needs
//! none ([`epoch_under_lock`]). If the sleeper had the lock first, its epoch is seen; if it has it
//! later, its look sees the work.
//!
//! The bell itself may be anything that remembers one ring: the sleeper notes
//! the bell's state before it announces, and sleeps only while it is unchanged.

use core::sync::atomic::Ordering;

/// An atomic word of 64 bits; loom has its own.
pub trait Word {
    /// Loads without ordering.
    fn load_relaxed(&self) -> u64;
    /// Stores with release ordering; pairs with the acquire loads of
    /// [`Region::load`](crate::Region::load).
    fn store_release(&self, value: u64);
}

impl Word for core::sync::atomic::AtomicU64 {
    fn load_relaxed(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    fn store_release(&self, value: u64) {
        self.store(value, Ordering::Release);
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
}

fn fence_seq_cst() {
    #[cfg(not(loom))]
    core::sync::atomic::fence(Ordering::SeqCst);
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}

/// The sleeper: publishes its odd epoch. What it looks at afterwards is newer
/// than the push of whoever did not see the epoch.
pub fn announce(epoch_word: &impl Word, odd: u64) {
    epoch_word.store_release(odd);
    fence_seq_cst();
}

/// The pusher, between its last store and its first look at an epoch.
pub fn fence_before_wake() -> Fenced {
    fence_seq_cst();
    Fenced(())
}

/// The pusher's look at an epoch while it has the lock that the sleeper looks under: whoever
/// has had it for its look since it announced, is seen.
pub fn epoch_under_lock(epoch_word: &impl Word) -> u64 {
    epoch_word.load_relaxed()
}

/// Proof that a fence stands between what was stored and the epochs read now.
#[derive(Debug)]
pub struct Fenced(());

impl Fenced {
    /// A sleeper's epoch.
    pub fn epoch(&self, epoch_word: &impl Word) -> u64 {
        epoch_word.load_relaxed()
    }
}
