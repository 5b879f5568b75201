//! Facts about processes from the kernel: whether one is alive, and its identity.

use std::io;
use std::sync::OnceLock;

use rustix::io::Errno;

use super::error::SetupError;
use crate::retry;

/// What the kernel says about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessState {
    /// It is alive, and has started at this time, in clock ticks since boot.
    Alive(u64),
    /// It has ended, even if its parent has not waited for it yet.
    Ended,
    /// It cannot be looked at, for this reason, which says nothing about it.
    Unknown(Errno),
}

impl ProcessState {
    /// Whether it is the process that has started at this time; `None` if that is not known.
    pub(super) fn has_started_at(self, start: u64) -> Option<bool> {
        match self {
            Self::Alive(started) => Some(started == start),
            Self::Ended => Some(false),
            Self::Unknown(_) => None,
        }
    }
}

/// Looks at a process of the pid namespace of this `/proc`.
pub(super) fn state_of(pid: u32) -> ProcessState {
    read_state(&format!("/proc/{pid}/stat"))
}

fn read_state(path: &str) -> ProcessState {
    match retry::repeat(|| std::fs::read_to_string(path)) {
        Ok(stat) => state_in(&stat).unwrap_or(ProcessState::Unknown(Errno::BADMSG)),
        Err(error) => unread(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}

/// Only these say that there is no such process.
fn unread(errno: Errno) -> ProcessState {
    match errno {
        Errno::NOENT | Errno::SRCH => ProcessState::Ended,
        errno => ProcessState::Unknown(errno),
    }
}

fn state_in(stat: &str) -> Option<ProcessState> {
    // The name may hold any character, so fields are counted from the last bracket: state
    // is the 3rd field of proc_pid_stat(5), the start time the 22nd.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X" | "x") {
        return Some(ProcessState::Ended);
    }
    fields.nth(18)?.parse().ok().map(ProcessState::Alive)
}

/// Start time of this process.
pub(super) fn own_start_time() -> Result<u64, SetupError> {
    // Its pid may be another one in the pid namespace of this /proc.
    let errno = match read_state("/proc/self/stat") {
        ProcessState::Alive(start) => return Ok(start),
        ProcessState::Ended => Errno::NOENT,
        ProcessState::Unknown(errno) => errno,
    };
    Err(SetupError::system("reading /proc/self/stat")(errno))
}

/// The pid namespace of this process.
pub(super) fn namespace() -> Result<u64, SetupError> {
    let stat = retry::repeat(|| rustix::fs::stat("/proc/self/ns/pid"));
    Ok(stat
        .map_err(SetupError::system("looking at /proc/self/ns/pid"))?
        .st_ino)
}

/// The pid namespace whose processes can be looked up here: that of this process, or 0, which
/// is none, where `/proc` shows another one.
pub(super) fn visible_namespace() -> Result<u64, SetupError> {
    static KNOWN: OnceLock<(u32, u64)> = OnceLock::new();
    let pid = std::process::id();
    // A forked child may be in another namespace.
    if let Some((_, known)) = KNOWN.get().filter(|known| known.0 == pid) {
        return Ok(*known);
    }
    let visible = match state_of(pid) {
        ProcessState::Alive(start) if start == own_start_time()? => namespace()?,
        ProcessState::Alive(_) | ProcessState::Ended => 0,
        // Not for ever.
        ProcessState::Unknown(errno) => {
            return Err(SetupError::system("reading /proc/PID/stat of this process")(errno));
        }
    };
    let _ = KNOWN.set((pid, visible));
    Ok(visible)
}

/// The mount namespace of this process.
pub(super) fn mount_namespace() -> Result<u64, SetupError> {
    let stat = retry::repeat(|| rustix::fs::stat("/proc/self/ns/mnt"));
    Ok(stat
        .map_err(SetupError::system("looking at /proc/self/ns/mnt"))?
        .st_ino)
}

/// The id of this boot of the host. Read once: decisions about a domain need it.
pub(super) fn boot() -> Result<u128, SetupError> {
    static KNOWN: OnceLock<u128> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(*known);
    }
    let text = retry::repeat(|| std::fs::read_to_string("/proc/sys/kernel/random/boot_id"));
    let boot = text.and_then(|text| {
        u128::from_str_radix(&text.trim().replace('-', ""), 16).map_err(io::Error::other)
    });
    let boot = boot.map_err(SetupError::system("reading the boot id"))?;
    Ok(*KNOWN.get_or_init(|| boot))
}

/// A random number from the kernel.
pub(super) fn random_word() -> Result<u64, SetupError> {
    let mut bytes = [0; 8];
    let flags = rustix::rand::GetRandomFlags::empty();
    rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut bytes, flags))
        .map_err(SetupError::system("drawing a random number"))?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_cannot_be_looked_at_is_not_dead() {
        for errno in [Errno::NOENT, Errno::SRCH] {
            assert_eq!(unread(errno), ProcessState::Ended, "{errno}");
        }
        for errno in [Errno::ACCESS, Errno::NOMEM, Errno::IO, Errno::MFILE] {
            assert_eq!(unread(errno), ProcessState::Unknown(errno));
            assert_eq!(unread(errno).has_started_at(7), None);
        }
        assert_eq!(ProcessState::Alive(7).has_started_at(7), Some(true));
        assert_eq!(ProcessState::Alive(8).has_started_at(7), Some(false));
        assert_eq!(ProcessState::Ended.has_started_at(7), Some(false));
    }

    #[test]
    fn a_process_is_known_by_its_state_and_start_time() {
        let start = own_start_time().expect("alive");
        assert_eq!(state_of(std::process::id()), ProcessState::Alive(start));
        assert_eq!(state_of(u32::MAX), ProcessState::Ended);
        let fields = |state: &str| format!("7 (a) b) {state} {}77 0", "1 ".repeat(18));
        assert_eq!(state_in(&fields("S")), Some(ProcessState::Alive(77)));
        assert_eq!(state_in(&fields("Z")), Some(ProcessState::Ended));
        assert_eq!(state_in("7 (a) S 1"), None);
    }
}
