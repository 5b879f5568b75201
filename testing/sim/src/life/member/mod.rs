//! A process: its engine and its driver. Above the engine are its `applications` and its
//! `recorder`.

mod applications;
mod blunder;
mod logged;
mod recorder;
mod returning;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use spindle_dds_core::membership::{
    DeliveredHistory, Detection, Endpoint, Member as ViewMember, MemberId, Notes, OutReason,
    Preparation, Request, Rules, Update, View,
};
use spindle_dds_core::{
    AckWait, Committed, DeliveryClass, Engine, PreparedView, StepOutcome, SubgroupId,
};
use spindle_dds_transport::memory::Region;
use spindle_dds_transport::sim::{NodeId, Rng, SimFabric};
use spindle_dds_transport::{Fabric, WakeInterest};

use self::applications::{Building, Committing, Receipt};
pub use self::blunder::Blunder;
use self::recorder::Recorder;
pub(super) use self::recorder::SinkEvent;
use super::facts::{EpochKey, Fact};
use super::plan::LifePlan;
use super::storage::Storage;

/// State of a member's polling thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Awake,
    Idle(WakeInterest),
    Announced(WakeInterest),
    Asleep,
}

/// A way to step an engine.
type Stepped = fn(&Engine<SimFabric, Recorder>, u64) -> Option<StepOutcome>;

/// A process.
pub(super) struct Member {
    pub(super) id: MemberId,
    pub(super) node: NodeId,
    pub(super) engine: Engine<SimFabric, Recorder>,
    pub(super) mode: Mode,
    blunder: Option<Blunder>,
    /// Turn at which its polling thread wakes at the latest; 0 for never.
    pub(super) due: u64,
    pub(super) paused_until: u64,
    pub(super) is_down: bool,
    /// Why it stopped, if it did.
    pub(super) stopped: Option<OutReason>,
    /// What it prepares before it is agreed, and the answer at the turn at which it has done so.
    pub(super) answering: Option<(Preparation, Result<(), String>, u64)>,
    /// The next view, and the turn at which it is installed.
    pub(super) preparing: Option<(Arc<View>, u64)>,
    pub(super) view: Option<Arc<View>>,
    /// Its row of the view's control segment.
    pub(super) control_row: Option<Region>,
    /// What was delivered of the members that are gone.
    pub(super) delivered: DeliveredHistory,
    /// The branch of its view, or of the next one.
    pub(super) branch: u64,
    /// Branches of all its views, by their numbers.
    branches: BTreeMap<u64, u64>,
    pub(super) updates: u64,
    /// Numbers of its updates that were refused.
    pub(super) refused_updates: BTreeSet<u64>,
    pub(super) is_leaving: bool,
    rng: Rng,
    /// Generator of invalid requests.
    odds: Rng,
    /// What it draws the lengths of messages from that are large, or less than their claims.
    lengths: Rng,
    endpoints: BTreeMap<u64, Endpoint>,
    left: usize,
    tokens: u64,
    building: VecDeque<Building>,
    /// Payloads of refused commits, to be sent in the next epoch.
    stranded: VecDeque<(SubgroupId, DeliveryClass, u64, Vec<u8>)>,
    waiting: Option<AckWait>,
    receipts: Vec<Receipt>,
    /// Its last commit, by subgroup and class.
    last: BTreeMap<(SubgroupId, DeliveryClass), Committed>,
    /// Generator and chance of waiting for an acknowledgement.
    patience: (Rng, f64),
    /// Threads in the middle of a commit.
    committing: Vec<Committing>,
    /// Generator and chance of being preempted there.
    preemption: (Rng, f64),
    /// What it keeps and gets of writers with a storage level, in a life with any.
    pub(super) storage: Option<Storage>,
    /// In a life with logs: the topics that take samples.
    open_topics: Option<BTreeSet<SubgroupId>>,
    /// In a life with logs: messages that were committed, with their tokens.
    committed: Vec<(Committed, u64)>,
    /// What its applications did, not yet recorded.
    pub(super) facts: Vec<Fact<'static>>,
}

