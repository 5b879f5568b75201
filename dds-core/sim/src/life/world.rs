//! The world of a life: turns, harm, and what lies outside of the processes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spindle_dds_core::membership::{
    CONTROL_ROW_LEN, Decision, Finish, HostId, Member as ViewMember, MemberId, Request, View, Why,
};
use spindle_dds_core::{LaneSpec, Layout, Prepared, StopReason};
use spindle_dds_transport::sim::{NodeId, Rng, SegmentId, SimFabric, SimNetwork};
use spindle_dds_transport::{FABRIC_AREA, Rank};

use super::book::Book;
use super::course::Course;
use super::facts::{Fact, LaneKey, Standing};
use super::hostile::{Hostility, Target};
use super::member::{Member, Mode, News};
use super::plan::{Deed, LifePlan};
use super::record::DomainRecord;
use super::trace::{self, Line};
use crate::violation::Finding;
use crate::violation::Violation;

/// What a life without a violation was like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifeReport {
    /// Views.
    pub views: usize,
    /// Members that ever were.
    pub members: usize,
    /// Of these, dead in the end, or out.
    pub gone: usize,
    /// Requests that could not be done.
    pub refused: usize,
    /// Words that hostile members wrote.
    pub forged: usize,
    /// Why hostile members were expelled, how often.
    pub expelled: BTreeMap<String, usize>,
    /// Groups that have gone on apart from the first.
    pub branches: u64,
    /// Messages committed.
    pub committed: usize,
    /// Messages delivered, over all members.
    pub delivered: usize,
    /// Messages whose senders were told that all have them, or that they are not sent, or
    /// neither; those of hostile members not counted.
    pub outcomes: [usize; 3],
    /// Turns until all was quiet.
    pub turns: usize,
    /// Hash over everything that happened.
    pub trace_hash: u64,
}

/// Lives a plan to its end.
pub fn live(plan: &LifePlan) -> Result<LifeReport, Violation> {
    World::new(plan).live()
}

/// Lives a plan to its end, and tells what happened.
pub fn live_traced(plan: &LifePlan) -> (Result<LifeReport, Violation>, Vec<Line>) {
    let mut world = World::new(plan);
    world.trace = Some(Vec::new());
    let result = world.live();
    (result, world.trace.unwrap_or_default())
}

struct World<'a> {
    plan: &'a LifePlan,
    network: SimNetwork,
    rng: Rng,
    /// What odd requests are drawn from.
    odds: Rng,
    turn: usize,
    now: u64,
    members: Vec<Member>,
    nodes: BTreeMap<MemberId, NodeId>,
    hosts: BTreeMap<MemberId, HostId>,
    /// By number and branch of the view.
    controls: BTreeMap<(u64, u64), SegmentId>,
    lanes: BTreeMap<LaneKey, SegmentId>,
    /// The domain's records, by host.
    records: BTreeMap<HostId, DomainRecord>,
    /// Who wants to join, and whom it has asked.
    joiners: Vec<(ViewMember, MemberId)>,
    divided: Vec<(HostId, HostId)>,
    course: Course,
    book: Book,
    /// Died while they asked to join: views may have them, but nobody is there.
    stillborn: BTreeSet<MemberId>,
    may_err: bool,
    refused: usize,
    hostility: Hostility,
    /// What happened, if somebody wants to know.
    trace: Option<Vec<Line>>,
    /// Why hostile members were expelled, how often.
    expelled: BTreeMap<String, usize>,
    haste: usize,
}

