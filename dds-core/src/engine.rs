//! The engine: evaluates the predicates, changes its own row, pushes last.
//!
//! A state machine without thread, clock or I/O of its own. Whoever calls
//! [`Engine::step`] owns it for the length of the step, by a lock that is only
//! ever tried and never held across user code or a wait: the polling thread of
//! a participant, a committing thread that publishes by itself, or the
//! simulator on virtual time.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use spindle_dds_transport::{Fabric, FailureCause, PeerSet, Rank, Want};

use crate::config::EngineConfig;
use crate::counters::bump;
use crate::group::{Context, Group, Progress};
use crate::ids::{Ring, SubgroupId};
use crate::layout::{LEFT_WORD, Layout};
use crate::outgoing::WriterSeqs;
use crate::pushes::Pushes;
use crate::shared::{Delivery, Handle, LEAVING, OPEN, STOPPED, Shared};
use crate::spec::{SpecError, ViewSpec};
use crate::stream::Nonsense;
use crate::sync::Ordering;

/// The layer above: what the engine hands messages and events to. Called by
/// whoever steps, in order; must not block, and must not call the engine.
pub trait Sink<F: Fabric> {
    /// The next message. Its bytes stay valid beyond the call only when held.
    fn deliver(&mut self, delivery: &Delivery<'_, F>);

    /// The end of a batch of `deliver` calls: a good moment to wake readers.
    fn batch_end(&mut self);

    /// Something happened to the group. Stands in order with the deliveries of
    /// the subgroup it names.
    fn event(&mut self, event: Event);

    /// Whether somebody here reads topics of the subgroup: only then its own
    /// messages are worth waking up for.
    fn is_reading(&self, subgroup: SubgroupId) -> bool;
}

/// What happens to a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A member has left for good, on purpose. What it sent is still being delivered.
    MemberLeft {
        /// Who.
        rank: Rank,
    },
    /// A sender that has left: its last message of this ring has been
    /// delivered. On the ordered ring every member is told at the same position.
    SenderLeft {
        /// Where.
        subgroup: SubgroupId,
        /// In which ring.
        ring: Ring,
        /// Who.
        rank: Rank,
        /// Where the farewell stands: right behind the sender's last message
        /// of this ring, counted as positions of messages are.
        position: u64,
        /// Source timestamp of that last message; 0 when there was none.
        timestamp: i64,
    },
    /// The group has stopped; nothing is delivered any more.
    Stopped(StopReason),
}

/// Why a group stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StopReason {
    /// A member failed without leaving.
    #[error("member {rank} failed: {cause}")]
    PeerFailed {
        /// Who.
        rank: Rank,
        /// How it is known.
        cause: FailureCause,
    },
    /// A member's row makes no sense.
    #[error("member {rank} is broken: {what}")]
    PeerNonsense {
        /// Who.
        rank: Rank,
        /// What was found.
        what: Nonsense,
    },
    /// Two members delivered different orders.
    #[error(
        "subgroup {subgroup}: the order up to position {position} has digest {mine:016x} here and \
         {theirs:016x} at member {rank}"
    )]
    Disagreement {
        /// Where.
        subgroup: SubgroupId,
        /// Position of the checkpoint.
        position: u64,
        /// My digest there.
        mine: u64,
        /// The member that differs.
        rank: Rank,
        /// Its digest there.
        theirs: u64,
    },
}

/// How far a member is in a subgroup's order: exclusive ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Everything below is received here.
    pub received_num: u64,
    /// Everything below is received by all.
    pub stable: u64,
    /// Everything below is delivered here.
    pub delivered_num: u64,
    /// Digest of what is delivered here.
    pub digest: u64,
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Whether anything was received, sent or delivered.
    pub progress: bool,
    /// Whether room came back to a ring of mine.
    pub room: bool,
    /// Whether acknowledgements of others moved a stable position.
    pub stable: bool,
    /// The group has stopped.
    pub stopped: bool,
    /// What the engine would have to be woken for if it went to sleep now.
    pub want: Want,
}

/// A participant's engine in one view.
pub struct Engine<F: Fabric, S> {
    shared: Arc<Shared<F>>,
    state: Mutex<State<S>>,
}

struct State<S> {
    config: EngineConfig,
    groups: Vec<Group>,
    sink: S,
    pushes: Pushes,
    seqs: WriterSeqs,
    /// Members that neither left nor failed, me excluded.
    present: PeerSet,
    stopped: bool,
    left: bool,
}

