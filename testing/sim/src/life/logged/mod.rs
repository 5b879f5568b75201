//! Logs in lives: a model of the log thread around the product's keepers.
//!
//! ```text
//!   engine --deliveries, views--> LogNode --feed--> Topic (the log thread): LogKeeper --> SimDisk
//!      ^                                              | words, announcements, packets
//!      +----------------------------------------------+
//! ```
//!
//! Each subgroup has one topic, and all of its ordered messages are of PERSISTENT writers. A *slot* is a
//! computer's disk: it outlasts members and groups. A life has several groups, one after the other: each
//! but the last one ends when all of its members lose their power at once, and the next one is founded by
//! new members with the same disks.

mod checks;
mod node;
mod topic;

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::membership::{Endpoint, MemberId, View};
use spindle_dds_core::storage::log::{LogHead, SimDisk, TopicLog};
use spindle_dds_core::storage::{HistoryLimits, LogEnd, LogId, LogKeeper, LogPacket, SyncMode};
use spindle_dds_core::{SubgroupId, TopicKey};
use spindle_dds_transport::sim::Rng;

pub(super) use self::checks::Sample;
pub(super) use self::node::LogNode;
use self::topic::Topic;

/// What a life with logs has besides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoggedPlan {
    /// Computers with a disk.
    pub slots: usize,
    /// Groups that end as all of their members lose their power.
    pub blackouts: usize,
    /// Chance that a participant has no disk.
    pub without: f64,
    /// Chance at each turn that a disk becomes full, or gets room.
    pub full: f64,
    /// Chance at each turn that a sync fails.
    pub failing: f64,
    /// The turn at which the members of this group lose their power.
    pub blackout: Option<usize>,
}

impl LoggedPlan {
    /// The logs of the life with this seed.
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x10_66ed);
        let has_faults = rng.chance(0.3);
        Self {
            slots: 1 + rng.below(4),
            blackouts: rng.below(4),
            without: [0.1, 0.4][rng.below(2)],
            full: if has_faults { 0.001 } else { 0.0 },
            failing: if has_faults && rng.chance(0.3) {
                0.0003
            } else {
                0.0
            },
            blackout: None,
        }
    }
}

/// A disk with the log of each topic.
#[derive(Debug)]
struct Slot {
    disks: BTreeMap<SubgroupId, SimDisk>,
    user: Option<MemberId>,
}

/// A packet that is under way.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) to: MemberId,
    pub(super) from: MemberId,
    pub(super) subgroup: SubgroupId,
    pub(super) packet: LogPacket,
}

/// The logs of a life, and what was promised of them.
pub(super) struct Logs {
    pub(super) rng: Rng,
    slots: Vec<Slot>,
    pub(super) nodes: BTreeMap<MemberId, LogNode>,
    pub(super) packets: Vec<Parcel>,
    /// By topic and origin of the logs: samples that were acknowledged.
    acked: BTreeMap<(SubgroupId, u128), BTreeSet<Sample>>,
    /// Epochs of the present group that were seen to take samples.
    taking: BTreeSet<(SubgroupId, u64)>,
    pub(super) acknowledged: usize,
    pub(super) openings: usize,
}

/// The number of the endpoint that stands for a log.
const FIRST_NUMBER: u64 = 100;

pub(super) fn number_of(subgroup: SubgroupId) -> u64 {
    FIRST_NUMBER + u64::from(subgroup.0)
}

/// The topic of a subgroup.
pub(super) fn key_of(subgroup: SubgroupId) -> TopicKey {
    TopicKey::of_name(&format!("topic {}", subgroup.0))
}

/// The endpoint that stands for a log.
pub(super) fn endpoint_of(subgroup: SubgroupId, end: LogEnd) -> Endpoint {
    Endpoint {
        subgroup,
        topic: key_of(subgroup),
        ring: None,
        info: Vec::new(),
        log: Some(end),
    }
}

fn head(subgroup: SubgroupId) -> LogHead {
    LogHead {
        domain: 0,
        topic: format!("topic {}", subgroup.0),
        type_name: "T".to_owned(),
        type_information: Vec::new(),
        limits: HistoryLimits::default(),
    }
}

impl Logs {
    pub(super) fn new(seed: u64, plan: &LoggedPlan, subgroups: usize) -> Self {
        let subgroups = (0..subgroups as u32).map(SubgroupId);
        let disks = || {
            subgroups
                .clone()
                .map(|it| (it, SimDisk::default()))
                .collect()
        };
        let slots = (0..plan.slots).map(|_| Slot {
            disks: disks(),
            user: None,
        });
        Self {
            rng: Rng::new(seed ^ 0x5_1075),
            slots: slots.collect(),
            nodes: BTreeMap::new(),
            packets: Vec::new(),
            acked: BTreeMap::new(),
            taking: BTreeSet::new(),
            acknowledged: 0,
            openings: 0,
        }
    }

    /// The group is gone, and the disks stay.
    pub(super) fn black_out(&mut self) {
        self.release(|_| false);
        self.packets.clear();
        self.taking.clear();
    }