impl<'a> World<'a> {
    fn new(plan: &'a LifePlan) -> Self {
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
            lanes: BTreeMap::new(),
            records: BTreeMap::new(),
            joiners: Vec::new(),
            divided: Vec::new(),
            course: Course::default(),
            book: Book::new(plan.availability),
            stillborn: BTreeSet::new(),
            may_err: plan.may_err(),
            refused: 0,
            trace: None,
            hostility: Hostility::new(plan.seed, plan.hostile),
            expelled: BTreeMap::new(),
            haste: 0,
            rng: rng.fork(),
            odds: Rng::new(!plan.seed),
        };
        let founder = world.born();
        if let Ok(first) = View::first(founder.clone()) {
            let first = Arc::new(first);
            let record = DomainRecord::new(first.clone(), 0);
            world.records.insert(founder.host, record);
            world.spawn(&founder, first, 0);
        }
        for _ in 1..plan.members {
            let newcomer = world.born();
            world.joiners.push((newcomer, MemberId(0)));
        }
        world
    }

    /// Somebody who has not joined yet.
    fn born(&mut self) -> ViewMember {
        let id = MemberId(self.nodes.len() as u128 + 1);
        let host = HostId(self.rng.below(self.plan.hosts) as u128);
        self.nodes.insert(id, self.network.add_node());
        if self.plan.is_hostile(id) {
            self.book.is_hostile(id);
        }
        self.hosts.insert(id, host);
        let count = self.rng.below(4) as u64;
        let endpoints = (0..count).map(|number| (number, self.plan.endpoint(&mut self.rng)));
        let mut endpoints: BTreeMap<_, _> = endpoints.collect();
        if id != MemberId(1) && self.odds.chance(self.plan.odd) {
            endpoints.insert(9, self.plan.odd_endpoint(&mut self.odds));
        }
        ViewMember {
            id,
            host,
            address: Vec::new(),
            info: Vec::new(),
            updates: 0,
            endpoints,
        }
    }

    fn spawn(&mut self, who: &ViewMember, first: Arc<View>, branch: u64) {
        let node = self.nodes[&who.id];
        let bed = self.network.open(&[(node, FABRIC_AREA + 128)]);
        let bed = self.network.fabric(bed, Rank(0));
        let first = (first, branch);
        let mut member = Member::new(who, node, bed, first, self.plan, &mut self.rng);
        if self.turn >= self.plan.turns {
            member.rest();
        }
        self.members.push(member);
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

    /// Takes down what a member does, or hears.
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

    fn run(&mut self) -> Result<LifeReport, Finding> {
        let patience = self.plan.turns + 60_000;
        let mut quiet = 0;
        while quiet <= 50 {
            self.turn += 1;
            if self.turn > patience {
                return Err(("L3", format!("no rest: {}", self.describe())));
            }
            if self.turn == self.plan.turns {
                self.members.iter_mut().for_each(Member::rest);
                self.end_hostilities();
                self.book.judge(None)?;
            }
            self.take_turn()?;
            let over = self.turn > self.plan.turns;
            quiet = if over && self.is_at_rest() {
                quiet + 1
            } else {
                0
            };
        }
        self.check_end()?;
        Ok(LifeReport {
            views: self.course.views(),
            members: self.nodes.len(),
            gone: self.members.iter().filter(|member| !member.is_up()).count(),
            refused: self.refused,
            forged: self.hostility.written,
            expelled: core::mem::take(&mut self.expelled),
            branches: self.course.branches(),
            committed: self.book.committed,
            delivered: self.book.delivered,
            outcomes: self.book.outcomes(),
            turns: self.turn,
            trace_hash: self.network.trace_hash(),
        })
    }

    fn describe(&self) -> String {
        let members = self.members.iter().map(|member| {
            let view = member.view.as_ref().map_or(0, |view| view.id);
            format!(
                "\n{:?} in view {view} due {} {:?} preparing {:?} down {} stopped {:?} done {}",
                member.id.0,
                member.due,
                member.mode,
                member.preparing.as_ref().map(|(view, _)| view.id),
                member.is_down,
                member.stopped,
                member.todo()
            )
        });
        members.collect::<Vec<_>>().join("; ")
    }

    fn take_turn(&mut self) -> Result<(), Finding> {
        self.pass_time();
        // What waits for long is a failure: the more there is, the faster it goes.
        if self.turn.is_multiple_of(64) {
            self.haste = self.network.pending() / 64;
        }
        for _ in 0..self.rng.below(6) + self.haste {
            self.network.step();
        }
        self.let_in();
        self.follow_script();
        if self.members.is_empty() {
            return Ok(());
        }
        let at = self.rng.below(self.members.len());
        if self.turn < self.plan.turns {
            self.do_harm(at);
            self.be_hostile(at);
        }
        let member = &mut self.members[at];
        if !member.is_up() || member.paused_until > self.now {
            return Ok(());
        }
        if self.rng.chance(self.plan.app_chance) {
            member.act(self.turn, self.plan);
        }
        let (turn, now) = (self.turn, self.now);
        if let Some((view, _)) = member.preparing.take_if(|(_, when)| *when <= now) {
            let prepared = self.prepare(at, view);
            let installed = self.members[at].install(prepared);
            installed.map_err(|error| ("X2", error))?;
        }
        let member = &mut self.members[at];
        let nudged = member.engine.with_sink(|sink| sink.nudges(turn));
        let rung = member.mode == Mode::Asleep
            && (self.network.rung(member.node) || nudged.unwrap_or_default());
        member.poll(rung, now);
        member
            .engine
            .with_sink(|sink| sink.return_loans(turn, false));
        self.read_news(at)
    }

    /// Nobody has anything to do before the next heartbeat: it is due.
    fn pass_time(&mut self) {
        self.now += 1;
        let up = || self.members.iter().filter(|member| member.is_up());
        let asleep = up().all(|member| member.mode == Mode::Asleep && member.preparing.is_none());
        if self.turn > self.plan.turns
            && asleep
            && self.network.pending() == 0
            && !self.is_at_rest()
        {
            let due = up().map(|member| member.due).filter(|due| *due > 0).min();
            self.now = self.now.max(due.unwrap_or(0));
        }
    }

    // What lies outside.

    /// Newcomers ask somebody, and somebody else if that one is gone.
    fn let_in(&mut self) {
        let up: Vec<usize> = (0..self.members.len())
            .filter(|&at| self.members[at].is_up() && !self.members[at].is_leaving)
            .collect();
        let Some(&sponsor) = self.rng.pick(&up) else {
            return;
        };
        let alive = |id: MemberId| up.iter().any(|&at| self.members[at].id == id);
        let waiting = self.joiners.iter().position(|(_, asked)| !alive(*asked));
        if let Some(at) = waiting {
            let sponsor = &self.members[sponsor];
            self.joiners[at].1 = sponsor.id;
            let newcomer = self.joiners[at].0.clone();
            sponsor.engine.request(Request::Join(newcomer));
        }
    }

    /// Segments are made by whoever comes first.
    fn prepare(&mut self, at: usize, view: Arc<View>) -> Prepared<SimFabric> {
        let id = self.members[at].id;
        let node = |rank: &Rank| self.nodes[&view.members[rank.index()].id];
        let ranks: Vec<Rank> = (0..view.members.len() as u16).map(Rank).collect();
        let rows: Vec<_> = ranks
            .iter()
            .map(|rank| (node(rank), CONTROL_ROW_LEN))
            .collect();
        let network = &self.network;
        let control = *self
            .controls
            .entry((view.id, self.members[at].branch))
            .or_insert_with(|| network.open_control(&rows));
        let me = view.rank(id).unwrap_or(Rank(0));
        let mut lanes = Vec::new();
        for lane in view.lanes.iter().filter(|lane| lane.epoch == view.id) {
            let Some(place) = lane.members.iter().position(|rank| *rank == me) else {
                continue;
            };
            let lens = Layout::new(lane).map(|layout| layout.row_lens());
            let lens = lens.unwrap_or_default();
            let rows: Vec<_> = lane.members.iter().map(node).zip(lens).collect();
            let key = self.members[at].lane_key(lane.subgroup, lane.epoch);
            let segment = *self.lanes.entry(key).or_insert_with(|| network.open(&rows));
            lanes.push((lane.subgroup, network.fabric(segment, Rank(place as u16))));
        }
        Prepared {
            control: network.fabric(control, me),
            view,
            lanes,
        }
    }

    fn do_harm(&mut self, at: usize) {
        let plan = self.plan;
        let member = &mut self.members[at];
        let changing =
            member.preparing.is_some() || self.course.is_changing(member.view.as_deref());
        let malice = if changing { plan.malice } else { 1.0 };
        if !member.is_up() {
            if self.rng.chance(plan.joins) && self.nodes.len() < plan.members_max {
                let newcomer = self.born();
                self.joiners.push((newcomer, MemberId(0)));
            }
            return;
        }
        if self.rng.chance(plan.crashes * malice) {
            return self.end(at);
        }
        if self.rng.chance(plan.pauses * malice) {
            let pause = self.rng.below(2 * plan.limit as usize) as u64;
            self.members[at].paused_until = self.now + pause;
        }
        if self.rng.chance(plan.divisions * malice) {
            self.divide();
        }
        if self.rng.chance(plan.joins) && self.nodes.len() < plan.members_max {
            let newcomer = self.born();
            self.joiners.push((newcomer, MemberId(0)));
        }
        let member = &mut self.members[at];
        if self.rng.chance(plan.leaves) && !member.is_leaving {
            member.leave();
        }
        if self.rng.chance(plan.updates) {
            member.update(plan);
        }
    }

    fn be_hostile(&mut self, at: usize) {
        let member = &self.members[at];
        let (true, Some(view)) = (self.plan.is_hostile(member.id), &member.view) else {
            return;
        };
        let Some(me) = view.rank(member.id).filter(|_| member.is_up()) else {
            return;
        };
        let mine = view.lanes.iter().filter(|lane| lane.members.contains(&me));
        let key = |lane: &LaneSpec| member.lane_key(lane.subgroup, lane.epoch);
        let segment = |lane: &LaneSpec| self.lanes.get(&key(lane)).copied();
        let lanes = mine.filter_map(|lane| Some((lane, segment(lane)?)));
        let target = Target {
            view,
            me,
            control: self.controls[&(view.id, member.branch)],
            lanes: lanes.collect(),
        };
        let taste = self.plan.seed as usize + member.id.0 as usize * 7;
        self.hostility.act(&self.network, &target, taste);
    }

    /// What they have done stays done.
    fn end_hostilities(&mut self) {
        let hostile = |member: &Member| self.plan.is_hostile(member.id) && member.is_up();
        let all = self.members.iter();
        let all: Vec<usize> = (0..)
            .zip(all)
            .filter(|(_, it)| hostile(it))
            .map(|(at, _)| at)
            .collect();
        for at in all {
            self.end(at);
        }
        let stays = |(who, _): &(ViewMember, MemberId)| !self.plan.is_hostile(who.id);
        let (joiners, gone) = core::mem::take(&mut self.joiners)
            .into_iter()
            .partition(stays);
        self.joiners = joiners;
        let gone: Vec<(ViewMember, MemberId)> = gone;
        self.stillborn
            .extend(gone.into_iter().map(|(who, _)| who.id));
    }

    fn follow_script(&mut self) {
        let plan = self.plan;
        let now = self.turn;
        let due = plan.script.iter().filter(|(turn, _)| *turn == now);
        for (_, deed) in due {
            let who = match *deed {
                Deed::Join => {
                    let newcomer = self.born();
                    self.joiners.push((newcomer, MemberId(0)));
                    continue;
                }
                Deed::Crash(who) | Deed::Pause(who, _) | Deed::Leave(who) | Deed::Update(who) => {
                    who
                }
            };
            let id = MemberId(who as u128 + 1);
            let at = self.members.iter().position(|member| member.id == id);
            let Some(at) = at else {
                // It has not been let in, and now it never will be.
                if *deed == Deed::Crash(who) {
                    self.joiners.retain(|(joiner, _)| joiner.id != id);
                    self.stillborn.insert(id);
                }
                continue;
            };
            if !self.members[at].is_up() {
                continue;
            }
            match deed {
                Deed::Crash(_) => {}
                deed => self.tell(at, |_| format!("{deed:?}")),
            }
            match *deed {
                Deed::Crash(_) => self.end(at),
                Deed::Pause(_, turns) => self.members[at].paused_until = self.now + turns,
                Deed::Leave(_) => self.members[at].leave(),
                Deed::Update(_) => self.members[at].update(plan),
                Deed::Join => {}
            }
        }
    }

    /// Two hosts lose each other, for good.
    fn divide(&mut self) {
        let host = |rng: &mut Rng, count| HostId(rng.below(count) as u128);
        let a = host(&mut self.rng, self.plan.hosts);
        let b = host(&mut self.rng, self.plan.hosts);
        if a == b || self.divided.contains(&(a, b)) {
            return;
        }
        self.divided.extend([(a, b), (b, a)]);
        for (left, one) in &self.nodes {
            for (right, other) in &self.nodes {
                if self.hosts[left] == a && self.hosts[right] == b {
                    self.network.sever(*one, *other);
                }
            }
        }
    }

    fn end(&mut self, at: usize) {
        self.tell(at, |_| "dies".to_owned());
        let member = &mut self.members[at];
        member.is_down = true;
        self.network.crash(member.node);
    }

    /// The compare-and-set in the domain's record on the host. Across hosts the
    /// majority has decided; the record is for those who come.
    fn decide(&mut self, at: usize, decision: &Decision) {
        let Decision { next, digest } = decision;
        let member = &self.members[at];
        let host = self.hosts[&member.id];
        let ends = member.view.as_ref();
        let one_host = ends.is_some_and(|view| view.members.iter().all(|one| one.host == host));
        let by = member.id;
        let record = self.records.get_mut(&host);
        let answer = match record {
            Some(record) if one_host => record.decide(by, next, *digest),
            _ => self.note(at, next, *digest),
        };
        self.members[at].engine.decided(answer);
        // The most delicate moment: it is decided, and nobody knows.
        let plan = self.plan;
        let running = self.turn < plan.turns;
        if running
            && self
                .rng
                .chance((10.0 * plan.crashes * plan.malice).min(0.3))
        {
            self.end(at);
        }
    }

    /// What was decided elsewhere comes into the record of a member's host.
    fn note(&mut self, at: usize, view: &Arc<View>, digest: u64) -> Result<(), String> {
        let by = self.members[at].id;
        let host = self.hosts[&by];
        let (members, hosts) = (&self.members, &self.hosts);
        let lives = |id: MemberId| {
            let mut others = members.iter().filter(|it| it.id != by && it.is_up());
            others.any(|it| it.id == id && hosts[&id] == host)
        };
        let new = || DomainRecord::new(view.clone(), digest);
        let record = self.records.entry(host).or_insert_with(new);
        record.follow(by, view, digest, lives)
    }

    // What is seen.

    fn read_news(&mut self, at: usize) -> Result<(), Finding> {
        self.read_facts(at)?;
        let news = self.members[at]
            .engine
            .with_sink(|sink| core::mem::take(&mut sink.news))
            .unwrap_or_default();
        // What follows the end of its lanes.
        let mut next = self.members[at].branch;
        for news in &news {
            if let News::ViewEnded(finish) = news {
                next = self.ending(at, finish)?;
            }
        }
        let received = self.received(at, &news);
        for news in news {
            self.tell_news(at, &news);
            self.heed(at, news, next, &received)?;
        }
        if self.members[at].is_up() {
            self.members[at].read_receipts();
        }
        self.read_facts(at)
    }

    /// What the applications of a member did.
    fn read_facts(&mut self, at: usize) -> Result<(), Finding> {
        let mut facts = core::mem::take(&mut self.members[at].facts).into_iter();
        facts.try_for_each(|fact| self.book.tell(&fact))
    }

    /// Of the lanes that go on, and in which there is news: how far their members have
    /// received their order.
    fn received(&self, at: usize, news: &[News]) -> BTreeMap<LaneKey, Vec<(MemberId, u64)>> {
        let mut received = BTreeMap::new();
        let ended = |its: LaneKey| {
            let end = |news: &News| matches!(news, News::LaneEnded { lane, .. } if *lane == its);
            news.iter().any(end)
        };
        for news in news {
            let News::Delivered(delivered) = news else {
                continue;
            };
            let lane = delivered.lane;
            if received.contains_key(&lane) || ended(lane) {
                continue;
            }
            let key = self.members[at].lane_key(lane.0, lane.1);
            let of = |member: &Member| Some((member.id, member.received(key)?));
            let all: Vec<_> = self.members.iter().filter_map(of).collect();
            received.insert(lane, all);
        }
        received
    }

    /// `next` is the branch of the view that follows; `received` is by lanes as the member
    /// knows them.
    fn heed(
        &mut self,
        at: usize,
        news: News,
        next: u64,
        received: &BTreeMap<LaneKey, Vec<(MemberId, u64)>>,
    ) -> Result<(), Finding> {
        let id = self.members[at].id;
        match news {
            News::Delivered(mut what) => {
                let received = received.get(&what.lane).map_or(&[][..], Vec::as_slice);
                what.lane = self.members[at].lane_key(what.lane.0, what.lane.1);
                let (to, what) = (id, &what);
                self.book.tell(&Fact::Delivered { to, what, received })
            }
            News::LaneEnded { lane, end, digest } => self.book.tell(&Fact::LaneEnded {
                at: id,
                lane: self.members[at].lane_key(lane.0, lane.1),
                next,
                position: end,
                digest,
            }),
            News::Decide(decision) => {
                self.decide(at, &decision);
                Ok(())
            }
            News::Refused(request, why) => self.refused(id, &request, &why),
            News::ViewEnded(finish) => self.view_ended(at, &finish, next),
            News::ViewBegun(view) => {
                self.know(self.members[at].branch, &view)?;
                let (at, view) = (id, &*view);
                self.book.tell(&Fact::ViewBegun { at, view })
            }
            News::Wrong(finding) => Err(finding),
            News::Stopped(reason) => self.stopped(at, reason),
        }
    }

    fn know(&mut self, branch: u64, view: &View) -> Result<(), Finding> {
        self.course.view(branch, view);
        self.book.tell(&Fact::ViewKnown { branch, view })
    }

    fn refused(&mut self, of: MemberId, request: &Request, why: &str) -> Result<(), Finding> {
        self.refused += 1;
        if let Request::Join(newcomer) = request {
            self.joiners.retain(|(who, _)| who.id != newcomer.id);
        }
        self.book.tell(&Fact::Refused { of, request, why })
    }

    fn tell_news(&mut self, at: usize, news: &News) {
        match news {
            News::Delivered(_) | News::Wrong(_) => {}
            News::LaneEnded { lane, end, .. } => {
                let (subgroup, epoch, _) = lane;
                self.tell(at, |_| {
                    format!("lane {subgroup} of view {epoch} ends at {end}")
                });
            }
            News::Decide(decision) => {
                self.tell(at, |_| format!("wants view {} decided", decision.next.id));
            }
            News::Refused(request, why) => {
                self.tell(at, |_| {
                    format!("{}: refused: {why}", trace::request(request))
                });
            }
            News::ViewEnded(finish) => {
                self.tell(at, |it| trace::ending(it.view.as_deref(), finish));
            }
            News::ViewBegun(view) => self.tell(at, |_| trace::beginning(view)),
            News::Stopped(reason) => self.tell(at, |_| format!("is out: {reason}")),
        }
    }

    /// Which branch of views somebody goes on with.
    fn ending(&mut self, at: usize, finish: &Finish) -> Result<u64, Finding> {
        let branch = self.members[at].branch;
        let is_divided = !self.divided.is_empty() || self.plan.pauses > 0.0;
        let proposal = &finish.proposal;
        self.book.tell(&Fact::ViewEnded {
            branch,
            proposal,
            is_divided,
        })?;
        let (next, is_news) = self.course.ending(branch, proposal);
        if is_news {
            self.note_expelled(at, finish);
        }
        Ok(next)
    }

    fn view_ended(&mut self, at: usize, finish: &Finish, branch: u64) -> Result<(), Finding> {
        self.know(branch, &finish.next)?;
        self.members[at].follow(&finish.next, branch);
        for member in &finish.next.members {
            let joined = self.joiners.iter().position(|(who, _)| who.id == member.id);
            if let Some(joined) = joined {
                let (who, _) = self.joiners.remove(joined);
                self.spawn(&who, finish.next.clone(), branch);
            } else if self.stillborn.remove(&member.id) {
                self.network.crash(self.nodes[&member.id]);
            }
        }
        if finish.next.rank(self.members[at].id).is_some() {
            if self
                .note(at, &finish.next, finish.proposal.digest())
                .is_err()
            {
                // Others of its host are in another group: the two never become one.
                self.end(at);
                return Ok(());
            }
            let delay = self.rng.below(100) as u64;
            self.members[at].preparing = Some((finish.next.clone(), self.now + delay));
        }
        Ok(())
    }

    fn note_expelled(&mut self, at: usize, finish: &Finish) {
        let Some(view) = &self.members[at].view else {
            return;
        };
        for removal in &finish.proposal.removals {
            let who = view.members.get(usize::from(removal.rank));
            if let (Some(who), Why::Failed(cause)) = (who, &removal.why)
                && self.plan.is_hostile(who.id)
            {
                *self.expelled.entry(cause.clone()).or_default() += 1;
            }
        }
    }

    fn stopped(&mut self, at: usize, reason: StopReason) -> Result<(), Finding> {
        let id = self.members[at].id;
        let record = self.records.get(&self.hosts[&id]);
        let standing = Standing {
            is_leaving: self.members[at].is_leaving,
            may_lose: self.may_err || self.plan.hosts > 1,
            prefers_availability: self.plan.availability,
            lost_to_hostile: record.is_some_and(|record| {
                let mut members = record.view().members.iter();
                members.all(|it| self.plan.is_hostile(it.id))
            }),
        };
        let allowed = self.book.tell(&Fact::Stopped {
            who: id,
            reason: &reason,
            standing,
        });
        self.members[at].stopped = Some(reason);
        self.network.crash(self.members[at].node);
        allowed
    }

    // How it ends.

    fn is_at_rest(&self) -> bool {
        let up = || self.members.iter().filter(|member| member.is_up());
        let Some(first) = up().next() else {
            return true;
        };
        let calm = |member: &Member, view: &View| {
            member.preparing.is_none()
                && member.paused_until <= self.now
                && member.mode == Mode::Asleep
                && !self.network.is_rung(member.node)
                && member.is_done()
                && member.is_content(view)
                && !member.is_ending_lanes()
        };
        let same = |one: &Member, other: &Member| {
            let id = |member: &Member| member.view.as_ref().map(|view| view.id);
            id(one) == id(other) && one.branch == other.branch
        };
        let settled = |member: &Member| {
            let Some(view) = &member.view else {
                return false;
            };
            let here = |who: &ViewMember| up().any(|it| it.id == who.id && same(it, member));
            let alone = self.plan.availability || same(member, first);
            calm(member, view) && alone && view.members.iter().all(here)
        };
        up().all(settled) && self.joiners.is_empty() && self.network.pending() == 0
    }

    fn check_end(&mut self) -> Result<(), Finding> {
        self.let_go();
        for at in 0..self.members.len() {
            self.read_news(at)?;
        }
        let up = || self.members.iter().filter(|member| member.is_up());
        for member in up() {
            let Some(view) = &member.view else { continue };
            for member in &view.members {
                let (of, updates) = (member.id, member.updates);
                self.book.tell(&Fact::Settled { of, updates })?;
            }
            for lane in &view.lanes {
                let key = member.lane_key(lane.subgroup, lane.epoch);
                let ids = lane.members.iter();
                let ids: Vec<_> = ids.map(|rank| view.members[rank.index()].id).collect();
                if ids.contains(&member.id) {
                    let (lane, members) = (key, &ids[..]);
                    self.book.tell(&Fact::LaneAtRest { lane, members })?;
                }
            }
            for fact in member.rings_at_rest(self.now) {
                self.book.tell(&fact)?;
            }
        }
        self.book.tell(&Fact::Over)?;
        let survivors = up().map(|member| member.id).collect();
        self.book.judge(Some(&survivors))
    }

    /// What is held comes back to its senders.
    fn let_go(&mut self) {
        let (turn, now) = (self.turn, self.now);
        for member in &self.members {
            let engine = &member.engine;
            engine.with_sink(|sink| sink.return_loans(turn, true));
        }
        for _ in 0..3 {
            for member in self.members.iter().filter(|member| member.is_up()) {
                member.engine.step(now);
            }
            self.network.settle();
        }
    }
}
