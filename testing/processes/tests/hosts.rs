//! The flight on several hosts, which are network namespaces. Skipped where these cannot be made.

#[expect(dead_code, reason = "no host is cut off here")]
#[path = "../../../transport-rdma/tests/namespaces/mod.rs"]
mod network;

use std::process::{Child, Stdio};

use network::Network;
use serde_json::Value;

/// One process of a run on a host.
fn start(network: &Network, directories: &std::path::Path, host: usize, role: &str) -> Child {
    let directory = directories.join(format!("host-{host}"));
    network
        .command(host, env!("CARGO_BIN_EXE_processes"))
        .args([
            "flight", "--role", role, "--frames", "4000", "--rate", "max",
        ])
        .args(["--feeds", "2", "--displays", "3"])
        .args(["--directory", directory.to_str().expect("UTF-8")])
        .args(["--listen", &format!("{}:7400", network.address(host))])
        .args(["--contacts", &format!("{}:7400", network.address(0))])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process")
}

#[test]
fn displays_on_several_hosts_agree() {
    let Some(network) = Network::new(3) else {
        return;
    };
    let directories = tempfile::tempdir().expect("a directory");
    let roles = [
        (0, "feed:0"),
        (0, "display:0"),
        (1, "feed:1"),
        (1, "display:1"),
        (2, "display:2"),
    ];
    let started = roles.map(|(host, role)| (role, start(&network, directories.path(), host, role)));
    let results = started.map(|(role, child)| {
        let ended = child.wait_with_output().expect("it ends");
        let text = String::from_utf8(ended.stdout).expect("UTF-8");
        assert!(ended.status.success(), "{role}: {text}");
        let last = text.lines().last().unwrap_or_default();
        serde_json::from_str::<Value>(last).unwrap_or_else(|error| panic!("{role}: {error}"))
    });
    let shown: Vec<&Value> = results.iter().filter_map(|it| it.get("shown")).collect();
    let fed: Vec<&Value> = results.iter().filter_map(|it| it.get("fed")).collect();
    let published: u64 = fed.iter().filter_map(|it| it["published"].as_u64()).sum();
    assert_eq!((shown.len(), fed.len()), (3, 2));
    assert!(published > 3000, "{fed:?}");
    for display in &shown {
        assert_eq!(display["delivered"], published);
        assert_eq!(display["digest"], shown[0]["digest"]);
        assert_eq!(display["fifo_digests"], shown[0]["fifo_digests"]);
    }
    assert!(shown[0]["switches"].as_u64() > Some(0), "{:?}", shown[0]);
}
