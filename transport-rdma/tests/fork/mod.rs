//! A forked child that runs no other program: it keeps all descriptors that its parent had
//! open, and does nothing.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal};

/// It ends by itself after this many seconds.
const LIVES_FOR: u32 = 300;

/// Forks this process; returns the child's process id.
pub(crate) fn fork() -> i32 {
    // SAFETY: only this thread continues in the child, which calls only async-signal-safe
    // functions (signal-safety(7)) and never returns from here.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: async-signal-safe; touches no memory. The signal has no handler, so it ends
        // the process.
        unsafe { libc::alarm(LIVES_FOR) };
        loop {
            // SAFETY: async-signal-safe; touches no memory.
            unsafe { libc::pause() };
        }
    }
    assert!(child > 0, "it cannot fork");
    child
}

/// Such a child of another process; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Heir(OwnedFd);

impl Heir {
    /// From the pid that its parent has reported; the child is alive.
    pub(crate) fn of_pid(pid: i32) -> Self {
        let pid = Pid::from_raw(pid).expect("a process");
        Self(rustix::process::pidfd_open(pid, PidfdFlags::empty()).expect("it runs"))
    }

    /// Whether it is alive.
    pub(crate) fn lives(&self) -> bool {
        // The descriptor is readable once it has ended.
        let mut fds = [rustix::event::PollFd::new(
            &self.0,
            rustix::event::PollFlags::IN,
        )];
        let now = rustix::event::Timespec::default();
        rustix::event::poll(&mut fds, Some(&now)).expect("polled") == 0
    }
}

impl Drop for Heir {
    fn drop(&mut self) {
        // It has ended already, or ends now.
        let _ = rustix::process::pidfd_send_signal(&self.0, Signal::KILL);
    }
}
