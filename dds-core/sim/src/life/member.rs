//! A process: its engine, its driver's part, its applications.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use spindle_dds_core::membership::{
    Decision, Detection, Endpoint, Finish, Member as ViewMember, MemberId, Request, Rules, Update,
    View,
};
use spindle_dds_core::{
    AckWait, Claim, ClaimError, Committed, Delivery, Engine, Event, Held, Kind, Meta, Prepared,
    Ring, Sink, StopReason, SubgroupId,
};
use spindle_dds_transport::sim::{NodeId, Rng, SimFabric};
use spindle_dds_transport::{Fabric, Want};

use super::facts::{Delivered, Fact, LaneKey, Sent};
use super::invariants::payload;
use super::plan::LifePlan;
use crate::violation::Finding;

/// For so many turns a layer above is ready for the messages of a new lane, or not.
const SPELL: usize = 50;

/// What a member tells the world, in order.
#[derive(Debug)]
pub(super) enum News {
    Delivered(Delivered),
    LaneEnded {
        lane: LaneKey,
        end: u64,
        digest: u64,
    },
    Decide(Decision),
    Refused(Request, String),
    ViewEnded(Finish),
    ViewBegun(Arc<View>),
    Stopped(StopReason),
    Wrong(Finding),
}

struct Loan {
    held: Held<SimFabric>,
    sender: MemberId,
    token: u64,
    until: usize,
}

/// The layer above the engine.
pub(super) struct Recorder {
    pub(super) news: Vec<News>,
    loans: Vec<Loan>,
    /// Who is at which place, by lane.
    places: BTreeMap<LaneKey, Vec<MemberId>>,
    rng: Rng,
    hold_chance: f64,
    hold_turns: usize,
    turn: usize,
    me: MemberId,
    plan: LifePlan,
    /// Subgroups for whose lanes it has been ready.
    ready: RefCell<BTreeSet<SubgroupId>>,
    /// It was not ready, and may be at this turn; 0 if it was.
    asks_again_at: Cell<usize>,
}

impl Recorder {
    /// Whether it takes messages of a new lane now: for a while it does, for a while not.
    fn is_in_the_mood(&self, subgroup: SubgroupId) -> bool {
        let spell = self.turn / SPELL;
        let seed = self.plan.seed ^ (self.me.0 as u64) << 40 ^ u64::from(subgroup.0) << 32;
        self.turn >= self.plan.turns || !Rng::new(seed ^ spell as u64).chance(self.plan.shy)
    }

    /// Whether it wakes the engine: it may be ready by now.
    pub(super) fn nudges(&mut self, turn: usize) -> bool {
        self.turn = turn;
        let due = (1..=turn).contains(&self.asks_again_at.get());
        if due {
            self.asks_again_at.set(0);
        }
        due
    }

    fn check(&mut self, loan: &Loan) {
        if self.plan.is_hostile(loan.sender) || self.plan.is_hostile(self.me) {
            return;
        }
        let read = payload::check(loan.held.bytes(), loan.sender, loan.token);
        if let Err(what) = read {
            self.news.push(News::Wrong(("M3", what)));
        }
    }

    pub(super) fn return_loans(&mut self, turn: usize, all: bool) {
        self.turn = turn;
        let (due, kept) = core::mem::take(&mut self.loans)
            .into_iter()
            .partition::<Vec<_>, _>(|loan| all || loan.until <= turn);
        self.loans = kept;
        for loan in due {
            self.check(&loan);
        }
    }

    fn begin(&mut self, view: &View) {
        for lane in &view.lanes {
            let key = (lane.subgroup, lane.epoch, 0);
            let ids = lane.members.iter();
            let ids = ids.map(|rank| view.members[rank.index()].id).collect();
            self.places.entry(key).or_insert(ids);
        }
    }
}

impl Sink<SimFabric> for Recorder {
    fn deliver(&mut self, delivery: &Delivery<'_, SimFabric>) {
        let lane = (delivery.lane.subgroup(), delivery.lane.epoch(), 0);
        let places = self.places.get(&lane);
        let Some(&sender) = places.and_then(|places| places.get(delivery.sender.index())) else {
            let what = format!("a message of nobody in {lane:?}");
            return self.news.push(News::Wrong(("A1", what)));
        };
        let token = delivery.header.timestamp as u64;
        self.news.push(News::Delivered(Delivered {
            lane,
            ring: delivery.ring,
            sender,
            position: delivery.position,
            sent: Sent {
                token,
                len: delivery.header.len,
            },
            was_ready: self.ready.borrow().contains(&lane.0),
        }));
        let Some(held) = delivery.hold() else { return };
        let keep = self.rng.chance(self.hold_chance);
        let until = self.turn + 1 + self.rng.below(self.hold_turns);
        let loan = Loan {
            held,
            sender,
            token,
            until,
        };
        self.check(&loan);
        if keep {
            self.loans.push(loan);
        }
    }

