//! Stations of one or several hosts, in one process: a host is a directory of this one, and
//! threads take the part of processes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_transport::hybrid::{
    HybridSegment, NetworkOptions, PeerPath, RdmaUse, Station, StationOptions,
};
use spindle_dds_transport::shm::{self, DoorbellChoice};
use spindle_dds_transport::{FailureCause, Rank, RdmaOptions, SegmentKey, SegmentRequest};
use tempfile::TempDir;

use crate::harness::{
    Actor, Harness, Outcome, Segments, Sleep, end_batch, park_for_a_while, run_threads,
};

/// A station for each member, all connected, and a control segment.
pub(crate) struct StationGroup {
    fabrics: Vec<HybridSegment>,
    stations: Vec<Station>,
    row_len: usize,
    next_index: AtomicU32,
    dead: Mutex<BTreeSet<usize>>,
    /// Segments that were agreed on and made by all live members, but not opened yet.
    closed: Mutex<BTreeMap<(u32, usize), HybridSegment>>,
    /// The stations are on several hosts.
    apart: bool,
    /// Each station is on its own host: making a segment waits for no peer, so it is made when
    /// it is opened.
    each_alone: bool,
    agreed: Mutex<BTreeMap<u32, (Vec<usize>, bool)>>,
    _directories: Vec<TempDir>,
}

/// RDMA devices, one for each host, separated by commas.
const DEVICES_VARIABLE: &str = "SPINDLE_RDMA_DEVICES";

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

impl StationGroup {
    /// With the host of each member; one host needs no network. The doorbells are assigned in
    /// turn.
    pub(crate) fn new(hosts: &[usize], row_len: usize, doorbells: &[DoorbellChoice]) -> Self {
        let loopback = |_| NetworkOptions {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            ..NetworkOptions::default()
        };
        Self::open(hosts, row_len, doorbells, loopback)
    }

    /// The same with a secret, so that hosts encrypt what goes between them.
    pub(crate) fn encrypted(hosts: &[usize], row_len: usize, doorbells: &[DoorbellChoice]) -> Self {
        let network = |_| NetworkOptions {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            secret: Some("open sesame".into()),
            ..NetworkOptions::default()
        };
        let group = Self::open(hosts, row_len, doorbells, network);
        assert!(group.stations[0].is_encrypted(2));
        group
    }

    /// The same with an RDMA device for each host: the nth has the address 10.77.0.n. Hosts
    /// reach each other by RDMA only.
    pub(crate) fn over_rdma(hosts: &[usize], row_len: usize, doorbells: &[DoorbellChoice]) -> Self {
        let devices = std::env::var(DEVICES_VARIABLE);
        let devices = devices.unwrap_or_else(|_| panic!("{DEVICES_VARIABLE} has to name devices"));
        let devices: Vec<&str> = devices.split(',').collect();
        let network = |host: usize| NetworkOptions {
            listen: (IpAddr::from([10, 77, 0, 1 + host as u8]), 0).into(),
            rdma: RdmaUse::Required(RdmaOptions {
                device: Some(devices[host].to_owned()),
                ..RdmaOptions::default()
            }),
            ..NetworkOptions::default()
        };
        let group = Self::open(hosts, row_len, doorbells, network);
        for (one, here) in group.stations.iter().zip(hosts) {
            let others = group.stations.iter().zip(hosts);
            for (other, there) in others.filter(|(other, _)| other.id() != one.id()) {
                let by_rdma = matches!(one.path(other.id()), Some(PeerPath::Rdma(_)));
                assert_eq!(by_rdma, here != there);
            }
        }
        group
    }

    fn open(
        hosts: &[usize],
        row_len: usize,
        doorbells: &[DoorbellChoice],
        network: impl Fn(usize) -> NetworkOptions,
    ) -> Self {
        let mine = || std::fs::Permissions::from_mode(0o700);
        let directory = |_| tempfile::Builder::new().permissions(mine()).tempdir();
        let directories = hosts.iter().map(directory).collect::<Result<Vec<_>, _>>();
        let directories = directories.expect("directories");
        let apart = hosts.iter().any(|&host| host != hosts[0]);
        let open = |(at, &host): (usize, &usize)| {
            let network = apart.then(|| network(host));
            let host = shm::HostOptions {
                directory: Some(directories[host].path().into()),
                doorbell: doorbells[at % doorbells.len()],
                ..shm::HostOptions::new(0, 1 + at as u128)
            };
            Station::open(&StationOptions { host, network }).expect("a station")
        };
        let stations: Vec<_> = hosts.iter().enumerate().map(open).collect();
        for (at, one) in stations.iter().enumerate() {
            for other in &stations[..at] {
                let called = one.connect(&other.address(), soon()).expect("connected");
                assert_eq!(called, other.id());
            }
        }
        let mut group = Self {
            fabrics: Vec::new(),
            stations,
            row_len,
            next_index: AtomicU32::new(0),
            dead: Mutex::default(),
            closed: Mutex::default(),
            apart,
            each_alone: (1..hosts.len()).all(|at| !hosts[..at].contains(&hosts[at])),
            agreed: Mutex::default(),
            _directories: directories,
        };
        let all: Vec<_> = (0..hosts.len()).collect();
        let segment = group.agree(&all, true);
        group.fabrics = all.iter().map(|&rank| group.open(segment, rank)).collect();
        group
    }

