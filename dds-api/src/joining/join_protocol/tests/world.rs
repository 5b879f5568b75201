//! A simulation of hosts, newcomers, and groups that need a majority, as far as the join protocol
//! depends on them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::super::*;

/// The parameters of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Plan {
    /// A fault of the environment: hosts lose their records with each crash.
    pub(super) hosts_forget: bool,
    /// A fault of the configuration: each contact believes that it is the first.
    pub(super) all_found: bool,
    /// Several processes of a host are configured to listen at one contact: at most one does.
    pub(super) shared: bool,
    /// A fault of the environment: a participant that does not get its port at the start never
    /// does.
    pub(super) tries_once: bool,
}

const FAULT_STEPS: u64 = 3_000;
const CALM_STEPS: u64 = 30_000;

#[derive(Debug)]
pub(super) struct World {
    plan: Plan,
    /// State of the xorshift generator.
    random: u64,
    now: Duration,
    nodes: Vec<Node>,
    /// By contact: the process that listens there.
    listening: Vec<Option<u128>>,
    /// By host: the members of the last view that the host recorded.
    records: Vec<Vec<u128>>,
    /// The node of each process that ever ran.
    origins: BTreeMap<u128, usize>,
    /// Processes that did not get their port at their start, and have another address.
    elsewhere: BTreeSet<u128>,
    connected: BTreeSet<(u128, u128)>,
    /// Packets under way, by sender and receiver.
    sent: BTreeMap<(u128, u128), VecDeque<Packet>>,
    /// Pairs of hosts that cannot reach each other.
    cut: BTreeSet<(usize, usize)>,
    /// By group: the members of its current view.
    groups: Vec<BTreeSet<u128>>,
    /// How many newcomers gave up.
    gave_up: u64,
}

/// A node on which at most one process runs at a time.
#[derive(Debug)]
struct Node {
    host: usize,
    /// The contact at which its process is configured to listen.
    contact: usize,
    process: Option<Process>,
}

#[derive(Debug)]
struct Process {
    id: u128,
    has_secret: bool,
    /// By contact: whether the last call found another secret, or the process itself.
    called: BTreeMap<usize, bool>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Newcomer(Box<JoinProtocol>),
    /// With the index of its group.
    Member(usize),
}

#[derive(Debug)]
enum Packet {
    Ask {
        founds: bool,
        missing: BTreeSet<u128>,
    },
    /// With the processes that are certified dead.
    NotYet(NotYet, Vec<u128>),
    /// The index of the group, and its view.
    Welcome(usize, BTreeSet<u128>),
    /// The connection was lost.
    Lost,
}

impl World {
    pub(super) fn new(seed: u64, plan: Plan) -> Self {
        let mut world = Self {
            plan,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            now: Duration::ZERO,
            nodes: Vec::new(),
            listening: Vec::new(),
            records: Vec::new(),
            origins: BTreeMap::new(),
            elsewhere: BTreeSet::new(),
            connected: BTreeSet::new(),
            sent: BTreeMap::new(),
            cut: BTreeSet::new(),
            groups: Vec::new(),
            gave_up: 0,
        };
        let nodes = 3 + world.draw(3);
        let hosts = 2 + world.draw(nodes - 1);
        world.records = vec![Vec::new(); hosts];
        world.listening = vec![None; nodes];
        let node = |contact: usize| Node {
            host: contact % hosts,
            contact,
            process: None,
        };
        world.nodes = (0..nodes).map(node).collect();
        if plan.shared {
            let second = world.draw(nodes);
            world.nodes.extend([node(0), node(second)]);
        }
        world
    }

    pub(super) fn founded(&self) -> u64 {
        self.groups.len() as u64
    }

    /// How many newcomers gave up.
    pub(super) fn gave_up(&self) -> u64 {
        self.gave_up
    }

    /// Runs steps with faults, then steps without, until there is one group.
    pub(super) fn run(&mut self) -> Result<(), String> {
        let [crashes, restarts, cuts, heals] = [4, 8, 3, 3].map(|most| 1 + self.draw(most));
        for _ in 0..FAULT_STEPS {
            let mut what = self.draw(400);
            let mut is = |often: usize| {
                let is = what < often;
                what = what.wrapping_sub(often);
                is
            };
            if is(crashes) {
                self.crash_any();
            } else if is(restarts) {
                let has_secret = self.draw(6) > 0;
                self.restart_any(has_secret);
            } else if is(cuts) {
                self.cut_any();
            } else if is(heals) {
                self.cut.clear();
            } else {
                self.step();
            }
            self.check()?;
        }
        self.cut.clear();
        // The operator restarts the processes that have another secret.
        for place in 0..self.nodes.len() {
            let process = self.nodes[place].process.as_ref();
            if process.is_some_and(|it| !it.has_secret) {
                self.end(place);
            }
        }
        for step in 0..CALM_STEPS {
            if step % 10 == 0 {
                self.restart_any(true);
            }
            self.step();
            self.check()?;
            if self.is_one() {
                return Ok(());
            }
        }
        Err(format!("they do not form one group: {self:?}"))
    }

