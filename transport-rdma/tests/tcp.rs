//! The TCP backend among peers that misbehave: a socket takes their part.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use spindle_dds_transport::tcp::{LinkError, Links, TcpFabric, TcpOptions, local_group};
use spindle_dds_transport::{
    FABRIC_AREA, Fabric, Failure, FailureCause, Park, PeerSet, Rank, Want,
};

const A: usize = FABRIC_AREA;
const ROW_LEN: usize = 4096;

fn only(rank: u16) -> PeerSet {
    [Rank(rank)].into_iter().collect()
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
    (near, listener.accept().expect("accepted").0)
}

/// A fabric at rank 0, and the other ends of its streams to rank 1.
struct Alone {
    fabric: TcpFabric,
    /// What the fabric writes.
    reads: TcpStream,
    /// What the fabric reads.
    writes: TcpStream,
}

fn alone(row_len: usize, options: &TcpOptions) -> Alone {
    let mut links = Links::new(Rank(0), &[row_len; 2]).expect("a view");
    let (outgoing, reads) = pair();
    let (writes, incoming) = pair();
    links.add(Rank(1), outgoing, incoming).expect("a peer");
    let fabric = links.build(options).expect("a fabric");
    Alone {
        fabric,
        reads,
        writes,
    }
}

/// Sleeps until a failure is told.
fn failure(fabric: &TcpFabric) -> Failure {
    loop {
        if let Some(failure) = fabric.poll() {
            return failure;
        }
        fabric.announce_sleep(Want::Data);
        if let Some(failure) = fabric.poll() {
            fabric.announce_awake();
            return failure;
        }
        fabric.park(None);
        fabric.announce_awake();
    }
}

/// The peer's failure, whose reason says `words`, told once.
fn told(fabric: &TcpFabric, words: &str) {
    let Failure { peer, cause } = failure(fabric);
    assert_eq!(peer, Rank(1));
    match &cause {
        FailureCause::Unreachable(reason) => assert!(reason.contains(words), "{reason}"),
        FailureCause::ProcessEnded => panic!("{cause:?}"),
    }
    thread::sleep(Duration::from_millis(5));
    assert_eq!(fabric.poll(), None, "told again");
}

fn record(at: u64, len: u32, kind: &[u8; 4]) -> Vec<u8> {
    [&at.to_le_bytes()[..], &len.to_le_bytes(), kind].concat()
}

#[test]
fn what_is_no_record_is_its_senders_failure() {
    let check = |bytes: &[u8], words: &str| {
        let mut group = alone(ROW_LEN, &TcpOptions::default());
        let good = [&record(A as u64, 8, b"writ")[..], &7_u64.to_le_bytes()].concat();
        group.writes.write_all(&good).expect("sent");
        group.writes.write_all(bytes).expect("sent");
        told(&group.fabric, words);
        let row = group.fabric.row(Rank(1));
        assert_eq!(row.load(A), 7, "what came before it has landed");
        let rest = (0..ROW_LEN).step_by(8).filter(|&at| at != A);
        assert!(rest.map(|at| row.load(at)).all(|word| word == 0), "{words}");
        // The peer learns of it.
        let _ = group.reads.read_to_end(&mut Vec::new());
        // Pushing to it goes nowhere, and harms nobody.
        group.fabric.push_word(A, 1, &only(1));
        group.fabric.ring(&only(1), &PeerSet::EMPTY);
    };
    let row = ROW_LEN as u64;
    let with_bytes = |header: Vec<u8>| [header, vec![0xff; 64]].concat();
    check(&with_bytes(record(row, 8, b"writ")), "outside its row");
    check(
        &with_bytes(record(u64::MAX - 7, 8, b"writ")),
        "outside its row",
    );
    check(
        &with_bytes(record(A as u64 + 4, 8, b"writ")),
        "no whole words",
    );
    check(&with_bytes(record(A as u64, 9, b"writ")), "no whole words");
    check(&with_bytes(record(A as u64, 0, b"writ")), "of no bytes");
    check(
        &with_bytes(record(A as u64, u32::MAX, b"writ")),
        "more than",
    );
    check(&with_bytes(record(0, 8, b"writ")), "the fabric's own");
    check(&with_bytes(record(A as u64, 8, b"what")), "unknown kind");
    check(
        &with_bytes(record(A as u64, 8, b"data")),
        "that rings and has",
    );
    check(&[0xff; 1000], "unknown kind");
}

