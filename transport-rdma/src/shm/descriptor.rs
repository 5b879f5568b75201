//! Descriptors that processes pass to each other: making and checking them.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::OFlags;
use rustix::process::PidfdFlags;

use super::error::SetupError;
use crate::sleep::eventfd::create_eventfd;

/// A pidfd of this process, readable once the process has ended.
pub(super) fn own_pidfd() -> Result<OwnedFd, SetupError> {
    rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())
        .map_err(SetupError::system("opening a pidfd of the own process"))
}

/// A non-blocking event descriptor, at 0.
pub(super) fn event() -> Result<OwnedFd, SetupError> {
    create_eventfd().map_err(SetupError::system("making an event descriptor"))
}

/// Whether it is a non-blocking event descriptor.
pub(super) fn is_event(fd: impl AsFd) -> bool {
    let raw = fd.as_fd().as_raw_fd();
    let link = std::fs::read_link(format!("/proc/self/fd/{raw}"));
    link.is_ok_and(|link| link.as_os_str() == "anon_inode:[eventfd]")
        && rustix::fs::fcntl_getfl(&fd).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK))
}

/// The process of a pidfd; `None` if it is not a pidfd, or the process has ended.
pub(super) fn pid_of(pidfd: impl AsFd) -> Option<u32> {
    let fd = pidfd.as_fd().as_raw_fd();
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    pid.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use rustix::event::EventfdFlags;

    use super::*;

    #[test]
    fn a_pidfd_identifies_its_process() {
        let pidfd = own_pidfd().expect("a pidfd");
        assert_eq!(pid_of(&pidfd), Some(std::process::id()));
        let file = std::fs::File::open("/dev/null").expect("a file");
        assert_eq!(pid_of(&file), None);
    }

    #[test]
    fn only_non_blocking_event_descriptors_are_accepted() {
        assert!(is_event(event().expect("an event descriptor")));
        assert!(!is_event(own_pidfd().expect("a pidfd")));
        let blocking = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).expect("one");
        assert!(!is_event(blocking));
    }
}
