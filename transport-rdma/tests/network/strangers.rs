//! Connections that are not authenticated: they are bounded in number, time and bytes, and
//! members are not disturbed.

use std::collections::VecDeque;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_transport::hybrid::{NetworkOptions, Station};
use spindle_dds_transport::{FABRIC_AREA, Fabric, PeerSet, Rank, StationEvent, WakeReason};

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::group::{DOMAIN, alone, connect, host, network, options, segment, soon, until};
use super::processes::{part, start};
use super::raw::{
    HELLO, KEY_EXCHANGE, OFFER, PROOF, VERDICT, VERSION, authenticated, connect_raw, frame, hello,
    hello_of, is_closed, no_rdma, proof, read_frame, refusal,
};

const A: usize = FABRIC_AREA;

/// Number of connections; set the variable for more.
const STRANGERS: usize = 2000;
const STRANGERS_VARIABLE: &str = "SPINDLE_TEST_STRANGERS";

/// As in the handshake thread.
const STRANGERS_MAX: usize = 64;
const STRANGER_WITHIN: Duration = Duration::from_secs(2);

/// Connections to a station that are open on its side.
fn connections(station: &Station) -> usize {
    let port = format!(":{:04X}", station.listening().expect("it listens").port());
    let table = std::fs::read_to_string("/proc/self/net/tcp").expect("a table");
    let open = |line: &&str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, state) = (fields.next(), fields.nth(1));
        let here = local.is_some_and(|local| local.ends_with(&port));
        // Established, or closed by the other side only.
        here && matches!(state, Some("01" | "08"))
    };
    table.lines().filter(open).count()
}

/// Open descriptors of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd")
        .expect("a directory")
        .count()
}

/// Resident memory of this process, in KiB.
fn memory_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let digits = line.and_then(|line| line.split_ascii_whitespace().next());
    digits.expect("a size").parse().expect("a number")
}

/// What the `at`th connection sends.
fn words(at: usize) -> Vec<u8> {
    let noise = |index: usize| (at * 7919 + index * index * 31 + index / 3) as u8;
    let hello = |encryption| hello_of(DOMAIN, 99, encryption);
    match at % 11 {
        0 => Vec::new(),
        1 => (0..at % 5000).map(noise).collect(),
        2 => frame(
            VERSION,
            HELLO,
            &(0..at % 1200).map(noise).collect::<Vec<_>>(),
        ),
        3 => hello(0)[..at % 60].to_vec(),
        4 => hello(at as u8 % 5),
        5 => [hello(1), frame(VERSION, PROOF, &[3; 32])].concat(),
        6 => frame(VERSION, at as u8, b"what"),
        7 => [hello(2), frame(VERSION, KEY_EXCHANGE, &[3; 48])].concat(),
        8 => [hello(3), frame(VERSION, KEY_EXCHANGE, &[3; 48])].concat(),
        9 => [hello(2), vec![0, 1, 2, 3]].concat(),
        _ => [&b"SPNT"[..], &[VERSION, HELLO, 0xff, 0xff]].concat(),
    }
}

/// Counts the lines of the log, of all levels.
struct CountingLog(Arc<AtomicUsize>);

