//! Streams to and from misbehaving peers, represented by a socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use spindle_dds_transport::hybrid::{HybridSegment, NetworkOptions, Station};
use spindle_dds_transport::tcp::StreamOptions;
use spindle_dds_transport::{
    FABRIC_AREA, Fabric, FailureCause, Park, PeerFailure, PeerSet, Rank, SegmentKey,
    SegmentRequest, WakeInterest, WakeReason,
};

use super::group::{self, apart, network, segment, soon, until};
use super::raw::peer;

const A: usize = FABRIC_AREA;
const ROW_LEN: usize = 4096;

fn only(rank: u16) -> PeerSet {
    [Rank(rank)].into_iter().collect()
}

const KEY: SegmentKey = SegmentKey { epoch: 1, index: 2 };

fn request(key: SegmentKey, row_len: usize, control: bool) -> SegmentRequest {
    SegmentRequest {
        key,
        members: vec![10, 11],
        me: Rank(0),
        row_lens: vec![row_len; 2],
        control,
    }
}

/// A station, its control segment, in which the peer uses slot 7, and the peer.
struct Alone {
    fabric: HybridSegment,
    station: Station,
    peer: TcpStream,
}

fn patient(streams: StreamOptions) -> NetworkOptions {
    NetworkOptions {
        streams,
        ..network()
    }
}

fn alone(row_len: usize, streams: &StreamOptions) -> Alone {
    let station = group::alone(10, patient(*streams));
    let mut peer = peer(&station, 11);
    let made = station.segment(&request(KEY, row_len, true), soon());
    let fabric = made.expect("a segment");
    peer.write_all(&opening(7, KEY)).expect("sent");
    Alone {
        fabric,
        station,
        peer,
    }
}

/// Sleeps until a failure is reported.
fn failure(fabric: &HybridSegment) -> PeerFailure {
    loop {
        if let Some(failure) = fabric.poll() {
            return failure;
        }
        fabric.announce_sleep(WakeInterest::Data);
        if let Some(failure) = fabric.poll() {
            fabric.announce_awake();
            return failure;
        }
        fabric.park(None);
        fabric.announce_awake();
    }
}

/// The peer's failure, reported once, with a reason that contains `words`.
fn told(fabric: &HybridSegment, words: &str) {
    let PeerFailure { peer, cause } = failure(fabric);
    assert_eq!(peer, Rank(1));
    match &cause {
        FailureCause::Unreachable(reason) => assert!(reason.contains(words), "{reason}"),
        FailureCause::ProcessEnded => panic!("{cause:?}"),
    }
    thread::sleep(Duration::from_millis(5));
    assert_eq!(fabric.poll(), None, "told again");
}

fn header(at: u64, len: u32, slot: u16, kind: &[u8; 2]) -> Vec<u8> {
    let [at, len, slot] = [
        &at.to_le_bytes()[..],
        &len.to_le_bytes(),
        &slot.to_le_bytes(),
    ];
    [at, len, slot, kind].concat()
}

fn record(at: u64, len: u32, kind: &[u8; 2]) -> Vec<u8> {
    header(at, len, 7, kind)
}

fn opening(slot: u16, key: SegmentKey) -> Vec<u8> {
    header(key.epoch, key.index, slot, b"op")
}

fn word(slot: u16, value: u64) -> Vec<u8> {
    [header(A as u64, 8, slot, b"wr"), value.to_le_bytes().into()].concat()
}

