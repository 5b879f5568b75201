//! Queue pairs that break, and peers that accept nothing.

use core::time::Duration;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::harness::{AT, Firewall, Netem, Station, connect, key, pair, wait_until};
use crate::fabric::WakeReason;
use crate::fabric::peers::PeerSet;
use crate::verbs::control_message::ControlMessage;

/// The failure of a peer that vanished, reported once.
fn fails_once(station: &Station, peer: u128, mut push: impl FnMut()) -> String {
    wait_until("it is told", || {
        push();
        station.core.poll();
        !station.failures().is_empty()
    });
    (0..50).for_each(|_| {
        push();
        station.core.poll();
    });
    std::thread::sleep(Duration::from_millis(300));
    let failures = station.failures();
    assert_eq!((failures.len(), failures[0].0), (1, peer), "{failures:?}");
    failures[0].1.clone()
}

/// The kernel destroys the queue pairs of a process that ends; this does the same.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn the_failure_of_a_vanished_peer_is_reported_once() {
    let patience = Duration::from_secs(1);
    let (a, b) = (Station::new(1, patience), Station::new(2, patience));
    connect(&a, &b);
    let mine = a.segment(key(1, 0));
    let theirs = b.segment(key(1, 0));
    mine.say(AT, 1);
    theirs.hear(AT, 1);
    b.core.close(a.id);
    let reason = fails_once(&a, b.id, || mine.say(AT, 2));
    assert!(reason.contains("acknowledges nothing"), "{reason}");
    assert!(b.failures().is_empty());
    a.core.close(b.id);
    mine.say(AT, 3);
    assert!(a.core.is_still(b.id));
}

/// Without polling, the thread notices while the process sleeps.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn a_cut_is_reported_once_and_wakes_a_sleeper() {
    let patience = Duration::from_secs(1);
    let (a, b) = (Station::new(1, patience), Station::new(2, patience));
    connect(&a, &b);
    let (mine, theirs) = (a.segment(key(1, 0)), b.segment(key(1, 0)));
    mine.say(AT, 1);
    theirs.hear(AT, 1);
    let cut = Firewall::between(1, 2);
    // Not signalled: only its failure causes a completion.
    mine.say(AT, 2);
    let started = Instant::now();
    a.core
        .announce_sleep(crate::fabric::WakeInterest::Data.sleep_word(1));
    wait_until("it is told", || !a.failures().is_empty());
    println!("told after {:?}", started.elapsed());
    std::thread::sleep(Duration::from_millis(300));
    let failures = a.failures();
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(
        failures[0].1.contains("acknowledges nothing"),
        "{failures:?}"
    );
    drop(cut);
}

/// Far more is pushed than the send queue holds while nothing gets through. Its slots are
/// counted (an assertion), and everything lands when the network works again, without further
/// pushes or polls.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn a_send_queue_is_never_overrun() {
    const WORDS: usize = 4000;
    let (a, b) = pair();
    let (mine, theirs) = (a.segment(key(1, 0)), b.segment(key(1, 0)));
    mine.say(AT, 1);
    theirs.hear(AT, 1);
    let cut = Firewall::between(1, 2);
    for value in 0..WORDS {
        mine.push_word(AT + 8 + 8 * value, value as u64 + 1);
        mine.segment.wake(&PeerSet::EMPTY, WakeReason::Data);
    }
    let link = a.core.shared().link(b.id).expect("a peer");
    let posted = link.outgoing.poster().as_ref().map(|it| it.posted());
    assert!(
        posted.is_some_and(|posted| posted < 600),
        "{posted:?} of {WORDS}"
    );
    drop(cut);
    theirs.hear(AT + 8 * WORDS, WORDS as u64);
    (0..WORDS).for_each(|value| assert_eq!(theirs.copy.load(AT + 8 + 8 * value), value as u64 + 1));
    let counters = a.core.counters(b.id).expect("a peer");
    println!("{counters:?}");
    assert!(counters.slot_waits > 0, "{counters:?}");
    assert_eq!((a.failures(), b.failures()), (vec![], vec![]));
}

/// A row of another length than agreed; a message out of order.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn a_protocol_violation_is_reported_once() {
    let (a, b) = pair();
    let link = b.core.shared().link(a.id).expect("a peer");
    b.core
        .shared()
        .say(&link, ControlMessage::Over { key: key(1, 0) });
    let reason = fails_once(&a, b.id, || {});
    assert!(reason.contains("never opened"), "{reason}");
}

/// Errors of setting up are reported as text, and leave nothing behind.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn offers_are_checked() {
    let patience = Duration::from_secs(1);
    let (a, b) = (Station::new(1, patience), Station::new(2, patience));
    let device = a.core.device();
    assert!(
        device.starts_with("rxe1, port 1") && device.contains("10.77.0.1"),
        "{device}"
    );
    let offer = a.core.offer(b.id).expect("an offer");
    assert!(offer.len() <= 128);
    let again = a.core.offer(b.id).expect_err("twice");
    assert!(again.contains("already"), "{again}");
    let none = b.core.answer(a.id, &offer[1..]).expect_err("violation");
    assert!(none.contains("no queue pair"), "{none}");
    assert_eq!(b.core.counters(a.id), None, "nothing is left of it");
    let early = b.core.accept(a.id, &offer).expect_err("not offered");
    assert!(early.contains("offered"), "{early}");
    let answer = b.core.answer(a.id, &offer).expect("an answer");
    a.core.accept(b.id, &answer).expect("accepted");
    wait_until("both say hello", || {
        a.core.is_proved(b.id) && b.core.is_proved(a.id)
    });
}

