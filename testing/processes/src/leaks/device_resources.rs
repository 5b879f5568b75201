//! What is allocated of RDMA devices, as the kernel counts it.

use std::io;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::resources::describe_excess;

/// What all processes together, and the kernel itself, have allocated of some devices. The kernel
/// does not count by process: it names the thread that opened a device, as long as that lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeviceResources {
    pub(super) queue_pairs: u64,
    pub(super) completion_queues: u64,
    /// Registered memory regions.
    pub(super) regions: u64,
}

/// A device in the output of `rdma`.
#[derive(Debug, Deserialize)]
struct Summary {
    ifname: String,
    qp: u64,
    cq: u64,
    mr: u64,
}

impl DeviceResources {
    /// Of the devices of these names, now.
    pub(super) fn now(names: &[&str]) -> io::Result<Self> {
        let said = Command::new("rdma")
            .args(["-j", "resource", "show"])
            .output()
            .map_err(|error| {
                let text = format!("`rdma`, of the package iproute2, does not run: {error}");
                io::Error::new(error.kind(), text)
            })?;
        if !said.status.success() {
            let error = String::from_utf8_lossy(&said.stderr);
            let text = format!("`rdma resource show` fails: {}", error.trim());
            return Err(io::Error::other(text));
        }
        Self::parse(&said.stdout, names)
    }

    fn parse(said: &[u8], names: &[&str]) -> io::Result<Self> {
        let all: Vec<Summary> = serde_json::from_slice(said)?;
        let mut found = Self::default();
        for name in names {
            let device = all.iter().find(|device| device.ifname == *name);
            let device = device.ok_or_else(|| {
                io::Error::other(format!("`rdma resource show` does not list {name}"))
            })?;
            found.queue_pairs += device.qp;
            found.completion_queues += device.cq;
            found.regions += device.mr;
        }
        Ok(found)
    }

    /// In words, what there is more of than `before`.
    pub(super) fn excess_over(&self, before: &Self) -> Vec<String> {
        describe_excess(&[
            ("queue pairs", before.queue_pairs, self.queue_pairs),
            (
                "completion queues",
                before.completion_queues,
                self.completion_queues,
            ),
            ("registered regions", before.regions, self.regions),
        ])
    }

    /// The smaller count of both, for each kind.
    pub(super) fn min(&self, other: &Self) -> Self {
        Self {
            queue_pairs: self.queue_pairs.min(other.queue_pairs),
            completion_queues: self.completion_queues.min(other.completion_queues),
            regions: self.regions.min(other.regions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &[u8] = br#"[
        {"ifindex":0,"ifname":"rxe1","pd":3,"cq":3,"qp":2,"cm_id":0,"mr":5,"ctx":2,"srq":0},
        {"ifindex":1,"ifname":"rxe2","pd":2,"cq":7,"qp":4,"cm_id":0,"mr":1,"ctx":1,"srq":0}]"#;

    #[test]
    fn counts_of_devices_are_added() {
        let check = |names: &[&str], expected: (u64, u64, u64)| {
            let found = DeviceResources::parse(SAID, names).expect("JSON of rdma");
            let found = (found.queue_pairs, found.completion_queues, found.regions);
            assert_eq!(found, expected, "{names:?}");
        };
        check(&["rxe1", "rxe2"], (6, 10, 6));
        check(&["rxe2"], (4, 7, 1));
        let error = DeviceResources::parse(SAID, &["rxe3"]).expect_err("not there");
        assert!(error.to_string().contains("not list rxe3"), "{error}");
        DeviceResources::parse(b"[{}]", &[]).expect_err("no device");
    }

    #[test]
    fn each_excess_is_named() {
        let before = DeviceResources::parse(SAID, &["rxe1"]).expect("JSON of rdma");
        let after = DeviceResources::parse(SAID, &["rxe2"]).expect("JSON of rdma");
        let excess = ["4 queue pairs, not 2", "7 completion queues, not 3"];
        assert_eq!(after.excess_over(&before), excess);
        assert_eq!(before.excess_over(&after), ["5 registered regions, not 1"]);
        assert!(before.excess_over(&before).is_empty());
        assert_eq!(before.min(&after).regions, 1);
    }
}