impl Subscriber for CountingLog {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Lines in full, and some of the two stations themselves; and one a minute.
fn lines_max(elapsed: Duration) -> usize {
    20 + 6 * (elapsed.as_secs() / 60) as usize
}

/// Two members exchange words while other connections come in any number, of which half stay
/// open; a third member connects among them. In a process of its own, because its memory and
/// descriptors are counted.
#[test]
fn unauthenticated_connections_do_not_disturb_members() {
    let ended = start("strangers::among_unauthenticated_connections", "all").wait();
    assert!(ended.expect("it has ended").success());
}

/// Sets this when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn among_unauthenticated_connections() {
    if part().is_none() {
        return;
    }
    let count = std::env::var(STRANGERS_VARIABLE).ok();
    let count = count.map_or(STRANGERS, |count| count.parse().expect("a number"));
    let lines = Arc::<AtomicUsize>::default();
    let log = CountingLog(Arc::clone(&lines));
    tracing::subscriber::set_global_default(log).expect("the only one");
    let began = Instant::now();
    let secret = || NetworkOptions {
        secret: Some("open sesame".into()),
        ..network()
    };
    // The directories stay: a station looks for its own every few seconds.
    let hosts = [(); 3].map(|()| host());
    let open = |at: usize| {
        let options = options(&hosts[at], at as u128 + 1, secret());
        Station::open(&options).expect("a station")
    };
    let stations = [open(0), open(1)];
    connect(&stations);
    let fabrics = segment(&stations, 4096);
    let (over, rounds) = (AtomicBool::new(false), &mut 0_u64);
    let only = |rank| -> PeerSet { [Rank(rank)].into_iter().collect() };
    // Memory that the first ones need is kept.
    let (memory, descriptors) = (AtomicUsize::new(0), descriptors());
    thread::scope(|scope| {
        scope.spawn(|| {
            let echo = &fabrics[1];
            let mut last = 0;
            while !over.load(Ordering::Relaxed) {
                let now = echo.row(Rank(0)).load(A);
                if now != last {
                    last = now;
                    echo.push_word(A, now, &only(0));
                    echo.wake(&only(0), WakeReason::Data);
                }
                thread::yield_now();
            }
        });
        let strangers = scope.spawn(|| {
            let mut stay = VecDeque::new();
            for at in 0..count {
                let mut stream = connect_raw(&stations[0]);
                // It may be closed already.
                let _ = stream.write_all(&words(at));
                if at % 2 == 0 {
                    stay.push_back(stream);
                }
                // Another byte of one that is slow, if it is still there.
                if let Some(slow) = stay.get_mut(at % 7) {
                    let _ = slow.write(&[at as u8]);
                }
                if stay.len() > 300 {
                    stay.pop_front();
                }
                if at == count / 4 {
                    memory.store(memory_kib(), Ordering::Relaxed);
                }
                if at == count / 2 {
                    let third = open(2);
                    let contact = stations[0].listening().expect("it listens");
                    assert_eq!(third.call(contact, soon()).expect("called"), 1);
                }
            }
            stay
        });
        // Also if this thread panics: the other ends.
        let _ends = Ends(&over);
        while !strangers.is_finished() {
            *rounds += 1;
            fabrics[0].push_word(A, *rounds, &only(1));
            fabrics[0].wake(&only(1), WakeReason::Data);
            until(|| fabrics[0].row(Rank(1)).load(A) == *rounds);
        }
        let stay = strangers.join().expect("no panic");
        // All that stay are closed by the station.
        until(|| stay.iter().all(is_closed));
    });
    until(|| connections(&stations[0]) <= 1);
    let grown = memory_kib().saturating_sub(memory.into_inner());
    assert!(grown < 4096, "{grown} KiB more");
    stations[0].drop_peer(3);
    until(|| self::descriptors() <= descriptors);
    let lines = lines.load(Ordering::Relaxed);
    println!("{count} strangers, {rounds} round trips, {grown} KiB more, {lines} lines");
    assert!(lines > 0, "it counts");
    assert!(lines <= lines_max(began.elapsed()), "{lines} lines");
    assert!(*rounds > 0);
    for (fabric, station) in fabrics.iter().zip(&stations) {
        assert_eq!(fabric.poll(), None);
        let events = core::iter::from_fn(|| station.next_event(Duration::ZERO));
        for event in events {
            let known = match event {
                StationEvent::Connected { id } => id <= 3,
                StationEvent::Closed { id, .. } => id == 3,
                StationEvent::Message { .. } => false,
            };
            assert!(known, "{event:?}");
        }
    }
}

