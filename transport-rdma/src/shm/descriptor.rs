//! Descriptors that processes pass to each other: making and checking them.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::OFlags;
use rustix::process::PidfdFlags;

use super::error::SetupError;
use crate::retry;
use crate::sleep::eventfd::create_eventfd;

/// A pidfd of this process, readable once the process has ended.
pub(super) fn own_pidfd() -> Result<OwnedFd, SetupError> {
    let open = || rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty());
    retry::repeat(open).map_err(SetupError::system("opening a pidfd of the own process"))
}

/// A non-blocking event descriptor, at 0.
pub(super) fn event() -> Result<OwnedFd, SetupError> {
    retry::repeat(create_eventfd).map_err(SetupError::system("making an event descriptor"))
}

/// Whether it is a non-blocking event descriptor.
pub(super) fn is_event(fd: impl AsFd) -> Result<bool, SetupError> {
    let raw = fd.as_fd().as_raw_fd();
    let link = retry::repeat(|| std::fs::read_link(format!("/proc/self/fd/{raw}")))
        .map_err(SetupError::system("looking at a descriptor"))?;
    let flags = retry::repeat(|| rustix::fs::fcntl_getfl(&fd))
        .map_err(SetupError::system("looking at a descriptor"))?;
    let is_event = link.as_os_str() == "anon_inode:[eventfd]";
    Ok(is_event && flags.contains(OFlags::NONBLOCK))
}

/// The process of a pidfd; `None` if it is not a pidfd, or the process has ended.
pub(super) fn pid_of(pidfd: impl AsFd) -> Result<Option<u32>, SetupError> {
    let fd = pidfd.as_fd().as_raw_fd();
    let info = retry::repeat(|| std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")))
        .map_err(SetupError::system("looking at a pidfd"))?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"));
    Ok(pid.and_then(|pid| pid.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use rustix::event::EventfdFlags;

    use super::*;

    #[test]
    fn a_pidfd_identifies_its_process() {
        let pidfd = own_pidfd().expect("a pidfd");
        assert_eq!(pid_of(&pidfd).expect("looked"), Some(std::process::id()));
        let file = std::fs::File::open("/dev/null").expect("a file");
        assert_eq!(pid_of(&file).expect("looked"), None);
    }

    #[test]
    fn only_non_blocking_event_descriptors_are_accepted() {
        let check = |fd: OwnedFd, expected: bool| {
            assert_eq!(is_event(fd).expect("looked"), expected);
        };
        check(event().expect("an event descriptor"), true);
        check(own_pidfd().expect("a pidfd"), false);
        let blocking = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).expect("one");
        check(blocking, false);
    }
}
