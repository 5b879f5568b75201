//! The lanes of an engine, for whoever decides on the members of subgroups.

use std::fmt;
use std::sync::Arc;

use spindle_dds_transport::{Fabric, Rank};

use crate::engine::{Sink, State};
use crate::group::{Context, Counts, Found, SubgroupState};
use crate::handle::Participant;
use crate::ids::SubgroupId;
use crate::lane::SubgroupHandle;
use crate::layout::Layout;
use crate::spec::{SpecError, SubgroupSpec};
use crate::stream::ProtocolViolation;

/// The lanes of an engine between two of its steps: where they are added, and
/// step by step brought to their end.
///
/// ```text
///   all who go on:  wedge until true | all can be seen to be wedged: freeze
///                   | one cut is agreed on: finish | add the next lane
///   of the others:  fence, before the freeze
/// ```
pub struct Subgroups<'a, F: Fabric, S> {
    participant: &'a Participant<F>,
    state: &'a mut State<F, S>,
}

/// Why a lane does not come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubgroupError {
    /// There is none.
    #[error("subgroup {0} has no lane here")]
    NoLane(SubgroupId),
    /// It is still open.
    #[error("the lane of subgroup {0} is not wedged yet")]
    NotWedged(SubgroupId),
    /// Its counts may still change, or it is cut where this member has not come.
    #[error("the lane of subgroup {0} is not frozen, or has received less than is to be delivered")]
    NotReceived(SubgroupId),
    /// A member's row makes no sense: fence it, and try again.
    #[error("member {rank} is broken: {what}")]
    ProtocolViolation {
        /// Who, in the control segment.
        rank: Rank,
        /// What was found.
        what: ProtocolViolation,
    },
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
        self.state.wake_lanes();
        self.state.split()
    }

    fn at(&self, subgroup: SubgroupId) -> Result<usize, SubgroupError> {
        let groups = &self.state.groups;
        let at = groups.iter().position(|group| group.id() == subgroup);
        at.ok_or(SubgroupError::NoLane(subgroup))
    }

    /// See [`Engine::add_lane`](crate::Engine::add_lane).
    pub fn add(
        &mut self,
        spec: &SubgroupSpec,
        segment: F,
    ) -> Result<Arc<SubgroupHandle<F>>, SpecError> {
        let control = &self.participant.control;
        let known = |rank: &Rank| rank.index() < control.members();
        let mine = spec.members.get(segment.me().index());
        if mine != Some(&control.me()) || !spec.members.iter().all(known) {
            return Err(SpecError::Segment(spec.subgroup));
        }
        let lane = self.open(spec, segment, true)?;
        self.state.settle_last(self.participant);
        Ok(lane)
    }

    /// Opens a lane whose members are those of a view. Unless it has `begun`, its
    /// ordered ring takes claims when all members are ready.
    pub(crate) fn open(
        &mut self,
        spec: &SubgroupSpec,
        segment: F,
        begun: bool,
    ) -> Result<Arc<SubgroupHandle<F>>, SpecError> {
        let layout = Layout::new(spec)?;
        if self.at(spec.subgroup).is_ok() {
            return Err(SpecError::Occupied(spec.subgroup));
        }
        let common = self.participant.common.clone();
        let lane = SubgroupHandle::new(segment, spec, &layout, common, self.state.config, begun)?;
        let lane = Arc::new(lane);
        let group = SubgroupState::new(lane.clone(), spec.clone(), &layout);
        self.state.groups.push(group);
        self.state.wake_lanes();
        self.participant.add(lane.clone());
        Ok(lane)
    }

    /// Claims and commits are refused from now on, nothing more is said of
    /// deliveries. True once everything that was committed is pushed and the
    /// guards are final; to be called again until then.
    pub fn wedge(&mut self, subgroup: SubgroupId) -> Result<bool, SubgroupError> {
        let at = self.at(subgroup)?;
        let (groups, mut context) = self.split();
        Ok(groups[at].wedge(&mut context))
    }

    /// Receives what is visible of all members that are not fenced; from then on
    /// the counts do not change, however often they are asked for. To be called
    /// once all of those members are known to be wedged.
    pub fn freeze(&mut self, subgroup: SubgroupId) -> Result<Counts, SubgroupError> {
        let at = self.at(subgroup)?;
        let (groups, mut context) = self.split();
        let group = &mut groups[at];
        match group.freeze(&mut context) {
            Ok(Some(counts)) => Ok(counts),
            Ok(None) => Err(SubgroupError::NotWedged(subgroup)),
            Err(trouble) => match trouble.what {
                Found::ProtocolViolation(what) => Err(SubgroupError::ProtocolViolation {
                    rank: group.spec.members[trouble.place.index()],
                    what,
                }),
                // Orders are not compared any more.
                Found::Disagreement { .. } => Err(SubgroupError::NotReceived(subgroup)),
            },
        }
    }

    /// Delivers what is below the cut, the same at all who go on: `trim` has the
    /// least count that any of them reported, for each sender in order. Whatever
    /// was received of the unordered rings is delivered too. Ends the lane, and
    /// says so in an [`Event::LaneEnded`](crate::Event::LaneEnded).
    pub fn finish(&mut self, subgroup: SubgroupId, trim: &[u64]) -> Result<(), SubgroupError> {
        let at = self.at(subgroup)?;
        let (groups, mut context) = self.split();
        if !groups[at].finish(trim, &mut context) {
            return Err(SubgroupError::NotReceived(subgroup));
        }
        groups.swap_remove(at);
        self.state.wake_lanes();
        self.participant.remove(subgroup);
        Ok(())
    }

    /// Nothing more is read of what a member of the control segment writes, in
    /// any lane. It acknowledges nothing any more: its lanes have to end.
    pub fn fence(&mut self, member: Rank) {
        self.state.fence(self.participant, member);
    }
}

impl<F: Fabric, S> fmt::Debug for Subgroups<'_, F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subgroups").finish_non_exhaustive()
    }
}
