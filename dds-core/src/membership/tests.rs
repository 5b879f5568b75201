//! The view protocol alone, over the simulated network: random crashes, pauses,
//! joins, leaves and updates; lanes are counters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spindle_dds_transport::Rank;
use spindle_dds_transport::sim::{NodeId, Rng, SegmentId, SimFabric, SimNetwork, SimOptions};

use super::*;
use crate::config::PlantedBug;
use crate::ids::{Ring, SubgroupId, TopicKey};
use crate::spec::{LaneSpec, RingSpec};

const LIMIT: u64 = 3_000;

/// What every member has of every sender: the truth, which no member knows.
#[derive(Debug, Default)]
struct Counters {
    /// By lane (subgroup, epoch) and sender.
    sent: BTreeMap<(u32, u64), BTreeMap<MemberId, u64>>,
    /// By lane, receiver and sender.
    received: BTreeMap<(u32, u64), BTreeMap<MemberId, BTreeMap<MemberId, u64>>>,
}

/// One member's lanes.
#[derive(Debug)]
struct Mock {
    id: MemberId,
    view: Arc<View>,
    counters: Counters,
    wedged: BTreeSet<(u32, u64)>,
    frozen: BTreeSet<(u32, u64)>,
    fenced: BTreeSet<MemberId>,
    slow: u32,
    /// It reports of nothing.
    silent: bool,
    /// What the others have sent as far as it can be seen from here.
    visible: BTreeMap<(u32, u64), BTreeMap<MemberId, u64>>,
}

impl Mock {
    fn mine(&self, which: &Touched) -> Vec<LaneSpec> {
        let me = self.view.rank(self.id);
        let groups = self.view.lanes.iter();
        let mine = groups.filter(|group| which.contains(group.subgroup));
        let member = |group: &&LaneSpec| me.is_some_and(|me| group.members.contains(&me));
        mine.filter(member).cloned().collect()
    }
}

fn lane(group: &LaneSpec) -> (u32, u64) {
    (group.subgroup.0, group.epoch)
}

fn senders<'a>(view: &'a View, group: &'a LaneSpec) -> impl Iterator<Item = MemberId> + 'a {
    group
        .senders
        .iter()
        .map(|sender| view.members[group.members[sender.rank.index()].index()].id)
}

impl LaneEnds for Mock {
    fn wedge(&mut self, which: &Touched) -> bool {
        if self.slow > 0 {
            self.slow -= 1;
            return false;
        }
        let mine = self.mine(which);
        self.wedged.extend(mine.iter().map(lane));
        true
    }

    fn freeze(&mut self, which: &Touched) -> Result<Vec<Trim>, (Rank, String)> {
        if self.silent {
            return Ok(Vec::new());
        }
        let view = self.view.clone();
        let groups = self.mine(which);
        let trim = |group: &LaneSpec| {
            let lane = lane(group);
            let first = self.frozen.insert(lane);
            let counts = senders(&view, group).map(|sender| {
                let have = self.counters.received.entry(lane).or_default();
                let have = have.entry(self.id).or_default().entry(sender).or_default();
                if first && !self.fenced.contains(&sender) {
                    let visible = self.visible.get(&lane).and_then(|sent| sent.get(&sender));
                    *have = (*have).max(visible.copied().unwrap_or(0));
                }
                *have
            });
            Trim {
                subgroup: group.subgroup,
                counts: counts.collect(),
            }
        };
        Ok(groups.iter().map(trim).collect())
    }

    fn fence(&mut self, member: Rank) {
        self.fenced.insert(self.view.members[member.index()].id);
    }
}

struct Node {
    id: MemberId,
    membership: Membership<SimFabric>,
    lanes: Mock,
    /// Finished its view, and begins the next at this turn.
    next: Option<(Finish, u64)>,
    paused_until: u64,
    crashed: bool,
    out: Option<OutReason>,
    updates: u64,
    leaving: bool,
    disturbed: bool,
}

struct World {
    rng: Rng,
    now: u64,
    network: SimNetwork,
    nodes_of: BTreeMap<MemberId, NodeId>,
    /// By side and view, as are the proposals.
    controls: BTreeMap<(bool, u64), SegmentId>,
    nodes: Vec<Node>,
    /// The domain's record on the host.
    record: Arc<View>,
    /// Digest of the proposal that made it.
    made_by: u64,
    proposals: BTreeMap<(bool, u64), Arc<Proposal>>,
    born: u128,
    planted: Option<PlantedBug>,
    joining: BTreeMap<MemberId, Member>,
    /// Those on the one side of a divided network.
    apart: BTreeSet<MemberId>,
    apart_then: BTreeSet<MemberId>,
    divides_at: Option<u64>,
    /// Both sides may go on, and are looked at one by one.
    availability: bool,
    /// Who changes its endpoints notes something, too.
    noting: bool,
}

