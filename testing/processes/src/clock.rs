//! The clock that all processes of a host share, and processor time.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// What CLOCK_REALTIME is ahead of CLOCK_MONOTONIC, in nanoseconds.
pub(crate) fn realtime_ahead_ns() -> i64 {
    nanoseconds(ClockId::Realtime) as i64 - monotonic_ns() as i64
}

/// Processor time that all threads of this process have used.
pub(crate) fn process_cpu_ns() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

/// Sleeps until CLOCK_MONOTONIC has reached `due_at_ns`.
pub(crate) fn sleep_until(due_at_ns: u64) {
    let left_ns = due_at_ns.saturating_sub(monotonic_ns());
    std::thread::sleep(Duration::from_nanos(left_ns));
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
