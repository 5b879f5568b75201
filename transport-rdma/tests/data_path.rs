//! The path of a message allocates nothing: counted, on the thread that runs it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_transport::hybrid::{HybridSegment, NetworkOptions, Station, StationOptions};
use spindle_dds_transport::shm::{self, DoorbellChoice};
use spindle_dds_transport::{
    FABRIC_AREA, Fabric, Park, PeerSet, Rank, SegmentKey, SegmentRequest, WakeInterest, WakeReason,
};

/// By all threads.
static ALL_ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: passes everything to the system's allocator; the counter neither allocates nor is
// dropped.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        ALL_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn pushing_waking_and_sleeping_in_a_segment_allocate_nothing() {
    for doorbell in [DoorbellChoice::Auto, DoorbellChoice::Event] {
        let (_stations, group) = segments([0; 3], doorbell, None);
        check(&group, doorbell);
    }
}

#[test]
fn pushing_waking_and_sleeping_over_streams_allocate_nothing() {
    for doorbell in [DoorbellChoice::Auto, DoorbellChoice::Event] {
        for network in [streams, encrypted_streams] {
            let (_stations, group) = segments([0, 1, 2], doorbell, Some(network));
            assert_eq!(allocations_of(&group), 0);
            assert_eq!(group[1].counters().peer_wakes, 99);
        }
    }
}

fn encrypted_streams(_: usize) -> NetworkOptions {
    NetworkOptions {
        secret: Some("open sesame".into()),
        ..NetworkOptions::default()
    }
}

fn streams(_: usize) -> NetworkOptions {
    NetworkOptions::default()
}

/// The nodes of an RDMA guest.
#[cfg(feature = "verbs")]
fn verbs(host: usize) -> NetworkOptions {
    use spindle_dds_transport::{RdmaOptions, hybrid::RdmaUse};
    let node = host as u8 + 1;
    NetworkOptions {
        listen: ([10, 77, 0, node], 0).into(),
        rdma: RdmaUse::Required(RdmaOptions {
            device: Some(format!("rxe{node}")),
            ..RdmaOptions::default()
        }),
        ..NetworkOptions::default()
    }
}

/// Threads that receive and wake sleepers allocate nothing either. No other test may run at
/// the same time: all threads are counted.
#[cfg(feature = "verbs")]
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn pushing_ringing_and_sleeping_over_verbs_allocate_nothing() {
    use spindle_dds_transport::hybrid::PeerPath;
    for doorbell in [DoorbellChoice::Auto, DoorbellChoice::Event] {
        let (stations, group) = segments([0, 1, 2], doorbell, Some(verbs));
        let work_requests = || match stations[0].path(1) {
            Some(PeerPath::Rdma(counters)) => counters.work_requests,
            other => panic!("by {other:?}"),
        };
        // What is created once, at the first push, is created here.
        push_and_wake(&group, 1..100);
        let posted = work_requests();
        let before = ALL_ALLOCATIONS.load(Ordering::Relaxed);
        let mine = allocations(|| push_and_wake(&group, 100..400));
        let all = ALL_ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert_eq!((mine, all), (0, 0), "{doorbell:?}");
        assert!(work_requests() >= posted + 600, "{doorbell:?}");
        assert!(group[1].counters().peer_wakes >= 300, "{doorbell:?}");
        drop(std::hint::black_box(Box::new(1)));
        let more = ALL_ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert!(more > 0, "it counts");
    }
}

/// One member pushes to two, one of which sleeps each time and is woken.
#[cfg(feature = "verbs")]
fn push_and_wake<F: Park>(group: &[F], values: std::ops::Range<u64>) {
    let to: PeerSet = [Rank(1), Rank(2)].into_iter().collect();
    for value in values {
        group[1].announce_sleep(WakeInterest::Data);
        group[0].store(FABRIC_AREA, value);
        group[0].push(FABRIC_AREA, 512, &to);
        group[0].push_word(FABRIC_AREA + 512, value, &to);
        group[0].wake(&to, WakeReason::Data);
        // Its announcement may arrive after `wake`: then it is woken by upkeep.
        while !group[1].park(Some(Duration::from_millis(1))) {
            assert!(group[0].poll().is_none());
        }
        group[1].announce_awake();
        assert_eq!(group[1].row(Rank(0)).load(FABRIC_AREA + 512), value);
    }
}