    /// A random number below `below`.
    fn draw(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as usize % below
    }

    fn step(&mut self) {
        let passed = self.draw(500) as u64;
        self.now += Duration::from_micros(passed);
        let place = self.draw(self.nodes.len());
        if self.plan.shared && !self.plan.tries_once && self.draw(32) == 0 {
            self.listen(place);
        }
        match self.draw(4) {
            0 => self.step_newcomer(place),
            1 => self.change_view_at(place),
            _ => self.deliver_any(),
        }
    }

    // Faults.

    fn crash_any(&mut self) {
        let place = self.draw(self.nodes.len());
        self.end(place);
        if self.plan.hosts_forget {
            let host = self.nodes[place].host;
            self.records[host].clear();
        }
    }

    fn end(&mut self, place: usize) {
        let Some(process) = self.nodes[place].process.take() else {
            return;
        };
        let listening = &mut self.listening[self.nodes[place].contact];
        listening.take_if(|id| *id == process.id);
        let all: Vec<_> = self.connected.iter().copied().collect();
        for (a, b) in all {
            if a == process.id || b == process.id {
                self.disconnect(a, b);
            }
        }
    }

    fn restart_any(&mut self, has_secret: bool) {
        let place = self.draw(self.nodes.len());
        if self.nodes[place].process.is_some() {
            return;
        }
        let id = self.origins.len() as u128 + 1;
        self.origins.insert(id, place);
        let contacts = (0..self.listening.len()).map(|at| at.to_string());
        let contacts = contacts.collect();
        let patience = JoinTimeouts {
            answer: Duration::from_millis(30),
            majority: self.plan.all_found.then_some(Duration::ZERO),
        };
        let stage = Stage::Newcomer(Box::new(JoinProtocol::new(contacts, patience)));
        self.nodes[place].process = Some(Process {
            id,
            has_secret,
            called: BTreeMap::new(),
            stage,
        });
        // A process outside of the domain may have the port.
        if !self.plan.shared || self.draw(2) == 0 {
            self.listen(place);
        }
        if self.listening[self.nodes[place].contact] != Some(id) {
            self.elsewhere.insert(id);
        }
    }

    /// Listens at its contact, unless another process does.
    fn listen(&mut self, place: usize) {
        let node = &self.nodes[place];
        let listening = &mut self.listening[node.contact];
        if let (Some(process), None) = (&node.process, &listening) {
            *listening = Some(process.id);
        }
    }

    fn cut_any(&mut self) {
        let half = self.draw(1 << self.records.len());
        let side = |host: usize| half >> host & 1;
        let hosts = 0..self.records.len();
        let pairs = hosts
            .clone()
            .flat_map(|a| hosts.clone().map(move |b| (a, b)));
        self.cut = pairs.filter(|&(a, b)| side(a) != side(b)).collect();
        let all: Vec<_> = self.connected.iter().copied().collect();
        for (a, b) in all {
            if !self.reaches(self.origins[&a], self.origins[&b]) {
                self.disconnect(a, b);
            }
        }
    }

    /// Closes a connection. Packets under way may arrive or not.
    fn disconnect(&mut self, a: u128, b: u128) {
        self.connected.remove(&(a, b));
        for (from, to) in [(a, b), (b, a)] {
            let arrives = self.draw(4);
            let sent = self.sent.entry((from, to)).or_default();
            sent.truncate(arrives);
            sent.push_back(Packet::Lost);
        }
    }

    // The network.

    fn reaches(&self, a: usize, b: usize) -> bool {
        !self
            .cut
            .contains(&pair(self.nodes[a].host, self.nodes[b].host))
    }

    fn send(&mut self, from: u128, to: u128, packet: Packet) {
        if self.connected.contains(&pair(from, to)) {
            self.sent.entry((from, to)).or_default().push_back(packet);
        }
    }

    fn deliver_any(&mut self) {
        self.sent.retain(|_, packets| !packets.is_empty());
        if self.sent.is_empty() {
            return;
        }
        let at = self.draw(self.sent.len());
        let Some((&(from, to), packets)) = self.sent.iter_mut().nth(at) else {
            return;
        };
        let (Some(packet), place) = (packets.pop_front(), self.origins[&to]) else {
            return;
        };
        let process = &self.nodes[place].process;
        match process
            .as_ref()
            .filter(|it| it.id == to)
            .map(|it| &it.stage)
        {
            None => {}
            Some(&Stage::Member(group)) => {
                if matches!(packet, Packet::Ask { .. }) {
                    self.sponsor(place, group, from);
                }
            }
            Some(Stage::Newcomer(_)) => self.receive(place, from, packet),
        }
    }

