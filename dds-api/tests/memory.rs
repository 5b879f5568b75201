//! Memory follows use: topics on which nothing is sent take little, and samples on one topic add to
//! the memory of that topic alone. Its own binary: what other tests allocate would be counted.

use std::fs;
use std::time::Duration;

use spindle_dds::idl::TopicType;
use spindle_dds::qos::{DataWriterQos, History, Reliability};
use spindle_dds::{DataReader, DataWriter, DomainParticipant, testing};
use spindle_dds_test_types::flight::{Blob, State};

/// Topics with a writer and a reader of each participant.
const TOPICS: usize = 50;
/// Messages that a ring holds by default.
const MESSAGES: u64 = 4096;
/// Most bytes that a topic takes of the two participants together while nothing is sent. With an
/// entry of a few bytes for each message that its four rings hold there, it would be several times
/// as much.
const TOPIC_BYTES_MAX: u64 = 200 << 10;
/// Least bytes for each message that a ring of a sender holds, where all of it is allocated.
const ENTRY_BYTES_MIN: u64 = 64;
/// Most bytes that samples on one topic add, however many they are. Where all topics' memory was
/// used, it would be many times as much.
const USED_TOPIC_BYTES_MAX: u64 = 8 << 20;

/// Samples that are sent one by one, each taken by all before the next is sent.
const RARE: u32 = 100_000;
/// Most bytes that they add, in the rings too. The headers of a sender's ring alone take twice as
/// much, and its payload many times as much.
const RARE_BYTES_MAX: u64 = 128 << 10;
/// Large samples of one topic, and their bytes.
const LARGE: u32 = 10_000;
const LARGE_LEN: usize = 10_000;
/// Most bytes that they add, each taken before the next is sent. Without restarts it is all of the
/// ring's payload, 8 MiB.
const LARGE_BYTES_MAX: u64 = 1 << 20;

/// What this process has of memory, as Linux calls it.
fn bytes_of(kinds: &[&str]) -> u64 {
    let rollup = fs::read_to_string("/proc/self/smaps_rollup").expect("Linux has it");
    let bytes = kinds.iter().map(|kind| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(kind));
        let kb = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kb.expect("a number") << 10
    });
    bytes.sum()
}

/// Bytes of this process that no other process shares and that no file has.
fn private_bytes() -> u64 {
    bytes_of(&["Anonymous:"])
}

/// These, and the bytes of the rings of both participants.
fn all_bytes() -> u64 {
    bytes_of(&["Anonymous:", "Pss_Shmem:"])
}

struct Member {
    participant: DomainParticipant,
    writers: Vec<DataWriter<State>>,
    readers: Vec<DataReader<State>>,
    blobs: (DataWriter<Blob>, DataReader<Blob>),
}

impl Member {
    fn new(directory: &str, topics: usize, prefault: &str) -> Self {
        let participant = DomainParticipant::builder(0)
            .property("spindle.directory", directory)
            .property("spindle.prefault", prefault)
            .disabled()
            .create()
            .expect("a participant");
        let publisher = participant.publisher().create().expect("a publisher");
        let subscriber = participant.subscriber().create().expect("a subscriber");
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        let qos = DataWriterQos {
            reliability: Reliability::reliable(spindle_dds::Duration::INFINITE),
            history: History::keep_all(),
            ..DataWriterQos::default()
        };
        for number in 0..topics {
            let topic = participant.topic::<State>(&format!("State {number}"));
            let topic = topic.create().expect("a topic");
            let writer = publisher.writer(&topic).qos(qos.clone());
            writers.push(writer.create().expect("a writer"));
            readers.push(subscriber.reader(&topic).create().expect("a reader"));
        }
        let topic = participant.topic::<Blob>("Blob").create();
        let topic = topic.expect("a topic");
        let writer = publisher.writer(&topic).qos(qos).create();
        let reader = subscriber.reader(&topic).create();
        Self {
            participant,
            writers,
            readers,
            blobs: (writer.expect("a writer"), reader.expect("a reader")),
        }
    }

    fn is_matched(&self) -> bool {
        let writers = self.writers.iter().map(|it| {
            let status = it.publication_matched_status().expect("a status");
            status.current_count
        });
        let readers = self.readers.iter().map(|it| {
            let status = it.subscription_matched_status().expect("a status");
            status.current_count
        });
        let blobs = self.blobs.0.publication_matched_status();
        let blobs = blobs.expect("a status").current_count;
        writers.chain(readers).all(|count| count == 2) && blobs == 2
    }
}

