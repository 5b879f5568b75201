//! Instructions of a message from one engine to another over shared memory, from the
//! sender's claim to the receiver's upcall. Both engines are in this process, and stepped
//! by the one thread that is counted.
//!
//! `.ci/instructions` runs it and compares; see CONTRIBUTING.md.

// What the macros make of it.
#![allow(missing_docs, unused_qualifications)]

#[path = "../../../dds-core/tests/stations/mod.rs"]
mod stations;

use std::hint::black_box;
use std::sync::Arc;

use gungraun::prelude::*;
use spindle_dds_core::{
    CommitMeta, Delivery, DeliveryClass, Engine, EngineEvent, MessageKind, RingSpec, SenderSpec,
    Sink, SubgroupHandle, SubgroupId, SubgroupSpec, TopicKey,
};
use spindle_dds_transport::Rank;
use spindle_dds_transport::hybrid::{HybridSegment, Station};

const SUBGROUP: SubgroupId = SubgroupId(0);
/// Messages of a batch.
const BATCH: usize = 64;
/// Of which a step delivers so many.
const A_STEP: usize = 32;
/// More rounds than the ring has messages.
const WARM_UP: usize = 40;
/// More steps than it takes until an epoch is hardly looked at any more.
const LOOKS_IN_VAIN: usize = 2000;

const META: CommitMeta = CommitMeta {
    kind: MessageKind::Data,
    flags: 0,
    encapsulation: 1,
    writer: 0,
    timestamp: 0,
    topic: 7,
    key_hash: [0; 16],
    skipped: 0,
};

/// Touches the first and the last byte of each message.
struct Touch {
    reading: bool,
}

impl Sink<HybridSegment> for Touch {
    fn deliver(&mut self, delivery: &Delivery<'_, HybridSegment>) {
        if self.reading {
            let held = delivery.hold();
            let bytes = held.bytes();
            black_box((bytes.first(), bytes.last()));
        }
    }

    fn batch_end(&mut self) {}

    fn event(&mut self, event: EngineEvent) {
        if let EngineEvent::Stopped(reason) = event {
            panic!("{reason}");
        }
    }

    fn is_reading(&self, _: SubgroupId) -> bool {
        self.reading
    }
}

type Node = Engine<HybridSegment, Touch>;

/// A sender and a receiver. Boxed, so that no bench counts the instructions that move them.
struct World {
    sender: Node,
    subgroup: Arc<SubgroupHandle<HybridSegment>>,
    receiver: Node,
    size: u32,
    _stations: Vec<Station>,
}

/// One that is used, or one of those in which nothing happens.
fn subgroup(subgroup: SubgroupId) -> SubgroupSpec {
    let (messages, bytes) = match subgroup {
        SUBGROUP => (1024, 1 << 24),
        _ => (16, 1 << 12),
    };
    SubgroupSpec {
        subgroup,
        epoch: 1,
        base: 0,
        members: vec![Rank(0), Rank(1)],
        senders: vec![SenderSpec {
            rank: Rank(0),
            rings: [Some(RingSpec { messages, bytes }), None],
        }],
        topics: vec![TopicKey::of_name(&format!("bench {}", subgroup.0))],
        is_logged: false,
    }
}

impl World {
    fn new(size: u32) -> Box<Self> {
        Self::with_subgroups(size, 1)
    }

    fn with_subgroups(size: u32, subgroups: u32) -> Box<Self> {
        let subgroups = SUBGROUP.0..SUBGROUP.0 + subgroups;
        let subgroups: Vec<_> = subgroups.map(|it| subgroup(SubgroupId(it))).collect();
        let (stations, nodes) =
            stations::engines(&[0; 2], &subgroups, |rank| Touch { reading: rank > 0 });
        let mut nodes = nodes.into_iter();
        let (Some(sender), Some(receiver)) = (nodes.next(), nodes.next()) else {
            unreachable!("two engines");
        };
        let subgroup = sender.handle().subgroup(SUBGROUP).expect("a subgroup");
        let world = Box::new(Self {
            sender,
            subgroup,
            receiver,
            size,
            _stations: stations,
        });
        for _ in 0..WARM_UP {
            (0..BATCH).for_each(|_| world.publish());
            world.settle();
        }
        world
    }