#[test]
fn streams_that_end_or_break_are_failures_with_reasons() {
    let ended = |bytes: &[u8], words: &str| {
        let mut group = alone(ROW_LEN, &TcpOptions::default());
        group.writes.write_all(bytes).expect("sent");
        drop(group.writes);
        told(&group.fabric, words);
    };
    ended(&[], "ended its stream");
    ended(&record(A as u64, 8, b"writ")[..7], "ended inside a record");
    ended(&record(A as u64, 8, b"writ"), "ended inside a record");
    let word_and_half = [&record(A as u64, 16, b"writ")[..], &[1; 12]].concat();
    ended(&word_and_half, "ended inside a record");

    let group = alone(ROW_LEN, &TcpOptions::default());
    let at_once = Some(Duration::ZERO);
    rustix::net::sockopt::set_socket_linger(&group.writes, at_once).expect("set");
    drop(group.writes);
    told(&group.fabric, "broke");
}

/// Of a stream that ends inside a record, the whole words have landed.
#[test]
fn half_a_word_never_lands() {
    let mut group = alone(ROW_LEN, &TcpOptions::default());
    let bytes = [&record(A as u64, 16, b"writ")[..], &[1; 12]].concat();
    group.writes.write_all(&bytes).expect("sent");
    drop(group.writes);
    told(&group.fabric, "ended inside a record");
    let row = group.fabric.row(Rank(1));
    assert_eq!(
        (row.load(A), row.load(A + 8)),
        (u64::from_le_bytes([1; 8]), 0)
    );
}

/// The peer closes the stream that I write, but goes on with its own for ever.
#[test]
fn a_peer_that_stops_reading_for_good_is_told_in_time() {
    let options = TcpOptions {
        user_timeout: Duration::from_millis(50),
        ..TcpOptions::default()
    };
    let group = alone(ROW_LEN, &options);
    drop(group.reads);
    told(&group.fabric, "ended its stream");
    drop(group.writes);
}

/// The last words of a member that leaves come before the news of its end,
/// though they come by another stream.
#[test]
fn last_words_come_before_the_end() {
    for value in 1..200 {
        let mut group = local_group(&[ROW_LEN; 2], &TcpOptions::default()).expect("a group");
        let leaver = group.pop().expect("two");
        // Unread bytes of mine at the leaver turn its end into a reset.
        group[0].push(A, 512, &only(1));
        group[0].ring(&only(1), &PeerSet::EMPTY);
        leaver.push_word(A, value, &only(0));
        leaver.ring(&only(0), &PeerSet::EMPTY);
        drop(leaver);
        let Failure { peer, .. } = failure(&group[0]);
        assert_eq!((peer, group[0].row(Rank(1)).load(A)), (Rank(1), value));
    }
}

/// A peer that reads nothing holds up nobody: not the pusher, not the others;
/// at the bound it has failed.
#[test]
fn a_peer_that_reads_nothing_fails_at_the_bound() {
    let options = TcpOptions {
        waiting_max: 1000,
        ..TcpOptions::default()
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
        fabric.ring(&only(1), &PeerSet::EMPTY);
    };
    assert!(
        failure.cause.to_string().contains("1000 records wait"),
        "{failure:?}"
    );
    assert!(value > 400, "{value}");
    let link = fabric.link(Rank(1)).expect("a link");
    assert_eq!((link.sending, link.waiting), (false, 0));
    fabric.push_word(A, value, &only(1));
    assert_eq!(fabric.poll(), None, "told again");
}

