//! Samples in a slab, linked into lists.

use std::ops::{Index, IndexMut};

use spindle_dds_idl_runtime::Encapsulation;

use super::instance::Generations;
use crate::subscription::SampleState;

pub(crate) type EntryId = u32;

/// No entry.
pub(super) const NONE: EntryId = EntryId::MAX;

/// Names an entry for as long as it is in the cache: ids are used again, serials not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryRef {
    pub(super) id: EntryId,
    serial: u64,
}

impl EntryRef {
    /// Names none.
    pub(crate) const NONE: Self = Self {
        id: NONE,
        serial: 0,
    };

    #[cfg(test)]
    pub(crate) const fn test(id: EntryId) -> Self {
        Self { id, serial: 1 }
    }
}

/// What is known of a sample beside its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Index of its writer among those of the reader.
    pub(crate) writer: u32,
    pub(crate) writer_sequence: u64,
    pub(crate) position: u64,
    pub(crate) timestamp: i64,
    pub(crate) encapsulation: Encapsulation,
}

/// The lists that an entry is in.
#[derive(Debug, Clone, Copy)]
pub(super) enum Which {
    Order = 0,
    Instance = 1,
}

#[derive(Debug)]
pub(super) struct Entry<P> {
    pub(super) instance: u32,
    pub(super) generations: Generations,
    pub(super) state: SampleState,
    pub(super) origin: Origin,
    /// `None`: only the state of the instance changed.
    pub(super) payload: Option<P>,
    serial: u64,
    links: [Link; 2],
}

#[derive(Debug, Clone, Copy)]
struct Link {
    prev: EntryId,
    next: EntryId,
}

impl<P> Entry<P> {
    /// None is there.
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

    /// An entry comes behind its last one, which this names.
    fn append<P>(&mut self, slab: &mut Slab<P>, which: Which, id: EntryId) -> EntryId {
        match self.tail {
            NONE => self.head = id,
            tail => slab[tail].links[which as usize].next = id,
        }
        std::mem::replace(&mut self.tail, id)
    }

    /// The same of both lists.
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

    /// All before `head` have been taken out, or all there are if it is none.
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

/// Entries by id; ids of removed ones are used again.
#[derive(Debug)]
pub(super) struct Slab<P> {
    /// Where there is none, its serial is 0, and it has no payload.
    entries: Vec<Entry<P>>,
    free: Vec<EntryId>,
    serials: u64,
}

impl<P> Default for Slab<P> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            serials: 0,
        }
    }
}

impl<P> Slab<P> {
    /// Appends an entry to these lists. It is written where it stays: it is too large to be
    /// moved there.
    #[inline(always)]
    pub(super) fn append(
        &mut self,
        (instance, generations): (u32, Generations),
        origin: Origin,
        payload: Option<P>,
        lists: [&mut List; 2],
    ) -> EntryRef {
        self.serials += 1;
        let serial = self.serials;
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
        // The old payload is `None`: without `forget`, its drop would be checked for.
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

    /// The number of entries.
    pub(super) fn len(&self) -> u64 {
        (self.entries.len() - self.free.len()) as u64
    }

    /// Takes an entry out; its lists have been told before.
    #[inline]
    pub(super) fn remove(&mut self, id: EntryId) -> Option<P> {
        let entry = &mut self[id];
        entry.serial = 0;
        let payload = entry.payload.take();
        self.free.push(id);
        payload
    }

    /// The same; what it holds is to be taken out of it.
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

/// Ids come from the lists, never from outside: those that are not in use name nothing.
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
