//! A child of a fork that runs no other program: it has all that its parent had open when
//! it was born, and does nothing.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal};

/// After so long it ends by itself, in seconds.
const LIVES_FOR: u32 = 300;

/// Forks this process; returns the child's process id.
pub(crate) fn fork() -> i32 {
    // SAFETY: of all threads only this one goes on in the child, which calls nothing but
    // what is async-signal-safe (signal-safety(7)), and never returns from here.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: async-signal-safe; it touches no memory. Nobody handles its signal, so
        // that ends the process.
        unsafe { libc::alarm(LIVES_FOR) };
        loop {
            // SAFETY: async-signal-safe; it touches no memory.
            unsafe { libc::pause() };
        }
    }
    assert!(child > 0, "it cannot fork");
    child
}

/// Such a child of another process, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Heir(OwnedFd);

impl Heir {
    /// Of whom its parent has told, which lives.
    pub(crate) fn of_pid(pid: i32) -> Self {
        let pid = Pid::from_raw(pid).expect("a process");
        Self(rustix::process::pidfd_open(pid, PidfdFlags::empty()).expect("it runs"))
    }

    /// Whether it is still there.
    pub(crate) fn lives(&self) -> bool {
        // It has ended when its descriptor is readable.
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
        // Ended already, or ends now.
        let _ = rustix::process::pidfd_send_signal(&self.0, Signal::KILL);
    }
}