#[test]
fn an_invalid_record_is_its_senders_failure() {
    let check = |bytes: &[u8], words: &str| {
        let mut group = alone(ROW_LEN, &StreamOptions::default());
        let good = [&record(A as u64, 8, b"wr")[..], &7_u64.to_le_bytes()].concat();
        group.peer.write_all(&good).expect("sent");
        group.peer.write_all(bytes).expect("sent");
        told(&group.fabric, words);
        let row = group.fabric.row(Rank(1));
        assert_eq!(row.load(A), 7, "what came before it has landed");
        let rest = (0..ROW_LEN).step_by(8).filter(|&at| at != A);
        assert!(rest.map(|at| row.load(at)).all(|word| word == 0), "{words}");
        // The peer notices.
        let _ = group.peer.read_to_end(&mut Vec::new());
        // Pushing to it has no effect, and does no harm.
        group.fabric.push_word(A, 1, &only(1));
        group.fabric.wake(&only(1), WakeReason::Data);
    };
    let row = ROW_LEN as u64;
    let with_bytes = |header: Vec<u8>| [header, vec![0xff; 64]].concat();
    check(&with_bytes(record(row, 8, b"wr")), "outside its row");
    check(
        &with_bytes(record(u64::MAX - 7, 8, b"wr")),
        "outside its row",
    );
    check(
        &with_bytes(record(A as u64 + 4, 8, b"wr")),
        "no whole words",
    );
    check(&with_bytes(record(A as u64, 9, b"wr")), "no whole words");
    check(&with_bytes(record(A as u64, 0, b"wr")), "of no bytes");
    check(&with_bytes(record(A as u64, u32::MAX, b"wr")), "more than");
    check(&with_bytes(record(0, 8, b"wr")), "the fabric's own");
    check(&with_bytes(record(A as u64, 8, b"??")), "unknown kind");
    check(
        &with_bytes(record(A as u64, 8, b"rd")),
        "which it cannot have",
    );
    check(&record(0, 0, b"ra"), "in slot 7 that belongs in none");
    check(&header(A as u64, 8, 6, b"wr"), "no segment");
    check(&header(0, 0, 6, b"sh"), "no segment");
    check(&opening(7, KEY), "a segment already");
    check(&[0xff; 1000], "unknown kind");
}

#[test]
fn streams_that_end_or_break_are_failures_with_reasons() {
    let ended = |bytes: &[u8], words: &str| {
        let mut group = alone(ROW_LEN, &StreamOptions::default());
        group.peer.write_all(bytes).expect("sent");
        drop(group.peer);
        told(&group.fabric, words);
    };
    ended(&[], "ended its stream");
    ended(&record(A as u64, 8, b"wr")[..7], "ended inside a record");
    ended(&record(A as u64, 8, b"wr"), "ended inside a record");
    let word_and_half = [&record(A as u64, 16, b"wr")[..], &[1; 12]].concat();
    ended(&word_and_half, "ended inside a record");

    let group = alone(ROW_LEN, &StreamOptions::default());
    let at_once = Some(Duration::ZERO);
    rustix::net::sockopt::set_socket_linger(&group.peer, at_once).expect("set");
    drop(group.peer);
    // Which reason it is depends on which thread notices first.
    told(&group.fabric, "its stream");
}

/// Of a stream that ends inside a record, the whole words have landed.
#[test]
fn half_a_word_never_lands() {
    let mut group = alone(ROW_LEN, &StreamOptions::default());
    let bytes = [&record(A as u64, 16, b"wr")[..], &[1; 12]].concat();
    group.peer.write_all(&bytes).expect("sent");
    drop(group.peer);
    told(&group.fabric, "ended inside a record");
    let row = group.fabric.row(Rank(1));
    assert_eq!(
        (row.load(A), row.load(A + 8)),
        (u64::from_le_bytes([1; 8]), 0)
    );
}

/// The last pushes of a member that leaves land before its end is reported, and the reason is
/// that it has closed, although bytes that it has not read turn the end into a reset.
#[test]
fn last_pushes_land_before_a_final_record() {
    for value in 1..50 {
        let mut stations = apart(2, &network());
        let mut group = segment(&stations, ROW_LEN);
        let (station, leaver) = (stations.pop(), group.pop().expect("two"));
        group[0].push(A, 512, &only(1));
        group[0].wake(&only(1), WakeReason::Data);
        leaver.push_word(A, value, &only(0));
        leaver.wake(&only(0), WakeReason::Data);
        drop((leaver, station));
        let PeerFailure { peer, cause } = failure(&group[0]);
        assert_eq!((peer, group[0].row(Rank(1)).load(A)), (Rank(1), value));
        assert!(
            cause.to_string().contains("has closed the connection"),
            "{cause}"
        );
    }
}

