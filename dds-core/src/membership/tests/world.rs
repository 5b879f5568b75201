//! Members over a simulated network, and what is checked of them at every step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spindle_dds_transport::Rank;
use spindle_dds_transport::sim::{NodeId, Rng, SegmentId, SimFabric, SimNetwork, SimOptions};

use super::faults::Faults;
use super::subgroups::{Mock, epoch_key, senders};
use crate::ids::{DeliveryClass, SubgroupId, TopicKey};
use crate::membership::*;
use crate::spec::RingSpec;

pub(super) const LIMIT: u64 = 3_000;

pub(super) struct Node {
    pub(super) id: MemberId,
    pub(super) membership: Membership<SimFabric>,
    pub(super) subgroups: Mock,
    /// The number of a preparation, and when it is answered with what.
    pub(super) preparing: Option<(u64, u64, Result<(), String>)>,
    /// The view has ended here; the next one begins at this turn.
    pub(super) next: Option<(Finish, u64)>,
    pub(super) paused_until: u64,
    pub(super) crashed: bool,
    pub(super) out: Option<OutReason>,
    pub(super) updates: u64,
    pub(super) leaving: bool,
    pub(super) disturbed: bool,
}

pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) now: u64,
    pub(super) network: SimNetwork,
    pub(super) nodes_of: BTreeMap<MemberId, NodeId>,
    /// By side and view, as are the proposals.
    pub(super) controls: BTreeMap<(bool, u64), SegmentId>,
    pub(super) nodes: Vec<Node>,
    /// The domain's record on the host.
    pub(super) record: Arc<View>,
    /// Digest of the proposal that made it.
    pub(super) made_by: u64,
    pub(super) proposals: BTreeMap<(bool, u64), Arc<Proposal>>,
    pub(super) born: u128,
    pub(super) joining: BTreeMap<MemberId, Member>,
    /// Members on one side of a divided network.
    pub(super) apart: BTreeSet<MemberId>,
    pub(super) apart_then: BTreeSet<MemberId>,
    pub(super) divides_at: Option<u64>,
    /// Whether both sides may go on; they are then checked one by one.
    pub(super) availability: bool,
    pub(super) faults: Faults,
    /// Chance that a member cannot prepare a view.
    pub(super) lacking: f64,
}

pub(super) type Check = Result<(), String>;

impl World {
    /// A world of one host, with all kinds of faults.
    pub(super) fn new(seed: u64) -> Self {
        let mut world = Self::empty(seed);
        let chance = [0.0, 0.0005, 0.002, 0.01][world.rng.below(4)];
        world.faults = Faults::Any(chance);
        world.lacking = [0.0, 0.1, 0.6][world.rng.below(3)];
        let members = 1 + world.rng.below(4);
        world.populate(members);
        world
    }

    /// A world of one host, in which leaders are replaced while they propose.
    pub(super) fn contested(seed: u64) -> Self {
        let mut world = Self::empty(seed);
        world.faults = Faults::Takeovers;
        let members = 4 + world.rng.below(4);
        world.populate(members);
        world
    }

    /// A world of several hosts whose network is about to divide. With `availability` both sides go
    /// on, and are checked one by one.
    pub(super) fn divided(seed: u64, availability: bool) -> Self {
        let mut world = Self::empty(seed);
        world.availability = availability;
        let mut rng = Rng::new(seed);
        let count = 2 + rng.below(4);
        let mut members: Vec<Member> = (1..=count as u128).map(|id| member(id, &mut rng)).collect();
        let apart = 1 + rng.below(count - 1);
        for (at, member) in members.iter_mut().enumerate() {
            // Members of one host are never divided.
            let side = u128::from(at < apart);
            member.host = HostId(side << 8 | rng.below(2) as u128);
        }
        world.settle(members);
        world.divides_at = Some(1 + rng.below(500) as u64);
        world.apart_then = (1..=apart as u128).map(MemberId).collect();
        world
    }

    /// A world of one host and these members, without faults.
    pub(super) fn of(members: Vec<Member>) -> Self {
        let mut world = Self::empty(0);
        world.settle(members);
        world
    }

    /// A world without members and without faults.
    fn empty(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let options = SimOptions::swarm(&mut rng);
        let empty = View::first(member(0, &mut rng)).unwrap();
        Self {
            rng,
            now: 1,
            network: SimNetwork::new(seed, 0, options),
            nodes_of: BTreeMap::new(),
            controls: BTreeMap::new(),
            nodes: Vec::new(),
            record: Arc::new(empty),
            made_by: 0,
            proposals: BTreeMap::new(),
            born: 0,
            joining: BTreeMap::new(),
            apart: BTreeSet::new(),
            apart_then: BTreeSet::new(),
            divides_at: None,
            availability: false,
            faults: Faults::None,
            lacking: 0.0,
        }
    }

