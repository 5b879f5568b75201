//! The world: turns taken by chance, properties checked as it goes.

use std::collections::BTreeMap;
use std::fmt;

use spindle_dds_core::{Layout, Ring, SubgroupId};
use spindle_dds_transport::sim::{NodeId, Rng, SimNetwork};
use spindle_dds_transport::{Fabric, Rank};

use crate::invariants::{self, Finding};
use crate::node::{Mode, Node, Record, SentMessage};
use crate::plan::Plan;

/// What a run without a violation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Messages committed.
    pub sent: usize,
    /// Messages delivered, over all members.
    pub delivered: usize,
    /// Nulls published.
    pub nulls: u64,
    /// Turns until all was quiet.
    pub turns: usize,
    /// Hash over everything that happened.
    pub trace_hash: u64,
}

/// A property that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The run.
    pub seed: u64,
    /// The property's id.
    pub property: &'static str,
    /// What was seen.
    pub what: String,
    /// When.
    pub turn: usize,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            property,
            what,
            turn,
        } = self;
        write!(
            f,
            "seed {seed}: {property} does not hold at turn {turn}: {what}"
        )
    }
}

impl std::error::Error for Violation {}

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

struct World<'a> {
    plan: &'a Plan,
    network: SimNetwork,
    nodes: Vec<Node>,
    rng: Rng,
    turn: usize,
    /// By member, subgroup and ring: messages seen of each sender.
    seen: BTreeMap<(Rank, SubgroupId, Ring), BTreeMap<Rank, u64>>,
}

impl<'a> World<'a> {
    fn new(plan: &'a Plan) -> Self {
        let mut rng = Rng::new(plan.seed);
        let lens = Layout::new(&plan.view)
            .map(|layout| layout.row_lens())
            .unwrap_or_default();
        let (network, fabrics) = SimNetwork::group(plan.seed, &lens, plan.network.clone());
        let nodes = fabrics
            .into_iter()
            .filter_map(|fabric| Node::new(fabric.me(), fabric, plan, &mut rng))
            .collect();
        Self {
            plan,
            network,
            nodes,
            rng,
            turn: 0,
            seen: BTreeMap::new(),
        }
    }

    fn run(&mut self) -> Result<Report, Finding> {
        if self.nodes.len() != self.plan.view.members {
            return Err(("X0", "the plan makes no view".to_owned()));
        }
        let patience = 20_000 + 4_000 * self.plan.total();
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
        if self.nodes[at].left {
            // Its polling thread may not know it yet: some more steps do no harm.
            self.nodes[at].step_after_leaving();
            self.return_loans(at);
            self.check_node(at)?;
            return Ok(self.is_busy());
        }
        let node = &mut self.nodes[at];
        if acting {
            node.act(self.plan, self.turn);
        }
        let rung = node.mode == Mode::Asleep && self.network.rung(NodeId(node.rank.index()));
        let due = node.is_done() && self.plan.leavers.contains(&node.rank) && !node.left;
        if due {
            node.leave();
        }
        node.poll(rung);
        self.return_loans(at);
        self.check_node(at)?;
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
        let mut present = self.nodes.iter().filter(|node| !node.left);
        let done = present.all(|node| {
            let loans = node.engine.with_sink(|sink| sink.loans.len());
            node.mode == Mode::Asleep && node.is_done() && !self.leaves(node) && loans == Some(0)
        });
        !done || self.network.pending() > 0
    }

    fn leaves(&self, node: &Node) -> bool {
        self.plan.leavers.contains(&node.rank)
    }

    fn sent(&self, rank: Rank, subgroup: SubgroupId, ring: Ring) -> &[SentMessage] {
        self.nodes[rank.index()].sent(subgroup, ring)
    }

    /// What holds at every delivery.
    fn check_node(&mut self, at: usize) -> Result<(), Finding> {
        let rank = self.nodes[at].rank;
        let (records, corrupt, stopped) = self.nodes[at]
            .engine
            .with_sink(|sink| {
                let records = core::mem::take(&mut sink.new_records);
                (records, sink.corrupt.clone(), sink.stopped.clone())
            })
            .unwrap_or_default();
        if let Some(what) = corrupt {
            return Err(("M3", what));
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
            if ring == Ring::Ordered {
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
        let members = &self.plan.view.subgroups[subgroup.index()].members;
        for member in members
            .iter()
            .filter(|member| !self.nodes[member.index()].left)
        {
            let position = self.nodes[member.index()].engine.position(subgroup);
            let received = position.map_or(u64::MAX, |position| position.received_num);
            if received <= record.position {
                let what = format!("{rank} delivered {record:?}, {member} has received {received}");
                return Err(("A4", what));
            }
        }
        Ok(())
    }

    /// What holds when all is quiet: liveness, and one order for all.
    fn check_end(&self) -> Result<(), Finding> {
        for (at, group) in self.plan.view.subgroups.iter().enumerate() {
            let subgroup = SubgroupId(at as u32);
            for ring in Ring::BOTH {
                self.check_ring_end(subgroup, ring, &group.members)?;
            }
            self.check_digests(subgroup, &group.members)?;
        }
        Ok(())
    }

    fn check_ring_end(
        &self,
        subgroup: SubgroupId,
        ring: Ring,
        members: &[Rank],
    ) -> Result<(), Finding> {
        let sent = self
            .nodes
            .iter()
            .map(|node| node.sent(subgroup, ring).len())
            .sum();
        let mut histories = Vec::new();
        for &rank in members {
            let node = &self.nodes[rank.index()];
            let history = node
                .engine
                .with_sink(|sink| sink.histories.get(&(subgroup, ring)).cloned());
            let history = history.flatten().unwrap_or_default();
            // Who has left does not take part to the end, and who does not read
            // is in no hurry to deliver what it sent itself.
            if !node.left && self.plan.readers[rank.index()] {
                invariants::all_delivered(subgroup, ring, rank, &history, sent)?;
                invariants::farewells(rank, &history, &self.leavers_of(subgroup, ring))?;
            }
            histories.push((rank, history));
        }
        if ring == Ring::Ordered {
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
    fn leavers_of(&self, subgroup: SubgroupId, ring: Ring) -> Vec<Rank> {
        let senders = &self.plan.view.subgroups[subgroup.index()].senders;
        let sending = senders
            .iter()
            .filter(|sender| sender.rings[ring.index()].is_some());
        let ranks = sending.map(|sender| sender.rank);
        ranks.filter(|rank| self.nodes[rank.index()].left).collect()
    }

    /// A3 once more, by the engine's own digest.
    fn check_digests(&self, subgroup: SubgroupId, members: &[Rank]) -> Result<(), Finding> {
        let reading =
            |rank: &&Rank| !self.nodes[rank.index()].left && self.plan.readers[rank.index()];
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
        for node in self.nodes.iter_mut().filter(|node| !node.left) {
            while node.mode != Mode::Awake {
                node.poll(true);
            }
            for _ in 0..6 {
                node.poll(false);
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
            turns: self.turn,
            trace_hash: self.network.trace_hash(),
        }
    }
}
