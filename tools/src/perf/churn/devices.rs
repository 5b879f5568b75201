//! What the kernel has of RDMA devices: to see whether views leave something behind.

use std::io;
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::belongings::more;

/// What all processes together have of some devices, and the kernel itself. By process it
/// cannot be told: the kernel knows the thread only that has opened a device, while it lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OfDevices {
    pub(super) queue_pairs: u64,
    pub(super) completion_queues: u64,
    /// Memory that is registered.
    pub(super) regions: u64,
}

/// A device, as `rdma` tells of it.
#[derive(Debug, Deserialize)]
struct Summary {
    ifname: String,
    qp: u64,
    cq: u64,
    mr: u64,
}

impl OfDevices {
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
        Self::read(&said.stdout, names)
    }

    fn read(said: &[u8], names: &[&str]) -> io::Result<Self> {
        let all: Vec<Summary> = serde_json::from_slice(said)?;
        let mut found = Self::default();
        for name in names {
            let device = all.iter().find(|device| device.ifname == *name);
            let device = device.ok_or_else(|| {
                io::Error::other(format!("`rdma resource show` tells nothing of {name}"))
            })?;
            found.queue_pairs += device.qp;
            found.completion_queues += device.cq;
            found.regions += device.mr;
        }
        Ok(found)
    }

    /// In words, what there is more of than there was.
    pub(super) fn more_than(&self, before: &Self) -> Vec<String> {
        more(&[
            ("queue pairs", before.queue_pairs, self.queue_pairs),
            (
                "completion queues",
                before.completion_queues,
                self.completion_queues,
            ),
            ("registered regions", before.regions, self.regions),
        ])
    }

    /// The least of both, of each.
    pub(super) fn least(&self, other: &Self) -> Self {
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
    fn devices_are_counted_together() {
        let check = |names: &[&str], expected: (u64, u64, u64)| {
            let found = OfDevices::read(SAID, names).expect("sense");
            let found = (found.queue_pairs, found.completion_queues, found.regions);
            assert_eq!(found, expected, "{names:?}");
        };
        check(&["rxe1", "rxe2"], (6, 10, 6));
        check(&["rxe2"], (4, 7, 1));
        let error = OfDevices::read(SAID, &["rxe3"]).expect_err("not there");
        assert!(error.to_string().contains("nothing of rxe3"), "{error}");
        OfDevices::read(b"[{}]", &[]).expect_err("no device");
    }

    #[test]
    fn what_is_left_behind_is_named() {
        let before = OfDevices::read(SAID, &["rxe1"]).expect("sense");
        let after = OfDevices::read(SAID, &["rxe2"]).expect("sense");
        let more = ["4 queue pairs, not 2", "7 completion queues, not 3"];
        assert_eq!(after.more_than(&before), more);
        assert_eq!(before.more_than(&after), ["5 registered regions, not 1"]);
        assert!(before.more_than(&before).is_empty());
        assert_eq!(before.least(&after).regions, 1);
    }
}