    /// Adds members of one host.
    fn populate(&mut self, members: usize) {
        let ids = 1..=members as u128;
        let members = ids.map(|id| member(id, &mut self.rng)).collect();
        self.settle(members);
    }

    /// Begins the first view with these members.
    fn settle(&mut self, mut members: Vec<Member>) {
        let mut others = Proposal::empty(1);
        others.joins = members.split_off(1);
        let first = View::first(members.remove(0)).unwrap();
        let view = Arc::new(first.next(&others).unwrap());
        self.born = view.members.len() as u128;
        self.record = view.clone();
        for member in &view.members {
            self.add_node_for(member.id);
        }
        for member in &view.members {
            self.spawn(member.id, &view);
        }
    }

    /// Adds a node of the network for a possible member.
    pub(super) fn add_node_for(&mut self, id: MemberId) {
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
            subgroups: Mock::new(id, view.clone()),
            preparing: None,
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
        requests: Vec<OpenRequest>,
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
                timeout_ns: LIMIT,
                preparation_ns: 0,
            },
            prefer_availability: self.availability,
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

    pub(super) fn crash(&mut self, at: usize) {
        self.network.crash(self.nodes_of[&self.nodes[at].id]);
        self.nodes[at].crashed = true;
    }

    pub(super) fn is_up(&self, at: usize) -> bool {
        let node = &self.nodes[at];
        !node.crashed && node.out.is_none()
    }

    /// Runs with faults for a while, then until all is settled.
    pub(super) fn run(&mut self) -> Check {
        let faults_until = 2_000 + self.rng.below(4_000) as u64;
        for turn in 0..60_000 {
            self.now += 1;
            self.divide();
            let happens = turn < faults_until && self.divides_at.is_none();
            self.turn(happens)?;
            let divided = self.divides_at.is_none_or(|at| at < self.now);
            if !happens && divided && turn % 64 == 0 && self.is_settled() {
                return Ok(());
            }
        }
        Err(format!("not settled: {}", self.describe()))
    }

