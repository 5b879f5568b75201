//! A second sign that members of a domain live, for when the domain's files are removed.
//!
//! A member holds a socket in the abstract namespace, which no file removal touches. Its name
//! says the mount namespace and the path of the directory, the domain, and the process. A
//! newcomer that finds a new directory, and such a socket of a living process, does not found
//! a second domain: it waits until the members have written the record anew.
//!
//! The abstract namespace belongs to the network namespace: newcomers in another one do not
//! see the sign.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use sha2::{Digest, Sha256};

use super::error::SetupError;
use super::process;
use super::station_name::StationName;
use crate::retry;

/// The first part of the name of such a socket: the same for all members that see the same
/// directory at this path.
fn prefix(path: &Path, domain: u32) -> Result<String, SetupError> {
    let digest = Sha256::new()
        .chain_update(process::mount_namespace()?.to_le_bytes())
        .chain_update(domain.to_le_bytes())
        .chain_update(path.as_os_str().as_encoded_bytes())
        .finalize();
    let (first, _) = digest.split_first_chunk().expect("32 bytes");
    let user = rustix::process::geteuid().as_raw();
    let what = u64::from_le_bytes(*first);
    Ok(format!("spindle-dds/{user}/{what:016x}/"))
}

/// Shows that a member lives in this process, until the socket is closed.
pub(super) fn show(path: &Path, domain: u32) -> Result<OwnedFd, SetupError> {
    let name = format!("{}{}", prefix(path, domain)?, StationName::here()?);
    let bind = || {
        let flags = SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
        rustix::net::bind(&socket, &address)?;
        Ok::<_, rustix::io::Errno>(socket)
    };
    retry::repeat(bind).map_err(SetupError::system("binding a socket that shows a member"))
}

/// The pid of a living process that shows a member. A socket that only a forked child of its
/// process still holds does not count.
pub(super) fn shown(path: &Path, domain: u32) -> Result<Option<u32>, SetupError> {
    let sockets = match retry::repeat(|| std::fs::read("/proc/net/unix")) {
        Ok(sockets) => sockets,
        // Where it may not be read, nothing is known.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::PermissionDenied
            ) =>
        {
            Vec::new()
        }
        Err(error) => return Err(SetupError::system("reading /proc/net/unix")(error)),
    };
    let sockets = String::from_utf8_lossy(&sockets);
    let (prefix, here) = (prefix(path, domain)?, process::visible_namespace()?);
    let names = sockets.lines().filter_map(|line| line.split_once(" @"));
    let names = names.filter_map(|(_, name)| StationName::read(name.strip_prefix(&prefix)?));
    let mut living = names.filter(|name| name.lives(here) != Some(false));
    Ok(living.next().map(|name| name.pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_seen_for_as_long_as_its_socket_is_open() {
        let path = Path::new("/nowhere/presence");
        let seen = |path: &str, domain| shown(Path::new(path), domain).expect("looked");
        assert_eq!(seen("/nowhere/presence", 7), None);
        let both = [0, 1].map(|_| show(path, 7).expect("bound"));
        let me = Some(std::process::id());
        assert_eq!(seen("/nowhere/presence", 7), me);
        assert_eq!(seen("/nowhere/presence", 8), None);
        assert_eq!(seen("/nowhere/else", 7), None);
        drop(both);
        assert_eq!(seen("/nowhere/presence", 7), None);
    }
}
