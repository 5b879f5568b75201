//! Several hosts on one machine: addresses of this host, or network namespaces, for each of which some of
//! the processes have a directory of their own to meet in.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spindle_dds_children::netns::{Network, enter_by_path};

use crate::Failure;

/// A host: the processes on it share memory among themselves only.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Host {
    /// Where its participants meet.
    pub(crate) directory: PathBuf,
    /// Address and port at which they are reached.
    pub(crate) listen: String,
    /// Address and port of the participant that founds the group.
    pub(crate) contact: String,
    /// The RDMA device.
    pub(crate) device: Option<String>,
    /// The path of its network namespace; `None` if it is an address of this host.
    pub(crate) namespace: Option<PathBuf>,
}

impl Host {
    /// One for each address, with directories below `below` and one port that is free at the
    /// first of them; none if there are no addresses. Devices are one for each host, or none.
    pub(crate) fn all(
        addresses: &[IpAddr],
        devices: &[String],
        below: &Path,
    ) -> Result<Vec<Self>, Failure> {
        if !devices.is_empty() && devices.len() != addresses.len().max(1) {
            let (devices, hosts) = (devices.len(), addresses.len().max(1));
            return Err(Failure::Run(format!(
                "there are {devices} devices for {hosts} hosts"
            )));
        }
        let Some(&first) = addresses.first() else {
            return Ok(Vec::new());
        };
        let port = free_port(first)?;
        let host = |(index, &address): (usize, &IpAddr)| {
            Ok(Self {
                device: devices.get(index).cloned(),
                ..Self::new(below, index, [address, first], port)?
            })
        };
        addresses.iter().enumerate().map(host).collect()
    }

    /// The hosts of a network of namespaces, as long as it is there.
    pub(crate) fn in_namespaces(network: &Network, below: &Path) -> Result<Vec<Self>, Failure> {
        let hosts = network.hosts();
        let Some(&(first, _)) = hosts.first() else {
            return Ok(Vec::new());
        };
        let host = |(index, (address, namespace))| {
            Ok(Self {
                namespace: Some(namespace),
                ..Self::new(below, index, [address, first], PORT)?
            })
        };
        hosts.into_iter().enumerate().map(host).collect()
    }

    fn new(
        below: &Path,
        index: usize,
        [address, first]: [IpAddr; 2],
        port: u16,
    ) -> Result<Self, Failure> {
        let directory = below.join(format!("host-{index}"));
        DirBuilder::new().mode(0o700).create(&directory)?;
        // Once more, because the umask may have taken bits away.
        std::fs::set_permissions(&directory, Permissions::from_mode(0o700))?;
        Ok(Self {
            directory,
            listen: SocketAddr::new(address, port).to_string(),
            contact: SocketAddr::new(first, port).to_string(),
            device: None,
            namespace: None,
        })
    }

    /// Moves the calling thread, and those that it starts, to this host.
    pub(crate) fn enter(&self) -> io::Result<()> {
        self.namespace.as_deref().map_or(Ok(()), enter_by_path)
    }
}

/// Free in a new namespace.
const PORT: u16 = 7400;

fn free_port(address: IpAddr) -> Result<u16, Failure> {
    let bound = TcpListener::bind((address, 0)).and_then(|it| it.local_addr());
    let bound = bound.map_err(|error| {
        let text = format!("{address} is no address of this host: {error}");
        io::Error::new(error.kind(), text)
    });
    Ok(bound?.port())
}

/// Over what the participants of `churn` reach each other.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FabricOptions {
    /// What carries the samples.
    #[arg(long, value_enum, default_value_t = Fabric::Shm)]
    fabric: Fabric,
    /// Addresses of this host, each of which stands for a host among which the participants are
    /// dealt out: with --fabric tcp or rdma.
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',')]
    hosts: Vec<IpAddr>,
    /// RDMA device of each of the hosts: with --fabric rdma.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    devices: Vec<String>,
}

/// What carries samples between participants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Fabric {
    /// Shared memory of this host.
    Shm,
    /// Streams between hosts.
    Tcp,
    /// RDMA between hosts. Needs the cargo feature `verbs`.
    Rdma,
}

impl FabricOptions {
    /// The hosts, with directories below `below`; none with shared memory alone.
    pub(crate) fn hosts(&self, below: &Path) -> Result<Vec<Host>, Failure> {
        let (hosts, devices) = (self.hosts.len(), self.devices.len());
        let (fits, problem) = match self.fabric {
            Fabric::Shm => (
                hosts == 0 && devices == 0,
                "--hosts and --devices are for --fabric tcp and rdma",
            ),
            Fabric::Tcp => (
                hosts > 1 && devices == 0,
                "--fabric tcp needs two --hosts or more, and no --devices",
            ),
            Fabric::Rdma => (
                hosts > 1 && devices == hosts,
                "--fabric rdma needs two --hosts or more, and as many --devices",
            ),
        };
        match fits {
            true => Host::all(&self.hosts, &self.devices, below),
            false => Err(Failure::Run(problem.to_owned())),
        }
    }
}