    // Newcomers.

    fn protocol(&mut self, place: usize) -> Option<(u128, &mut JoinProtocol)> {
        let mut known = self.known(self.nodes[place].host);
        let process = self.nodes[place].process.as_mut()?;
        known.retain(|it| it.id != process.id);
        let Stage::Newcomer(protocol) = &mut process.stage else {
            return None;
        };
        protocol.record_read(known);
        Some((process.id, protocol))
    }

    fn is_up(&self, id: u128) -> bool {
        let process = self.nodes[self.origins[&id]].process.as_ref();
        process.is_some_and(|it| it.id == id)
    }

    fn known(&self, host: usize) -> Vec<Known> {
        let known = self.records[host].iter().map(|&id| Known {
            id,
            here: self.nodes[self.origins[&id]].host == host,
            label: id.to_string(),
        });
        known.filter(|it| !it.here || self.is_up(it.id)).collect()
    }

    fn step_newcomer(&mut self, place: usize) {
        let now = self.now;
        let all_found = self.plan.all_found;
        let Some((me, protocol)) = self.protocol(place) else {
            return;
        };
        let ask = match protocol.next(now) {
            Next::Wait(_) => None,
            Next::GiveUp => return self.give_up(place),
            Next::Ask(id) => Some(id),
            Next::Connect(target) => {
                let first = all_found && target == Target::Contact(0);
                let what = if first {
                    Reached::Myself
                } else {
                    self.call(place, me, target)
                };
                if let (Target::Contact(at), Some(process)) =
                    (target, &mut self.nodes[place].process)
                {
                    let has_other_secret = matches!(what, Reached::OtherSecret(_));
                    process
                        .called
                        .insert(at, has_other_secret || what == Reached::Myself);
                }
                let (_, protocol) = self.protocol(place).expect("a newcomer");
                protocol.reached(now, target, what)
            }
            Next::Found => {
                let alone = BTreeSet::from([me]);
                self.groups.push(alone.clone());
                self.enter(place, self.groups.len() - 1, &alone);
                None
            }
        };
        if let Some(id) = ask {
            let (_, protocol) = self.protocol(place).expect("a newcomer");
            let (founds, missing) = (protocol.founds(), protocol.missing());
            self.send(me, id, Packet::Ask { founds, missing });
        }
    }

    /// Checks that the last call to each contact was refused.
    fn give_up(&mut self, place: usize) {
        self.gave_up += 1;
        let process = self.nodes[place].process.as_ref();
        let called = process.map(|it| &it.called);
        let by_all = |called: &BTreeMap<usize, bool>| {
            called.len() == self.listening.len() && called.values().all(|it| *it)
        };
        assert!(called.is_some_and(by_all), "{self:?}");
        self.end(place);
    }

    fn call(&mut self, place: usize, me: u128, target: Target) -> Reached {
        let there = match target {
            Target::Contact(at) => self.listening[at],
            Target::Recorded(id) if self.elsewhere.contains(&id) => Some(id),
            Target::Recorded(id) => self.listening[self.nodes[self.origins[&id]].contact],
            Target::Founder(_) => unreachable!("it is connected"),
        };
        if there == Some(me) {
            return Reached::Myself;
        }
        let Some(id) = there.filter(|id| self.is_up(*id)) else {
            return Reached::Unreachable("refused".into());
        };
        let there = self.origins[&id];
        let process = self.nodes[there].process.as_ref();
        let has_secret = process.is_some_and(|it| it.has_secret);
        let mut waiting = self.sent.get(&(id, me)).into_iter().flatten();
        if !self.reaches(place, there) || waiting.any(|it| matches!(it, Packet::Lost)) {
            return Reached::Unreachable("lost".into());
        }
        let mine = self.nodes[place].process.as_ref().map(|it| it.has_secret);
        let is_here = self.nodes[place].host == self.nodes[there].host;
        // On one host, the secret is not checked.
        if !is_here && mine != Some(has_secret) {
            return Reached::OtherSecret("it has another secret".into());
        }
        self.connected.insert(pair(me, id));
        Reached::Peer(id)
    }

