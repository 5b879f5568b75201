//! Stations in this process, and what an engine needs of them.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_core::{CONTROL_ROW_LEN, Layout, SubgroupSpec};
use spindle_dds_transport::hybrid::{HybridSegment, NetworkOptions, Station, StationOptions};
use spindle_dds_transport::{Rank, SegmentKey, SegmentRequest, shm};

/// The control segment and then the lanes of each member, and their stations, which are to
/// live as long. The members are on these hosts, in truth directories of this one.
pub(crate) fn segments(
    hosts: &[usize],
    lanes: &[SubgroupSpec],
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
            let made = station.segments(&requests(hosts.len(), me, lanes), soon);
            made.expect("segments")
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

/// All, for participants with ids from 1.
fn requests(members: usize, me: usize, lanes: &[SubgroupSpec]) -> Vec<SegmentRequest> {
    let request = |lane, row_lens| SegmentRequest {
        key: SegmentKey {
            epoch: 1,
            index: lane,
        },
        members: (1..=members as u128).collect(),
        me: Rank(me as u16),
        row_lens,
        control: lane == 0,
    };
    let rows = |lane| Layout::new(lane).expect("a lane").row_lens();
    let lanes = (1..).zip(lanes).map(|(at, lane)| request(at, rows(lane)));
    let control = request(0, vec![CONTROL_ROW_LEN; members]);
    std::iter::once(control).chain(lanes).collect()
}
