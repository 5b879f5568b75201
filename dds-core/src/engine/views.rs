//! From view to view: applies the decisions of the membership to the subgroups.
//!
//! ```text
//!   Membership::step --Prepare-> EngineEvent::Prepare --driver--> Engine::prepared
//!                    --Decide--> EngineEvent::Decide --driver--> Engine::decided
//!                    --Finish--> subgroups delivered up to the trims, EngineEvent::ViewEnded
//!                                --driver has the segments--> Engine::install
//!                    --Out-----> EngineEvent::Stopped
//! ```
//!
//! Between the end of a view and the installation of the next one, subgroups that are not touched
//! go on; the epochs of the touched ones have ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use spindle_dds_transport::{Fabric, Rank};

use crate::counters::bump;
use crate::engine::handle::Participant;
use crate::engine::subgroups::Subgroups;
use crate::engine::{Engine, State};
use crate::ids::SubgroupId;
use crate::membership::{
    Action, DetectorFigures, Finish, MemberId, Membership, OpenRequest, OutReason, Pace, Refusal,
    Request, Rules, SubgroupEnds, Touched, Trim, View,
};
use crate::sink::{EngineEvent, Sink};
use crate::spec::SpecError;
use crate::subgroup::memory::EpochMemory;
use crate::subgroup::{Fault, MemberFault, SubgroupState};

/// A participant's part in the sequence of views.
pub(crate) struct Views<F> {
    /// This participant, in all views.
    id: MemberId,
    rules: Rules,
    phase: Phase<F>,
}

impl<F: Fabric> Views<F> {
    /// What this participant knows of heartbeats; `None` between two views.
    pub(crate) fn detector_figures(&self) -> Option<DetectorFigures> {
        match &self.phase {
            Phase::In(membership) => Some(membership.detector_figures()),
            _ => None,
        }
    }

    /// The control segment of the present view; `None` between two views.
    pub(crate) fn control(&self) -> Option<&F> {
        match &self.phase {
            Phase::In(membership) => Some(membership.fabric()),
            _ => None,
        }
    }
}

enum Phase<F> {
    /// In a view.
    In(Box<Membership<F>>),
    /// Between two views: the next one, and what is carried over into it.
    Between {
        next: Arc<View>,
        /// Members of the last view that this one suspected, and why.
        suspected: Vec<(MemberId, String)>,
        /// Requests that no view has settled.
        requests: Vec<OpenRequest>,
        /// How many newcomers the views after it let in.
        pace: Pace,
    },
    /// No longer in the group.
    Out,
}

/// What a view needs, prepared by the driver.
#[derive(Debug)]
pub struct PreparedView<F> {
    /// The view.
    pub view: Arc<View>,
    /// Its control segment, with rows of [`CONTROL_ROW_LEN`] bytes.
    ///
    /// [`CONTROL_ROW_LEN`]: crate::membership::CONTROL_ROW_LEN
    pub control: F,
    /// The subgroups whose epoch begins with this view and that this participant is in.
    pub subgroups: Vec<PreparedSubgroup<F>>,
}

/// What an epoch of a subgroup needs, prepared by the driver.
#[derive(Debug)]
pub struct PreparedSubgroup<F> {
    /// The subgroup.
    pub subgroup: SubgroupId,
    /// The segment with the rows of the epoch's members.
    pub segment: F,
    /// The memory for this participant's account of the epoch's messages.
    pub memory: EpochMemory,
}

/// Why a view cannot be installed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    /// It is not the view that was agreed, or this participant is not in it.
    #[error("view {0} is not this participant's next one")]
    NotNext(u64),
    /// The control segment does not fit the view.
    #[error("the control segment is not one of view {0}")]
    Control(u64),
    /// A subgroup's segment does not fit.
    #[error(transparent)]
    Subgroup(#[from] SpecError),
}

impl<F: Fabric, S: Sink<F>> Engine<F, S> {
    /// Begins as member `id` with the view `first`. What the driver prepares for it goes to
    /// [`install`](Self::install).
    pub fn enter(&self, id: MemberId, first: Arc<View>, rules: Rules) {
        let mut state = self.state();
        state.views = Some(Views {
            id,
            rules,
            phase: Phase::Between {
                next: first,
                suspected: Vec::new(),
                requests: Vec::new(),
                pace: Pace::default(),
            },
        });
    }