    /// Participants that have a disk and do not write a log that is on it.
    pub(super) fn idle_users(&self) -> Vec<MemberId> {
        let is_idle = |slot: &Slot, id: &MemberId| {
            let mut disks = slot.disks.iter();
            let node = self.nodes.get(id);
            disks.any(|(subgroup, disk)| {
                checks::is_used(disk) && node.is_some_and(|it| !it.has_log(*subgroup))
            })
        };
        let slots = self.slots.iter();
        slots
            .filter_map(|slot| slot.user.filter(|id| is_idle(slot, id)))
            .collect()
    }

    pub(super) fn free_slots(&self) -> usize {
        let free = self.slots.iter().filter(|it| it.user.is_none());
        free.count()
    }

    /// A participant starts, with a disk or without. Gives the endpoints of its logs. `view`: one of the
    /// group that it is to join.
    pub(super) fn start(
        &mut self,
        id: MemberId,
        has_disk: bool,
        view: Option<&View>,
    ) -> Vec<(u64, Endpoint)> {
        let free: Vec<usize> = (0..self.slots.len())
            .filter(|at| has_disk && self.slots[*at].user.is_none())
            .collect();
        let slot = self.rng.pick(&free).copied();
        let mut node = LogNode::new(id);
        let mut endpoints = Vec::new();
        let modes = [
            SyncMode::Each,
            SyncMode::Batch,
            SyncMode::Interval { ns: 30_000_000 },
        ];
        if let Some(slot) = slot {
            self.slots[slot].user = Some(id);
            for (subgroup, disk) in self.slots[slot].disks.clone() {
                let mode = modes[self.rng.below(modes.len())];
                let keeper = self.open(slot, subgroup, &disk, mode, view);
                let Some(mut keeper) = keeper else {
                    continue;
                };
                let end = keeper.log_end();
                endpoints.push((number_of(subgroup), endpoint_of(subgroup, end)));
                node.topics.insert(subgroup, Topic::new(Some(keeper)));
            }
        }
        self.nodes.insert(id, node);
        endpoints
    }

    fn open(
        &self,
        slot: usize,
        subgroup: SubgroupId,
        disk: &SimDisk,
        mode: SyncMode,
        view: Option<&View>,
    ) -> Option<LogKeeper<SimDisk, Vec<u8>>> {
        let opened = TopicLog::open(disk.clone());
        let log = match opened {
            Ok(Some((log, _))) => log,
            // It is created while others have a beginning that it could not know of.
            Ok(None) if !self.may_create(subgroup, view) => return None,
            Ok(None) => {
                let id = LogId(1 + 100 * slot as u128 + u128::from(subgroup.0));
                TopicLog::create(disk.clone(), id, &head(subgroup)).ok()?
            }
            Err(_) => return None,
        };
        if log.state().lineage == 0 && !self.may_create(subgroup, view) {
            return None;
        }
        Some(LogKeeper::new(log, mode))
    }

    /// Logs that begin apart from others are other lineages: that is not what is tried here.
    fn may_create(&self, subgroup: SubgroupId, view: Option<&View>) -> bool {
        let group = view.and_then(|view| view.logs.get(&key_of(subgroup)));
        // A group that has seen an origin stays with it.
        let has_loggers = group.is_some_and(|it| !it.loggers.is_empty() || it.lineage != 0);
        let is_first = self.lineages(subgroup).is_empty() && group.is_none();
        let mut nodes = self.nodes.values();
        let is_alone = !nodes.any(|it| it.has_log(subgroup));
        has_loggers || is_first && is_alone
    }

    /// What the logs of a topic descend from.
    pub(super) fn lineages(&self, subgroup: SubgroupId) -> BTreeSet<u128> {
        let disks = self.slots.iter().filter_map(|it| it.disks.get(&subgroup));
        let states = disks.filter_map(|it| checks::at_rest(it));
        states.map(|it| it.0).filter(|it| *it != 0).collect()
    }

    /// The participants that are gone let go of their disks.
    pub(super) fn release(&mut self, lives: impl Fn(MemberId) -> bool) {
        let gone: Vec<MemberId> = self
            .nodes
            .keys()
            .copied()
            .filter(|it| !lives(*it))
            .collect();
        for id in gone {
            self.nodes.remove(&id);
            let Some(slot) = self.slots.iter_mut().find(|it| it.user == Some(id)) else {
                continue;
            };
            slot.user = None;
            let has_power = self.rng.chance(0.3);
            for disk in slot.disks.values() {
                match has_power {
                    true => disk.end_process(),
                    false => disk.crash(&mut self.rng),
                }
            }
        }
    }

    /// Faults of disks.
    pub(super) fn inject_faults(&mut self, plan: &LoggedPlan) {
        if plan.full <= 0.0 && plan.failing <= 0.0 {
            return;
        }
        let at = self.rng.below(self.slots.len());
        let disks: Vec<&SimDisk> = self.slots[at].disks.values().collect();
        let Some(disk) = self.rng.pick(&disks) else {
            return;
        };
        if self.rng.chance(plan.full) {
            let room = self.rng.chance(0.5).then(|| disk.used() + 200);
            disk.set_capacity(room);
        }
        if self.rng.chance(plan.failing) {
            disk.fail_sync_after(self.rng.below(3) as u64);
        }
    }

    /// No disk is full any more.
    pub(super) fn make_room(&self) {
        for slot in &self.slots {
            slot.disks.values().for_each(|it| it.set_capacity(None));
        }
    }
}
