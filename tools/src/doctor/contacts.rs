//! Asking really: a station of its own knocks at contacts, as a newcomer would, and goes
//! away. Nobody is asked to let it in, and nothing is left behind.

use std::fs::Permissions;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use spindle_dds_transport::hybrid::{
    HybridError, NetworkOptions, PeerPath, Station, StationOptions,
};
use spindle_dds_transport::shm;

/// How a contact is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Way {
    /// By shared memory: it is on this host.
    Shm,
    /// By streams.
    Tcp,
    /// By RDMA.
    Rdma,
}

/// What came of a knock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Knock {
    /// As the user wrote it.
    pub(super) contact: String,
    /// The way, if it answers.
    pub(super) way: Option<Way>,
    /// Else why not.
    pub(super) problem: Option<String>,
}

/// Who knocks.
#[derive(Debug, Clone)]
pub(super) struct Visitor {
    pub(super) domain: u32,
    pub(super) directory: PathBuf,
    /// The address it calls from.
    pub(super) listen: Option<IpAddr>,
    pub(super) secret: Option<Vec<u8>>,
    /// For each contact.
    pub(super) patience: Duration,
}

impl Visitor {
    /// Opens a station in a directory of its own and closes it: finds out whether the
    /// system gives what a participant needs.
    pub(super) fn trial(&self) -> Result<(), String> {
        let directory = private()?;
        self.open(directory.path(), None).map(drop)
    }

    /// Knocks at each, one after the other.
    pub(super) fn knock(&self, contacts: &[String]) -> Result<Vec<Knock>, String> {
        let private = private()?;
        // Whoever has been here has left the domain's lock. If nobody has, nobody of this
        // host answers from here, and so the directory need not be touched.
        let lock = self.directory.join(format!("domain-{}.lock", self.domain));
        let directory = match lock.exists() {
            true => self.directory.as_path(),
            false => private.path(),
        };
        let resolved: Vec<_> = contacts
            .iter()
            .map(|contact| self.resolve(contact))
            .collect();
        let from = self.listen.unwrap_or_else(|| any(&resolved));
        let network = NetworkOptions {
            listen: SocketAddr::new(from, 0),
            secret: self.secret.clone(),
            ..NetworkOptions::default()
        };
        let station = self.open(directory, Some(network))?;
        let knocks = contacts.iter().zip(resolved).map(|(contact, at)| {
            let answer = at.and_then(|at| self.ask(&station, at));
            let (way, problem) = match answer {
                Ok(way) => (Some(way), None),
                Err(problem) => (None, Some(problem)),
            };
            Knock {
                contact: contact.clone(),
                way,
                problem,
            }
        });
        Ok(knocks.collect())
    }

    fn open(&self, directory: &Path, network: Option<NetworkOptions>) -> Result<Station, String> {
        let mut id = [0; 16];
        let flags = rustix::rand::GetRandomFlags::empty();
        rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut id, flags))
            .map_err(|errno| format!("no random number: {errno}"))?;
        let mut host = shm::HostOptions::new(self.domain, u128::from_le_bytes(id));
        host.directory = Some(directory.to_owned());
        let station = Station::open(&StationOptions { host, network });
        station.map_err(|error| error.to_string())
    }

    fn ask(&self, station: &Station, at: SocketAddr) -> Result<Way, String> {
        let deadline = Instant::now() + self.patience;
        match station.call(at, deadline) {
            Ok(id) => {
                let way = station.path(id).map(|way| match way {
                    PeerPath::SharedMemory => Way::Shm,
                    PeerPath::Stream => Way::Tcp,
                    PeerPath::Rdma(_) => Way::Rdma,
                });
                station.drop_peer(id);
                way.ok_or_else(|| "it answered, and was gone".to_owned())
            }
            Err(HybridError::Refused { reason, .. }) => Err(format!("refuses: {reason}")),
            Err(HybridError::Unreachable { reason, .. }) => Err(reason),
            Err(error) => Err(error.to_string()),
        }
    }

    /// To an address of the kind that it calls from, if there is one.
    fn resolve(&self, contact: &str) -> Result<SocketAddr, String> {
        let found = contact.to_socket_addrs();
        let found = found.map_err(|error| format!("cannot be resolved: {error}"))?;
        let found: Vec<SocketAddr> = found.collect();
        let fits = |at: &&SocketAddr| self.listen.is_none_or(|it| it.is_ipv4() == at.is_ipv4());
        let at = found.iter().find(fits).or_else(|| found.first());
        at.copied().ok_or_else(|| "has no address".to_owned())
    }
}

/// A directory that is this user's alone, as domains need it.
fn private() -> Result<tempfile::TempDir, String> {
    let mode = Permissions::from_mode(0o700);
    let made = tempfile::Builder::new().permissions(mode).tempdir();
    made.map_err(|error| format!("no directory can be made: {error}"))
}

/// Any address of the kind that the contacts have.
fn any(contacts: &[Result<SocketAddr, String>]) -> IpAddr {
    match contacts.iter().flatten().next() {
        Some(SocketAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
        _ => Ipv4Addr::UNSPECIFIED.into(),
    }
}
