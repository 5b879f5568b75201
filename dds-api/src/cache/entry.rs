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
    /// To be appended to these lists.
    #[inline]
    pub(super) fn new(
        instance: u32,
        generations: Generations,
        origin: Origin,
        payload: Option<P>,
        lists: [&List; 2],
    ) -> Self {
        let links = lists.map(|list| Link {
            prev: list.tail,
            next: NONE,
        });
        Self {
            instance,
            generations,
            state: SampleState::NotRead,
            origin,
            payload,
            serial: 0,
            links,
        }
    }

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

    /// Appends an entry that was made for it.
    fn append<P>(&mut self, slab: &mut Slab<P>, which: Which, id: EntryId) {
        match self.tail {
            NONE => self.head = id,
            tail => slab[tail].links[which as usize].next = id,
        }
        self.tail = id;
    }

    /// Appends an entry that was made for both lists.
    #[inline]
    pub(super) fn append_to<P>(both: [&mut Self; 2], slab: &mut Slab<P>, id: EntryId) {
        let [order, instance] = both;
        if order.tail == instance.tail && order.tail != NONE {
            for link in &mut slab[order.tail].links {
                link.next = id;
            }
            (order.tail, instance.tail) = (id, id);
        } else {
            order.append(slab, Which::Order, id);
            instance.append(slab, Which::Instance, id);
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
    entries: Vec<Option<Entry<P>>>,
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
    #[inline]
    pub(super) fn insert(&mut self, mut entry: Entry<P>) -> EntryRef {
        self.serials += 1;
        let serial = self.serials;
        entry.serial = serial;
        let id = match self.free.pop() {
            Some(id) => id,
            None => self.grow(),
        };
        let place = &mut self.entries[id as usize];
        debug_assert!(place.is_none());
        *place = Some(entry);
        EntryRef { id, serial }
    }

    #[cold]
    fn grow(&mut self) -> EntryId {
        self.entries.push(None);
        // Whoever frees it finds room to say so.
        self.free.reserve(self.entries.len());
        self.entries.len() as EntryId - 1
    }

    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        (self.entries.len() - self.free.len()) as u64
    }

    /// Takes an entry out; its lists have been told before.
    pub(super) fn remove(&mut self, id: EntryId) -> Option<P> {
        let place = &mut self.entries[id as usize];
        let payload = place.as_mut()?.payload.take();
        *place = None;
        self.free.push(id);
        payload
    }

    pub(super) fn get_mut(&mut self, entry: EntryRef) -> Option<&mut Entry<P>> {
        let found = self.entries.get_mut(entry.id as usize)?.as_mut()?;
        (found.serial == entry.serial).then_some(found)
    }
}

/// Panics for an id that is not in use: ids come from the lists, never from outside.
impl<P> Index<EntryId> for Slab<P> {
    type Output = Entry<P>;

    fn index(&self, id: EntryId) -> &Entry<P> {
        match &self.entries[id as usize] {
            Some(entry) => entry,
            None => unreachable!("entry {id} is not in use"),
        }
    }
}

impl<P> IndexMut<EntryId> for Slab<P> {
    fn index_mut(&mut self, id: EntryId) -> &mut Entry<P> {
        match &mut self.entries[id as usize] {
            Some(entry) => entry,
            None => unreachable!("entry {id} is not in use"),
        }
    }
}