type Check = Result<(), String>;

impl World {
    fn new(seed: u64, planted: Option<PlantedBug>) -> Self {
        let mut rng = Rng::new(seed);
        let options = SimOptions::swarm(&mut rng);
        let network = SimNetwork::new(seed, 0, options);
        let count = 1 + rng.below(4) as u128;
        let members: Vec<Member> = (1..=count).map(|id| member(id, &mut rng)).collect();
        let mut view = View::first(members[0].clone()).unwrap();
        let mut all = Proposal::empty(1);
        all.joins = members[1..].to_vec();
        view = view.next(&all).unwrap();
        let view = Arc::new(view);
        let mut world = Self {
            rng,
            now: 1,
            network,
            nodes_of: BTreeMap::new(),
            controls: BTreeMap::new(),
            nodes: Vec::new(),
            record: view.clone(),
            made_by: 0,
            proposals: BTreeMap::new(),
            born: count,
            planted,
            joining: BTreeMap::new(),
            apart: BTreeSet::new(),
            apart_then: BTreeSet::new(),
            divides_at: None,
            availability: false,
            noting: seed.is_multiple_of(2),
        };
        for member in &view.members {
            world.house(member.id);
        }
        for member in &view.members {
            world.spawn(member.id, &view);
        }
        world
    }

    /// A world of several hosts whose network is about to divide.
    fn divided(seed: u64) -> Self {
        let mut world = Self::new(seed, None);
        let mut rng = Rng::new(seed);
        let count = 2 + rng.below(4);
        let mut members: Vec<Member> = (1..=count as u128).map(|id| member(id, &mut rng)).collect();
        let apart = 1 + rng.below(count - 1);
        for (at, member) in members.iter_mut().enumerate() {
            // Members of one host are never divided.
            let side = u128::from(at < apart);
            member.host = HostId(side << 8 | rng.below(2) as u128);
        }
        let mut all = Proposal::empty(1);
        all.joins = members.split_off(1);
        let first = View::first(members.remove(0)).unwrap();
        let view = Arc::new(first.next(&all).unwrap());
        world.nodes.clear();
        world.nodes_of.clear();
        world.controls.clear();
        world.record = view.clone();
        for member in &view.members {
            world.house(member.id);
        }
        for member in &view.members {
            world.spawn(member.id, &view);
        }
        world.divides_at = Some(1 + rng.below(500) as u64);
        world.apart_then = (1..=apart as u128).map(MemberId).collect();
        world
    }

    fn divide(&mut self) {
        if self.divides_at != Some(self.now) {
            return;
        }
        self.apart = self.apart_then.clone();
        for (one, left) in &self.nodes_of {
            for (other, right) in &self.nodes_of {
                if self.apart.contains(one) && !self.apart.contains(other) {
                    self.network.sever(*left, *right);
                }
            }
        }
    }

    /// A node of the network for somebody who may become a member.
    fn house(&mut self, id: MemberId) {
        let network = &self.network;
        self.nodes_of
            .entry(id)
            .or_insert_with(|| network.add_node());
    }

    fn spawn(&mut self, id: MemberId, view: &Arc<View>) {
        let membership = self.begin(id, view, &[], Vec::new());
        self.nodes.push(Node {
            id,
            membership,
            lanes: Mock {
                id,
                view: view.clone(),
                counters: Counters::default(),
                wedged: BTreeSet::new(),
                frozen: BTreeSet::new(),
                fenced: BTreeSet::new(),
                slow: 0,
                silent: false,
                visible: BTreeMap::new(),
            },
            next: None,
            paused_until: 0,
            crashed: false,
            out: None,
            updates: 0,
            leaving: false,
            disturbed: false,
        });
    }

