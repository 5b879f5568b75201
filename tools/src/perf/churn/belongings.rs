//! What a process has of the system, by /proc: to see whether views leave something behind.

use std::io;

use serde::{Deserialize, Serialize};

/// What a process has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Belongings {
    /// Open files and sockets.
    pub(super) descriptors: usize,
    /// Stretches of memory that are mapped.
    pub(super) mappings: usize,
    /// Memory that devices may reach (`VmPin`): what is registered for RDMA.
    pub(super) pinned_kib: u64,
}

impl Belongings {
    /// Of this process, now.
    pub(super) fn now() -> io::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let pinned = status.lines().find_map(|line| line.strip_prefix("VmPin:"));
        let pinned = pinned.and_then(|it| it.trim().strip_suffix(" kB")?.parse().ok());
        Ok(Self {
            descriptors: std::fs::read_dir("/proc/self/fd")?.count(),
            mappings: std::fs::read_to_string("/proc/self/maps")?.lines().count(),
            pinned_kib: pinned.unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_opened_is_counted() {
        let before = Belongings::now().expect("proc");
        let files = [(); 100].map(|()| std::fs::File::open("/dev/null").expect("a file"));
        let open = Belongings::now().expect("proc");
        drop(files);
        // Other tests run beside it.
        assert!(open.descriptors >= before.descriptors + 50, "{open:?}");
        assert!(before.mappings > 0);
    }
}