    fn batch_end(&mut self) {}

    fn event(&mut self, event: Event) {
        let news = match event {
            Event::LaneEnded {
                subgroup,
                epoch,
                end,
                digest,
            } => {
                self.ready.borrow_mut().remove(&subgroup);
                News::LaneEnded {
                    lane: (subgroup, epoch, 0),
                    end,
                    digest,
                }
            }
            Event::Decide(decision) => News::Decide(decision),
            Event::Refused { request, why } => News::Refused(request, why),
            Event::ViewEnded(finish) => News::ViewEnded(finish),
            Event::ViewBegun(view) => {
                self.begin(&view);
                News::ViewBegun(view)
            }
            Event::Stopped(reason) => News::Stopped(reason),
            Event::MemberLeft { .. } | Event::SenderLeft { .. } => return,
        };
        self.news.push(news);
    }

    fn is_reading(&self, _: SubgroupId) -> bool {
        true
    }

    fn is_ready(&self, subgroup: SubgroupId) -> bool {
        let is_ready = self.is_in_the_mood(subgroup);
        if is_ready {
            self.ready.borrow_mut().insert(subgroup);
        } else {
            self.asks_again_at.set((self.turn / SPELL + 1) * SPELL);
        }
        is_ready
    }
}

/// A message that is being built.
struct Building {
    claim: Claim<SimFabric>,
    token: u64,
    until: usize,
}

/// A message whose sender has not been told that all have it.
struct Receipt {
    committed: Committed,
    token: u64,
    /// Whether it waits to be told.
    waiting: Option<AckWait>,
}

/// Where a member's polling thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Awake,
    Idle(Want),
    Announced(Want),
    Asleep,
}

/// A process.
pub(super) struct Member {
    pub(super) id: MemberId,
    pub(super) node: NodeId,
    pub(super) engine: Engine<SimFabric, Recorder>,
    pub(super) mode: Mode,
    /// When its polling thread is to wake at the latest; 0 for never.
    pub(super) due: u64,
    pub(super) paused_until: u64,
    pub(super) is_down: bool,
    /// It stopped, for this reason.
    pub(super) stopped: Option<StopReason>,
    /// The next view, to be installed at this time.
    pub(super) preparing: Option<(Arc<View>, u64)>,
    pub(super) view: Option<Arc<View>>,
    /// The branch of its view, or of the next.
    pub(super) branch: u64,
    /// Those of the views before.
    branches: BTreeMap<u64, u64>,
    pub(super) updates: u64,
    pub(super) is_leaving: bool,
    rng: Rng,
    /// What it draws odd requests from.
    odds: Rng,
    endpoints: BTreeMap<u64, Endpoint>,
    left: usize,
    tokens: u64,
    building: VecDeque<Building>,
    /// Built for a lane that was wedged: to be copied into the next one.
    stranded: VecDeque<(SubgroupId, Ring, u64, Vec<u8>)>,
    waiting: Option<AckWait>,
    receipts: Vec<Receipt>,
    /// What it committed last, by subgroup and ring.
    last: BTreeMap<(SubgroupId, Ring), Committed>,
    /// What it draws from whether somebody waits for a receipt, and how often.
    patience: (Rng, f64),
    /// What its applications did, and the world has not seen yet.
    pub(super) facts: Vec<Fact<'static>>,
}

