//! The system calls that fail, and the errnos that each of them may fail with.

use libc::c_long;

use super::place::Place;
use super::seccomp::Condition;

macro_rules! errnos {
    ($($name:ident)+) => { &[$(Errno { name: stringify!($name), code: libc::$name }),+] };
}

/// A kind of call. Its positions are counted from the beginning of a phase.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) number: c_long,
    /// With what it is called on, where that matters.
    pub(super) name: &'static str,
    pub(super) object: Object,
    /// At how many positions of a phase it fails: loops come by many times.
    pub(super) positions_max: usize,
    pub(super) errnos: &'static [Errno],
    /// What makes it fail so.
    pub(super) why: &'static str,
}

/// An errno with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Errno {
    pub(super) name: &'static str,
    pub(super) code: i32,
}

/// What a call is about: tells apart the calls of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Object {
    /// The number says it.
    Any,
    /// A descriptor of a file, a socket, or an event counter.
    File,
    Socket,
    Event,
    /// Whether a file is opened or created.
    Open,
    Create,
    /// A command of fcntl.
    Lock,
    Duplicate,
    /// Memory that is mapped without a file.
    Stack,
    Memory,
}

impl Errno {
    /// As the standard library puts it: "No space left on device (os error 28)".
    pub(super) fn text(self) -> String {
        std::io::Error::from_raw_os_error(self.code).to_string()
    }

    /// Whether a text names it: by its words, its name, or its number.
    pub(super) fn is_named_in(self, text: &str) -> bool {
        let words = self.text();
        let words = words.split(" (os error").next().unwrap_or(&words);
        let text = text.to_lowercase();
        text.contains(&words.to_lowercase())
            || text.contains(&self.name.to_lowercase())
            || text.contains(&format!("os error {})", self.code))
    }
}

impl Call {
    /// Whether a text names this errno as the cause. For all that a thread needs, the C library
    /// reports EAGAIN; that a lock is held is said in words.
    pub(super) fn is_cause_in(&self, errno: Errno, text: &str) -> bool {
        let of_thread = matches!(self.number, libc::SYS_mmap | libc::SYS_mprotect);
        let of_lock = self.number == libc::SYS_flock && errno.code == libc::EWOULDBLOCK;
        errno.is_named_in(text)
            || (of_thread && errnos![EAGAIN][0].is_named_in(text))
            || (of_lock && text.contains("another participant"))
    }

    /// Whether it is about a log, or what a log needs to be written.
    pub(super) fn has_to_do_with_logs(&self, place: Place) -> bool {
        let starts_thread = matches!(self.number, libc::SYS_clone | libc::SYS_clone3);
        starts_thread || place.is_on_log() || place.is_of_log_thread()
    }

    /// By its name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        CALLS.iter().find(|call| call.name == name)
    }

    /// The kind of a call, if it is in the table. `link` is what `/proc` says of a descriptor.
    pub(super) fn of(
        number: c_long,
        arguments: &[u64; 6],
        link: impl FnOnce(u64) -> Option<String>,
    ) -> Option<&'static Self> {
        let mut kinds = CALLS.iter().filter(|call| call.number == number);
        let first = kinds.next()?;
        if first.object == Object::Any {
            return Some(first);
        }
        let object = match number {
            libc::SYS_openat => match arguments[2] & libc::O_CREAT as u64 {
                0 => Object::Open,
                _ => Object::Create,
            },
            libc::SYS_fcntl => match arguments[1] as i32 {
                libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => Object::Duplicate,
                libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_SETLK | libc::F_OFD_SETLKW => {
                    Object::Lock
                }
                _ => return None,
            },
            libc::SYS_mmap => match arguments[4] as u32 {
                u32::MAX if arguments[3] & libc::MAP_STACK as u64 != 0 => Object::Stack,
                u32::MAX => Object::Memory,
                _ => Object::File,
            },
            _ => match link(arguments[0])? {
                link if link.starts_with("socket:") => Object::Socket,
                link if link.starts_with("anon_inode:") => Object::Event,
                _ => Object::File,
            },
        };
        CALLS
            .iter()
            .find(|call| call.number == number && call.object == object)
    }

    /// All numbers, with what the filter has to look at.
    pub(super) fn conditions() -> Vec<(i64, Condition)> {
        let mut found: Vec<(i64, Condition)> = CALLS
            .iter()
            .map(|call| {
                let condition = match call.number {
                    libc::SYS_mmap => Condition::Mapping,
                    libc::SYS_mprotect => Condition::Protection,
                    number if ON_DESCRIPTORS.contains(&number) => Condition::Descriptor,
                    _ => Condition::Always,
                };
                (call.number, condition)
            })
            .collect();
        found.dedup_by_key(|(number, _)| *number);
        found
    }
}

