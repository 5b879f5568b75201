//! Groups of participants with logs. Views and messages come in one order to all members of a group; each
//! is somewhere in it.

mod checks;
mod flips;
mod healing;
mod keeping;
mod lives;
mod readers;
mod views;
mod writers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spindle_dds_core::membership::MemberId;
use spindle_dds_core::storage::log::SimDisk;
use spindle_dds_core::storage::{Generation, LogEnd, LogGroup, LogId, LogPacket};
use spindle_dds_transport::sim::Rng;

use self::flips::Damaged;
use super::participant::{Kept, LogView, Participant};
use super::plan::LogPlan;
use super::reader::{Reader, Shown};
use crate::violation::Finding;

enum Item {
    View(Arc<LogView>),
    Message { position: u64, value: u64 },
}

/// A sample whose writer waits for its acknowledgement.
struct Waits {
    record: Kept,
    lineage: u128,
    generation: Generation,
}

/// A participant of a host.
struct Node {
    group: usize,
    member: MemberId,
    /// Items that it has come to.
    at: usize,
    view: Option<Arc<LogView>>,
    log: Option<Participant>,
    waits: Vec<Waits>,
    reader: Reader,
}

/// A computer. Its disk outlasts crashes.
#[derive(Default)]
struct Host {
    disk: Option<SimDisk>,
    /// Its log is refused, as a bit on the disk has changed.
    damaged: Option<Damaged>,
    has_lost_power: bool,
    node: Option<Node>,
}

#[derive(Default)]
struct Group {
    items: Vec<Item>,
    last: Option<Arc<LogView>>,
    next: u64,
    joining: Vec<(MemberId, usize)>,
    /// What is announced and not in a view yet, too.
    ends: BTreeMap<MemberId, LogEnd>,
    /// Words by member and view: they stay readable when the member is gone.
    words: BTreeMap<(MemberId, u64), u64>,
    /// The view that was seen to take samples.
    took: Option<u64>,
}

/// An opening: what its records descend from, its number, its view and the member whose log it began with.
type OpeningKey = (u128, u64, u64, MemberId);

const GROUPS: usize = 2;

pub(super) struct World {
    rng: Rng,
    plan: LogPlan,
    hosts: Vec<Host>,
    groups: Vec<Group>,
    packets: Vec<(MemberId, MemberId, LogPacket)>,
    members: u128,
    values: u64,
    acked: BTreeMap<u128, Vec<Kept>>,
    shown_samples: Vec<Shown>,
    /// Generations, with what they descend from, that have taken samples.
    took: BTreeSet<(u128, u64)>,
    /// The logs that each opening began with.
    opened_by: BTreeMap<OpeningKey, Vec<LogId>>,
    /// Values that are not promised any more: changed bits have taken them from too many logs.
    excused: BTreeSet<u64>,
    /// Values that changed bits have taken from a host's log.
    taken: BTreeSet<(usize, u64)>,
    now_ns: u64,
    pub(super) step: usize,
    pub(super) trace: Option<Vec<String>>,
    pub(super) openings: usize,
    pub(super) written: usize,
    pub(super) acknowledged: usize,
    pub(super) shown: usize,
    pub(super) flipped: (usize, usize),
    is_healing: bool,
}

impl World {
    pub(super) fn new(plan: LogPlan, is_traced: bool) -> Self {
        let logs = (0..plan.logs).map(|_| Host {
            disk: Some(SimDisk::default()),
            ..Host::default()
        });
        let others = (0..plan.writers).map(|_| Host::default());
        Self {
            rng: Rng::new(plan.seed),
            hosts: logs.chain(others).collect(),
            plan,
            groups: (0..GROUPS).map(|_| Group::default()).collect(),
            packets: Vec::new(),
            members: 0,
            values: 0,
            acked: BTreeMap::new(),
            shown_samples: Vec::new(),
            took: BTreeSet::new(),
            opened_by: BTreeMap::new(),
            excused: BTreeSet::new(),
            taken: BTreeSet::new(),
            now_ns: 1,
            step: 0,
            trace: is_traced.then(Vec::new),
            openings: 0,
            written: 0,
            acknowledged: 0,
            shown: 0,
            flipped: (0, 0),
            is_healing: false,
        }
    }

    fn say(&mut self, what: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:5}  {}", self.step, what()));
        }
    }

    pub(super) fn live(&mut self) -> Result<(), Finding> {
        for step in 0..self.plan.steps {
            self.step = step;
            self.turn()?;
        }
        self.equal_logs()?;
        self.heal()
    }

    fn turn(&mut self) -> Result<(), Finding> {
        let plan = self.plan.clone();
        self.now_ns += 1_000_000;
        if self.rng.chance(0.05) {
            self.now_ns += 1_500_000_000;
        }
        let at = self.rng.below(self.hosts.len());
        self.flip_bits()?;
        self.mend(at)?;
        if self.rng.chance(plan.starts) {
            let group = usize::from(self.rng.chance(plan.apart));
            self.start(at, group);
        }
        if self.rng.chance(plan.crashes) {
            let all = self.rng.chance(plan.total);
            let group = self.hosts[at].node.as_ref().map(|it| it.group);
            match group {
                Some(group) if all => self.crash_group(group),
                _ => self.crash(at),
            }
        }
        if self.rng.chance(plan.views) {
            let group = self.rng.below(GROUPS);
            self.change_view(group);
        }
        if let Some(disk) = self.hosts[at].disk.clone() {
            if self.rng.chance(plan.full) {
                let room = self.rng.chance(0.5).then(|| disk.used() + 100);
                disk.set_capacity(room);
            }
            if self.rng.chance(plan.failing) {
                disk.fail_sync_after(self.rng.below(3) as u64);
            }
        }
        for at in 0..self.hosts.len() {
            if self.rng.chance(plan.works) {
                self.work(at)?;
            }
        }
        self.taking()
    }

    fn work(&mut self, at: usize) -> Result<(), Finding> {
        if self.rng.chance(0.5) {
            self.come_on(at);
        }
        if self.rng.chance(0.5) {
            self.keep(at);
        }
        if self.rng.chance(0.6) {
            self.deliver_packets(at);
        }
        if !self.is_healing && self.rng.chance(self.plan.writes) {
            self.write(at);
        }
        if self.rng.chance(0.3) {
            self.read(at);
            self.acknowledge(at)?;
        }
        Ok(())
    }
}

fn opening_key(logs: &LogGroup) -> OpeningKey {
    let generation = logs.generation;
    (
        logs.lineage,
        generation.number,
        generation.view,
        generation.source,
    )
}

/// Whether samples are sent in a view: the words of all loggers are there.
fn takes(group: &Group, view: &LogView) -> bool {
    let open = view.logs.as_ref().filter(|it| it.is_open());
    open.is_some_and(|logs| {
        logs.loggers.iter().all(|it| {
            let word = group.words.get(&(it.member, view.view));
            word.is_some_and(|word| *word >= view.base)
        })
    })
}
