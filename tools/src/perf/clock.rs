//! Clocks: one that all processes of a host share, and this process's own.

use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC in nanoseconds.
pub(super) fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Processor time that all threads of this process have used.
pub(super) fn process_cpu_ns() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

/// How often the threads of this process that live have gone to sleep, and so had to be woken.
pub(super) fn voluntary_switches() -> io::Result<u64> {
    let mut sum = 0;
    for task in fs::read_dir("/proc/self/task")? {
        sum += switches_of(&task?.path())?;
    }
    Ok(sum)
}

fn switches_of(task: &Path) -> io::Result<u64> {
    let status = match fs::read_to_string(task.join("status")) {
        Ok(status) => status,
        // It has ended since it was listed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    let count = count.and_then(|count| count.trim().parse().ok());
    count.ok_or_else(|| io::Error::other("the kernel does not count switches of threads"))
}

/// Sleeps until shortly before `due_at_ns`, then spins: a timer alone is late by more
/// than what is to be measured.
pub(super) fn wait_until(due_at_ns: u64) {
    loop {
        let left_ns = due_at_ns.saturating_sub(monotonic_ns());
        match left_ns {
            0 => return,
            SPIN_NS.. => std::thread::sleep(Duration::from_nanos(left_ns - SPIN_NS / 2)),
            _ => std::hint::spin_loop(),
        }
    }
}

/// Keeps the processor busy for so long.
pub(super) fn spin(ns: u64) {
    if ns == 0 {
        return;
    }
    let until_ns = monotonic_ns() + ns;
    while monotonic_ns() < until_ns {
        std::hint::spin_loop();
    }
}

/// Looks at the clock until so long has passed, and until its turn comes then: each time, others
/// have the processor first, if it is long enough for that. No timer is set.
pub(super) fn wait_politely(ns: u64) {
    if ns < NO_TURN_NS {
        return spin(ns);
    }
    let until_ns = monotonic_ns() + ns;
    while monotonic_ns() < until_ns {
        std::thread::yield_now();
    }
}

/// The calling thread is to be woken when it is due.
pub(super) fn be_punctual() -> io::Result<()> {
    Ok(set_current_timer_slack(NonZeroU64::new(1))?)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Too short for others to have a turn.
const NO_TURN_NS: u64 = 20_000;
const SPIN_NS: u64 = 200_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_gives_way_waits_as_long_or_longer() {
        for ns in [0, NO_TURN_NS - 1, NO_TURN_NS, 1_000_000] {
            let begin_ns = monotonic_ns();
            wait_politely(ns);
            let waited_ns = monotonic_ns() - begin_ns;
            assert!(waited_ns >= ns, "{waited_ns} of {ns}");
        }
    }
}
