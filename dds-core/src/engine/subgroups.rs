//! The subgroups of an engine, for the view changes that begin and end their epochs.

use std::fmt;
use std::sync::Arc;

use spindle_dds_transport::Fabric;

use crate::engine::State;
use crate::engine::handle::Participant;
use crate::ids::SubgroupId;
use crate::sink::Sink;
use crate::spec::{SpecError, SubgroupSpec};
use crate::subgroup::handle::SubgroupHandle;
use crate::subgroup::layout::SegmentLayout;
use crate::subgroup::memory::EpochMemory;
use crate::subgroup::{Context, SubgroupState};

/// The subgroups of an engine between two of its steps: opens epochs, and ends them.
///
/// ```text
///   at each member that goes on:  wedge, until true
///                                 all members are seen to be wedged: freeze
///                                 the ragged trim is agreed: finish
///                                 open the next epoch
///   for each other member:        fence its row, before the freeze
/// ```
pub(crate) struct Subgroups<'a, F: Fabric, S> {
    participant: &'a Participant<F>,
    state: &'a mut State<F, S>,
}

/// Why an epoch cannot be finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SubgroupError {
    /// This member has no epoch of the subgroup.
    #[error("subgroup {0} has no epoch here")]
    NotOpen(SubgroupId),
    /// Its counts may still change, or this member has received less than the trim.
    #[error(
        "the epoch of subgroup {0} is not frozen, or has received less than is to be delivered"
    )]
    NotReceived(SubgroupId),
}

impl<'a, F: Fabric, S: Sink<F>> Subgroups<'a, F, S> {
    pub(crate) fn new(participant: &'a Participant<F>, state: &'a mut State<F, S>) -> Self {
        Self { participant, state }
    }

    pub(crate) fn all(&self) -> &[SubgroupState<F>] {
        &self.state.subgroups
    }

    /// Access for changes: makes all subgroups active.
    pub(crate) fn split(&mut self) -> (&mut Vec<SubgroupState<F>>, Context<'_, S>) {
        self.state.activate_all();
        self.state.split()
    }

    fn at(&self, subgroup: SubgroupId) -> Result<usize, SubgroupError> {
        let mut subgroups = self.state.subgroups.iter();
        let at = subgroups.position(|it| it.id() == subgroup);
        at.ok_or(SubgroupError::NotOpen(subgroup))
    }

    /// Opens an epoch in the segment and the memory that were made for it. Its ordered ring takes
    /// claims when all members are ready.
    pub(crate) fn open(
        &mut self,
        spec: &SubgroupSpec,
        segment: F,
        memory: EpochMemory,
    ) -> Result<Arc<SubgroupHandle<F>>, SpecError> {
        let layout = SegmentLayout::new(spec)?;
        if self.at(spec.subgroup).is_ok() {
            return Err(SpecError::Occupied(spec.subgroup));
        }
        if !memory.is_of(spec, segment.me()) {
            return Err(SpecError::Memory(spec.subgroup));
        }
        let EpochMemory { rings, headers, .. } = memory;
        let (shared, config) = (self.participant.shared.clone(), self.state.config);
        let handle = SubgroupHandle::new(segment, spec, &layout, rings, shared, config)?;
        let handle = Arc::new(handle);
        let subgroup = SubgroupState::new(handle.clone(), spec.clone(), &layout, headers);
        self.state.subgroups.push(subgroup);
        self.state.activate_all();
        self.participant.add(handle.clone());
        Ok(handle)
    }

    /// Delivers all below the ragged trim, which is the same at all members that go on: for each
    /// sender, in order, the least count that any of them reported. Delivers also all that was
    /// received of the unordered rings. Ends the epoch, and reports
    /// [`EngineEvent::EpochEnded`](crate::EngineEvent::EpochEnded).
    pub(crate) fn finish(
        &mut self,
        subgroup: SubgroupId,
        trim: &[u64],
    ) -> Result<(), SubgroupError> {
        let at = self.at(subgroup)?;
        let (subgroups, mut context) = self.split();
        if !subgroups[at].finish(trim, &mut context) {
            return Err(SubgroupError::NotReceived(subgroup));
        }
        subgroups.swap_remove(at);
        self.state.activate_all();
        self.participant.remove(subgroup);
        Ok(())
    }
}

impl<F: Fabric, S> fmt::Debug for Subgroups<'_, F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subgroups").finish_non_exhaustive()
    }
}