    fn begin(
        &mut self,
        id: MemberId,
        view: &Arc<View>,
        suspected: &[(Rank, String)],
        requests: Vec<Request>,
    ) -> Membership<SimFabric> {
        let node = |member: &Member| self.nodes_of[&member.id];
        let rows: Vec<_> = view
            .members
            .iter()
            .map(|member| (node(member), CONTROL_ROW_LEN))
            .collect();
        let network = &self.network;
        let control = *self
            .controls
            .entry((self.apart.contains(&id), view.id))
            .or_insert_with(|| network.open_control(&rows));
        let rules = Rules {
            detection: Detection {
                limit: LIMIT,
                preparation: 0,
            },
            prefer_availability: self.availability,
            #[cfg(feature = "planted")]
            planted: self.planted,
        };
        let rank = view.rank(id).unwrap();
        Membership::new(
            network.fabric(control, rank),
            view.clone(),
            rules,
            suspected,
            requests,
        )
    }

    fn crash(&mut self, at: usize) {
        self.network.crash(self.nodes_of[&self.nodes[at].id]);
        self.nodes[at].crashed = true;
    }

    fn is_up(&self, at: usize) -> bool {
        let node = &self.nodes[at];
        !node.crashed && node.out.is_none()
    }

    fn run(&mut self, seed: u64) -> Check {
        let faults_until = 2_000 + self.rng.below(4_000) as u64;
        let mut crash_chance = [0.0, 0.0005, 0.002, 0.01][self.rng.below(4)];
        if self.planted == Some(PlantedBug::HastyTakeover) {
            // It takes two mistaken suspicions at one moment.
            crash_chance = 0.01;
        }
        for turn in 0..60_000 {
            self.now += 1;
            self.divide();
            let faults = turn < faults_until && self.divides_at.is_none();
            self.turn(faults, crash_chance)?;
            let divided = self.divides_at.is_none_or(|at| at < self.now);
            if !faults && divided && turn % 64 == 0 && self.is_settled() {
                return Ok(());
            }
        }
        Err(format!("seed {seed}: not settled: {}", self.describe()))
    }

    fn describe(&self) -> String {
        let nodes = self.nodes.iter().map(|node| {
            let view = node.membership.view();
            format!(
                "{} in view {} of {} as {}{}{:?}",
                node.id.0,
                view.id,
                view.members.len(),
                node.membership.me(),
                if node.crashed { " crashed " } else { " " },
                node.out
            )
        });
        nodes.collect::<Vec<_>>().join("; ")
    }

    /// All that are up are in one view of exactly those, and nothing is asked for.
    fn is_settled(&self) -> bool {
        let up = (0..self.nodes.len()).filter(|&at| self.is_up(at));
        let (apart, rest) = up.partition(|at| self.apart.contains(&self.nodes[*at].id));
        match self.availability {
            true => self.are_settled(apart) && self.are_settled(rest),
            false => self.are_settled([apart, rest].concat()),
        }
    }

    fn are_settled(&self, up: Vec<usize>) -> bool {
        let Some(&first) = up.first() else {
            return true;
        };
        let view = self.nodes[first].membership.view().clone();
        let ids: BTreeSet<_> = up.iter().map(|&at| self.nodes[at].id).collect();
        let members: BTreeSet<_> = view.members.iter().map(|member| member.id).collect();
        let apart = members.iter().filter(|id| self.apart.contains(id)).count();
        let whole = apart == 0 || apart == members.len();
        ids == members
            && whole
            && up.iter().all(|&at| {
                let node = &self.nodes[at];
                node.next.is_none()
                    && node.membership.view().id == view.id
                    && node.membership.requests_open() == 0
            })
    }

    fn turn(&mut self, faults: bool, crash_chance: f64) -> Check {
        for _ in 0..self.rng.below(12) {
            self.network.step();
        }
        if self.nodes.is_empty() {
            return Ok(());
        }
        let at = self.rng.below(self.nodes.len());
        if faults && self.rng.chance(0.02) {
            self.ask(at);
        }
        // The most delicate moments get more than their share.
        let proposing = self.nodes[at].membership.is_proposing();
        let chance = crash_chance * if proposing { 20.0 } else { 1.0 };
        if faults && self.rng.chance(chance) && self.is_up(at) {
            let kind = match self.planted {
                Some(PlantedBug::HastyTakeover) => 1,
                _ => self.rng.below(3),
            };
            if kind == 0 {
                self.crash(at);
            } else if kind == 1 {
                // A mistake: whoever it is, is alive.
                let node = &mut self.nodes[at];
                let members = node.membership.view().members.len();
                let low = 1 + self.rng.below(members);
                let whom = Rank(self.rng.below(low) as u16);
                if node.next.is_none() {
                    node.membership.suspect(whom, "a mistake", &mut node.lanes);
                    node.disturbed = true;
                }
            } else {
                // Beyond the limit, or below it.
                let pause = self.rng.below(2 * LIMIT as usize) as u64;
                self.nodes[at].paused_until = self.now + pause;
                self.nodes[at].disturbed = true;
            }
        }
        if !self.is_up(at) || self.nodes[at].paused_until > self.now {
            return Ok(());
        }
        self.traffic(at);
        self.step(at)
    }

