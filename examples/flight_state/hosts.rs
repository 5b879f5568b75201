//! Several hosts on one: addresses of this host, at each of which some of the processes
//! have a directory of their own to meet in.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::Failure;

/// Where the participants of one process are.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Of its host.
    pub(crate) directory: PathBuf,
    pub(crate) listen: String,
    /// Who founds the group.
    pub(crate) contact: String,
    /// For RDMA.
    pub(crate) device: Option<String>,
}

/// One for each host, in directories below this one. One port is free at all of them.
pub(crate) fn places(
    hosts: &[IpAddr],
    devices: &[String],
    below: &Path,
) -> Result<Vec<Place>, Failure> {
    if !devices.is_empty() && devices.len() != hosts.len().max(1) {
        let (devices, hosts) = (devices.len(), hosts.len().max(1));
        return Err(Failure::Run(format!(
            "there are {devices} devices for {hosts} hosts"
        )));
    }
    let Some(&first) = hosts.first() else {
        return Ok(Vec::new());
    };
    let port = free_port(first)?;
    let place = |(at, &host): (usize, &IpAddr)| {
        let directory = below.join(format!("host-{at}"));
        DirBuilder::new().mode(0o700).create(&directory)?;
        // Whatever the umask says.
        std::fs::set_permissions(&directory, Permissions::from_mode(0o700))?;
        Ok(Place {
            directory,
            listen: SocketAddr::new(host, port).to_string(),
            contact: SocketAddr::new(first, port).to_string(),
            device: devices.get(at).cloned(),
        })
    };
    hosts.iter().enumerate().map(place).collect()
}

fn free_port(at: IpAddr) -> Result<u16, Failure> {
    let bound = TcpListener::bind((at, 0)).and_then(|it| it.local_addr());
    let bound = bound.map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("{at} is no address of this host: {error}"),
        )
    });
    Ok(bound?.port())
}
