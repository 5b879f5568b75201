//! Stations of one process: their threads take the part of processes.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_transport::Rank;
use spindle_dds_transport::shm::{
    DoorbellChoice, SegmentKey, SegmentRequest, ShmSegment, Station, StationOptions,
};
use tempfile::TempDir;

use crate::harness::{Actor, Harness, Outcome, Segments, Sleep, park_for_a_while, run_threads};

/// Shared memory: a station for each member, all connected, with a control segment.
pub(crate) struct StationGroup {
    fabrics: Vec<ShmSegment>,
    stations: Vec<Station>,
    row_len: usize,
    next_lane: AtomicU32,
    dead: Mutex<BTreeSet<usize>>,
    /// Agreed on, and made by all that live; nobody has opened these yet.
    closed: Mutex<BTreeMap<(u32, usize), ShmSegment>>,
    _directory: TempDir,
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

impl StationGroup {
    /// The doorbells are dealt out in turn.
    pub(crate) fn new(members: usize, row_len: usize, doorbells: &[DoorbellChoice]) -> Self {
        let mine = std::fs::Permissions::from_mode(0o700);
        let directory = tempfile::Builder::new().permissions(mine).tempdir();
        let directory = directory.expect("a directory");
        let open = |(at, &doorbell): (usize, &DoorbellChoice)| {
            let options = StationOptions {
                directory: Some(directory.path().into()),
                doorbell,
                ..StationOptions::new(0, 1 + at as u128)
            };
            Station::open(&options).expect("a station")
        };
        let dealt = doorbells.iter().cycle().take(members).enumerate();
        let stations: Vec<_> = dealt.map(open).collect();
        for (at, station) in stations.iter().enumerate() {
            for other in &stations[..at] {
                let id = station
                    .connect(&other.address(), soon())
                    .expect("connected");
                assert_eq!(id, other.id());
            }
        }
        let mut group = Self {
            fabrics: Vec::new(),
            stations,
            row_len,
            next_lane: AtomicU32::new(0),
            dead: Mutex::default(),
            closed: Mutex::default(),
            _directory: directory,
        };
        let all: Vec<_> = (0..members).collect();
        let segment = group.agree(&all, true);
        group.fabrics = all.iter().map(|&rank| group.open(segment, rank)).collect();
        group
    }
}

impl Harness for StationGroup {
    type F = ShmSegment;

    fn fabric(&self, rank: usize) -> &ShmSegment {
        &self.fabrics[rank]
    }

    fn run(&self, actors: Vec<Actor<'_, ShmSegment>>) -> Outcome {
        run_threads(&self.fabrics, actors)
    }

    fn sleep(&self, rank: usize) -> Sleep {
        park_for_a_while(&self.fabrics[rank])
    }

    /// What is stored is in its place.
    fn settle(&self) {}

    fn kill(&self, rank: usize) {
        self.stations[rank].feign_death();
        let mut dead = self.dead.lock().unwrap_or_else(PoisonError::into_inner);
        dead.insert(rank);
    }

    fn rounds(&self) -> u64 {
        2000
    }
}

impl Segments for StationGroup {
    type Segment = u32;

    fn agree(&self, members: &[usize], control: bool) -> u32 {
        let lane = self.next_lane.fetch_add(1, Ordering::Relaxed);
        let dead = self.dead.lock().unwrap_or_else(PoisonError::into_inner);
        let make = |(rank, &at): (usize, &usize)| {
            let request = SegmentRequest {
                key: SegmentKey { epoch: 1, lane },
                members: members.iter().map(|&at| self.stations[at].id()).collect(),
                me: Rank(rank as u16),
                row_lens: vec![self.row_len; members.len()],
                control,
            };
            let segment = self.stations[at].segment(&request, soon());
            ((lane, rank), segment.expect("a segment"))
        };
        let living = members.iter().enumerate();
        let living = living.filter(|(_, at)| !dead.contains(at));
        let made = thread::scope(|scope| {
            let make = &make;
            let threads: Vec<_> = living.map(|who| scope.spawn(move || make(who))).collect();
            let made = threads.into_iter().map(|thread| thread.join());
            made.map(|made| made.expect("no panic")).collect::<Vec<_>>()
        });
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        closed.extend(made);
        lane
    }

    fn open(&self, lane: u32, rank: usize) -> ShmSegment {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        closed.remove(&(lane, rank)).expect("made and not open")
    }
}