    fn receive(&mut self, place: usize, from: u128, packet: Packet) {
        let now = self.now;
        let (me, protocol) = self.protocol(place).expect("a newcomer");
        match packet {
            Packet::Ask { founds, missing } => {
                let answer = protocol.asked(now, from, founds);
                let dead = missing.into_iter().filter(|&id| self.is_dead(place, id));
                let dead = dead.collect();
                self.send(me, from, Packet::NotYet(answer, dead));
            }
            Packet::NotYet(answer, dead) => protocol.not_yet(now, from, answer, &dead),
            Packet::Lost => protocol.lost(now, from, "lost"),
            Packet::Welcome(group, view) => {
                if protocol.is_welcome_by(from) {
                    self.enter(place, group, &view);
                }
            }
        }
    }

    /// Whether the host of a node knows that another process is dead.
    fn is_dead(&self, place: usize, id: u128) -> bool {
        let there = self.origins[&id];
        let here = there == place || self.nodes[there].host == self.nodes[place].host;
        here && !self.is_up(id)
    }

    // Groups.

    fn enter(&mut self, place: usize, group: usize, view: &BTreeSet<u128>) {
        if let Some(process) = &mut self.nodes[place].process {
            process.stage = Stage::Member(group);
        }
        self.record_view(place, view);
    }

    fn record_view(&mut self, place: usize, view: &BTreeSet<u128>) {
        let host = self.nodes[place].host;
        self.records[host] = view.iter().copied().collect();
    }

    fn is_member(&self, id: u128, group: usize) -> bool {
        let process = self.nodes[self.origins[&id]].process.as_ref();
        process
            .is_some_and(|it| it.id == id && matches!(it.stage, Stage::Member(of) if of == group))
    }

    /// The members that the process of a node reaches, including itself, and whether they are a
    /// majority of the view without the members whose death one of them certifies.
    fn in_reach(&self, place: usize, group: usize) -> (BTreeSet<u128>, bool) {
        let view = &self.groups[group];
        let reached =
            |id: &&u128| self.is_member(**id, group) && self.reaches(place, self.origins[*id]);
        let left: BTreeSet<u128> = view.iter().filter(reached).copied().collect();
        let host = |id: &u128| self.nodes[self.origins[id]].host;
        let certified =
            |id: &&u128| !self.is_up(**id) && left.iter().any(|witness| host(witness) == host(id));
        let of = view.len() - view.iter().filter(certified).count();
        let has_majority = 2 * left.len() > of;
        (left, has_majority)
    }

    fn change_view_at(&mut self, place: usize) {
        let process = self.nodes[place].process.as_ref();
        let Some(&Stage::Member(group)) = process.map(|it| &it.stage) else {
            return;
        };
        let me = process.map_or(0, |it| it.id);
        let (left, has_majority) = self.in_reach(place, group);
        if !left.contains(&me) || !has_majority {
            // It has no majority, and stops.
            return self.end(place);
        }
        if left.len() < self.groups[group].len() {
            self.begin_view(group, left);
        }
    }

    /// The members of the view record it.
    fn begin_view(&mut self, group: usize, view: BTreeSet<u128>) {
        for &id in &view {
            if self.is_member(id, group) {
                self.record_view(self.origins[&id], &view);
            }
        }
        self.groups[group] = view;
    }

    fn sponsor(&mut self, place: usize, group: usize, newcomer: u128) {
        let me = self.nodes[place].process.as_ref().map_or(0, |it| it.id);
        let mut view = self.groups[group].clone();
        if !view.contains(&me) {
            return;
        }
        if !view.contains(&newcomer) {
            let (left, _) = self.in_reach(place, group);
            if left.len() < view.len() {
                return;
            }
            view.insert(newcomer);
            self.begin_view(group, view.clone());
        }
        self.send(me, newcomer, Packet::Welcome(group, view));
    }

    // The properties.

    fn check(&self) -> Result<(), String> {
        let mut living = BTreeSet::new();
        for (place, node) in self.nodes.iter().enumerate() {
            let Some(process) = &node.process else {
                continue;
            };
            if let Stage::Member(group) = process.stage
                && self.groups[group].contains(&process.id)
                && self.in_reach(place, group).1
            {
                living.insert(group);
            }
        }
        match living.len() {
            0 | 1 => Ok(()),
            _ => Err(format!("two groups, {living:?}: {self:?}")),
        }
    }

    /// Whether all processes are members of one group.
    fn is_one(&self) -> bool {
        let stages = self
            .nodes
            .iter()
            .map(|it| it.process.as_ref().map(|it| &it.stage));
        let groups = stages.map(|stage| match stage {
            Some(Stage::Member(group)) => Some(*group),
            _ => None,
        });
        let groups: BTreeSet<_> = groups.collect();
        match (groups.len(), groups.first()) {
            (1, Some(Some(group))) => self.groups[*group].len() == self.nodes.len(),
            _ => false,
        }
    }
}

fn pair<T: Ord>(a: T, b: T) -> (T, T) {
    if a < b { (a, b) } else { (b, a) }
}
