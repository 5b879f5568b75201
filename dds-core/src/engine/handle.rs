//! What the threads of a participant share, whatever epochs there are.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spindle_dds_transport::{Fabric, FabricCounters};

use crate::counters::Counters;
use crate::ids::SubgroupId;
use crate::subgroup::claim::ClaimError;
use crate::subgroup::handle::{OPEN, SubgroupHandle};
use crate::subgroup::shared::Shared;
use crate::sync::Ordering;

/// A participant, as its threads see it.
pub(crate) struct Participant<F> {
    pub(crate) control: F,
    pub(crate) common: Arc<Shared>,
    table: Mutex<Table<F>>,
}

/// The epochs that have not ended.
struct Table<F> {
    subgroups: BTreeMap<SubgroupId, Arc<SubgroupHandle<F>>>,
    /// Of all epochs, and of those that will be.
    status: u32,
    /// What went through those that have ended.
    ended: FabricCounters,
}

impl<F: Fabric> Participant<F> {
    pub(crate) fn new(control: F) -> Self {
        Self {
            control,
            common: Arc::new(Shared::new()),
            table: Mutex::new(Table {
                subgroups: BTreeMap::new(),
                status: OPEN,
                ended: FabricCounters::default(),
            }),
        }
    }

    /// Held for a look at the table, never across anything else.
    fn table(&self) -> MutexGuard<'_, Table<F>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, subgroup: Arc<SubgroupHandle<F>>) {
        let mut table = self.table();
        subgroup.close(table.status);
        table.subgroups.insert(subgroup.id(), subgroup);
    }

    pub(crate) fn remove(&self, subgroup: SubgroupId) {
        let mut table = self.table();
        if let Some(subgroup) = table.subgroups.remove(&subgroup) {
            add_pushes(&mut table.ended, &subgroup.fabric.counters());
        }
    }

    /// No epoch takes claims any more.
    pub(crate) fn close(&self, status: u32) {
        let mut table = self.table();
        table.status = table.status.max(status);
        table
            .subgroups
            .values()
            .for_each(|subgroup| subgroup.close(status));
    }
}

/// Access to an engine for the threads of its participant: epochs, counters.
/// Cheap to clone.
pub struct EngineHandle<F>(pub(crate) Arc<Participant<F>>);

impl<F> Clone for EngineHandle<F> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<F: Fabric> EngineHandle<F> {
    /// The epoch of a subgroup; `None` while there is none, because the old one
    /// has ended and the next one is not here yet, or because this participant
    /// is no member. Takes a short lock: writers keep what they got until it
    /// refuses a claim with [`ClaimError::Wedged`].
    pub fn subgroup(&self, subgroup: SubgroupId) -> Option<Arc<SubgroupHandle<F>>> {
        self.0.table().subgroups.get(&subgroup).cloned()
    }

    /// The subgroups that have an epoch, in ascending order. Takes a short lock.
    pub fn subgroups(&self) -> Vec<SubgroupId> {
        self.0.table().subgroups.keys().copied().collect()
    }

    /// What went through this participant's segments: those of its epochs, ended ones too, and
    /// the control segment. Takes a short lock.
    pub fn traffic(&self) -> FabricCounters {
        let table = self.0.table();
        // Of what it does as one (rings, sleeps), each segment knows all.
        let mut all = self.0.control.counters();
        add_pushes(&mut all, &table.ended);
        for subgroup in table.subgroups.values() {
            add_pushes(&mut all, &subgroup.fabric.counters());
        }
        all
    }

    /// Whether epochs to come will take claims: not when the group has stopped. For writers that wait for an epoch. Takes a short lock.
    pub fn check(&self) -> Result<(), ClaimError> {
        ClaimError::of_status(self.0.table().status)
    }

    /// While the guard lives, a sleeping engine wants to be woken by
    /// acknowledgements: for threads that wait for room or for a receipt.
    pub fn waiting_for_acks(&self) -> AckWait {
        let common = self.0.common.clone();
        common.ack_waiters.fetch_add(1, Ordering::SeqCst);
        // The sleeper may have announced that it wants data only.
        self.0.control.nudge();
        AckWait(common)
    }

    /// Whether a committing thread has found the engine being stepped, and left its message
    /// to the next step: it has nudged, which wakes a sleeper. To be asked by a thread that ends
    /// its steps without sleeping, after a fence (SeqCst).
    pub fn has_left_commits(&self) -> bool {
        self.0.common.left_commits.load(Ordering::Relaxed)
    }

    /// The control segment.
    pub fn fabric(&self) -> &F {
        &self.0.control
    }

    /// What has been done so far.
    pub fn counters(&self) -> Counters {
        self.0.common.counters.snapshot()
    }
}

impl<F> fmt::Debug for EngineHandle<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineHandle").finish_non_exhaustive()
    }
}

fn add_pushes(sum: &mut FabricCounters, more: &FabricCounters) {
    sum.pushes += more.pushes;
    sum.word_pushes += more.word_pushes;
    sum.bytes_pushed += more.bytes_pushed;
}

/// See [`EngineHandle::waiting_for_acks`].
pub struct AckWait(Arc<Shared>);

impl fmt::Debug for AckWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AckWait")
    }
}

impl Drop for AckWait {
    fn drop(&mut self) {
        self.0.ack_waiters.fetch_sub(1, Ordering::SeqCst);
    }
}
