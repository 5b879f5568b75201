//! The engine: evaluates the predicates, changes its own row, pushes last.
//!
//! A state machine without thread, clock or I/O of its own. The thread that calls
//! [`Engine::step`] owns it for the length of the step, by a lock that is only
//! ever tried and never held across user code or a wait: the polling thread of
//! a participant, a committing thread that publishes by itself, or the
//! simulator on virtual time.

pub(crate) mod active_set;
pub(crate) mod engine_lock;
pub(crate) mod figures;
pub(crate) mod handle;
pub(crate) mod subgroups;
pub(crate) mod views;

use std::fmt;
use std::sync::Arc;

use spindle_dds_transport::{Fabric, WakeInterest};

use crate::config::EngineConfig;
use crate::counters::bump;
use crate::engine::active_set::{ActiveSet, Kind};
use crate::engine::engine_lock::{EngineLock, Owner};
use crate::engine::handle::{EngineHandle, Participant};
use crate::engine::views::{Views, describe};
use crate::ids::SubgroupId;
use crate::membership::OutReason;
use crate::sink::{EngineEvent, Sink};
use crate::subgroup::claim::{Claim, ClaimError, CommitMeta};
use crate::subgroup::handle::{STOPPED, SubgroupHandle};
use crate::subgroup::outgoing::WriterSeqs;
use crate::subgroup::pushes::Pushes;
use crate::subgroup::{Context, Position, Progress, Seen, SubgroupState, Trouble};
use crate::sync::Ordering;

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepOutcome {
    /// Whether anything was received, sent or delivered.
    pub progress: bool,
    /// Whether room came back to a ring of mine.
    pub room: bool,
    /// Whether acknowledgements of others moved a stable position.
    pub stable: bool,
    /// The group has stopped.
    pub stopped: bool,
    /// What the engine would have to be woken for if it went to sleep now.
    pub want: WakeInterest,
    /// When the next step is due whatever happens, in the time of `step`; 0 if never.
    pub due: u64,
}

/// At which epochs at rest a step looks that moves nothing. Of those that do, each
/// [`STEPS_A_LOOK`](crate::engine::active_set::STEPS_A_LOOK)th looks at one. A brief one may also pass over
/// the view, where no member has said anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// All.
    Whole,
    /// Those where something has happened of late, and one of the others, in turn.
    Brief,
}

/// A participant's engine: its epochs, over the segments that it is given.
pub struct Engine<F: Fabric, S> {
    participant: Arc<Participant<F>>,
    state: EngineLock<State<F, S>>,
}

pub(crate) struct State<F, S> {
    pub(crate) config: EngineConfig,
    pub(crate) groups: Vec<SubgroupState<F>>,
    active_set: ActiveSet,
    sink: S,
    pushes: Pushes,
    pub(crate) seqs: WriterSeqs,
    stopped: bool,
    /// Its part in the sequence of views, if it takes part.
    pub(crate) views: Option<Views<F>>,
}

impl<F: Fabric, S: Sink<F>> Engine<F, S> {
    /// An engine without epochs, which sleeps in a segment that this participant has to itself:
    /// its threads are woken there.
    pub fn new(own: F, config: EngineConfig, sink: S) -> Self {
        let participant = Participant::new(own);
        let state = State {
            groups: Vec::new(),
            active_set: ActiveSet::default(),
            sink,
            pushes: Pushes::new(participant.common.clone()),
            seqs: WriterSeqs::default(),
            config,
            stopped: false,
            views: None,
        };
        Self {
            participant: Arc::new(participant),
            state: EngineLock::new(state),
        }
    }

    /// Access for the participant's threads.
    pub fn handle(&self) -> EngineHandle<F> {
        EngineHandle(self.participant.clone())
    }

    pub(crate) fn participant(&self) -> &Participant<F> {
        &self.participant
    }