    fn ask(&mut self, at: usize) {
        if !self.is_up(at) {
            return;
        }
        match self.rng.below(8) {
            0 if self.nodes.len() < 7 => {
                self.born += 1;
                let newcomer = member(self.born, &mut self.rng);
                self.house(newcomer.id);
                self.joining.insert(newcomer.id, newcomer.clone());
                self.nodes[at].membership.request(Request::Join(newcomer));
            }
            1 if !self.nodes[at].leaving && self.rng.chance(0.3) => {
                self.nodes[at].leaving = true;
                self.nodes[at].membership.request(Request::Leave);
            }
            2 | 3 => {
                let put = (0..self.rng.below(3)).map(|_| {
                    let number = self.rng.below(4) as u64;
                    (number, endpoint(&mut self.rng))
                });
                let put = put.collect();
                let remove = vec![self.rng.below(4) as u64 + 4];
                let node = &mut self.nodes[at];
                node.updates += 1;
                let mut notes = Notes::default();
                if self.noting {
                    notes.put = vec![(node.updates % 3, vec![7; at + 1].into())];
                    notes.remove = vec![(node.updates + 1) % 3];
                }
                let update = Update {
                    member: node.id,
                    number: node.updates,
                    put,
                    remove,
                    notes,
                };
                node.membership.request(Request::Update(update));
            }
            _ => {}
        }
    }

    /// Sends a little, and receives a little of what the others sent.
    fn traffic(&mut self, at: usize) {
        let node = &self.nodes[at];
        if node.next.is_some() {
            return;
        }
        let (id, view) = (node.id, node.lanes.view.clone());
        for group in node.lanes.mine(&Touched::All) {
            let lane = lane(&group);
            let names: Vec<MemberId> = senders(&view, &group).collect();
            let node = &mut self.nodes[at];
            if names.contains(&id) && !node.lanes.wedged.contains(&lane) && self.rng.chance(0.3) {
                let sent = node.lanes.counters.sent.entry(lane).or_default();
                *sent.entry(id).or_default() += 1;
            }
            for name in names {
                let sender = self.nodes.iter().find(|node| node.id == name);
                let sent = sender.and_then(|sender| sender.lanes.counters.sent.get(&lane));
                let sent = sent.and_then(|sent| sent.get(&name)).copied().unwrap_or(0);
                let reaches = self.rng.chance(0.3);
                let lanes = &mut self.nodes[at].lanes;
                let visible = lanes.visible.entry(lane).or_default();
                visible.insert(name, sent);
                let open = !lanes.frozen.contains(&lane) && !lanes.fenced.contains(&name);
                if open && (reaches || name == id) {
                    let received = lanes.counters.received.entry(lane).or_default();
                    received.entry(id).or_default().insert(name, sent);
                }
            }
        }
    }

    fn step(&mut self, at: usize) -> Check {
        if let Some((_, when)) = &self.nodes[at].next {
            if *when <= self.now {
                self.install(at);
            }
            return Ok(());
        }
        let now = self.now;
        let node = &mut self.nodes[at];
        let honest = |cause: &str| !cause.contains("sense") && !cause.contains("another end");
        if let Some((rank, cause)) = node.membership.suspects().find(|(_, cause)| !honest(cause)) {
            return Err(format!("{} suspects member {rank}: {cause}", node.id.0));
        }
        match node.membership.step(now, &mut node.lanes) {
            None => Ok(()),
            // Several hosts: the majority has decided it already.
            Some(Action::Decide(Decision { next, .. })) if self.divides_at.is_some() => {
                self.record = next;
                let _ = self.nodes[at].membership.decided(Ok(()));
                Ok(())
            }
            Some(Action::Decide(Decision { next, digest })) => {
                let ends = node.membership.view().id;
                let answer = if self.record.id == ends {
                    (self.record, self.made_by) = (next, digest);
                    Ok(())
                } else if *self.record == *next && self.made_by == digest {
                    Ok(())
                } else {
                    Err(format!("view {} is there", self.record.id))
                };
                match self.nodes[at].membership.decided(answer) {
                    Some(Action::Out(reason)) => self.out(at, reason),
                    _ => Ok(()),
                }
            }
            Some(Action::Finish(finish)) => self.finish(at, finish),
            Some(Action::Out(reason)) => self.out(at, reason),
        }
    }

