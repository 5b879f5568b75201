//! Processor time: of the processes of a run, and of everything else on the host.

use std::{fs, io};

use serde::Serialize;

/// How busy the machine was during a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Load {
    /// Processor time of all processes of the run, from their start to their end.
    pub cpu_seconds: f64,
    /// Share of all processors that anything else used, also other machines on this host.
    pub foreign: f64,
}

/// What the kernel has counted so far, in ticks.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Of all processors: processes, and what the host kept for others.
    busy: u64,
    /// The same, and idle.
    all: u64,
    /// Of processes that this one has started and that have ended.
    children: u64,
    /// Of this one.
    own: u64,
}

impl Moment {
    /// The kernel's counts as they are now.
    pub fn now() -> io::Result<Self> {
        let (stat, own) = (
            fs::read_to_string("/proc/stat")?,
            fs::read_to_string("/proc/self/stat")?,
        );
        Self::of(&stat, &own).ok_or_else(|| io::Error::other("/proc/stat makes no sense"))
    }

    fn of(stat: &str, own: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks = numbers(line);
        let [user, nice, system, idle, waiting, _, _, steal] = *ticks.first_chunk()?;
        // Interrupts are left out: those of a trial would count as foreign.
        let busy = user + nice + system + steal;
        // The name of a program may have anything in it, also brackets.
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
    // Some fields of processes are negative: none that is looked at.
    words.map(|word| word.parse().unwrap_or(0)).collect()
}

/// Processes that run or want to, on average over the last minute, and over 5 and 15.
pub fn average() -> String {
    let told = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    told.split_whitespace()
        .take(3)
        .collect::<Vec<_>>()
        .join(" ")
}

/// What machine this is.
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
    fn what_is_not_of_the_trial_is_foreign() {
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
    fn this_machine_can_be_read() {
        let before = Moment::now().expect("the kernel's files");
        let load = Moment::now().expect("the kernel's files").since(&before);
        assert!((0.0..=1.0).contains(&load.foreign), "{load:?}");
    }
}
