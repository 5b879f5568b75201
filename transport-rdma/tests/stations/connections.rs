//! Connections between stations: one for each pair, and their messages.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_transport::shm::{
    MESSAGE_LEN_MAX, SegmentKey, SegmentRequest, Station, StationError, StationEvent,
};
use spindle_dds_transport::{FailureCause, Rank};

use crate::child::{Process, options};
use crate::directory;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

#[test]
fn simultaneous_calls_make_one_connection() {
    let directory = directory();
    for round in 0..100 {
        let pair = [1, 2].map(|id| {
            let options = options(directory.path(), 2 * round + id);
            Station::open(&options).expect("a station")
        });
        let (barrier, addresses) = (Barrier::new(2), [pair[0].address(), pair[1].address()]);
        thread::scope(|scope| {
            for (me, other) in [(0, 1), (1, 0)] {
                let (pair, barrier, address) = (&pair, &barrier, &addresses[other]);
                scope.spawn(move || {
                    barrier.wait();
                    let id = pair[me].connect(address, soon()).expect("connected");
                    assert_eq!(id, pair[other].id());
                    pair[me].send(id, b"hello").expect("sent");
                });
            }
        });
        for (me, other) in [(0, 1), (1, 0)] {
            let (from, bytes) = (pair[other].id(), b"hello".to_vec());
            let within = Duration::from_secs(20);
            let events = [(); 2].map(|()| pair[me].next_event(within));
            let expected = [
                StationEvent::Connected { id: from },
                StationEvent::Message { from, bytes },
            ];
            assert_eq!(events, expected.map(Some), "{round}");
            assert_eq!(pair[me].next_event(Duration::ZERO), None);
        }
    }
}

#[test]
fn messages_of_any_length_arrive_whole_and_in_order() {
    let directory = directory();
    let mut all = Process::connected(directory.path(), 2);
    assert_eq!(all[1].ask("event"), "connected 1");
    let lens = [0, 1, 32 * 1024, 32 * 1024 + 1, MESSAGE_LEN_MAX, 3];
    for len in lens {
        assert_eq!(all[0].ask(&format!("send 2 {len}")), "sent");
    }
    for len in lens {
        assert_eq!(all[1].ask("event"), format!("message 1 {len} true"));
    }
    let refused = all[0].ask(&format!("send 2 {}", MESSAGE_LEN_MAX + 1));
    assert!(refused.contains("at most 1048576 bytes"), "{refused}");
    let refused = all[0].ask("send 9 1");
    assert!(refused.contains("not connected"), "{refused}");
}

#[test]
fn a_peer_that_reads_nothing_is_detected_and_blocks_no_other() {
    let directory = directory();
    let mut all = Process::connected(directory.path(), 3);
    all[1].stop();
    let full = (0..40).find_map(|_| {
        let answer = all[0].ask(&format!("send 2 {MESSAGE_LEN_MAX}"));
        (answer != "sent").then_some(answer)
    });
    let full = full.expect("it is full some day");
    assert!(full.contains("which takes none"), "{full}");
    assert_eq!(all[0].ask("send 3 5"), "sent");
    assert_eq!(all[2].ask("event"), "connected 1");
    assert_eq!(all[2].ask("event"), "connected 2");
    assert_eq!(all[2].ask("event"), "message 1 5 true");
}

#[test]
fn a_closed_station_is_reported_and_must_be_dropped_before_it_connects_again() {
    let directory = directory();
    let open = |id| Station::open(&options(directory.path(), id)).expect("a station");
    let (one, two) = (open(1), open(2));
    let old = two.address();
    one.connect(&old, soon()).expect("connected");
    drop(two);
    let within = Duration::from_secs(20);
    assert_eq!(
        one.next_event(within),
        Some(StationEvent::Connected { id: 2 })
    );
    let cause = FailureCause::Unreachable("it has closed the connection".into());
    assert_eq!(
        one.next_event(within),
        Some(StationEvent::Closed { id: 2, cause })
    );
    let again = open(2);
    let error = again
        .connect(&one.address(), soon())
        .expect_err("known as lost");
    assert!(
        matches!(&error, StationError::Refused { id: 1, reason } if reason.contains("is lost")),
        "{error}"
    );
    one.drop_peer(2);
    again.connect(&one.address(), soon()).expect("forgotten");
    let error = one.connect(&old, soon());
    assert!(matches!(error, Ok(2)), "connected by its id: {error:?}");
}

