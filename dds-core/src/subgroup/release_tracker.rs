//! The receiving side of a ring: which messages are held here, and how far the sender may reuse
//! the ring.
//!
//! ```text
//!   real messages   | released | held or not | passed up to here | received
//!                              ^ oldest held ^ passed
//! ```
//!
//! The engine hands messages over in order and counts them as *passed*. The layer above may hold
//! some (a loan, a sample it cannot take yet). `released` is the index of the oldest message that
//! is not passed or still held.
//!
//! Invariants: `released` only rises, and never above a held message. Any thread may release a
//! message. The first thread to do so recomputes `released` for all threads that release
//! meanwhile, so no thread waits and no release is missed. The arrays begin as zeros, which nothing
//! has to write: no message is held.

use std::io;

use crossbeam_utils::CachePadded;
use spindle_dds_transport::memory::{Arena, ZeroedSlice};

use crate::limits::GRANULE;
use crate::subgroup::header::Header;
use crate::subgroup::layout::RingColumns;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Tracks one ring of one sender at one receiver. Real messages have numbers, of which restarts of
/// the ring leave some out (see `ReceiveCursor`).
#[derive(Debug)]
pub(crate) struct ReleaseTracker {
    /// Number of holders of the message in each header slot. Packed: engine and readers write them,
    /// mostly for many messages in a row.
    holds: ZeroedSlice<AtomicU32>,
    /// By header slot. Written by the engine only.
    slots: ZeroedSlice<Slot>,
    /// The engine writes it for each message, so it shares no cache line with what releasing
    /// threads write.
    passed: CachePadded<Passed>,
    released: CachePadded<Released>,
}

/// A message, from its passing to its release.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// The message index.
    index: AtomicU64,
    /// Word 1 of its header: payload offset in granules | length in bytes << 32.
    place: AtomicU64,
}

/// The slot of one message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReleaseSlot<'a> {
    holds: &'a AtomicU32,
    slot: &'a Slot,
}

