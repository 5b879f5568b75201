//! What a seed stands for: everything about a run that is drawn before it starts.

use spindle_dds_core::{
    Bounds, EngineConfig, RingSpec, SenderSpec, SubgroupId, SubgroupSpec, TopicKey,
};
use spindle_dds_transport::Rank;
use spindle_dds_transport::sim::{Rng, SimOptions};

use crate::node::Blunder;

/// Of rings: all that there is memory for, and less.
const RING_BYTES: [u64; 5] = [128, 192, 512, 1280, 2048];

/// A run before it starts. Change it to plant a bug or to narrow a seed down.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The seed it was drawn from; seeds the run too.
    pub seed: u64,
    /// How many members there are in the beginning.
    pub members: usize,
    /// By subgroup.
    pub groups: Vec<GroupPlan>,
    /// Switches of all engines.
    pub config: EngineConfig,
    /// The network.
    pub network: SimOptions,
    /// Chance at each turn that an application does something.
    pub app_chance: f64,
    /// Chance that a committed message is published by its own thread.
    pub self_publish: f64,
    /// Chance that a delivered message is held for a while.
    pub hold_chance: f64,
    /// Longest time a message or a claim is held, in turns.
    pub hold_turns: usize,
    /// Chance that a built message is withdrawn.
    pub withdraw_chance: f64,
    /// Members that leave once they have sent everything.
    pub leavers: Vec<Rank>,
    /// By member: whether it reads, or only writes.
    pub readers: Vec<bool>,
    /// How often lanes are replaced.
    pub changes: usize,
    /// Chance at each turn that it begins.
    pub change_chance: f64,
    /// Chance that somebody does not go on in the next lanes.
    pub expel_chance: f64,
    /// A mistake of the driver, for the harness to find.
    pub blunder: Option<Blunder>,
}

/// Who is in a subgroup, and what is sent there.
#[derive(Debug, Clone)]
pub struct GroupPlan {
    /// Which.
    pub subgroup: SubgroupId,
    /// Its members in the beginning.
    pub members: Vec<Rank>,
    /// Its senders, in the same order.
    pub senders: Vec<SenderPlan>,
    /// Longest message in bytes.
    pub len_max: u32,
}

/// What a member sends in a subgroup.
#[derive(Debug, Clone)]
pub struct SenderPlan {
    /// Who.
    pub rank: Rank,
    /// Its rings.
    pub rings: [Option<RingSpec>; 2],
    /// By ring: how many messages.
    pub messages: [usize; 2],
}

impl GroupPlan {
    /// The lane of those who are present.
    pub fn lane(&self, epoch: u64, base: u64, present: impl Fn(Rank) -> bool) -> SubgroupSpec {
        let members: Vec<Rank> = self
            .members
            .iter()
            .copied()
            .filter(|rank| present(*rank))
            .collect();
        let place = |rank| members.iter().position(|member| *member == rank);
        let sender = |sender: &SenderPlan| {
            Some(SenderSpec {
                rank: Rank(place(sender.rank)? as u16),
                rings: sender.rings,
            })
        };
        SubgroupSpec {
            subgroup: self.subgroup,
            epoch,
            base,
            senders: self.senders.iter().filter_map(sender).collect(),
            members,
            topics: vec![TopicKey::of_name(&format!("topic {}", self.subgroup))],
        }
    }
}