impl Member {
    /// A process that knows the view it is to begin with.
    pub(super) fn new(
        who: &ViewMember,
        node: NodeId,
        bed: SimFabric,
        (first, branch): (Arc<View>, u64),
        plan: &LifePlan,
        rng: &mut Rng,
    ) -> Self {
        let recorder = Recorder {
            news: Vec::new(),
            loans: Vec::new(),
            places: BTreeMap::new(),
            rng: rng.fork(),
            hold_chance: plan.hold_chance,
            hold_turns: plan.hold_turns,
            turn: 0,
            me: who.id,
            plan: plan.clone(),
            ready: RefCell::default(),
            asks_again_at: Cell::new(0),
        };
        let engine = Engine::new(bed, plan.config, recorder);
        let rules = Rules {
            detection: Detection { limit: plan.limit },
            prefer_availability: plan.availability,
            planted: plan.planted,
        };
        engine.enter(who.id, first.clone(), rules);
        Self {
            id: who.id,
            node,
            engine,
            mode: Mode::Awake,
            due: 0,
            paused_until: 0,
            is_down: false,
            stopped: None,
            branch,
            branches: BTreeMap::from([(first.id, branch)]),
            preparing: Some((first, 0)),
            view: None,
            updates: 0,
            is_leaving: false,
            rng: rng.fork(),
            odds: Rng::new(plan.seed ^ who.id.0 as u64),
            endpoints: who.endpoints.clone(),
            left: plan.messages,
            tokens: 0,
            building: VecDeque::new(),
            stranded: VecDeque::new(),
            waiting: None,
            receipts: Vec::new(),
            last: BTreeMap::new(),
            patience: (Rng::new(plan.seed ^ (who.id.0 as u64) << 20), plan.awaits),
            facts: Vec::new(),
        }
    }

    /// It is about to enter a view of a branch.
    pub(super) fn follow(&mut self, view: &View, branch: u64) {
        self.branch = branch;
        self.branches.insert(view.id, branch);
    }

    /// The lane of an epoch, in the branch that this member has come by.
    pub(super) fn lane_key(&self, subgroup: SubgroupId, epoch: u64) -> LaneKey {
        let branch = self.branches.get(&epoch).copied().unwrap_or_default();
        (subgroup, epoch, branch)
    }

    /// How far it has received the order of a lane, if it has that lane now.
    pub(super) fn received(&self, lane: LaneKey) -> Option<u64> {
        let its = self.engine.handle().lane(lane.0)?;
        let is_it = self.lane_key(lane.0, its.epoch()) == lane;
        Some(self.engine.position(lane.0).filter(|_| is_it)?.received_num)
    }

    pub(super) fn is_up(&self) -> bool {
        !self.is_down && self.stopped.is_none()
    }

    /// Whether its applications have nothing under way.
    pub(super) fn is_done(&self) -> bool {
        let writes = self
            .endpoints
            .values()
            .any(|endpoint| endpoint.ring.is_some());
        let idle = self.building.is_empty() && self.stranded.is_empty();
        idle && (self.left == 0 || !writes)
    }

    pub(super) fn todo(&self) -> String {
        let stranded = self.stranded.iter().map(|(g, r, _, b)| {
            let claim = self.claim(*g, *r, b.len() as u32);
            format!("{g} {r:?} {} {:?}", b.len(), claim.map(|c| c.err()))
        });
        format!(
            "left {} building {} stranded {:?} endpoints {:?}",
            self.left,
            self.building.len(),
            stranded.collect::<Vec<_>>(),
            self.endpoints
        )
    }

    /// Whether a view has all that it asked for.
    pub(super) fn is_content(&self, view: &View) -> bool {
        let rank = view.rank(self.id);
        rank.is_some_and(|rank| view.members[rank.index()].updates == self.updates)
            && !self.is_leaving
    }

    /// Whether a lane of its is stopped: its view is about to end, if only by time that
    /// passes, and no room comes back until then.
    pub(super) fn is_ending_lanes(&self) -> bool {
        let handle = self.engine.handle();
        let lanes = handle.subgroups().into_iter();
        lanes
            .filter_map(|subgroup| handle.lane(subgroup))
            .any(|lane| lane.is_wedged())
    }

    /// Writes no more than it has begun.
    pub(super) fn rest(&mut self) {
        self.left = 0;
    }