/// Two participants of a group, whose endpoints are matched.
fn group(directory: &str, topics: usize, prefault: &str) -> [Member; 2] {
    let members = [0, 1].map(|_| Member::new(directory, topics, prefault));
    std::thread::scope(|scope| {
        for member in &members {
            scope.spawn(|| member.participant.enable().expect("the group forms"));
        }
    });
    while !members.iter().all(Member::is_matched) {
        std::thread::sleep(Duration::from_millis(5));
    }
    members
}

fn close(members: [Member; 2]) {
    for member in members {
        member.participant.close().expect("it leaves");
    }
}

/// Sends on one topic, and takes at both participants what is there from time to time.
fn send(members: &[Member; 2], topic: usize, samples: u32) {
    for number in 0..samples {
        let sample = members[0].writers[topic].loan().expect("room");
        let sample = sample.callsign("DLH4AB").expect("short");
        sample.publish().expect("sent");
        if number % 100 == 99 {
            for member in members {
                while member.readers[topic].take(32).is_err() {
                    std::thread::yield_now();
                }
            }
        }
    }
}

/// Takes one sample at each of these readers, as soon as it is there.
fn take_one<T: TopicType>(readers: [&DataReader<T>; 2]) {
    for reader in readers {
        while reader.take(1).is_err() {
            std::thread::yield_now();
        }
    }
}

/// Waits until the ring is empty again: otherwise it does not go on at its start.
fn await_release<T: TopicType>(writer: &DataWriter<T>, readers: [&DataReader<T>; 2], before: u64) {
    while testing::released(writer).expect("enabled") == before {
        // A read steps the engine, if no other thread does.
        for reader in readers {
            assert!(reader.take(1).is_err(), "one sample at a time");
        }
    }
}

/// Sends samples on one topic, each after the one before it was taken by both participants.
fn send_rarely(members: &[Member; 2], topic: usize, samples: u32) {
    for _ in 0..samples {
        let before = testing::released(&members[0].writers[topic]).expect("enabled");
        let sample = members[0].writers[topic].loan().expect("room");
        let sample = sample.callsign("DLH4AB").expect("short");
        sample.publish().expect("sent");
        let readers = members.each_ref().map(|it| &it.readers[topic]);
        take_one(readers);
        await_release(&members[0].writers[topic], readers, before);
    }
}

/// The same with large samples.
fn send_large(members: &[Member; 2], samples: u32) {
    for number in 0..samples {
        let before = testing::released(&members[0].blobs.0).expect("enabled");
        let blob = Blob {
            number,
            bytes: vec![number as u8; LARGE_LEN],
        };
        members[0].blobs.0.write(&blob).expect("sent");
        let readers = members.each_ref().map(|it| &it.blobs.1);
        take_one(readers);
        await_release(&members[0].blobs.0, readers, before);
    }
}

#[test]
fn memory_follows_use() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = |name: &str| {
        let path = directory.path().join(name);
        path.to_str().expect("UTF-8").to_owned()
    };
    // Threads, allocators and tables that all participants share.
    close(group(&directory("warm"), 1, "false"));

    let before = private_bytes();
    let members = group(&directory("idle"), TOPICS, "false");
    let idle = private_bytes();
    let per_topic = idle.saturating_sub(before) / TOPICS as u64;
    eprintln!("{per_topic} bytes a topic while nothing is sent");
    assert!(per_topic < TOPIC_BYTES_MAX, "{per_topic} bytes a topic");

    send(&members, 0, 10_000);
    let used = private_bytes().saturating_sub(idle);
    eprintln!("{used} bytes more after samples on one topic");
    assert!(used < USED_TOPIC_BYTES_MAX, "{used} bytes of one topic");

    // What the first samples need of memory that all topics share: they are of another topic.
    send_rarely(&members, 1, 1_000);
    let before = all_bytes();
    send_rarely(&members, 2, RARE);
    let used = all_bytes().saturating_sub(before);
    eprintln!("{used} bytes more after {RARE} samples, each taken before the next");
    assert!(used < RARE_BYTES_MAX, "{used} bytes of one topic");
    let before = all_bytes();
    send_large(&members, LARGE);
    let used = all_bytes().saturating_sub(before);
    eprintln!("{used} bytes more after {LARGE} large samples, each taken before the next");
    assert!(used < LARGE_BYTES_MAX, "{used} bytes of one topic");
    close(members);

    // The control: the bookkeeping is there if it is asked for.
    const FEW: usize = 4;
    let before = private_bytes();
    let members = group(&directory("prefaulted"), FEW, "true");
    let per_topic = private_bytes().saturating_sub(before) / FEW as u64;
    eprintln!("{per_topic} bytes a topic with all its memory");
    assert!(
        per_topic > 4 * MESSAGES * ENTRY_BYTES_MIN,
        "{per_topic} bytes a topic"
    );
    close(members);
}
