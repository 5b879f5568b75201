//! System calls of this process are reported to another one, which lets them through or answers
//! them with an errno (seccomp_unotify(2)).
//!
//! The product calls the kernel without the C library, so that no preloaded library would see
//! its calls; a filter does. It holds for the thread that installs it and for all threads that
//! are started later. Calls on descriptors 0 to 2 are not reported: over these a participant
//! speaks with the main process.
#![expect(
    unsafe_code,
    reason = "no maintained crate of Rust has user notification: seccompiler builds filters \
              without it, libseccomp needs a C library"
)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use libc::{seccomp_notif, seccomp_notif_resp, sock_filter, sock_fprog};

/// Which calls of a number are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    /// All.
    Always,
    /// Those whose first argument is a descriptor above 2.
    Descriptor,
    /// Mappings of files, and others of 64 KiB or more. Shorter ones are signal stacks of
    /// threads, without which Rust's standard library aborts.
    Mapping,
    /// Protections other than PROT_NONE, which is for the guard page of a signal stack.
    Protection,
}

/// A call that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Notification {
    id: u64,
    /// Of the calling thread.
    pub(super) thread: u32,
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
}

/// Where the calls are reported.
#[derive(Debug)]
pub(super) struct Listener(OwnedFd);

impl Listener {
    /// Installs a filter in the calling thread: the listener, for another process.
    pub(super) fn install(calls: &[(i64, Condition)]) -> io::Result<OwnedFd> {
        let mut program = program(calls);
        let program = sock_fprog {
            len: program.len() as u16,
            filter: program.as_mut_ptr(),
        };
        // SAFETY: prctl reads its integer arguments alone.
        let set = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        if set != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel reads `program` and the instructions behind it, which both live
        // until the call returns, and keeps a copy.
        let listener = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
                &raw const program,
            )
        };
        if listener < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just opened this descriptor for the caller, which owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(listener as i32) })
    }

    pub(super) fn of(listener: OwnedFd) -> Self {
        Self(listener)
    }

    pub(super) fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Takes the next call: blocks until there is one, so poll first. `None` if the caller has
    /// ended or was interrupted meanwhile.
    pub(super) fn receive(&self) -> io::Result<Option<Notification>> {
        // SAFETY: all fields are integers, for which zero is a value. The kernel demands zeros.
        let mut found: seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes one `seccomp_notif`, for which there is room.
        let result = unsafe {
            let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
            libc::ioctl(self.0.as_raw_fd(), request, &raw mut found)
        };
        match result {
            0 => Ok(Some(Notification {
                id: found.id,
                thread: found.pid,
                number: found.data.nr.into(),
                arguments: found.data.args,
            })),
            _ => gone_or_failed().map(|()| None),
        }
    }

    /// Answers a call: the kernel carries it out, or its caller gets the errno.
    pub(super) fn answer(&self, call: &Notification, errno: Option<i32>) -> io::Result<()> {
        let mut answer = seccomp_notif_resp {
            id: call.id,
            val: 0,
            error: errno.map_or(0, |errno| -errno),
            flags: match errno {
                Some(_) => 0,
                None => libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
            },
        };
        // SAFETY: the kernel reads one `seccomp_notif_resp`, which lives until the call returns.
        let result = unsafe {
            let request = libc::SECCOMP_IOCTL_NOTIF_SEND;
            libc::ioctl(self.0.as_raw_fd(), request, &raw mut answer)
        };
        match result {
            0 => Ok(()),
            _ => gone_or_failed(),
        }
    }
}

/// After a failed ioctl: whether only its caller is gone.
fn gone_or_failed() -> io::Result<()> {
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EINTR) => Ok(()),
        _ => Err(error),
    }
}

/// A program of classic BPF that returns USER_NOTIF for these calls, and ALLOW for all others.
fn program(calls: &[(i64, Condition)]) -> Vec<sock_filter> {
    let mut program = vec![load(NUMBER_AT)];
    for (number, condition) in calls {
        let body = match condition {
            Condition::Always => vec![ret(libc::SECCOMP_RET_USER_NOTIF)],
            Condition::Descriptor => vec![
                load(argument_at(0)),
                jump(libc::BPF_JGT, 2, 0, 1),
                ret(libc::SECCOMP_RET_USER_NOTIF),
                ret(libc::SECCOMP_RET_ALLOW),
            ],
            Condition::Mapping => vec![
                load(argument_at(4)),
                jump(libc::BPF_JEQ, u32::MAX, 0, 2),
                load(argument_at(1)),
                jump(libc::BPF_JGE, 1 << 16, 0, 1),
                ret(libc::SECCOMP_RET_USER_NOTIF),
                ret(libc::SECCOMP_RET_ALLOW),
            ],
            Condition::Protection => vec![
                load(argument_at(2)),
                jump(libc::BPF_JEQ, libc::PROT_NONE as u32, 1, 0),
                ret(libc::SECCOMP_RET_USER_NOTIF),
                ret(libc::SECCOMP_RET_ALLOW),
            ],
        };
        let skip = body.len() as u8;
        program.push(jump(libc::BPF_JEQ, *number as u32, 0, skip));
        program.extend(body);
    }
    program.push(ret(libc::SECCOMP_RET_ALLOW));
    program
}

fn load(at: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at, 0, 0)
}

fn jump(test: u32, with: u32, if_true: u8, if_false: u8) -> sock_filter {
    let code = libc::BPF_JMP | test | libc::BPF_K;
    instruction(code, with, if_true, if_false)
}

fn ret(action: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, action, 0, 0)
}

fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    let code = code as u16;
    sock_filter { code, jt, jf, k }
}

/// Where `seccomp_data` has the number of the call.
const NUMBER_AT: u32 = 0;

/// Where `seccomp_data` has the low half of an argument.
const fn argument_at(argument: u32) -> u32 {
    let low_half = if cfg!(target_endian = "little") { 0 } else { 4 };
    16 + 8 * argument + low_half
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags};

    #[test]
    fn a_call_gets_the_errno_and_another_one_is_carried_out() {
        let (told, ready) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let calls = [(libc::SYS_eventfd2, Condition::Always)];
            let listener = Listener::install(&calls);
            told.send(listener).expect("the test listens");
            let flags = rustix::event::EventfdFlags::CLOEXEC;
            [(); 2].map(|()| rustix::event::eventfd(0, flags).map(drop))
        });
        let listener = match ready.recv().expect("an answer") {
            Ok(listener) => Listener::of(listener),
            // In a sandbox that allows no filters.
            Err(error) => return eprintln!("skipped: {error}"),
        };
        for errno in [Some(libc::EMFILE), None] {
            let mut polled = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
            rustix::event::poll(&mut polled, None).expect("polled");
            let call = listener.receive().expect("received").expect("a call");
            assert_eq!(call.number, libc::SYS_eventfd2);
            listener.answer(&call, errno).expect("answered");
        }
        let found = thread.join().expect("it returns");
        assert_eq!(found, [Err(rustix::io::Errno::MFILE), Ok(())]);
    }
}
