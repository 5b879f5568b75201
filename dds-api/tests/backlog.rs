//! A reader that takes nothing while subgroup epochs come and go: its memory does not grow, its
//! writer waits, and no sample is lost.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds::qos::{DataReaderQos, DataWriterQos, History, Reliability, ResourceLimits};
use spindle_dds::{DataReader, DataWriter, DomainParticipant, testing};

use spindle_dds_test_types::flight::State;

const RING_MESSAGES: u32 = 4096;
/// The epoch that the reader is in, and the epochs that it may be behind.
const EPOCHS: u32 = 3;
const CHANGES: usize = 100;

/// Rows that are mapped in this process, and megabytes that it uses.
fn memory() -> [usize; 2] {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("text");
    let rows = maps.lines().filter(|line| line.contains("spindle-dds-row"));
    let statm = std::fs::read_to_string("/proc/self/statm").expect("text");
    let mut pages = statm.split(' ').map(|number| number.parse::<usize>());
    let pages = pages.nth(1).and_then(Result::ok).expect("a number");
    [rows.count(), pages * 4 / 1024]
}

fn wait_for_readers(writer: &DataWriter<State>, count: usize) {
    let end = Instant::now() + Duration::from_secs(60);
    while writer.matched_subscriptions().expect("enabled").len() != count {
        assert!(Instant::now() < end, "no view has {count} readers");
        thread::sleep(Duration::from_micros(100));
    }
}

fn numbers(reader: &DataReader<State>) -> Vec<u32> {
    let Ok(samples) = reader.take(100) else {
        thread::sleep(Duration::from_micros(100));
        return Vec::new();
    };
    let data = samples.iter().filter_map(|sample| sample.data().ok());
    data.map(|state| state.number).collect()
}

#[test]
fn what_waits_for_a_reader_does_not_grow_with_the_epochs() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    let participants: [_; 2] = std::array::from_fn(|_| {
        let participant = DomainParticipant::builder(0);
        let name = directory.to_str().expect("UTF-8");
        let participant = participant.property("spindle.directory", name);
        participant.create().expect("it is let in")
    });
    let [here, there] = participants.each_ref().map(|it| {
        let topic = it.topic::<State>("State").create();
        topic.expect("a topic")
    });
    let publisher = participants[0].publisher().create().expect("a publisher");
    let mut qos = DataWriterQos {
        reliability: Reliability::reliable(spindle_dds::Duration::from_millis(100)),
        history: History::keep_all(),
        ..DataWriterQos::default()
    };
    let ring = RING_MESSAGES.to_string();
    qos.property.set("spindle.ring.messages", &ring);
    // One sample waits in the writer.
    qos.property.set("spindle.writer.history_bytes", "0");
    let writer = publisher.writer(&here).qos(qos).create();
    let writer = writer.expect("a writer");
    let subscriber = participants[1].subscriber().create().expect("a subscriber");
    let full = DataReaderQos {
        reliability: Reliability::reliable(spindle_dds::Duration::ZERO),
        history: History::keep_all(),
        resource_limits: ResourceLimits {
            max_samples: 1.into(),
            ..ResourceLimits::default()
        },
        ..DataReaderQos::default()
    };
    let reader = subscriber.reader(&there).qos(full).create();
    let reader = reader.expect("a reader");
    wait_for_readers(&writer, 1);

    let (written, over) = (AtomicU32::new(0), AtomicBool::new(false));
    let waited = thread::scope(|scope| {
        let writing = scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                let number = written.load(Ordering::SeqCst);
                let state = State {
                    number,
                    ..State::default()
                };
                if writer.write(&state).is_ok() {
                    written.store(number + 1, Ordering::SeqCst);
                }
            }
        });
        while written.load(Ordering::SeqCst) < RING_MESSAGES {
            thread::sleep(Duration::from_millis(1));
        }
        let mut before = [0; 2];
        for change in 0..CHANGES {
            let other = subscriber.reader(&there).create().expect("a reader");
            wait_for_readers(&writer, 2);
            // The second epoch takes messages. If it ended before the writer's first message
            // in it, the reader would be too far behind for all later ones.
            let end = Instant::now() + Duration::from_secs(60);
            while written.load(Ordering::SeqCst) <= RING_MESSAGES {
                assert!(Instant::now() < end, "the next epoch takes nothing");
                thread::sleep(Duration::from_micros(100));
            }
            subscriber.delete_datareader(&other).expect("no samples");
            wait_for_readers(&writer, 1);
            // It has filled what it may.
            while testing::waiting_writers(&participants[0]) == Ok(0) {
                assert!(Instant::now() < end, "the writer finds room for ever");
                thread::sleep(Duration::from_micros(100));
            }
            if change == 9 {
                before = memory();
            }
        }
        let (after, count) = (memory(), written.load(Ordering::SeqCst));
        over.store(true, Ordering::SeqCst);
        let mut taken = Vec::new();
        while !writing.is_finished() {
            taken.extend(numbers(&reader));
        }
        while taken.len() < written.load(Ordering::SeqCst) as usize {
            taken.extend(numbers(&reader));
        }
        (taken, before, after, count)
    });
    let (taken, before, after, count) = waited;
    // A ring in each epoch, one sample in the cache, which was copied, and one in the writer.
    let most = EPOCHS * RING_MESSAGES + 2;
    assert!(
        count > RING_MESSAGES && count <= most,
        "{count} samples wait, {most} is the most"
    );
    // Others may still hold memory of the last epoch.
    let grown = after[0] > before[0] + 4 || after[1] > before[1] + 20;
    assert!(!grown, "{before:?} rows and megabytes became {after:?}");
    let all: Vec<u32> = (0..written.load(Ordering::SeqCst)).collect();
    assert_eq!(taken, all, "each once, in order");
}
