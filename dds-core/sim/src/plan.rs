//! What a seed stands for: everything about a run that is drawn before it starts.

use spindle_dds_core::{EngineConfig, RingSpec, SenderSpec, SubgroupSpec, TopicKey, ViewSpec};
use spindle_dds_transport::Rank;
use spindle_dds_transport::sim::{Rng, SimOptions};

use crate::node::Blunder;

/// A run before it starts. Change it to plant a bug or to narrow a seed down.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The seed it was drawn from; seeds the run too.
    pub seed: u64,
    /// Members, subgroups, senders, rings.
    pub view: ViewSpec,
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
    /// A mistake of the driver, for the harness to find.
    pub blunder: Option<Blunder>,
}

/// What is sent in a subgroup.
#[derive(Debug, Clone)]
pub struct GroupPlan {
    /// By sender and ring: how many messages.
    pub messages: Vec<[usize; 2]>,
    /// Longest message in bytes.
    pub len_max: u32,
}

impl Plan {
    /// Four members by default, everything else by chance: swarm testing.
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x5317_d1e5);
        let members = if rng.chance(0.7) { 4 } else { 1 + rng.below(6) };
        let subgroups = 1 + rng.below(3);
        let mut view = ViewSpec {
            view_id: seed,
            members,
            subgroups: Vec::new(),
        };
        let mut groups = Vec::new();
        for at in 0..subgroups {
            let (spec, plan) = draw_group(&mut rng, members, at);
            view.subgroups.push(spec);
            groups.push(plan);
        }
        let config = draw_config(&mut rng);
        let leaving = if rng.chance(0.4) { 0.5 } else { 0.0 };
        let leavers = (0..members as u16)
            .map(Rank)
            .filter(|_| rng.chance(leaving))
            .collect();
        Self {
            seed,
            view,
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
            blunder: None,
        }
    }

    /// Everything that is to be sent.
    pub fn total(&self) -> usize {
        self.groups
            .iter()
            .flat_map(|group| group.messages.iter().flatten())
            .sum()
    }
}

fn draw_group(rng: &mut Rng, members: usize, at: usize) -> (SubgroupSpec, GroupPlan) {
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
    let ring = RingSpec::at_least(2 << rng.below(5), 128 << rng.below(5));
    let unordered = rng.chance(0.3);
    let mut senders = Vec::new();
    let mut messages = Vec::new();
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
        messages.push([count(rng, &rings[0]), count(rng, &rings[1])]);
        senders.push(SenderSpec { rank, rings });
    }
    let topics = vec![TopicKey::of_name(&format!("topic {at}"))];
    let spec = SubgroupSpec {
        members: ranks,
        senders,
        topics,
    };
    (
        spec,
        GroupPlan {
            messages,
            len_max: (ring.bytes / 2) as u32,
        },
    )
}

fn draw_config(rng: &mut Rng) -> EngineConfig {
    let mut config = EngineConfig::SPINDLE;
    if rng.chance(0.3) {
        config.send_batching = rng.chance(0.5);
        config.receive_batching = rng.chance(0.5);
        config.delivery_batching = rng.chance(0.5);
        config.late_pushes = rng.chance(0.5);
        config.batched_upcalls = rng.chance(0.5);
    }
    config
}
