//! Stations on different hosts.

use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_transport::hybrid::{HybridSegment, NetworkOptions, Station, StationOptions};
use spindle_dds_transport::{Rank, SegmentKey, SegmentRequest, StationEvent, shm};
use tempfile::TempDir;

pub(crate) const DOMAIN: u32 = 3;

/// Far longer than anything takes.
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) fn soon() -> Instant {
    Instant::now() + LONG
}

/// A host, represented by a directory.
pub(crate) fn host() -> TempDir {
    let mine = std::fs::Permissions::from_mode(0o700);
    let directory = tempfile::Builder::new().permissions(mine).tempdir();
    directory.expect("a directory")
}

/// Any port of 127.0.0.1, without a secret.
pub(crate) fn network() -> NetworkOptions {
    NetworkOptions {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        ..NetworkOptions::default()
    }
}

pub(crate) fn options(host: &TempDir, id: u128, network: NetworkOptions) -> StationOptions {
    StationOptions {
        host: shm::HostOptions {
            directory: Some(host.path().into()),
            ..shm::HostOptions::new(DOMAIN, id)
        },
        network: Some(network),
    }
}

/// A station on a host of its own.
pub(crate) fn alone(id: u128, network: NetworkOptions) -> Station {
    // The station has the directory open; its name may be removed.
    Station::open(&options(&host(), id, network)).expect("a station")
}

/// Stations with ids from 1, each on its own host, all connected.
pub(crate) fn apart(count: u128, network: &NetworkOptions) -> Vec<Station> {
    let stations: Vec<_> = (1..=count).map(|id| alone(id, network.clone())).collect();
    connect(&stations);
    stations
}

pub(crate) fn connect(stations: &[Station]) {
    for (at, one) in stations.iter().enumerate() {
        for other in &stations[..at] {
            let id = one.connect(&other.address(), soon()).expect("connected");
            assert_eq!(id, other.id());
        }
    }
}

pub(crate) fn request(
    stations: &[Station],
    me: usize,
    index: u32,
    row_len: usize,
) -> SegmentRequest {
    SegmentRequest {
        key: SegmentKey { epoch: 1, index },
        members: stations.iter().map(Station::id).collect(),
        me: Rank(me as u16),
        row_lens: vec![row_len; stations.len()],
        control: true,
    }
}

/// A segment made by all of them.
pub(crate) fn segment(stations: &[Station], row_len: usize) -> Vec<HybridSegment> {
    let make = |me: usize| {
        let request = request(stations, me, 0, row_len);
        stations[me].segment(&request, soon()).expect("a segment")
    };
    thread::scope(|scope| {
        let make = &make;
        let makes = (0..stations.len()).map(|me| scope.spawn(move || make(me)));
        let makes: Vec<_> = makes.collect();
        makes
            .into_iter()
            .map(|made| made.join().expect("no panic"))
            .collect()
    })
}

/// The next event, which must come in time.
pub(crate) fn event(station: &Station) -> StationEvent {
    station.next_event(LONG).expect("an event")
}

/// The next event that reports a lost peer: its id, and why.
pub(crate) fn loss(station: &Station) -> (u128, String) {
    loop {
        if let StationEvent::Closed { id, cause } = event(station) {
            return (id, cause.to_string());
        }
    }
}

pub(crate) fn until(what: impl Fn() -> bool) {
    while !what() {
        thread::sleep(Duration::from_micros(100));
    }
}