/// Calls whose first argument is a descriptor that may be one of the harness.
const ON_DESCRIPTORS: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_recvmsg,
    libc::SYS_recvfrom,
    libc::SYS_fcntl,
];

macro_rules! calls {
    ($($(#[$attribute:meta])* $number:ident $name:literal $object:ident $max:ident
       [$($errno:ident)+] $why:literal)+) => {
        /// Calls of one number stand together. No connection is reset: between processes of one
        /// host that is the peer's end, between hosts a network that is cut, which is no fault of
        /// one participant.
        pub(super) const CALLS: &[Call] = &[$($(#[$attribute])* Call {
            number: libc::$number,
            name: $name,
            object: Object::$object,
            positions_max: $max,
            errnos: errnos![$($errno)+],
            why: $why,
        }),+];
    };
}

const ALL: usize = 24;
const FEW: usize = 3;

calls! {
    SYS_openat "openat" Open ALL [EMFILE ENFILE EACCES EIO]
        "limits of process and system; rights; a broken file system"
    SYS_openat "openat(create)" Create ALL [EMFILE ENFILE EACCES ENOSPC EROFS EIO]
        "limits of process and system; rights; a full, read-only or broken file system"
    SYS_mkdirat "mkdirat" Any ALL [EACCES ENOSPC EROFS]
        "rights; a full or read-only file system"
    #[cfg(target_arch = "x86_64")]
    SYS_mkdir "mkdir" Any ALL [EACCES ENOSPC EROFS]
        "rights; a full or read-only file system"
    SYS_ftruncate "ftruncate" Any ALL [ENOMEM ENOSPC EINTR]
        "memory limit of a control group; a full tmpfs; a signal"
    SYS_fallocate "fallocate" Any ALL [ENOSPC ENOMEM EINTR]
        "a full tmpfs; memory limit; a signal"
    SYS_memfd_create "memfd_create" Any ALL [EMFILE ENFILE ENOMEM]
        "limits of process and system; memory"
    SYS_mmap "mmap(file)" File ALL [ENOMEM EAGAIN]
        "address space, number of mappings; locked memory"
    SYS_mmap "mmap(stack)" Stack ALL [ENOMEM]
        "no memory for the stack of a thread"
    SYS_mmap "mmap(memory)" Memory ALL [ENOMEM]
        "address space, number of mappings"
    SYS_mremap "mremap" Any ALL [ENOMEM]
        "number of mappings"
    SYS_munmap "munmap" Any FEW [ENOMEM]
        "a mapping that would fall apart into too many"
    SYS_mprotect "mprotect" Any ALL [ENOMEM]
        "memory limit, number of mappings"
    SYS_madvise "madvise" Any FEW [ENOMEM EAGAIN EINVAL]
        "memory limit; a kernel without this advice"
    SYS_read "read(file)" File ALL [EIO EINTR]
        "a broken file system; a signal"
    SYS_read "read(socket)" Socket FEW [EINTR EAGAIN]
        "a signal; nothing there after all"
    SYS_read "read(event)" Event FEW [EINTR EAGAIN]
        "a signal; nothing there after all"
    SYS_pread64 "pread" Any ALL [EIO EINTR]
        "a broken file system; a signal"
    SYS_readv "readv" Any FEW [EINTR]
        "a signal"
    SYS_write "write(file)" File ALL [ENOSPC EIO EDQUOT EINTR]
        "a full or broken file system; a quota; a signal"
    SYS_write "write(socket)" Socket FEW [EAGAIN EINTR]
        "a full buffer; a signal"
    SYS_write "write(event)" Event FEW [EINTR]
        "a signal (no counter is ever full)"
    SYS_pwrite64 "pwrite" Any ALL [ENOSPC EIO EDQUOT EINTR]
        "a full or broken file system; a quota; a signal"
    SYS_writev "writev" Any FEW [EINTR]
        "a signal"
    SYS_pwritev "pwritev" Any FEW [ENOSPC EIO EDQUOT EINTR]
        "a full or broken file system; a quota; a signal"
    SYS_renameat "renameat" Any ALL [ENOSPC EROFS EACCES EIO]
        "a full, read-only or broken file system; rights"
    SYS_renameat2 "renameat2" Any ALL [ENOSPC EROFS EACCES EIO]
        "a full, read-only or broken file system; rights"
    SYS_unlinkat "unlinkat" Any ALL [ENOENT EACCES EROFS EIO]
        "removed by another; rights; a read-only or broken file system"
    #[cfg(target_arch = "x86_64")]
    SYS_unlink "unlink" Any ALL [ENOENT EACCES EROFS EIO]
        "removed by another; rights; a read-only or broken file system"
    #[cfg(target_arch = "x86_64")]
    SYS_rename "rename" Any ALL [ENOSPC EROFS EACCES EIO]
        "a full, read-only or broken file system; rights"
    SYS_fsync "fsync" Any ALL [EIO ENOSPC]
        "a broken or full file system"
    SYS_fdatasync "fdatasync" Any FEW [EIO ENOSPC EDQUOT EINTR]
        "a broken or full file system; a quota; a signal"
    SYS_flock "flock" Any ALL [ENOLCK EWOULDBLOCK EINTR]
        "locks of the file system; held by another; a signal"
    SYS_fadvise64 "fadvise64" Any FEW [EINVAL]
        "a file system without this advice"
    SYS_newfstatat "fstatat" Any ALL [EACCES EIO]
        "rights; a broken file system"
    SYS_statx "statx" Any ALL [EACCES EIO]
        "rights; a broken file system"
    SYS_getdents64 "getdents64" Any ALL [EIO ENOENT]
        "a broken file system; a directory that is gone"
    SYS_readlinkat "readlinkat" Any ALL [EACCES]
        "rights"
    #[cfg(target_arch = "x86_64")]
    SYS_readlink "readlink" Any ALL [EACCES]
        "rights"
    SYS_fcntl "fcntl(lock)" Lock ALL [ENOLCK EAGAIN EINTR]
        "locks of the file system; held by another; a signal"
    SYS_fcntl "fcntl(duplicate)" Duplicate ALL [EMFILE]
        "limit of the process"
    SYS_socket "socket" Any ALL [EMFILE ENFILE ENOBUFS]
        "limits of process and system; memory"
    SYS_socketpair "socketpair" Any ALL [EMFILE ENFILE ENOBUFS]
        "limits of process and system; memory"
    SYS_bind "bind" Any ALL [EADDRINUSE EACCES ENOSPC EROFS]
        "an address that is taken; rights; the file system of a Unix socket"
    SYS_listen "listen" Any ALL [EADDRINUSE]
        "an address that is taken meanwhile"
    SYS_connect "connect" Any ALL [ECONNREFUSED ETIMEDOUT ENETUNREACH EAGAIN EINTR]
        "a peer that has ended, a network that is away, a full backlog; a signal"
    SYS_accept4 "accept4" Any ALL [EMFILE ENFILE ECONNABORTED ENOMEM EINTR]
        "limits of process and system; a peer that has ended; memory; a signal"
    SYS_sendmsg "sendmsg" Any ALL [EAGAIN ENOBUFS ETOOMANYREFS EINTR]
        "a full buffer; memory; descriptors on their way; a signal"
    SYS_sendto "sendto" Any FEW [ENOBUFS EINTR]
        "memory; a signal (an event follows EAGAIN, which no injector makes)"
    SYS_recvmsg "recvmsg" Any ALL [EAGAIN ENOMEM EINTR]
        "nothing there after all; memory; a signal"
    SYS_recvfrom "recvfrom" Any FEW [EINTR]
        "a signal"
    SYS_getsockopt "getsockopt" Any FEW [ENOBUFS]
        "memory"
    SYS_setsockopt "setsockopt" Any FEW [ENOBUFS]
        "memory"
    SYS_epoll_create1 "epoll_create1" Any ALL [EMFILE ENFILE ENOMEM]
        "limits of process and system; memory"
    SYS_epoll_ctl "epoll_ctl" Any ALL [ENOSPC ENOMEM]
        "limit of the user's watches; memory"
    SYS_epoll_pwait "epoll_pwait" Any FEW [EINTR]
        "a signal"
    #[cfg(target_arch = "x86_64")]
    SYS_epoll_wait "epoll_wait" Any FEW [EINTR]
        "a signal"
    SYS_ppoll "ppoll" Any FEW [EINTR ENOMEM]
        "a signal; memory"
    #[cfg(target_arch = "x86_64")]
    SYS_poll "poll" Any FEW [EINTR ENOMEM]
        "a signal; memory"
    SYS_eventfd2 "eventfd2" Any ALL [EMFILE ENFILE ENOMEM]
        "limits of process and system; memory"
    SYS_timerfd_create "timerfd_create" Any ALL [EMFILE ENFILE ENOMEM]
        "limits of process and system; memory"
    SYS_inotify_init1 "inotify_init1" Any ALL [EMFILE ENFILE ENOMEM]
        "limits of user and system; memory"
    SYS_inotify_add_watch "inotify_add_watch" Any ALL [ENOSPC ENOMEM]
        "limit of the user; memory"
    SYS_pidfd_open "pidfd_open" Any ALL [EMFILE ENFILE ENOMEM]
        "limits of process and system; memory"
    SYS_clone "clone" Any ALL [EAGAIN]
        "limits of threads; the C library makes EAGAIN of ENOMEM too"
    SYS_clone3 "clone3" Any ALL [EAGAIN]
        "limits of threads; the C library makes EAGAIN of ENOMEM too"
    SYS_getrandom "getrandom" Any FEW [EINTR]
        "a signal"
    SYS_futex_waitv "futex_waitv" Any FEW [EINTR]
        "a signal"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errno_is_named_by_words_name_or_number() {
        let errno = errnos![ENOSPC][0];
        let check = |text: &str, named: bool| assert_eq!(errno.is_named_in(text), named, "{text}");
        check("the record: No space left on device (os error 28)", true);
        check("no space left on device", true);
        check("ENOSPC", true);
        check("os error 28)", true);
        check("os error 2)", false);
        check("did not answer in time", false);
    }

    #[test]
    fn a_call_is_known_by_what_it_is_called_on() {
        let check = |number, arguments: [u64; 6], link: &str, expected: Option<&str>| {
            let found = Call::of(number, &arguments, |_| Some(link.to_owned()));
            assert_eq!(found.map(|call| call.name), expected);
        };
        check(libc::SYS_read, [7; 6], "socket:[1]", Some("read(socket)"));
        check(libc::SYS_read, [7; 6], "/tmp/record", Some("read(file)"));
        check(
            libc::SYS_read,
            [7; 6],
            "anon_inode:[eventfd]",
            Some("read(event)"),
        );
        let lock = [7, libc::F_OFD_SETLKW as u64, 0, 0, 0, 0];
        check(libc::SYS_fcntl, lock, "", Some("fcntl(lock)"));
        check(
            libc::SYS_fcntl,
            [7, libc::F_GETFL as u64, 0, 0, 0, 0],
            "",
            None,
        );
        let stack = [0, 0, 0, libc::MAP_STACK as u64, u64::MAX, 0];
        check(libc::SYS_mmap, stack, "", Some("mmap(stack)"));
        check(
            libc::SYS_mmap,
            [0, 0, 0, 0, u64::MAX, 0],
            "",
            Some("mmap(memory)"),
        );
        check(libc::SYS_mmap, [0, 0, 0, 0, 7, 0], "", Some("mmap(file)"));
        check(libc::SYS_socket, [1; 6], "", Some("socket"));
        let create = (libc::O_CREAT | libc::O_RDWR) as u64;
        check(
            libc::SYS_openat,
            [0, 0, create, 0, 0, 0],
            "",
            Some("openat(create)"),
        );
        check(libc::SYS_getpid, [0; 6], "", None);
    }

    #[test]
    fn names_are_unique_and_calls_of_one_number_stand_together() {
        let mut names: Vec<&str> = CALLS.iter().map(|call| call.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CALLS.len());
        let conditions = Call::conditions();
        let mut numbers: Vec<i64> = conditions.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), conditions.len());
    }
}
