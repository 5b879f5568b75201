//! A ring that is empty goes on at its start: it is walked only as far as it is full, so a writer
//! that sends rarely uses the same few pages of it.
//!
//! ```text
//!   head   h ------> start      by the engine, unless an extent was reserved since it read h
//!   tail   h ------> start      by the engine, or by a thread that claims meanwhile
//!   next   n ------> start      by the engine, unless a message was committed since it published
//! ```
//!
//! Invariants:
//!
//! - A restart moves numbers forward, to multiples of the ring's sizes: the place of a number is
//!   still the number modulo a size, and numbers only rise.
//! - The extents and the numbers of real messages restart independently of each other.
//! - `head` moves before `tail`, and by more tickets than there are extents. So the ring has more
//!   tickets in use than extents exactly while a restart is under way. No extent is reserved
//!   then: a claim that finds no room for this reason moves the tail itself.

use super::{REAL_BITS, REAL_MASK, SendRing, pack, unpack};
use crate::config::RingStretch;
use crate::limits::GRANULE;
use crate::subgroup::send_ring::Published;
use crate::sync::Ordering;

impl SendRing {
    /// Whether the ring is empty, and at least `stretch` of it was used since its start.
    #[inline]
    pub(crate) fn should_restart(&self, stretch: &RingStretch) -> bool {
        self.is_empty() && self.is_used(self.tail.load(Ordering::Relaxed), stretch)
    }

    /// Whether at least `stretch` of the ring is used.
    pub(crate) fn has_used(&self, stretch: &RingStretch) -> bool {
        self.is_used(self.head.load(Ordering::Relaxed), stretch)
    }

    /// Whether at least `stretch` of the ring lies between its start and this end of an extent.
    #[inline]
    fn is_used(&self, end: u64, stretch: &RingStretch) -> bool {
        let (at, ticket) = unpack(end);
        let bytes = u64::from(at & (self.granules - 1)) * GRANULE as u64;
        ticket & (self.extents.len() as u32 - 1) >= stretch.messages || bytes >= stretch.bytes
    }

    /// Where the extents go on after a restart at `from`.
    fn start_after(&self, from: u64) -> u64 {
        let (at, ticket) = unpack(from);
        let extents = self.extents.len() as u32;
        let start = (ticket | (extents - 1)).wrapping_add(1 + extents);
        let last = self.granules - 1;
        pack(at.wrapping_add(last) & !last, start)
    }

    /// The next extent starts at the start of the payload ring and of the extents, if none is
    /// reserved. Called by the engine only.
    pub(crate) fn restart_extents(&self) {
        // The engine alone moves the tail, but for the second half of a restart.
        let empty = self.tail.load(Ordering::Relaxed);
        let start = self.start_after(empty);
        // AcqRel, as for a reservation. It fails exactly if an extent was reserved.
        let moved = self
            .head
            .compare_exchange(empty, start, Ordering::AcqRel, Ordering::Relaxed);
        if moved.is_ok() {
            self.finish_restart(empty);
        }
    }

