//! Facts about processes from the kernel: whether one is alive, and its identity.

use std::io;
use std::sync::OnceLock;

use rustix::io::Errno;

use super::error::SetupError;
use crate::retry;

/// Clock ticks of `/proc`, per second.
const TICKS_PER_S: i64 = 100;

/// What the kernel says about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessState {
    /// It is alive, and has started at this time, in clock ticks since boot, whatever the time
    /// namespace of this process.
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
            // Offsets of time namespaces are rounded to ticks.
            Self::Alive(started) => Some(started.abs_diff(start) <= 1),
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
    let ahead = match ticks_ahead() {
        Ok(ahead) => ahead,
        Err(error) => {
            return ProcessState::Unknown(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        }
    };
    match retry::repeat(|| std::fs::read_to_string(path)) {
        Ok(stat) => state_in(&stat, ahead).unwrap_or(ProcessState::Unknown(Errno::BADMSG)),
        Err(error) => unread(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}

/// By how many ticks start times are ahead that this process reads: by the offset of its time
/// namespace. Two processes in different ones read different times of the same start.
fn ticks_ahead() -> io::Result<i64> {
    static KNOWN: OnceLock<(u32, i64)> = OnceLock::new();
    let pid = std::process::id();
    // A forked child may be in another namespace.
    if let Some((_, known)) = KNOWN.get().filter(|known| known.0 == pid) {
        return Ok(*known);
    }
    let namespace = |name: &str| {
        retry::repeat(|| rustix::fs::stat(format!("/proc/self/ns/{name}"))).map(|stat| stat.st_ino)
    };
    // The offsets are those of its children, which are the same unless it has left theirs for
    // them.
    let ahead = match (namespace("time"), namespace("time_for_children")) {
        (Ok(own), Ok(childrens)) if own == childrens => {
            let offsets = retry::repeat(|| std::fs::read_to_string("/proc/self/timens_offsets"))?;
            offset_in(&offsets).ok_or(Errno::BADMSG)?
        }
        (Ok(_), Ok(_)) | (Err(Errno::NOENT), _) | (_, Err(Errno::NOENT)) => 0,
        (Err(errno), _) | (_, Err(errno)) => return Err(errno.into()),
    };
    let _ = KNOWN.set((pid, ahead));
    Ok(ahead)
}

/// The offset of the clock since boot, in ticks.
fn offset_in(offsets: &str) -> Option<i64> {
    let mut lines = offsets.lines();
    let words = lines.find_map(|line| line.strip_prefix("boottime"))?;
    let mut words = words.split_ascii_whitespace();
    let mut number = || words.next()?.parse::<i64>().ok();
    let (seconds, ns) = (number()?, number()?);
    seconds
        .checked_mul(TICKS_PER_S)?
        .checked_add(ns / (1_000_000_000 / TICKS_PER_S))
}

/// Only these say that there is no such process.
fn unread(errno: Errno) -> ProcessState {
    match errno {
        Errno::NOENT | Errno::SRCH => ProcessState::Ended,
        errno => ProcessState::Unknown(errno),
    }
}

fn state_in(stat: &str, ahead: i64) -> Option<ProcessState> {
    // The name may hold any character, so fields are counted from the last bracket: state
    // is the 3rd field of proc_pid_stat(5), the start time the 22nd.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X" | "x") {
        return Some(ProcessState::Ended);
    }
    let started: u64 = fields.nth(18)?.parse().ok()?;
    started
        .checked_add_signed(ahead.checked_neg()?)
        .map(ProcessState::Alive)
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
        assert_eq!(ProcessState::Alive(9).has_started_at(7), Some(false));
        assert_eq!(ProcessState::Ended.has_started_at(7), Some(false));
    }

    #[test]
    fn a_process_is_known_by_its_state_and_start_time() {
        let start = own_start_time().expect("alive");
        assert_eq!(state_of(std::process::id()), ProcessState::Alive(start));
        assert_eq!(state_of(u32::MAX), ProcessState::Ended);
        let fields = |state: &str| format!("7 (a) b) {state} {}77 0", "1 ".repeat(18));
        let alive = |start| Some(ProcessState::Alive(start));
        assert_eq!(state_in(&fields("S"), 0), alive(77));
        // Read in a time namespace whose clock is ahead, or behind.
        assert_eq!(state_in(&fields("S"), 70), alive(7));
        assert_eq!(state_in(&fields("S"), -100), alive(177));
        assert_eq!(state_in(&fields("Z"), 0), Some(ProcessState::Ended));
        for (stat, ahead) in [("7 (a) S 1", 0), (&fields("S"), 78)] {
            assert_eq!(state_in(stat, ahead), None);
        }
    }

    #[test]
    fn the_offset_of_a_time_namespace_is_read_in_ticks() {
        let offsets = "monotonic           1         0\nboottime           -2 30000000\n";
        assert_eq!(offset_in(offsets), Some(-197));
        assert_eq!(offset_in("monotonic 1 0\n"), None);
    }
}
