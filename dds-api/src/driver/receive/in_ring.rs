//! Samples of a reader that still lie in the rings of their senders.

use std::sync::Arc;

use spindle_dds_core::{DeliveryClass, SubgroupHandle};
use spindle_dds_transport::{Fabric, Rank};

use crate::cache::{Cache, EntryRef};
use crate::driver::receive::payload::{Payload, Pool};
use crate::driver::receive::reader_epoch::MatchedWriters;

/// Samples of one ring of one sender, oldest first.
#[derive(Debug)]
struct InRing<F: Fabric> {
    subgroup: Arc<SubgroupHandle<F>>,
    sender: Rank,
    class: DeliveryClass,
    entries: Entries,
}

/// In the order in which they came: a ring, whose room is 0 or a power of two. It grows with what it
/// holds.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    places: Box<[EntryRef]>,
    /// Counts of those that came, and of those of them that are gone.
    end: usize,
    first: usize,
}

impl Entries {
    fn is_empty(&self) -> bool {
        self.end == self.first
    }

    fn clear(&mut self) {
        (self.end, self.first) = (0, 0);
    }

    fn front(&self) -> Option<EntryRef> {
        let is_there = !self.is_empty();
        is_there.then(|| self.places[self.first & (self.places.len() - 1)])
    }

    fn pop(&mut self) -> Option<EntryRef> {
        let front = self.front()?;
        self.first += 1;
        if self.is_empty() {
            self.clear();
        }
        Some(front)
    }

    /// How many more it takes.
    fn room(&self) -> usize {
        self.places.len() - (self.end - self.first)
    }

    /// Where the next ones go, one behind the other: as many as there is room for before the
    /// places begin again.
    #[inline]
    pub(crate) fn vacant(&mut self) -> &mut [EntryRef] {
        let at = self.end & (self.places.len() - 1);
        let room = self.room();
        let vacant = self.places.get_mut(at..).unwrap_or_default();
        let len = vacant.len().min(room);
        &mut vacant[..len]
    }

    /// So many stand there now, of those that are [`vacant`](Self::vacant).
    #[inline]
    pub(crate) fn came(&mut self, entries: usize) {
        debug_assert!(entries <= self.room());
        self.end += entries;
    }

    /// One more, for which there is room.
    fn push(&mut self, entry: EntryRef) {
        debug_assert!(self.room() > 0);
        self.places[self.end & (self.places.len() - 1)] = entry;
        self.end += 1;
    }

    /// There is room, if there was none.
    #[cold]
    fn grow(&mut self) {
        let len = (2 * self.places.len()).max(PLACES_MIN);
        let mut grown = Self {
            places: vec![EntryRef::NONE; len].into(),
            ..Self::default()
        };
        while let Some(entry) = self.pop() {
            grown.push(entry);
        }
        *self = grown;
    }
}

/// The samples of all rings.
#[derive(Debug)]
pub(crate) struct InRings<F: Fabric> {
    rings: Vec<InRing<F>>,
    /// The ring of the last sample: the next one is often in the same.
    last: usize,
    /// There was more to copy, or samples of ended epochs are left.
    linger: bool,
}

/// Least room of `Entries` that have any.
const PLACES_MIN: usize = 16;

/// In place of a number of parts of a ring: all that is held there.
pub(crate) const COPY_ALL: u32 = u32::MAX - 1;

/// Bytes that are copied out of rings at once.
const RELIEVE_BYTES_MAX: usize = 4 << 20;

impl<F: Fabric> Default for InRings<F> {
    fn default() -> Self {
        Self {
            rings: Vec::new(),
            last: 0,
            linger: false,
        }
    }
}

impl<F: Fabric> InRing<F> {
    #[inline]
    fn is(&self, (subgroup, sender, class): (&SubgroupHandle<F>, Rank, DeliveryClass)) -> bool {
        self.sender == sender && self.class == class && std::ptr::eq(&*self.subgroup, subgroup)
    }

    #[cold]
    fn make_room(&mut self, cache: &mut Cache<Payload<F>>) {
        self.pass_taken(cache);
        // With less room, samples would come in short runs.
        if 2 * self.entries.room() <= self.entries.places.len() {
            self.entries.grow();
        }
    }

    /// Forgets the oldest as far as they were taken or replaced meanwhile.
    fn pass_taken(&mut self, cache: &mut Cache<Payload<F>>) {
        while let Some(oldest) = self.entries.front()
            && cache.payload_mut(oldest).is_none()
        {
            self.entries.pop();
        }
    }
}

impl<F: Fabric> InRings<F> {
    /// Samples may arrive in the ring of `sender` for `class`.
    pub(crate) fn add(
        &mut self,
        subgroup: &Arc<SubgroupHandle<F>>,
        sender: Rank,
        class: DeliveryClass,
    ) {
        let is_here = |it: &InRing<F>| {
            let same = it.sender == sender && it.class == class;
            same && Arc::ptr_eq(&it.subgroup, subgroup)
        };
        if !self.rings.iter().any(is_here) {
            self.rings.push(InRing {
                subgroup: subgroup.clone(),
                sender,
                class,
                entries: Entries::default(),
            });
        }
    }

