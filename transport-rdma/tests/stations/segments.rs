//! Segments between processes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use spindle_dds_transport::shm::{
    DoorbellChoice, HostOptions, SegmentKey, SegmentRequest, ShmSegment, Station, StationError,
};
use spindle_dds_transport::{FABRIC_AREA, Fabric, Park, PeerSet, Rank, WakeInterest, WakeReason};

use crate::child::{Process, ask_all, options};
use crate::directory;

const ALL_THERE: &str = "made, without {}";

#[test]
fn segments_of_different_members_are_used_side_by_side() {
    let directory = directory();
    let mut all = Process::connected(directory.path(), 3);
    let segments: BTreeMap<u64, &[usize]> =
        BTreeMap::from([(1, &[1, 2][..]), (2, &[2, 3]), (3, &[3, 1, 2])]);
    for (epoch, members) in &segments {
        let names: Vec<_> = members.iter().map(ToString::to_string).collect();
        for &member in *members {
            all[member - 1].tell(&format!("make {epoch} {}", names.join(",")));
        }
        for &member in *members {
            assert_eq!(all[member - 1].hear(), ALL_THERE);
        }
    }
    for (epoch, members) in &segments {
        for &member in *members {
            let push = format!("push {epoch} {}", epoch * 10 + member as u64);
            assert_eq!(all[member - 1].ask(&push), "pushed");
        }
    }
    for (epoch, members) in &segments {
        for (rank, &of) in members.iter().enumerate() {
            for &member in *members {
                let seen = all[member - 1].ask(&format!("read {epoch} {rank}"));
                assert_eq!(seen, (epoch * 10 + of as u64).to_string());
            }
        }
    }
}

#[test]
fn a_push_in_any_segment_wakes_a_sleeper_of_another() {
    let directory = directory();
    let mut all = Process::connected(directory.path(), 2);
    for epoch in [1, 2] {
        let made = ask_all(&mut all, |_| format!("make {epoch} 1,2"));
        assert_eq!(made, [ALL_THERE; 2]);
    }
    for value in 1..20 {
        for (sleeper, waker, rank) in [(0, 1, 1), (1, 0, 0)] {
            let epoch = 1 + value % 2;
            assert_eq!(
                all[sleeper].ask(&format!("await {epoch} {rank} {value}")),
                "waiting"
            );
            assert_eq!(all[waker].ask(&format!("push {epoch} {value}")), "pushed");
            assert_eq!(all[sleeper].hear(), "seen");
        }
    }
}

#[test]
fn order_holds_over_segments_while_others_are_made() {
    let directory = directory();
    let mut all = Process::connected(directory.path(), 2);
    for epoch in [1, 2] {
        assert_eq!(
            ask_all(&mut all, |_| format!("make {epoch} 1,2")),
            [ALL_THERE; 2]
        );
    }
    let last = 3_000_000;
    assert_eq!(all[1].ask(&format!("watch 1 2 {last}")), "working");
    assert_eq!(all[0].ask(&format!("write 1 2 {last}")), "working");
    for epoch in 3..30 {
        assert_eq!(
            ask_all(&mut all, |_| format!("make {epoch} 1,2")),
            [ALL_THERE; 2]
        );
        all.iter_mut()
            .for_each(|one| drop(one.ask(&format!("drop {epoch}"))));
    }
    assert_eq!(all[0].ask("join"), "written");
    assert_eq!(all[1].ask("join"), "in order");
}

#[test]
fn descriptors_and_mappings_stay_flat_over_a_thousand_segments() {
    let directory = directory();
    let mut all = Process::connected(directory.path(), 2);
    for answer in ask_all(&mut all, |_| "cycle 500 1,2".into()) {
        let (before, after) = answer.split_once(" Some").expect("two");
        let after = format!("Some{after}");
        // Rows of an exchange may be in flight, before and after.
        assert!(rows(&after) <= rows(before) + 1, "{answer}");
        assert!(descriptors(&after) <= descriptors(before) + 2, "{answer}");
    }
}

/// Spare resources of a participant: `Some((descriptors, rows))`.
fn fields(text: &str) -> Vec<usize> {
    let digits = |c: char| !c.is_ascii_digit();
    let words = text.split(digits).filter(|word| !word.is_empty());
    words.map(|word| word.parse().expect("a number")).collect()
}