impl Plan {
    /// Four members by default, everything else by chance: swarm testing.
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x5317_d1e5);
        let members = if rng.chance(0.7) { 4 } else { 1 + rng.below(6) };
        let subgroups = 1 + rng.below(3);
        let subgroup = |at: usize| SubgroupId(at as u32);
        let groups = (0..subgroups)
            .map(|at| draw_group(&mut rng, members, subgroup(at)))
            .collect();
        let mut config = draw_config(seed, &mut rng);
        // What came later is drawn apart: seeds of old stay what they are.
        config.variable_lengths = !Rng::new(seed ^ 0x0dd5_0dd5).chance(0.1);
        let leaving = if rng.chance(0.4) { 0.5 } else { 0.0 };
        let leavers = (0..members as u16)
            .map(Rank)
            .filter(|_| rng.chance(leaving))
            .collect();
        Self {
            seed,
            members,
            groups,
            config,
            network: SimOptions::swarm(&mut rng),
            app_chance: [0.02, 0.1, 0.4][rng.below(3)],
            self_publish: [0.0, 0.5, 1.0][rng.below(3)],
            hold_chance: [0.0, 0.1, 0.5][rng.below(3)],
            hold_turns: [10, 100, 1000][rng.below(3)],
            withdraw_chance: [0.0, 0.1, 0.3][rng.below(3)],
            leavers,
            readers: (0..members).map(|_| rng.chance(0.75)).collect(),
            changes: [0, 1, 4][rng.below(3)],
            change_chance: [0.0005, 0.005, 0.05][rng.below(3)],
            expel_chance: [0.0, 0.5, 0.9][rng.below(3)],
            blunder: None,
        }
    }

    /// Everything that is to be sent.
    pub fn total(&self) -> usize {
        self.groups
            .iter()
            .flat_map(|group| group.senders.iter().flat_map(|sender| sender.messages))
            .sum()
    }
}

fn draw_group(rng: &mut Rng, members: usize, subgroup: SubgroupId) -> GroupPlan {
    let everyone = rng.chance(0.6);
    let mut ranks: Vec<Rank> = (0..members as u16)
        .map(Rank)
        .filter(|_| everyone || rng.chance(0.6))
        .collect();
    if ranks.is_empty() {
        ranks.push(Rank(rng.below(members) as u16));
    }
    let sending = [0.4, 1.0][rng.below(2)];
    let most = [5, 40, 120][rng.below(3)];
    let ring = RingSpec::at_least(2 << rng.below(5), RING_BYTES[rng.below(5)]);
    let unordered = rng.chance(0.3);
    let mut senders = Vec::new();
    for &rank in &ranks {
        if !rng.chance(sending) {
            continue;
        }
        let rings = [
            (!unordered || rng.chance(0.7)).then_some(ring),
            unordered.then_some(ring),
        ];
        // Silent senders are the ones that nulls are for.
        let count = |rng: &mut Rng, ring: &Option<RingSpec>| match ring {
            Some(_) if rng.chance(0.8) => 1 + rng.below(most),
            _ => 0,
        };
        let messages = [count(rng, &rings[0]), count(rng, &rings[1])];
        senders.push(SenderPlan {
            rank,
            rings,
            messages,
        });
    }
    GroupPlan {
        subgroup,
        members: ranks,
        senders,
        len_max: (ring.memory() / 2) as u32,
    }
}

fn draw_config(seed: u64, rng: &mut Rng) -> EngineConfig {
    let mut config = EngineConfig::SPINDLE;
    if rng.chance(0.3) {
        config.send_batching = rng.chance(0.5);
        config.receive_batching = rng.chance(0.5);
        config.delivery_batching = rng.chance(0.5);
        config.late_pushes = rng.chance(0.5);
        config.batched_upcalls = rng.chance(0.5);
    }
    // Drawn apart, as it came later: seeds of old stay what they are.
    config.bounded_deliveries = Rng::new(seed ^ 0xb0de_de11).chance(0.8);
    config.summary_polling = Rng::new(seed ^ 0x2e57_2e57).chance(0.8);
    config.bounds = draw_bounds(&mut Rng::new(seed ^ 0xba7c_ba7c));
    config
}

/// Rings of runs hold little: most bounds are such that something is left behind them.
pub(crate) fn draw_bounds(rng: &mut Rng) -> Bounds {
    let (step, per_sender, batch) = [(1, 0, 1), (1, 0, 4), (2, 1, 9), (32, 4, 128)][rng.below(4)];
    Bounds {
        step,
        per_sender,
        batch,
    }
}