    fn out(&mut self, at: usize, reason: OutReason) -> Check {
        let legal = match reason {
            OutReason::Left => self.nodes[at].leaving,
            OutReason::Expelled { .. } | OutReason::Refused(_) => {
                self.divides_at.is_some() || self.nodes.iter().any(|node| node.disturbed)
            }
            OutReason::Behind { .. } => false,
            OutReason::NoMajority { .. } => self.divides_at.is_some() && !self.availability,
        };
        self.crash(at);
        self.nodes[at].out = Some(reason.clone());
        if legal {
            Ok(())
        } else {
            Err(format!("{} is out: {reason}", self.nodes[at].id.0))
        }
    }

    fn finish(&mut self, at: usize, finish: Finish) -> Check {
        let node = &self.nodes[at];
        let view = node.membership.view().clone();
        let first = self
            .proposals
            .entry((self.apart.contains(&self.nodes[at].id), view.id))
            .or_insert_with(|| finish.proposal.clone());
        if *first != finish.proposal {
            return Err(format!("view {} ends in two ways", view.id));
        }
        if !self.availability && *self.record != *finish.next && self.record.id <= finish.next.id {
            return Err(format!("view {} was not decided", finish.next.id));
        }
        self.check_trims(at, &view, &finish)?;
        let Some(_) = finish.next.rank(self.nodes[at].id) else {
            return self.out(at, OutReason::Left);
        };
        let next = finish.next.clone();
        for member in &next.members {
            if self.joining.remove(&member.id).is_some() {
                self.spawn(member.id, &next);
            }
        }
        let when = self.now + self.rng.below(50) as u64;
        self.nodes[at].next = Some((finish, when));
        Ok(())
    }

    /// A survivor has all that it is to deliver, and nothing of its own is lost.
    fn check_trims(&self, at: usize, view: &View, finish: &Finish) -> Check {
        let node = &self.nodes[at];
        for trim in &finish.proposal.trims {
            let Some(group) = view.lane(trim.subgroup) else {
                return Err("a trim of nothing".to_owned());
            };
            if !group.members.contains(&node.membership.me()) {
                continue;
            }
            for (sender, &count) in senders(view, group).zip(&trim.counts) {
                let received = node.lanes.counters.received.get(&lane(group));
                let received = received.and_then(|received| received.get(&node.id)?.get(&sender));
                if count > received.copied().unwrap_or(0) {
                    return Err(format!("{} has not what it is to deliver", node.id.0));
                }
                let sent = node.lanes.counters.sent.get(&lane(group));
                let sent = sent
                    .and_then(|sent| sent.get(&sender))
                    .copied()
                    .unwrap_or(0);
                if sender == node.id && count != sent {
                    return Err(format!("{} sent {sent}, {count} are kept", node.id.0));
                }
            }
        }
        Ok(())
    }

    fn install(&mut self, at: usize) {
        let Some((finish, _)) = self.nodes[at].next.take() else {
            return;
        };
        let node = &mut self.nodes[at];
        let old = node.membership.view().clone();
        let carried: Vec<(Rank, String)> = node
            .membership
            .suspects()
            .filter_map(|(rank, cause)| {
                let id = old.members[rank.index()].id;
                Some((finish.next.rank(id)?, cause.to_owned()))
            })
            .collect();
        let requests = node.membership.take_requests();
        node.lanes.view = finish.next.clone();
        node.lanes.slow = 3;
        let id = node.id;
        self.nodes[at].membership = self.begin(id, &finish.next, &carried, requests);
    }
}

fn endpoint(rng: &mut Rng) -> Endpoint {
    let ring = RingSpec::at_least(4, 256);
    let kind = [
        None,
        Some((Ring::Ordered, ring)),
        Some((Ring::Unordered, ring)),
    ];
    Endpoint {
        subgroup: SubgroupId(rng.below(4) as u32),
        topic: TopicKey(7),
        ring: kind[rng.below(3)],
        info: vec![1; rng.below(20)],
    }
}

fn member(id: u128, rng: &mut Rng) -> Member {
    Member {
        id: MemberId(id),
        host: HostId(1),
        address: Vec::new(),
        info: Vec::new(),
        updates: 0,
        endpoints: (0..rng.below(3) as u64)
            .map(|number| (number, endpoint(rng)))
            .collect(),
        notes: Default::default(),
    }
}

