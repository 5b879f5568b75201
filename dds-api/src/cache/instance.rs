//! Instances by key hash, with their states (DDS 1.4 §2.2.2.5.1.3).

use std::collections::BTreeMap;
use std::ops::{Bound, Index, IndexMut};

use spindle_dds_idl_runtime::KeyHash;

use super::entry::{EntryId, List, NONE};
use super::generations::Generations;
use crate::subscription::InstanceState;

#[derive(Debug)]
pub(super) struct Instance {
    pub(super) key: KeyHash,
    pub(super) state: InstanceState,
    /// View state NEW: not accessed since the instance became alive.
    pub(super) is_new: bool,
    pub(super) generations: Generations,
    /// Indexes of the writers that have it registered.
    writers: Vec<u32>,
    pub(super) entries: List,
    /// The number of entries with data.
    pub(super) samples: u64,
    /// The entry without data, if there is one.
    pub(super) state_entry: Option<EntryId>,
    /// The number of entries that were read.
    pub(super) read: u64,
    /// The ids of the next older and newer replaceable instances, if it is one.
    replaceable: Option<[u32; 2]>,
    pub(super) marks: Marks,
}

/// Scratch values of the current query; valid if `visited` or `ranked` is its round.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Marks {
    /// The last round that selected from this instance.
    pub(super) visited: u64,
    /// The last round that ranked samples of this instance.
    pub(super) ranked: u64,
    /// The number of samples ranked so far.
    pub(super) rank: i32,
    /// Total generation count of its newest sample in the collection.
    pub(super) newest: i32,
}

impl Instance {
    /// A writer registers it, as each sample and each disposal does.
    #[inline]
    pub(super) fn register(&mut self, writer: u32) {
        if self.writers.first() != Some(&writer) {
            self.register_another(writer);
        }
    }

    #[cold]
    fn register_another(&mut self, writer: u32) {
        if !self.writers.contains(&writer) {
            self.writers.push(writer);
        }
    }

    /// It is not alive, and a sample arrives.
    pub(super) fn become_alive(&mut self) {
        match self.state {
            InstanceState::Alive => return,
            InstanceState::NotAliveDisposed => self.generations.disposed += 1,
            InstanceState::NotAliveNoWriters => self.generations.no_writers += 1,
        }
        self.is_new = true;
        self.state = InstanceState::Alive;
    }

    /// Disposes the instance. Returns whether its state changed.
    pub(super) fn dispose(&mut self) -> bool {
        let changed = self.state != InstanceState::NotAliveDisposed;
        self.state = InstanceState::NotAliveDisposed;
        changed
    }

    /// Whether a writer has it registered.
    pub(super) fn is_written_by(&self, writer: u32) -> bool {
        self.writers.contains(&writer)
    }

    /// A writer unregisters the instance, or is unmatched. Returns whether its state changed.
    pub(super) fn lose_writer(&mut self, writer: u32) -> bool {
        let Some(at) = self.writers.iter().position(|known| *known == writer) else {
            return false;
        };
        self.writers.swap_remove(at);
        let changed = self.writers.is_empty() && self.state == InstanceState::Alive;
        if changed {
            self.state = InstanceState::NotAliveNoWriters;
        }
        changed
    }

    pub(super) fn has_writers(&self) -> bool {
        !self.writers.is_empty()
    }

    /// The number of entries.
    #[inline]
    pub(super) fn len(&self) -> u64 {
        self.samples + u64::from(self.state_entry.is_some())
    }
}

/// Instances by id and by key. Ids of removed instances are reused.
#[derive(Debug)]
pub(super) struct Instances {
    slab: Vec<Instance>,
    free: Vec<u32>,
    by_key: BTreeMap<KeyHash, u32>,
    /// The instance of the last sample: the next sample often has the same key.
    last: Option<u32>,
    /// The ids of the newest and the oldest of the replaceable instances, which are linked; their
    /// number.
    replaceable: [u32; 2],
    replaceable_len: u64,
    /// The number of the current query, for [`Marks`].
    pub(super) round: u64,
}

impl Default for Instances {
    fn default() -> Self {
        Self {
            slab: Vec::new(),
            free: Vec::new(),
            by_key: BTreeMap::new(),
            last: None,
            replaceable: [NONE; 2],
            replaceable_len: 0,
            round: 0,
        }
    }
}

