//! Queue pairs on trial, in the handshake of two stations.

use core::time::Duration;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use super::harness::{AGES, Firewall};
use crate::hybrid::{NetworkOptions, PeerPath, RdmaUse, Station, StationOptions};
use crate::rdma::RdmaOptions;
use crate::shm;

/// As if each node were a host of its own.
fn station(node: u8) -> (tempfile::TempDir, Station) {
    let mine = Permissions::from_mode(0o700);
    let directory = tempfile::Builder::new().permissions(mine).tempdir();
    let directory = directory.expect("a directory");
    let options = StationOptions {
        host: shm::HostOptions {
            directory: Some(directory.path().into()),
            ..shm::HostOptions::new(0, node.into())
        },
        network: Some(NetworkOptions {
            listen: ([10, 77, 0, node], 0).into(),
            rdma: RdmaUse::Required(RdmaOptions {
                device: Some(format!("rxe{node}")),
                ..RdmaOptions::default()
            }),
            ..NetworkOptions::default()
        }),
    };
    (directory, Station::open(&options).expect("a station"))
}

/// Packets of a trial may be lost by chance. A station that gave up after one trial would never
/// reach the other: in a group, each would suspect the other, and both would be expelled.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn a_trial_without_packets_is_repeated_where_rdma_is_required() {
    let ((_ours, a), (_theirs, b)) = (station(1), station(2));
    let firewall = Firewall::against_rdma();
    let address = b.address();
    std::thread::scope(|scope| {
        let calls = scope.spawn(|| a.connect(&address, Instant::now() + 4 * AGES));
        // One trial takes less time.
        std::thread::sleep(Duration::from_secs(3));
        assert!(
            !calls.is_finished(),
            "it was content with: {:?}",
            calls.join()
        );
        drop(firewall);
        let reached = calls.join().expect("no panic");
        assert_eq!(reached.expect("in time"), b.id());
    });
    assert!(matches!(a.path(b.id()), Some(PeerPath::Rdma(_))));
}
