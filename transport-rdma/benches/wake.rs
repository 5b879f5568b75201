//! Round trips between two members that sleep, by doorbell, beside a bare event descriptor and
//! a bare stream in the same run; the cost of `wake` when all members are awake; and the time
//! that two stations need to make segments.
//!
//! ```text
//! cargo bench -p spindle-dds-transport --bench wake
//! ```
//! One line a measurement: name, median and 99th percentile in nanoseconds,
//! ratio of the median to the baseline's.

use std::hint::black_box;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::EventfdFlags;
use spindle_dds_transport::hybrid::{
    HybridError, HybridSegment, NetworkOptions, Station, StationOptions,
};
use spindle_dds_transport::shm::{self, DoorbellChoice};
use spindle_dds_transport::{
    FABRIC_AREA, Fabric, Park, PeerSet, Rank, SegmentKey, SegmentRequest, WakeInterest, WakeReason,
};
use tempfile::TempDir;

const TRIPS: u64 = 20_000;
const WORD: usize = FABRIC_AREA;
const WITHIN: Duration = Duration::from_secs(20);

fn main() {
    let baseline = report("eventfd_bare", bare_eventfd(), None);
    let pair = Pair::open(DoorbellChoice::Auto, true).expect("two stations");
    let segments = pair.make(0, 1).map(|mut made| made.remove(0));
    report("tcp_park", park_round_trips(&segments), Some(baseline));
    report("tcp_bare", bare_streams(), Some(baseline));
    for (name, choice) in [
        ("station_park_futex", DoorbellChoice::Futex),
        ("station_park_event", DoorbellChoice::Event),
    ] {
        match Pair::open(choice, false) {
            Ok(pair) => {
                let segments = pair.make(0, 1).map(|mut made| made.remove(0));
                report(name, park_round_trips(&segments), Some(baseline));
                ring_awake("station_awake", &segments);
            }
            Err(error) => println!("{name} skipped: {error}"),
        }
    }
    make_segments();
}

/// Two connected stations.
struct Pair {
    stations: [Station; 2],
    _directories: [TempDir; 2],
}

impl Pair {
    /// On one host, or on two, represented by two directories.
    fn open(doorbell: DoorbellChoice, apart: bool) -> Result<Self, HybridError> {
        let directories = [(); 2].map(|()| {
            let mine = std::fs::Permissions::from_mode(0o700);
            let directory = tempfile::Builder::new().permissions(mine).tempdir();
            directory.expect("a directory")
        });
        let open = |id: usize| {
            let directory = &directories[if apart { id } else { 0 }];
            let host = shm::HostOptions {
                directory: Some(directory.path().into()),
                doorbell,
                ..shm::HostOptions::new(0, id as u128)
            };
            let network = apart.then(NetworkOptions::default);
            Station::open(&StationOptions { host, network })
        };
        let stations = [open(0)?, open(1)?];
        let soon = Instant::now() + WITHIN;
        let connected = stations[0].connect(&stations[1].address(), soon);
        connected.expect("connected");
        Ok(Self {
            stations,
            _directories: directories,
        })
    }

    /// Both make this many segments in one exchange.
    fn make(&self, epoch: u64, indices: u32) -> [Vec<HybridSegment>; 2] {
        let make = |me: u16| {
            let request = |index| SegmentRequest {
                key: SegmentKey { epoch, index },
                members: vec![0, 1],
                me: Rank(me),
                row_lens: vec![64 * 1024; 2],
                control: index == 0,
            };
            let requests: Vec<_> = (0..indices).map(request).collect();
            let station = &self.stations[usize::from(me)];
            let made = station.segments(&requests, Instant::now() + WITHIN);
            made.expect("segments")
        };
        thread::scope(|scope| {
            let other = scope.spawn(|| make(1));
            [make(0), other.join().expect("no panic")]
        })
    }
}

fn make_segments() {
    const TIMES: u64 = 200;
    let pair = Pair::open(DoorbellChoice::Auto, false).expect("two stations");
    let mut baseline = None;
    for (name, indices) in [("make_1_segment", 1), ("make_20_segments", 20)] {
        let nanos = time(TIMES, |epoch| {
            black_box(pair.make(u64::from(indices) * TIMES + epoch, indices));
        });
        baseline = Some(report(name, nanos, baseline));
    }
}

/// Prints a line and returns the median.
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

/// A byte back and forth over loopback, by threads that block in the kernel.
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

fn send(fabric: &impl Fabric, value: u64, to: Rank) {
    let to: PeerSet = [to].into_iter().collect();
    fabric.push_word(WORD, value, &to);
    fabric.wake(&to, WakeReason::Data);
}

fn wait(fabric: &impl Park, value: u64, from: Rank) {
    let there = || fabric.row(from).load(WORD) >= value;
    while !there() {
        fabric.announce_sleep(WakeInterest::Data);
        if !there() {
            fabric.park(None);
        }
        fabric.announce_awake();
    }
}

fn park_round_trips<F: Park>(group: &[F]) -> Vec<u64> {
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

/// A word push and `wake` to a peer that is awake: no system call.
fn ring_awake(name: &str, group: &[impl Fabric]) {
    const TIMES: u64 = 10_000_000;
    let start = Instant::now();
    for value in 0..TIMES {
        send(&group[0], black_box(value), Rank(1));
    }
    let each = start.elapsed().as_nanos() as f64 / TIMES as f64;
    println!("push_and_ring name={name} mean_ns={each:.1}");
}
