//! Clocks: the host's, which all processes share, and this process's processor time.

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

/// Processor time of all threads of this process.
pub(super) fn process_cpu_ns() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

/// Voluntary context switches of the live threads of this process: how often they slept.
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
        // The thread has ended since it was listed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    let count = count.and_then(|count| count.trim().parse().ok());
    count.ok_or_else(|| io::Error::other("the kernel does not count context switches of threads"))
}

/// Sleeps until shortly before `due_at_ns`, then spins: a timer alone is late by more than the
/// latencies to measure.
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

/// Keeps the processor busy for `ns`.
pub(super) fn spin(ns: u64) {
    if ns == 0 {
        return;
    }
    let until_ns = monotonic_ns() + ns;
    while monotonic_ns() < until_ns {
        std::hint::spin_loop();
    }
}

/// Waits for `ns` or longer without a timer: reads the clock in a loop that yields the processor,
/// or only spins where `ns` is too short for that.
pub(super) fn wait_yielding(ns: u64) {
    if ns < NO_TURN_NS {
        return spin(ns);
    }
    let until_ns = monotonic_ns() + ns;
    while monotonic_ns() < until_ns {
        std::thread::yield_now();
    }
}

/// Sets the timer slack of the calling thread to the minimum, so that its sleeps end in time.
pub(super) fn minimise_timer_slack() -> io::Result<()> {
    Ok(set_current_timer_slack(NonZeroU64::new(1))?)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Waits shorter than this do not yield: another thread's time slice is longer.
const NO_TURN_NS: u64 = 20_000;
const SPIN_NS: u64 = 200_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yielding_wait_takes_as_long_or_longer() {
        for ns in [0, NO_TURN_NS - 1, NO_TURN_NS, 1_000_000] {
            let begin_ns = monotonic_ns();
            wait_yielding(ns);
            let waited_ns = monotonic_ns() - begin_ns;
            assert!(waited_ns >= ns, "{waited_ns} of {ns}");
        }
    }
}