    pub(super) fn describe(&self) -> String {
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

    /// Whether all members that are up are in one view of exactly these, without open requests.
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

    fn turn(&mut self, happens: bool) -> Check {
        for _ in 0..self.rng.below(12) {
            self.network.step();
        }
        if self.nodes.is_empty() {
            return Ok(());
        }
        let at = self.rng.below(self.nodes.len());
        if happens && self.is_up(at) {
            self.request_something(at);
            self.harm(at);
        }
        if !self.is_up(at) || self.nodes[at].paused_until > self.now {
            return Ok(());
        }
        self.traffic(at);
        self.step(at)
    }

    /// Sends a little, and receives a little of what others have sent.
    fn traffic(&mut self, at: usize) {
        let node = &self.nodes[at];
        if node.next.is_some() {
            return;
        }
        let (id, view) = (node.id, node.subgroups.view.clone());
        for group in node.subgroups.mine(&Touched::All) {
            let epoch = epoch_key(&group);
            let names: Vec<MemberId> = senders(&view, &group).collect();
            let node = &mut self.nodes[at];
            if names.contains(&id)
                && !node.subgroups.wedged.contains(&epoch)
                && self.rng.chance(0.3)
            {
                let sent = node.subgroups.counters.sent.entry(epoch).or_default();
                *sent.entry(id).or_default() += 1;
            }
            for name in names {
                let sender = self.nodes.iter().find(|node| node.id == name);
                let sent = sender.and_then(|sender| sender.subgroups.counters.sent.get(&epoch));
                let sent = sent.and_then(|sent| sent.get(&name)).copied().unwrap_or(0);
                let reaches = self.rng.chance(0.3);
                let subgroups = &mut self.nodes[at].subgroups;
                let visible = subgroups.visible.entry(epoch).or_default();
                visible.insert(name, sent);
                let open = !subgroups.frozen.contains(&epoch) && !subgroups.fenced.contains(&name);
                if open && (reaches || name == id) {
                    let received = subgroups.counters.received.entry(epoch).or_default();
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
        let honest = |cause: &str| {
            let lies = [
                "violates",
                "another end",
                "not prepared",
                "wait for answers",
            ];
            !lies.iter().any(|lie| cause.contains(lie))
        };
        if let Some((rank, cause)) = node.membership.suspects().find(|(_, cause)| !honest(cause)) {
            return Err(format!("{} suspects member {rank}: {cause}", node.id.0));
        }
        if let Some((number, _, answer)) = node.preparing.take_if(|(_, when, _)| *when <= now) {
            node.membership.prepared(number, answer);
        }
        match node.membership.step(now, &mut node.subgroups) {
            None => Ok(()),
            Some(Action::Prepare(preparation)) => {
                let when = now + self.rng.below(50) as u64;
                let answer = match self.rng.chance(self.lacking) {
                    true => Err(format!("{} lacks memory", self.nodes[at].id.0)),
                    false => Ok(()),
                };
                self.nodes[at].preparing = Some((preparation.number, when, answer));
                Ok(())
            }
            Some(Action::StopPreparing { number }) => {
                drop(
                    node.preparing
                        .take_if(|(preparing, ..)| *preparing == number),
                );
                Ok(())
            }
            Some(Action::CallOff) => {
                node.preparing = None;
                Ok(())
            }
            Some(Action::Refused(refused)) => self.refused(refused),
            // With several hosts the majority has decided already.
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
                    Some(Action::Out(reason)) => self.stop(at, reason),
                    _ => Ok(()),
                }
            }
            Some(Action::Finish(finish)) => self.finish(at, finish),
            Some(Action::Out(reason)) => self.stop(at, reason),
        }
    }

    /// A newcomer that is refused does not ask again.
    fn refused(&mut self, refused: Vec<(Request, Refusal)>) -> Check {
        for (request, Refusal { reason, .. }) in refused {
            match request {
                Request::Join(newcomer) => drop(self.joining.remove(&newcomer.id)),
                Request::Update(_) => {}
                Request::Leave => return Err(format!("a member may not leave: {reason}")),
            }
        }
        Ok(())
    }

    fn stop(&mut self, at: usize, reason: OutReason) -> Check {
        let legal = match reason {
            OutReason::Left => self.nodes[at].leaving,
            OutReason::Expelled { .. } | OutReason::Refused(_) => {
                self.divides_at.is_some() || self.nodes.iter().any(|node| node.disturbed)
            }
            OutReason::Behind { .. } | OutReason::Driver(_) => false,
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
            return self.stop(at, OutReason::Left);
        };
        let adds = finish.proposal.additions().next().is_some();
        if adds && finish.proposal.preparation == 0 {
            return Err(format!("view {} was not prepared", finish.next.id));
        }
        let next = finish.next.clone();
        let refused = self.nodes[at].membership.take_refused();
        self.refused(refused)?;
        for member in &next.members {
            if self.joining.remove(&member.id).is_some() {
                self.spawn(member.id, &next);
            }
        }
        let when = self.now + self.rng.below(50) as u64;
        self.nodes[at].next = Some((finish, when));
        Ok(())
    }

    /// Checks that a survivor has received all that it is to deliver, and that its own messages are
    /// within the trim.
    fn check_trims(&self, at: usize, view: &View, finish: &Finish) -> Check {
        let node = &self.nodes[at];
        for trim in &finish.proposal.trims {
            let Some(group) = view.subgroup(trim.subgroup) else {
                return Err("a trim of nothing".to_owned());
            };
            if !group.members.contains(&node.membership.me()) {
                continue;
            }
            for (sender, &count) in senders(view, group).zip(&trim.counts) {
                let received = node.subgroups.counters.received.get(&epoch_key(group));
                let received = received.and_then(|received| received.get(&node.id)?.get(&sender));
                if count > received.copied().unwrap_or(0) {
                    return Err(format!("{} has not what it is to deliver", node.id.0));
                }
                let sent = node.subgroups.counters.sent.get(&epoch_key(group));
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
        node.preparing = None;
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
        node.subgroups.view = finish.next.clone();
        node.subgroups.slow = 3;
        let id = node.id;
        self.nodes[at].membership = self.begin(id, &finish.next, &carried, requests);
    }
}

pub(super) fn endpoint(rng: &mut Rng) -> Endpoint {
    let ring = RingSpec::at_least(4, 256);
    let kind = [
        None,
        Some((DeliveryClass::Ordered, ring)),
        Some((DeliveryClass::Unordered, ring)),
    ];
    Endpoint {
        subgroup: SubgroupId(rng.below(4) as u32),
        topic: TopicKey(7),
        ring: kind[rng.below(3)],
        info: vec![1; rng.below(20)],
        log: None,
    }
}

pub(super) fn member(id: u128, rng: &mut Rng) -> Member {
    let endpoints = 0..rng.below(3);
    Member::test(id, endpoints.map(|_| endpoint(rng)))
}
