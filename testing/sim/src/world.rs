//! The world: turns taken by chance, properties checked as it goes.

use std::collections::BTreeMap;

use spindle_dds_core::{DeliveryClass, SubgroupId};
use spindle_dds_transport::sim::{NodeId, Rng, SimNetwork};
use spindle_dds_transport::{Fabric, Rank};

use crate::change::{Change, Open, ROW_LEN};
use crate::invariants;
use crate::node::{Mode, Node};
use crate::plan::Plan;
use crate::recorder::{Record, SentMessage};
use crate::violation::{Finding, Violation};

/// Turns after which a member that was woken and heard nothing sleeps again: more than
/// the messages of its rings.
const WAKE_TURNS_MAX: usize = 100;

/// What a run without a violation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Messages committed.
    pub sent: usize,
    /// Messages delivered, over all members.
    pub delivered: usize,
    /// Nulls published.
    pub nulls: u64,
    /// Times that lanes were replaced.
    pub changes: usize,
    /// Turns until all was quiet.
    pub turns: usize,
    /// Hash over everything that happened.
    pub trace_hash: u64,
}

/// Runs a plan to its end.
pub fn run(plan: &Plan) -> Result<Report, Violation> {
    let mut world = World::new(plan);
    let result = world.run();
    let turn = world.turn;
    result.map_err(|(property, what)| Violation {
        seed: plan.seed,
        property,
        what,
        turn,
    })
}

pub(crate) struct World<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) network: SimNetwork,
    pub(crate) nodes: Vec<Node>,
    pub(crate) rng: Rng,
    turn: usize,
    /// By subgroup; none when nobody is left.
    pub(crate) lanes: Vec<Option<Open>>,
    pub(crate) change: Option<Change>,
    pub(crate) changes: usize,
    pub(crate) changes_left: usize,
    /// By lane: position and digest at its end.
    pub(crate) ends: BTreeMap<(SubgroupId, u64), (u64, u64)>,
    /// By member, subgroup and ring: messages seen of each sender.
    seen: BTreeMap<(Rank, SubgroupId, DeliveryClass), BTreeMap<Rank, u64>>,
}

impl<'a> World<'a> {
    fn new(plan: &'a Plan) -> Self {
        let mut rng = Rng::new(plan.seed);
        let lens = vec![ROW_LEN; plan.members];
        let (network, fabrics) = SimNetwork::group(plan.seed, &lens, plan.network.clone());
        let nodes = fabrics
            .into_iter()
            .map(|control| Node::new(control, plan, &mut rng))
            .collect();
        Self {
            plan,
            network,
            nodes,
            rng,
            turn: 0,
            lanes: Vec::new(),
            change: None,
            changes: 0,
            changes_left: plan.changes,
            ends: BTreeMap::new(),
            seen: BTreeMap::new(),
        }
    }

    fn run(&mut self) -> Result<Report, Finding> {
        self.open_lanes()?;
        let patience = 20_000 + 4_000 * self.plan.total() + 20_000 * self.plan.changes;
        let mut quiet = 0;
        loop {
            self.turn += 1;
            if self.turn > patience {
                return Err(("L7", format!("not quiet after {patience} turns")));
            }
            let busy = self.take_turn()?;
            quiet = if busy { 0 } else { quiet + 1 };
            if quiet > 50 {
                break;
            }
        }
        self.check_end()?;
        self.check_quiescence()?;
        Ok(self.report())
    }

    /// Somebody does something. False when there was nothing to do for anybody.
    fn take_turn(&mut self) -> Result<bool, Finding> {
        let at = self.rng.below(self.nodes.len());
        let acting = self.rng.chance(self.plan.app_chance);
        let landing = self.rng.below(4);
        for _ in 0..landing {
            self.network.step();
        }
        self.stir();
        if self.nodes[at].dead {
            return Ok(self.is_busy());
        }
        if self.nodes[at].expelled && self.rng.chance(0.002) {
            self.crash(self.nodes[at].rank);
            return Ok(true);
        }
        if self.nodes[at].left {
            // Its polling thread may not know it yet: some more steps do no harm.
            self.nodes[at].step_after_leaving();
            self.return_loans(at);
            self.check_node(at, true)?;
            return Ok(self.is_busy());
        }
        let unaware = self.nodes.iter().any(|node| node.expelled && !node.dead);
        let node = &mut self.nodes[at];
        if acting {
            node.act(self.plan, self.turn);
        }
        let rung = node.mode == Mode::Asleep && self.network.take_wakeup(NodeId(node.rank.index()));
        let leaver = self.plan.leavers.contains(&node.rank) && node.is_present();
        // Who takes part in a change sees it through. There is one control segment
        // here for all views: who was expelled from one is not to read in it that
        // somebody has left another.
        if leaver && node.is_done() && self.change.is_none() && !unaware {
            node.leave();
        }
        node.poll(rung);
        self.return_loans(at);
        self.check_node(at, true)?;
        if self.nodes[at].is_present() {
            self.tend(at)?;
        }
        Ok(self.is_busy())
    }

