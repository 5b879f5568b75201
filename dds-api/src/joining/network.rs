//! The network properties of a participant, resolved when it is enabled.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use spindle_dds_transport::hybrid::{NetworkOptions, Secret, read_secret};
use spindle_dds_transport::tcp;

use crate::error::{Error, Result};
use crate::properties::{ACCEPTED_SECRET_FILE, CONTACTS, NetworkConfig, SECRET_FILE};

/// A contact address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Contact {
    /// As the user wrote it.
    pub(super) label: String,
    pub(super) at: SocketAddr,
}

/// Reads the secrets. `limit` is the heartbeat timeout: the group suspects a silent member before its
/// stream times out.
pub(super) fn options(config: &NetworkConfig, limit: Duration) -> Result<NetworkOptions> {
    let read = |path: &Option<PathBuf>, property| {
        let path = path.as_deref();
        path.map(|path| secret(path, property)).transpose()
    };
    let streams = tcp::StreamOptions {
        user_timeout: 2 * limit,
        ..tcp::StreamOptions::default()
    };
    Ok(NetworkOptions {
        listen: config.listen,
        secret: read(&config.secret_file, SECRET_FILE)?,
        accepted_secret: read(&config.accepted_secret_file, ACCEPTED_SECRET_FILE)?,
        encryption: config.encryption,
        streams,
        rdma: config.rdma.clone(),
    })
}

/// Resolves the names, each to one address: of the family at which this participant listens, if
/// there is one. Blocks for as long as the resolver does. Names of one address are one contact.
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

fn secret(path: &Path, property: &str) -> Result<Secret> {
    read_secret(path).map_err(|error| Error::Error(format!("property {property}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_dds_transport::hybrid::{EncryptionUse, RdmaUse};

    fn config(contacts: &[&str]) -> NetworkConfig {
        NetworkConfig {
            listen: (std::net::Ipv4Addr::LOCALHOST, 0).into(),
            contacts: contacts.iter().map(|&it| it.to_owned()).collect(),
            secret_file: None,
            accepted_secret_file: None,
            encryption: EncryptionUse::Auto,
            rdma: RdmaUse::Off,
        }
    }

    #[test]
    fn names_are_resolved_and_equal_addresses_count_once() {
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
    fn an_unreadable_secret_is_reported_with_its_property() {
        let nowhere = Path::new("/nowhere/secret");
        for property in [SECRET_FILE, ACCEPTED_SECRET_FILE] {
            let why = secret(nowhere, property).unwrap_err().to_string();
            assert!(
                why.contains(property) && why.contains("/nowhere/secret"),
                "{why}"
            );
        }
    }
}
