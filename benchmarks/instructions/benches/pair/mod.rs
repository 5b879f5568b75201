//! Two participants in one process, a writer and a reader, whose engines are stepped by hand:
//! no other thread has a part in what is measured.

use std::hint::black_box;

use spindle_dds::qos::{DataReaderQos, DataWriterQos, History, Reliability};
use spindle_dds::testing::ByHand;
use spindle_dds::{DataReader, DataWriter, DomainParticipant, Duration};

use spindle_dds_test_types::flight::Blob;

/// Samples of a batch.
pub(crate) const BATCH: usize = 64;
/// Of which a step delivers so many.
const A_STEP: usize = 32;
/// Beside the bytes of a sample: number, length of the sequence.
const HEAD: usize = 16;
/// More rounds than the ring has messages: all that grows has grown.
const WARM_UP: usize = 40;

/// A writer and a reader that have met.
pub(crate) struct World {
    writer: DataWriter<Blob>,
    pub(crate) reader: DataReader<Blob>,
    pub(crate) writing: ByHand,
    pub(crate) reading: ByHand,
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
    pub(crate) fn new(size: usize) -> Self {
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
    pub(crate) fn publish(&self) {
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
    pub(crate) fn deliver(&self, samples: usize) {
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
    pub(crate) fn settle(&self) {
        while self.reading.step() | self.writing.step() {}
    }
}