    /// What has been held long enough is read once more, also by who has left.
    fn return_loans(&self, at: usize) {
        let turn = self.turn;
        self.nodes[at].engine.with_sink(|sink| {
            sink.turn = turn;
            sink.return_loans(false);
        });
    }

    fn is_busy(&self) -> bool {
        let unaware = |node: &Node| node.expelled && !node.dead;
        if self.change.is_some() || self.lanes_have_dead() || self.nodes.iter().any(unaware) {
            return true;
        }
        let mut present = self.nodes.iter().filter(|node| node.is_present());
        let done = present.all(|node| {
            let loans = node.engine.with_sink(|sink| sink.loans.len());
            node.mode == Mode::Asleep && node.is_done() && !self.leaves(node) && loans == Some(0)
        });
        !done || self.network.pending() > 0
    }

    fn leaves(&self, node: &Node) -> bool {
        self.plan.leavers.contains(&node.rank)
    }

    fn sent(&self, rank: Rank, subgroup: SubgroupId, ring: DeliveryClass) -> &[SentMessage] {
        self.nodes[rank.index()].sent(subgroup, ring)
    }

    /// What holds at every delivery; `stable` unless a lane has just ended.
    pub(crate) fn check_node(&mut self, at: usize, stable: bool) -> Result<(), Finding> {
        let rank = self.nodes[at].rank;
        let (records, wrong, stopped) = self.nodes[at]
            .engine
            .with_sink(|sink| {
                let records = core::mem::take(&mut sink.new_records);
                (records, sink.wrong.clone(), sink.stopped.clone())
            })
            .unwrap_or_default();
        if let Some(finding) = wrong {
            return Err(finding);
        }
        if let Some(reason) = stopped {
            return Err(("A6", format!("member {rank} stopped: {reason}")));
        }
        for (subgroup, ring, record) in records {
            let mut next = self
                .seen
                .remove(&(rank, subgroup, ring))
                .unwrap_or_default();
            let sent = self.sent(record.sender, subgroup, ring);
            invariants::integrity_and_fifo(&record, sent, &mut next)?;
            self.seen.insert((rank, subgroup, ring), next);
            if ring == DeliveryClass::Ordered && stable {
                self.check_stable(rank, subgroup, &record)?;
            }
        }
        Ok(())
    }

    /// A4: what one member delivers in order, every member present has received.
    fn check_stable(
        &self,
        rank: Rank,
        subgroup: SubgroupId,
        record: &Record,
    ) -> Result<(), Finding> {
        // A farewell follows its sender's last message.
        if record.number == 0 {
            return Ok(());
        }
        let members = self.plan.groups[subgroup.index()].members.iter();
        for member in members.filter(|member| self.nodes[member.index()].is_present()) {
            let engine = &self.nodes[member.index()].engine;
            if engine.has_received(subgroup, record.position) == Some(false) {
                let what = format!("{rank} delivered {record:?}, {member} has not received it");
                return Err(("A4", what));
            }
        }
        Ok(())
    }

    /// What holds when all is quiet: liveness, and one order for all.
    fn check_end(&self) -> Result<(), Finding> {
        for group in &self.plan.groups {
            let subgroup = group.subgroup;
            for ring in DeliveryClass::BOTH {
                self.check_ring_end(subgroup, ring, &group.members)?;
            }
            self.check_digests(subgroup, &group.members)?;
        }
        Ok(())
    }