    /// The segment of the member with this rank.
    fn make(&self, index: u32, members: &[usize], control: bool, rank: usize) -> HybridSegment {
        let request = SegmentRequest {
            key: SegmentKey { epoch: 1, index },
            members: members.iter().map(|&at| self.stations[at].id()).collect(),
            me: Rank(rank as u16),
            row_lens: vec![self.row_len; members.len()],
            control,
        };
        let made = self.stations[members[rank]].segment(&request, soon());
        made.expect("a segment")
    }

    /// Whether no push is in flight.
    fn is_still(&self, from: usize, to: usize) -> bool {
        let (out, back) = (&self.stations[from], &self.stations[to]);
        let (Some(out), Some(back)) = (out.stream_state(back.id()), back.stream_state(out.id()))
        else {
            return true;
        };
        let through = out.waiting == 0 && out.sent == back.received;
        !out.sending || !back.receiving || back.blocked || through
    }
}

impl StationGroup {
    /// Whether every doorbell that was sent by RDMA was handled.
    fn are_all_heard(&self) -> bool {
        let pairs = self
            .stations
            .iter()
            .flat_map(|one| self.stations.iter().map(move |it| (one, it)));
        let counters = |from: &Station, to: &Station| match from.path(to.id()) {
            Some(PeerPath::Rdma(counters)) => Some(counters),
            _ => None,
        };
        pairs.into_iter().all(
            |(one, other)| match (counters(one, other), counters(other, one)) {
                (Some(there), Some(here)) => there.doorbells_sent == here.doorbells_heard,
                _ => true,
            },
        )
    }
}

impl Harness for StationGroup {
    type F = HybridSegment;

    fn fabric(&self, rank: usize) -> &HybridSegment {
        &self.fabrics[rank]
    }

    fn run(&self, actors: Vec<Actor<'_, HybridSegment>>) -> Outcome {
        run_threads(&self.fabrics, actors)
    }

    fn sleep(&self, rank: usize) -> Sleep {
        self.settle();
        park_for_a_while(&self.fabrics[rank])
    }

    fn settle(&self) {
        self.fabrics.iter().for_each(end_batch);
        let members = self.stations.len();
        for pair in 0..members * members {
            while !self.is_still(pair / members, pair % members) {
                thread::yield_now();
            }
        }
        // A sleep word that has landed may cause another batch.
        for _ in 0..2 {
            while !self.stations.iter().all(Station::is_still) || !self.are_all_heard() {
                thread::yield_now();
            }
            self.fabrics.iter().for_each(end_batch);
        }
    }

    fn kill(&self, rank: usize) {
        let dying = &self.stations[rank];
        dying.pretend_process_ended();
        for other in &self.stations {
            if dying.stream_state(other.id()).is_some() {
                dying.drop_peer(other.id());
            }
        }
        let mut dead = self.dead.lock().unwrap_or_else(PoisonError::into_inner);
        dead.insert(rank);
    }

    fn is_death(&self, cause: &FailureCause) -> bool {
        let away = matches!(cause, FailureCause::Unreachable(_));
        *cause == FailureCause::ProcessEnded || self.apart && away
    }

    fn rounds(&self) -> u64 {
        match self.apart {
            true => 500,
            false => 2000,
        }
    }
}

impl Segments for StationGroup {
    type Segment = u32;

    fn agree(&self, members: &[usize], control: bool) -> u32 {
        let index = self.next_index.fetch_add(1, Ordering::Relaxed);
        if self.each_alone {
            let mut agreed = self.agreed.lock().unwrap_or_else(PoisonError::into_inner);
            agreed.insert(index, (members.to_vec(), control));
            return index;
        }
        let dead = self.dead.lock().unwrap_or_else(PoisonError::into_inner);
        let make = |rank| ((index, rank), self.make(index, members, control, rank));
        let living = members.iter().enumerate();
        let living = living.filter(|(_, at)| !dead.contains(at));
        let made = thread::scope(|scope| {
            let make = &make;
            let threads: Vec<_> = living
                .map(|member| scope.spawn(move || make(member.0)))
                .collect();
            let made = threads.into_iter().map(|thread| thread.join());
            made.map(|made| made.expect("no panic")).collect::<Vec<_>>()
        });
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        closed.extend(made);
        index
    }

    fn open(&self, index: u32, rank: usize) -> HybridSegment {
        let agreed = self.agreed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((members, control)) = agreed.get(&index) {
            return self.make(index, members, *control, rank);
        }
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        closed.remove(&(index, rank)).expect("made and not open")
    }
}