fn descriptors(text: &str) -> usize {
    fields(text)[0]
}

fn rows(text: &str) -> usize {
    fields(text)[1]
}

#[test]
fn unrequested_rows_are_freed_when_forgotten() {
    let directory = directory();
    let mut all = Process::connected(directory.path(), 2);
    let before = all[1].ask("spare");
    assert_eq!(all[0].ask("make 5 1,2 100"), "made, without {1}");
    // It is mapped as it arrives, and keeps no descriptor.
    let arrived = rows(&before) + 1;
    let start = Instant::now();
    while rows(&all[1].ask("spare")) != arrived {
        assert!(start.elapsed() < Duration::from_secs(20), "it never comes");
    }
    assert_eq!(all[1].ask("forget 5"), "forgotten");
    assert_eq!(all[1].ask("spare"), before);
}

#[test]
fn an_early_row_is_kept() {
    let directory = directory();
    let mut all = Process::connected(directory.path(), 2);
    all[0].tell("make 1 1,2");
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(all[1].ask("make 1 1,2"), ALL_THERE);
    assert_eq!(all[0].hear(), ALL_THERE);
}

#[test]
fn a_member_with_another_row_than_agreed_is_absent_with_a_reason() {
    let directory = directory();
    let mut all = Process::connected(directory.path(), 2);
    let made = ask_all(&mut all, |at| format!("make 1 1,2 20000 {}", 4096 << at));
    assert_eq!(made, ["made, without {1}", "made, without {0}"]);
    let told = all[0].ask("poll 1");
    assert!(
        told.contains("8192 bytes") && told.contains("4096"),
        "{told}"
    );
    assert_eq!(all[0].ask("poll 1"), "None");
    assert_eq!(all[0].ask("read 1 1"), "0");
}

#[test]
fn a_member_that_cannot_make_its_row_fails_and_tells_the_others_why() {
    let directory = directory();
    let mut all = Process::connected(directory.path(), 2);
    assert_eq!(all[1].ask("leave_descriptors 0"), "left");
    let made = ask_all(&mut all, |_| "make 1 1,2".into());
    assert!(made[1].contains("Too many open files"), "{}", made[1]);
    assert_eq!(made[0], "made, without {1}");
    let told = all[0].ask("poll 1");
    assert!(told.contains("Too many open files"), "{told}");
    assert_eq!(all[1].ask("free_descriptors"), "freed");
    let made = ask_all(&mut all, |_| "make 2 1,2".into());
    assert_eq!(made, [ALL_THERE; 2], "still connected");
}

fn request(key: u64, members: &[u128], me: u16) -> SegmentRequest {
    SegmentRequest {
        key: SegmentKey {
            epoch: key,
            index: 0,
        },
        members: members.into(),
        me: Rank(me),
        row_lens: vec![4096; members.len()],
        control: false,
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

#[test]
fn invalid_requests_are_refused() {
    let directory = directory();
    let station = Station::open(&options(directory.path(), 1)).expect("a station");
    let good = request(1, &[1], 0);
    let kept = station.segment(&good, soon()).expect("alone");
    let wrong_rows = SegmentRequest {
        row_lens: vec![],
        ..request(2, &[1], 0)
    };
    let cases = [
        request(1, &[1], 0),
        request(2, &[], 0),
        request(2, &[1], 1),
        request(2, &[2, 1], 0),
        request(2, &[1, 3, 3], 0),
        wrong_rows,
    ];
    for case in cases {
        let error = station.segment(&case, soon()).expect_err("nonsense");
        assert!(matches!(error, StationError::Segment { .. }), "{error}");
    }
    // All segments of an exchange, or none.
    let twice = [request(3, &[1], 0), request(3, &[1], 0)];
    assert!(station.segments(&twice, soon()).is_err());
    drop(kept);
    for key in [1, 2, 3] {
        let again = station.segment(&request(key, &[1], 0), soon());
        assert!(again.is_ok(), "{again:?}");
    }
}

#[test]
fn rows_stay_mapped_while_a_region_lives_and_segments_work_without_their_station() {
    let directory = directory();
    let station = Station::open(&options(directory.path(), 1)).expect("a station");
    let segment = station.segment(&request(1, &[1], 0), soon()).expect("one");
    drop(station);
    segment.push_word(FABRIC_AREA, 7, &PeerSet::EMPTY);
    segment.announce_sleep(WakeInterest::Data);
    segment.nudge();
    assert!(segment.park(None));
    segment.announce_awake();
    let row = segment.row(Rank(0)).clone();
    drop(segment);
    assert_eq!(row.load(FABRIC_AREA), 7);
}

/// Of two rows in one exchange, the other member hands over one.
#[test]
fn a_member_missing_in_one_segment_is_reported_by_the_control_segment_of_the_exchange() {
    let directory = directory();
    let open = |id| Station::open(&options(directory.path(), id)).expect("a station");
    let (one, two) = (open(1), open(2));
    one.connect(&two.address(), soon()).expect("connected");
    let control = |me| SegmentRequest {
        control: true,
        ..request(1, &[1, 2], me)
    };
    let index = request(2, &[1, 2], 0);
    let (made, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| two.segment(&control(1), soon()).expect("one"));
        let within = Instant::now() + Duration::from_millis(300);
        let made = one.segments(&[index, control(0)], within).expect("two");
        (made, other.join().expect("no panic"))
    });
    assert_eq!(made[0].absent().len(), 1);
    assert!(made[1].absent().is_empty());
    let failure = made[1].poll().expect("told");
    assert_eq!(failure.peer, Rank(1));
    assert!(made[1].poll().is_none() && made[0].poll().is_none());
    assert!(other.poll().is_none(), "it knows of nothing");
}

