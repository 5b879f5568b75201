//! The writers that a cache has to do with: those that are matched, and those that
//! are gone and of whom entries are left. Nobody else takes room.

use std::collections::BTreeMap;

use crate::handle::InstanceHandle;

/// By index; those of writers that are forgotten are used again.
#[derive(Debug, Default)]
pub(super) struct Writers {
    rows: Vec<Row>,
    free: Vec<u32>,
    /// Those that are not gone.
    here: BTreeMap<InstanceHandle, u32>,
}

#[derive(Debug)]
struct Row {
    handle: InstanceHandle,
    is_gone: bool,
    /// Entries of the cache that name it.
    entries: u64,
}

impl Writers {
    /// The index of a writer that is here, and whether it is new.
    pub(super) fn admit(&mut self, handle: InstanceHandle) -> (u32, bool) {
        if let Some(index) = self.here.get(&handle) {
            return (*index, false);
        }
        let row = Row {
            handle,
            is_gone: false,
            entries: 0,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.rows[index as usize] = row;
                index
            }
            None => {
                self.rows.push(row);
                // Whoever forgets it finds room to say so.
                self.free.reserve(self.rows.len());
                self.rows.len() as u32 - 1
            }
        };
        self.here.insert(handle, index);
        (index, true)
    }

    /// A writer is gone: forgotten once no entry names it.
    pub(super) fn dismiss(&mut self, index: u32) {
        let row = &mut self.rows[index as usize];
        if !std::mem::replace(&mut row.is_gone, true) {
            self.here.remove(&row.handle);
            self.forget_unused(index);
        }
    }

    /// More entries name this writer.
    pub(super) fn entries_came(&mut self, index: u32, entries: u64) {
        self.rows[index as usize].entries += entries;
    }

    /// Entries that named this writer are no more.
    pub(super) fn entries_left(&mut self, index: u32, entries: u64) {
        self.rows[index as usize].entries -= entries;
        self.forget_unused(index);
    }

    fn forget_unused(&mut self, index: u32) {
        let row = &self.rows[index as usize];
        if row.is_gone && row.entries == 0 {
            self.free.push(index);
        }
    }

    pub(super) fn handle(&self, index: u32) -> InstanceHandle {
        self.rows[index as usize].handle
    }

    /// How many it has room for.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
}