    /// Waits for a step that is under way.
    pub(crate) fn state(&self) -> Owner<'_, State<F, S>> {
        self.state.take()
    }

    #[inline]
    fn try_state(&self) -> Option<Owner<'_, State<F, S>>> {
        self.state.try_take()
    }

    /// One pass over all predicates, at `now` nanoseconds of a clock that does
    /// not go back. `None` when another thread is stepping. Never blocks,
    /// allocates nothing once warm, makes no system call but what the fabric
    /// needs to push and to wake sleepers. Without progress, there is nothing to do in any
    /// epoch: this is the look before one sleeps.
    pub fn step(&self, now: u64) -> Option<StepOutcome> {
        self.step_as(now, Look::Whole)
    }

    /// The same for who steps again at once, whether there was something to do or not: of
    /// epochs in which nothing has happened of late it looks at one, and at another the next
    /// time, so that it costs the same however many there are; and at the view every few
    /// times, while no member has said anything there. It is no reason to sleep.
    pub fn step_briefly(&self, now: u64) -> Option<StepOutcome> {
        self.step_as(now, Look::Brief)
    }

    fn step_as(&self, now: u64, look: Look) -> Option<StepOutcome> {
        let mut state = self.try_state()?;
        let outcome = state.step(&self.participant, now, look);
        let counters = &self.participant.common.counters;
        let counter = if outcome.progress {
            &counters.steps
        } else {
            &counters.idle_steps
        };
        bump(counter, 1);
        Some(outcome)
    }

    fn leave_commit(&self, subgroup: &SubgroupHandle<F>) {
        let left_commits = &self.participant.common.left_commits;
        left_commits.store(true, Ordering::Relaxed);
        subgroup.nudge();
    }

    /// Commits a claim and publishes it, and what was committed before; if another thread is
    /// stepping, makes sure that the next step does. Which message of its ring it
    /// is: [`Claim::committed`] makes a receipt of that.
    pub fn send(
        &self,
        claim: &mut Claim<F>,
        used: u32,
        meta: &CommitMeta,
    ) -> Result<u64, ClaimError> {
        let Some(mut state) = self.try_state() else {
            let index = claim.finish(used, meta)?;
            self.leave_commit(claim.subgroup());
            return Ok(index);
        };
        let (index, want) = state.send(&self.participant, claim, used, meta)?;
        if want == WakeInterest::DataAndAcks {
            // The sleeper may have announced that it wants data only. It has not looked at
            // what it sleeps on unless it has had the state since.
            claim.subgroup().fabric.nudge_under_lock();
        }
        Ok(index)
    }

    /// Runs `f` on the sink between two steps. `None` when another thread is stepping.
    pub fn with_sink<R>(&self, f: impl FnOnce(&mut S) -> R) -> Option<R> {
        self.try_state().map(|mut state| f(&mut state.sink))
    }

    /// How far this member is in a subgroup, for tests and tools. `None` when
    /// another thread is stepping, or for a subgroup that has no epoch here.
    pub fn position(&self, subgroup: SubgroupId) -> Option<Position> {
        self.with_group(subgroup, SubgroupState::position)
    }

    /// Whether this member has received what stands at a position of the subgroup's order, in
    /// the epoch that it has now or before it. `None` as for [`position`](Self::position).
    pub fn has_received(&self, subgroup: SubgroupId, position: u64) -> Option<bool> {
        self.with_group(subgroup, |group| group.has_received(position))
    }

    fn with_group<R>(
        &self,
        subgroup: SubgroupId,
        ask: impl FnOnce(&SubgroupState<F>) -> R,
    ) -> Option<R> {
        let state = self.try_state()?;
        let group = state.groups.iter().find(|group| group.id() == subgroup)?;
        Some(ask(group))
    }
}

impl<F: Fabric, S: Sink<F>> State<F, S> {
    fn step(&mut self, participant: &Participant<F>, now: u64, look: Look) -> StepOutcome {
        let mut progress = Progress::default();
        let mut due = 0;
        if !self.stopped {
            self.step_groups(participant, look, &mut progress);
            let (changed, when) = self.step_views(participant, now, look);
            progress.any |= changed;
            due = when;
        }
        StepOutcome {
            progress: progress.is_any(),
            room: progress.room,
            stable: progress.stable,
            stopped: self.stopped,
            want: want(participant, self.wants_acks()),
            due,
        }
    }

    /// The epochs, and what they need.
    pub(crate) fn split(&mut self) -> (&mut Vec<SubgroupState<F>>, Context<'_, S>) {
        let Self {
            groups,
            config,
            pushes,
            seqs,
            sink,
            ..
        } = self;
        let context = Context {
            config,
            pushes,
            seqs,
            sink,
        };
        (groups, context)
    }

    /// Those that are awake; and others, at fewer of which it looks if there is enough to do
    /// as it is.
    fn step_groups(&mut self, participant: &Participant<F>, look: Look, progress: &mut Progress) {
        // Before the first look: who leaves more meanwhile says so again.
        if participant.common.left_commits.load(Ordering::Relaxed) {
            participant
                .common
                .left_commits
                .swap(false, Ordering::AcqRel);
        }
        if participant.common.left_work.take() {
            self.wake_stirred();
        }
        let mut at = 0;
        while let Some(awake) = self.active_set.next(at, Kind::Awake) {
            self.step_group(participant, awake, progress);
            at = awake + 1;
        }
        if progress.is_any() {
            if self.active_set.is_time_to_look() {
                self.take_turn(participant, Kind::Resting, progress);
            }
            return;
        }
        let kind = match look {
            Look::Whole => Kind::Resting,
            Look::Brief => Kind::Dozing,
        };
        at = 0;
        while let Some(resting) = self.active_set.next(at, kind) {
            self.look_at(participant, resting, progress);
            at = resting + 1;
        }
        if look == Look::Brief {
            self.take_turn(participant, Kind::Asleep, progress);
        }
    }

