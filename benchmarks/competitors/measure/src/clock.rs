//! Clocks: the one that all processes of a host share, and the processor time of this process.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Processor time that all threads of this process have used.
pub(crate) fn process_cpu_ns() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

/// Sleeps until shortly before `due_at_ns`, then spins: the delay of a timer exceeds the latencies
/// that are measured.
pub(crate) fn wait_until(due_at_ns: u64) {
    loop {
        let left_ns = due_at_ns.saturating_sub(monotonic_ns());
        match left_ns {
            0 => return,
            SPIN_NS.. => std::thread::sleep(Duration::from_nanos(left_ns - SPIN_NS / 2)),
            _ => std::hint::spin_loop(),
        }
    }
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

const SPIN_NS: u64 = 200_000;