    /// For each writer of this participant that has sent anything: its number, and the sequence
    /// number of its last message. Waits for a step that is under way.
    pub fn writer_sequences(&self) -> Vec<(u32, u64)> {
        self.state().seqs.last().collect()
    }

    /// Each of these writers goes on after that sequence number: a participant that has lost its
    /// group enters another as a new member. To be called before the first view is installed.
    pub fn go_on_after(&self, writers: &[(u32, u64)]) {
        let mut state = self.state();
        for (writer, last) in writers {
            state.seqs.go_on_after(*writer, *last);
        }
    }

    /// Installs the first view, or the one that [`EngineEvent::ViewEnded`] announced. Allocates; waits
    /// for a step that is under way.
    pub fn install(&self, prepared: PreparedView<F>) -> Result<(), InstallError> {
        let mut state = self.state();
        let installed = state.install(self.participant(), prepared);
        drop(state);
        // A thread that sleeps between two views has no heartbeat to wake for.
        self.participant().own.nudge();
        installed
    }

    /// Makes a request to the leader. It stays open until a view fulfils it, or [`EngineEvent::Refused`]
    /// reports its refusal.
    pub fn request(&self, request: Request) {
        let mut state = self.state();
        match state.views.as_mut().map(|views| &mut views.phase) {
            Some(Phase::In(membership)) => membership.request(request),
            Some(Phase::Between { requests, .. }) => requests.push(request.into()),
            Some(Phase::Out) | None => {}
        }
        drop(state);
        self.participant().own.nudge();
    }

    /// The driver's answer to [`EngineEvent::Prepare`] with this number: whether everything that
    /// the view needs is there, or what is lacking.
    pub fn prepared(&self, number: u64, answer: Result<(), String>) {
        let mut state = self.state();
        if let Some(Phase::In(membership)) = state.views.as_mut().map(|views| &mut views.phase) {
            membership.prepared(number, answer);
        }
        drop(state);
        self.participant().own.nudge();
    }

    /// The driver's answer to [`EngineEvent::Decide`]: whether the domain goes on with that view, or why
    /// it does not.
    pub fn decided(&self, answer: Result<(), String>) {
        let mut state = self.state();
        let Some(Phase::In(membership)) = state.views.as_mut().map(|views| &mut views.phase) else {
            return;
        };
        if let Some(Action::Out(reason)) = membership.decided(answer) {
            state.go_out(self.participant(), reason);
        }
        drop(state);
        self.participant().own.nudge();
    }

    /// Takes this participant out of its group, because the driver cannot go on with it: no claim
    /// or commit succeeds from now on. [`EngineEvent::Stopped`] tells the reason, unless it has
    /// told another one before. Waits for a step that is under way. Returns false if a commit is
    /// under way: then a later step, or call of this, tells it.
    pub fn stop(&self, why: String) -> bool {
        let mut state = self.state();
        match state.is_closed() {
            true => state.tell_stop(),
            false => state.go_out(self.participant(), OutReason::Driver(why)),
        }
        let is_told = state.is_stopped();
        drop(state);
        self.participant().own.nudge();
        is_told
    }