#[test]
fn unreachable_addresses_are_errors() {
    let directory = directory();
    let open = |id| Station::open(&options(directory.path(), id)).expect("a station");
    let one = open(1);
    let gone = open(2).address();
    let error = one.connect(&gone, soon()).expect_err("closed");
    assert!(
        matches!(error, StationError::Unreachable { id: 2, .. }),
        "{error}"
    );
    let error = one
        .connect(b"tcp1.2.3.4", soon())
        .expect_err("another backend");
    assert!(matches!(error, StationError::Address(_)), "{error}");
    let error = one.connect(&one.address(), soon()).expect_err("itself");
    assert!(
        matches!(error, StationError::Refused { id: 1, .. }),
        "{error}"
    );
    // The same socket under another name.
    let mut other = open(3).address();
    let three = open(3);
    other[4..].copy_from_slice(&three.address()[4..]);
    other[4] = 9;
    let error = one.connect(&other, soon()).expect_err("not 9");
    let text = error.to_string();
    assert!(
        text.contains("answers where") && text.contains("09"),
        "{text}"
    );
}

#[test]
fn a_call_that_is_not_answered_ends_in_time() {
    let directory = directory();
    let silent = Process::start(directory.path(), 2);
    silent.stop();
    let one = Station::open(&options(directory.path(), 1)).expect("a station");
    let address = address_of(&silent);
    let error = one.connect(&address, Instant::now() + Duration::from_millis(100));
    let error = error.expect_err("silent").to_string();
    assert!(error.contains("did not answer in time"), "{error}");
}

#[test]
fn a_broken_connection_to_a_live_process_is_not_a_death() {
    let directory = directory();
    let open = |id| Station::open(&options(directory.path(), id)).expect("a station");
    let (one, two) = (open(1), open(2));
    one.connect(&two.address(), soon()).expect("connected");
    // The other side closes, as to a dead peer.
    one.pretend_process_ended();
    let lost = |station: &Station| {
        let events = [(); 2].map(|()| station.next_event(Duration::from_secs(20)));
        match events {
            [
                Some(StationEvent::Connected { .. }),
                Some(StationEvent::Closed { cause, .. }),
            ] => cause,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(lost(&two), FailureCause::ProcessEnded);
    let cause = lost(&one).to_string();
    assert!(cause.contains("its process lives"), "{cause}");
}

#[test]
fn a_dropped_peer_is_told_and_may_connect_again() {
    let directory = directory();
    let open = |id| Station::open(&options(directory.path(), id)).expect("a station");
    let (one, two) = (open(1), open(2));
    for _ in 0..300 {
        one.connect(&two.address(), soon()).expect("connected");
        one.drop_peer(2);
        let within = Duration::from_secs(20);
        assert_eq!(
            two.next_event(within),
            Some(StationEvent::Connected { id: 1 })
        );
        let closed = two.next_event(within);
        assert!(
            matches!(closed, Some(StationEvent::Closed { id: 1, .. })),
            "{closed:?}"
        );
        two.drop_peer(1);
        assert_eq!(one.next_event(Duration::ZERO), None);
    }
}

#[test]
fn an_interrupted_wait_for_events_ends_once() {
    let directory = directory();
    let station = Station::open(&options(directory.path(), 1)).expect("a station");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| station.next_event(Duration::from_secs(20)));
        thread::sleep(Duration::from_millis(20));
        station.interrupt();
        assert_eq!(waiting.join().expect("no panic"), None);
    });
    station.interrupt();
    let since = Instant::now();
    assert_eq!(station.next_event(Duration::from_secs(20)), None);
    assert!(since.elapsed() < Duration::from_secs(20), "said before");
    assert_eq!(station.next_event(Duration::from_millis(1)), None);
}

#[test]
fn closing_ends_blocked_calls() {
    let directory = directory();
    let silent = Process::start(directory.path(), 2);
    silent.stop();
    let address = address_of(&silent);
    let one = Station::open(&options(directory.path(), 1)).expect("a station");
    let request = SegmentRequest {
        key: SegmentKey { epoch: 1, index: 0 },
        members: vec![1, 2],
        me: Rank(0),
        row_lens: vec![4096; 2],
        control: true,
    };
    thread::scope(|scope| {
        let calls = scope.spawn(|| one.connect(&address, soon()));
        let makes = scope.spawn(|| one.segment(&request, soon()).map(drop));
        let looks = scope.spawn(|| one.next_event(Duration::MAX));
        thread::sleep(Duration::from_millis(20));
        one.close();
        let called = calls.join().expect("no panic");
        assert!(matches!(called, Err(StationError::Closed)), "{called:?}");
        let made = makes.join().expect("no panic");
        assert!(matches!(made, Err(StationError::Closed)), "{made:?}");
        assert_eq!(looks.join().expect("no panic"), None);
    });
    one.close();
    assert!(one.send(2, b"x").is_err());
    let left = std::fs::read_dir(directory.path()).expect("a directory");
    let names = left.map(|entry| entry.expect("an entry").file_name());
    let stations = names.filter(|name| name.to_string_lossy().ends_with(".station"));
    assert_eq!(stations.count(), 1, "only that of the other");
}

fn address_of(process: &Process) -> Vec<u8> {
    (0..process.address.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&process.address[at..at + 2], 16).expect("hex"))
        .collect()
}