/// Stations on these hosts, represented by directories, and a segment of theirs.
fn segments(
    hosts: [usize; 3],
    doorbell: DoorbellChoice,
    network: Option<fn(usize) -> NetworkOptions>,
) -> (Vec<Station>, Vec<HybridSegment>) {
    let directories = hosts.map(|_| {
        let mine = std::fs::Permissions::from_mode(0o700);
        let directory = tempfile::Builder::new().permissions(mine).tempdir();
        directory.expect("a directory")
    });
    let open = |(at, &host): (usize, &usize)| {
        let host = shm::HostOptions {
            directory: Some(directories[host].path().into()),
            doorbell,
            ..shm::HostOptions::new(0, at as u128)
        };
        let network = network.map(|of| of(hosts[at]));
        Station::open(&StationOptions { host, network }).expect("a station")
    };
    let stations: Vec<_> = hosts.iter().enumerate().map(open).collect();
    let soon = Instant::now() + Duration::from_secs(20);
    for (at, station) in stations.iter().enumerate() {
        for other in &stations[..at] {
            station.connect(&other.address(), soon).expect("connected");
        }
    }
    let make = |station: &Station| {
        let request = SegmentRequest {
            key: SegmentKey { epoch: 1, index: 0 },
            members: vec![0, 1, 2],
            me: Rank(station.id() as u16),
            row_lens: vec![4096; 3],
            control: true,
        };
        station.segment(&request, soon).expect("a segment")
    };
    let segments = thread::scope(|scope| {
        let make = &make;
        let threads: Vec<_> = stations
            .iter()
            .map(|station| scope.spawn(move || make(station)))
            .collect();
        let made = threads.into_iter().map(|thread| thread.join());
        made.map(|made| made.expect("no panic")).collect()
    });
    (stations, segments)
}

/// Allocations of a member that pushes, wakes, sleeps and is woken, over and over.
fn allocations_of<F: Park>(group: &[F]) -> u64 {
    let to: PeerSet = [Rank(1), Rank(2)].into_iter().collect();
    let seen = |value| group[1].row(Rank(0)).load(FABRIC_AREA + 512) == value;
    allocations(|| {
        for value in 1..100 {
            group[1].announce_sleep(WakeInterest::Data);
            group[0].store(FABRIC_AREA, value);
            group[0].push(FABRIC_AREA, 512, &to);
            group[0].push_word(FABRIC_AREA + 512, value, &to);
            group[0].wake(&to, WakeReason::Data);
            assert!(group[1].park(None));
            group[1].announce_awake();
            assert!(seen(value));
            group[2].announce_sleep(WakeInterest::Room);
            group[2].park(Some(Duration::ZERO));
            group[2].nudge();
            assert!(group[2].park(None));
            group[2].announce_awake();
            assert!(group[0].poll().is_none());
        }
    })
}

/// One member wakes two at once, over and over.
fn wake_together<F: Park>(group: &[F]) {
    let (from, sleepers) = group.split_first().expect("three members");
    let to: PeerSet = [Rank(1), Rank(2)].into_iter().collect();
    for value in 100..200 {
        let sleeping = sleepers.iter();
        sleeping.for_each(|it| it.announce_sleep(WakeInterest::Data));
        from.push_word(FABRIC_AREA, value, &to);
        from.wake(&to, WakeReason::Data);
        for sleeper in sleepers {
            assert!(sleeper.park(None));
            sleeper.announce_awake();
        }
    }
}

fn check<F: Park>(group: &[F], doorbell: DoorbellChoice) {
    assert_eq!(allocations_of(group), 0, "{doorbell:?}");
    assert_eq!(group[0].counters().peer_wakes, 99);
    assert_eq!(allocations(|| wake_together(group)), 0, "{doorbell:?}");
    let counters = group[0].counters();
    let calls = match doorbell {
        DoorbellChoice::Event => 200,
        // The first two times each by its own doorbell.
        _ => 102,
    };
    let woken = (counters.peer_wakes, counters.wake_calls);
    assert_eq!(woken, (299, 99 + calls), "{doorbell:?}");
    assert_eq!(
        allocations(|| drop(std::hint::black_box(Box::new(1)))),
        1,
        "it counts"
    );
}