    /// Looks at the epoch of a kind whose turn it is.
    fn take_turn(&mut self, participant: &Participant<F>, kind: Kind, progress: &mut Progress) {
        if let Some(resting) = self.active_set.take_turn(kind) {
            self.look_at(participant, resting, progress);
        }
    }

    /// Whether there is news in an epoch at rest: then it is stepped.
    fn look_at(&mut self, participant: &Participant<F>, resting: usize, progress: &mut Progress) {
        let (groups, context) = self.split();
        match groups[resting].look(&context) {
            Seen::News => {
                self.active_set.wake(resting);
                self.step_group(participant, resting, progress);
            }
            Seen::FallsAsleep => self.active_set.put_to_sleep(resting),
            Seen::Nothing => {}
        }
    }

    fn step_group(&mut self, participant: &Participant<F>, at: usize, progress: &mut Progress) {
        let (groups, mut context) = self.split();
        let group = &mut groups[at];
        match group.step(&mut context, progress) {
            Ok(rests) => {
                if rests {
                    let wants_acks = group.wants_acks(&*context.sink);
                    self.active_set.lay(at, wants_acks);
                }
            }
            Err(trouble) => self.blame(participant, at, trouble),
        }
    }

    /// Each epoch is looked at again: something has changed that concerns them.
    pub(crate) fn wake_subgroups(&mut self) {
        self.active_set.wake_all(self.groups.len());
    }

    /// Threads have left something in epochs at rest.
    fn wake_stirred(&mut self) {
        let mut at = 0;
        while let Some(resting) = self.active_set.next(at, Kind::Resting) {
            if self.groups[resting].has_new_work() {
                self.active_set.wake(resting);
            }
            at = resting + 1;
        }
    }

    /// Whether acknowledgements of others would let an epoch go on.
    fn wants_acks(&self) -> bool {
        let next = |from| self.active_set.next(from, Kind::Awake);
        let mut awake = std::iter::successors(next(0), |at| next(at + 1));
        self.active_set.wants_acks() || awake.any(|at| self.groups[at].wants_acks(&self.sink))
    }

    /// What stands in the row of a member of an epoch breaks the protocol: the member is suspected.
    #[cold]
    fn blame(&mut self, participant: &Participant<F>, at: usize, trouble: Trouble) {
        let rank = self.groups[at].spec.members[trouble.place.index()];
        self.suspect(participant, rank, &describe(trouble.what));
    }

    /// Where an epoch stands that can be published in. What is, waits for its delivery.
    fn wake_subgroup(&mut self, subgroup: &Arc<SubgroupHandle<F>>) -> Option<usize> {
        if self.stopped {
            return None;
        }
        let at = self.find(subgroup)?;
        self.active_set.wake(at);
        Some(at)
    }

    /// Where an epoch stands in the list: mostly where it stood, so that it costs the same
    /// however many there are.
    fn find(&self, subgroup: &Arc<SubgroupHandle<F>>) -> Option<usize> {
        let is_it = |group: &SubgroupState<F>| Arc::ptr_eq(&group.handle, subgroup);
        let known = subgroup.listed_at.load(Ordering::Relaxed) as usize;
        if self.groups.get(known).is_some_and(is_it) {
            return Some(known);
        }
        let at = self.groups.iter().position(is_it)?;
        subgroup.listed_at.store(at as u64, Ordering::Relaxed);
        Some(at)
    }

    /// Which message it is, and what the engine would have to be woken for.
    #[inline]
    fn send(
        &mut self,
        participant: &Participant<F>,
        claim: &mut Claim<F>,
        used: u32,
        meta: &CommitMeta,
    ) -> Result<(u64, WakeInterest), ClaimError> {
        let Some(at) = self.wake_subgroup(claim.subgroup()) else {
            return Ok((claim.finish(used, meta)?, WakeInterest::Data));
        };
        let (groups, mut context) = self.split();
        let group = &mut groups[at];
        let index = group.send_claim(claim, (used, meta), &mut context)?;
        let wants_acks = group.wants_acks_of_class(claim.class(), &*context.sink);
        Ok((index, want(participant, wants_acks)))
    }

    pub(crate) fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    pub(crate) fn stop(&mut self, participant: &Participant<F>, reason: OutReason) {
        self.stopped = true;
        participant.close(STOPPED);
        self.end_batches();
        self.sink.event(EngineEvent::Stopped(reason));
    }

    /// No step follows: what has been delivered, the layer above is told.
    fn end_batches(&mut self) {
        let (groups, mut context) = self.split();
        groups.iter_mut().for_each(|it| it.end_batch(&mut context));
    }
}

fn want<F: Fabric>(participant: &Participant<F>, wants_acks: bool) -> WakeInterest {
    let waiters = participant.common.ack_waiters.load(Ordering::SeqCst);
    if waiters != 0 || wants_acks {
        WakeInterest::DataAndAcks
    } else {
        WakeInterest::Data
    }
}

impl<F: Fabric, S> fmt::Debug for Engine<F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}
