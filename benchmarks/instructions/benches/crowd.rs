//! Instructions of a step that finds news of one sender of several: a step costs what has changed,
//! and not what there is. The engines are in this process, and stepped by the one thread that is
//! counted.
//!
//! `.ci/instructions` runs it, compares, and limits the counts with ten senders to a multiple of
//! those with one; see CONTRIBUTING.md.

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

/// Messages of a ring.
const MESSAGES: u32 = 256;
/// Bytes of a message.
const SIZE: u32 = 128;

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
struct Touch;

impl Sink<HybridSegment> for Touch {
    fn deliver(&mut self, delivery: &Delivery<'_, HybridSegment>) {
        let held = delivery.hold();
        let bytes = held.bytes();
        black_box((bytes.first(), bytes.last()));
    }

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

type Node = Engine<HybridSegment, Touch>;

/// Members that all read; all but the last one send. The last one's step is counted.
struct Crowd {
    nodes: Vec<Node>,
    subgroup: Arc<SubgroupHandle<HybridSegment>>,
    class: DeliveryClass,
    _stations: Vec<Station>,
}

impl Crowd {
    fn new(senders: u16, class: DeliveryClass) -> Box<Self> {
        let mut rings = [None; 2];
        rings[class.index()] = Some(RingSpec {
            messages: MESSAGES,
            bytes: u64::from(MESSAGES * SIZE),
        });
        let spec = SubgroupSpec {
            subgroup: SubgroupId(0),
            epoch: 1,
            base: 0,
            topics: vec![TopicKey::of_name("bench")],
            is_logged: false,
            members: (0..=senders).map(Rank).collect(),
            senders: (0..senders)
                .map(|rank| SenderSpec {
                    rank: Rank(rank),
                    rings,
                })
                .collect(),
        };
        let members = vec![0; usize::from(senders) + 1];
        let (stations, nodes) = stations::engines(&members, &[spec], |_| Touch);
        let subgroup = nodes
            .first()
            .and_then(|it| it.handle().subgroup(SubgroupId(0)));
        let crowd = Box::new(Self {
            nodes,
            subgroup: subgroup.expect("a subgroup"),
            class,
            _stations: stations,
        });
        // More rounds than the ring has messages.
        for _ in 0..MESSAGES + 100 {
            crowd.publish();
            while crowd.step_all() {}
        }
        crowd
    }

    fn publish(&self) {
        let mut claim = self.subgroup.claim(self.class, SIZE).expect("room");
        let sent = self.nodes[0].send(&mut claim, SIZE, &META);
        sent.expect("a commit");
    }

    fn step_all(&self) -> bool {
        let step = |node: &Node| node.step(0).is_some_and(|step| step.progress);
        self.nodes.iter().fold(false, |any, node| step(node) | any)
    }

    fn last(&self) -> &Node {
        self.nodes.last().expect("members")
    }
}

fn unordered_news(senders: u16) -> Box<Crowd> {
    let crowd = Crowd::new(senders, DeliveryClass::Unordered);
    crowd.publish();
    crowd
}

fn ordered_news(senders: u16) -> Box<Crowd> {
    let crowd = Crowd::new(senders, DeliveryClass::Ordered);
    crowd.publish();
    crowd
}

fn all_but_one_null(senders: u16) -> Box<Crowd> {
    let crowd = ordered_news(senders);
    let (last, others) = crowd.nodes.split_last().expect("members");
    for (at, node) in (1..).zip(others) {
        node.step(0);
        if at < others.len() {
            last.step(0);
        }
    }
    crowd
}

// One sender has a message, which is delivered at once.
#[library_benchmark]
#[bench::senders_1(args = (1), setup = unordered_news)]
#[bench::senders_2(args = (2), setup = unordered_news)]
#[bench::senders_10(args = (10), setup = unordered_news)]
fn unordered_step(crowd: Box<Crowd>) -> Box<Crowd> {
    crowd.last().step(0);
    crowd
}

// One sender has a message. It is delivered at once if there is no other sender.
#[library_benchmark]
#[bench::senders_1(args = (1), setup = ordered_news)]
#[bench::senders_2(args = (2), setup = ordered_news)]
#[bench::senders_10(args = (10), setup = ordered_news)]
fn ordered_step(crowd: Box<Crowd>) -> Box<Crowd> {
    crowd.last().step(0);
    crowd
}

// One sender has a null, the last one that a message waits for.
#[library_benchmark]
#[bench::senders_1(args = (1), setup = all_but_one_null)]
#[bench::senders_2(args = (2), setup = all_but_one_null)]
#[bench::senders_10(args = (10), setup = all_but_one_null)]
fn ordered_delivery(crowd: Box<Crowd>) -> Box<Crowd> {
    crowd.last().step(0);
    crowd
}

/// Which routine of libc copies memory depends on the processor: here it is the same.
const HWCAPS: &str =
    "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM,-SSSE3";

library_benchmark_group!(
    name = crowd,
    benchmarks = [unordered_step, ordered_step, ordered_delivery]
);

main!(
    config = LibraryBenchmarkConfig::default()
        .env("GLIBC_TUNABLES", HWCAPS)
        .pass_through_env("VALGRIND_LIB");
    library_benchmark_groups = crowd
);
