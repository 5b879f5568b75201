//! The receiving side of a ring: which messages are still held here, and how
//! far its sender may reuse it.
//!
//! The engine hands messages over in order and counts them as *passed*; the
//! layer above may hold some (a loan, a sample it cannot take yet). `released`
//! is the index of the oldest message that is not passed or still held. Any
//! thread may let go of a message; who lets go first does the accounting for
//! all who let go meanwhile, so nobody waits and nothing is forgotten.

use crate::layout::RingColumns;
use crate::limits::GRANULE;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Accounting of one ring of one sender at one receiver.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// By header slot: holders of that message.
    holds: Box<[AtomicU32]>,
    /// By header slot: its message index, valid from passing to release.
    indexes: Box<[AtomicU64]>,
    /// By header slot: first byte of its payload | byte after it << 32, in granules.
    places: Box<[AtomicU64]>,
    /// Real messages passed.
    passed_real: AtomicU64,
    /// All messages passed, nulls included.
    passed: AtomicU64,
    /// Real messages released. Whoever accounts.
    released_real: AtomicU64,
    /// The column's value.
    released: AtomicU64,
    /// Requests to account; whoever raises it from 0 accounts until it is 0 again.
    requests: AtomicU32,
}

impl Inbox {
    pub(crate) fn new(messages: u32) -> Self {
        Self {
            holds: (0..messages).map(|_| AtomicU32::new(0)).collect(),
            indexes: (0..messages).map(|_| AtomicU64::new(0)).collect(),
            places: (0..messages).map(|_| AtomicU64::new(0)).collect(),
            passed_real: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            released_real: AtomicU64::new(0),
            released: AtomicU64::new(0),
            requests: AtomicU32::new(0),
        }
    }

    fn slot(&self, real: u64) -> usize {
        (real & (self.holds.len() as u64 - 1)) as usize
    }

    /// Adds a holder of a message: by the engine before it passes it, or by
    /// somebody who holds it already.
    pub(crate) fn hold(&self, real: u64) {
        self.holds[self.slot(real)].fetch_add(1, Ordering::Relaxed);
    }

    /// Takes a holder away. Returns whether it was the last: then account.
    pub(crate) fn let_go(&self, real: u64) -> bool {
        // Release: the holder's reads come before; pairs with the acquire in `release`.
        self.holds[self.slot(real)].fetch_sub(1, Ordering::Release) == 1
    }

    /// The engine has handed over the real message number `real`, which is
    /// message `index` of its sender and has `len` bytes at `offset`.
    pub(crate) fn pass_real(&self, real: u64, index: u64, offset: u64, len: u32) {
        let slot = self.slot(real);
        let begin = offset / GRANULE as u64;
        let end = (offset + u64::from(len)).div_ceil(GRANULE as u64);
        self.indexes[slot].store(index, Ordering::Relaxed);
        self.places[slot].store(begin | end << 32, Ordering::Relaxed);
        // Release: pairs with the acquire of `passed_real` in `release`.
        self.passed_real.store(real + 1, Ordering::Release);
    }

    /// Everything below message `index` is handed over. After the `pass_real`s.
    pub(crate) fn pass(&self, index: u64) {
        // Release: pairs with the acquire of `passed` in `release`.
        self.passed.store(index, Ordering::Release);
    }

    /// Whether a message that was passed is still held, as of the last release.
    pub(crate) fn is_held(&self) -> bool {
        self.passed_real.load(Ordering::Acquire) != self.released_real.load(Ordering::Acquire)
    }

    /// Real messages released so far.
    pub(crate) fn released_real(&self) -> u64 {
        self.released_real.load(Ordering::Acquire)
    }

    /// The value of the `released` column.
    pub(crate) fn released(&self) -> u64 {
        self.released.load(Ordering::Acquire)
    }

