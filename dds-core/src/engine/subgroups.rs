//! The subgroups of an engine, for the views that decide on their members.

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
use crate::subgroup::{Context, SubgroupState};

/// The epochs of an engine between two of its steps: where they are added, and
/// step by step brought to their end.
///
/// ```text
///   all who go on:  wedge until true | all can be seen to be wedged: freeze
///                   | one cut is agreed on: finish | open the next epoch
///   of the others:  fence, before the freeze
/// ```
pub(crate) struct Subgroups<'a, F: Fabric, S> {
    participant: &'a Participant<F>,
    state: &'a mut State<F, S>,
}

/// Why an epoch does not come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SubgroupError {
    /// There is none.
    #[error("subgroup {0} is not open here")]
    NotOpen(SubgroupId),
    /// Its counts may still change, or it is cut where this member has not come.
    #[error(
        "the epoch of subgroup {0} is not frozen, or has received less than is to be delivered"
    )]
    NotReceived(SubgroupId),
}

impl<'a, F: Fabric, S: Sink<F>> Subgroups<'a, F, S> {
    pub(crate) fn new(participant: &'a Participant<F>, state: &'a mut State<F, S>) -> Self {
        Self { participant, state }
    }

    pub(crate) fn groups(&self) -> &[SubgroupState<F>] {
        &self.state.groups
    }

    /// To change them: they are looked at again.
    pub(crate) fn split(&mut self) -> (&mut Vec<SubgroupState<F>>, Context<'_, S>) {
        self.state.wake_subgroups();
        self.state.split()
    }

    fn at(&self, subgroup: SubgroupId) -> Result<usize, SubgroupError> {
        let groups = &self.state.groups;
        let at = groups.iter().position(|group| group.id() == subgroup);
        at.ok_or(SubgroupError::NotOpen(subgroup))
    }

    /// Opens an epoch. Its ordered ring takes claims when all members are ready.
    pub(crate) fn open(
        &mut self,
        spec: &SubgroupSpec,
        segment: F,
    ) -> Result<Arc<SubgroupHandle<F>>, SpecError> {
        let layout = SegmentLayout::new(spec)?;
        if self.at(spec.subgroup).is_ok() {
            return Err(SpecError::Occupied(spec.subgroup));
        }
        let common = self.participant.common.clone();
        let subgroup = SubgroupHandle::new(segment, spec, &layout, common, self.state.config)?;
        let subgroup = Arc::new(subgroup);
        let group = SubgroupState::new(subgroup.clone(), spec.clone(), &layout);
        self.state.groups.push(group);
        self.state.wake_subgroups();
        self.participant.add(subgroup.clone());
        Ok(subgroup)
    }

    /// Delivers what is below the cut, the same at all who go on: `trim` has the
    /// least count that any of them reported, for each sender in order. Whatever
    /// was received of the unordered rings is delivered too. Ends the epoch, and
    /// says so in an [`EngineEvent::EpochEnded`](crate::EngineEvent::EpochEnded).
    pub(crate) fn finish(
        &mut self,
        subgroup: SubgroupId,
        trim: &[u64],
    ) -> Result<(), SubgroupError> {
        let at = self.at(subgroup)?;
        let (groups, mut context) = self.split();
        if !groups[at].finish(trim, &mut context) {
            return Err(SubgroupError::NotReceived(subgroup));
        }
        groups.swap_remove(at);
        self.state.wake_subgroups();
        self.participant.remove(subgroup);
        Ok(())
    }
}

impl<F: Fabric, S> fmt::Debug for Subgroups<'_, F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subgroups").finish_non_exhaustive()
    }
}