    /// Other endpoints.
    pub(super) fn update(&mut self, plan: &LifePlan) {
        let mut put: Vec<(u64, Endpoint)> = (0..self.rng.below(3))
            .map(|_| (self.rng.below(4) as u64, plan.endpoint(&mut self.rng)))
            .collect();
        if self.odds.chance(plan.odd) {
            let odd = plan.odd_endpoint(&mut self.odds);
            put.push((self.odds.below(4) as u64, odd));
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
        self.engine.request(Request::Update(Update {
            member: self.id,
            number: self.updates,
            put,
            remove,
        }));
    }

    pub(super) fn leave(&mut self) {
        self.is_leaving = true;
        self.engine.request(Request::Leave);
    }

    /// One of its applications does something.
    pub(super) fn act(&mut self, turn: usize, plan: &LifePlan) {
        if self.rng.chance(0.3)
            && let Some((subgroup, ring, token, bytes)) = self.stranded.pop_front()
        {
            return self.move_on(subgroup, ring, token, bytes);
        }
        let due = self.building.iter().position(|one| one.until <= turn);
        match due {
            Some(at) if self.rng.chance(0.7) => {
                if let Some(building) = self.building.remove(at) {
                    self.commit(building);
                }
            }
            _ => self.begin(turn, plan),
        }
    }

    fn claim(
        &self,
        subgroup: SubgroupId,
        ring: Ring,
        len: u32,
    ) -> Option<Result<Claim<SimFabric>, ClaimError>> {
        Some(self.engine.handle().lane(subgroup)?.claim(ring, len))
    }

    fn begin(&mut self, turn: usize, plan: &LifePlan) {
        let writers: Vec<(SubgroupId, Ring)> = self
            .endpoints
            .values()
            .filter_map(|endpoint| Some((endpoint.subgroup, endpoint.ring?.0)))
            .collect();
        let Some(&(subgroup, ring)) = self.rng.pick(&writers) else {
            return;
        };
        if self.left == 0 {
            return;
        }
        let len = self.rng.below(64) as u32;
        match self.claim(subgroup, ring, len) {
            Some(Ok(claim)) => {
                self.waiting = None;
                self.left -= 1;
                self.tokens += 1;
                let hold = if self.rng.chance(0.2) {
                    self.rng.below(plan.hold_turns)
                } else {
                    0
                };
                self.building.push_back(Building {
                    claim,
                    token: self.tokens,
                    until: turn + hold,
                });
            }
            Some(Err(ClaimError::NoRoom)) if self.waiting.is_none() => {
                self.waiting = Some(self.engine.handle().waiting_for_acks());
            }
            // Between two lanes, or the update that makes it a sender is on its way.
            _ => {}
        }
    }

    fn meta(token: u64, writer: u32) -> Meta {
        Meta {
            kind: Kind::Data,
            flags: 0,
            encapsulation: 1,
            writer,
            timestamp: token as i64,
            topic: 7,
            key_hash: [token as u8; 16],
            skipped: 0,
        }
    }

    fn commit(&mut self, mut building: Building) {
        let (by, token) = (self.id, building.token);
        let (subgroup, ring) = (building.claim.lane().subgroup(), building.claim.ring());
        self.facts.push(Fact::Called {
            by,
            subgroup,
            ring,
            token,
        });
        if self.rng.chance(0.1) {
            building.claim.bytes().fill(0xee);
            return self.facts.push(Fact::NotSent { by, token });
        }
        payload::build(building.claim.bytes(), by, token);
        self.commit_built(building.claim, token);
    }

    fn commit_built(&mut self, mut claim: Claim<SimFabric>, token: u64) {
        let by = self.id;
        let len = claim.bytes().len() as u32;
        let lane = claim.lane().clone();
        let ring = claim.ring();
        match claim.commit(len, &Self::meta(token, ring.index() as u32)) {
            Ok(committed) => {
                self.keep_receipt(committed, Sent { token, len });
                if self.rng.chance(0.5) {
                    self.engine.publish(&lane);
                } else {
                    lane.fabric().nudge();
                }
            }
            Err(mut refused) if refused.error == ClaimError::Wedged => {
                let bytes = refused.claim.bytes().to_vec();
                let entry = (lane.subgroup(), ring, token, bytes);
                self.stranded.push_back(entry);
            }
            Err(_) => self.facts.push(Fact::NotSent { by, token }),
        }
    }

    fn keep_receipt(&mut self, committed: Committed, sent: Sent) {
        let by = self.id;
        let token = sent.token;
        self.facts.push(Fact::Committed {
            by,
            lane: self.lane_key(committed.subgroup, committed.epoch),
            ring: committed.ring,
            sent,
        });
        let ring = (committed.subgroup, committed.ring);
        self.last.insert(ring, committed);
        let (rng, chance) = &mut self.patience;
        let waits = committed.ring == Ring::Ordered && rng.chance(*chance);
        let waiting = waits.then(|| self.engine.handle().waiting_for_acks());
        if waits {
            self.facts.push(Fact::Awaited { by, token });
        }
        self.receipts.push(Receipt {
            committed,
            token,
            waiting,
        });
    }

    /// Its applications ask what has become of their messages.
    pub(super) fn read_receipts(&mut self) {
        let (by, handle) = (self.id, self.engine.handle());
        let facts = &mut self.facts;
        self.receipts.retain(
            |Receipt {
                 committed, token, ..
             }| {
                let lane = handle.lane(committed.subgroup);
                let told = lane.is_some_and(|lane| lane.is_acknowledged(committed));
                if told {
                    let token = *token;
                    facts.push(Fact::Acknowledged { by, token });
                }
                !told
            },
        );
    }

    /// How much of its rings is its own again. (Nulls take no room: some of the last are
    /// still to be passed.) Who lets go of its own messages, and waits for no room, does not
    /// wake its engine for it: that finds it when it steps next.
    pub(super) fn rings_at_rest(&self, now: u64) -> Vec<Fact<'static>> {
        self.engine.step(now);
        let handle = self.engine.handle();
        let at_rest = |last: &Committed| {
            let lane = handle.lane(last.subgroup)?;
            (lane.epoch() == last.epoch).then(|| Fact::RingAtRest {
                of: self.id,
                lane: self.lane_key(last.subgroup, last.epoch),
                ring: last.ring,
                count: last.index + 1,
                released: lane.released(last.ring),
            })
        };
        self.last.values().filter_map(at_rest).collect()
    }