fn seeds(range: core::ops::Range<u64>, planted: Option<PlantedBug>) -> Check {
    for seed in range {
        let result = World::new(seed, planted).run(seed);
        result.map_err(|what| format!("seed {seed}: {what}"))?;
    }
    Ok(())
}

#[test]
fn views_are_agreed_whatever_happens() {
    let end = std::env::var("MEMBERSHIP_SEEDS").map_or(60, |end| end.parse().unwrap());
    seeds(0..end, None).unwrap();
}

/// Three to five members on hosts of their own, but some on one, and the network
/// divides: a strict majority goes on, the rest stops.
#[test]
fn a_divided_network_has_at_most_one_group() {
    let mut went_on = 0;
    for seed in 0..60 {
        let mut world = World::divided(seed);
        let members = world.nodes.len();
        let apart = world.apart_then.len();
        world.run(seed).unwrap();
        let up: BTreeSet<_> = (0..members).filter(|&at| world.is_up(at)).collect();
        let majority = (members - apart).max(apart);
        if majority * 2 > members {
            assert_eq!(up.len(), majority, "seed {seed}: {}", world.describe());
            went_on += 1;
        } else {
            assert!(up.is_empty(), "seed {seed}: {}", world.describe());
        }
    }
    assert!(went_on > 20);
}

/// The same, where availability is preferred: both sides go on.
#[test]
fn a_divided_network_has_two_groups_if_that_is_preferred() {
    for seed in 0..60 {
        let mut world = World::divided(seed);
        // Their rules stand in their memberships, which begin anew.
        world.availability = true;
        let view = world.record.clone();
        (world.nodes, world.controls) = (Vec::new(), BTreeMap::new());
        for member in &view.members {
            world.spawn(member.id, &view);
        }
        world.run(seed).unwrap();
        let up = (0..world.nodes.len()).all(|at| world.is_up(at));
        assert!(up, "seed {seed}: {}", world.describe());
        let view = |node: &Node| node.membership.view().clone();
        let views: Vec<_> = world.nodes.iter().map(view).collect();
        for (node, view) in world.nodes.iter().zip(&views) {
            let apart = |id: &MemberId| world.apart.contains(id);
            let side = world.nodes.iter().map(|node| node.id);
            let side: Vec<_> = side.filter(|id| apart(id) == apart(&node.id)).collect();
            let there: Vec<_> = view.members.iter().map(|it| it.id).collect();
            assert_eq!(there, side, "seed {seed}");
        }
    }
}

/// What one leaves out of its report is not held against who proposes.
#[test]
fn a_report_that_leaves_out_a_lane_makes_no_sense() {
    let mut world = World::new(0, None);
    let mut rng = Rng::new(0);
    let mut members: Vec<Member> = (11..13).map(|id| member(id, &mut rng)).collect();
    members[0].endpoints.clear();
    let sender = (0, endpoint(&mut Rng::new(3)));
    members[1].endpoints = BTreeMap::from([sender]);
    let mut both = Proposal::empty(1);
    both.joins = members.split_off(1);
    let first = View::first(members.remove(0)).unwrap();
    let view = Arc::new(first.next(&both).unwrap());
    (world.nodes, world.controls) = (Vec::new(), BTreeMap::new());
    for member in &view.members {
        world.house(member.id);
    }
    for member in &view.members {
        world.spawn(member.id, &view);
    }
    world.nodes[1].lanes.silent = true;
    world.nodes[1].membership.request(Request::Leave);
    for _ in 0..500 {
        world.now += 1;
        world.network.step();
        let now = world.now;
        for node in &mut world.nodes {
            let _ = node.membership.step(now, &mut node.lanes);
        }
    }
    let suspects = |at: usize| {
        let suspects = world.nodes[at].membership.suspects();
        let text = |(rank, cause): (Rank, &str)| (rank, cause.to_owned());
        suspects.map(text).collect::<Vec<_>>()
    };
    let named = (Rank(1), "its report makes no sense".to_owned());
    assert_eq!(suspects(0), [named]);
    assert_eq!(suspects(1), []);
}

#[test]
#[cfg(feature = "planted")]
fn planted_bugs_are_found() {
    use PlantedBug::*;
    for bug in [
        ReportBeforeWedge,
        OwnTrim,
        CommitsUnrepeated,
        ForgetsEcho,
        HastyTakeover,
    ] {
        let found = seeds(0..1000, Some(bug));
        println!("{bug:?}: {found:?}");
        assert!(found.is_err(), "{bug:?} is not found");
    }
}
