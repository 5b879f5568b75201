//! A member: its engine, stepped by a polling thread, and its applications.

use std::sync::Arc;

use crate::network::{Spent, TimedFabric, TimedNetwork};
use spindle_dds_core::membership::View;
use spindle_dds_core::{DeliveryClass, Engine, SubgroupHandle, SubgroupId};

use super::application::{Application, Tried};
use super::constants::LOCK;
use super::experiment::{Experiment, Lock};
use super::receiver::Receiver;
use super::storage::{Keeper, Kept};
use super::view::begin_view;
use super::world::Broken;

/// Predicates of a subgroup that take the paper's lock in a pass.
const PREDICATES: u64 = 3;

pub(super) struct Member {
    pub(super) node: usize,
    network: TimedNetwork,
    pub(super) engine: Engine<TimedFabric, Receiver>,
    pub(super) subgroups: Vec<Arc<SubgroupHandle<TimedFabric>>>,
    /// Costs of each subgroup before the experiment began.
    spent_before: Vec<Spent>,
    pub(super) applications: Vec<Application>,
    lock: Lock,
    /// Subgroups in which messages are sent.
    active: usize,
    class: DeliveryClass,
    /// End of the last step with progress.
    pub(super) busy_until: u64,
    /// Set while steps make no progress.
    idle: Option<Idle>,
    /// Time in steps without progress.
    pub(super) idle_ns: u64,
    /// Time lost by handing the lock over.
    pub(super) lock_ns: u64,
}

/// Steps without progress: all take the same time, and change nothing, so they are not simulated.
#[derive(Debug, Clone, Copy)]
struct Idle {
    since: u64,
    period: u64,
}

/// The next events of a member, with their times.
#[derive(Debug, Default)]
pub(super) struct Next {
    /// A step.
    pub(super) step: Option<u64>,
    /// An application's turn.
    pub(super) turns: Vec<(u64, usize)>,
    /// Ends of the work of threads that keep messages.
    pub(super) kept: Vec<(u64, Keeper)>,
}

impl Member {
    pub(super) fn new(
        network: TimedNetwork,
        (own, control): (TimedFabric, TimedFabric),
        segments: Vec<TimedFabric>,
        (experiment, view): (&Experiment, &Arc<View>),
    ) -> Result<Self, Broken> {
        let node = usize::from(spindle_dds_transport::Fabric::me(&control).0);
        let receiver = Receiver::new(network.clone(), node, experiment);
        let engine = Engine::new(own, experiment.config, receiver);
        begin_view(&engine, view, control, segments);
        let subgroups = (0..experiment.subgroups as u32).map(SubgroupId);
        let subgroups = subgroups.map(|it| engine.handle().subgroup(it).ok_or(Broken::Experiment));
        let subgroups = subgroups.collect::<Result<Vec<_>, _>>()?;
        let mut applications = Vec::new();
        if node < experiment.senders.of(experiment.members)
            && let Some(wait_ns) = experiment.wait_ns(node)
        {
            let active = subgroups.iter().take(experiment.active);
            applications.extend(
                active.map(|subgroup| Application::new(subgroup.clone(), experiment, wait_ns)),
            );
        }
        Ok(Self {
            node,
            network,
            engine,
            spent_before: Vec::new(),
            subgroups,
            applications,
            lock: experiment.lock,
            active: experiment.active,
            class: experiment.class(),
            busy_until: 0,
            idle: None,
            idle_ns: 0,
            lock_ns: 0,
        })
    }

    /// Begins the experiment.
    pub(super) fn begin(&mut self, at: u64) {
        self.network.wait_until(self.node, at);
        self.spent_before = self
            .subgroups
            .iter()
            .map(|it| it.fabric().spent())
            .collect();
    }

    /// Costs of a subgroup in the experiment.
    pub(super) fn spent(&self, subgroup: usize) -> Spent {
        let (now, before) = (
            self.subgroups[subgroup].fabric().spent(),
            self.spent_before[subgroup],
        );
        Spent {
            requests: now.requests - before.requests,
            writes: now.writes - before.writes,
            wire_bytes: now.wire_bytes - before.wire_bytes,
            posting_ns: now.posting_ns - before.posting_ns,
            looking_ns: now.looking_ns - before.looking_ns,
            rising_ns: now.rising_ns - before.rising_ns,
        }
    }

