//! Facts about processes from the kernel: whether one is alive, and its identity.

use std::io;
use std::sync::OnceLock;

use super::error::SetupError;

/// Start time of a process, in clock ticks since boot; `None` once it has ended, even if its
/// parent has not waited for it yet.
pub(super) fn start_time(pid: u32) -> Option<u64> {
    read_start_time(&format!("/proc/{pid}/stat"))
}

fn read_start_time(path: &str) -> Option<u64> {
    let stat = std::fs::read_to_string(path).ok()?;
    // The name may hold any character, so fields are counted from the last bracket: state
    // is the 3rd field of proc_pid_stat(5), the start time the 22nd.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Start time of this process.
pub(super) fn own_start_time() -> Result<u64, SetupError> {
    // Its pid may be another one in the pid namespace of this /proc.
    read_start_time("/proc/self/stat")
        .ok_or_else(|| io::Error::other("no start time in /proc/self/stat"))
        .map_err(SetupError::system("looking at the own process"))
}

/// The pid namespace of this process.
pub(super) fn namespace() -> Result<u64, SetupError> {
    let stat = rustix::fs::stat("/proc/self/ns/pid");
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
    let is_own = start_time(pid) == Some(own_start_time()?);
    let visible = if is_own { namespace()? } else { 0 };
    let _ = KNOWN.set((pid, visible));
    Ok(visible)
}

/// The mount namespace of this process.
pub(super) fn mount_namespace() -> Result<u64, SetupError> {
    let stat = rustix::fs::stat("/proc/self/ns/mnt");
    Ok(stat
        .map_err(SetupError::system("looking at /proc/self/ns/mnt"))?
        .st_ino)
}

/// The id of this boot of the host.
pub(super) fn boot() -> Result<u128, SetupError> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.and_then(|text| {
        u128::from_str_radix(&text.trim().replace('-', ""), 16).map_err(io::Error::other)
    })
    .map_err(SetupError::system("reading the boot id"))
}

/// A random number from the kernel.
pub(super) fn random_word() -> Result<u64, SetupError> {
    let mut bytes = [0; 8];
    let flags = rustix::rand::GetRandomFlags::empty();
    rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut bytes, flags))
        .map_err(SetupError::system("drawing a random number"))?;
    Ok(u64::from_le_bytes(bytes))
}
