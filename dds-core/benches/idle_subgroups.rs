//! The cost of idle subgroups beside a busy one: two engines that share memory, stepped in turn by
//! one thread. Prints one JSON line for each number of idle subgroups, with and without summary
//! polling: the cost of a step without progress. The fabric is the simulator's, which only steps
//! with progress use.
//!
//! `cargo bench -p spindle-dds-core --bench idle_subgroups`. In instructions, of the four steps
//! per message: `valgrind --tool=callgrind --toggle-collect='*stepped*'
//! <binary> 50 on 1000`

// The crate under test has no clock; the bench needs one.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

#[path = "../tests/view/mod.rs"]
mod view;

use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_dds_core::membership::CONTROL_ROW_LEN;
use spindle_dds_core::{
    CommitMeta, Delivery, DeliveryClass, Engine, EngineConfig, EngineEvent, MessageKind, RingSpec,
    SegmentLayout, SenderSpec, Sink, SubgroupHandle, SubgroupId, SubgroupSpec, TopicKey,
};
use spindle_dds_transport::sim::{NodeId, SimFabric, SimNetwork, SimOptions};
use spindle_dds_transport::{FABRIC_AREA, Rank};

struct Nothing;

impl Sink<SimFabric> for Nothing {
    fn deliver(&mut self, _: &Delivery<'_, SimFabric>) {}

    fn batch_end(&mut self) {}

    fn event(&mut self, event: EngineEvent) {
        if let EngineEvent::Stopped(reason) = event {
            panic!("{reason}");
        }
    }

    fn is_reading(&self, _: SubgroupId) -> bool {
        true
    }
}

type Node = Engine<SimFabric, Nothing>;

/// A subgroup of two members; the first one sends.
fn subgroup(subgroup: u32) -> SubgroupSpec {
    let ring = Some(RingSpec {
        messages: 64,
        bytes: 1 << 14,
    });
    SubgroupSpec {
        subgroup: SubgroupId(subgroup),
        epoch: 1,
        base: 0,
        members: vec![Rank(0), Rank(1)],
        senders: vec![SenderSpec {
            rank: Rank(0),
            rings: [ring, None],
        }],
        topics: vec![TopicKey::of_name("bench")],
        is_logged: false,
    }
}

/// Two members that share memory, both in all subgroups.
fn pair(idle: u32, config: EngineConfig) -> (SimNetwork, [Node; 2]) {
    let options = SimOptions {
        shared_pairs: 1.0,
        ..SimOptions::default()
    };
    let (network, controls) = SimNetwork::group(1, &[CONTROL_ROW_LEN; 2], options);
    let specs: Vec<_> = (0..=idle).map(subgroup).collect();
    let segment_of = |spec: &SubgroupSpec| {
        let lens = SegmentLayout::new(spec).expect("a subgroup").row_lens();
        let ends: Vec<_> = [0, 1].map(NodeId).into_iter().zip(lens).collect();
        network.open(&ends)
    };
    let segments: Vec<_> = specs.iter().map(segment_of).collect();
    let view = view::view_of(2, specs);
    let engine = |(control, rank): (SimFabric, u16)| {
        let own = network.open(&[(NodeId(rank.into()), FABRIC_AREA)]);
        let engine = Engine::new(network.fabric(own, Rank(0)), config, Nothing);
        let mine = segments.iter().map(|it| network.fabric(*it, Rank(rank)));
        view::begin_view(&engine, &view, control, mine);
        engine
    };
    let nodes: Vec<_> = controls.into_iter().zip(0..).map(engine).collect();
    for _ in 0..2 {
        for node in &nodes {
            node.step(0);
        }
        network.settle();
    }
    let Ok(nodes) = nodes.try_into() else {
        unreachable!("two")
    };
    (network, nodes)
}

/// Sends a message: one step of its receiver, and one of its sender for the acknowledgement.
fn turn(network: &SimNetwork, nodes: &[Node], subgroup: &Arc<SubgroupHandle<SimFabric>>) {
    let mut claim = subgroup.claim(DeliveryClass::Ordered, 64).expect("room");
    let meta = CommitMeta {
        kind: MessageKind::Data,
        flags: 0,
        encapsulation: 1,
        writer: 0,
        timestamp: 0,
        topic: TopicKey::of_name("bench").low(),
        key_hash: [0; 16],
        skipped: 0,
    };
    nodes[0].send(&mut claim, 64, &meta).expect("a commit");
    for node in [1, 0] {
        network.settle();
        assert!(stepped(&nodes[node]));
    }
    network.settle();
}

/// The step that is measured. Returns whether it made progress.
#[inline(never)]
fn stepped(node: &Node) -> bool {
    node.step(0).expect("a step").progress
}

fn run(idle: u32, rests: bool, count: u32) -> f64 {
    let config = EngineConfig {
        summary_polling: rests,
        ..EngineConfig::SPINDLE
    };
    let (network, nodes) = pair(idle, config);
    // The last one is busy.
    let subgroup = nodes[0]
        .handle()
        .subgroup(SubgroupId(idle))
        .expect("a subgroup");
    let all = |step: &dyn Fn(&Node)| nodes.iter().for_each(step);
    for _ in 0..100 {
        all(&|node| {
            node.step(0);
        });
    }
    let mut spent = Duration::ZERO;
    for _ in 0..count {
        turn(&network, &nodes, &subgroup);
        // Two steps with nothing to do in the busy subgroup either.
        let begin = Instant::now();
        all(&|node| {
            stepped(node);
        });
        spent += begin.elapsed();
    }
    spent.as_nanos() as f64 / f64::from(2 * count)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given: Vec<u32> = arguments.iter().filter_map(|it| it.parse().ok()).collect();
    if let [idle, count] = given[..] {
        let rests = arguments.iter().any(|it| it == "on");
        run(idle, rests, count);
        return;
    }
    for idle in [0, 10, 50] {
        for rests in [true, false] {
            let mut ns: Vec<f64> = (0..5).map(|_| run(idle, rests, 500)).collect();
            ns.sort_by(f64::total_cmp);
            println!(
                "{{\"idle_subgroups\":{idle},\"summary_polling\":{rests},\"ns_per_idle_step\":{:.0}}}",
                ns[2]
            );
        }
    }
}
