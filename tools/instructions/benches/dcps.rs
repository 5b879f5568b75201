//! Instructions of a sample from one participant to another over shared memory, from the
//! writer's loan to the view that a reader gives back. Both participants are in this
//! process, and stepped by hand: no other thread has a part in what is counted.
//!
//! `.ci/instructions` runs it and compares; see CONTRIBUTING.md.

// What the macros make of it.
#![allow(missing_docs, unused_qualifications)]

use std::hint::black_box;

use gungraun::prelude::*;
use spindle_dds::qos::{DataReaderQos, DataWriterQos, History, Reliability};
use spindle_dds::testing::ByHand;
use spindle_dds::{DataReader, DataWriter, DomainParticipant, Duration};

/// Made of `dds-api/tests/idl/flight.idl`.
mod types {
    include!("../../../dds-api/tests/idl/flight.rs");
}

use types::flight::Blob;

/// Samples of a batch.
const BATCH: usize = 64;
/// Of which a step delivers so many.
const A_STEP: usize = 32;
/// Beside the bytes of a sample: number, length of the sequence.
const HEAD: usize = 16;
/// More rounds than the ring has messages: all that grows has grown.
const WARM_UP: usize = 40;

/// A writer and a reader that have met.
struct World {
    writer: DataWriter<Blob>,
    reader: DataReader<Blob>,
    writing: ByHand,
    reading: ByHand,
    size: usize,
    _participants: [DomainParticipant; 2],
    _directory: tempfile::TempDir,
}

fn participant(directory: &str) -> DomainParticipant {
    DomainParticipant::builder(0)
        .property("spindle.directory", directory)
        .property("spindle.reader.storage", "ring")
        // Whose heartbeats fall silent while it is stepped by hand has not failed.
        .property("spindle.failure.limit_ms", "600000")
        .property("spindle.ring.messages", "1024")
        .property("spindle.ring.bytes", "33554432")
        .create()
        .expect("a participant")
}

impl World {
    fn new(size: usize) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let domains = directory.path().join("domains");
        let domains = domains.to_str().expect("UTF-8");
        let participants = [0, 1].map(|_| participant(domains));
        let [first, second] = &participants;
        let topic = |participant: &DomainParticipant| {
            let topic = participant.topic::<Blob>("Blob").create();
            topic.expect("a topic")
        };
        let qos = DataWriterQos {
            reliability: Reliability::reliable(Duration::INFINITE),
            ..DataWriterQos::default()
        };
        let publisher = first.publisher().create().expect("a publisher");
        let writer = publisher.writer(&topic(first)).qos(qos).create();
        let writer = writer.expect("a writer");
        let qos = DataReaderQos {
            reliability: Reliability::reliable(Duration::ZERO),
            history: History::keep_all(),
            ..DataReaderQos::default()
        };
        let subscriber = second.subscriber().create().expect("a subscriber");
        let reader = subscriber.reader(&topic(second)).qos(qos).create();
        let reader = reader.expect("a reader");
        let has_met = || {
            let readers = writer.matched_subscriptions().expect("enabled");
            let writers = reader.matched_publications().expect("enabled");
            readers.len() == 1 && writers.len() == 1
        };
        while !has_met() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        // Once a sample has come through, there is nothing left that has to begin.
        writer.write(&Blob::default()).expect("sent");
        while reader.take(1).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let [writing, reading] = [first, second].map(ByHand::new);
        let world = Self {
            writer,
            reader,
            writing: writing.expect("up"),
            reading: reading.expect("up"),
            size,
            _directory: directory,
            _participants: participants,
        };
        for _ in 0..WARM_UP {
            (0..BATCH).for_each(|_| world.publish());
            world.deliver(BATCH);
            world.settle();
        }
        world
    }

    /// Builds a sample in place, of which the first and the last byte are touched.
    #[inline(never)]
    fn publish(&self) {
        let mut sample = self.writer.loan_with(self.size + HEAD).expect("room");
        sample.set_number(black_box(7));
        let touch = |bytes: &mut [u8]| {
            if let [first, .., last] = bytes {
                (*first, *last) = (black_box(1), black_box(2));
            }
        };
        let sample = sample.bytes_reuse_with(self.size, touch).expect("it fits");
        sample.publish().expect("sent");
    }

    /// The reader's engine has it, the reader takes it, looks at it, and gives it back.
    #[inline(never)]
    fn deliver(&self, samples: usize) {
        for _ in 0..samples.div_ceil(A_STEP) {
            self.reading.step();
        }
        let taken = self.reader.take(BATCH).expect("samples");
        assert_eq!(taken.len(), samples);
        for sample in &taken {
            let view = sample.view().expect("data");
            let bytes = view.bytes();
            black_box((view.number(), bytes.first(), bytes.last()));
        }
    }

    /// The writer's engine finds out what the reader has given back.
    #[inline(never)]
    fn settle(&self) {
        while self.reading.step() | self.writing.step() {}
    }
}

fn quiet(size: usize) -> World {
    let world = World::new(size);
    world.settle();
    world
}

fn with_one(size: usize) -> World {
    let world = quiet(size);
    world.publish();
    world
}

fn with_batch(size: usize) -> World {
    let world = quiet(size);
    (0..BATCH).for_each(|_| world.publish());
    world
}

fn with_batch_taken(size: usize) -> World {
    let world = with_batch(size);
    world.deliver(BATCH);
    world
}

#[library_benchmark]
#[bench::bytes_8(args = (8), setup = quiet)]
#[bench::bytes_1024(args = (1024), setup = quiet)]
#[bench::bytes_10240(args = (10240), setup = quiet)]
fn publish(world: World) -> World {
    world.publish();
    world
}

#[library_benchmark]
#[bench::bytes_128(args = (128), setup = quiet)]
fn publish_64(world: World) -> World {
    (0..BATCH).for_each(|_| world.publish());
    world
}

#[library_benchmark]
#[bench::bytes_8(args = (8), setup = with_one)]
#[bench::bytes_1024(args = (1024), setup = with_one)]
#[bench::bytes_10240(args = (10240), setup = with_one)]
fn deliver(world: World) -> World {
    world.deliver(1);
    world
}

#[library_benchmark]
#[bench::bytes_128(args = (128), setup = with_batch)]
fn deliver_64(world: World) -> World {
    world.deliver(BATCH);
    world
}

// The writer's own step after a batch has been taken.
#[library_benchmark]
#[bench::bytes_128(args = (128), setup = with_batch_taken)]
fn settle_64(world: World) -> World {
    world.writing.step();
    world
}

#[library_benchmark]
#[bench::reader(args = (128), setup = quiet)]
fn idle_step(world: World) -> World {
    world.reading.step();
    world
}

/// Which routine of libc copies memory depends on the processor: here it is the same.
const HWCAPS: &str =
    "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM,-SSSE3";

library_benchmark_group!(
    name = dcps,
    benchmarks = [
        publish, publish_64, deliver, deliver_64, settle_64, idle_step
    ]
);

main!(
    config = LibraryBenchmarkConfig::default()
        .env("GLIBC_TUNABLES", HWCAPS)
        .pass_through_env("VALGRIND_LIB");
    library_benchmark_groups = dcps
);