/// A peer that reads nothing blocks neither the pusher nor other members; at the bound it has
/// failed.
#[test]
fn a_peer_that_reads_nothing_fails_at_the_bound() {
    let options = StreamOptions {
        waiting_max: 1000,
        ..StreamOptions::default()
    };
    let row_len = 1 << 20;
    let group = alone(row_len, &options);
    let fabric = &group.fabric;
    let mut value = 0;
    let failure = loop {
        if let Some(failure) = fabric.poll() {
            break failure;
        }
        value += 1;
        fabric.push(A, row_len - A, &only(1));
        fabric.push_word(A, value, &only(1));
        fabric.wake(&only(1), WakeReason::Data);
    };
    assert!(
        failure.cause.to_string().contains("1000 records wait"),
        "{failure:?}"
    );
    assert!(value > 400, "{value}");
    let link = group.station.stream_state(11).expect("a link");
    assert_eq!((link.sending, link.waiting), (false, 0));
    fabric.push_word(A, value, &only(1));
    assert_eq!(fabric.poll(), None, "told again");
}

/// Acknowledgements that a peer does not read do not accumulate.
#[test]
fn a_range_that_waits_is_not_queued_again() {
    let options = StreamOptions {
        waiting_max: 8,
        ..StreamOptions::default()
    };
    let row_len = 1 << 20;
    let Alone {
        fabric,
        peer: mut reads,
        station: _there,
    } = alone(row_len, &options);
    // More than the kernel buffers.
    for _ in 0..40 {
        fabric.push(A, row_len - A, &only(1));
        fabric.wake(&PeerSet::EMPTY, WakeReason::Data);
    }
    for value in 1..100_000 {
        fabric.store(A, value);
        fabric.push(A, 64, &only(1));
        fabric.wake(&PeerSet::EMPTY, WakeReason::Data);
    }
    assert_eq!(fabric.poll(), None);
    // Finally it reads: the newest value arrives.
    let mut seen = 0;
    let mut header = [0; 16];
    let mut bytes = Vec::new();
    while seen != 99_999 {
        reads.read_exact(&mut header).expect("a header");
        if header[14..] == *b"op" {
            continue;
        }
        let at = usize::from_le_bytes(header[..8].try_into().expect("eight bytes"));
        let len = u32::from_le_bytes(header[8..12].try_into().expect("four bytes"));
        assert_eq!(&header[14..], b"wr");
        bytes.resize(len as usize, 0);
        reads.read_exact(&mut bytes).expect("its bytes");
        if at == A {
            let now = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
            assert!(now >= seen, "{now} after {seen}");
            seen = now;
        }
    }
}

#[test]
fn a_peer_that_acknowledges_nothing_in_time_has_failed() {
    let options = StreamOptions {
        user_timeout: Duration::from_millis(100),
        ..StreamOptions::default()
    };
    let row_len = 32 << 20;
    let group = alone(row_len, &options);
    group.fabric.push(A, row_len - A, &only(1));
    group.fabric.wake(&only(1), WakeReason::Data);
    told(&group.fabric, "broke");
}

#[test]
fn long_ranges_arrive_whole_and_wake_a_sleeper() {
    let row_len = 3 << 20;
    let stations = apart(3, &network());
    let group = segment(&stations, row_len);
    let to = [Rank(1), Rank(2)].into_iter().collect();
    let mine = group[0].row(Rank(0));
    for round in 1..=3_u64 {
        for at in (A + 8..row_len).step_by(8) {
            group[0].store(at, round << 32 | at as u64);
        }
        group[1].announce_sleep(WakeInterest::Data);
        group[0].push(A + 8, row_len - A - 8, &to);
        group[0].push_word(A, round, &to);
        group[0].wake(&to, WakeReason::Data);
        assert!(group[1].park(None));
        group[1].announce_awake();
        for fabric in &group[1..] {
            let row = fabric.row(Rank(0));
            while row.load(A) < round {
                thread::yield_now();
            }
            let differs = (A..row_len)
                .step_by(8)
                .find(|&at| row.load(at) != mine.load(at));
            assert_eq!(differs, None, "round {round}");
        }
    }
}

#[test]
fn invalid_segments_are_refused() {
    let Alone {
        station, fabric, ..
    } = alone(ROW_LEN, &StreamOptions::default());
    let refused = |request: SegmentRequest| {
        let made = station.segment(&request, soon());
        made.expect_err("refused").to_string()
    };
    let new = request(SegmentKey { epoch: 1, index: 3 }, ROW_LEN, false);
    let members = |members: &[u128]| SegmentRequest {
        members: members.to_vec(),
        ..new.clone()
    };
    assert!(refused(members(&[10])).contains("1 members and 2 rows"));
    assert!(refused(members(&[11, 10])).contains("rank 0 is not member"));
    assert!(refused(members(&[10, 10])).contains("named twice"));
    let long = SegmentRequest {
        row_lens: vec![8, usize::MAX],
        ..new.clone()
    };
    assert!(refused(long).contains("at most 2^40"));
    assert!(refused(request(KEY, ROW_LEN, true)).contains("there already"));
    let old = SegmentKey { epoch: 0, index: 9 };
    assert!(refused(request(old, ROW_LEN, true)).contains("over"));
    drop(fabric);
    assert!(refused(request(KEY, ROW_LEN, true)).contains("over"));
}

