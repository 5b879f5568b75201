//! The world of a life: members take turns, while time passes and the network goes on.
//!
//! `faults` injects faults, `phases` says where they are likely, `environment` is what lies outside of the processes, `events` records
//! what members report, `storage` carries packets of history, `quiescent` says when all is at rest, and checks what must be true then.

mod environment;
mod events;
mod faults;
mod groups;
mod logged;
mod phases;
mod quiescent;
mod storage;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spindle_dds_core::membership::{HostId, Member as ViewMember, MemberId, View};
use spindle_dds_transport::sim::{NodeId, Rng, SegmentId, SimNetwork};
use spindle_dds_transport::{FABRIC_AREA, Rank};

use self::phases::PHASES;
use super::branches::Branches;
use super::checkers::Checkers;
use super::facts::EpochKey;
use super::hostile::RowForger;
use super::logged::Logs;
use super::member::{Member, Mode};
use super::plan::{LifePlan, PreviousGroup};
use super::record::DomainRecord;
use super::storage::Post;
use super::trace::Line;
use crate::violation::Finding;
use crate::violation::Violation;

/// A life without a violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifeReport {
    /// Number of views.
    pub views: usize,
    /// Members in the whole life.
    pub members: usize,
    /// Members that crashed or stopped.
    pub gone: usize,
    /// Crashes in the phases of a change of views: of members that prepared one, had wedged, had
    /// reported, had proposed or echoed, were to begin the next view, and had begun it before
    /// others.
    pub crashes: [usize; PHASES],
    /// Members that came back, and messages that they sent again.
    pub returned: (usize, usize),
    /// Requests that were refused.
    pub refused: usize,
    /// Words that were forged.
    pub forged: usize,
    /// Why hostile members were expelled, and how often.
    pub expelled: BTreeMap<String, usize>,
    /// Groups that went on apart from the first.
    pub branches: u64,
    /// Messages committed.
    pub committed: usize,
    /// Messages delivered, over all members.
    pub delivered: usize,
    /// Records of history that readers have shown.
    pub historical: usize,
    /// Epochs of topics that were seen to take samples as their logs were open, and samples that logs
    /// have acknowledged.
    pub logged: (usize, usize),
    /// Numbers of messages that were acknowledged, refused, and unknown; without those of hostile
    /// members.
    pub outcomes: [usize; 3],
    /// Turns until all was at rest.
    pub turns: usize,
    /// What the group leaves to a later one.
    pub left: PreviousGroup,
    /// Hash over everything that happened.
    pub trace_hash: u64,
}

pub use self::groups::{live, live_traced};

struct World<'a> {
    plan: &'a LifePlan,
    network: SimNetwork,
    rng: Rng,
    /// Generator of invalid requests.
    odds: Rng,
    turn: usize,
    now: u64,
    members: Vec<Member>,
    nodes: BTreeMap<MemberId, NodeId>,
    hosts: BTreeMap<MemberId, HostId>,
    /// By number and branch of the view.
    controls: BTreeMap<(u64, u64), SegmentId>,
    subgroups: BTreeMap<EpochKey, SegmentId>,
    /// The domain's records, by host.
    records: BTreeMap<HostId, DomainRecord>,
    /// Newcomers, each with the member that it has asked.
    joiners: Vec<(ViewMember, MemberId)>,
    /// Newcomers that are members that had stopped: the index of each.
    returning: BTreeMap<MemberId, usize>,
    divided: Vec<(HostId, HostId)>,
    /// Nodes that have lost each other for good.
    severed: BTreeSet<(NodeId, NodeId)>,
    /// One-way cuts: the turn at which each ends, and the nodes from and to.
    cuts: Vec<(usize, NodeId, NodeId)>,
    branches: Branches,
    post: Post,
    /// The logs, in a life with any.
    logs: Option<Logs>,
    checkers: Checkers,
    /// Newcomers that crashed before they joined: a view may have them as members.
    died_joining: BTreeSet<MemberId>,
    may_suspect_wrongly: bool,
    crashes: [usize; PHASES],
    refused: usize,
    returned: (usize, usize),
    forger: RowForger,
    /// The trace, if it is wanted.
    trace: Option<Vec<Line>>,
    /// Why hostile members were expelled, and how often.
    expelled: BTreeMap<String, usize>,
    haste: usize,
}

