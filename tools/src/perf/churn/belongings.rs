//! What a process has of the system, by the kernel's word: to see whether views leave
//! something behind.

use std::io;

use serde::{Deserialize, Serialize};

/// What a process has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Belongings {
    /// Open files and sockets.
    pub(super) descriptors: u64,
    /// Stretches of memory that are mapped.
    pub(super) mappings: u64,
    pub(super) threads: u64,
    /// Memory that devices may reach (`VmPin`): what is registered for RDMA.
    pub(super) pinned_kib: u64,
}

impl Belongings {
    /// Of this process, now.
    pub(super) fn now() -> io::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|it| it.trim().trim_end_matches(" kB").parse().ok())
        };
        Ok(Self {
            descriptors: std::fs::read_dir("/proc/self/fd")?.count() as u64,
            mappings: std::fs::read_to_string("/proc/self/maps")?.lines().count() as u64,
            threads: number("Threads:").unwrap_or(0),
            // Kernels that know of none have pinned none.
            pinned_kib: number("VmPin:").unwrap_or(0),
        })
    }

    /// In words, what there is more of than there was; none if it is no more than what
    /// comes and goes by itself.
    pub(super) fn more_than(&self, before: &Self) -> Vec<String> {
        more(&[
            ("descriptors", before.descriptors, self.descriptors),
            ("mappings", before.mappings + MAPPINGS_MORE, self.mappings),
            ("threads", before.threads, self.threads),
            ("KiB pinned", before.pinned_kib, self.pinned_kib),
        ])
    }

    /// The least of both, of each.
    pub(super) fn least(&self, other: &Self) -> Self {
        Self {
            descriptors: self.descriptors.min(other.descriptors),
            mappings: self.mappings.min(other.mappings),
            threads: self.threads.min(other.threads),
            pinned_kib: self.pinned_kib.min(other.pinned_kib),
        }
    }
}

/// In words, what there is more of than there may be: of name, most and number.
pub(super) fn more(all: &[(&str, u64, u64)]) -> Vec<String> {
    let more = all.iter().filter(|(_, most, now)| now > most);
    more.map(|(name, most, now)| format!("{now} {name}, not {most}"))
        .collect()
}

/// The memory allocator has areas of its own for threads, and the kernel joins mappings
/// that touch.
const MAPPINGS_MORE: u64 = 16;

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
        assert!(before.mappings > 0 && before.threads > 0);
    }

    #[test]
    fn what_is_left_behind_is_named() {
        let before = Belongings {
            descriptors: 20,
            mappings: 100,
            threads: 8,
            pinned_kib: 3_000,
        };
        let check = |now: Belongings, expected: &[&str]| {
            assert_eq!(now.more_than(&before), expected);
        };
        check(before, &[]);
        check(Belongings::default(), &[]);
        let now = Belongings {
            descriptors: 21,
            mappings: 100 + MAPPINGS_MORE + 1,
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
        assert!(now.least(&before).more_than(&before).is_empty());
    }
}