    /// One pass of the polling thread.
    pub(super) fn step(&mut self, at: u64) -> Result<Next, Broken> {
        self.network.wait_until(self.node, at);
        let free = self.free_ns();
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
        // In the model the lock is free at the end of a step.
        let free = end - (self.free_ns() - free);
        let handing_over = match self.lock {
            Lock::OverPosts => self.hand_over_lock(at, free)?,
            Lock::BeforePosts | Lock::Free => 0,
        };
        let end = self.network.spend(self.node, handing_over);
        if self.lock != Lock::Free {
            self.go_while_free(free + handing_over, end)?;
        }
        self.busy_until = end;
        Ok(Next {
            step: Some(end),
            turns: self.turns_after(end),
            kept: self.begin_to_keep(at),
        })
    }

    /// Total time in which the polling thread has not held the lock so far: it polled inactive
    /// subgroups, or posted without the lock.
    fn free_ns(&self) -> u64 {
        let spent = |subgroup: &Arc<SubgroupHandle<TimedFabric>>| subgroup.fabric().spent();
        let (active, inactive) = self.subgroups.split_at(self.active);
        let looking = || {
            inactive
                .iter()
                .map(|subgroup| spent(subgroup).looking_ns)
                .sum()
        };
        match self.lock {
            Lock::Free => 0,
            Lock::OverPosts => looking(),
            Lock::BeforePosts => {
                let posting: u64 = active
                    .iter()
                    .map(|subgroup| spent(subgroup).posting_ns)
                    .sum();
                posting + looking()
            }
        }
    }

    /// After each predicate of a step, an application that waits for the lock sends once. Returns
    /// the time that the handovers took.
    fn hand_over_lock(&mut self, begin: u64, end: u64) -> Result<u64, Broken> {
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
        Ok(handing_over)
    }

    /// Applications send while the lock is free.
    fn go_while_free(&mut self, from: u64, to: u64) -> Result<(), Broken> {
        for which in 0..self.applications.len() {
            loop {
                let application = &self.applications[which];
                let now = application.ready_at.max(from);
                let over = application.is_done() || now >= to;
                if over || self.go(which, now)? == Tried::NoRoom {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Turns of the applications that the next step does not serve.
    fn turns_after(&mut self, end: u64) -> Vec<(u64, usize)> {
        let locks = self.lock != Lock::Free;
        let mut turns = Vec::new();
        for (which, application) in self.applications.iter_mut().enumerate() {
            let is_free = match locks {
                true => !application.is_waiting(),
                false => application.is_waiting() && application.has_room(),
            };
            if is_free && !application.is_done() && !application.has_turn {
                application.has_turn = true;
                turns.push((end.max(application.ready_at), which));
            }
        }
        turns
    }

    fn go(&mut self, which: usize, at: u64) -> Result<Tried, Broken> {
        let application = &mut self.applications[which];
        let tried = application.try_send(at)?;
        if tried == Tried::Sent {
            let subgroup = application.subgroup();
            self.engine
                .with_sink(|sink| sink.subgroups[subgroup].claimed.push_back(at));
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
        if self.lock != Lock::Free && self.busy_until > at {
            // The step serves it, or it sends when the lock is free.
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

    /// There is new work since `at`. Returns when the step begins that finds it, if the polling
    /// thread is idle.
    pub(super) fn wake(&mut self, at: u64) -> Option<u64> {
        let Idle { since, period } = self.idle.take()?;
        let passes = at.saturating_sub(since).div_ceil(period);
        let begin = since + passes * period;
        self.idle_ns += begin - since;
        Some(begin)
    }

    fn begin_to_keep(&mut self, now: u64) -> Vec<(u64, Keeper)> {
        let begun = self.engine.with_sink(|sink| sink.storage.begin(now));
        begun.unwrap_or_default()
    }

    /// A thread has kept messages.
    pub(super) fn kept(&mut self, keeper: Keeper, at: u64) -> Next {
        let kept = self.engine.with_sink(|sink| sink.storage.end(keeper, at));
        let Kept {
            released,
            persisted,
        } = kept.unwrap_or_default();
        let has_news = !persisted.is_empty() || !released.is_empty();
        drop(released);
        for (subgroup, position) in persisted {
            self.subgroups[subgroup].set_persisted(position);
        }
        Next {
            step: has_news.then(|| self.wake(at)).flatten(),
            turns: Vec::new(),
            kept: self.begin_to_keep(at),
        }
    }

    /// Whether its messages are delivered in total order.
    pub(super) fn is_ordered(&self) -> bool {
        self.class == DeliveryClass::Ordered
    }

    pub(super) fn position(&self, subgroup: usize) -> u64 {
        self.engine
            .position(SubgroupId(subgroup as u32))
            .map_or(0, |position| position.delivered_num)
    }
}
