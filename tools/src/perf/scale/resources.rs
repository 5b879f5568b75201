//! What a process holds of the system, by the kernel's word: the same for each middleware.

use std::{fs, io};

use serde::Serialize;

/// What a process holds. Memory is its proportional share (PSS): of a page that several processes
/// map, each is charged a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Resources {
    /// All memory.
    pub(super) pss_bytes: u64,
    /// Memory files and other shared memory: rows with their rings.
    pub(super) shared_bytes: u64,
    /// Anonymous memory: heap, stacks, bookkeeping.
    pub(super) anonymous_bytes: u64,
    /// Pages of files: the program and its libraries.
    pub(super) program_bytes: u64,
    pub(super) descriptors: u64,
    pub(super) mappings: u64,
    pub(super) threads: u64,
}

impl Resources {
    /// What a process holds now.
    pub(super) fn read(pid: u32) -> io::Result<Self> {
        let path = |name: &str| format!("/proc/{pid}/{name}");
        let named = |name: &str, error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", path(name)))
        };
        let text = |name| fs::read_to_string(path(name)).map_err(|error| named(name, error));
        let entries = |name| match fs::read_dir(path(name)) {
            Ok(entries) => Ok(entries.count() as u64),
            Err(error) => Err(named(name, error)),
        };
        let rollup = text("smaps_rollup")?;
        let bytes = |field| {
            let lack = || io::Error::other(format!("{} has no {field}", path("smaps_rollup")));
            bytes(&rollup, field).ok_or_else(lack)
        };
        Ok(Self {
            pss_bytes: bytes("Pss")?,
            shared_bytes: bytes("Pss_Shmem")?,
            anonymous_bytes: bytes("Pss_Anon")?,
            program_bytes: bytes("Pss_File")?,
            descriptors: entries("fd")?,
            mappings: text("maps")?.lines().count() as u64,
            threads: entries("task")?,
        })
    }
}

/// A line of smaps_rollup, such as `Pss_Anon:            116 kB`.
fn bytes(rollup: &str, field: &str) -> Option<u64> {
    let mut lines = rollup.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| *name == field)?;
    let kib: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_by_its_whole_name() {
        let rollup = "55-7f ---p 00000000 00:00 0    [rollup]\n\
                      Rss:                1812 kB\n\
                      Pss:                 247 kB\n\
                      Pss_Anon:            116 kB\n";
        let read = ["Pss", "Pss_Anon", "Pss_File"].map(|field| bytes(rollup, field));
        assert_eq!(read, [Some(247 << 10), Some(116 << 10), None]);
    }

    #[test]
    fn the_kinds_make_up_the_whole() {
        let heap = vec![1_u8; 4 << 20];
        let read = Resources::read(std::process::id()).expect("this process");
        assert!(std::hint::black_box(&heap).len() as u64 <= read.anonymous_bytes);
        let kinds = read.shared_bytes + read.anonymous_bytes + read.program_bytes;
        // Each is rounded to KiB.
        assert!(kinds.abs_diff(read.pss_bytes) <= 4 << 10, "{read:?}");
        assert!(read.descriptors > 0 && read.mappings > 0 && read.threads > 0);
    }

    #[test]
    fn a_process_that_has_ended_is_an_error_with_its_path() {
        let error = Resources::read(u32::MAX).expect_err("no such process");
        assert!(
            error.to_string().starts_with("/proc/4294967295/"),
            "{error}"
        );
    }
}