/// A record for a segment that is not open stops the stream: nothing that follows it is seen
/// before the segment is opened or forgotten.
#[test]
fn a_stream_waits_for_its_segments() {
    let mut group = alone(ROW_LEN, &StreamOptions::default());
    let index = |index| SegmentKey { epoch: 1, index };
    let stream = [
        word(7, 1),
        opening(1, index(5)),
        word(1, 2),
        opening(2, index(6)),
        word(2, 3),
        word(7, 4),
    ];
    group.peer.write_all(&stream.concat()).expect("sent");
    let blocked = || {
        group
            .station
            .stream_state(11)
            .is_some_and(|link| link.blocked)
    };
    until(blocked);
    let row = group.fabric.row(Rank(1));
    assert_eq!(row.load(A), 1);
    let request = |key| request(key, ROW_LEN, false);
    let made = group.station.segment(&request(index(5)), soon());
    let made = made.expect("a segment");
    until(|| made.row(Rank(1)).load(A) == 2);
    until(blocked);
    assert_eq!(row.load(A), 1);
    group.station.forget(index(6));
    until(|| row.load(A) == 4);
    // A dropped segment loses what arrives for it, and nothing else.
    drop(made);
    let stream = [word(1, 5), header(0, 0, 1, b"sh"), word(7, 6)];
    group.peer.write_all(&stream.concat()).expect("sent");
    until(|| row.load(A) == 6);
    // So does a segment of an epoch that is over.
    let newer = SegmentKey { epoch: 2, index: 0 };
    let _newer = group.station.segment(&request(newer), soon());
    let stream = [opening(1, index(9)), word(1, 7), word(7, 8)];
    group.peer.write_all(&stream.concat()).expect("sent");
    until(|| row.load(A) == 8);
    assert_eq!(group.fabric.poll(), None);
}

/// A peer that dies while its stream waits has failed at once.
#[test]
fn a_peer_whose_stream_waits_can_fail() {
    let mut group = alone(ROW_LEN, &StreamOptions::default());
    let unknown = opening(1, SegmentKey { epoch: 1, index: 5 });
    group.peer.write_all(&unknown).expect("sent");
    until(|| {
        group
            .station
            .stream_state(11)
            .is_some_and(|link| link.blocked)
    });
    drop(group.peer);
    told(&group.fabric, "ended its stream");
}

/// A peer that opens a segment of which it is not a member violates the protocol.
#[test]
fn a_peer_that_is_not_a_member_of_a_segment_is_refused() {
    let mut group = alone(ROW_LEN, &StreamOptions::default());
    let key = SegmentKey { epoch: 1, index: 5 };
    let mine = SegmentRequest {
        members: vec![10, 12],
        ..request(key, ROW_LEN, false)
    };
    let _other = peer(&group.station, 12);
    let _mine = group.station.segment(&mine, soon()).expect("a segment");
    group.peer.write_all(&opening(1, key)).expect("sent");
    told(&group.fabric, "of which it is no member");
}

/// Slots are reused; late pushes of the old segment do not reach the new one.
#[test]
fn segments_come_and_go() {
    let stations = apart(2, &network());
    let open = |me: usize, index| {
        let request = group::request(&stations, me, index, ROW_LEN);
        stations[me].segment(&request, soon()).expect("a segment")
    };
    for index in 0..300 {
        let near = open(0, index);
        near.store(A, u64::from(index) + 1);
        near.push(A, 64, &only(1));
        let far = open(1, index);
        near.push_word(A + 64, 1, &only(1));
        // When dropped, it sends what was held back.
        drop(near);
        until(|| far.row(Rank(0)).load(A + 64) == 1);
        assert_eq!(far.row(Rank(0)).load(A), u64::from(index) + 1);
    }
}