    #[inline(never)]
    fn publish(&self) {
        let mut claim = self
            .subgroup
            .claim(DeliveryClass::Ordered, self.size)
            .expect("room");
        if let [first, .., last] = claim.bytes() {
            (*first, *last) = (black_box(1), black_box(2));
        }
        let sent = self.sender.send(&mut claim, self.size, &META);
        sent.expect("a commit");
    }

    fn deliver(&self, messages: usize) {
        for _ in 0..messages.div_ceil(A_STEP) {
            assert!(self.receiver.step(0).is_some_and(|step| step.progress));
        }
    }

    fn settle(&self) {
        let step = |node: &Node| node.step(0).is_some_and(|step| step.progress);
        while step(&self.receiver) | step(&self.sender) {}
    }
}

fn with_one(size: u32) -> Box<World> {
    let world = World::new(size);
    world.publish();
    world
}

fn with_batch(size: u32) -> Box<World> {
    let world = World::new(size);
    (0..BATCH).for_each(|_| world.publish());
    world
}

fn with_batch_delivered(size: u32) -> Box<World> {
    let world = with_batch(size);
    world.deliver(BATCH);
    world
}

#[library_benchmark]
#[bench::bytes_8(args = (8), setup = World::new)]
#[bench::bytes_1024(args = (1024), setup = World::new)]
#[bench::bytes_10240(args = (10240), setup = World::new)]
fn publish(world: Box<World>) -> Box<World> {
    world.publish();
    world
}

#[library_benchmark]
#[bench::bytes_128(args = (128), setup = World::new)]
fn publish_64(world: Box<World>) -> Box<World> {
    (0..BATCH).for_each(|_| world.publish());
    world
}

#[library_benchmark]
#[bench::bytes_8(args = (8), setup = with_one)]
#[bench::bytes_1024(args = (1024), setup = with_one)]
#[bench::bytes_10240(args = (10240), setup = with_one)]
fn deliver(world: Box<World>) -> Box<World> {
    world.deliver(1);
    world
}

#[library_benchmark]
#[bench::bytes_128(args = (128), setup = with_batch)]
fn deliver_64(world: Box<World>) -> Box<World> {
    world.deliver(BATCH);
    world
}

// The sender's own step after a batch has been delivered.
#[library_benchmark]
#[bench::bytes_128(args = (128), setup = with_batch_delivered)]
fn settle_64(world: Box<World>) -> Box<World> {
    world.sender.step(0);
    world
}

#[library_benchmark]
#[bench::receiver(args = (128), setup = World::new)]
fn idle_step(world: Box<World>) -> Box<World> {
    world.receiver.step(0);
    world
}

/// Nothing has happened for long.
fn at_rest(subgroups: u32) -> Box<World> {
    let world = World::with_subgroups(128, subgroups);
    for _ in 0..LOOKS_IN_VAIN {
        assert!(!world.receiver.step_briefly(0).expect("mine").progress);
    }
    world
}

// Of a spinning thread.
#[library_benchmark]
#[bench::epochs_1(args = (1), setup = at_rest)]
#[bench::epochs_50(args = (50), setup = at_rest)]
fn rest_step(world: Box<World>) -> Box<World> {
    world.receiver.step_briefly(0);
    world
}

// Of a thread that is about to sleep.
#[library_benchmark]
#[bench::epochs_1(args = (1), setup = at_rest)]
#[bench::epochs_50(args = (50), setup = at_rest)]
fn last_step(world: Box<World>) -> Box<World> {
    world.receiver.step(0);
    world
}

/// Which routine of libc copies memory depends on the processor: here it is the same.
const HWCAPS: &str =
    "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM,-SSSE3";

library_benchmark_group!(
    name = engine,
    benchmarks = [
        publish, publish_64, deliver, deliver_64, settle_64, idle_step, rest_step, last_step
    ]
);

main!(
    config = LibraryBenchmarkConfig::default()
        .env("GLIBC_TUNABLES", HWCAPS)
        .pass_through_env("VALGRIND_LIB");
    library_benchmark_groups = engine
);
