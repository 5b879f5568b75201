//! The hosts of a measurement between several hosts.

use std::fs::DirBuilder;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spindle_dds::ParticipantBuilder;

use super::Failure;
use super::options::{Fabric, Hosts};

/// A host: an address of this machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Place {
    listen: String,
    /// The address of the host whose participant founds the group.
    contact: String,
    /// RDMA device; `None` for TCP.
    device: Option<String>,
    secret_file: Option<PathBuf>,
    /// The path of its network namespace; `None` if it is an address of this machine.
    pub(super) namespace: Option<PathBuf>,
}

impl Place {
    /// One for each host; none for a measurement on one host.
    pub(super) fn all(on: &Hosts) -> Result<Vec<Self>, Failure> {
        let (hosts, devices) = (&on.hosts, &on.devices);
        let (fits, problem) = match on.fabric() {
            Fabric::Shm => (
                hosts.is_empty() && devices.is_empty() && on.secret_file.is_none(),
                "--hosts, --devices and --secret-file are for --fabric tcp and rdma",
            ),
            Fabric::Tcp => (
                hosts.len() > 1 && devices.is_empty(),
                "--fabric tcp needs two --hosts or more, and no --devices",
            ),
            Fabric::Rdma => (
                hosts.len() > 1 && devices.len() == hosts.len(),
                "--fabric rdma needs two --hosts or more, and as many --devices",
            ),
        };
        if !fits {
            return Err(Failure::Workers(problem.to_owned()));
        }
        let Some(&first) = hosts.first() else {
            return Ok(Vec::new());
        };
        let port = match on.namespaces {
            Some(_) => PORT,
            None => free_port(first)?,
        };
        let namespaces = on.namespaces.as_ref();
        let at = |host| SocketAddr::new(host, port).to_string();
        let place = |(number, &host)| Self {
            listen: at(host),
            contact: at(first),
            device: devices.get(number).cloned(),
            secret_file: on.secret_file.clone(),
            namespace: namespaces.and_then(|all| all.paths.get(number).cloned()),
        };
        Ok(hosts.iter().enumerate().map(place).collect())
    }

    /// The host of one more participant, which has nothing to do with what is measured.
    pub(super) fn of_outsider(on: &Hosts) -> Option<Self> {
        let (address, namespace) = on.namespaces.as_ref()?.outsider.as_ref()?;
        let at = |host: &IpAddr| SocketAddr::new(*host, PORT).to_string();
        Some(Self {
            listen: at(address),
            contact: at(on.hosts.first()?),
            device: None,
            secret_file: on.secret_file.clone(),
            namespace: Some(namespace.clone()),
        })
    }

    pub(super) fn builder(&self, builder: ParticipantBuilder) -> ParticipantBuilder {
        let builder = builder
            .property("spindle.listen", &self.listen)
            .property("spindle.contacts", &self.contact);
        let secret_file = self.secret_file.as_ref().and_then(|path| path.to_str());
        let builder = match secret_file {
            None => builder,
            Some(path) => builder.property("spindle.secret_file", path),
        };
        match &self.device {
            None => builder.property("spindle.rdma", "off"),
            Some(device) => builder
                .property("spindle.rdma", "required")
                .property("spindle.rdma.device", device),
        }
    }
}

fn free_port(address: IpAddr) -> io::Result<u16> {
    let bound = TcpListener::bind((address, 0)).and_then(|it| it.local_addr());
    let bound = bound.map_err(|error| {
        let text = format!("{address} is no address of this host: {error}");
        io::Error::new(error.kind(), text)
    });
    Ok(bound?.port())
}

/// Free in a new namespace.
const PORT: u16 = 7400;

/// Creates the `spindle.directory` of a host's participants.
pub(super) fn directory(below: &Path, host: usize) -> io::Result<PathBuf> {
    let directory = below.join(format!("host-{host}"));
    DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(&directory)?;
    Ok(directory)
}
