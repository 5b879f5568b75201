//! Processor time: of the processes of a run, and of everything else on the host.

use std::{fs, io};

use serde::Serialize;

/// The load of the machine during a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Load {
    /// Processor time of all processes of the run.
    pub cpu_seconds: f64,
    /// Share of all processors that everything else used, including other virtual machines.
    pub foreign: f64,
}

/// The kernel's counts at one moment, in ticks.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Busy time of all processors: processes, and time stolen by the hypervisor.
    busy: u64,
    /// Busy and idle time of all processors.
    all: u64,
    /// Time of this process's children that have ended.
    children: u64,
    /// Time of this process.
    own: u64,
}

impl Moment {
    /// The kernel's counts as they are now.
    pub fn now() -> io::Result<Self> {
        let (stat, own) = (
            fs::read_to_string("/proc/stat")?,
            fs::read_to_string("/proc/self/stat")?,
        );
        Self::of(&stat, &own).ok_or_else(|| io::Error::other("cannot parse /proc/stat"))
    }

    fn of(stat: &str, own: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks = numbers(line);
        let [user, nice, system, idle, waiting, _, _, steal] = *ticks.first_chunk()?;
        // Interrupts are left out: those of a run would count as foreign.
        let busy = user + nice + system + steal;
        // A program's name may contain brackets.
        let own = numbers(own.rsplit_once(") ")?.1.split_once(' ')?.1);
        let [own_user, own_system, children_user, children_system] = *own.get(10..14)? else {
            return None;
        };
        Some(Self {
            busy,
            all: busy + idle + waiting,
            children: children_user + children_system,
            own: own_user + own_system,
        })
    }

    /// The load between two moments.
    pub fn since(&self, before: &Self) -> Load {
        let children = self.children.saturating_sub(before.children);
        let own = self.own.saturating_sub(before.own);
        let foreign = self.busy.saturating_sub(before.busy + children + own);
        let all = self.all.saturating_sub(before.all).max(1);
        Load {
            cpu_seconds: children as f64 / rustix::param::clock_ticks_per_second() as f64,
            foreign: foreign as f64 / all as f64,
        }
    }
}

fn numbers(text: &str) -> Vec<u64> {
    let words = text.split_whitespace();
    // Negative fields become 0: none of them is used.
    words.map(|word| word.parse().unwrap_or(0)).collect()
}

/// Load averages of the last 1, 5 and 15 minutes.
pub fn average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .take(3)
        .collect::<Vec<_>>()
        .join(" ")
}

/// A description of the machine: processors and kernel.
pub fn machine() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let models = || {
        processors
            .lines()
            .filter(|line| line.starts_with("model name"))
    };
    let model = models().next().and_then(|line| line.split_once(": "));
    let kernel = read("/proc/sys/kernel/osrelease");
    format!(
        "{} x {}, Linux {}",
        std::thread::available_parallelism().map_or(0, usize::from),
        model.map_or("?", |(_, model)| model),
        kernel.trim()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_of_other_processes_is_foreign() {
        let own = |own, children| {
            format!("7 (a) b) S 1 7 7 0 -1 4194304 1 2 3 4 {own} 1 {children} 2 20 0 1")
        };
        let before = Moment::of("cpu  100 0 50 850 0 9 9 0 0 0\ncpu0 1", &own(5, 10));
        let after = Moment::of("cpu  160 0 60 970 0 99 99 10 0 0\ncpu0 1", &own(6, 40));
        let load = after.expect("ticks").since(&before.expect("ticks"));
        // 200 ticks passed, 80 of them busy, 30 by children and 1 by this process.
        assert_eq!(load.foreign, 49.0 / 200.0);
        assert!(load.cpu_seconds > 0.0);
    }

    #[test]
    fn the_load_of_this_machine_can_be_read() {
        let before = Moment::now().expect("the kernel's files");
        let load = Moment::now().expect("the kernel's files").since(&before);
        assert!((0.0..=1.0).contains(&load.foreign), "{load:?}");
    }
}
