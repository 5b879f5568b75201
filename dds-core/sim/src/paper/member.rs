//! A member: its engine, stepped by a polling thread, and its applications.

use std::sync::Arc;

use spindle_dds_core::{Engine, Lane, Ring, SubgroupId};
use spindle_dds_transport::timed::{TimedFabric, TimedNetwork};

use super::application::{Application, Tried};
use super::constants::LOCK;
use super::experiment::Experiment;
use super::receiver::Receiver;
use super::world::Broken;

/// Predicates of a subgroup that take the paper's lock in a pass.
const PREDICATES: u64 = 3;

pub(super) struct Member {
    pub(super) node: usize,
    network: TimedNetwork,
    pub(super) engine: Engine<TimedFabric, Receiver>,
    pub(super) lanes: Vec<Arc<Lane<TimedFabric>>>,
    pub(super) applications: Vec<Application>,
    /// Its polling thread holds a lock that applications need.
    locks: bool,
    ring: Ring,
    /// The step that found something ends then.
    pub(super) busy_until: u64,
    /// Steps that find nothing follow each other since then.
    idle: Option<Idle>,
    /// Time in such steps.
    pub(super) idle_ns: u64,
    /// Time lost by handing the lock over.
    pub(super) lock_ns: u64,
}

/// Steps that find nothing all take the same time, and leave no trace.
#[derive(Debug, Clone, Copy)]
struct Idle {
    since: u64,
    period: u64,
}

/// What happens next at a member, and when.
#[derive(Debug, Default)]
pub(super) struct Next {
    /// A step.
    pub(super) step: Option<u64>,
    /// An application's turn.
    pub(super) turns: Vec<(u64, usize)>,
}

impl Member {
    pub(super) fn new(
        network: TimedNetwork,
        control: TimedFabric,
        segments: Vec<TimedFabric>,
        experiment: &Experiment,
    ) -> Result<Self, Broken> {
        let node = usize::from(spindle_dds_transport::Fabric::me(&control).0);
        let receiver = Receiver::new(network.clone(), node, experiment);
        let engine = Engine::new(control, experiment.config, receiver);
        let mut lanes = Vec::new();
        for (subgroup, segment) in segments.into_iter().enumerate() {
            lanes.push(engine.add_lane(&experiment.lane(subgroup), segment)?);
        }
        let mut applications = Vec::new();
        if node < experiment.senders.of(experiment.members)
            && let Some(wait_ns) = experiment.wait_ns(node)
        {
            let active = lanes.iter().take(experiment.active);
            applications
                .extend(active.map(|lane| Application::new(lane.clone(), experiment, wait_ns)));
        }
        Ok(Self {
            node,
            network,
            engine,
            lanes,
            applications,
            locks: !experiment.config.late_pushes,
            ring: experiment.ring(),
            busy_until: 0,
            idle: None,
            idle_ns: 0,
            lock_ns: 0,
        })
    }

    /// One pass of the polling thread.
    pub(super) fn step(&mut self, at: u64) -> Result<Next, Broken> {
        self.network.wait_until(self.node, at);
        let Some(outcome) = self.engine.step(at) else {
            return Err(Broken::Owned);
        };
        let end = self.network.now(self.node);
        if !outcome.progress {
            self.idle = Some(Idle {
                since: end,
                period: (end - at).max(1),
            });
            return Ok(Next::default());
        }
        let mut next = Next::default();
        let end = match self.locks {
            true => self.hand_over_lock(at, end, &mut next)?,
            false => end,
        };
        self.busy_until = end;
        next.step = Some(end);
        for (which, application) in self.applications.iter_mut().enumerate() {
            let may_go = !self.locks && application.is_waiting() && !application.has_turn;
            if may_go && application.has_room() {
                application.has_turn = true;
                next.turns.push((end, which));
            }
        }
        Ok(next)
    }

    /// Behind each predicate of a step, whoever waits for the lock has one go. Returns when
    /// the step is over.
    fn hand_over_lock(&mut self, begin: u64, end: u64, next: &mut Next) -> Result<u64, Broken> {
        let mut handing_over = 0;
        for nth in 1..=PREDICATES {
            for which in 0..self.applications.len() {
                let now = begin + (end - begin) * nth / PREDICATES + handing_over;
                let application = &self.applications[which];
                if application.is_done() || application.ready_at > now {
                    continue;
                }
                handing_over += LOCK.value;
                self.go(which, now)?;
            }
        }
        self.lock_ns += handing_over;
        let end = self.network.spend(self.node, handing_over);
        for (which, application) in self.applications.iter_mut().enumerate() {
            let is_free = !application.is_done() && !application.is_waiting();
            if is_free && !application.has_turn {
                application.has_turn = true;
                next.turns.push((end.max(application.ready_at), which));
            }
        }
        Ok(end)
    }

    fn go(&mut self, which: usize, at: u64) -> Result<Tried, Broken> {
        let application = &mut self.applications[which];
        let tried = application.try_send(at)?;
        if tried == Tried::Sent {
            let subgroup = application.subgroup();
            self.engine
                .with_sink(|sink| sink.lanes[subgroup].claimed.push_back(at));
        }
        Ok(tried)
    }

    /// An application's turn.
    pub(super) fn turn(&mut self, which: usize, at: u64) -> Result<Next, Broken> {
        let mut next = Next::default();
        self.applications[which].has_turn = false;
        if self.applications[which].is_done() {
            return Ok(next);
        }
        if self.locks && self.busy_until > at {
            // It is served with the lock, or when that is free.
            self.applications[which].has_turn = true;
            next.turns.push((self.busy_until, which));
            return Ok(next);
        }
        if self.go(which, at)? == Tried::Sent {
            next.step = self.wake(at);
            let application = &mut self.applications[which];
            if !application.is_done() {
                application.has_turn = true;
                next.turns.push((application.ready_at, which));
            }
        }
        Ok(next)
    }

    /// Something is there to be found since `at`. When the step begins that finds it, if the
    /// polling thread finds nothing now.
    pub(super) fn wake(&mut self, at: u64) -> Option<u64> {
        let Idle { since, period } = self.idle.take()?;
        let passes = at.saturating_sub(since).div_ceil(period);
        let begin = since + passes * period;
        self.idle_ns += begin - since;
        Some(begin)
    }

    /// My order of a subgroup.
    pub(super) fn is_ordered(&self) -> bool {
        self.ring == Ring::Ordered
    }

    pub(super) fn position(&self, subgroup: usize) -> u64 {
        self.engine
            .position(SubgroupId(subgroup as u32))
            .map_or(0, |position| position.delivered_num)
    }
}
