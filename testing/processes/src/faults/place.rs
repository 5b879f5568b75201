//! Where a system call is made: by which thread, and on what.
//!
//! A thread calls in the same order in each run, and threads take turns as they like. So a
//! position that is counted by thread and subject is the same call in all runs.

use std::collections::BTreeSet;
use std::fmt;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use super::seccomp::Notification;

/// A thread and a subject, as "spindle-control /proc/N/stat".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place(&'static str);

/// All places so far: a run is described by one, and there are a few hundred.
static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Place {
    pub(super) fn named(name: &str) -> Self {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = known.get(name) {
            return Self(name);
        }
        let name: &'static str = name.to_owned().leak();
        known.insert(name);
        Self(name)
    }

    /// Whether it is a file or directory of a log.
    pub(super) fn is_on_log(self) -> bool {
        let subject = self.0.split_once(' ').map_or("", |(_, subject)| subject);
        subject == LOG || subject.starts_with(LOG_FILES)
    }

    /// Whether it is of a thread that writes logs.
    pub(super) fn is_of_log_thread(self) -> bool {
        self.0.split(' ').next() == Some("spindle-log")
    }

    /// Of a call that waits for an answer. `link` is what `/proc` says of a descriptor.
    pub(super) fn of(call: &Notification, link: impl FnOnce(u64) -> Option<String>) -> Self {
        let thread = call.thread;
        let name = std::fs::read_to_string(format!("/proc/{thread}/comm")).unwrap_or_default();
        let subject = match subject_of(call.number) {
            Subject::Nothing => String::new(),
            Subject::Descriptor(at) => link(call.arguments[at]).unwrap_or_default(),
            Subject::Path(at) => match read_path(thread, call.arguments[at]) {
                path if path.is_empty() => link(call.arguments[0]).unwrap_or_default(),
                path => path,
            },
        };
        Self::named(format!("{} {}", name.trim_end(), plain(&subject)).trim_end())
    }
}

/// The directory of a log of a run, as a subject.
const LOG: &str = "log-N";
const LOG_FILES: &str = "log-N/";

/// Which argument says what a call is about.
enum Subject {
    Nothing,
    Descriptor(usize),
    Path(usize),
}

fn subject_of(number: i64) -> Subject {
    match number {
        libc::SYS_openat
        | libc::SYS_mkdirat
        | libc::SYS_unlinkat
        | libc::SYS_renameat
        | libc::SYS_renameat2
        | libc::SYS_newfstatat
        | libc::SYS_statx
        | libc::SYS_readlinkat => Subject::Path(1),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir | libc::SYS_unlink | libc::SYS_rename | libc::SYS_readlink => {
            Subject::Path(0)
        }
        libc::SYS_mmap => Subject::Descriptor(4),
        libc::SYS_epoll_ctl => Subject::Descriptor(2),
        libc::SYS_ftruncate
        | libc::SYS_fallocate
        | libc::SYS_fadvise64
        | libc::SYS_flock
        | libc::SYS_read
        | libc::SYS_pread64
        | libc::SYS_readv
        | libc::SYS_write
        | libc::SYS_pwrite64
        | libc::SYS_writev
        | libc::SYS_pwritev
        | libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_getdents64
        | libc::SYS_fcntl
        | libc::SYS_bind
        | libc::SYS_listen
        | libc::SYS_connect
        | libc::SYS_accept4
        | libc::SYS_sendmsg
        | libc::SYS_sendto
        | libc::SYS_recvmsg
        | libc::SYS_recvfrom
        | libc::SYS_getsockopt
        | libc::SYS_setsockopt => Subject::Descriptor(0),
        _ => Subject::Nothing,
    }
}

/// A path in the memory of a thread that waits in a call.
fn read_path(thread: u32, at: u64) -> String {
    let mut bytes = [0; 256];
    let memory = std::fs::File::open(format!("/proc/{thread}/mem"));
    let read = memory.and_then(|memory| memory.read_at(&mut bytes, at));
    let bytes = &bytes[..read.unwrap_or(0)];
    let end = bytes.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(0)]).into_owned()
}

/// A subject without what differs from run to run: the directory of the run, and numbers.
fn plain(subject: &str) -> String {
    let subject = match subject.split_once("spindle-faults-") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, name)| name),
        None => subject,
    };
    let mut plain = String::new();
    let is_in_number = |c: char| c.is_ascii_hexdigit();
    let mut rest = subject;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| !is_in_number(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        match word.bytes().any(|byte| byte.is_ascii_digit()) {
            true => plain.push('N'),
            false => plain.push_str(word),
        }
        rest = after;
        if word.is_empty() {
            plain.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_no_part_of_a_place() {
        let check = |subject: &str, expected: &str| assert_eq!(plain(subject), expected);
        check("/proc/3127/stat", "/proc/N/stat");
        check("socket:[4149920]", "socket:[N]");
        check(
            "/tmp/spindle-faults-B6oJHT/domain-0.record",
            "domain-N.record",
        );
        check("/tmp/spindle-faults-B6oJHT", "");
        check(
            "/proc/self/fd/9/domain-0.4026531836-77-9-0a1b2c.station",
            "/proc/self/fd/N/domain-N.N-N-N-N.station",
        );
        check(
            "/memfd:spindle-dds-row (deleted)",
            "/memfd:spindle-dds-row (deleted)",
        );
        let name = "/tmp/spindle-faults-B6oJHT/log-2/domain-0/Log/0000000000000a01.segment";
        check(name, "log-N/domain-N/Log/N.segment");
        assert_eq!(Place::named("a b"), Place::named("a b"));
    }

    #[test]
    fn places_on_logs_are_told_from_others() {
        let check = |name: &str, expected: [bool; 2]| {
            let place = Place::named(name);
            let found = [place.is_on_log(), place.is_of_log_thread()];
            assert_eq!(found, expected, "{name}");
        };
        check("main", [false, false]);
        check("main domain-N.record", [false, false]);
        check("main log-N", [true, false]);
        check("main log-N/domain-N/lock", [true, false]);
        check("spindle-log", [false, true]);
        check("spindle-log log-N/domain-N/Log", [true, true]);
        check("spindle-control log-name", [false, false]);
    }
}
