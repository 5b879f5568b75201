//! The queue of a reader epoch: bounded, and no larger than what has waited in it calls for.
//!
//! ```text
//!   parts    | 16 |   32   |       64       |  not made yet
//!               ^ drained     ^ filled           each twice as long as the one before
//! ```
//!
//! A part is made when the one before it is full; then nothing more is pushed to that one. So most
//! queues have no part, and one whose reader is late now and then has a few. The last part has
//! room for all that can wait.
//!
//! Invariants: one thread pushes at a time, and one pops; `drained <= filled`; what a part has was
//! pushed before anything of the next part.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_queue::ArrayQueue;

/// Room of the first part.
const FIRST_LEN: usize = 16;

pub(crate) struct ArrivalQueue<T> {
    parts: Box<[OnceLock<Box<ArrayQueue<T>>>]>,
    /// Index of the part that is pushed to, and 1 more than that once anything was pushed: 0 is a
    /// queue that was never used. Written by the thread that pushes.
    used: AtomicUsize,
    /// Index of the part that is popped from. Written by the thread that pops.
    drained: AtomicUsize,
}

impl<T> ArrivalQueue<T> {
    /// With room for so many.
    pub(crate) fn new(len_max: usize) -> Self {
        let mut parts = 1;
        while part_len(parts - 1) < len_max {
            parts += 1;
        }
        Self {
            parts: (0..parts).map(|_| OnceLock::new()).collect(),
            used: AtomicUsize::new(0),
            drained: AtomicUsize::new(0),
        }
    }

    /// Bytes of the parts that are made. Any thread.
    pub(crate) fn bytes(&self) -> usize {
        let made = self.parts.iter().filter_map(OnceLock::get);
        let places = made.map(|part| part.capacity()).sum::<usize>();
        // Beside an item, each place has a number.
        places * (size_of::<T>() + size_of::<usize>())
    }

    /// Whether nothing waits, as far as this thread knows. May be false when the last part that had
    /// anything is empty.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Acquire: pairs with the release in `push`.
        match self.used.load(Ordering::Acquire) {
            0 => true,
            used => self.is_drained(used - 1),
        }
    }

    fn is_drained(&self, filled: usize) -> bool {
        let is_last = self.drained.load(Ordering::Relaxed) == filled;
        let part = self.parts.get(filled).and_then(OnceLock::get);
        is_last && part.is_none_or(|part| part.is_empty())
    }

    /// Gives the item back if there is no room. Allocates if more waits than ever before.
    pub(crate) fn push(&self, mut item: T) -> Result<(), T> {
        let mut filled = self.used.load(Ordering::Relaxed).saturating_sub(1);
        while let Some(part) = self.parts.get(filled) {
            let part = part.get_or_init(|| Box::new(ArrayQueue::new(part_len(filled))));
            let pushed = part.push(item);
            if pushed.is_ok() {
                // Release: pairs with the acquires in `is_empty` and `pop`: what was pushed to the
                // parts before is seen.
                self.used.store(filled + 1, Ordering::Release);
            }
            match pushed {
                Ok(()) => return Ok(()),
                Err(back) => item = back,
            }
            filled += 1;
        }
        Err(item)
    }

    pub(crate) fn pop(&self) -> Option<T> {
        loop {
            // Read before the part: once it is beyond, nothing more is pushed there.
            // Acquire: pairs with the release in `push`.
            let filled = self.used.load(Ordering::Acquire).checked_sub(1)?;
            let drained = self.drained.load(Ordering::Relaxed);
            let part = self.parts.get(drained).and_then(OnceLock::get);
            if let Some(item) = part.and_then(|part| part.pop()) {
                return Some(item);
            }
            if drained >= filled {
                return None;
            }
            // Relaxed: the next thread that pops has the lock that this one has now.
            self.drained.store(drained + 1, Ordering::Relaxed);
        }
    }
}

fn part_len(part: usize) -> usize {
    let shift = u32::try_from(part).unwrap_or(u32::MAX);
    let times = 1_usize.checked_shl(shift);
    times.map_or(usize::MAX, |times| FIRST_LEN.saturating_mul(times))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    fn parts(queue: &ArrivalQueue<u64>) -> usize {
        queue.parts.iter().filter(|it| it.get().is_some()).count()
    }

    #[test]
    fn a_queue_grows_with_what_waits_in_it_and_keeps_the_order() {
        let queue = ArrivalQueue::new(100);
        assert!(queue.is_empty() && queue.pop().is_none());
        assert_eq!((queue.parts.len(), parts(&queue)), (4, 0));
        let (mut pushed, mut popped) = (0, 0);
        // So many come and go, and so many parts have been needed by then.
        for (come, go, used) in [
            (1, 1, 1),
            (16, 3, 1),
            (3, 16, 1),
            (17, 0, 2),
            (20, 37, 2),
            (32, 32, 2),
            (90, 10, 3),
            (40, 120, 4),
            (128, 128, 4),
        ] {
            for _ in 0..come {
                assert_eq!(queue.push(pushed), Ok(()));
                pushed += 1;
            }
            for _ in 0..go {
                assert!(!queue.is_empty());
                assert_eq!(queue.pop(), Some(popped));
                popped += 1;
            }
            assert_eq!(parts(&queue), used, "{come} {go}");
            assert_eq!(queue.bytes(), FIRST_LEN * ((1 << used) - 1) * 16);
            assert_eq!(queue.is_empty(), pushed == popped);
        }
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn it_has_room_for_what_it_was_made_for() {
        for len_max in [0, 1, 16, 17, 1000] {
            let queue = ArrivalQueue::new(len_max);
            let all = (0..).map(|it| queue.push(it));
            let room = all.take_while(Result::is_ok).count();
            assert!(
                room >= len_max && room < 4 * len_max.max(FIRST_LEN),
                "{room}"
            );
            let popped: Vec<u64> = std::iter::from_fn(|| queue.pop()).collect();
            assert_eq!(popped, Vec::from_iter(0..room as u64));
        }
    }

    #[test]
    fn items_pass_from_thread_to_thread_in_order() {
        const ITEMS: u64 = 20_000;
        let queue = Arc::new(ArrivalQueue::new(ITEMS as usize));
        let pusher = thread::spawn({
            let queue = Arc::clone(&queue);
            move || (0..ITEMS).for_each(|it| assert_eq!(queue.push(it), Ok(())))
        });
        let mut next = 0;
        while next < ITEMS {
            match queue.pop() {
                Some(item) => {
                    assert_eq!(item, next);
                    next += 1;
                }
                None => thread::yield_now(),
            }
        }
        pusher.join().expect("it pushes all");
        assert!(queue.is_empty());
    }
}