impl<F: Fabric, S: Sink<F>> Engine<F, S> {
    /// An engine over a fabric whose rows have at least the lengths of the
    /// view's [`Layout`]. Allocates all it will need.
    pub fn new(
        fabric: F,
        spec: &ViewSpec,
        config: EngineConfig,
        sink: S,
    ) -> Result<Self, SpecError> {
        let layout = Layout::new(spec)?;
        let lens = layout.row_lens();
        let fits = fabric.members() == spec.members
            && lens
                .iter()
                .zip(0..)
                .all(|(len, rank)| fabric.row(Rank(rank)).len() >= *len);
        if !fits {
            return Err(SpecError::Members(fabric.members()));
        }
        let mut present: PeerSet = (0..spec.members as u16).map(Rank).collect();
        present.remove(fabric.me());
        let shared = Arc::new(Shared::new(fabric, layout, spec));
        let groups = (0..spec.subgroups.len()).filter_map(|at| Group::new(&shared, spec, at));
        let state = State {
            groups: groups.collect(),
            sink,
            pushes: Pushes::new(config.late_pushes),
            seqs: WriterSeqs::default(),
            present,
            config,
            stopped: false,
            left: false,
        };
        Ok(Self {
            shared,
            state: Mutex::new(state),
        })
    }

    /// Access for the participant's threads.
    pub fn handle(&self) -> Handle<F> {
        Handle(self.shared.clone())
    }

    fn try_state(&self) -> Option<MutexGuard<'_, State<S>>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            // A sink that panicked has lost its own state, not the engine's.
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// One pass over all predicates. `None` when another thread is stepping.
    /// Never blocks, allocates nothing once warm, makes no system call but
    /// what the fabric needs to push and to wake sleepers.
    pub fn step(&self) -> Option<Outcome> {
        let mut state = self.try_state()?;
        let outcome = state.step(&self.shared);
        let counters = &self.shared.counters;
        let counter = if outcome.progress {
            &counters.steps
        } else {
            &counters.idle_steps
        };
        bump(counter, 1);
        Some(outcome)
    }

    /// For a thread that has just committed: publishes the subgroup's messages
    /// by itself if nobody is stepping; otherwise makes sure that whoever
    /// steps, or sleeps, does.
    pub fn publish(&self, subgroup: SubgroupId) {
        let Some(mut state) = self.try_state() else {
            self.shared.fabric.nudge();
            return;
        };
        if state.publish(&self.shared, subgroup) == Want::DataAndAcks {
            // The sleeper may have announced that it wants data only.
            self.shared.fabric.nudge();
        }
    }

    /// Says that this member leaves after what it has committed. Idempotent;
    /// true once all is published and the word is given: then nobody expects
    /// anything of this member any more. False: step and try again. It does not
    /// leave while it holds messages of others: their senders would reuse the
    /// room under it.
    pub fn leave(&self) -> bool {
        let status = &self.shared.status;
        // SeqCst: pairs with `Claim::commit`, which counts itself first.
        let _ = status.compare_exchange(OPEN, LEAVING, Ordering::SeqCst, Ordering::SeqCst);
        if self.shared.committing.load(Ordering::SeqCst) != 0 {
            return false;
        }
        self.try_state()
            .is_some_and(|mut state| state.leave(&self.shared))
    }

    /// Runs `f` on the sink between two steps. `None` when another thread is stepping.
    pub fn with_sink<R>(&self, f: impl FnOnce(&mut S) -> R) -> Option<R> {
        self.try_state().map(|mut state| f(&mut state.sink))
    }

    /// How far this member is in a subgroup, for tests and tools. `None` when
    /// another thread is stepping, or for a subgroup that this participant is
    /// no member of.
    pub fn position(&self, subgroup: SubgroupId) -> Option<Position> {
        let state = self.try_state()?;
        let group = state.groups.iter().find(|group| group.id() == subgroup)?;
        Some(group.position())
    }
}

impl<S> State<S> {
    fn step<F: Fabric>(&mut self, shared: &Arc<Shared<F>>) -> Outcome
    where
        S: Sink<F>,
    {
        let mut progress = Progress::default();
        // Nobody waits for who has left: its copies may be overwritten any time.
        if !self.stopped && !self.left {
            self.look_for_leavers(shared);
            let failure = self.poll_failures(shared);
            // What was received before a failure is still worth its delivery.
            let stepped = self.step_groups(shared, &mut progress);
            if let Err(reason) = stepped.and(failure) {
                self.stop(shared, reason);
                progress.any = true;
            }
        }
        self.pushes.flush(&shared.fabric);
        Outcome {
            progress: progress.any || progress.stable || progress.room,
            room: progress.room,
            stable: progress.stable,
            stopped: self.stopped,
            want: self.want(shared),
        }
    }