impl Member {
    /// A process that is to begin with this view.
    pub(super) fn new(
        identity: &ViewMember,
        node: NodeId,
        bed: SimFabric,
        (first, branch): (Arc<View>, u64),
        plan: &LifePlan,
        rng: &mut Rng,
    ) -> Self {
        let recorder = Recorder::new(identity.id, plan, rng.fork());
        let engine = Engine::new(bed, plan.config, recorder);
        let rules = Rules {
            detection: Detection {
                timeout_ns: plan.limit,
                preparation_ns: plan.limit,
            },
            prefer_availability: plan.availability,
        };
        engine.enter(identity.id, first.clone(), rules);
        Self {
            id: identity.id,
            node,
            engine,
            mode: Mode::Awake,
            blunder: plan.blunder,
            due: 0,
            paused_until: 0,
            is_down: false,
            stopped: None,
            branch,
            branches: BTreeMap::from([(first.id, branch)]),
            answering: None,
            preparing: Some((first, 0)),
            view: None,
            control_row: None,
            delivered: DeliveredHistory::default(),
            updates: 0,
            refused_updates: BTreeSet::new(),
            is_leaving: false,
            rng: rng.fork(),
            odds: Rng::new(plan.seed ^ identity.id.0 as u64),
            lengths: Rng::new(plan.seed ^ (identity.id.0 as u64) << 12),
            endpoints: (*identity.endpoints).clone(),
            left: plan.messages,
            tokens: 0,
            building: VecDeque::new(),
            stranded: VecDeque::new(),
            waiting: None,
            receipts: Vec::new(),
            last: BTreeMap::new(),
            patience: (
                Rng::new(plan.seed ^ (identity.id.0 as u64) << 20),
                plan.ack_waits,
            ),
            committing: Vec::new(),
            preemption: (
                Rng::new(plan.seed ^ (identity.id.0 as u64) << 30),
                plan.preempted,
            ),
            storage: (plan.durable > 0.0)
                .then(|| Storage::new(identity.id, plan.seed, 4 * plan.limit)),
            open_topics: plan.logged.map(|_| BTreeSet::new()),
            committed: Vec::new(),
            facts: Vec::new(),
        }
    }

    /// It is about to enter a view of a branch.
    pub(super) fn follow(&mut self, view: &View, branch: u64) {
        self.branch = branch;
        self.branches.insert(view.id, branch);
    }

    /// The key of an epoch, in the branch that this member has come by.
    pub(super) fn epoch_key(&self, subgroup: SubgroupId, epoch: u64) -> EpochKey {
        let branch = self.branches.get(&epoch).copied().unwrap_or_default();
        (subgroup, epoch, branch)
    }

    /// Whether it is in an epoch, and has not received the message at that position.
    pub(super) fn lacks(&self, epoch: EpochKey, position: u64) -> bool {
        let its = self.engine.handle().subgroup(epoch.0);
        let has_it = its.is_some_and(|its| self.epoch_key(epoch.0, its.epoch()) == epoch);
        has_it && self.engine.has_received(epoch.0, position) == Some(false)
    }

    pub(super) fn is_up(&self) -> bool {
        !self.is_down && self.stopped.is_none()
    }

    /// Its endpoints, as far as they are not refused.
    pub(super) fn endpoints(&self) -> &BTreeMap<u64, Endpoint> {
        &self.endpoints
    }

    /// Whether all its requests are fulfilled or refused.
    pub(super) fn is_content(&self, view: &View) -> bool {
        self.has_all_updates(view) && !self.is_leaving
    }

    /// Its update was refused.
    pub(super) fn refused(&mut self, number: u64) {
        self.refused_updates.insert(number);
        self.know_endpoints();
    }

    /// Once its updates are settled it has the endpoints that the view has.
    fn know_endpoints(&mut self) {
        if let Some(view) = self.view.clone()
            && let Some(rank) = view.rank(self.id)
            && self.has_all_updates(&view)
        {
            self.endpoints = (*view.members[rank.index()].endpoints).clone();
        }
    }