    /// The members that this one suspects in its view, and why.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn suspects(&self) -> Vec<(Rank, String)> {
        let state = self.state();
        match state.views.as_ref().map(|views| &views.phase) {
            Some(Phase::In(membership)) => {
                let suspects = membership.suspects();
                suspects.map(|(rank, why)| (rank, why.to_owned())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The view of this participant; `None` between two views.
    pub fn view(&self) -> Option<Arc<View>> {
        let state = self.state();
        match state.views.as_ref().map(|views| &views.phase) {
            Some(Phase::In(membership)) => Some(membership.view().clone()),
            _ => None,
        }
    }
}

impl<F: Fabric, S: Sink<F>> State<F, S> {
    /// The membership's part of a step. A few steps in a row may skip it: brief ones, and those in
    /// which a subgroup has changed, after which a thread that is about to sleep takes another step.
    /// Returns whether anything changed, and the time of the next step in nanoseconds.
    pub(crate) fn step_views(
        &mut self,
        participant: &Participant<F>,
        now: u64,
        may_skip: bool,
    ) -> (bool, u64) {
        if may_skip
            && let Some(views) = &mut self.views
            && let Phase::In(membership) = &mut views.phase
            && membership.may_skip_step()
        {
            return (false, membership.due());
        }
        // Taken out of the state, as a step of the membership borrows the subgroups.
        let Some(mut views) = self.views.take() else {
            return (false, 0);
        };
        let Phase::In(membership) = &mut views.phase else {
            self.views = Some(views);
            return (false, 0);
        };
        let action = membership.step(now, &mut Subgroups::new(participant, self));
        let due = membership.due();
        let pushed = membership.take_traffic();
        if pushed.pushes > 0 {
            let (pushes, bytes) = (pushed.pushes as usize, pushed.bytes as usize);
            participant.shared.counters.control.add_all(pushes, bytes);
        }
        let changed = action.is_some();
        match action {
            None => {}
            Some(Action::Prepare(preparation)) => {
                self.sink().event(EngineEvent::Prepare(preparation));
            }
            Some(Action::CallOff) => self.sink().event(EngineEvent::CallOff),
            Some(Action::StopPreparing { number }) => {
                self.sink().event(EngineEvent::StopPreparing { number });
            }
            Some(Action::Refused(refused)) => self.refuse(refused),
            Some(Action::Decide(decision)) => self.sink().event(EngineEvent::Decide(decision)),
            Some(Action::Finish(finish)) => {
                let phase = self.end_view(participant, membership, finish);
                views.phase = phase;
            }
            Some(Action::Out(reason)) => {
                views.phase = Phase::Out;
                self.views = Some(views);
                self.go_out(participant, reason);
                return (true, 0);
            }
        }
        self.views = Some(views);
        (changed, due)
    }

    /// Delivers the touched subgroups up to the trims, and ends their epochs.
    fn end_view(
        &mut self,
        participant: &Participant<F>,
        membership: &mut Membership<F>,
        finish: Finish,
    ) -> Phase<F> {
        let me = membership.view().members[membership.me().index()].id;
        let going_on = finish.next.rank(me).is_some();
        let mut subgroups = Subgroups::new(participant, self);
        let trims = finish.proposal.trims.iter();
        let trims: BTreeMap<SubgroupId, &Trim> = trims.map(|it| (it.subgroup, it)).collect();
        for subgroup in subgroups.touched(&finish.touched) {
            let counts = trims.get(&subgroup).map_or(&[][..], |trim| &trim.counts);
            if subgroups.finish(subgroup, counts).is_err() {
                // It would deliver less than the others.
                let reason = OutReason::Behind { subgroup };
                self.go_out(participant, reason);
                return Phase::Out;
            }
        }
        let old = membership.view().clone();
        let suspected = membership.suspects();
        let suspected = suspected
            .map(|(rank, cause)| (old.members[rank.index()].id, cause.to_owned()))
            .collect();
        let requests = membership.take_requests();
        let pace = membership.next_pace();
        let next = finish.next.clone();
        self.refuse(membership.take_refused());
        self.sink().event(EngineEvent::ViewEnded(finish));
        if !going_on {
            self.go_out(participant, OutReason::Left);
            return Phase::Out;
        }
        Phase::Between {
            next,
            suspected,
            requests,
            pace,
        }
    }

    fn refuse(&mut self, refused: Vec<(Request, Refusal)>) {
        for (request, refusal) in refused {
            let refused = EngineEvent::Refused { request, refusal };
            self.sink().event(refused);
        }
    }

    fn go_out(&mut self, participant: &Participant<F>, reason: OutReason) {
        if let Some(views) = &mut self.views {
            views.phase = Phase::Out;
        }
        self.stop(participant, reason);
    }

    fn install(
        &mut self,
        participant: &Participant<F>,
        prepared: PreparedView<F>,
    ) -> Result<(), InstallError> {
        let PreparedView {
            view,
            control,
            subgroups,
        } = prepared;
        let Some(views) = self.views.as_mut() else {
            return Err(InstallError::NotNext(view.id));
        };
        let rank = view.rank(views.id);
        let (Phase::Between { next, .. }, Some(me)) = (&views.phase, rank) else {
            return Err(InstallError::NotNext(view.id));
        };
        if **next != *view {
            return Err(InstallError::NotNext(view.id));
        }
        if control.members() != view.members.len() || control.me() != me {
            return Err(InstallError::Control(view.id));
        }
        let Phase::Between {
            suspected,
            requests,
            pace,
            ..
        } = core::mem::replace(&mut views.phase, Phase::Out)
        else {
            return Err(InstallError::NotNext(view.id));
        };
        let suspected: Vec<(Rank, String)> = suspected
            .into_iter()
            .filter_map(|(id, cause)| Some((view.rank(id)?, cause)))
            .collect();
        let membership = Membership::new(control, view.clone(), views.rules, &suspected, requests);
        views.phase = Phase::In(Box::new(membership.at_pace(pace)));
        // Subgroups that go on know their members by the new ranks from now on.
        for subgroup in &mut self.subgroups {
            if let Some(spec) = view.subgroup(subgroup.id()) {
                subgroup.spec = spec.clone();
                subgroup.reopen();
            }
        }
        self.activate_all();
        let counters = &participant.shared.counters;
        bump(&counters.views, 1);
        bump(&counters.epochs, subgroups.len() as u64);
        for prepared in subgroups {
            let PreparedSubgroup {
                subgroup,
                segment,
                memory,
            } = prepared;
            let spec = view.subgroup(subgroup);
            let spec = spec.ok_or(SpecError::Segment(subgroup))?;
            Subgroups::new(participant, self).open(spec, segment, memory)?;
        }
        self.sink().event(EngineEvent::ViewBegun(view));
        Ok(())
    }

    /// Suspects a member whose row violates the protocol.
    pub(crate) fn suspect(&mut self, participant: &Participant<F>, rank: Rank, cause: &str) {
        let Some(mut views) = self.views.take() else {
            return;
        };
        if let Phase::In(membership) = &mut views.phase {
            membership.suspect(rank, cause, &mut Subgroups::new(participant, self));
        }
        self.views = Some(views);
    }
}

impl<F: Fabric, S: Sink<F>> Subgroups<'_, F, S> {
    /// The subgroups that a change replaces.
    fn touched(&self, which: &Touched) -> Vec<SubgroupId> {
        let ids = self.all().iter().map(SubgroupState::id);
        ids.filter(|id| which.contains(*id)).collect()
    }
}

impl<F: Fabric, S: Sink<F>> SubgroupEnds for Subgroups<'_, F, S> {
    fn wedge(&mut self, which: &Touched) -> bool {
        let (subgroups, mut context) = self.split();
        let mut done = true;
        for subgroup in subgroups
            .iter_mut()
            .filter(|subgroup| which.contains(subgroup.id()))
        {
            done &= subgroup.wedge(&mut context);
        }
        done
    }

    fn freeze(&mut self, which: &Touched) -> Result<Vec<Trim>, (Rank, String)> {
        let (subgroups, mut context) = self.split();
        let touched = subgroups
            .iter_mut()
            .filter(|subgroup| which.contains(subgroup.id()));
        let mut counts = Vec::new();
        for subgroup in touched {
            match subgroup.freeze(&mut context) {
                Ok(Some(frozen)) => counts.push(Trim {
                    subgroup: subgroup.id(),
                    counts: frozen,
                }),
                // The membership freezes subgroups that are wedged.
                Ok(None) => {}
                Err(MemberFault { place, what }) => {
                    return Err((subgroup.spec.members[place.index()], describe(what)));
                }
            }
        }
        Ok(counts)
    }

    fn fence(&mut self, member: Rank) {
        let (subgroups, _) = self.split();
        for subgroup in subgroups {
            if let Some(place) = subgroup.place(member) {
                subgroup.fence(place);
            }
        }
    }
}

/// Describes what was found in a member's row.
pub(crate) fn describe(found: Fault) -> String {
    match found {
        Fault::ProtocolViolation(what) => what.to_string(),
        Fault::Disagreement {
            position,
            mine,
            theirs,
        } => format!(
            "its order up to position {position} has digest {theirs:016x}, here it is {mine:016x}"
        ),
    }
}
