//! The engine: evaluates the predicates, changes its own row, pushes last.
//!
//! A state machine without thread, clock or I/O of its own. The thread that calls
//! [`Engine::step`] owns its state for the length of the step, by a lock that is only tried on
//! the path of a message, and never held across user code or a wait. Four kinds of callers step
//! it: the participant's polling thread, a reader's thread that polls while it waits, a
//! committing thread that publishes its message itself, and the simulator in virtual time.
//!
//! One step:
//!
//! ```text
//!   active subgroups: receive, null-send, send, deliver --> Sink::deliver
//!   idle subgroups:   where others have news: compare recorded words; a difference makes one active
//!   membership:       heartbeats, suspicions, view change --> EngineEvent
//! ```

pub(crate) mod active_set;
pub(crate) mod engine_lock;
pub(crate) mod figures;
pub(crate) mod handle;
pub(crate) mod memory_map;
mod polling;
mod subgroup_news;
pub(crate) mod subgroups;
pub(crate) mod views;

use std::fmt;
use std::sync::Arc;

use spindle_dds_transport::{Fabric, WakeInterest};

use crate::config::EngineConfig;
use crate::counters::bump;
use crate::engine::active_set::{ActiveSet, Activity};
use crate::engine::engine_lock::{EngineGuard, EngineLock};
use crate::engine::handle::{EngineHandle, Participant};
use crate::engine::subgroup_news::SubgroupNews;
use crate::engine::views::{Views, describe};
use crate::ids::SubgroupId;
use crate::membership::OutReason;
use crate::sink::{EngineEvent, Sink};
use crate::subgroup::claim::{Claim, ClaimError, CommitMeta};
use crate::subgroup::handle::{STOPPED, SubgroupHandle};
use crate::subgroup::outgoing::WriterSeqs;
use crate::subgroup::pushes::Pushes;
use crate::subgroup::{Context, MemberFault, Position, Progress, SubgroupFigures, SubgroupState};
use crate::sync::{Ordering, fence};

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepOutcome {
    /// Whether anything was received, sent or delivered.
    pub progress: bool,
    /// Whether room came back to a ring of this member.
    pub room: bool,
    /// Whether acknowledgements of other members advanced a stable position, or a member has told that
    /// it has persisted more.
    pub stable: bool,
    /// Whether the group has stopped.
    pub stopped: bool,
    /// What must wake the thread if it goes to sleep now.
    pub want: WakeInterest,
    /// Latest time of the next step, in nanoseconds of the clock of `step`; 0 for no limit.
    pub due: u64,
}

/// Which idle subgroups a step without progress polls, where the fabric does not know which of them
/// have news. (Of the steps with progress, one in
/// [`STEPS_PER_POLL`](crate::engine::active_set::STEPS_PER_POLL) polls one.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepScope {
    /// All.
    Full,
    /// The warm ones, and one cold one in turn. May also leave out the membership, while no
    /// member has written anything for it.
    Brief,
}

/// A participant's engine: its subgroups and its membership, over the segments that it is given.
pub struct Engine<F: Fabric, S> {
    participant: Arc<Participant<F>>,
    state: EngineLock<State<F, S>>,
}

pub(crate) struct State<F, S> {
    pub(crate) config: EngineConfig,
    /// In no order; [`ActiveSet`] and `SubgroupHandle::listed_at` know them by their indexes.
    pub(crate) subgroups: Vec<SubgroupState<F>>,
    active_set: ActiveSet,
    news: SubgroupNews,
    sink: S,
    /// Kept between steps for its allocation only.
    pushes: Pushes,
    /// Counts of each writer, across epochs.
    pub(crate) seqs: WriterSeqs,
    /// Room came to a ring between two steps.
    room_came: bool,
    /// Once true, no step changes or delivers anything.
    is_closed: bool,
    /// Why it is closed, until that is told.
    closed_for: Option<OutReason>,
    /// True once it is told that the group has stopped.
    stopped: bool,
    /// `None` until [`Engine::enter`], and while a step of the membership borrows the state.
    pub(crate) views: Option<Views<F>>,
}