impl<'a> World<'a> {
    fn new(plan: &'a LifePlan, logs: Option<Logs>) -> Self {
        let mut rng = Rng::new(plan.seed);
        let network = SimNetwork::new(plan.seed, 0, plan.network.clone());
        let mut world = Self {
            plan,
            network,
            turn: 0,
            now: 1,
            members: Vec::new(),
            nodes: BTreeMap::new(),
            hosts: BTreeMap::new(),
            controls: BTreeMap::new(),
            subgroups: BTreeMap::new(),
            records: BTreeMap::new(),
            joiners: Vec::new(),
            returning: BTreeMap::new(),
            divided: Vec::new(),
            severed: BTreeSet::new(),
            cuts: Vec::new(),
            branches: Branches::default(),
            post: Post::new(plan.seed),
            logs,
            checkers: Checkers::new(plan.availability, plan.only.as_deref()),
            died_joining: BTreeSet::new(),
            may_suspect_wrongly: plan.may_suspect_wrongly(),
            crashes: [0; PHASES],
            refused: 0,
            returned: (0, 0),
            trace: None,
            forger: RowForger::new(plan.seed, plan.hostile),
            expelled: BTreeMap::new(),
            haste: 0,
            rng: rng.fork(),
            odds: Rng::new(!plan.seed),
        };
        let founder = world.new_participant();
        if let Ok(first) = View::first(founder.clone()) {
            let first = Arc::new(first);
            let record = DomainRecord::founded(first.clone(), &plan.previous.decisions);
            world.records.insert(founder.host, record);
            world.spawn(&founder, &first, 0);
        }
        for _ in 1..plan.members {
            let newcomer = world.new_participant();
            world.joiners.push((newcomer, MemberId(0)));
        }
        world
    }

    /// A participant that has not joined yet.
    fn new_participant(&mut self) -> ViewMember {
        let id = self.plan.id(self.nodes.len());
        let host = HostId(self.rng.below(self.plan.hosts) as u128);
        self.nodes.insert(id, self.network.add_node());
        if self.plan.is_hostile(id) {
            self.checkers.is_hostile(id);
        }
        self.hosts.insert(id, host);
        let count = self.rng.below(4) as u64;
        let endpoints = (0..count).map(|number| (number, self.plan.endpoint(&mut self.rng)));
        let mut endpoints: BTreeMap<_, _> = endpoints.collect();
        if id != self.plan.id(0) && self.odds.chance(self.plan.invalid_requests) {
            endpoints.insert(9, self.plan.invalid_endpoint(&mut self.odds));
        }
        let mut participant = ViewMember {
            id,
            host,
            address: Vec::new(),
            info: Vec::new(),
            updates: 0,
            endpoints: endpoints.into(),
            notes: BTreeMap::new(),
        };
        self.start_logs(&mut participant);
        participant
    }

    fn spawn(&mut self, participant: &ViewMember, first: &Arc<View>, branch: u64) {
        let node = self.nodes[&participant.id];
        let bed = self.network.open(&[(node, FABRIC_AREA + 128)]);
        let bed = self.network.fabric(bed, Rank(0));
        let first = (first.clone(), branch);
        let mut member = Member::new(participant, node, bed, first, self.plan, &mut self.rng);
        if let Some((_, when)) = &mut member.preparing
            && self.turn > 0
        {
            *when = self.now + self.preparation_delay();
        }
        if self.turn >= self.rests_at() {
            member.rest();
        }
        self.members.push(member);
    }

    /// How long a member waits in its preparation of a view for another one that never comes, and
    /// of whose failure it has not heard.
    fn preparation_delay(&mut self) -> u64 {
        let waits = self.plan.slow > 0.0 && self.odds.chance(self.plan.slow);
        if waits { self.plan.limit } else { 0 }
    }

    fn live(&mut self) -> Result<LifeReport, Violation> {
        let result = self.run();
        result.map_err(|(property, what)| Violation {
            seed: self.plan.seed,
            property,
            what,
            turn: self.turn,
        })
    }

    /// Adds a line to the trace.
    fn tell(&mut self, at: usize, what: impl FnOnce(&Member) -> String) {
        let Some(trace) = &mut self.trace else { return };
        let member = &self.members[at];
        trace.push(Line {
            turn: self.turn,
            member: member.id.0,
            view: member.view.as_ref().map_or(0, |view| view.id),
            what: what(member),
        });
    }

    /// The turn from which on applications begin nothing.
    fn rests_at(&self) -> usize {
        self.plan.turns + self.plan.calm
    }

