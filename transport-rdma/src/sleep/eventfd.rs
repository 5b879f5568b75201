//! Event descriptors: counters in the kernel that can be polled.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::EventfdFlags;
use rustix::io::Errno;

/// Creates one, at 0 and non-blocking.
pub(crate) fn create_eventfd() -> Result<OwnedFd, Errno> {
    rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
}

/// Adds one to an event descriptor. A full one is readable already.
pub(crate) fn signal_eventfd(event: impl AsFd) -> Result<(), Errno> {
    match rustix::io::retry_on_intr(|| rustix::io::write(&event, &1_u64.to_ne_bytes())) {
        Ok(_) | Err(Errno::AGAIN) => Ok(()),
        Err(errno) => Err(errno),
    }
}