    fn context<'a, F: Fabric>(
        &'a mut self,
        shared: &'a Arc<Shared<F>>,
    ) -> (&'a mut Vec<Group>, Context<'a, F, S>) {
        let Self {
            groups,
            config,
            pushes,
            seqs,
            sink,
            ..
        } = self;
        (
            groups,
            Context {
                shared,
                config,
                pushes,
                seqs,
                sink,
            },
        )
    }

    fn step_groups<F: Fabric>(
        &mut self,
        shared: &Arc<Shared<F>>,
        progress: &mut Progress,
    ) -> Result<(), StopReason>
    where
        S: Sink<F>,
    {
        let (groups, mut context) = self.context(shared);
        for group in groups {
            let of_group = group.step(&mut context)?;
            progress.any |= of_group.any;
            progress.room |= of_group.room;
            progress.stable |= of_group.stable;
        }
        Ok(())
    }

    fn publish<F: Fabric>(&mut self, shared: &Arc<Shared<F>>, subgroup: SubgroupId) -> Want
    where
        S: Sink<F>,
    {
        if self.stopped || self.left {
            return Want::Data;
        }
        let (groups, mut context) = self.context(shared);
        let group = groups.iter_mut().find(|group| group.id() == subgroup);
        let published = group.map_or(Ok(()), |group| group.publish(&mut context));
        if let Err(reason) = published {
            self.stop(shared, reason);
        }
        self.pushes.flush(&shared.fabric);
        self.want_of(shared, subgroup)
    }

    /// Members that have left say so in their rows, after their last guards.
    fn look_for_leavers<F: Fabric>(&mut self, shared: &Arc<Shared<F>>)
    where
        S: Sink<F>,
    {
        for rank in self.present.iter() {
            if shared.fabric.row(rank).load(LEFT_WORD) == 1 {
                self.present.remove(rank);
                let config = &self.config;
                self.groups
                    .iter_mut()
                    .for_each(|group| group.member_left(rank, config));
                self.sink.event(Event::MemberLeft { rank });
            }
        }
    }

    fn poll_failures<F: Fabric>(&mut self, shared: &Arc<Shared<F>>) -> Result<(), StopReason> {
        let mut first = Ok(());
        while let Some(failure) = shared.fabric.poll() {
            let rank = failure.peer;
            // Its last words may have come with the news of its end.
            if self.present.contains(rank) && shared.fabric.row(rank).load(LEFT_WORD) != 1 {
                shared.fabric.fence(rank);
                self.present.remove(rank);
                first = first.and(Err(StopReason::PeerFailed {
                    rank,
                    cause: failure.cause,
                }));
            }
        }
        first
    }

    fn stop<F: Fabric>(&mut self, shared: &Arc<Shared<F>>, reason: StopReason)
    where
        S: Sink<F>,
    {
        self.stopped = true;
        shared.status.store(STOPPED, Ordering::SeqCst);
        self.sink.event(Event::Stopped(reason));
    }

    fn leave<F: Fabric>(&mut self, shared: &Arc<Shared<F>>) -> bool {
        if self.left || self.stopped {
            return true;
        }
        let (groups, mut context) = self.context(shared);
        for group in groups {
            // Only its own row is read here; what is wrong there, the next step tells.
            let _ = group.publish(&mut context);
        }
        let ready = |group: &Group| group.is_published(shared) && !group.is_holding(shared);
        let ready = self.groups.iter().all(ready);
        if ready {
            self.left = true;
            self.pushes.address(&self.present);
            self.pushes.word(&shared.fabric, LEFT_WORD, 1);
        }
        self.pushes.flush(&shared.fabric);
        ready
    }

    fn want<F: Fabric>(&self, shared: &Arc<Shared<F>>) -> Want
    where
        S: Sink<F>,
    {
        let me = shared.fabric.me();
        let acks = shared.ack_waiters.load(Ordering::SeqCst) != 0
            || self
                .groups
                .iter()
                .any(|group| group.wants_acks(&self.sink, me));
        if acks { Want::DataAndAcks } else { Want::Data }
    }

    fn want_of<F: Fabric>(&self, shared: &Arc<Shared<F>>, subgroup: SubgroupId) -> Want
    where
        S: Sink<F>,
    {
        let group = self.groups.iter().find(|group| group.id() == subgroup);
        let me = shared.fabric.me();
        let acks = shared.ack_waiters.load(Ordering::SeqCst) != 0
            || group.is_some_and(|group| group.wants_acks(&self.sink, me));
        if acks { Want::DataAndAcks } else { Want::Data }
    }
}

impl<F: Fabric, S> fmt::Debug for Engine<F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("groups", &self.shared.groups.len())
            .finish_non_exhaustive()
    }
}