impl ReleaseSlot<'_> {
    /// Adds the message's first holder. Called by the engine before it passes the message.
    #[inline]
    pub(crate) fn hold_first(self) {
        // No locked instruction: no other thread knows of the message yet. The holders of the
        // slot's previous message released it before its slot was reused, which the engine saw
        // (acquire in `released_real`) before it received this one.
        self.holds.store(1, Ordering::Relaxed);
    }

    /// Adds a further holder. Called by the engine before it passes the message, or by a thread
    /// that holds it.
    pub(crate) fn hold(self) {
        self.holds.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Passed {
    /// Number of the next real message.
    real: AtomicU64,
    /// Number of the first real message since the last restart of the ring: all before it are
    /// released.
    start: AtomicU64,
    /// Messages, nulls included.
    all: AtomicU64,
}

/// Written by the thread that recomputes it.
#[derive(Debug)]
struct Released {
    /// Number of the oldest held real message.
    real: AtomicU64,
    /// Value of the `released` column.
    all: AtomicU64,
    /// Requests to recompute. The thread that raises it from 0 recomputes until it is 0 again.
    requests: AtomicU32,
}

impl ReleaseTracker {
    pub(crate) fn new(messages: usize, arena: &mut Arena) -> io::Result<Self> {
        Ok(Self {
            holds: arena.slice(messages)?,
            slots: arena.slice(messages)?,
            passed: CachePadded::new(Passed {
                real: AtomicU64::new(0),
                start: AtomicU64::new(0),
                all: AtomicU64::new(0),
            }),
            released: CachePadded::new(Released {
                real: AtomicU64::new(0),
                all: AtomicU64::new(0),
                requests: AtomicU32::new(0),
            }),
        })
    }

    /// Bytes that the tracker of a ring of so many messages takes of an arena.
    pub(crate) const fn bytes_of(messages: usize) -> usize {
        Arena::bytes_of::<AtomicU32>(messages) + Arena::bytes_of::<Slot>(messages)
    }

    #[inline]
    fn slot(&self, real: u64) -> &Slot {
        &self.slots[(real & (self.slots.len() as u64 - 1)) as usize]
    }

    /// The slot of a real message.
    #[inline]
    pub(crate) fn place(&self, real: u64) -> ReleaseSlot<'_> {
        ReleaseSlot {
            holds: self.holds(real),
            slot: self.slot(real),
        }
    }

    /// The slots of consecutive real messages from this one on, up to the end of the ring.
    #[inline]
    pub(crate) fn places(&self, from: u64) -> impl Iterator<Item = ReleaseSlot<'_>> {
        let at = (from & (self.slots.len() as u64 - 1)) as usize;
        let holds = self.holds.get(at..).unwrap_or_default();
        let slots = self.slots.get(at..).unwrap_or_default();
        let places = holds.iter().zip(slots);
        places.map(|(holds, slot)| ReleaseSlot { holds, slot })
    }

    #[inline]
    fn holds(&self, real: u64) -> &AtomicU32 {
        &self.holds[(real & (self.holds.len() as u64 - 1)) as usize]
    }

    /// Removes a holder. Returns whether it was the last: then the caller must recompute
    /// `released`. `passed` is an earlier result of [`passed_real`](Self::passed_real).
    #[inline]
    pub(crate) fn end_hold(&self, real: u64, passed: u64) -> bool {
        let holds = self.holds(real);
        // The only holder of a passed message needs no locked instruction, because no thread adds a
        // holder. Acquire: reads by former holders happen before the store.
        if real < passed && holds.load(Ordering::Acquire) == 1 {
            // Release: the holders' reads happen before; pairs with the acquire in `oldest`.
            holds.store(0, Ordering::Release);
            return true;
        }
        // Release: as above.
        holds.fetch_sub(1, Ordering::Release) == 1
    }

    /// All real messages below this number are passed.
    pub(crate) fn passed_real(&self) -> u64 {
        // Acquire: the engine adds no holder to a message below.
        self.passed.real.load(Ordering::Acquire)
    }

    /// Passes the real message of this number, with this header and slot: the engine has handed it
    /// over.
    #[inline]
    pub(crate) fn pass_real(&self, real: u64, at: ReleaseSlot<'_>, header: &Header) {
        at.slot.index.store(header.index, Ordering::Relaxed);
        at.slot.place.store(header.place(), Ordering::Relaxed);
        // Release: pairs with the acquire of `passed_real` in `release`.
        self.passed.real.store(real + 1, Ordering::Release);
    }

    /// Passes everything below message `index`. Called after `pass_real` for each of its messages.
    pub(crate) fn pass(&self, index: u64) {
        // Release: pairs with the acquire of `passed` in `release`.
        self.passed.all.store(index, Ordering::Release);
    }

    /// Messages passed, nulls included. For the engine, which writes it.
    pub(crate) fn passed(&self) -> u64 {
        self.passed.all.load(Ordering::Relaxed)
    }

    /// All real messages below this number are released.
    pub(crate) fn released_real(&self) -> u64 {
        let released = self.released.real.load(Ordering::Acquire);
        released.max(self.passed.start.load(Ordering::Acquire))
    }

    /// Value of the `released` column. (The engine reads the column itself.)
    #[cfg(test)]
    pub(crate) fn released(&self) -> u64 {
        self.released.all.load(Ordering::Acquire)
    }

    /// All messages passed are released, and the next one has this number. Called by the engine.
    pub(crate) fn restart(&self, start: u64) {
        // In this order, so that no thread takes the numbers left out for held messages.
        self.passed.start.store(start, Ordering::Release);
        // Release: pairs with the acquire in `oldest`, which sees the start then.
        self.passed.real.store(start, Ordering::Release);
    }

    /// The part of the ring between the oldest held message and the newest passed one, in 1/256, by
    /// messages or by bytes, whichever is more.
    pub(crate) fn held_parts(&self, columns: &RingColumns) -> u32 {
        let passed = self.passed.real.load(Ordering::Acquire);
        let oldest = self.released_real();
        let messages = passed
            .saturating_sub(oldest)
            .min(columns.spec.messages.into());
        if messages == 0 {
            return 0;
        }
        let place = |real| {
            let place = self.slot(real).place.load(Ordering::Relaxed);
            (place & 0xffff_ffff, (place >> 32).div_ceil(GRANULE as u64))
        };
        let ((begin, _), (newest, len)) = (place(oldest), place(passed - 1));
        let granules = columns.spec.memory() / GRANULE as u64;
        let held = match (newest + len).wrapping_sub(begin) & (granules - 1) {
            // A full ring has the same offsets as an empty one.
            0 if len != 0 => granules,
            held => held,
        };
        let by_messages = messages * 256 / u64::from(columns.spec.messages);
        // Large messages may take more than the limit for small ones.
        let by_bytes = (held * GRANULE as u64 * 256 / columns.spec.bytes).min(256);
        by_messages.max(by_bytes) as u32
    }

    /// Recomputes `released`, and calls `store` with each new value, in order and from one thread
    /// at a time. Returns whether this thread recomputed it and it rose.
    pub(crate) fn release(&self, mut store: impl FnMut(u64)) -> bool {
        // AcqRel: makes the writes of the previous thread in this section visible.
        if self.released.requests.fetch_add(1, Ordering::AcqRel) != 0 {
            return false;
        }
        let mut rose = false;
        let mut seen = 1;
        loop {
            let value = self.oldest();
            if value > self.released.all.load(Ordering::Relaxed) {
                // The column first: who reads `released` finds the column no lower.
                store(value);
                self.released.all.store(value, Ordering::Release);
                rose = true;
            }
            match self.released.requests.compare_exchange(
                seen,
                0,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return rose,
                Err(more) => seen = more,
            }
        }
    }

    #[inline]
    fn oldest(&self) -> u64 {
        // Read before `passed_real`: an older bound with a newer count is safe; the other order
        // would release a held message.
        let passed = self.passed.all.load(Ordering::Acquire);
        let passed_real = self.passed.real.load(Ordering::Acquire);
        let known = self.released.real.load(Ordering::Relaxed);
        // A restart may be newer than `passed_real`: then all passed before it are released.
        let known = known.max(self.passed.start.load(Ordering::Acquire));
        let real = self.first_held(known.min(passed_real), passed_real);
        self.released.real.store(real, Ordering::Release);
        match real == passed_real {
            true => passed,
            false => self.slot(real).index.load(Ordering::Relaxed),
        }
    }

    /// The first held message from `from` on; `end` if there is none below.
    #[inline]
    fn first_held(&self, from: u64, end: u64) -> u64 {
        // Acquire: pairs with the releases in `end_hold`.
        if from == end || self.holds(from).load(Ordering::Acquire) != 0 {
            return from;
        }
        // Often only one was passed.
        let from = from + 1;
        if from == end {
            return end;
        }
        self.first_held_of_many(from, end)
    }

    #[inline(never)]
    fn first_held_of_many(&self, from: u64, end: u64) -> u64 {
        // Acquire: as above.
        let is_held = |holds: &AtomicU32| holds.load(Ordering::Acquire) != 0;
        let count = usize::try_from(end - from).unwrap_or(usize::MAX);
        let at = (from & (self.holds.len() as u64 - 1)) as usize;
        let (wrapped, ahead) = self.holds.split_at(at);
        let ahead = &ahead[..ahead.len().min(count)];
        let free = ahead.iter().position(is_held).unwrap_or_else(|| {
            let wrapped = &wrapped[..wrapped.len().min(count - ahead.len())];
            ahead.len() + wrapped.iter().position(is_held).unwrap_or(wrapped.len())
        });
        from + free as u64
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::spec::RingSpec;

    fn new_tracker(messages: usize) -> ReleaseTracker {
        ReleaseTracker::new(messages, &mut Arena::new(0)).expect("memory")
    }

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
        let tracker = new_tracker(4);
        let check = |expected: u32| assert_eq!(tracker.held_parts(&columns), expected);
        check(0);
        tracker.place(0).hold();
        tracker.pass_real(0, tracker.place(0), &Header::test(0, 128, 128));
        check(128);
        tracker.pass_real(1, tracker.place(1), &Header::test(1, 0, 128));
        check(256);
        tracker.pass(2);
        tracker.end_hold(0, 0);
        tracker.release(|_| {});
        check(0);
        tracker.pass_real(2, tracker.place(2), &Header::test(2, 128, 0));
        check(64);
    }

    #[test]
    fn held_parts_are_relative_to_the_bytes_in_flight() {
        let columns = RingColumns {
            guard: 0,
            headers: 0,
            payload: 0,
            spec: RingSpec {
                messages: 8,
                bytes: 192,
            },
        };
        let tracker = new_tracker(8);
        let pass = |real: u64, offset, len| {
            tracker.place(real).hold();
            tracker.pass_real(real, tracker.place(real), &Header::test(real, offset, len));
            tracker.held_parts(&columns)
        };
        assert_eq!(pass(0, 192, 48), 64);
        assert_eq!(
            pass(1, 0, 32),
            128,
            "the memory is 256, and 16 of it were skipped"
        );
        assert_eq!(pass(2, 32, 128), 256, "224 of 192, as large ones may");
    }

    #[test]
    fn the_oldest_held_message_bounds_what_is_released() {
        let tracker = new_tracker(4);
        let mut column = Vec::new();
        // Messages 0 (real), 1 and 2 (nulls), 3 and 4 (real).
        for (real, index) in [(0, 0), (1, 3), (2, 4)] {
            tracker.place(real).hold();
            tracker.pass_real(real, tracker.place(real), &Header::test(index, 0, 0));
        }
        tracker.pass(5);
        tracker.release(|value| column.push(value));
        assert_eq!(column, [] as [u64; 0]);
        assert!(tracker.end_hold(1, 3));
        tracker.release(|value| column.push(value));
        assert_eq!(column, [], "the oldest is held");
        tracker.place(0).hold();
        assert!(!tracker.end_hold(0, 3));
        assert!(tracker.end_hold(0, 3));
        tracker.release(|value| column.push(value));
        assert_eq!(column, [4]);
        tracker.pass(9);
        tracker.end_hold(2, 3);
        tracker.release(|value| column.push(value));
        assert_eq!(column, [4, 9]);
        assert_eq!((tracker.released(), tracker.released_real()), (9, 3));
    }
}
