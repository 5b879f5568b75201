//! The layer above a member's engine: records what the engine delivers and reports.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spindle_dds_core::membership::{
    Decision, Finish, MemberId, OutReason, Preparation, Request, View,
};
use spindle_dds_core::{Delivery, DeliveryClass, EngineEvent, Held, MessageRun, Sink, SubgroupId};
use spindle_dds_transport::sim::{Rng, SimFabric};

use crate::life::facts::{Delivered, EpochKey, Sent};
use crate::life::invariants::payload_integrity;
use crate::life::plan::LifePlan;
use crate::life::storage::{Message, Told};
use crate::violation::Finding;

/// Turns for which the layer above is ready for the messages of a new epoch, or is not.
const SPELL: usize = 50;

/// What the engine has delivered or reported, in order.
#[derive(Debug)]
pub(crate) enum SinkEvent {
    Delivered(Delivered),
    EpochEnded {
        epoch: EpochKey,
        end: u64,
        digest: u64,
    },
    Prepare(Preparation),
    CallOff,
    StopPreparing(u64),
    Decide(Decision),
    Refused(Request, String),
    ViewEnded(Finish),
    ViewBegun(Arc<View>),
    Stopped(OutReason),
    Wrong(Finding),
}

struct Loan {
    held: Held<SimFabric>,
    sender: MemberId,
    token: u64,
    until: usize,
}

/// The layer above the engine.
pub(crate) struct Recorder {
    pub(crate) events: Vec<SinkEvent>,
    /// What storage is to be told, in order, if the life has any.
    pub(crate) told: Vec<Told>,
    /// Subgroups with deliveries of a batch that has not ended.
    untold: BTreeSet<SubgroupId>,
    loans: Vec<Loan>,
    /// Members by place, of each epoch.
    places: BTreeMap<EpochKey, Vec<MemberId>>,
    rng: Rng,
    hold_chance: f64,
    hold_turns: usize,
    turn: usize,
    me: MemberId,
    plan: LifePlan,
    /// Subgroups for whose present epoch it has been ready.
    ready: RefCell<BTreeSet<SubgroupId>>,
    /// The turn at which it may be ready, after it was not; 0 if it was.
    asks_again_at: Cell<usize>,
}

impl Recorder {
    pub(super) fn new(me: MemberId, plan: &LifePlan, rng: Rng) -> Self {
        Self {
            events: Vec::new(),
            told: Vec::new(),
            untold: BTreeSet::new(),
            loans: Vec::new(),
            places: BTreeMap::new(),
            rng,
            hold_chance: plan.hold_chance,
            hold_turns: plan.hold_turns,
            turn: 0,
            me,
            plan: plan.clone(),
            ready: RefCell::default(),
            asks_again_at: Cell::new(0),
        }
    }

    /// Whether it takes messages of a new epoch now.
    fn is_ready_now(&self, subgroup: SubgroupId) -> bool {
        let spell = self.turn / SPELL;
        let seed = self.plan.seed ^ (self.me.0 as u64) << 40 ^ u64::from(subgroup.0) << 32;
        self.turn >= self.plan.turns || !Rng::new(seed ^ spell as u64).chance(self.plan.unready)
    }

    /// Whether it wakes the engine, as it may be ready by now.
    pub(crate) fn nudges(&mut self, turn: usize) -> bool {
        self.turn = turn;
        let due = (1..=turn).contains(&self.asks_again_at.get());
        if due {
            self.asks_again_at.set(0);
        }
        due
    }

    /// The engine has nothing left to do.
    pub(super) fn is_at_rest(&mut self) {
        if !self.untold.is_empty() {
            let what = format!("batches without an end in subgroups {:?}", self.untold);
            self.events.push(SinkEvent::Wrong(("L8", what)));
        }
    }

    fn check(&mut self, loan: &Loan) {
        if self.plan.is_hostile(loan.sender) || self.plan.is_hostile(self.me) {
            return;
        }
        let read = payload_integrity::check(loan.held.bytes(), loan.sender, loan.token);
        if let Err(what) = read {
            self.events.push(SinkEvent::Wrong(("M3", what)));
        }
    }

