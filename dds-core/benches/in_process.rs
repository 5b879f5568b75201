//! The engine over shared memory within one process: one sender, and as many
//! receivers, each stepped by a thread of its own. Prints one JSON line a row.
//!
//! `cargo bench -p spindle-dds-core`

// The crate under test has neither clock nor threads; the bench needs both.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

#[path = "../tests/stations/mod.rs"]
mod stations;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

use spindle_dds_core::{
    ClaimError, CommitMeta, Delivery, DeliveryClass, Engine, EngineEvent, MessageKind, RingSpec,
    SenderSpec, Sink, SubgroupId, SubgroupSpec, TopicKey,
};
use spindle_dds_transport::hybrid::{HybridSegment, Station};
use spindle_dds_transport::{Fabric, Park, Rank};

const SUBGROUP: SubgroupId = SubgroupId(0);

/// Touches the first and the last byte of each message.
struct Touch {
    reading: bool,
    touched: Arc<AtomicU64>,
    count: u64,
}

impl Sink<HybridSegment> for Touch {
    fn deliver(&mut self, delivery: &Delivery<'_, HybridSegment>) {
        if self.reading {
            let held = delivery.hold();
            let bytes = held.bytes();
            self.count += u64::from(bytes[0]) + u64::from(bytes[bytes.len() - 1]);
        }
        self.touched.fetch_add(1, Ordering::Relaxed);
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

fn group(members: usize) -> (Vec<Station>, Vec<Arc<Node>>) {
    let ring = Some(RingSpec {
        messages: 1024,
        bytes: 1 << 24,
    });
    let subgroup = SubgroupSpec {
        subgroup: SUBGROUP,
        epoch: 1,
        base: 0,
        members: (0..members as u16).map(Rank).collect(),
        senders: vec![SenderSpec {
            rank: Rank(0),
            rings: [ring, None],
        }],
        topics: vec![TopicKey::of_name("bench")],
        is_logged: false,
    };
    let sink = |rank| Touch {
        reading: rank > 0,
        touched: Arc::default(),
        count: 0,
    };
    let (stations, engines) = stations::engines(&vec![0; members], &[subgroup], sink);
    (stations, engines.into_iter().map(Arc::new).collect())
}

fn receive(node: &Node, messages: u64) {
    let handle = node.handle();
    let fabric = handle.fabric();
    let mut idle = 0;
    while handle.counters().delivered < messages {
        let Some(outcome) = node.step(0) else {
            continue;
        };
        if outcome.progress {
            idle = 0;
            continue;
        }
        idle += 1;
        if idle < 100 {
            std::hint::spin_loop();
        } else if idle < 120 {
            thread::yield_now();
        } else {
            fabric.announce_sleep(outcome.want);
            if node
                .step(0)
                .is_some_and(|second| !second.progress && second.want == outcome.want)
            {
                fabric.park(None);
            }
            fabric.announce_awake();
            idle = 0;
        }
    }
}

fn send(node: &Node, messages: u64, size: u32) {
    let subgroup = node.handle().subgroup(SUBGROUP).expect("a subgroup");
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
    let mut sent = 0;
    while sent < messages {
        match subgroup.claim(DeliveryClass::Ordered, size) {
            Ok(mut claim) => {
                let bytes = claim.bytes();
                bytes[0] = sent as u8;
                bytes[size as usize - 1] = 1;
                node.send(&mut claim, size, &meta).expect("a commit");
                sent += 1;
            }
            Err(ClaimError::NoRoom | ClaimError::NotBegun) => {
                node.step(0);
                thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn run(members: usize, size: u32, messages: u64) -> f64 {
    let (_stations, nodes) = group(members);
    let start = Arc::new(Barrier::new(members));
    let receivers: Vec<_> = nodes[1..]
        .iter()
        .map(|node| {
            let (node, start) = (node.clone(), start.clone());
            thread::spawn(move || {
                start.wait();
                receive(&node, messages);
            })
        })
        .collect();
    start.wait();
    let begin = Instant::now();
    send(&nodes[0], messages, size);
    for receiver in receivers {
        receiver.join().expect("a receiver");
    }
    begin.elapsed().as_secs_f64()
}

fn main() {
    for readers in [1, 2, 4] {
        for (size, messages) in [
            (128, 400_000),
            (1024, 400_000),
            (10_240, 200_000),
            (1 << 20, 50_000),
        ] {
            let mut seconds: Vec<f64> = (0..3).map(|_| run(readers + 1, size, messages)).collect();
            seconds.sort_by(f64::total_cmp);
            println!(
                "{{\"readers\":{readers},\"size\":{size},\"messages_per_s\":{:.0}}}",
                messages as f64 / seconds[1]
            );
        }
    }
}