/// Acknowledgements that nobody takes do not pile up.
#[test]
fn ranges_that_wait_already_take_no_more_room() {
    let options = TcpOptions {
        waiting_max: 8,
        ..TcpOptions::default()
    };
    let row_len = 1 << 20;
    let Alone {
        fabric,
        mut reads,
        writes: _open,
    } = alone(row_len, &options);
    // More than the kernel takes.
    for _ in 0..40 {
        fabric.push(A, row_len - A, &only(1));
        fabric.ring(&PeerSet::EMPTY, &PeerSet::EMPTY);
    }
    for value in 1..100_000 {
        fabric.store(A, value);
        fabric.push(A, 64, &only(1));
        fabric.ring(&PeerSet::EMPTY, &PeerSet::EMPTY);
    }
    assert_eq!(fabric.poll(), None);
    // At last it reads: the newest value comes.
    let mut seen = 0;
    let mut header = [0; 16];
    let mut bytes = Vec::new();
    while seen != 99_999 {
        reads.read_exact(&mut header).expect("a header");
        let at = usize::from_le_bytes(header[..8].try_into().expect("eight bytes"));
        let len = u32::from_le_bytes(header[8..12].try_into().expect("four bytes"));
        assert_eq!(&header[12..], b"writ");
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
    let options = TcpOptions {
        user_timeout: Duration::from_millis(100),
        ..TcpOptions::default()
    };
    let row_len = 32 << 20;
    let group = alone(row_len, &options);
    group.fabric.push(A, row_len - A, &only(1));
    group.fabric.ring(&only(1), &PeerSet::EMPTY);
    told(&group.fabric, "broke");
}

#[test]
fn long_ranges_arrive_whole_and_wake_who_sleeps() {
    let row_len = 3 << 20;
    let group = local_group(&[row_len; 3], &TcpOptions::default()).expect("a group");
    let to = [Rank(1), Rank(2)].into_iter().collect();
    let mine = group[0].row(Rank(0));
    for round in 1..=3_u64 {
        for at in (A + 8..row_len).step_by(8) {
            group[0].store(at, round << 32 | at as u64);
        }
        group[1].announce_sleep(Want::Data);
        group[0].push(A + 8, row_len - A - 8, &to);
        group[0].push_word(A, round, &to);
        group[0].ring(&to, &PeerSet::EMPTY);
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
fn parking_ends_in_time_and_by_nudges() {
    let group = local_group(&[ROW_LEN; 2], &TcpOptions::default()).expect("a group");
    let fabric = &group[0];
    fabric.announce_sleep(Want::Data);
    assert!(!fabric.park(Some(Duration::from_millis(1))));
    fabric.nudge();
    assert!(fabric.park(None), "remembered");
    fabric.announce_awake();
    fabric.announce_sleep(Want::Data);
    assert!(!fabric.park(Some(Duration::ZERO)), "not for the next time");
    fabric.announce_awake();
    assert_eq!(fabric.counters().nudges, 1);
}

#[test]
fn links_that_make_no_view_are_refused() {
    let refused = |links: Result<Links, LinkError>| links.expect_err("refused").to_string();
    assert!(refused(Links::new(Rank(0), &[])).contains("1 to 256"));
    assert!(refused(Links::new(Rank(0), &[8; 257])).contains("1 to 256"));
    assert!(refused(Links::new(Rank(2), &[8; 2])).contains("no peer"));
    assert!(refused(Links::new(Rank(0), &[8, usize::MAX])).contains("member 1"));
    let mut links = Links::new(Rank(0), &[512; 3]).expect("a view");
    let mut add = |rank| {
        let ((one, _), (other, _)) = (pair(), pair());
        links
            .add(Rank(rank), one, other)
            .map_err(|error| error.to_string())
    };
    assert!(add(0).is_err() && add(3).is_err());
    assert_eq!(add(1), Ok(()));
    assert_eq!(add(1), Err("member 1 is linked already".into()));
    let error = links.build(&TcpOptions::default()).expect_err("not all");
    assert_eq!(error.to_string(), "member 2 is not linked");
}