#[test]
fn a_new_peer_wakes_a_sleeper() {
    let directory = directory();
    let open = |id| Station::open(&options(directory.path(), id)).expect("a station");
    let (one, two) = (open(1), open(2));
    let alone = one.segment(&request(1, &[1], 0), soon()).expect("alone");
    alone.announce_sleep(WakeInterest::Data);
    one.connect(&two.address(), soon()).expect("connected");
    let both = std::thread::scope(|scope| {
        let first = scope.spawn(|| one.segment(&request(2, &[1, 2], 0), soon()));
        let second = two.segment(&request(2, &[1, 2], 1), soon());
        [first.join().expect("no panic"), second].map(|made| made.expect("a segment"))
    });
    let to: PeerSet = [Rank(0)].into_iter().collect();
    both[1].push_word(FABRIC_AREA, 1, &to);
    both[1].wake(&to, WakeReason::Data);
    assert!(alone.park(None), "by a peer that it did not know");
    alone.announce_awake();
}

/// With more than 128 doorbells to wait for, a sleeper changes to its event descriptor.
#[test]
fn sleep_changes_to_the_event_descriptor_with_many_peers_and_back() {
    let directory = directory();
    let open = |id: u128| {
        let options = HostOptions {
            doorbell: DoorbellChoice::Auto,
            ..options(directory.path(), id)
        };
        Station::open(&options).expect("a station")
    };
    let stations: Vec<_> = (1..=131).map(open).collect();
    let hub = &stations[0];
    let peers = &stations[1..];
    let make = |epoch: u64, at: usize| {
        std::thread::scope(|scope| {
            let members = [1, peers[at].id()];
            let other =
                scope.spawn(move || peers[at].segment(&request(epoch, &members, 1), soon()));
            let mine = hub
                .segment(&request(epoch, &members, 0), soon())
                .expect("mine");
            (mine, other.join().expect("no panic").expect("the other's"))
        })
    };
    let rings = |(mine, other): &(ShmSegment, ShmSegment), value: u64| {
        for (sleeper, waker, to) in [(mine, other, 0), (other, mine, 1)] {
            let to: PeerSet = [Rank(to)].into_iter().collect();
            sleeper.announce_sleep(WakeInterest::Data);
            waker.push_word(FABRIC_AREA, value, &to);
            waker.wake(&to, WakeReason::Data);
            assert!(sleeper.park(None));
            sleeper.announce_awake();
        }
    };
    hub.connect(&peers[0].address(), soon()).expect("connected");
    let first = make(1, 0);
    rings(&first, 1);
    for peer in &peers[1..] {
        hub.connect(&peer.address(), soon()).expect("connected");
    }
    let last = make(2, peers.len() - 1);
    rings(&first, 2);
    rings(&last, 2);
    for peer in &peers[1..] {
        hub.drop_peer(peer.id());
    }
    rings(&first, 3);
}