    /// Moves the tail after the head.
    fn finish_restart(&self, empty: u64) {
        let start = self.start_after(empty);
        // Fails if another thread has done it. AcqRel: what the tail vouches for at `empty`, it
        // vouches for at the start.
        let _ = self
            .tail
            .compare_exchange(empty, start, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// A claim found no room with this tail and this head, both loaded with acquire, the tail first:
    /// completes a restart if one is under way. Returns whether the claim should be tried again.
    #[cold]
    pub(super) fn helps_restart(&self, head: u64, tail: u64) -> bool {
        let in_use = unpack(head).1.wrapping_sub(unpack(tail).1);
        if in_use <= self.extents.len() as u32 {
            return false;
        }
        // If the tail is still there, no claim up to this head has seen a later one, and none took
        // more tickets than there are extents. So the head was restarted at this tail.
        self.finish_restart(tail);
        true
    }

    /// The next real message has the number that this returns, a multiple of the ring's size, unless
    /// one was committed and is not published yet, or it has such a number anyway. All published
    /// messages must have been released by all members. Called by the engine only.
    pub(crate) fn restart_numbers(&self, published: &Published) -> Option<u64> {
        let start = published.real.next_multiple_of(self.ready.len() as u64);
        let word = |real| published.index << REAL_BITS | real & REAL_MASK;
        // AcqRel, as for a commit. It fails exactly if a message was committed.
        let moved = self.next.compare_exchange(
            word(published.real),
            word(start),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        (start != published.real && moved.is_ok()).then_some(start)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::VecDeque;

    use spindle_dds_transport::memory::Arena;
    use spindle_dds_transport::sim::Rng;

    use super::*;
    use crate::spec::RingSpec;
    use crate::subgroup::send_ring::Reserved;

    const RING: RingSpec = RingSpec {
        messages: 16,
        bytes: 1024,
    };

    fn send_ring() -> SendRing {
        SendRing::new(&RING, &mut Arena::new(0)).expect("memory")
    }

    /// An extent in use: its bytes in the payload ring, and the number and index of its message
    /// once it is committed.
    struct Used {
        reserved: Reserved,
        message: Option<(u64, u64)>,
    }

    /// Claims, commits and releases at random, with a restart whenever the ring is empty: bytes and
    /// headers in use are of one message each, and there is room as if nothing was ever restarted.
    #[test]
    fn restarts_take_no_room_and_no_message() {
        let (mut restarts, mut sent) = (0, 0);
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let send_ring = send_ring();
            // Where 32-bit cursors wrap, too.
            if rng.chance(0.3) {
                let at = pack(u32::MAX - 63, u32::MAX - 15);
                send_ring.head.store(at, Ordering::Relaxed);
                send_ring.tail.store(at, Ordering::Relaxed);
            }
            let mut published = Published::default();
            let mut used = VecDeque::<Used>::new();
            let mut released = 0;
            for _ in 0..600 {
                match rng.below(6) {
                    0 | 1 => {
                        let len = rng.below(80) as u32;
                        let bytes = |len: u32| len.next_multiple_of(GRANULE as u32);
                        // What may be skipped at the end of the ring counts as in use.
                        let in_use: u32 = used.iter().map(|it| bytes(it.reserved.len) + 80).sum();
                        let has_room = used.len() < 16 && in_use + bytes(len) + 80 <= 1024;
                        let Ok(reserved) = send_ring.reserve(len) else {
                            assert!(!has_room, "seed {seed}");
                            continue;
                        };
                        let range =
                            |it: &Reserved| it.offset()..it.offset() + u64::from(bytes(it.len));
                        let new = range(&reserved);
                        for old in used.iter().map(|it| range(&it.reserved)) {
                            assert!(new.end <= old.start || old.end <= new.start);
                        }
                        used.push_back(Used {
                            reserved,
                            message: None,
                        });
                    }
                    2 | 3 => {
                        let open = used.iter_mut().filter(|it| it.message.is_none());
                        let mut open = Vec::from_iter(open);
                        if open.is_empty() {
                            continue;
                        }
                        let at = rng.below(open.len());
                        let len = open[at].reserved.len;
                        let place = send_ring.commit(&open[at].reserved, len).expect("indexes");
                        send_ring.written(place);
                        assert_eq!(u64::from(place.real), published.real & REAL_MASK);
                        open[at].message = Some((published.real, place.index));
                        assert_eq!(send_ring.next_written(&published), Some(place.index));
                        published = Published {
                            index: place.index + 1,
                            real: published.real + 1,
                        };
                        sent += 1;
                        let held = used.iter().filter_map(|it| it.message);
                        let held = held.filter(|(_, index)| *index >= released);
                        let slots = held.map(|(real, _)| real % 16);
                        let mut slots = Vec::from_iter(slots);
                        slots.sort_unstable();
                        assert!(slots.is_sorted_by(|a, b| a < b), "seed {seed}");
                    }
                    4 => {
                        let target = published.index + rng.below(3) as u64;
                        published.index += send_ring.fill_nulls(&published, target);
                    }
                    _ => {
                        // Of some messages, all before one that is not.
                        let more = published.index - released;
                        released += rng.below(more as usize + 1) as u64;
                        send_ring.reclaim(released);
                        while used
                            .front()
                            .is_some_and(|it| it.message.is_some_and(|(_, index)| index < released))
                        {
                            used.pop_front();
                        }
                        assert_eq!(send_ring.is_empty(), used.is_empty());
                        let stretch = RingStretch {
                            messages: 3,
                            bytes: 128,
                        };
                        if send_ring.should_restart(&stretch) {
                            restarts += 1;
                            send_ring.restart_extents();
                            if let Some(start) = send_ring.restart_numbers(&published) {
                                assert!(start % 16 == 0 && start > published.real);
                                published.real = start;
                            }
                            assert_eq!(send_ring.expected(16), (0, published.real & REAL_MASK));
                            assert!(send_ring.is_empty() && send_ring.in_use() == (0, 0));
                            assert!(!send_ring.should_restart(&stretch));
                        }
                    }
                }
            }
        }
        assert!(sent > 20_000 && restarts > 400, "{sent} {restarts}");
    }

    #[test]
    fn a_commit_and_a_claim_prevent_a_restart() {
        let send_ring = send_ring();
        let published = Published::default();
        let reserved = send_ring.reserve(16).expect("room");
        send_ring.restart_extents();
        assert_eq!(send_ring.in_use(), (1, 16));
        send_ring.commit(&reserved, 16).expect("indexes");
        assert_eq!(send_ring.restart_numbers(&published), None);
        assert_eq!(send_ring.taken(), (1, 1));
        assert!(send_ring.reclaim(1));
        let published = Published { index: 1, real: 1 };
        assert_eq!(send_ring.restart_numbers(&published), Some(16));
        assert_eq!(send_ring.taken(), (1, 16));
        let published = Published { index: 1, real: 16 };
        assert_eq!(send_ring.restart_numbers(&published), None, "it is there");
    }
}
