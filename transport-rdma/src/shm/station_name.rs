//! The names of stations' sockets in the domain's directory: each names its process, so that
//! the processes that have ended can be told, also in other pid namespaces.

use std::fmt;

use super::error::SetupError;
use super::process;

/// Begins the address of a station on its host.
pub(super) const MAGIC: &[u8] = b"shm1";

/// End of the name of a station's socket.
pub(super) const SUFFIX: &str = ".station";

/// Pid namespace, pid and start time of a process, and a random number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StationName {
    pub(super) namespace: u64,
    pub(super) pid: u32,
    pub(super) start: u64,
    nonce: u64,
}

impl StationName {
    /// A new name in this process.
    pub(super) fn here() -> Result<Self, SetupError> {
        Ok(Self {
            namespace: process::namespace()?,
            pid: std::process::id(),
            start: process::own_start_time()?,
            nonce: process::random_word()?,
        })
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        let fields: Vec<_> = text.split('-').collect();
        let [namespace, pid, start, nonce] = fields.try_into().ok()?;
        Some(Self {
            namespace: namespace.parse().ok()?,
            pid: pid.parse().ok()?,
            start: start.parse().ok()?,
            nonce: u64::from_str_radix(nonce, 16).ok()?,
        })
    }

    /// The name in a member's address, which contains that of its station: `shm1`, the id, and
    /// the name.
    pub(super) fn in_address(address: &[u8], id: u128) -> Option<Self> {
        let start = [MAGIC, &id.to_le_bytes()].concat();
        let at = address.windows(start.len()).position(|it| it == start)?;
        let rest = &address[at + start.len()..];
        let is_in_name = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'-';
        let end = rest.iter().position(|byte| !is_in_name(byte));
        Self::read(str::from_utf8(&rest[..end.unwrap_or(rest.len())]).ok()?)
    }

    /// The name of the socket's file within its domain.
    pub(super) fn file(&self) -> String {
        format!("{self}{SUFFIX}")
    }

    /// Whether its process is alive; `None` if that is not known: it is of another pid namespace
    /// than `here`, or cannot be looked at.
    pub(super) fn lives(&self, here: u64) -> Option<bool> {
        let is_visible = self.namespace == here;
        is_visible.then(|| process::state_of(self.pid).has_started_at(self.start))?
    }
}

impl fmt::Display for StationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            namespace,
            pid,
            start,
            nonce,
        } = self;
        write!(f, "{namespace}-{pid}-{start}-{nonce:016x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_whether_its_process_is_alive() {
        let mine = StationName::here().expect("a name");
        assert_eq!(StationName::read(&mine.to_string()), Some(mine));
        let here = mine.namespace;
        assert_eq!(mine.lives(here), Some(true));
        assert_eq!(mine.lives(here + 1), None);
        let ended = StationName { start: 1, ..mine };
        assert_eq!(ended.lives(here), Some(false));
        let address = [
            b"net1",
            MAGIC,
            &[7; 16],
            mine.to_string().as_bytes(),
            b"\x04\x7f",
        ]
        .concat();
        let id = u128::from_le_bytes([7; 16]);
        assert_eq!(StationName::in_address(&address, id), Some(mine));
        assert_eq!(StationName::in_address(&address, id + 1), None);
        for text in ["", "what", "1-2-3", "1-2-3-4-5", "1-x-3-4", "1-2-3-"] {
            assert_eq!(StationName::read(text), None, "{text}");
        }
    }
}
