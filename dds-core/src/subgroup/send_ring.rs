//! The sending side of a ring: reserve, commit, withdraw, fill with nulls, publish, reclaim.
//!
//! Any thread of the participant reserves and commits. Only the thread that steps the engine
//! publishes and reclaims. No lock is taken.
//!
//! ```text
//!   payload   |  free  | extent | extent | extent |  free  |     oldest first
//!                      ^ tail                     ^ head
//!   headers   | free | published | committed | free |            commit order
//!                                ^ guard     ^ next
//! ```
//!
//! Invariants:
//!
//! - `head` moves by one compare-and-swap that takes an extent *and* its ticket: 32 bits of
//!   granules and 32 bits of tickets, both wrapping. `extents[ticket]` describes the extent. The
//!   claiming thread owns it until it is committed or withdrawn, then the engine does.
//! - `next` moves by one compare-and-swap that takes a message index *and* the number of a real
//!   message: 48 bits and 16 bits (wrapping). A null is an index without a real message. The order
//!   of messages is the order of these swaps. Real messages are numbered one after the other; a
//!   restart (`restart.rs`) leaves numbers out.
//! - There are at most as many extents as header slots, so an extent always finds a free header
//!   slot: unreleased messages never outnumber live extents.
//! - A small extent is reserved only while at most `granules_in_flight` lie between `tail` and the
//!   new `head`; a large one may fill the ring.
//! - `ready[slot]` is set when the header of a committed message is written. It holds index + 1,
//!   which rises from lap to lap, so a stale entry is at or below the published index.
//! - Both arrays begin as zeros, which nothing has to write: no extent in use, no header written.

mod restart;

use std::io;

use crossbeam_utils::CachePadded;
use spindle_dds_transport::memory::{Arena, ZeroedSlice};

use crate::limits::{GRANULE, MESSAGE_INDEX_MAX};
use crate::spec::RingSpec;
use crate::sync::{AtomicU64, Ordering};

/// A commit gives back the unused rest of its extent if that has more granules than this: less than
/// a cache line is not worth a compare-and-swap.
const REST_MAX: u32 = 64 / GRANULE as u32 - 1;

const REAL_BITS: u32 = 16;
const REAL_MASK: u64 = (1 << REAL_BITS) - 1;

/// Extent state: the message is being built. 0: an extent that was never used is like this.
const BUILDING: u64 = 0;
/// Extent state: given up.
const WITHDRAWN: u64 = 1;
/// Extent state: holds message `state - COMMITTED`.
const COMMITTED: u64 = 2;

/// The sender's side of one ring.
#[derive(Debug)]
pub(crate) struct SendRing {
    /// Granules | ticket: end of the newest extent. Written by claiming threads, by
    /// compare-and-swap.
    head: CachePadded<AtomicU64>,
    /// Granules | ticket: start of the oldest extent. Written by the engine only, but for the second
    /// half of a restart.
    tail: CachePadded<AtomicU64>,
    /// Message index | number of a real message: what the next commit takes.
    next: CachePadded<AtomicU64>,
    /// By ticket, modulo the length, a power of two.
    extents: ZeroedSlice<Extent>,
    /// By number of the real message, modulo the length: index + 1 of the message whose header is
    /// written.
    ready: ZeroedSlice<AtomicU64>,
    /// Granules of the ring's memory, a power of two.
    granules: u32,
    /// Maximum granules in flight for small extents (up to an eighth of it). Large extents may take
    /// all of the memory.
    granules_in_flight: u32,
    /// Granules of the largest extent.
    granules_max: u32,
}

#[derive(Debug, Default)]
pub(super) struct Extent {
    /// `BUILDING`, `WITHDRAWN`, or `COMMITTED` plus the message index.
    state: AtomicU64,
    /// Granules the extent takes, valid once it is committed or withdrawn.
    granules: AtomicU64,
}

/// A reserved extent. Its holder ends it by `commit` or `withdraw`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reserved {
    ticket: u32,
    /// Granules it takes, including granules skipped at the end of the ring.
    span: u32,
    /// Granules skipped at the end of the ring.
    skipped: u32,
    /// Granules of `head` after the reservation.
    end: u32,
    /// Granules of the payload ring before the extent.
    at: u32,
    /// Bytes asked for.
    pub(crate) len: u32,
}

/// Of the claims in a ring, one in this many looks whether the ring can be restarted. A power of two.
const TICKETS_PER_LOOK: u32 = 64;

impl Reserved {
    /// Whether the thread that claims next should look first whether the ring can be restarted.
    #[inline]
    pub(crate) const fn is_look_due(&self) -> bool {
        self.ticket & (TICKETS_PER_LOOK - 1) == TICKETS_PER_LOOK - 1
    }