impl Instances {
    /// Bytes that they have allocated; the nodes of the tree are taken for full.
    pub(super) fn bytes(&self) -> usize {
        let writers = self.slab.iter().map(|it| it.writers.capacity());
        self.slab.capacity() * size_of::<Instance>()
            + (self.free.capacity() + writers.sum::<usize>()) * size_of::<u32>()
            + self.by_key.len() * size_of::<(KeyHash, u32)>()
    }

    pub(super) fn len(&self) -> u64 {
        self.by_key.len() as u64
    }

    /// Like [`find`](Self::find), but fast for the instance that was found last.
    #[inline]
    pub(super) fn find_next(&mut self, key: KeyHash) -> Option<u32> {
        match self.last {
            Some(at) if self.slab[at as usize].key == key => {}
            _ => self.last = self.find(key),
        }
        self.last
    }

    pub(super) fn find(&self, key: KeyHash) -> Option<u32> {
        self.by_key.get(&key).copied()
    }

    /// Ids of all instances: a copy, so that the caller can remove instances.
    pub(super) fn ids(&self) -> Vec<u32> {
        self.by_key.values().copied().collect()
    }

    /// Ids of the instances after a key, or of all, in the order of keys.
    pub(super) fn after(&self, key: Option<KeyHash>) -> impl Iterator<Item = u32> {
        let from = key.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_key
            .range((from, Bound::Unbounded))
            .map(|(_, at)| *at)
    }

    /// A new instance: alive, without writers or samples.
    pub(super) fn insert(&mut self, key: KeyHash) -> u32 {
        let fresh = |writers| Instance {
            key,
            state: InstanceState::Alive,
            is_new: true,
            generations: Generations::default(),
            writers,
            entries: List::EMPTY,
            samples: 0,
            state_entry: None,
            read: 0,
            replaceable: None,
            marks: Marks::default(),
        };
        let at = match self.free.pop() {
            Some(at) => {
                let mut writers = std::mem::take(&mut self.slab[at as usize].writers);
                writers.clear();
                self.slab[at as usize] = fresh(writers);
                at
            }
            None => {
                self.slab.push(fresh(Vec::with_capacity(2)));
                self.free.reserve(self.slab.len());
                self.slab.len() as u32 - 1
            }
        };
        self.by_key.insert(key, at);
        at
    }

    /// The number of replaceable instances.
    pub(super) fn replaceable(&self) -> u64 {
        self.replaceable_len
    }

    pub(super) fn oldest_replaceable(&self) -> Option<u32> {
        let [_, oldest] = self.replaceable;
        (oldest != NONE).then_some(oldest)
    }

    /// An instance becomes replaceable, unless it is so already.
    pub(super) fn make_replaceable(&mut self, at: u32) {
        if self[at].replaceable.is_some() {
            return;
        }
        let [newest, _] = self.replaceable;
        self[at].replaceable = Some([newest, NONE]);
        self.link([at, newest], 1);
        self.replaceable[0] = at;
        self.replaceable_len += 1;
    }

    /// An instance is not replaceable any more, if it was.
    pub(super) fn keep(&mut self, at: u32) {
        let Some([older, newer]) = self[at].replaceable.take() else {
            return;
        };
        self.link([older, newer], 0);
        self.link([newer, older], 1);
        self.replaceable_len -= 1;
    }

    /// Makes `to` the older (0) or newer (1) neighbour of `of`; where `of` is none, `to` is the
    /// newest or the oldest of all.
    fn link(&mut self, [to, of]: [u32; 2], side: usize) {
        match of {
            NONE => self.replaceable[side] = to,
            of => {
                if let Some(neighbours) = &mut self[of].replaceable {
                    neighbours[side] = to;
                }
            }
        }
    }

    pub(super) fn remove(&mut self, at: u32) {
        self.keep(at);
        self.by_key.remove(&self.slab[at as usize].key);
        self.last = None;
        self.free.push(at);
    }
}

impl Index<u32> for Instances {
    type Output = Instance;

    fn index(&self, at: u32) -> &Instance {
        &self.slab[at as usize]
    }
}

impl IndexMut<u32> for Instances {
    fn index_mut(&mut self, at: u32) -> &mut Instance {
        &mut self.slab[at as usize]
    }
}