    /// The next samples that are kept arrive in this ring.
    #[inline]
    pub(crate) fn select(&mut self, ring: (&SubgroupHandle<F>, Rank, DeliveryClass)) {
        let is_same = |it: &InRing<F>| it.is(ring);
        if !self.rings.get(self.last).is_some_and(is_same) {
            self.last = self.rings.iter().position(is_same).unwrap_or(usize::MAX);
        }
    }

    /// The next samples that are kept lie in no ring.
    pub(crate) fn select_none(&mut self) {
        self.last = usize::MAX;
    }

    /// Where samples are noted that the cache keeps from now on, with room for one at least.
    /// `None` if the selected ring is unknown.
    #[inline]
    pub(crate) fn kept(&mut self, cache: &mut Cache<Payload<F>>) -> Option<&mut Entries> {
        let ring = self.rings.get_mut(self.last)?;
        if ring.entries.room() == 0 {
            ring.make_room(cache);
        }
        Some(&mut ring.entries)
    }

    /// The cache keeps that sample.
    pub(crate) fn keep(&mut self, entry: EntryRef, cache: &mut Cache<Payload<F>>) {
        if let Some(kept) = self.kept(cache) {
            kept.push(entry);
        }
    }

    /// The cache is empty.
    pub(crate) fn are_taken(&mut self) {
        self.rings.iter_mut().for_each(|it| it.entries.clear());
    }

    /// Forgets the rings, too.
    pub(crate) fn clear(&mut self) {
        self.rings.clear();
        self.linger = false;
    }

    /// Whether `relieve` is needed even if nothing arrives.
    pub(crate) fn linger(&self) -> bool {
        self.linger
    }

    /// Copies the oldest samples out of rings of which more than `span_max` parts of 256 are held
    /// here, or all of them ([`COPY_ALL`]), and all samples out of the rings of ended epochs. Copies a few megabytes at most, as
    /// the lock is held meanwhile. Returns whether there is more to copy. `now` is the epoch whose
    /// samples enter the cache, `last` the newest epoch, which goes on.
    pub(crate) fn relieve(
        &mut self,
        cache: &mut Cache<Payload<F>>,
        pool: &mut Pool,
        [now, last]: [&MatchedWriters<F>; 2],
        span_max: u32,
    ) -> bool {
        let mut budget = RELIEVE_BYTES_MAX;
        let mut any_ended = false;
        for in_ring in &mut self.rings {
            in_ring.pass_taken(cache);
            let InRing {
                subgroup,
                sender,
                class,
                entries,
            } = in_ring;
            let ended = !last.is_of(subgroup);
            any_ended |= ended;
            // 256 parts are the whole ring.
            let is_above = || match span_max {
                COPY_ALL => true,
                span_max => span_max < 256 && subgroup.held_parts(*class, *sender) > span_max,
            };
            while !entries.is_empty() && (ended || is_above()) {
                if budget == 0 {
                    self.linger = true;
                    return true;
                }
                let Some(oldest) = entries.pop() else {
                    break;
                };
                if let Some(payload) = cache.payload_mut(oldest) {
                    budget = budget.saturating_sub(payload.bytes().len());
                    // Dropped at once: `is_above` counts it.
                    drop(pool.copy_out(payload));
                }
            }
        }
        if any_ended || self.linger {
            let rings = &mut self.rings;
            rings.retain(|it| now.is_of(&it.subgroup) || !it.entries.is_empty());
            self.linger = rings.iter().any(|it| !last.is_of(&it.subgroup));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::EntryRef;

    #[test]
    fn entries_go_round_and_grow_in_order() {
        let mut entries = Entries::default();
        assert_eq!((entries.room(), entries.front()), (0, None));
        let (mut next, mut oldest) = (0, 0);
        // So many come, and so many go: over the end, and beyond the room.
        for (come, go) in [(12, 8), (12, 12), (16, 4), (36, 20), (8, 36), (4, 0)] {
            for _ in 0..come {
                if entries.room() == 0 {
                    entries.grow();
                }
                entries.push(EntryRef::test(next));
                next += 1;
            }
            for _ in 0..go {
                assert_eq!(entries.pop(), Some(EntryRef::test(oldest)));
                oldest += 1;
            }
            assert_eq!(
                entries.front(),
                (oldest < next).then(|| EntryRef::test(oldest))
            );
        }
        entries.clear();
        assert_eq!(entries.pop(), None);
    }

    #[test]
    fn entries_are_noted_where_they_are_vacant_and_come_in_order() {
        let mut entries = Entries {
            places: [EntryRef::NONE; 4].into(),
            ..Entries::default()
        };
        let (mut next, mut oldest) = (0, 0);
        // What is vacant in one piece, before so many go: up to the end of the places, then
        // up to the oldest.
        for (vacant, go) in [(4, 0), (0, 3), (3, 3), (1, 1), (3, 4), (4, 4)] {
            let places = entries.vacant();
            assert_eq!(places.len(), vacant);
            for place in places {
                *place = EntryRef::test(next);
                next += 1;
            }
            entries.came(vacant);
            for _ in 0..go {
                assert_eq!(entries.pop(), Some(EntryRef::test(oldest)));
                oldest += 1;
            }
        }
        assert_eq!((next, oldest), (15, 15));
        assert_eq!(entries.pop(), None);
    }
}
