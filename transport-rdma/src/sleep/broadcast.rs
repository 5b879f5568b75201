//! Waking several sleepers by one system call: the part that needs a proof, beside
//! [`sleep`](super).
//!
//! A process has a doorbell for each of its peers, and one *broadcast doorbell* on which any
//! number of them may sleep as well. Those that one call wakes, it wakes in two steps:
//!
//! ```text
//!   sleeper                                  waker
//!   -------                                  -----
//!   note the counts of both doorbells        word := value
//!   announce its epoch, fence                fence
//!   look: is value there?                    promise: read the epochs, mark them as woken
//!     no: sleep while both counts            two or more, and no other process sleeps on
//!         are as noted                       the broadcast doorbell?
//!                                              yes: count that up, wake all that sleep on it
//!                                              no:  the same with the doorbell of each
//! ```
//!
//! **No wake-up is lost.** If the sleeper's look does not see the value, the waker reads the
//! epoch (the fences of [`sleep`](super)). It counts up after that. The count that the
//! sleeper noted is an older one: had it noted the new one, then by its acquire load and the
//! release of [`Doorbell::count_up`] its announcement would come after the waker's read of
//! that announcement. The kernel compares the count with the noted one, and queues the
//! sleeper, under the lock under which it wakes. A sleeper that is queued before the wake-up
//! is woken; one that comes later finds that the count has changed, and does not sleep.
//! That is why the count comes first: between a wake-up and a count that follows it, a
//! sleeper would fall asleep for good. It does not matter which of the two doorbells the
//! waker takes, nor which other sleepers it wakes.
//!
//! **A promise is kept.** Other threads of the process do not wake a sleeper that has been
//! promised its wake-up ([`promise`]) in the same epoch; so the thread that has promised it
//! wakes it before it does anything else.
//!
//! **No process is woken for nothing**, as far as the waker can know: it uses the broadcast
//! doorbell only if all that sleep on it have been promised a wake-up. A process that goes to
//! sleep between that check and the count, and is not concerned, is woken all the same: it
//! looks, and sleeps again.
//!
//! (`tests/loom_sleep.rs` runs this code under loom. A mutant that wakes before it counts up
//! makes it deadlock.)

use super::Word;
use crate::fabric::peers::{PeerSet, Rank};

/// A count, and the threads that the kernel has queued to sleep while it is unchanged.
pub trait Doorbell {
    /// Changes the count, with release ordering.
    fn count_up(&self);

    /// Wakes all threads in the queue.
    fn wake_queued(&self);
}

/// Wakes the threads that sleep on a doorbell, and keeps from sleeping those that have noted
/// its count.
pub fn signal(doorbell: &impl Doorbell) {
    doorbell.count_up();
    doorbell.wake_queued();
}

/// Promises a wake-up to the sleeper that has announced this sleep word; false if it has been
/// promised in this epoch. `woken_at` is what this process has noted of the sleeper.
///
/// Once an epoch is enough: the woken thread's next look, or the one after its next
/// announcement, sees all that the caller has stored until now.
pub fn promise(sleep_word: u64, woken_at: &impl Word) -> bool {
    woken_at.swap_relaxed(sleep_word) != sleep_word
}

/// Wakes sleepers that sleep on the broadcast doorbell, and on one of their own each, as has
/// been promised to them: by the former if they are several, and `all_promised` finds that no
/// other process sleeps on it; else by the latter. Returns how many doorbells it has signalled.
pub fn wake_promised(
    sleepers: &PeerSet,
    broadcast: &impl Doorbell,
    all_promised: impl FnOnce() -> bool,
    mut wake_one: impl FnMut(Rank),
) -> u64 {
    let count = sleepers.len() as u64;
    if count > 1 && all_promised() {
        signal(broadcast);
        return 1;
    }
    sleepers.iter().for_each(&mut wake_one);
    count
}