/// A silent or slow connection has two seconds in all; of many, the oldest are closed first.
#[test]
fn unauthenticated_connections_are_closed_in_time() {
    let station = alone(1, network());
    // A slow machine may miss the bound once, but hardly always.
    let mut silent = Vec::new();
    let oldest_go = |silent: &mut Vec<TcpStream>| {
        *silent = (0..2 * STRANGERS_MAX)
            .map(|_| connect_raw(&station))
            .collect();
        let (older, newer) = silent.split_at(STRANGERS_MAX);
        until(|| older.iter().all(is_closed));
        thread::sleep(Duration::from_millis(300));
        !newer.iter().any(is_closed)
    };
    assert!((0..5).any(|_| oldest_go(&mut silent)), "there are more");
    until(|| silent.iter().all(is_closed));
    // Slow, but valid.
    let slow = connect_raw(&station);
    let began = Instant::now();
    for byte in hello(DOMAIN, 9, false) {
        if is_closed(&slow) || (&slow).write_all(&[byte]).is_err() {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    until(|| is_closed(&slow));
    assert!(began.elapsed() >= STRANGER_WITHIN - Duration::from_millis(100));
    assert_eq!(connections(&station), 0);
    assert_eq!(station.next_event(Duration::ZERO), None);
}

/// An authenticated connection is not a peer before the path of its pushes is selected; it has
/// time for that, and meanwhile no other connection is accepted under its id.
#[test]
fn authenticated_connections_are_bounded_in_time_and_by_id() {
    let station = alone(1, network());
    let silent = authenticated(&station, 9);
    let mut again = connect_raw(&station);
    let mine = hello(DOMAIN, 9, false);
    again.write_all(&mine).expect("sent");
    let theirs = read_frame(&mut again).expect("a hello");
    let proof = proof(b"", 0, &mine, &theirs);
    again.write_all(&proof).expect("sent");
    let reason = refusal(&mut again);
    assert!(reason.ends_with("is being connected"), "{reason}");
    assert!(station.path(9).is_none());
    drop(silent);
    until(|| connections(&station) == 0);
    assert_eq!(station.next_event(Duration::ZERO), None);
}

/// A frame that is not allowed at its place is refused with the reason.
#[test]
fn frames_out_of_order_are_refused() {
    let station = alone(1, network());
    let check = |bytes: &[u8], words: &str| {
        let mut stream = connect_raw(&station);
        stream.write_all(bytes).expect("sent");
        assert_eq!(refusal(&mut stream), words);
        until(|| is_closed(&stream));
    };
    let nonsense = "that is nothing of this protocol";
    let nowhere = "it sent what does not belong here";
    check(b"GET / HTTP", nonsense);
    check(
        &[b"SPNT", &[VERSION, HELLO, 0xff, 0xff][..]].concat(),
        nonsense,
    );
    check(&frame(VERSION, HELLO, b"short"), nowhere);
    check(&frame(VERSION, PROOF, &[0; 32]), nowhere);
    check(&frame(VERSION, 77, b""), nowhere);
    check(&frame(VERSION, OFFER, &[1; 64]), nowhere);
    check(&no_rdma(), nowhere);
    let mut no_address = hello(DOMAIN, 9, false);
    no_address[6] -= 33;
    let cut = no_address.len() - 33;
    check(&no_address[..cut], "the caller has no address");
    // Valid frames that are allowed once only, or too long.
    for (bytes, words) in [
        (
            frame(VERSION, OFFER, &[1; 64]),
            "it answers where nothing was offered",
        ),
        (frame(VERSION, OFFER, &[1; 129]), nowhere),
        (
            frame(VERSION, VERDICT, &[1]),
            "it says yes to what was not offered",
        ),
        (frame(VERSION, VERDICT, &[2]), nowhere),
        (frame(VERSION, VERDICT, &[]), nowhere),
        (hello(DOMAIN, 9, false), nowhere),
        (frame(VERSION, PROOF, &[0; 32]), nowhere),
    ] {
        let mut stream = authenticated(&station, 9);
        stream.write_all(&bytes).expect("sent");
        assert_eq!(refusal(&mut stream), words);
        until(|| is_closed(&stream));
    }
    // After the hellos.
    let after = |bytes: &[u8], words: &str| {
        let mut stream = connect_raw(&station);
        stream.write_all(&hello(DOMAIN, 9, false)).expect("sent");
        read_frame(&mut stream).expect("a hello");
        stream.write_all(bytes).expect("sent");
        assert_eq!(refusal(&mut stream), words);
    };
    after(&hello(DOMAIN, 9, false), nowhere);
    after(
        &proof(b"", 0, b"", b""),
        "the caller answers to another hello",
    );
}
