//! The plan of a life, drawn from a seed.

use spindle_dds_core::limits::{REQUEST_LEN_MAX, SUBGROUPS_MAX};
use spindle_dds_core::membership::{Endpoint, MemberId, RequestId};
use spindle_dds_core::{
    Bounds, DeliveryClass, EngineConfig, RingSpec, RingStretch, SubgroupId, TopicKey,
};
use spindle_dds_transport::sim::{Rng, SimOptions};

use super::logged::LoggedPlan;
use super::member::Blunder;
use super::storage;

/// A life before it begins. Change it to narrow a seed down.
#[derive(Debug, Clone)]
pub struct LifePlan {
    /// The seed it was drawn from; seeds the life too.
    pub seed: u64,
    /// Members of the first views.
    pub members: usize,
    /// Most members in the whole life.
    pub members_max: usize,
    /// Hosts that the members are spread over.
    pub hosts: usize,
    /// Subgroups that endpoints are drawn from.
    pub subgroups: usize,
    /// Switches of all engines.
    pub config: EngineConfig,
    /// A mistake of the drivers.
    pub blunder: Option<Blunder>,
    /// The network.
    pub network: SimOptions,
    /// Chance at each turn that an application acts.
    pub app_chance: f64,
    /// Chance that a delivered message is held for a while.
    pub hold_chance: f64,
    /// Longest time that a message or a claim is held, in turns.
    pub hold_turns: usize,
    /// Messages that each member commits in its life.
    pub messages: usize,
    /// Turns with faults and requests.
    pub turns: usize,
    /// Turns after these in which applications go on sending; afterwards all must come to rest.
    pub calm: usize,
    /// Chance at each turn that a process crashes.
    pub crashes: f64,
    /// Chance at each turn that a process is paused.
    pub pauses: f64,
    /// Chance at each turn that what a member sends to another one is held up for a while: a
    /// one-way cut, after which everything lands late.
    pub cuts: f64,
    /// Chance that a thread is preempted in the middle of a commit.
    pub preempted: f64,
    /// Chance at each turn that two hosts lose each other.
    pub divisions: f64,
    /// Whether a part of a divided group without a majority goes on.
    pub availability: bool,
    /// Chance that a member that was expelled, or lost its majority, comes back as a new one.
    pub returns: f64,
    /// Chance at each turn that a newcomer asks to join.
    pub joins: f64,
    /// Chance at each turn that a member asks to leave.
    pub leaves: f64,
    /// Chance at each turn that a member changes its endpoints.
    pub updates: f64,
    /// Chance that a request is one that no view can fulfil.
    pub invalid_requests: f64,
    /// Chance that an update of endpoints changes notes, too.
    pub notes: f64,
    /// Chance that a member is not ready for the messages of a new epoch for a while.
    pub unready: f64,
    /// Chance that an application waits until all members have its message.
    pub ack_waits: f64,
    /// Chance that a message is as large as its ring takes.
    pub large: f64,
    /// Chance that a message is shorter than its claim.
    pub partial: f64,
    /// Chance that a member reads nothing: it only writes.
    pub mute: f64,
    /// Chance that an endpoint has a storage level: what its writer sends is kept, and its reader
    /// gets what was kept.
    pub durable: f64,
    /// The logs of its topics, if they have any.
    pub logged: Option<LoggedPlan>,
    /// Words that are forged in the rows of hostile members (every other one), in all. Hostile
    /// members crash at the end of the turns with faults.
    pub hostile: usize,
    /// Chance that a member takes the whole time allowed to prepare a view, as it waits for a
    /// member that never comes.
    pub slow: f64,
    /// Chance that a member lacks something for a view when it prepares it, and has it later.
    pub lacking: f64,
    /// Chance that a member, or a newcomer, lacks something for a request for ever.
    pub lacking_always: f64,
    /// How many times likelier faults are at a member that is changing its view.
    pub fault_bias: f64,
    /// Members that must be up for one of them to crash at random.
    pub crowd: usize,
    /// Heartbeat timeout in turns.
    pub limit: u64,
    /// The one property that is judged, by its id, if not all are: shows whether the checker of
    /// just this property notices a bug.
    pub only: Option<String>,
    /// Actions at certain turns, besides those at random.
    pub script: Vec<(usize, Action)>,
    /// The group that the domain had before.
    pub previous: PreviousGroup,
}

/// What a group leaves behind in its domain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PreviousGroup {
    /// Number of members that have been in the domain; their ids are not used again.
    pub members: usize,
    /// Decisions in the record of the founder's host: views and digests.
    pub decisions: Vec<(u64, u64)>,
}

/// Something that happens to a member, which is named by the order of its creation; the founder is
/// 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Its process crashes.
    Crash(usize),
    /// Its process is paused for this many turns.
    Pause(usize, u64),
    /// It asks to leave.
    Leave(usize),
    /// It changes its endpoints.
    Update(usize),
    /// A newcomer asks to join.
    Join,
}

