//! Stations in this process, and engines over them in one view.

#[path = "../view/mod.rs"]
mod view;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_core::membership::CONTROL_ROW_LEN;
use spindle_dds_core::{Engine, EngineConfig, SegmentLayout, Sink, SubgroupSpec};
use spindle_dds_transport::hybrid::{HybridSegment, NetworkOptions, Station, StationOptions};
use spindle_dds_transport::{FABRIC_AREA, Rank, SegmentKey, SegmentRequest, shm};

/// Engines of a view with these subgroups, whose rings have room; and their stations, which are
/// to live as long. The members are on these hosts, in truth directories of this one.
pub(crate) fn engines<S: Sink<HybridSegment>>(
    hosts: &[usize],
    subgroups: &[SubgroupSpec],
    sink: impl Fn(usize) -> S,
) -> (Vec<Station>, Vec<Engine<HybridSegment, S>>) {
    let (stations, segments) = segments(hosts, subgroups);
    let view = view::view_of(hosts.len(), subgroups.to_vec());
    let engine = |(rank, segments): (usize, Vec<HybridSegment>)| {
        let mut segments = segments.into_iter();
        let (Some(own), Some(control)) = (segments.next(), segments.next()) else {
            unreachable!("its own and the control segment");
        };
        let engine = Engine::new(own, EngineConfig::SPINDLE, sink(rank));
        view::begin_view(&engine, &view, control, segments);
        engine
    };
    let engines: Vec<_> = segments.into_iter().enumerate().map(engine).collect();
    let begun = |engine: &Engine<_, _>| {
        engine.step(0);
        let subgroups = engine.figures().subgroups;
        subgroups.iter().all(|subgroup| subgroup.unready.is_empty())
    };
    while !engines.iter().fold(true, |all, it| begun(it) & all) {
        thread::yield_now();
    }
    (stations, engines)
}

/// For each member: its own segment, the control segment, and the subgroups' segments.
fn segments(
    hosts: &[usize],
    subgroups: &[SubgroupSpec],
) -> (Vec<Station>, Vec<Vec<HybridSegment>>) {
    let soon = Instant::now() + Duration::from_secs(20);
    let mine = || Permissions::from_mode(0o700);
    let directory = |_| tempfile::Builder::new().permissions(mine()).tempdir();
    let directories = hosts.iter().map(directory).collect::<Result<Vec<_>, _>>();
    let directories = directories.expect("directories");
    let apart = hosts.iter().any(|&host| host != hosts[0]);
    let open = |(at, &host): (usize, &usize)| {
        let host = shm::HostOptions {
            directory: Some(directories[host].path().into()),
            ..shm::HostOptions::new(0, 1 + at as u128)
        };
        let network = apart.then(NetworkOptions::default);
        Station::open(&StationOptions { host, network }).expect("a station")
    };
    let stations: Vec<_> = hosts.iter().enumerate().map(open).collect();
    for (at, one) in stations.iter().enumerate() {
        for other in &stations[..at] {
            one.connect(&other.address(), soon).expect("connected");
        }
    }
    let made = thread::scope(|scope| {
        let make = |(me, station): (usize, &Station)| {
            let own = station.segment(&own_request(me), soon).expect("a segment");
            let shared = station.segments(&requests(hosts.len(), me, subgroups), soon);
            let shared = shared.expect("segments");
            std::iter::once(own).chain(shared).collect()
        };
        let threads: Vec<_> = stations
            .iter()
            .enumerate()
            .map(|each| scope.spawn(move || make(each)))
            .collect();
        let made = threads.into_iter().map(|thread| thread.join());
        made.map(|made| made.expect("no panic")).collect()
    });
    (stations, made)
}

/// The segment in which a member's threads sleep.
fn own_request(me: usize) -> SegmentRequest {
    SegmentRequest {
        key: SegmentKey { epoch: 0, index: 0 },
        members: vec![1 + me as u128],
        me: Rank(0),
        row_lens: vec![FABRIC_AREA],
        control: false,
    }
}

/// The segments that members share, for participants with ids from 1.
fn requests(members: usize, me: usize, subgroups: &[SubgroupSpec]) -> Vec<SegmentRequest> {
    let request = |subgroup, row_lens| SegmentRequest {
        key: SegmentKey {
            epoch: 1,
            index: subgroup,
        },
        members: (1..=members as u128).collect(),
        me: Rank(me as u16),
        row_lens,
        control: subgroup == 0,
    };
    let rows = |subgroup| SegmentLayout::new(subgroup).expect("a subgroup").row_lens();
    let subgroups = (1..)
        .zip(subgroups)
        .map(|(at, subgroup)| request(at, rows(subgroup)));
    let control = request(0, vec![CONTROL_ROW_LEN; members]);
    std::iter::once(control).chain(subgroups).collect()
}
