//! The kernel's figures of a process.

use std::fs;

/// A process at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Process {
    /// The name of its program, at most 15 bytes.
    pub(super) command: String,
    /// Processor time used so far.
    pub(super) cpu_ns: u64,
    /// Its memory, of shared pages its share (PSS); `None` if the kernel does not tell.
    pub(super) pss_bytes: Option<u64>,
}

/// The kernel counts processor time in hundredths of a second (USER_HZ) on all supported
/// machines.
const TICK_NS: u64 = 10_000_000;

impl Process {
    /// `None` once it has ended.
    pub(super) fn read(pid: u32) -> Option<Self> {
        let told = |file| fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
        let process = Self::parse(&told("stat")?)?;
        let pss_bytes = told("smaps_rollup").and_then(|text| pss_bytes(&text));
        Some(Self {
            pss_bytes,
            ..process
        })
    }

    /// Reads a line of proc_pid_stat(5).
    fn parse(stat: &str) -> Option<Self> {
        // The name may contain anything, so fields are counted from the last bracket, which is
        // before the 3rd: user and system time are the 14th and 15th.
        let (before, fields) = stat.rsplit_once(')')?;
        let (_, command) = before.split_once('(')?;
        let mut fields = fields.split_ascii_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        let cpu = ticks()?.saturating_add(ticks()?);
        Some(Self {
            // The terminal would interpret control characters.
            command: command.replace(char::is_control, "?"),
            cpu_ns: cpu.saturating_mul(TICK_NS),
            pss_bytes: None,
        })
    }
}

/// Reads the file smaps_rollup of proc_pid_smaps(5).
fn pss_bytes(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc_pid_stat_is_parsed() {
        let line = "7 (a) b\n) S 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 5 0 99 1 2";
        let read = Process::parse(line).expect("a process");
        assert_eq!((&*read.command, read.cpu_ns), ("a) b?", 3_000_000_000));
        assert_eq!(Process::parse("7 (a) S 1 7"), None);
        assert_eq!(Process::parse(""), None);
        let own = Process::read(std::process::id());
        assert!(own.is_some_and(|own| !own.command.is_empty()));
        let rollup = "55d0-7ffe ---p 0 0 [rollup]\nRss:  12 kB\nPss:     7 kB\nPss_Anon: 1 kB\n";
        assert_eq!(pss_bytes(rollup), Some(7168));
        assert_eq!(pss_bytes("Rss: 12 kB"), None);
        assert_eq!(Process::read(u32::MAX), None);
    }
}