impl LifePlan {
    /// A life of `members` members without random faults and requests: for scripts.
    pub fn quiet(seed: u64, members: usize, messages: usize) -> Self {
        Self {
            members,
            members_max: members,
            hosts: 1,
            config: EngineConfig::SPINDLE,
            app_chance: 0.3,
            messages,
            turns: 1500,
            crashes: 0.0,
            pauses: 0.0,
            cuts: 0.0,
            preempted: 0.0,
            divisions: 0.0,
            availability: false,
            returns: 0.0,
            joins: 0.0,
            leaves: 0.0,
            updates: 0.0,
            invalid_requests: 0.0,
            notes: 0.0,
            unready: 0.0,
            ack_waits: 0.0,
            large: 0.0,
            partial: 0.0,
            mute: 0.0,
            durable: 0.0,
            logged: None,
            hostile: 0,
            slow: 0.0,
            lacking: 0.0,
            lacking_always: 0.0,
            fault_bias: 1.0,
            ..Self::draw(seed)
        }
    }
}

impl LifePlan {
    /// Everything at random: swarm testing.
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x11fe_11fe);
        // Draws that were added later have a generator of their own, so that old seeds keep their
        // lives.
        let mut more = Rng::new(seed ^ 0x0dd5_0dd5);
        let among = |rng: &mut Rng, values: &[f64]| values[rng.below(values.len())];
        let mut network = SimOptions::swarm(&mut rng);
        // Stalls stay below the heartbeat timeout; `cuts` and `pauses` go beyond it.
        network.stall_steps_max = network.stall_steps_max.min(200);
        let hosts = if rng.chance(0.75) {
            1
        } else {
            2 + rng.below(2)
        };
        let mut config = EngineConfig::SPINDLE;
        if rng.chance(0.2) {
            config.send_batching = rng.chance(0.5);
            config.receive_batching = rng.chance(0.5);
            config.delivery_batching = rng.chance(0.5);
            // A switch that is gone: the same seed goes on being the same life.
            rng.chance(0.5);
        }
        let mut plan = Self {
            seed,
            members: 1 + rng.below(4),
            members_max: 4 + rng.below(4),
            hosts,
            subgroups: 1 + rng.below(3),
            config,
            blunder: None,
            network,
            app_chance: among(&mut rng, &[0.05, 0.2, 0.6]),
            hold_chance: among(&mut rng, &[0.0, 0.1, 0.5]),
            hold_turns: [10, 100, 1000][rng.below(3)],
            messages: [5, 30, 100][rng.below(3)],
            turns: [1000, 4000, 8000][rng.below(3)],
            calm: 0,
            crashes: among(&mut rng, &[0.0, 0.0002, 0.001]),
            pauses: among(&mut rng, &[0.0, 0.0, 0.0005]),
            cuts: 0.0,
            preempted: 0.0,
            divisions: if hosts > 1 {
                among(&mut rng, &[0.0, 0.0005])
            } else {
                0.0
            },
            availability: hosts > 1 && more.chance(0.3),
            returns: 0.0,
            joins: among(&mut rng, &[0.0, 0.001, 0.01]),
            leaves: among(&mut rng, &[0.0, 0.0005, 0.002]),
            updates: among(&mut rng, &[0.0, 0.002, 0.02]),
            invalid_requests: among(&mut more, &[0.0, 0.0, 0.1, 0.5]),
            notes: 0.0,
            unready: among(&mut more, &[0.0, 0.0, 0.3, 0.9]),
            ack_waits: among(&mut more, &[0.0, 0.2, 1.0]),
            large: 0.0,
            partial: 0.0,
            mute: 0.0,
            durable: 0.0,
            logged: None,
            hostile: 0,
            slow: 0.0,
            lacking: 0.0,
            lacking_always: 0.0,
            fault_bias: among(&mut rng, &[1.0, 20.0, 100.0]),
            crowd: 1,
            limit: 6_000,
            only: None,
            script: Vec::new(),
            previous: PreviousGroup::default(),
        };
        plan.config.summary_polling = more.chance(0.8);
        plan.config.bounded_deliveries = more.chance(0.8);
        plan.slow = among(&mut more, &[0.0, 0.0, 0.0, 0.2]);
        plan.config.bounds = draw_bounds(&mut more);
        plan.config.polls_until_cold = 3;
        plan.cuts = among(&mut more, &[0.0, 0.0, 0.0, 0.0005]);
        plan.preempted = among(&mut more, &[0.0, 0.3]);
        plan.config.batched_upcalls = more.chance(0.8);
        plan.large = among(&mut more, &[0.0, 0.1, 0.5]);
        plan.partial = among(&mut more, &[0.0, 0.3]);
        plan.mute = among(&mut more, &[0.0, 0.0, 0.3]);
        plan.lacking = among(&mut more, &[0.0, 0.0, 0.1, 0.4]);
        plan.lacking_always = among(&mut more, &[0.0, 0.0, 0.05, 0.3]);
        if plan.slow > 0.0 {
            // Many slow preparations would be made one after the other.
            plan.lacking_always = 0.0;
        }
        plan.config.ring_stretch = draw_ring_stretch(&mut more);
        plan.durable = among(&mut more, &[0.0, 0.0, 0.6]);
        if plan.availability {
            // Groups that go on apart have histories of their own.
            plan.durable = 0.0;
        }
        plan
    }

    /// A life with hostile members, in whose rows this many words are forged.
    pub fn hostile(seed: u64, writes: usize) -> Self {
        let plan = Self::draw(seed);
        Self {
            hostile: writes,
            durable: 0.0,
            hosts: 1,
            divisions: 0.0,
            availability: false,
            members: plan.members.max(3),
            members_max: 10,
            joins: 0.01,
            ..plan
        }
    }

    /// The id of the participant that was created after this many others.
    pub(super) fn id(&self, born: usize) -> MemberId {
        MemberId((self.previous.members + born) as u128 + 1)
    }

    /// Whether storage or logs are told of what is delivered.
    pub(super) fn keeps(&self) -> bool {
        self.durable > 0.0 || self.logged.is_some()
    }

    /// Whether a member reads what it is delivered.
    pub(super) fn reads(&self, id: MemberId) -> bool {
        !Rng::new(self.seed ^ (id.0 as u64) << 8).chance(self.mute)
    }

    /// Why a participant can never serve a request, if it cannot.
    pub(super) fn always_lacks(&self, id: MemberId, request: RequestId) -> Option<String> {
        let request = match request {
            RequestId::Update { member, number } => member.0 as u64 ^ number << 20,
            RequestId::Join(id) => !(id.0 as u64),
        };
        let mut rng = Rng::new(self.seed ^ (id.0 as u64) << 50 ^ request << 4);
        rng.chance(self.lacking_always)
            .then(|| format!("lacking: {} has no room, and never will", id.0))
    }

    /// Whether words of a member's row are forged.
    pub(super) fn is_hostile(&self, id: MemberId) -> bool {
        self.hostile > 0 && id.0.is_multiple_of(2)
    }

    /// Whether correct members may be suspected.
    pub(super) fn may_suspect_wrongly(&self) -> bool {
        // A heartbeat is due each third of the timeout: a member that is paused for half of it is
        // in time.
        let long = |turns: u64| turns > self.limit / 2;
        let pauses =
            |(_, action): &(usize, Action)| matches!(*action, Action::Pause(_, it) if long(it));
        self.pauses > 0.0
            || self.cuts > 0.0
            || self.divisions > 0.0
            || self.script.iter().any(pauses)
    }

    /// An endpoint that no view can have, or only some.
    pub(super) fn invalid_endpoint(&self, rng: &mut Rng) -> Endpoint {
        let mut endpoint = self.endpoint(rng);
        match rng.below(4) {
            0 => endpoint.subgroup = SubgroupId(SUBGROUPS_MAX as u32 + rng.below(9) as u32),
            1 => {
                let (messages, bytes) = (3, 1000);
                endpoint.ring = Some((DeliveryClass::Ordered, RingSpec { messages, bytes }));
            }
            // A topic that headers cannot tell from the other one of its subgroup.
            2 => endpoint.topic = TopicKey(endpoint.topic.0 ^ 1 << 100),
            _ => endpoint.info = vec![8; REQUEST_LEN_MAX],
        }
        endpoint
    }

    pub(super) fn endpoint(&self, rng: &mut Rng) -> Endpoint {
        let subgroup = rng.below(self.subgroups) as u32;
        let ring = RingSpec::at_least(2 << rng.below(4), 128 << rng.below(4));
        let kind = [
            None,
            Some((DeliveryClass::Ordered, ring)),
            Some((DeliveryClass::Ordered, ring)),
            Some((DeliveryClass::Unordered, ring)),
        ];
        let mut endpoint = Endpoint {
            subgroup: SubgroupId(subgroup),
            topic: TopicKey::of_name(&format!("topic {subgroup}")),
            ring: kind[rng.below(kind.len())],
            info: vec![7; rng.below(30)],
            log: None,
        };
        if self.durable > 0.0 {
            storage::draw(&mut endpoint, rng, self.durable);
        }
        endpoint
    }
}

/// Rings of lives hold little: in most lives, an empty ring is restarted after a few messages.
fn draw_ring_stretch(rng: &mut Rng) -> RingStretch {
    let (messages, bytes) = [(1, 16), (2, 1 << 10), (5, 64), (64, 64 << 10)][rng.below(4)];
    RingStretch { messages, bytes }
}

/// Rings of lives hold little: most bounds are such that something is left behind them.
fn draw_bounds(rng: &mut Rng) -> Bounds {
    let (step, per_sender, batch) = [(1, 0, 1), (1, 0, 4), (2, 1, 9), (32, 4, 128)][rng.below(4)];
    Bounds {
        step,
        per_sender,
        batch,
    }
}