    fn run(&mut self) -> Result<LifeReport, Finding> {
        // Where something is lacking, slow preparations are made again.
        let slow = if self.plan.slow > 0.0 { 60 } else { 0 };
        let patience = self.rests_at() + 60_000 + slow * self.plan.limit as usize;
        let (mut quiet, mut rests) = (0, 0);
        while quiet <= 50 {
            self.turn += 1;
            if self.turn > patience {
                return Err(self.no_rest(rests));
            }
            if self.turn == self.rests_at() {
                self.members.iter_mut().for_each(Member::rest);
            }
            if self.has_blackout() {
                return Ok(self.report());
            }
            if self.turn == self.plan.turns {
                self.bring_all_logs();
                self.end_hostile_members();
                self.checkers.judge(None)?;
            }
            self.take_turn()?;
            let over = self.turn > self.rests_at();
            let is_group_at_rest = over && self.is_group_at_rest();
            rests += usize::from(is_group_at_rest);
            quiet = match is_group_at_rest && self.is_all_stored() && self.are_logs_at_rest() {
                true => quiet + 1,
                false => 0,
            };
        }
        self.check_end()?;
        Ok(self.report())
    }

    fn report(&mut self) -> LifeReport {
        LifeReport {
            views: self.branches.views(),
            members: self.nodes.len(),
            gone: self.members.iter().filter(|member| !member.is_up()).count(),
            crashes: self.crashes,
            refused: self.refused,
            returned: self.returned,
            forged: self.forger.written,
            expelled: core::mem::take(&mut self.expelled),
            branches: self.branches.branches(),
            committed: self.checkers.committed,
            delivered: self.checkers.delivered,
            historical: self.checkers.historical,
            logged: self
                .logs
                .as_ref()
                .map_or((0, 0), |it| (it.openings, it.acknowledged)),
            outcomes: self.checkers.outcomes(),
            turns: self.turn,
            left: self.legacy(),
            trace_hash: self.network.trace_hash(),
        }
    }

    fn legacy(&self) -> PreviousGroup {
        let founded_on = self.hosts.get(&self.plan.id(0));
        let record = founded_on.and_then(|host| self.records.get(host));
        PreviousGroup {
            members: self.plan.previous.members + self.nodes.len(),
            decisions: record.map_or_else(Vec::new, DomainRecord::decisions),
        }
    }

    fn take_turn(&mut self) -> Result<(), Finding> {
        self.pass_time();
        // The network works faster the more is pending: what waits for too long would count as a
        // failure.
        if self.turn.is_multiple_of(64) {
            self.haste = self.network.pending() / 64;
        }
        for _ in 0..self.rng.below(6) + self.haste {
            self.network.step();
        }
        self.mend_cuts();
        self.carry_packets()?;
        self.release_logs();
        self.sponsor_newcomers();
        self.follow_script();
        if self.members.is_empty() {
            return Ok(());
        }
        let at = self.rng.below(self.members.len());
        if self.turn < self.plan.turns {
            self.inject_faults(at);
            self.forge_rows(at);
        }
        let member = &mut self.members[at];
        if !member.is_up() || member.paused_until > self.now {
            return Ok(());
        }
        self.look_at_logs(at)?;
        let member = &mut self.members[at];
        if self.rng.chance(self.plan.app_chance) {
            member.act(self.turn, self.plan);
        }
        let (turn, now) = (self.turn, self.now);
        self.answer(at)?;
        let member = &mut self.members[at];
        if let Some((view, _)) = member.preparing.take_if(|(_, when)| *when <= now) {
            let prepared = self.prepare(at, view)?;
            let installed = self.members[at].install(prepared);
            installed.map_err(|error| ("X2", error))?;
        }
        let member = &mut self.members[at];
        let nudged = member.engine.with_sink(|sink| sink.nudges(turn));
        let rung = member.mode == Mode::Asleep
            && (self.network.take_wakeup(member.node) || nudged.unwrap_or_default());
        member.poll(rung, now);
        member
            .engine
            .with_sink(|sink| sink.return_loans(turn, false));
        self.tell_storage(at)?;
        self.act_in_logs(at)?;
        self.read_events(at)?;
        self.act_in_storage(at)
    }

    /// If all members sleep until their next heartbeat, time advances to it.
    fn pass_time(&mut self) {
        self.now += 1;
        let up = || self.members.iter().filter(|member| member.is_up());
        let waits = |member: &Member| member.preparing.is_none() && member.answering.is_none();
        let asleep = up().all(|member| member.mode == Mode::Asleep && waits(member));
        if self.turn > self.rests_at()
            && asleep
            && self.network.pending() == 0
            && self.is_storage_at_rest()
            && self.are_logs_at_rest()
            && !self.is_at_rest()
        {
            let due = up().map(|member| member.due).filter(|due| *due > 0).min();
            self.now = self.now.max(due.unwrap_or(0));
        }
    }
}