impl<F: Fabric, S: Sink<F>> Engine<F, S> {
    /// An engine without subgroups. `own` is a segment of this participant alone: its threads
    /// sleep and are woken there.
    pub fn new(own: F, config: EngineConfig, sink: S) -> Self {
        let participant = Participant::new(own);
        let state = State {
            subgroups: Vec::new(),
            active_set: ActiveSet::default(),
            news: SubgroupNews::default(),
            sink,
            pushes: Pushes::new(participant.shared.clone()),
            seqs: WriterSeqs::default(),
            config,
            room_came: false,
            is_closed: false,
            closed_for: None,
            stopped: false,
            views: None,
        };
        Self {
            participant: Arc::new(participant),
            state: EngineLock::new(state),
        }
    }

    /// Access for the participant's other threads.
    pub fn handle(&self) -> EngineHandle<F> {
        EngineHandle(self.participant.clone())
    }

    pub(crate) fn participant(&self) -> &Participant<F> {
        &self.participant
    }

    /// Waits for the end of a step in progress.
    pub(crate) fn state(&self) -> EngineGuard<'_, State<F, S>> {
        self.state.lock()
    }

    #[inline]
    fn try_state(&self) -> Option<EngineGuard<'_, State<F, S>>> {
        self.state.try_lock()
    }

    /// Evaluates all predicates once, at `now` nanoseconds of a monotonic clock. Returns `None`
    /// if another thread is stepping. Never blocks, does not allocate once warm, and makes no
    /// system calls except those that the fabric needs to push and to wake sleepers. An outcome
    /// without progress means that no subgroup has anything to do: a thread takes this step
    /// before it sleeps.
    pub fn step(&self, now: u64) -> Option<StepOutcome> {
        self.step_as(now, StepScope::Full)
    }

    /// [`step`](Self::step) for a thread that steps again at once: polls one cold subgroup, the
    /// next one each time, so that its cost does not grow with their number, and steps the
    /// membership every few times while no member has written anything for it. An outcome
    /// without progress does not permit to sleep.
    pub fn step_briefly(&self, now: u64) -> Option<StepOutcome> {
        self.step_as(now, StepScope::Brief)
    }

    fn step_as(&self, now: u64, scope: StepScope) -> Option<StepOutcome> {
        let mut state = self.try_state()?;
        let outcome = state.step(&self.participant, now, scope);
        let counters = &self.participant.shared.counters;
        let counter = if outcome.progress {
            &counters.steps
        } else {
            &counters.idle_steps
        };
        bump(counter, 1);
        Some(outcome)
    }

    /// Leaves a committed message to the thread that steps.
    fn leave_commit(&self, subgroup: &SubgroupHandle<F>) {
        let left_commits = &self.participant.shared.left_commits;
        left_commits.store(true, Ordering::Relaxed);
        subgroup.nudge();
    }

    /// Commits a claim, and publishes it with all that was committed before; if another thread
    /// is stepping, makes sure that the next step publishes it. Returns the message's index in
    /// its ring, from which [`Claim::committed`] makes a receipt.
    pub fn send(
        &self,
        claim: &mut Claim<F>,
        used: u32,
        meta: &CommitMeta,
    ) -> Result<u64, ClaimError> {
        let Some(mut state) = self.try_state() else {
            let index = claim.commit(used, meta)?;
            self.leave_commit(claim.subgroup());
            return Ok(index);
        };
        let (index, want) = state.send(&self.participant, claim, used, meta)?;
        if want != WakeInterest::Data {
            // A sleeper may have announced that it wants less. Its second step before it
            // sleeps needs the lock, which is held here.
            claim.subgroup().fabric.nudge_under_lock();
        }
        Ok(index)
    }

    /// Frees what all members have released of this member's rings in a subgroup, and restarts those
    /// that are empty then. A thread that claims one message after the other does so now and then: by
    /// the time the engine steps, the next message is in the ring already. Does nothing if another
    /// thread is stepping.
    #[cold]
    pub fn reclaim(&self, subgroup: &Arc<SubgroupHandle<F>>) {
        let stretch = &subgroup.config.ring_stretch;
        let mut rings = subgroup.send_rings.iter().flatten();
        if !rings.any(|ring| ring.has_used(stretch)) {
            return;
        }
        let Some(mut state) = self.try_state() else {
            return;
        };
        if state.reclaim(&self.participant, subgroup) {
            // Either a thread that waits for room finds it, or it is seen here: it counts itself as
            // waiting, and tries then.
            fence(Ordering::SeqCst);
            let waiters = &self.participant.shared.ack_waiters;
            if waiters.load(Ordering::Relaxed) != 0 {
                drop(state);
                self.participant.own.nudge();
            }
        }
    }

    /// Runs `f` on the sink between two steps. Returns `None` if another thread is stepping.
    pub fn with_sink<R>(&self, f: impl FnOnce(&mut S) -> R) -> Option<R> {
        self.try_state().map(|mut state| f(&mut state.sink))
    }

    /// This member's position in a subgroup, for tests and tools. `None` if another thread is
    /// stepping, or this member has no epoch of the subgroup.
    pub fn position(&self, subgroup: SubgroupId) -> Option<Position> {
        self.with_subgroup(subgroup, SubgroupState::position)
    }

    /// Whether this member has received the message at a position of the subgroup's order, in
    /// the present epoch or an earlier one. `None` as for [`position`](Self::position).
    pub fn has_received(&self, subgroup: SubgroupId, position: u64) -> Option<bool> {
        self.with_subgroup(subgroup, |state| state.has_received(position))
    }

    /// A snapshot of a subgroup. `None` as for [`position`](Self::position).
    pub fn subgroup_figures(&self, subgroup: SubgroupId) -> Option<SubgroupFigures> {
        self.with_subgroup(subgroup, SubgroupState::figures)
    }

    fn with_subgroup<R>(
        &self,
        subgroup: SubgroupId,
        ask: impl FnOnce(&SubgroupState<F>) -> R,
    ) -> Option<R> {
        let state = self.try_state()?;
        let found = state.subgroups.iter().find(|it| it.id() == subgroup)?;
        Some(ask(found))
    }
}