    /// Byte offset in the payload ring.
    pub(crate) fn offset(&self) -> u64 {
        u64::from(self.at) * GRANULE as u64
    }
}

/// Why a reservation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReserveError {
    /// No room now.
    Full,
    /// Never fits: above half of the ring's memory.
    TooLarge,
}

/// A position in the order of this ring's messages, taken by a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingPosition {
    /// Message index, nulls included.
    pub(crate) index: u64,
    /// Its number among the real messages, modulo 2^16.
    pub(crate) real: u16,
}

/// What the engine has published of this ring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Published {
    /// The guard: number of messages, nulls included.
    pub(crate) index: u64,
    /// Number of the next real message: of those published, and of the numbers that restarts have
    /// left out.
    pub(crate) real: u64,
}

const fn pack(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

const fn unpack(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

impl SendRing {
    pub(crate) fn new(spec: &RingSpec, arena: &mut Arena) -> io::Result<Self> {
        let messages = spec.messages as usize;
        let granules = (spec.memory() / GRANULE as u64) as u32;
        let granules_in_flight = (spec.bytes / GRANULE as u64) as u32;
        Ok(Self {
            head: CachePadded::new(AtomicU64::new(0)),
            tail: CachePadded::new(AtomicU64::new(0)),
            next: CachePadded::new(AtomicU64::new(0)),
            extents: arena.slice(messages)?,
            ready: arena.slice(messages)?,
            granules,
            granules_in_flight,
            granules_max: granules / 2,
        })
    }

    /// Bytes that a ring of so many messages takes of an arena.
    pub(crate) const fn bytes_of(messages: usize) -> usize {
        Arena::bytes_of::<Extent>(messages) + Arena::bytes_of::<AtomicU64>(messages)
    }

    /// Bytes of the largest extent.
    pub(crate) fn len_max(&self) -> u64 {
        u64::from(self.granules_max) * GRANULE as u64
    }

    /// Messages and bytes reserved and not yet reclaimed.
    pub(crate) fn in_use(&self) -> (u32, u64) {
        // Tail first: a head read later is never behind it.
        let (tail_at, tail_ticket) = unpack(self.tail.load(Ordering::Acquire));
        let (at, ticket) = unpack(self.head.load(Ordering::Acquire));
        let granules = at.wrapping_sub(tail_at).min(self.granules);
        let messages = ticket
            .wrapping_sub(tail_ticket)
            .min(self.extents.len() as u32);
        (messages, u64::from(granules) * GRANULE as u64)
    }

    /// Reserves an extent of `len` bytes, or fails if there is no room. Lock-free.
    #[inline]
    pub(crate) fn reserve(&self, len: u32) -> Result<Reserved, ReserveError> {
        let need = len.div_ceil(GRANULE as u32);
        if need > self.granules_max {
            return Err(ReserveError::TooLarge);
        }
        let most = match need > self.granules_in_flight / 8 {
            true => self.granules,
            false => self.granules_in_flight,
        };
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // Acquire: pairs with the release in `reclaim`. The readers are done with the bytes,
            // and the extent's entry is reset.
            let (tail_at, tail_ticket) = unpack(self.tail.load(Ordering::Acquire));
            let (at, ticket) = unpack(head);
            let position = at & (self.granules - 1);
            let skipped = if position + need > self.granules {
                self.granules - position
            } else {
                0
            };
            let span = skipped + need;
            let room = at.wrapping_sub(tail_at).saturating_add(span) <= most
                && (ticket.wrapping_sub(tail_ticket) as usize) < self.extents.len();
            if !room {
                // The tail may be newer than the head that was read before it. Acquire: see
                // `helps_restart`.
                let now = self.head.load(Ordering::Acquire);
                if now == head && !self.helps_restart(head, pack(tail_at, tail_ticket)) {
                    return Err(ReserveError::Full);
                }
                head = now;
                continue;
            }
            let end = at.wrapping_add(span);
            let taken = pack(end, ticket.wrapping_add(1));
            // AcqRel: tickets pass from one claiming thread to the next.
            match self
                .head
                .compare_exchange_weak(head, taken, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => {
                    return Ok(Reserved {
                        ticket,
                        span,
                        skipped,
                        end,
                        at: (position + skipped) & (self.granules - 1),
                        len,
                    });
                }
                Err(now) => head = now,
            }
        }
    }

    #[inline]
    fn extent(&self, ticket: u32) -> &Extent {
        &self.extents[ticket as usize & (self.extents.len() - 1)]
    }

    /// Gives the extent up without a trace.
    pub(crate) fn withdraw(&self, reserved: &Reserved) {
        self.close(reserved, 0, WITHDRAWN);
    }

    /// Takes the next position in the order for the first `used` bytes of the extent. The caller
    /// writes the header and then calls [`Self::written`]. `None` when the epoch's message indexes
    /// are used up; the extent is then withdrawn.
    #[inline]
    pub(crate) fn commit(&self, reserved: &Reserved, used: u32) -> Option<RingPosition> {
        let mut next = self.next.load(Ordering::Relaxed);
        let place = loop {
            let (index, real) = (next >> REAL_BITS, next & REAL_MASK);
            if index >= MESSAGE_INDEX_MAX {
                self.withdraw(reserved);
                return None;
            }
            let taken = (index + 1) << REAL_BITS | (real + 1) & REAL_MASK;
            match self
                .next
                .compare_exchange_weak(next, taken, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => {
                    break RingPosition {
                        index,
                        real: real as u16,
                    };
                }
                Err(now) => next = now,
            }
        };
        self.close(reserved, used, COMMITTED + place.index);
        Some(place)
    }

    /// Ends a reservation. If it is the newest, gives back what it did not use.
    #[inline]
    fn close(&self, reserved: &Reserved, used: u32, state: u64) {
        let mut span = reserved.span;
        let (shorter, rest_max) = match state {
            WITHDRAWN => (0, 0),
            _ => (reserved.skipped + used.div_ceil(GRANULE as u32), REST_MAX),
        };
        if span.saturating_sub(shorter) > rest_max {
            let begin = reserved.end.wrapping_sub(span);
            let ticket = reserved.ticket.wrapping_add(1);
            // Relaxed failure: another thread has reserved after it, so the extent keeps its size.
            // Tickets only rise, so equality means that none has.
            let shrunk = self.head.compare_exchange(
                pack(reserved.end, ticket),
                pack(begin.wrapping_add(shorter), ticket),
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if shrunk.is_ok() {
                span = shorter;
            }
        }
        let extent = self.extent(reserved.ticket);
        extent.granules.store(u64::from(span), Ordering::Relaxed);
        // Release: pairs with the acquire in `reclaim`.
        extent.state.store(state, Ordering::Release);
    }

    /// Marks the header of a committed message as written.
    pub(crate) fn written(&self, place: RingPosition) {
        // Release: pairs with the acquire in `next_written`.
        self.written_with(place, Ordering::Release);
    }

    /// [`Self::written`] with the caller's memory ordering: loom plants a bug with it.
    pub(crate) fn written_with(&self, place: RingPosition, ordering: Ordering) {
        self.ready[place.real as usize & (self.ready.len() - 1)].store(place.index + 1, ordering);
    }

    /// Message index and number of the real message (modulo 2^16) of the next commit.
    pub(crate) fn taken(&self) -> (u64, u16) {
        let next = self.next.load(Ordering::Acquire);
        (next >> REAL_BITS, (next & REAL_MASK) as u16)
    }

    /// Predicts where the next extent of `len` bytes starts in the payload ring, and the number of
    /// its real message (modulo 2^16), if no other thread is faster and the ring is not restarted.
    #[inline]
    pub(crate) fn expected(&self, len: u32) -> (usize, u64) {
        let (end, _) = unpack(self.head.load(Ordering::Relaxed));
        let at = end & (self.granules - 1);
        let skips = at + len.div_ceil(GRANULE as u32) > self.granules;
        let offset = if skips { 0 } else { at as usize * GRANULE };
        (offset, self.next.load(Ordering::Relaxed) & REAL_MASK)
    }

    /// Index of the next real message to publish, if its header is written.
    pub(crate) fn next_written(&self, published: &Published) -> Option<u64> {
        // Acquire: pairs with the release in `written`.
        let ready =
            self.ready[published.real as usize & (self.ready.len() - 1)].load(Ordering::Acquire);
        (ready > published.index).then(|| ready - 1)
    }

    /// Fills up with nulls to `target` messages, unless a committed message is not published yet
    /// (receivers get that message instead). Returns the number of nulls; the caller publishes
    /// `published.index + nulls`.
    pub(crate) fn fill_nulls(&self, published: &Published, target: u64) -> u64 {
        let expected = published.index << REAL_BITS | published.real & REAL_MASK;
        if published.index >= target || target > MESSAGE_INDEX_MAX {
            return 0;
        }
        let filled = target << REAL_BITS | published.real & REAL_MASK;
        // Fails exactly when a thread has committed since: no retry is wanted.
        match self
            .next
            .compare_exchange(expected, filled, Ordering::AcqRel, Ordering::Relaxed)
        {
            Ok(_) => target - published.index,
            Err(_) => 0,
        }
    }

    /// Frees the oldest extents that are withdrawn or hold messages below `released`. Called by the
    /// engine only. Returns whether room came back.
    pub(crate) fn reclaim(&self, released: u64) -> bool {
        let before = self.tail.load(Ordering::Relaxed);
        let (mut at, mut ticket) = unpack(before);
        // Acquire: pairs with the swaps that took the tickets. One load is enough: an extent
        // reserved since cannot be released yet.
        let (_, end) = unpack(self.head.load(Ordering::Acquire));
        while ticket != end {
            let extent = self.extent(ticket);
            // Acquire: pairs with the release in `close`.
            let state = extent.state.load(Ordering::Acquire);
            if state == BUILDING || state >= COMMITTED && state - COMMITTED >= released {
                break;
            }
            at = at.wrapping_add(extent.granules.load(Ordering::Relaxed) as u32);
            extent.state.store(BUILDING, Ordering::Relaxed);
            ticket = ticket.wrapping_add(1);
        }
        let after = pack(at, ticket);
        if after == before {
            return false;
        }
        // Release: pairs with the acquire in `reserve`.
        self.tail.store(after, Ordering::Release);
        true
    }

    /// Whether every extent has been ended and reclaimed.
    pub(crate) fn is_empty(&self) -> bool {
        unpack(self.tail.load(Ordering::Acquire)).1 == unpack(self.head.load(Ordering::Acquire)).1
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn send_ring(messages: u32, bytes: u64) -> SendRing {
        let arena = &mut Arena::new(0);
        SendRing::new(&RingSpec { messages, bytes }, arena).expect("memory")
    }

    #[test]
    fn extents_are_contiguous_and_skip_the_end() {
        let send_ring = send_ring(8, 128);
        let a = send_ring.reserve(40).unwrap();
        let b = send_ring.reserve(33).unwrap();
        assert_eq!((a.offset(), b.offset()), (0, 48));
        assert_eq!(send_ring.reserve(33), Err(ReserveError::Full), "32 left");
        assert_eq!(send_ring.reserve(65), Err(ReserveError::TooLarge));
        let place = send_ring.commit(&a, 40).unwrap();
        send_ring.written(place);
        assert!(!send_ring.reclaim(0) && send_ring.reclaim(1));
        let c = send_ring.reserve(33).unwrap();
        assert_eq!(c.offset(), 0, "skips the last 32 bytes");
        assert_eq!(send_ring.reserve(1), Err(ReserveError::Full));
        send_ring.withdraw(&b);
        send_ring.withdraw(&c);
        assert!(send_ring.reclaim(1) && send_ring.is_empty());
        let largest = send_ring.len_max();
        assert_eq!(
            u64::from(send_ring.reserve(64).unwrap().len),
            largest,
            "half the ring fits once it is drained"
        );
    }

    #[test]
    fn the_predicted_extent_is_the_reserved_one() {
        let send_ring = send_ring(8, 256);
        for (real, len) in (0..).zip([40, 64, 100, 16, 90, 128, 8, 70]) {
            let (offset, before) = send_ring.expected(len);
            let reserved = send_ring.reserve(len).unwrap();
            assert_eq!((reserved.offset() as usize, real), (offset, before));
            let place = send_ring.commit(&reserved, len).unwrap();
            send_ring.written(place);
            send_ring.reclaim(place.index + 1);
        }
    }

    #[test]
    fn half_the_ring_fits_at_every_position() {
        let send_ring = send_ring(2, 256);
        for k in 0..64 {
            let small = send_ring.reserve(16 * (k % 7)).unwrap();
            let place = send_ring.commit(&small, 16 * (k % 7)).unwrap();
            send_ring.written(place);
            send_ring.reclaim(place.index + 1);
            let half = send_ring.reserve(128).unwrap();
            assert!(half.offset() + 128 <= 256);
            let place = send_ring.commit(&half, 128).unwrap();
            send_ring.written(place);
            send_ring.reclaim(place.index + 1);
        }
    }

    #[test]
    fn small_extents_stop_at_the_limit_in_flight() {
        let send_ring = send_ring(32, 1280);
        let sent = |len| {
            let reserved = send_ring.reserve(len).unwrap();
            let place = send_ring.commit(&reserved, len).unwrap();
            send_ring.written(place);
            (reserved.offset(), place.index + 1)
        };
        let offsets = [0; 8].map(|_| sent(160).0);
        assert_eq!(offsets, [0, 160, 320, 480, 640, 800, 960, 1120]);
        assert_eq!(send_ring.reserve(1), Err(ReserveError::Full));
        assert!(send_ring.reclaim(1));
        assert_eq!(sent(160).0, 1280, "the ring has memory for 2048");
        assert_eq!(send_ring.reserve(1), Err(ReserveError::Full));
        let (offset, end) = sent(176);
        assert_eq!(offset, 1440, "what is large may have all of it");
        assert_eq!(send_ring.in_use(), (9, 1456));
        assert_eq!(send_ring.reserve(1025), Err(ReserveError::TooLarge));
        assert_eq!(send_ring.reserve(1024), Err(ReserveError::Full));
        assert!(send_ring.reclaim(end) && send_ring.is_empty());
        let (offset, end) = sent(1024);
        assert_eq!(offset, 0, "with the 432 that it skips it fits");
        assert_eq!(send_ring.reserve(1), Err(ReserveError::Full));
        assert_eq!(send_ring.reserve(593), Err(ReserveError::Full));
        assert_eq!(sent(592).0, 1024);
        assert!(send_ring.reclaim(end));
    }

    #[test]
    fn a_commit_gives_the_unused_rest_back() {
        let send_ring = send_ring(4, 256);
        let first = send_ring.reserve(128).unwrap();
        send_ring.commit(&first, 10).unwrap();
        assert_eq!(send_ring.reserve(16).unwrap().offset(), 16);
        let third = send_ring.reserve(64).unwrap();
        send_ring.withdraw(&third);
        assert_eq!(send_ring.reserve(64).unwrap().offset(), third.offset());
    }

    #[test]
    fn open_claims_delay_no_other_message() {
        let send_ring = send_ring(4, 256);
        let mut published = Published::default();
        let held = send_ring.reserve(16).unwrap();
        let other = send_ring.reserve(16).unwrap();
        let place = send_ring.commit(&other, 16).unwrap();
        assert_eq!(place, RingPosition { index: 0, real: 0 });
        assert_eq!(
            send_ring.next_written(&published),
            None,
            "the header is not written yet"
        );
        send_ring.written(place);
        assert_eq!(send_ring.next_written(&published), Some(0));
        published = Published { index: 1, real: 1 };
        assert!(!send_ring.reclaim(1), "the oldest extent is held");
        let late = send_ring.commit(&held, 16).unwrap();
        assert_eq!(
            late,
            RingPosition { index: 1, real: 1 },
            "order is commit order"
        );
        assert_eq!(send_ring.next_written(&published), None);
    }

    #[test]
    fn nulls_do_not_pass_a_commit() {
        let send_ring = send_ring(4, 256);
        let mut published = Published::default();
        assert_eq!(send_ring.fill_nulls(&published, 3), 3);
        published.index = 3;
        assert_eq!(send_ring.fill_nulls(&published, 3), 0);
        let held = send_ring.reserve(0).unwrap();
        let place = send_ring.commit(&held, 0).unwrap();
        assert_eq!(place.index, 3);
        assert_eq!(
            send_ring.fill_nulls(&published, 9),
            0,
            "a commit is on its way"
        );
        send_ring.written(place);
        assert_eq!(send_ring.next_written(&published), Some(3));
    }

    #[test]
    fn cursors_survive_their_wraps() {
        let send_ring = send_ring(4, 128);
        send_ring
            .head
            .store(pack(u32::MAX - 7, u32::MAX - 1), Ordering::Relaxed);
        send_ring
            .tail
            .store(pack(u32::MAX - 7, u32::MAX - 1), Ordering::Relaxed);
        for k in 0..70_000_u64 {
            let reserved = send_ring.reserve(24).unwrap();
            let place = send_ring.commit(&reserved, 24).unwrap();
            assert_eq!((place.index, place.real), (k, k as u16));
            send_ring.written(place);
            let published = Published { index: k, real: k };
            assert_eq!(send_ring.next_written(&published), Some(k));
            assert!(send_ring.reclaim(k + 1));
        }
        assert!(send_ring.is_empty());
    }

    #[test]
    fn indexes_run_out_without_wrapping() {
        let send_ring = send_ring(4, 128);
        send_ring
            .next
            .store(MESSAGE_INDEX_MAX << REAL_BITS, Ordering::Relaxed);
        let reserved = send_ring.reserve(1).unwrap();
        assert_eq!(send_ring.commit(&reserved, 1), None);
        assert!(send_ring.reclaim(0) && send_ring.is_empty());
    }
}
