//! The address of a station on its host: a socket in the domain's directory, named after its
//! process, so that sockets of processes that have ended can be recognized and removed.

use crate::shm::error::SetupError;
use crate::shm::process;
use crate::shm::station_name::{MAGIC, SUFFIX, StationName};

const NAME_LEN_MAX: usize = 80;

/// An address on this host, valid for all that use the same domain directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) id: u128,
    /// The name of the socket: a [`StationName`].
    name: String,
}

impl Address {
    /// A new address in this process.
    pub(super) fn here(id: u128) -> Result<Self, SetupError> {
        let name = StationName::here()?.to_string();
        Ok(Self { id, name })
    }

    pub(super) fn write(&self) -> Vec<u8> {
        [MAGIC, &self.id.to_le_bytes(), self.name.as_bytes()].concat()
    }

    /// Accepts only names that cannot leave the directory: the name becomes part of a path.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (id, name) = bytes.strip_prefix(MAGIC)?.split_first_chunk()?;
        let plain = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'-';
        let good = (1..=NAME_LEN_MAX).contains(&name.len()) && name.iter().all(plain);
        good.then(|| Self {
            id: u128::from_le_bytes(*id),
            name: String::from_utf8_lossy(name).into_owned(),
        })
    }

    /// Whether its process may be alive.
    pub(super) fn may_live(&self) -> Result<bool, SetupError> {
        let here = process::visible_namespace()?;
        let name = StationName::read(&self.name);
        Ok(name.is_some_and(|name| name.lives(here) != Some(false)))
    }

    /// The name of the socket file within its domain.
    pub(super) fn file(&self) -> String {
        format!("{}{SUFFIX}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_are_read_as_addresses() {
        let address = Address::here(7).expect("an address");
        let bytes = address.write();
        assert_eq!(Address::read(&bytes), Some(address));
        for end in 0..21 {
            assert_eq!(Address::read(&bytes[..end]), None, "{end}");
        }
        for name in ["../lock", "a/b", "", "a b", "é", &"0".repeat(81)] {
            let bytes = [MAGIC, &[0; 16], name.as_bytes()].concat();
            assert_eq!(Address::read(&bytes), None, "{name}");
        }
    }
}
