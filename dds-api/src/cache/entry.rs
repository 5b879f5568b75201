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
    pub(super) fn new(
        instance: u32,
        generations: Generations,
        origin: Origin,
        payload: Option<P>,
    ) -> Self {
        let link = Link {
            prev: NONE,
            next: NONE,
        };
        Self {
            instance,
            generations,
            state: SampleState::NotRead,
            origin,
            payload,
            serial: 0,
            links: [link; 2],
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

    pub(super) fn push_back<P>(&mut self, slab: &mut Slab<P>, which: Which, id: EntryId) {
        slab[id].links[which as usize] = Link {
            prev: self.tail,
            next: NONE,
        };
        match self.tail {
            NONE => self.head = id,
            tail => slab[tail].links[which as usize].next = id,
        }
        self.tail = id;
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
    pub(super) fn insert(&mut self, mut entry: Entry<P>) -> EntryRef {
        self.serials += 1;
        let serial = self.serials;
        entry.serial = serial;
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.entries.push(None);
                // Whoever frees it finds room to say so.
                self.free.reserve(self.entries.len());
                self.entries.len() as EntryId - 1
            }
        };
        self.entries[id as usize] = Some(entry);
        EntryRef { id, serial }
    }

    /// Takes an entry out; its lists have been told before.
    pub(super) fn remove(&mut self, id: EntryId) -> Option<P> {
        let entry = self.entries[id as usize].take()?;
        self.free.push(id);
        entry.payload
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