    /// Who has no part in a subgroup any more has nobody to ask.
    fn abandon_receipts(&mut self) {
        let (by, handle) = (self.id, self.engine.handle());
        let facts = &mut self.facts;
        self.receipts.retain(|receipt| {
            let stays = handle.lane(receipt.committed.subgroup).is_some();
            if !stays && receipt.waiting.is_some() {
                let token = receipt.token;
                facts.push(Fact::Abandoned { by, token });
            }
            stays
        });
    }

    /// Copies what was built for a lane that has ended into the next.
    fn move_on(&mut self, subgroup: SubgroupId, ring: Ring, token: u64, bytes: Vec<u8>) {
        let writer = |endpoint: &Endpoint| {
            endpoint.subgroup == subgroup && endpoint.ring.is_some_and(|(its, _)| its == ring)
        };
        if !self.endpoints.values().any(writer) {
            // Its writer was deleted meanwhile.
            let by = self.id;
            return self.facts.push(Fact::NotSent { by, token });
        }
        match self.claim(subgroup, ring, bytes.len() as u32) {
            Some(Ok(mut claim)) => {
                claim.bytes().copy_from_slice(&bytes);
                self.commit_built(claim, token);
            }
            // The rings of the next lane may be smaller.
            Some(Err(ClaimError::TooLarge { .. })) => {
                let by = self.id;
                self.facts.push(Fact::NotSent { by, token });
            }
            _ => self.stranded.push_back((subgroup, ring, token, bytes)),
        }
    }

    /// Begins the view that it has been preparing.
    pub(super) fn install(&mut self, prepared: Prepared<SimFabric>) -> Result<(), String> {
        let view = prepared.view.clone();
        self.engine
            .install(prepared)
            .map_err(|error| error.to_string())?;
        // Of what it asked for, this is what there is.
        if let Some(rank) = view.rank(self.id)
            && view.members[rank.index()].updates == self.updates
        {
            self.endpoints = view.members[rank.index()].endpoints.clone();
        }
        self.view = Some(view);
        self.abandon_receipts();
        Ok(())
    }

    /// The polling thread's turn.
    pub(super) fn poll(&mut self, rung: bool, now: u64) {
        let handle = self.engine.handle();
        let fabric = handle.fabric();
        let late = self.due != 0 && self.due <= now;
        self.mode = match self.mode {
            Mode::Awake => match self.step(now) {
                Some(want) => Mode::Idle(want),
                None => Mode::Awake,
            },
            Mode::Idle(want) => {
                fabric.announce_sleep(want);
                Mode::Announced(want)
            }
            Mode::Announced(announced) => match self.step(now) {
                Some(want) if want == announced || announced == Want::DataAndAcks => Mode::Asleep,
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

    /// Steps; what to be woken for if there was nothing to do.
    fn step(&mut self, now: u64) -> Option<Want> {
        let outcome = self.engine.step(now)?;
        self.due = outcome.due;
        if outcome.room {
            self.waiting = None;
        }
        (!outcome.progress).then_some(outcome.want)
    }
}