    pub(crate) fn return_loans(&mut self, turn: usize, all: bool) {
        self.turn = turn;
        if all {
            self.told.clear();
        }
        let (due, kept) = core::mem::take(&mut self.loans)
            .into_iter()
            .partition::<Vec<_>, _>(|loan| all || loan.until <= turn);
        self.loans = kept;
        for loan in due {
            self.check(&loan);
        }
    }

    /// Storage is told of an ordered message.
    fn tell(&mut self, delivery: &Delivery<'_, SimFabric>, sender: MemberId) {
        if self.plan.keeps() && delivery.class == DeliveryClass::Ordered {
            self.told.push(Told::Message(Message {
                subgroup: delivery.subgroup.id(),
                epoch: delivery.subgroup.epoch(),
                sender,
                position: delivery.position,
                header: *delivery.header,
                held: delivery.hold(),
            }));
        }
    }

    fn begin(&mut self, view: &Arc<View>) {
        if self.plan.keeps() {
            self.told.push(Told::ViewBegun(view.clone()));
        }
        for subgroup in &view.subgroups {
            let key = (subgroup.subgroup, subgroup.epoch, 0);
            let ids = subgroup.members.iter();
            let ids = ids.map(|rank| view.members[rank.index()].id).collect();
            self.places.entry(key).or_insert(ids);
        }
    }
}

impl Sink<SimFabric> for Recorder {
    fn deliver(&mut self, delivery: &Delivery<'_, SimFabric>) {
        let epoch = (delivery.subgroup.id(), delivery.subgroup.epoch(), 0);
        self.untold.insert(epoch.0);
        let places = self.places.get(&epoch);
        let Some(&sender) = places.and_then(|places| places.get(delivery.sender.index())) else {
            let what = format!("a message of an unknown sender in {epoch:?}");
            return self.events.push(SinkEvent::Wrong(("A1", what)));
        };
        self.tell(delivery, sender);
        let token = delivery.header.timestamp as u64;
        self.events.push(SinkEvent::Delivered(Delivered {
            epoch,
            class: delivery.class,
            sender,
            position: delivery.position,
            sent: Sent {
                token,
                len: delivery.header.len,
            },
            was_ready: self.ready.borrow().contains(&epoch.0),
        }));
        let held = delivery.hold();
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

    /// Takes some of the run, and leaves the rest.
    fn deliver_run(&mut self, run: &mut MessageRun<'_, SimFabric>) {
        run.each(
            5,
            |next| next.timestamp % 3 != 0,
            |delivery| self.deliver(delivery),
        );
    }

    fn batch_end(&mut self) {
        self.untold.clear();
    }

    fn event(&mut self, event: EngineEvent) {
        let reported = match event {
            EngineEvent::EpochEnded {
                subgroup,
                epoch,
                end,
                digest,
            } => {
                if self.untold.contains(&subgroup) {
                    self.is_at_rest();
                }
                self.ready.borrow_mut().remove(&subgroup);
                SinkEvent::EpochEnded {
                    epoch: (subgroup, epoch, 0),
                    end,
                    digest,
                }
            }
            EngineEvent::Prepare(preparation) => SinkEvent::Prepare(preparation),
            EngineEvent::CallOff => SinkEvent::CallOff,
            EngineEvent::StopPreparing { number } => SinkEvent::StopPreparing(number),
            EngineEvent::Decide(decision) => SinkEvent::Decide(decision),
            EngineEvent::Refused { request, refusal } => {
                SinkEvent::Refused(request, refusal.reason)
            }
            EngineEvent::ViewEnded(finish) => SinkEvent::ViewEnded(finish),
            EngineEvent::ViewBegun(view) => {
                self.begin(&view);
                SinkEvent::ViewBegun(view)
            }
            EngineEvent::Stopped(reason) => SinkEvent::Stopped(reason),
        };
        self.events.push(reported);
    }

    fn is_reading(&self, _: SubgroupId) -> bool {
        self.plan.reads(self.me)
    }

    fn is_ready(&self, subgroup: SubgroupId) -> bool {
        let is_ready = self.is_ready_now(subgroup);
        if is_ready {
            self.ready.borrow_mut().insert(subgroup);
        } else {
            self.asks_again_at.set((self.turn / SPELL + 1) * SPELL);
        }
        is_ready
    }
}