impl<F: Fabric, S: Sink<F>> State<F, S> {
    fn step(&mut self, participant: &Participant<F>, now: u64, scope: StepScope) -> StepOutcome {
        let mut progress = Progress::default();
        let mut due = 0;
        if !self.is_closed {
            self.step_subgroups(participant, scope, &mut progress);
            let may_skip = scope == StepScope::Brief || progress.is_any();
            let (changed, when) = self.step_views(participant, now, may_skip);
            progress.any |= changed;
            due = when;
            progress.room |= std::mem::take(&mut self.room_came);
        } else if !self.stopped {
            self.tell_stop();
            progress.any = true;
        }
        StepOutcome {
            progress: progress.is_any(),
            room: progress.room,
            stable: progress.stable || progress.persisted,
            stopped: self.stopped,
            want: want(participant, self.wants_acks()),
            due,
        }
    }

    /// The subgroups, and what their predicates need besides.
    pub(crate) fn split(&mut self) -> (&mut Vec<SubgroupState<F>>, Context<'_, S>) {
        let Self {
            subgroups,
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
        (subgroups, context)
    }

    /// Whether acknowledgements of other members would let a subgroup proceed.
    fn wants_acks(&self) -> bool {
        let next = |from| self.active_set.next(from, Activity::Active);
        let mut active = std::iter::successors(next(0), |at| next(at + 1));
        let sink = &self.sink;
        self.active_set.wants_acks() || active.any(|at| self.subgroups[at].wants_acks(sink))
    }

    /// Suspects a member whose row of a subgroup violates the protocol.
    #[cold]
    fn suspect_member(&mut self, participant: &Participant<F>, at: usize, trouble: MemberFault) {
        let rank = self.subgroups[at].spec.members[trouble.place.index()];
        self.suspect(participant, rank, &describe(trouble.what));
    }

    /// Makes a subgroup active for a publication, which has to be delivered here too. Returns
    /// its index, or `None` if nothing can be published in it any more.
    fn activate(&mut self, subgroup: &Arc<SubgroupHandle<F>>) -> Option<usize> {
        if self.is_closed {
            return None;
        }
        let at = self.find(subgroup)?;
        self.active_set.set_active(at);
        Some(at)
    }

    /// The index of a subgroup in the list. The handle caches it, so that the usual case does
    /// not depend on their number.
    fn find(&self, subgroup: &Arc<SubgroupHandle<F>>) -> Option<usize> {
        let is_it = |state: &SubgroupState<F>| Arc::ptr_eq(&state.handle, subgroup);
        let known = subgroup.listed_at.load(Ordering::Relaxed) as usize;
        if self.subgroups.get(known).is_some_and(is_it) {
            return Some(known);
        }
        let at = self.subgroups.iter().position(is_it)?;
        subgroup.listed_at.store(at as u64, Ordering::Relaxed);
        Some(at)
    }

    /// Commits a claim, and publishes it if its subgroup is open. Returns the message's index in
    /// its ring, and what must wake the engine's thread if it sleeps.
    #[inline]
    fn send(
        &mut self,
        participant: &Participant<F>,
        claim: &mut Claim<F>,
        used: u32,
        meta: &CommitMeta,
    ) -> Result<(u64, WakeInterest), ClaimError> {
        let Some(at) = self.activate(claim.subgroup()) else {
            return Ok((claim.commit(used, meta)?, WakeInterest::Data));
        };
        let (subgroups, mut context) = self.split();
        let subgroup = &mut subgroups[at];
        let index = subgroup.send_claim(claim, (used, meta), &mut context)?;
        let wants_acks = subgroup.wants_acks_of_class(claim.class(), &*context.sink);
        Ok((index, want(participant, wants_acks)))
    }

    /// Frees what all members have released of this member's rings in a subgroup. Returns whether
    /// room came, which the next step tells.
    fn reclaim(&mut self, participant: &Participant<F>, subgroup: &Arc<SubgroupHandle<F>>) -> bool {
        let Some(at) = self.find(subgroup).filter(|_| !self.is_closed) else {
            return false;
        };
        let (subgroups, mut context) = self.split();
        match subgroups[at].reclaim_early(subgroup, &mut context) {
            Ok(room) => self.room_came |= room,
            Err(trouble) => self.suspect_member(participant, at, trouble),
        }
        self.room_came
    }

    pub(crate) fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Whether no step changes or delivers anything any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether it has been told that the group has stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Closes the gates of all subgroups for good. Once no commit is under way, it is told that the
    /// group has stopped, here or by a later step.
    pub(crate) fn stop(&mut self, participant: &Participant<F>, reason: OutReason) {
        if self.is_closed {
            return;
        }
        self.is_closed = true;
        participant.close(STOPPED);
        self.closed_for = Some(reason);
        self.tell_stop();
    }

    /// Tells that the group has stopped, unless a commit is under way. Before that, it publishes the
    /// last messages, as no step follows: each commit that succeeds is published. (A commit under
    /// way may have taken its position without having written its header, and holds back those
    /// after it.)
    #[cold]
    #[inline(never)]
    pub(crate) fn tell_stop(&mut self) {
        let is_busy = |it: &SubgroupState<F>| it.handle.gate.is_busy();
        if self.closed_for.is_none() || self.subgroups.iter().any(is_busy) {
            return;
        }
        let (subgroups, mut context) = self.split();
        for subgroup in subgroups {
            subgroup.publish(&subgroup.handle.clone(), &mut context);
        }
        if let Some(reason) = self.closed_for.take() {
            self.stopped = true;
            self.end_batches();
            self.sink.event(EngineEvent::Stopped(reason));
        }
    }

    /// Ends all open batches, as no step follows.
    fn end_batches(&mut self) {
        let (subgroups, mut context) = self.split();
        subgroups
            .iter_mut()
            .for_each(|it| it.end_batch(&mut context));
    }
}

/// What must wake a thread that goes to sleep: acknowledgements only where something waits for them,
/// releases only where a thread does.
fn want<F: Fabric>(participant: &Participant<F>, wants_acks: bool) -> WakeInterest {
    let waiters = participant.shared.ack_waiters.load(Ordering::SeqCst);
    match (waiters, wants_acks) {
        (0, false) => WakeInterest::Data,
        (0, true) => WakeInterest::Stability,
        _ => WakeInterest::Room,
    }
}

impl<F: Fabric, S> fmt::Debug for Engine<F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}
