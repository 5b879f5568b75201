//! A run of the model.

use serde::Serialize;
use spindle_dds_core::{
    DeliveryClass, EngineConfig, RingSpec, SWITCHES, SenderSpec, SubgroupId, SubgroupSpec, TopicKey,
};
use spindle_dds_transport::Rank;

/// Bytes that stand in for a message.
pub(super) const STAND_IN: u32 = 16;

/// Most messages of a sender in an experiment.
pub(crate) const MESSAGES_MAX: u32 = 20_000;

/// How many members send in a subgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Senders {
    /// Each of them.
    All,
    /// The first half.
    Half,
    /// The first.
    One,
}

impl Senders {
    /// The number of senders among `members`.
    pub(crate) fn of(self, members: usize) -> usize {
        match self {
            Self::All => members,
            Self::Half => (members / 2).max(1),
            Self::One => 1,
        }
    }
}

/// What is promised of a message, as in §IV-F: each level promises what those before it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    /// It is delivered on receipt.
    Unordered,
    /// It is delivered when stable, in one order.
    Atomic,
    /// Each member keeps it in memory.
    Volatile,
    /// Each member appends it to a log on its disk.
    Logged,
}

/// How messages are pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Slots {
    /// The paper's slots of the size of the largest message, which contain their counters: one
    /// write for the slots, one for the guard.
    Fixed,
    /// Our rings: one write for the payload, one for the headers, one for the guard.
    Rings,
}

/// The lock that an application needs to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Lock {
    /// The paper's lock, which the polling thread holds during a predicate and its posts.
    OverPosts,
    /// The paper's lock, which the polling thread releases before it posts (§III-C).
    BeforePosts,
    /// None: our claims and commits.
    Free,
}

/// Which senders are delayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Delayed {
    /// The last one.
    One,
    /// The last half.
    Half,
}

/// Senders that wait after each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Delay {
    /// The delayed senders.
    pub(crate) senders: Delayed,
    /// The delay; `None` for ever.
    pub(crate) ns: Option<u64>,
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Experiment {
    /// Members, all of them in all subgroups.
    pub(crate) members: usize,
    /// Members that send.
    pub(crate) senders: Senders,
    /// Bytes of a message.
    pub(crate) size: u32,
    /// Messages of a sender that may be in flight.
    pub(crate) window: u32,
    /// Messages that each sender sends in each active subgroup.
    pub(crate) messages: u32,
    /// Subgroups.
    pub(crate) subgroups: usize,
    /// The number of subgroups in which messages are sent, each by its own thread.
    pub(crate) active: usize,
    /// Switches of the engine.
    #[serde(serialize_with = "switches")]
    pub(crate) config: EngineConfig,
    /// How messages are pushed.
    pub(crate) slots: Slots,
    /// The lock that applications need.
    pub(crate) lock: Lock,
    /// The delayed senders, if any.
    pub(crate) delay: Option<Delay>,
    /// Duration of an upcall, for each message or for each batch.
    pub(crate) upcall_ns: u64,
    /// Messages are copied into the ring, and out of it.
    pub(crate) copies: bool,
    /// What is promised of a message.
    pub(crate) level: Level,
}

impl Experiment {
    /// The paper's usual experiment: one subgroup, all members send messages of 10 KB, a window of
    /// 100.
    pub(crate) const fn new(
        members: usize,
        config: EngineConfig,
        slots: Slots,
        lock: Lock,
    ) -> Self {
        Self {
            members,
            senders: Senders::All,
            size: 10_240,
            window: 100,
            messages: 1000,
            subgroups: 1,
            active: 1,
            config,
            slots,
            lock,
            delay: None,
            upcall_ns: 0,
            copies: false,
            level: Level::Atomic,
        }
    }

    pub(super) fn class(&self) -> DeliveryClass {
        match self.level {
            Level::Unordered => DeliveryClass::Unordered,
            Level::Atomic | Level::Volatile | Level::Logged => DeliveryClass::Ordered,
        }
    }

    pub(super) fn ring_spec(&self) -> RingSpec {
        RingSpec::at_least(
            self.window,
            u64::from(self.window.next_power_of_two() * STAND_IN),
        )
    }

    pub(super) fn subgroup(&self, subgroup: usize) -> SubgroupSpec {
        let places = || (0..self.members as u16).map(Rank);
        let mut rings = [None; 2];
        rings[self.class().index()] = Some(self.ring_spec());
        let senders = places().take(self.senders.of(self.members));
        SubgroupSpec {
            subgroup: SubgroupId(subgroup as u32),
            epoch: 1,
            base: 0,
            members: places().collect(),
            senders: senders.map(|rank| SenderSpec { rank, rings }).collect(),
            topics: vec![TopicKey::of_name("paper")],
            is_logged: self.level == Level::Logged,
        }
    }

    /// How long a sender waits after each message; `None` if it never sends.
    pub(super) fn wait_ns(&self, sender: usize) -> Option<u64> {
        let senders = self.senders.of(self.members);
        match self.delay {
            Some(delay) if sender >= senders - delay.count(senders) => delay.ns,
            _ => Some(0),
        }
    }

    /// Deliveries in a subgroup after which the run is over: with delays, the messages of the
    /// senders that are not delayed.
    pub(super) fn deliveries(&self) -> u64 {
        let senders = self.senders.of(self.members);
        let delayed = self.delay.map_or(0, |delay| delay.count(senders));
        (senders - delayed) as u64 * u64::from(self.messages)
    }
}

impl Delay {
    fn count(self, senders: usize) -> usize {
        match self.senders {
            Delayed::One => 1,
            Delayed::Half => senders / 2,
        }
    }
}

/// The switches that are on, by name.
fn switches<S: serde::Serializer>(config: &EngineConfig, to: S) -> Result<S::Ok, S::Error> {
    let on = SWITCHES.iter().filter(|switch| switch.is_on(config));
    to.collect_seq(on.map(|switch| switch.name))
}