    /// Parts of 256 of the ring, by messages or by bytes, that lie between the
    /// oldest held message and the newest passed one.
    pub(crate) fn held_parts(&self, columns: &RingColumns) -> u32 {
        let passed = self.passed_real.load(Ordering::Acquire);
        let oldest = self.released_real.load(Ordering::Acquire);
        let messages = passed
            .saturating_sub(oldest)
            .min(columns.spec.messages.into());
        if messages == 0 {
            return 0;
        }
        let begin = self.places[self.slot(oldest)].load(Ordering::Relaxed) & 0xffff_ffff;
        let newest = self.places[self.slot(passed - 1)].load(Ordering::Relaxed);
        let end = newest >> 32;
        let granules = columns.spec.bytes / GRANULE as u64;
        let held = match end.wrapping_sub(begin) & (granules - 1) {
            // All of the ring looks like nothing of it.
            0 if newest & 0xffff_ffff != end => granules,
            held => held,
        };
        let by_messages = messages * 256 / u64::from(columns.spec.messages);
        by_messages.max(held * 256 / granules) as u32
    }

    /// Recomputes `released`; calls `store` with each new value, in order and
    /// from one thread at a time. Returns whether this thread accounted and
    /// the value rose.
    pub(crate) fn release(&self, mut store: impl FnMut(u64)) -> bool {
        // AcqRel: what the accountant before us did is visible to us.
        if self.requests.fetch_add(1, Ordering::AcqRel) != 0 {
            return false;
        }
        let mut rose = false;
        let mut seen = 1;
        loop {
            let value = self.oldest();
            if value > self.released.load(Ordering::Relaxed) {
                // The column first: who reads `released` may push the column.
                store(value);
                self.released.store(value, Ordering::Release);
                rose = true;
            }
            match self
                .requests
                .compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return rose,
                Err(more) => seen = more,
            }
        }
    }

    fn oldest(&self) -> u64 {
        // Before `passed_real`: an older bound with a newer count is safe, the
        // other way round would release what is still held.
        let passed = self.passed.load(Ordering::Acquire);
        let passed_real = self.passed_real.load(Ordering::Acquire);
        let mut real = self.released_real.load(Ordering::Relaxed);
        let oldest = loop {
            if real == passed_real {
                break passed;
            }
            let slot = self.slot(real);
            // Acquire: pairs with the release in `let_go`.
            if self.holds[slot].load(Ordering::Acquire) != 0 {
                break self.indexes[slot].load(Ordering::Relaxed);
            }
            real += 1;
        };
        self.released_real.store(real, Ordering::Release);
        oldest
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::spec::RingSpec;

    #[test]
    fn a_full_ring_is_not_taken_for_an_empty_one() {
        let spec = RingSpec {
            messages: 4,
            bytes: 256,
        };
        let columns = RingColumns {
            guard: 0,
            headers: 0,
            payload: 0,
            spec,
        };
        let inbox = Inbox::new(4);
        let check = |expected: u32| assert_eq!(inbox.held_parts(&columns), expected);
        check(0);
        inbox.hold(0);
        inbox.pass_real(0, 0, 128, 128);
        check(128);
        inbox.pass_real(1, 1, 0, 128);
        check(256);
        inbox.pass(2);
        inbox.let_go(0);
        inbox.release(|_| {});
        check(0);
        assert!(!inbox.is_held());
        inbox.pass_real(2, 2, 128, 0);
        check(64);
    }

    #[test]
    fn the_oldest_held_message_bounds_what_is_released() {
        let inbox = Inbox::new(4);
        let mut column = Vec::new();
        // Messages 0 (real), 1 and 2 (nulls), 3 and 4 (real).
        for (real, index) in [(0, 0), (1, 3), (2, 4)] {
            inbox.hold(real);
            inbox.pass_real(real, index, 0, 0);
        }
        inbox.pass(5);
        inbox.release(|value| column.push(value));
        assert_eq!(column, [] as [u64; 0]);
        assert!(inbox.let_go(1));
        inbox.release(|value| column.push(value));
        assert_eq!(column, [], "the oldest is held");
        inbox.hold(0);
        assert!(!inbox.let_go(0));
        assert!(inbox.let_go(0));
        inbox.release(|value| column.push(value));
        assert_eq!(column, [4]);
        inbox.pass(9);
        inbox.let_go(2);
        inbox.release(|value| column.push(value));
        assert_eq!(column, [4, 9]);
        assert_eq!((inbox.released(), inbox.released_real()), (9, 3));
    }
}