    fn has_all_updates(&self, view: &View) -> bool {
        view.rank(self.id).is_some_and(|rank| {
            let applied = view.members[rank.index()].updates;
            (applied + 1..=self.updates).all(|number| self.refused_updates.contains(&number))
        })
    }

    /// Whether one of its subgroups is wedged: its view is about to end, and no room comes back
    /// until then.
    pub(super) fn is_ending_epochs(&self) -> bool {
        let handle = self.engine.handle();
        let subgroups = handle.subgroups().into_iter();
        subgroups
            .filter_map(|subgroup| handle.subgroup(subgroup))
            .any(|subgroup| subgroup.is_wedged())
    }

    /// Changes its endpoints.
    pub(super) fn update(&mut self, plan: &LifePlan) {
        let mut put: Vec<(u64, Endpoint)> = (0..self.rng.below(3))
            .map(|_| (self.rng.below(4) as u64, plan.endpoint(&mut self.rng)))
            .collect();
        if self.odds.chance(plan.invalid_requests) {
            let invalid_requests = plan.invalid_endpoint(&mut self.odds);
            put.push((self.odds.below(4) as u64, invalid_requests));
        }
        let remove = match self.rng.below(3) {
            0 => vec![self.rng.below(4) as u64],
            _ => Vec::new(),
        };
        self.updates += 1;
        for number in &remove {
            self.endpoints.remove(number);
        }
        self.endpoints.extend(put.iter().cloned());
        let mut notes = Notes::default();
        if plan.notes > 0.0 && self.odds.chance(plan.notes) {
            // Many of these notes are equal to notes of others.
            let note = vec![self.odds.below(3) as u8; 1 << self.odds.below(12)];
            notes.put.push((self.odds.below(4) as u64, note.into()));
            notes.remove.push(self.odds.below(4) as u64);
        }
        self.engine.request(Request::Update(Update {
            member: self.id,
            number: self.updates,
            put,
            remove,
            notes,
        }));
    }

    pub(super) fn leave(&mut self) {
        self.is_leaving = true;
        self.engine.request(Request::Leave);
    }

    /// Begins the view that it has prepared.
    pub(super) fn install(&mut self, prepared: PreparedView<SimFabric>) -> Result<(), String> {
        let view = prepared.view.clone();
        let control = &prepared.control;
        let control_row = control.row(control.me()).read_only();
        self.engine
            .install(prepared)
            .map_err(|error| error.to_string())?;
        self.view = Some(view);
        self.control_row = Some(control_row);
        self.know_endpoints();
        self.abandon_receipts();
        Ok(())
    }

    /// The polling thread takes a turn.
    pub(super) fn poll(&mut self, rung: bool, now: u64) {
        let handle = self.engine.handle();
        let fabric = handle.fabric();
        let late = self.due != 0 && self.due <= now;
        self.mode = match self.mode {
            Mode::Awake => match self.step(Engine::step_briefly, now) {
                Some(want) => Mode::Idle(want),
                None => Mode::Awake,
            },
            Mode::Idle(want) => {
                let want = Blunder::announced(self.blunder, want);
                fabric.announce_sleep(want);
                Mode::Announced(want)
            }
            Mode::Announced(_) if self.blunder == Some(Blunder::NoSecondLook) => Mode::Asleep,
            Mode::Announced(announced) => match self.step(Engine::step, now) {
                Some(want) if Blunder::covers(self.blunder, announced, want) => Mode::Asleep,
                _ => {
                    fabric.announce_awake();
                    Mode::Awake
                }
            },
            Mode::Asleep if rung || late => {
                fabric.announce_awake();
                Mode::Awake
            }
            Mode::Asleep => Mode::Asleep,
        };
    }

    /// Steps the engine; what to sleep for, if there was nothing to do.
    fn step(&mut self, step: Stepped, now: u64) -> Option<WakeInterest> {
        let outcome = step(&self.engine, now)?;
        self.due = outcome.due;
        if outcome.room {
            self.waiting = None;
        }
        if !outcome.progress {
            self.engine.with_sink(Recorder::is_at_rest);
        }
        (!outcome.progress).then_some(outcome.want)
    }
}
