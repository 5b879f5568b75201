//! The kinds of doorbells on which a station sleeps.

use core::time::Duration;

use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::thread::futex::{self, WaitvFlags};

/// Most futexes that one call of `futex_waitv` waits for.
pub(super) const FUTEXES_MAX: usize = 128;

/// The kind of doorbell on which a station sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DoorbellChoice {
    /// Futexes where the kernel has `futex_waitv` (5.16), event descriptors otherwise.
    #[default]
    Auto,
    /// Futexes; an error if the kernel lacks `futex_waitv`.
    Futex,
    /// Event descriptors.
    Event,
}

/// Whether the kernel has `futex_waitv`: called with no futexes, it fails with `EINVAL`.
pub(super) fn has_futex_waitv() -> bool {
    let nothing = futex::waitv(&[], WaitvFlags::empty(), None, futex::ClockId::Monotonic);
    nothing == Err(Errno::INVAL)
}

const FOREVER: Timespec = Timespec {
    tv_sec: i64::MAX / 2,
    tv_nsec: 0,
};

/// The time on the monotonic clock when `timeout` from now is over.
pub(super) fn end_of(timeout: Duration) -> Timespec {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.checked_add(timespec(timeout)).unwrap_or(FOREVER)
}

pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(FOREVER)
}
