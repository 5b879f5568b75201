//! Where a station listens: a socket in the domain's directory, named after the
//! process, so that what the dead left is known for that.

use crate::shm::SetupError;
use crate::shm::domain::Domain;
use crate::shm::process;

const MAGIC: &[u8] = b"shm1";
const SUFFIX: &str = ".station";
const NAME_LEN_MAX: usize = 80;

/// An address on this host, understood by whoever uses the same directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) id: u128,
    /// Pid namespace, pid, start time and a random number.
    name: String,
}

impl Address {
    /// A new one in this process.
    pub(super) fn here(id: u128) -> Result<Self, SetupError> {
        let (pid, start) = (std::process::id(), process::own_start_time()?);
        let (namespace, nonce) = (process::namespace()?, process::random_word()?);
        let name = format!("{namespace}-{pid}-{start}-{nonce:016x}");
        Ok(Self { id, name })
    }

    pub(super) fn write(&self) -> Vec<u8> {
        [MAGIC, &self.id.to_le_bytes(), self.name.as_bytes()].concat()
    }

    /// The name becomes part of a path, so it is taken for nothing else.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (id, name) = bytes.strip_prefix(MAGIC)?.split_first_chunk()?;
        let plain = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'-';
        let good = (1..=NAME_LEN_MAX).contains(&name.len()) && name.iter().all(plain);
        good.then(|| Self {
            id: u128::from_le_bytes(*id),
            name: String::from_utf8_lossy(name).into_owned(),
        })
    }

    /// The file's name within its domain.
    pub(super) fn file(&self) -> String {
        format!("{}{SUFFIX}", self.name)
    }
}

/// Removes the sockets of processes that have ended.
pub(crate) fn sweep_sockets(domain: &Domain) -> Result<(), SetupError> {
    let here = process::namespace()?;
    domain.sweep_files(SUFFIX, |name| is_of_the_dead(name, here) == Some(true));
    Ok(())
}

/// `None` where it cannot be told from here.
fn is_of_the_dead(name: &str, here: u64) -> Option<bool> {
    let mut fields = name.split('-');
    let mut next = || fields.next()?.parse::<u64>().ok();
    let (namespace, pid, start) = (next()?, next()?, next()?);
    let living = process::start_time(u32::try_from(pid).ok()?);
    (namespace == here).then_some(living != Some(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_as_it_was_written_and_nothing_else_does() {
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

    #[test]
    fn sockets_of_the_dead_are_told_from_those_of_the_living() {
        let mine = Address::here(7).expect("an address").name;
        let here = process::namespace().expect("a namespace");
        assert_eq!(is_of_the_dead(&mine, here), Some(false));
        assert_eq!(is_of_the_dead(&mine, here + 1), None);
        let dead = format!("{here}-{}-1-0", std::process::id());
        assert_eq!(is_of_the_dead(&dead, here), Some(true));
        assert_eq!(is_of_the_dead("what", here), None);
    }
}
