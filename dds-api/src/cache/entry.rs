//! Entries of the cache, in a slab and linked into lists.

use std::ops::{Index, IndexMut};

use spindle_dds_idl_runtime::Encapsulation;

use super::generations::Generations;
use crate::subscription::SampleState;

pub(crate) type EntryId = u32;

/// No entry.
pub(super) const NONE: EntryId = EntryId::MAX;

/// Refers to an entry while it is in the cache. Ids are reused; serials are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryRef {
    pub(super) id: EntryId,
    serial: u64,
}

impl EntryRef {
    /// Refers to no entry.
    pub(crate) const NONE: Self = Self {
        id: NONE,
        serial: 0,
    };

    #[cfg(test)]
    pub(crate) const fn test(id: EntryId) -> Self {
        Self { id, serial: 1 }
    }
}

/// The metadata of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Index of its writer among the writers of the cache.
    pub(crate) writer: u32,
    /// Its number among the samples of its writer.
    pub(crate) writer_sequence: u64,
    /// Its position in the total order of its subgroup.
    pub(crate) position: u64,
    /// Source timestamp, in nanoseconds since 1970.
    pub(crate) timestamp: i64,
    pub(crate) encapsulation: Encapsulation,
}

/// The two lists that every entry is in: order of arrival, and its instance.
#[derive(Debug, Clone, Copy)]
pub(super) enum Which {
    Order = 0,
    Instance = 1,
}

#[derive(Debug)]
pub(super) struct Entry<P> {
    /// Id of its instance.
    pub(super) instance: u32,
    /// The generation counts of the instance when the entry arrived.
    pub(super) generations: Generations,
    pub(super) state: SampleState,
    pub(super) origin: Origin,
    /// `None` for a state entry: only the state of the instance changed.
    pub(super) payload: Option<P>,
    /// 0 while the slot is free.
    serial: u64,
    /// Indexed by [`Which`].
    links: [Link; 2],
}

#[derive(Debug, Clone, Copy)]
struct Link {
    prev: EntryId,
    next: EntryId,
}

impl<P> Entry<P> {
    /// A free slot.
    const VACANT: Self = Self {
        instance: 0,
        generations: Generations {
            disposed: 0,
            no_writers: 0,
        },
        state: SampleState::NotRead,
        origin: Origin {
            writer: 0,
            writer_sequence: 0,
            position: 0,
            timestamp: 0,
            encapsulation: Encapsulation::CDR_LE,
        },
        payload: None,
        serial: 0,
        links: [Link {
            prev: NONE,
            next: NONE,
        }; 2],
    };

    pub(super) fn next(&self, list: Which) -> EntryId {
        self.links[list as usize].next
    }
}

/// Head and tail of a list through entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    pub(super) head: EntryId,
    tail: EntryId,
}

impl List {
    pub(super) const EMPTY: Self = Self {
        head: NONE,
        tail: NONE,
    };

    /// Appends an entry; returns the one that was last before.
    fn append<P>(&mut self, slab: &mut Slab<P>, which: Which, id: EntryId) -> EntryId {
        match self.tail {
            NONE => self.head = id,
            tail => slab[tail].links[which as usize].next = id,
        }
        std::mem::replace(&mut self.tail, id)
    }

    /// Appends an entry to both lists; returns the entries that were last before.
    #[inline]
    fn append_to<P>(both: [&mut Self; 2], slab: &mut Slab<P>, id: EntryId) -> [EntryId; 2] {
        let [order, instance] = both;
        let last = order.tail;
        if last == instance.tail && last != NONE {
            for link in &mut slab[last].links {
                link.next = id;
            }
            (order.tail, instance.tail) = (id, id);
            [last; 2]
        } else {
            let last = order.append(slab, Which::Order, id);
            [last, instance.append(slab, Which::Instance, id)]
        }
    }

    /// Makes `head` the first entry, after all before it were removed; with [`NONE`] the list
    /// becomes empty.
    pub(super) fn begin_with<P>(&mut self, slab: &mut Slab<P>, which: Which, head: EntryId) {
        self.head = head;
        match head {
            NONE => self.tail = NONE,
            head => slab[head].links[which as usize].prev = NONE,
        }
    }

