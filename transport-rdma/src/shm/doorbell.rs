//! Which doorbell a station sleeps on.

use core::time::Duration;

use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::thread::futex::{self, WaitvFlags};

/// Most futexes that one call waits for.
pub(super) const FUTEXES_MAX: usize = 128;

/// Which doorbell a station wants to sleep on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DoorbellChoice {
    /// Futexes where the kernel has `futex_waitv` (5.16), event descriptors otherwise.
    #[default]
    Auto,
    /// Futexes, or an error.
    Futex,
    /// Event descriptors.
    Event,
}

/// Waiting for nothing is an invalid argument where the call exists.
pub(super) fn has_futex_waitv() -> bool {
    let nothing = futex::waitv(&[], WaitvFlags::empty(), None, futex::ClockId::Monotonic);
    nothing == Err(Errno::INVAL)
}

const FOREVER: Timespec = Timespec {
    tv_sec: i64::MAX / 2,
    tv_nsec: 0,
};

/// The moment on the monotonic clock when a wait from now on ends.
pub(super) fn end_of(timeout: Duration) -> Timespec {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.checked_add(timespec(timeout)).unwrap_or(FOREVER)
}

pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(FOREVER)
}
