//! Wake-ups of many sleepers at once, between processes.

use std::thread;
use std::time::Duration;

use spindle_dds_transport::shm::ShmSegment;
use spindle_dds_transport::{FABRIC_AREA, Fabric, Park, PeerSet, Rank, WakeInterest, WakeReason};

use crate::child::Process;
use crate::directory;

const WORD: usize = FABRIC_AREA;
const READERS: u64 = 8;
const SAMPLES: u64 = 1000;

/// The child's side: `publish <samples>`, as the member of rank 0. Each sample is pushed when all
/// others have seen the one before, and have had a moment to go to sleep.
pub(crate) fn publish(segment: &ShmSegment, samples: u64) -> String {
    let readers: PeerSet = (1..segment.members() as u16).map(Rank).collect();
    for sample in 1..=samples {
        segment.push_word(WORD, sample, &readers);
        segment.wake(&readers, WakeReason::Data);
        let has_seen = |reader: Rank| segment.row(reader).load(WORD) == sample;
        while !readers.iter().all(has_seen) {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(1));
    }
    let counters = segment.counters();
    format!("{} {}", counters.peer_wakes, counters.wake_calls)
}

/// The child's side: `receive <samples>`, from the member of rank 0.
pub(crate) fn receive(segment: &ShmSegment, samples: u64) -> String {
    let (mut seen, mut wakes_without_work) = (0, 0);
    while seen < samples {
        segment.announce_sleep(WakeInterest::Data);
        let is_there = || segment.row(Rank(0)).load(WORD) > seen;
        if !is_there() && segment.park(None) && !is_there() {
            wakes_without_work += 1;
        }
        segment.announce_awake();
        if is_there() {
            seen = segment.row(Rank(0)).load(WORD);
            segment.push_word(WORD, seen, &PeerSet::EMPTY);
        }
    }
    format!("{seen} {wakes_without_work}")
}

fn numbers(answer: &str) -> [u64; 2] {
    let numbers = answer
        .split(' ')
        .map(|word| word.parse().expect("a number"));
    numbers.collect::<Vec<_>>().try_into().expect("two")
}

/// One writer and eight readers that sleep between samples.
#[test]
fn a_sample_for_many_sleeping_readers_is_one_system_call() {
    let directory = directory();
    // Those with even ids sleep on futexes.
    let ids: Vec<u128> = (1..=1 + u128::from(READERS)).map(|it| it * 2).collect();
    let started = ids.iter().map(|&id| Process::start(directory.path(), id));
    let mut all: Vec<_> = started.collect();
    Process::connect_all(&mut all);
    let members: Vec<_> = ids.iter().map(ToString::to_string).collect();
    for process in &mut all {
        process.tell(&format!("make 1 {}", members.join(",")));
    }
    for process in &mut all {
        assert_eq!(process.hear(), "made, without {}");
    }
    let (writer, readers) = all.split_first_mut().expect("a writer");
    for reader in &mut *readers {
        reader.tell(&format!("receive 1 {SAMPLES}"));
    }
    let [peer_wakes, calls] = numbers(&writer.ask(&format!("publish 1 {SAMPLES}")));
    let received = readers.iter_mut().map(|reader| numbers(&reader.hear()));
    let received: Vec<_> = received.collect();
    println!("{peer_wakes} wake-ups by {calls} calls; {received:?}");
    assert!(
        peer_wakes > SAMPLES * READERS / 2,
        "most slept: {peer_wakes}"
    );
    assert!(calls * 10 <= SAMPLES * 11, "{calls} calls");
    assert!(received.iter().all(|[seen, _]| *seen == SAMPLES));
    let without_work: u64 = received.iter().map(|[_, it]| it).sum();
    assert!(
        without_work <= SAMPLES / 10,
        "{without_work} wakes without work"
    );
}
