//! What a participant's properties say of the network, looked up when it is enabled.

use std::fs::File;
use std::io::Read;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use spindle_dds_transport::mixed::NetworkOptions;
use spindle_dds_transport::tcp;

use crate::error::{Error, Result};
use crate::properties::{CONTACTS, NetworkConfig, SECRET_FILE};

/// Longest secret, in bytes.
const SECRET_LEN_MAX: u64 = 4096;

/// Somebody to be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Contact {
    /// As the user wrote it.
    pub(super) label: String,
    pub(super) at: SocketAddr,
}

/// Reads the secret. Whoever is silent for longer than `limit` is taken for failed by the
/// group; its stream ends later than that.
pub(super) fn options(config: &NetworkConfig, limit: Duration) -> Result<NetworkOptions> {
    let secret = config.secret_file.as_deref().map(secret).transpose()?;
    let streams = tcp::StationOptions {
        user_timeout: 2 * limit,
        ..tcp::StationOptions::default()
    };
    Ok(NetworkOptions {
        listen: config.listen,
        secret,
        streams,
        rdma: config.rdma.clone(),
    })
}

/// Resolves the names, each to one address, of the kind at which this participant
/// listens if there is one. May block for as long as the resolver does. One address is
/// one contact.
pub(super) fn contacts(config: &NetworkConfig) -> Result<Vec<Contact>> {
    let mut contacts: Vec<Contact> = Vec::new();
    for label in &config.contacts {
        let fail = |why: String| {
            Error::Error(format!(
                "property {CONTACTS}: item {label:?} cannot be resolved: {why}"
            ))
        };
        let found = label.to_socket_addrs();
        let found: Vec<_> = found.map_err(|error| fail(error.to_string()))?.collect();
        let mut alike = found.iter();
        let alike = alike.find(|at| at.is_ipv4() == config.listen.is_ipv4());
        let at = alike.or_else(|| found.first());
        let at = *at.ok_or_else(|| fail("it has no address".to_owned()))?;
        if contacts.iter().all(|contact| contact.at != at) {
            let label = label.clone();
            contacts.push(Contact { label, at });
        }
    }
    Ok(contacts)
}

fn secret(path: &Path) -> Result<Vec<u8>> {
    let fail = |why: String| {
        let path = path.display();
        Err(Error::Error(format!(
            "property {SECRET_FILE}: {path} {why}"
        )))
    };
    let read = || {
        let file = File::open(path)?;
        let mode = file.metadata()?.permissions().mode();
        let mut secret = Vec::new();
        file.take(SECRET_LEN_MAX + 1).read_to_end(&mut secret)?;
        Ok::<_, std::io::Error>((mode, secret))
    };
    let (mode, secret) = match read() {
        Ok(read) => read,
        Err(error) => return fail(format!("cannot be read: {error}")),
    };
    let mode = mode & 0o777;
    if mode & 0o077 != 0 {
        return fail(format!(
            "has mode {mode:03o}; nobody but its owner may have access: chmod 600"
        ));
    }
    let secret = secret.trim_ascii_end();
    if secret.is_empty() {
        return fail("is empty".to_owned());
    }
    if secret.len() as u64 > SECRET_LEN_MAX {
        return fail(format!("is longer than {SECRET_LEN_MAX} bytes"));
    }
    Ok(secret.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_dds_transport::mixed::RdmaUse;

    fn config(contacts: &[&str]) -> NetworkConfig {
        NetworkConfig {
            listen: (std::net::Ipv4Addr::LOCALHOST, 0).into(),
            contacts: contacts.iter().map(|&it| it.to_owned()).collect(),
            secret_file: None,
            rdma: RdmaUse::Off,
        }
    }

    #[test]
    fn names_are_resolved_and_addresses_that_are_one_count_once() {
        let found = contacts(&config(&[
            "localhost:7400",
            "127.0.0.1:7400",
            "127.0.0.1:7401",
        ]));
        let found: Vec<_> = found
            .unwrap()
            .into_iter()
            .map(|it| it.at.to_string())
            .collect();
        assert_eq!(found, ["127.0.0.1:7400", "127.0.0.1:7401"]);
        let error = contacts(&config(&["127.0.0.1:1", "no.such.host.invalid:7400"])).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(CONTACTS) && text.contains("no.such.host"),
            "{text}"
        );
    }

    #[test]
    fn a_secret_is_the_owners_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        let set = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            secret(&path)
        };
        assert_eq!(set("open sesame\n", 0o600).unwrap(), b"open sesame");
        let long = "x".repeat(SECRET_LEN_MAX as usize + 1);
        for (text, mode, wanted) in [
            ("open", 0o640, "chmod 600"),
            ("open", 0o604, "mode 604"),
            ("", 0o600, "empty"),
            (" \n", 0o600, "empty"),
            (&long, 0o600, "longer"),
        ] {
            let why = set(text, mode).unwrap_err().to_string();
            assert!(why.contains(wanted) && why.contains(SECRET_FILE), "{why}");
        }
        std::fs::remove_file(&path).unwrap();
        let why = secret(&path).unwrap_err().to_string();
        assert!(why.contains("cannot be read"), "{why}");
    }
}