/// The peer is another process, which is killed after it has made its segment and pushed.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn the_death_of_a_killed_peer_is_reported_once() {
    let me = std::env::current_exe().expect("this test");
    let test = "verbs::tests::failures::process_that_is_killed";
    let mut child = Command::new(me)
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut said = BufReader::new(child.stdout.take().expect("its output"));
    let mut told = child.stdin.take().expect("its input");
    let a = Station::new(1, Duration::from_secs(1));
    let mine = a.segment(key(1, 0));
    let offer = a.core.offer(2).expect("an offer");
    writeln!(told, "{}", hex(&offer)).expect("it reads");
    a.core.accept(2, &heard(&mut said)).expect("accepted");
    drop(mine);
    let mine = a.segment(key(1, 1));
    mine.say(AT, 1);
    wait_until("it answers", || mine.copy.load(AT) > 0);
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    let last = mine.copy.load(AT);
    let reason = fails_once(&a, 2, || mine.say(AT, 2));
    assert!(reason.contains("acknowledges nothing"), "{reason}");
    assert_eq!(mine.copy.load(AT), last, "nothing comes of the dead");
}

const CHILD: &str = "SPINDLE_TEST_VERBS_CHILD";

/// Not a test: the child of the test above.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn process_that_is_killed() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let b = Station::new(2, Duration::from_secs(10));
    let offer = heard(&mut std::io::stdin().lock());
    let answer = b.core.answer(1, &offer).expect("an answer");
    println!("{MARK}{}", hex(&answer));
    let theirs = b.segment(key(1, 1));
    for value in 1.. {
        theirs.say(AT, value);
    }
}

/// Prefix of the child's lines.
const MARK: &str = "answer ";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The next line with bytes; other lines are the test runner's.
fn heard(from: &mut impl BufRead) -> Vec<u8> {
    loop {
        let mut line = String::new();
        assert!(from.read_line(&mut line).expect("a line") > 0, "it ended");
        let digits = line.rsplit(' ').next().map_or("", str::trim);
        let pairs = digits.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok();
        match pairs.map(byte).collect::<Option<Vec<u8>>>() {
            Some(bytes) if bytes.len() > 16 => return bytes,
            _ => {}
        }
    }
}

/// Lost packets are sent again, in order.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn no_push_is_lost_where_packets_are_lost() {
    let patience = Duration::from_secs(1);
    let (a, b) = (Station::new(1, patience), Station::new(2, patience));
    connect(&a, &b);
    let (mine, theirs) = (a.segment(key(1, 0)), b.segment(key(1, 0)));
    let netem = Netem::on(1, "loss 2% delay 2ms");
    for value in 1..=1000 {
        mine.row.store(AT + 8, value);
        mine.segment.push(AT + 8, 512, &mine.to);
        mine.say(AT, value);
        let guard = theirs.copy.load(AT);
        assert!(theirs.copy.load(AT + 8) >= guard);
    }
    theirs.hear(AT, 1000);
    drop(netem);
    assert_eq!((a.failures(), b.failures()), (vec![], vec![]));
}

/// So many packets are lost in both directions that retransmissions, reports of gaps and last
/// packets are lost, too: a queue pair that survives this delivers everything, with the
/// longest patience of a station.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn all_pushes_arrive_where_a_tenth_is_lost_both_ways() {
    const BATCHES: u64 = 40;
    const BATCH: u64 = 16;
    let patience = Duration::from_secs(40);
    let (a, b) = (Station::new(1, patience), Station::new(2, patience));
    connect(&a, &b);
    let halves = [a.segment(key(1, 0)), b.segment(key(1, 0))];
    let netem = [1, 2].map(|node| Netem::on(node, "loss 10% delay 2ms"));
    for batch in 0..BATCHES {
        for value in batch * BATCH + 1..=(batch + 1) * BATCH {
            for half in &halves {
                half.row.store(AT + 8, value);
                half.segment.push(AT + 8, 512, &half.to);
                half.say(AT, value);
                let guard = half.copy.load(AT);
                assert!(half.copy.load(AT + 8) >= guard);
            }
        }
        // Nothing is sent behind the last of a batch.
        for half in &halves {
            half.hear(AT, (batch + 1) * BATCH);
        }
    }
    wait_until("all is acknowledged", || {
        a.core.is_still(b.id) && b.core.is_still(a.id)
    });
    drop(netem);
    assert_eq!((a.failures(), b.failures()), (vec![], vec![]));
}

/// The kernel waits for a neighbour for a second, and asks only once.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn a_neighbour_that_missed_the_request_is_asked_again() {
    let patience = Duration::from_secs(10);
    let (a, b) = (Station::new(1, patience), Station::new(2, patience));
    let _firewall = Firewall::against_first_question();
    connect(&a, &b);
    assert_eq!((a.failures(), b.failures()), (vec![], vec![]));
}
