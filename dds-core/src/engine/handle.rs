//! Access to an engine for the threads of its participant.

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

/// The part of an engine that needs no lock on its state.
pub(crate) struct Participant<F> {
    /// Segment of this participant alone, in which its threads sleep.
    pub(crate) own: F,
    pub(crate) shared: Arc<Shared>,
    /// Locked for single reads and writes of the table only.
    table: Mutex<Table<F>>,
}

/// The subgroups whose epochs have not ended.
struct Table<F> {
    subgroups: BTreeMap<SubgroupId, Arc<SubgroupHandle<F>>>,
    /// Status of the gates of all subgroups, including those to come; it only rises.
    status: u32,
    /// Pushes of the epochs that have ended.
    ended: FabricCounters,
}

impl<F: Fabric> Participant<F> {
    pub(crate) fn new(own: F) -> Self {
        Self {
            own,
            shared: Arc::new(Shared::new()),
            table: Mutex::new(Table {
                subgroups: BTreeMap::new(),
                status: OPEN,
                ended: FabricCounters::default(),
            }),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table<F>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, subgroup: Arc<SubgroupHandle<F>>) {
        let mut table = self.table();
        subgroup.close(table.status);
        table.subgroups.insert(subgroup.id(), subgroup);
    }

    /// The subgroups whose epochs have not ended.
    pub(crate) fn subgroups(&self) -> Vec<Arc<SubgroupHandle<F>>> {
        self.table().subgroups.values().cloned().collect()
    }

    pub(crate) fn remove(&self, subgroup: SubgroupId) {
        let mut table = self.table();
        if let Some(ended) = table.subgroups.remove(&subgroup) {
            add_pushes(&mut table.ended, &ended.fabric.counters());
        }
    }

    /// Stops claims in all subgroups, with this status.
    pub(crate) fn close(&self, status: u32) {
        let mut table = self.table();
        table.status = table.status.max(status);
        let subgroups = table.subgroups.values();
        subgroups.for_each(|it| it.close(status));
    }
}

/// Access to an engine for the threads of its participant: subgroups and counters.
/// Cheap to clone.
pub struct EngineHandle<F>(pub(crate) Arc<Participant<F>>);

impl<F> Clone for EngineHandle<F> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<F: Fabric> EngineHandle<F> {
    /// The handle of a subgroup's present epoch. `None` if the last one has ended and the next
    /// one has not begun, or this participant is not a member. Takes a short lock: a writer keeps
    /// its handle until a claim is refused with [`ClaimError::Wedged`].
    pub fn subgroup(&self, subgroup: SubgroupId) -> Option<Arc<SubgroupHandle<F>>> {
        self.0.table().subgroups.get(&subgroup).cloned()
    }

    /// The subgroups that have an epoch here, in ascending order. Takes a short lock.
    pub fn subgroups(&self) -> Vec<SubgroupId> {
        self.0.table().subgroups.keys().copied().collect()
    }

    /// Traffic of this participant's segments: its own, and those of its subgroups, ended epochs
    /// included. Takes a short lock.
    pub fn traffic(&self) -> FabricCounters {
        let table = self.0.table();
        // Each segment counts all wakes and sleeps of the participant, but only its own pushes.
        let mut all = self.0.own.counters();
        add_pushes(&mut all, &table.ended);
        for subgroup in table.subgroups.values() {
            add_pushes(&mut all, &subgroup.fabric.counters());
        }
        all
    }

    /// An error if no epoch will take claims any more, because the group has stopped. For
    /// writers that wait for an epoch. Takes a short lock.
    pub fn check(&self) -> Result<(), ClaimError> {
        ClaimError::of_status(self.0.table().status)
    }

    /// While the guard lives, acknowledgements wake the sleeping thread of the engine: for
    /// threads that wait for room or for a receipt.
    pub fn waiting_for_acks(&self) -> AckWait {
        let shared = self.0.shared.clone();
        shared.ack_waiters.fetch_add(1, Ordering::SeqCst);
        // A sleeper may have announced that it wants data only.
        self.0.own.nudge();
        AckWait(shared)
    }

    /// Whether a committing thread has found the engine locked, and left its message to the next
    /// step, or a thread has left there what is persisted. (It has nudged, which wakes a sleeper.) To be called after a SeqCst fence, by a
    /// thread that stops stepping without going to sleep.
    pub fn has_left_commits(&self) -> bool {
        self.0.shared.left_commits.load(Ordering::Relaxed)
    }

    /// The participant's own segment.
    pub fn fabric(&self) -> &F {
        &self.0.own
    }

    /// A snapshot of the counters.
    pub fn counters(&self) -> Counters {
        self.0.shared.counters.snapshot()
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
