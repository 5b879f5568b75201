//! The writers of a cache: those that are matched, and those that are gone but have entries
//! left. Other writers take no memory.

use std::collections::BTreeMap;

use crate::handle::InstanceHandle;

/// By index. Indexes of forgotten writers are reused.
#[derive(Debug, Default)]
pub(super) struct Writers {
    rows: Vec<Row>,
    free: Vec<u32>,
    /// The indexes of those that are not gone.
    here: BTreeMap<InstanceHandle, u32>,
}

#[derive(Debug)]
struct Row {
    handle: InstanceHandle,
    is_gone: bool,
    /// Entries of the cache that are of this writer.
    entries: u64,
}

impl Writers {
    /// The index of a matched writer, and whether it is new.
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
                // So that `forget_unused` does not allocate.
                self.free.reserve(self.rows.len());
                self.rows.len() as u32 - 1
            }
        };
        self.here.insert(handle, index);
        (index, true)
    }

    /// The index of a writer that is not gone.
    pub(super) fn find(&self, handle: InstanceHandle) -> Option<u32> {
        self.here.get(&handle).copied()
    }

    /// A writer is gone. It is forgotten once it has no entries.
    pub(super) fn dismiss(&mut self, index: u32) {
        let row = &mut self.rows[index as usize];
        if !std::mem::replace(&mut row.is_gone, true) {
            self.here.remove(&row.handle);
            self.forget_unused(index);
        }
    }

    /// The writer has more entries.
    pub(super) fn entries_came(&mut self, index: u32, entries: u64) {
        self.rows[index as usize].entries += entries;
    }

    /// Entries of the writer were removed.
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

    /// Number of indexes in use or free.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
}
