//! What a process holds of the system, as the kernel counts it: a leak shows as more of it.

use std::io;

use serde::{Deserialize, Serialize};

/// What a process holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Resources {
    /// Open files and sockets.
    pub(crate) descriptors: u64,
    /// Ranges of memory that are mapped.
    pub(crate) mappings: u64,
    pub(crate) threads: u64,
    /// Memory that devices may access (`VmPin`), that is, registered for RDMA.
    pub(crate) pinned_kib: u64,
}

impl Resources {
    /// Of this process, now.
    pub(crate) fn now() -> io::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|it| it.trim().trim_end_matches(" kB").parse().ok())
        };
        Ok(Self {
            descriptors: std::fs::read_dir("/proc/self/fd")?.count() as u64,
            mappings: std::fs::read_to_string("/proc/self/maps")?.lines().count() as u64,
            threads: number("Threads:").unwrap_or(0),
            // Absent on kernels that do not count it.
            pinned_kib: number("VmPin:").unwrap_or(0),
        })
    }

    /// In words, what there is more of than `before`, beyond what comes and goes by itself.
    pub(crate) fn excess_over(&self, before: &Self) -> Vec<String> {
        describe_excess(&[
            ("descriptors", before.descriptors, self.descriptors),
            ("mappings", before.mappings + MAPPINGS_SLACK, self.mappings),
            ("threads", before.threads, self.threads),
            ("KiB pinned", before.pinned_kib, self.pinned_kib),
        ])
    }

    /// The smaller count of both, for each kind.
    pub(crate) fn min(&self, other: &Self) -> Self {
        Self {
            descriptors: self.descriptors.min(other.descriptors),
            mappings: self.mappings.min(other.mappings),
            threads: self.threads.min(other.threads),
            pinned_kib: self.pinned_kib.min(other.pinned_kib),
        }
    }
}

/// Memory of this process that no file backs and no other process shares (`RssAnon`), in KiB.
pub(crate) fn anonymous_kib() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|it| it.trim().trim_end_matches(" kB").parse().ok());
    kib.ok_or_else(|| io::Error::other("/proc/self/status has no RssAnon"))
}

/// In words, each count above its limit. Of each: name, limit, count.
pub(crate) fn describe_excess(counts: &[(&str, u64, u64)]) -> Vec<String> {
    let excess = counts.iter().filter(|(_, limit, count)| count > limit);
    excess
        .map(|(name, limit, count)| format!("{count} {name}, not {limit}"))
        .collect()
}

/// Mappings come and go by themselves: the allocator maps arenas for threads, and the kernel
/// merges mappings that touch.
const MAPPINGS_SLACK: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_are_counted() {
        let before = Resources::now().expect("proc");
        let files = [(); 100].map(|()| std::fs::File::open("/dev/null").expect("a file"));
        let open = Resources::now().expect("proc");
        drop(files);
        // Other tests open and close files meanwhile.
        assert!(open.descriptors >= before.descriptors + 50, "{open:?}");
        assert!(before.mappings > 0 && before.threads > 0);
    }

    #[test]
    fn each_excess_is_named() {
        let before = Resources {
            descriptors: 20,
            mappings: 100,
            threads: 8,
            pinned_kib: 3_000,
        };
        let check = |now: Resources, expected: &[&str]| {
            assert_eq!(now.excess_over(&before), expected);
        };
        check(before, &[]);
        check(Resources::default(), &[]);
        let now = Resources {
            descriptors: 21,
            mappings: 100 + MAPPINGS_SLACK + 1,
            threads: 9,
            pinned_kib: 3_004,
        };
        check(
            now,
            &[
                "21 descriptors, not 20",
                "117 mappings, not 116",
                "9 threads, not 8",
                "3004 KiB pinned, not 3000",
            ],
        );
        assert!(now.min(&before).excess_over(&before).is_empty());
    }
}
