//! Advances virtual time: events happen in the order of their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::network::{Charge, Costs, Measure, Spent, TimedNetwork};
use spindle_dds_core::membership::{CONTROL_ROW_LEN, OutReason};
use spindle_dds_core::{ClaimError, RingSpec, SegmentLayout, SpecError};
use spindle_dds_transport::{FABRIC_AREA, Rank};

use super::constants::{COSTS, RECEIVE};
use super::experiment::{Experiment, MESSAGES_MAX, STAND_IN, Slots};
use super::measured::{Batches, Measured};
use super::member::{Member, Next};
use super::storage::Keeper;
use super::view::view_of;

/// Bytes of a message header in a [`SegmentLayout`].
const HEADER_LEN: usize = spindle_dds_core::limits::HEADER_LEN;

/// Why a run has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    /// The experiment is invalid.
    #[error("needed: 2 to 16 members, at least one active subgroup, 1 to {MESSAGES_MAX} messages")]
    Experiment,
    /// A subgroup is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A claim or commit was refused.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// An engine was stepped during a step.
    #[error("an engine is already in a step")]
    Owned,
    /// An engine stopped.
    #[error(transparent)]
    Stopped(#[from] OutReason),
    /// Nothing is in flight, and not all messages are delivered.
    #[error("no event follows after {at} ns; member {member} has delivered {delivered}")]
    Stalled {
        /// When.
        at: u64,
        /// The member that waits.
        member: usize,
        /// Its position in the order of the first subgroup.
        delivered: u64,
    },
    /// Two members have different orders.
    #[error("members 0 and {member} have different orders of subgroup {subgroup}")]
    Orders {
        /// The one that differs.
        member: usize,
        /// Where.
        subgroup: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Step,
    Turn(usize),
    /// A thread has kept messages.
    Kept(Keeper),
}

struct World {
    network: TimedNetwork,
    members: Vec<Member>,
    /// Time, number, member, task.
    tasks: BinaryHeap<Reverse<(u64, u64, usize, Task)>>,
    number: u64,
    began_ns: u64,
    now: u64,
}

/// Runs an experiment. Its result is always the same.
pub(crate) fn run(experiment: &Experiment) -> Result<Measured, Broken> {
    run_with(experiment, &COSTS)
}

/// Runs an experiment with these costs of the network.
pub(super) fn run_with(experiment: &Experiment, costs: &Costs) -> Result<Measured, Broken> {
    let Experiment {
        members,
        messages,
        active,
        subgroups,
        ..
    } = *experiment;
    let possible = (2..=16).contains(&members)
        && (1..=MESSAGES_MAX).contains(&messages)
        && (1..=subgroups).contains(&active)
        && experiment.deliveries() > 0;
    if !possible {
        return Err(Broken::Experiment);
    }
    let mut world = World::new(experiment, costs)?;
    world.pass()?;
    world.compare(experiment)?;
    Ok(world.measured(experiment))
}

impl World {
    fn new(experiment: &Experiment, costs: &Costs) -> Result<Self, Broken> {
        let nodes = experiment.members;
        let network = TimedNetwork::new(nodes, *costs);
        // No member writes to the control segment, so its rows stay in all caches.
        let free = TimedNetwork::new(
            nodes,
            Costs {
                look_ns: 0,
                ..*costs
            },
        );
        let plain = Arc::new(|_: Rank, _: usize, len: usize| Charge::Write(len as u64));
        let own = free.segment(&vec![FABRIC_AREA; nodes], plain.clone());
        let control = free.segment(&vec![CONTROL_ROW_LEN; nodes], plain);
        let specs = (0..experiment.subgroups).map(|at| experiment.subgroup(at));
        let view = view_of(nodes, specs.collect());
        let mut segments: Vec<Vec<_>> = (0..nodes).map(|_| Vec::new()).collect();
        for subgroup in 0..experiment.subgroups {
            let layout = SegmentLayout::new(&experiment.subgroup(subgroup))?;
            let row_lens = layout.row_lens();
            let fabrics = network.segment(
                &row_lens,
                Arc::new(Rows {
                    size: u64::from(experiment.size),
                    slots: experiment.slots,
                    senders: experiment.senders.of(nodes),
                    ring: experiment.ring_spec(),
                    lens: row_lens.clone(),
                }),
            );
            for (segments, fabric) in segments.iter_mut().zip(fabrics) {
                segments.push(fabric);
            }
        }
        let members = own
            .into_iter()
            .zip(control)
            .zip(segments)
            .map(|(fabrics, segments)| {
                Member::new(network.clone(), fabrics, segments, (experiment, &view))
            });
        let mut world = Self {
            members: members.collect::<Result<_, _>>()?,
            network,
            tasks: BinaryHeap::new(),
            number: 0,
            began_ns: 0,
            now: 0,
        };
        world.begin(&free)?;
        Ok(world)
    }

    /// Steps until every member knows that all are ready for messages; then the experiment begins.
    fn begin(&mut self, free: &TimedNetwork) -> Result<(), Broken> {
        let is_ready = |member: &Member| {
            let subgroups = member.engine.figures().subgroups;
            subgroups.iter().all(|subgroup| subgroup.unready.is_empty())
        };
        while !self.members.iter().all(is_ready) {
            for member in &self.members {
                member.engine.step(0).ok_or(Broken::Owned)?;
            }
            while free.due().is_some() {
                free.land();
            }
            while self.network.due().is_some() {
                self.network.land();
            }
        }
        let nodes = 0..self.members.len();
        self.began_ns = nodes.map(|node| self.network.now(node)).max().unwrap_or(0);
        for member in &mut self.members {
            member.begin(self.began_ns);
        }
        Ok(())
    }

    fn add(&mut self, at: u64, member: usize, task: Task) {
        self.tasks.push(Reverse((at, self.number, member, task)));
        self.number += 1;
    }

    fn add_all(&mut self, member: usize, next: Next) {
        if let Some(at) = next.step {
            self.add(at, member, Task::Step);
        }
        for (at, which) in next.turns {
            self.add(at, member, Task::Turn(which));
        }
        for (at, keeper) in next.kept {
            self.add(at, member, Task::Kept(keeper));
        }
    }

    /// Runs until all members have delivered all messages.
    fn pass(&mut self) -> Result<(), Broken> {
        let mut open = self.members.len();
        for member in 0..self.members.len() {
            self.add(self.began_ns, member, Task::Step);
            for which in 0..self.members[member].applications.len() {
                self.members[member].applications[which].has_turn = true;
                self.add(self.began_ns, member, Task::Turn(which));
            }
        }
        while open > 0 {
            let task = self.tasks.peek().map(|Reverse((at, ..))| *at);
            match (self.network.due(), task) {
                (Some(due), task) if task.is_none_or(|at| due <= at) => {
                    self.now = due;
                    if let Some(landed) = self.network.land()
                        && let Some(at) = self.members[landed.node].wake(landed.at)
                    {
                        self.add(at, landed.node, Task::Step);
                    }
                }
                (_, Some(_)) => open -= usize::from(self.perform()?),
                (_, None) => return Err(self.stalled()),
            }
        }
        Ok(())
    }

    /// Performs the next task. Returns whether its member is done after it.
    fn perform(&mut self) -> Result<bool, Broken> {
        let Some(Reverse((at, _, index, task))) = self.tasks.pop() else {
            return Ok(false);
        };
        self.now = at;
        let member = &mut self.members[index];
        let before = member.done_at()?;
        let next = match task {
            Task::Step => member.step(at)?,
            Task::Turn(which) => member.turn(which, at)?,
            Task::Kept(keeper) => member.kept(keeper, at),
        };
        let is_done = before.is_none() && member.done_at()?.is_some();
        self.add_all(index, next);
        Ok(is_done)
    }

    fn stalled(&self) -> Broken {
        let waits = |member: &&Member| matches!(member.done_at(), Ok(None));
        let member = self
            .members
            .iter()
            .find(waits)
            .map_or(0, |member| member.node);
        Broken::Stalled {
            at: self.now,
            member,
            delivered: self.members[member].position(0),
        }
    }

    /// Checks that all members have delivered the same messages in the same order.
    fn compare(&self, experiment: &Experiment) -> Result<(), Broken> {
        let digests = |member: &Member| {
            let digests = |sink: &mut super::receiver::Receiver| {
                sink.subgroups
                    .iter()
                    .map(|subgroup| subgroup.digest)
                    .collect::<Vec<_>>()
            };
            member.engine.with_sink(digests).unwrap_or_default()
        };
        let first = digests(&self.members[0]);
        for member in self.members.iter().filter(|member| member.is_ordered()) {
            let theirs = digests(member);
            for subgroup in 0..experiment.active {
                if theirs.get(subgroup) != first.get(subgroup) {
                    return Err(Broken::Orders {
                        member: member.node,
                        subgroup,
                    });
                }
            }
        }
        Ok(())
    }

    fn measured(&self, experiment: &Experiment) -> Measured {
        let parts: Vec<Part> = self
            .members
            .iter()
            .map(|member| Part::of(member, experiment, self.began_ns))
            .collect();
        let mean =
            |of: &dyn Fn(&Part) -> f64| parts.iter().map(of).sum::<f64>() / parts.len() as f64;
        let senders: Vec<&Part> = parts.iter().filter(|part| part.sends).collect();
        let of_senders = |of: &dyn Fn(&Part) -> f64| {
            senders.iter().map(|part| of(part)).sum::<f64>() / senders.len().max(1) as f64
        };
        let mut latencies: Vec<u64> = parts
            .iter()
            .flat_map(|part| part.latencies.clone())
            .collect();
        latencies.sort_unstable();
        let median = latencies.get(latencies.len() / 2).copied().unwrap_or(0);
        let total: u64 = latencies.iter().sum();
        let messages = (experiment.deliveries() * experiment.active as u64) as f64;
        let size = f64::from(experiment.size);
        let counters: Vec<_> = self
            .members
            .iter()
            .map(|member| member.engine.handle().counters())
            .collect();
        let batches = |messages: &dyn Fn(&spindle_dds_core::Counters) -> u64,
                       of: &dyn Fn(
            &spindle_dds_core::Counters,
        ) -> spindle_dds_core::BatchHistogram| {
            let histograms: Vec<_> = counters.iter().map(of).collect();
            Batches::of(counters.iter().map(messages).sum(), &histograms)
        };
        Measured {
            seconds: mean(&|part| part.seconds),
            gb_per_s: mean(&|part| messages * size / part.seconds) / 1e9,
            messages_per_s: mean(&|part| messages / part.seconds),
            latency_mean_us: total as f64 / latencies.len().max(1) as f64 / 1000.0,
            latency_median_us: median as f64 / 1000.0,
            requests: mean(&|part| part.spent.requests as f64),
            writes: mean(&|part| part.spent.writes as f64),
            wire_bytes: mean(&|part| part.spent.wire_bytes as f64),
            posting_share: mean(&|part| part.spent.posting_ns as f64 / 1e9 / part.seconds),
            posting_seconds: mean(&|part| part.spent.posting_ns as f64 / 1e9),
            active_share: mean(&|part| part.active_ns as f64 / 1e9 / part.seconds),
            waiting_share: of_senders(&|part| part.waited_ns as f64 / 1e9 / part.seconds),
            nulls: counters
                .iter()
                .map(|counters| counters.nulls as f64)
                .sum::<f64>()
                / experiment.senders.of(experiment.members) as f64,
            send: batches(&|counters| counters.sent, &|counters| {
                counters.send_batches.clone()
            }),
            receive: batches(&|counters| counters.received, &|counters| {
                counters.receive_batches.clone()
            }),
            delivery: batches(&|counters| counters.delivered, &|counters| {
                counters.delivery_batches.clone()
            }),
        }
    }
}

/// One member's share of the results.
struct Part {
    seconds: f64,
    spent: Spent,
    active_ns: u64,
    sends: bool,
    /// Mean over the applications.
    waited_ns: u64,
    latencies: Vec<u64>,
}

impl Part {
    fn of(member: &Member, experiment: &Experiment, began_ns: u64) -> Self {
        let sink = |sink: &mut super::receiver::Receiver| {
            let active = sink.subgroups.iter().take(experiment.active);
            let delivering: u64 = active.map(|subgroup| subgroup.spent_ns).sum();
            (
                sink.done_at().unwrap_or(0),
                delivering,
                sink.latencies.clone(),
            )
        };
        let (done_at, delivering, latencies) = member.engine.with_sink(sink).unwrap_or_default();
        let spent = |subgroups: usize| {
            let spent = (0..subgroups).map(|at| member.spent(at));
            spent.fold(Spent::default(), add)
        };
        let active = spent(experiment.active);
        // Passes without progress polled all subgroups equally.
        let idle = member.idle_ns * experiment.active as u64 / experiment.subgroups as u64;
        let waited: u64 = member.applications.iter().map(|one| one.waited_ns).sum();
        Self {
            seconds: done_at.saturating_sub(began_ns) as f64 / 1e9,
            spent: spent(experiment.subgroups),
            active_ns: active.posting_ns
                + active.looking_ns
                + active.rising_ns
                + delivering
                + member.lock_ns
                + idle,
            sends: !member.applications.is_empty(),
            waited_ns: waited / member.applications.len().max(1) as u64,
            latencies,
        }
    }
}

fn add(one: Spent, other: Spent) -> Spent {
    Spent {
        requests: one.requests + other.requests,
        writes: one.writes + other.writes,
        wire_bytes: one.wire_bytes + other.wire_bytes,
        posting_ns: one.posting_ns + other.posting_ns,
        looking_ns: one.looking_ns + other.looking_ns,
        rising_ns: one.rising_ns + other.rising_ns,
    }
}

impl Member {
    fn done_at(&self) -> Result<Option<u64>, Broken> {
        let state = |sink: &mut super::receiver::Receiver| (sink.done_at(), sink.stopped.clone());
        match self.engine.with_sink(state) {
            Some((_, Some(reason))) => Err(reason.into()),
            Some((done_at, None)) => Ok(done_at),
            None => Err(Broken::Owned),
        }
    }
}

/// The charges for a member's row of a subgroup. A row begins with the counts of received
/// messages of each sender, and ends with the member's headers and payload.
struct Rows {
    size: u64,
    slots: Slots,
    senders: usize,
    ring: RingSpec,
    lens: Vec<usize>,
}

impl Measure for Rows {
    fn push(&self, owner: Rank, at: usize, len: usize) -> Charge {
        if owner.index() >= self.senders {
            return Charge::Write(len as u64);
        }
        let payload = self.lens[owner.index()] - self.ring.memory() as usize;
        let headers = payload - self.ring.messages as usize * HEADER_LEN;
        match self.slots {
            _ if at >= payload => Charge::Write(len as u64 / u64::from(STAND_IN) * self.size),
            Slots::Fixed if at >= headers => Charge::Rides,
            Slots::Fixed | Slots::Rings => Charge::Write(len as u64),
        }
    }

    fn rise(&self, word: usize, by: u64) -> u64 {
        let counts = FABRIC_AREA + 8;
        let is_count = (counts..counts + self.senders * 8).contains(&word);
        if is_count { by * RECEIVE.value } else { 0 }
    }
}