    fn check_ring_end(
        &self,
        subgroup: SubgroupId,
        ring: DeliveryClass,
        members: &[Rank],
    ) -> Result<(), Finding> {
        // Of those who failed, what nobody who goes on has received is lost.
        let sound = |node: &&Node| node.left || node.is_present();
        let sent = self.nodes.iter().filter(sound);
        let sent = sent.map(|node| (node.rank, node.sent(subgroup, ring).len()));
        let sent: BTreeMap<Rank, usize> = sent.collect();
        let mut histories = Vec::new();
        for &rank in members {
            let node = &self.nodes[rank.index()];
            let history = node
                .engine
                .with_sink(|sink| sink.histories.get(&(subgroup, ring)).cloned());
            let history = history.flatten().unwrap_or_default();
            // Who has left does not take part to the end, and who does not read
            // is in no hurry to deliver what it sent itself.
            if node.is_present() && self.plan.readers[rank.index()] {
                invariants::all_delivered(subgroup, ring, rank, &history, &sent)?;
                invariants::farewells(rank, &history, &self.leavers_of(subgroup, ring))?;
            }
            histories.push((rank, history));
        }
        if ring == DeliveryClass::Ordered {
            for (_, history) in &histories {
                invariants::positions_rise(history)?;
            }
            let histories: Vec<_> = histories
                .iter()
                .map(|(rank, history)| (*rank, history.as_slice()))
                .collect();
            invariants::total_order(&histories)?;
        }
        Ok(())
    }

    /// Senders of a ring that have left.
    fn leavers_of(&self, subgroup: SubgroupId, ring: DeliveryClass) -> Vec<Rank> {
        let senders = &self.plan.groups[subgroup.index()].senders;
        let sending = senders
            .iter()
            .filter(|sender| sender.rings[ring.index()].is_some());
        let ranks = sending.map(|sender| sender.rank);
        ranks.filter(|rank| self.nodes[rank.index()].left).collect()
    }

    /// A3 once more, by the engine's own digest.
    fn check_digests(&self, subgroup: SubgroupId, members: &[Rank]) -> Result<(), Finding> {
        let reading =
            |rank: &&Rank| self.nodes[rank.index()].is_present() && self.plan.readers[rank.index()];
        let present = members.iter().filter(reading);
        let mut digests = present
            .filter_map(|rank| Some((rank, self.nodes[rank.index()].engine.position(subgroup)?)));
        let Some((first, position)) = digests.next() else {
            return Ok(());
        };
        for (rank, other) in digests {
            if other.digest != position.digest {
                return Err(("A3", format!("the digests of {first} and {rank} differ")));
            }
        }
        Ok(())
    }

    /// I8: when nobody sends, nothing is pushed. Everybody is woken once, to
    /// take notice of acknowledgements that were not worth waking up for; woken
    /// again, nobody has a word to say.
    fn check_quiescence(&mut self) -> Result<(), Finding> {
        self.wake_everybody();
        let before = self.pushes();
        self.wake_everybody();
        let after = self.pushes();
        if before != after {
            return Err((
                "I8",
                format!("pushes without a message: {before:?} then {after:?}"),
            ));
        }
        Ok(())
    }

    fn wake_everybody(&mut self) {
        for node in self.nodes.iter_mut().filter(|node| node.is_present()) {
            while node.mode != Mode::Awake {
                node.poll(true);
            }
            // Without batching it delivers one message a step.
            for _ in 0..WAKE_TURNS_MAX {
                node.poll(false);
                if node.mode == Mode::Asleep {
                    break;
                }
            }
        }
        self.network.settle();
    }

    fn pushes(&self) -> Vec<u64> {
        let counters = self
            .nodes
            .iter()
            .map(|node| node.engine.handle().fabric().counters());
        counters
            .map(|counters| counters.pushes + counters.word_pushes)
            .collect()
    }

    fn report(&self) -> Report {
        let counters = self
            .nodes
            .iter()
            .map(|node| node.engine.handle().counters());
        Report {
            sent: self
                .nodes
                .iter()
                .flat_map(|node| node.apps.iter().map(|app| app.sent.len()))
                .sum(),
            delivered: self.seen.values().flat_map(BTreeMap::values).sum::<u64>() as usize,
            nulls: counters.map(|counters| counters.nulls).sum(),
            changes: self.changes,
            turns: self.turn,
            trace_hash: self.network.trace_hash(),
        }
    }
}