    pub(super) fn unlink<P>(&mut self, slab: &mut Slab<P>, which: Which, id: EntryId) {
        let Link { prev, next } = slab[id].links[which as usize];
        match prev {
            NONE => self.head = next,
            prev => slab[prev].links[which as usize].next = next,
        }
        match next {
            NONE => self.tail = prev,
            next => slab[next].links[which as usize].prev = prev,
        }
    }
}

/// Entries by id. Ids of removed entries are reused.
#[derive(Debug)]
pub(super) struct Slab<P> {
    /// A free slot has serial 0 and no payload.
    entries: Vec<Entry<P>>,
    free: Vec<EntryId>,
    /// The serial that was assigned last.
    last_serial: u64,
}

impl<P> Default for Slab<P> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            last_serial: 0,
        }
    }
}

impl<P> Slab<P> {
    /// Appends an entry to both lists. It is written in place: it is too large to be moved.
    #[inline(always)]
    pub(super) fn append(
        &mut self,
        (instance, generations): (u32, Generations),
        origin: Origin,
        payload: Option<P>,
        lists: [&mut List; 2],
    ) -> EntryRef {
        self.last_serial += 1;
        let serial = self.last_serial;
        let id = match self.free.pop() {
            Some(id) => id,
            None => self.grow(),
        };
        let last = List::append_to(lists, self, id);
        let entry = &mut self.entries[id as usize];
        debug_assert!(entry.serial == 0 && entry.payload.is_none());
        entry.instance = instance;
        entry.generations = generations;
        entry.state = SampleState::NotRead;
        entry.origin = origin;
        // The old payload is `None`; `forget` omits the check whether it has to be dropped.
        std::mem::forget(std::mem::replace(&mut entry.payload, payload));
        entry.serial = serial;
        entry.links = last.map(|prev| Link { prev, next: NONE });
        EntryRef { id, serial }
    }

    #[cold]
    fn grow(&mut self) -> EntryId {
        self.entries.push(Entry::VACANT);
        // So that freeing an entry does not allocate.
        self.free.reserve(self.entries.len());
        self.entries.len() as EntryId - 1
    }

    /// Bytes that it has allocated; `of_payload` says what a payload has.
    pub(super) fn bytes(&self, of_payload: impl Fn(&P) -> usize) -> usize {
        let payloads = self.entries.iter().filter_map(|it| it.payload.as_ref());
        self.entries.capacity() * size_of::<Entry<P>>()
            + self.free.capacity() * size_of::<EntryId>()
            + payloads.map(of_payload).sum::<usize>()
    }

    /// The number of entries.
    pub(super) fn len(&self) -> u64 {
        (self.entries.len() - self.free.len()) as u64
    }

    /// Frees an entry, which the caller has unlinked; returns its payload.
    #[inline]
    pub(super) fn remove(&mut self, id: EntryId) -> Option<P> {
        let entry = &mut self[id];
        entry.serial = 0;
        let payload = entry.payload.take();
        self.free.push(id);
        payload
    }

    /// Frees an entry, which the caller has unlinked. The caller has to take its payload.
    #[inline(always)]
    pub(super) fn free(&mut self, id: EntryId) -> &mut Entry<P> {
        self.free.push(id);
        let entry = &mut self.entries[id as usize];
        debug_assert!(entry.serial != 0, "entry {id} is not in use");
        entry.serial = 0;
        entry
    }

    pub(super) fn get_mut(&mut self, entry: EntryRef) -> Option<&mut Entry<P>> {
        let found = self.entries.get_mut(entry.id as usize)?;
        (found.serial == entry.serial).then_some(found)
    }
}

/// Ids come only from the lists, so they are in use.
impl<P> Index<EntryId> for Slab<P> {
    type Output = Entry<P>;

    #[inline]
    fn index(&self, id: EntryId) -> &Entry<P> {
        let entry = &self.entries[id as usize];
        debug_assert!(entry.serial != 0, "entry {id} is not in use");
        entry
    }
}

impl<P> IndexMut<EntryId> for Slab<P> {
    #[inline]
    fn index_mut(&mut self, id: EntryId) -> &mut Entry<P> {
        let entry = &mut self.entries[id as usize];
        debug_assert!(entry.serial != 0, "entry {id} is not in use");
        entry
    }
}
