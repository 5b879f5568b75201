//! Round trips between two members that sleep, by doorbell, beside a bare
//! event descriptor and a bare stream in the same run; and what a ring costs
//! when nobody sleeps.
//!
//! ```text
//! cargo bench -p spindle-dds-transport --bench wake
//! ```
//! One line a measurement: name, median and 99th percentile in nanoseconds,
//! ratio of the median to the baseline's.

use std::hint::black_box;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use rustix::event::EventfdFlags;
use spindle_dds_transport::mixed;
use spindle_dds_transport::shm::{DoorbellChoice, local_group};
use spindle_dds_transport::tcp::{self, TcpOptions};
use spindle_dds_transport::{FABRIC_AREA, Park, PeerSet, Rank, Want};

const TRIPS: u64 = 20_000;
const WORD: usize = FABRIC_AREA;

fn main() {
    let baseline = report("eventfd_bare", bare_eventfd(), None);
    for (name, choice) in [
        ("shm_park_futex", DoorbellChoice::Futex),
        ("shm_park_event", DoorbellChoice::Event),
    ] {
        match local_group(2, 4096, choice) {
            Ok(group) => {
                report(name, park_round_trips(&group), Some(baseline));
            }
            Err(error) => println!("{name} skipped: {error}"),
        }
    }
    let group = tcp::local_group(&[4096; 2], &TcpOptions::default()).expect("a group");
    report("tcp_park", park_round_trips(&group), Some(baseline));
    let (auto, options) = (DoorbellChoice::Auto, TcpOptions::default());
    let group = mixed::local_group(&[0, 1], 4096, auto, &options).expect("a group");
    report("mixed_park", park_round_trips(&group), Some(baseline));
    report("tcp_bare", bare_streams(), Some(baseline));
    ring_awake();
}

/// Prints a line and gives the median.
fn report(name: &str, mut nanos: Vec<u64>, baseline: Option<u64>) -> u64 {
    nanos.sort_unstable();
    let (median, p99) = (nanos[nanos.len() / 2], nanos[nanos.len() * 99 / 100]);
    let ratio = median as f64 / baseline.unwrap_or(median) as f64;
    println!("round_trip name={name} median_ns={median} p99_ns={p99} ratio={ratio:.2}");
    median
}

fn time(trips: u64, mut trip: impl FnMut(u64)) -> Vec<u64> {
    let each = (1..=trips).map(|index| {
        let start = Instant::now();
        trip(index);
        start.elapsed().as_nanos() as u64
    });
    each.collect()
}

fn bare_eventfd() -> Vec<u64> {
    let event = || rustix::event::eventfd(0, EventfdFlags::CLOEXEC).expect("an event descriptor");
    let (there, back) = (event(), event());
    let one = 1_u64.to_ne_bytes();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..TRIPS {
                rustix::io::read(&there, &mut [0; 8]).expect("read");
                rustix::io::write(&back, &one).expect("written");
            }
        });
        time(TRIPS, |_| {
            rustix::io::write(&there, &one).expect("written");
            rustix::io::read(&back, &mut [0; 8]).expect("read");
        })
    })
}

/// A byte there and back over loopback, by threads that block in the kernel.
fn bare_streams() -> Vec<u64> {
    use std::io::{Read, Write};
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let mut near = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
    let mut far = listener.accept().expect("accepted").0;
    for stream in [&near, &far] {
        stream.set_nodelay(true).expect("set");
    }
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut byte = [0];
            for _ in 0..TRIPS {
                far.read_exact(&mut byte).expect("read");
                far.write_all(&byte).expect("written");
            }
        });
        time(TRIPS, |_| {
            near.write_all(&[0]).expect("written");
            near.read_exact(&mut [0]).expect("read");
        })
    })
}

fn send(fabric: &impl Park, value: u64, to: Rank) {
    let to: PeerSet = [to].into_iter().collect();
    fabric.push_word(WORD, value, &to);
    fabric.ring(&to, &PeerSet::EMPTY);
}

fn wait(fabric: &impl Park, value: u64, from: Rank) {
    let there = || fabric.row(from).load(WORD) >= value;
    while !there() {
        fabric.announce_sleep(Want::Data);
        if !there() {
            fabric.park(None);
        }
        fabric.announce_awake();
    }
}

fn park_round_trips(group: &[impl Park]) -> Vec<u64> {
    let (a, b) = (Rank(0), Rank(1));
    thread::scope(|scope| {
        scope.spawn(|| {
            for value in 1..=TRIPS {
                wait(&group[1], value, a);
                send(&group[1], value, a);
            }
        });
        time(TRIPS, |value| {
            send(&group[0], value, b);
            wait(&group[0], value, b);
        })
    })
}

/// A word push and a ring to a peer that is awake: no system call.
fn ring_awake() {
    const TIMES: u64 = 10_000_000;
    let group = local_group(2, 4096, DoorbellChoice::Auto).expect("a group");
    let start = Instant::now();
    for value in 0..TIMES {
        send(&group[0], black_box(value), Rank(1));
    }
    let each = start.elapsed().as_nanos() as f64 / TIMES as f64;
    println!("push_and_ring name=shm_awake mean_ns={each:.1}");
}
