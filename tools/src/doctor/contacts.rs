//! Calls contacts with a station of its own, as a joining participant does, and closes it. No
//! contact is asked for admission, and nothing is left behind.

use std::fs::Permissions;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use spindle_dds_transport::hybrid::{
    CallFailureCause, HybridError, NetworkOptions, PeerPath, Secret, Station, StationOptions,
};
use spindle_dds_transport::shm;

/// The path to a contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ContactPath {
    /// Shared memory: the contact is on this host.
    Shm,
    /// TCP.
    Tcp,
    /// RDMA.
    Rdma,
}

/// The result of calling a contact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ContactCheck {
    /// The contact as the user wrote it.
    pub(super) contact: String,
    /// The path, if it answers.
    pub(super) path: Option<ContactPath>,
    /// Whether what goes there over the network is encrypted.
    pub(super) encrypted: bool,
    /// The problem, if it does not.
    pub(super) problem: Option<ContactProblem>,
}

/// Why a contact does not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct ContactProblem {
    pub(super) text: String,
    #[serde(skip)]
    pub(super) cause: ProblemCause,
}

/// The cause of a problem with a contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProblemCause {
    /// Its name has no address.
    Unresolved,
    /// The call failed.
    Call(CallFailureCause),
}

/// Calls contacts.
#[derive(Debug, Clone)]
pub(super) struct ContactChecker {
    pub(super) domain: u32,
    pub(super) directory: PathBuf,
    /// Address from which it calls.
    pub(super) listen: Option<IpAddr>,
    pub(super) secret: Option<Secret>,
    /// Time limit of each call.
    pub(super) patience: Duration,
}

impl ContactChecker {
    /// Opens a station in its own directory and closes it: shows whether the system provides what
    /// a participant needs.
    pub(super) fn trial(&self) -> Result<(), String> {
        let directory = private()?;
        self.open(directory.path(), None).map(drop)
    }

    /// Calls each contact, one after the other.
    pub(super) fn check(&self, contacts: &[String]) -> Result<Vec<ContactCheck>, String> {
        let private = private()?;
        // A participant leaves the domain's record in the directory. Without one no participant
        // of this host can answer, so the directory is not touched.
        let record = self
            .directory
            .join(format!("domain-{}.record", self.domain));
        let directory = match record.exists() {
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
        let contacts = contacts.iter().zip(resolved).map(|(contact, at)| {
            let answer = at.and_then(|at| self.ask(&station, at));
            let (path, encrypted, problem) = match answer {
                Ok((path, encrypted)) => (Some(path), encrypted, None),
                Err(problem) => (None, false, Some(problem)),
            };
            ContactCheck {
                contact: contact.clone(),
                path,
                encrypted,
                problem,
            }
        });
        Ok(contacts.collect())
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

    /// The path, and whether it is encrypted.
    fn ask(
        &self,
        station: &Station,
        at: SocketAddr,
    ) -> Result<(ContactPath, bool), ContactProblem> {
        let deadline = Instant::now() + self.patience;
        match station.call(at, deadline) {
            Ok(id) => {
                let path = station.path(id).map(|path| match path {
                    PeerPath::SharedMemory => ContactPath::Shm,
                    PeerPath::Stream => ContactPath::Tcp,
                    PeerPath::Rdma(_) => ContactPath::Rdma,
                });
                let encrypted = station.is_encrypted(id);
                station.drop_peer(id);
                let path = path.map(|path| (path, encrypted));
                path.ok_or_else(|| ContactProblem {
                    text: "it answered, then disconnected".to_owned(),
                    cause: ProblemCause::Call(CallFailureCause::Other),
                })
            }
            Err(error) => {
                let cause = ProblemCause::Call(error.call_failure());
                let text = match error {
                    HybridError::Refused { reason, .. } => format!("refuses: {reason}"),
                    HybridError::Unreachable { reason, .. } => reason,
                    error => error.to_string(),
                };
                Err(ContactProblem { text, cause })
            }
        }
    }

    /// Prefers an address of the family from which it calls.
    fn resolve(&self, contact: &str) -> Result<SocketAddr, ContactProblem> {
        let unresolved = |text: String| ContactProblem {
            text,
            cause: ProblemCause::Unresolved,
        };
        let found = contact.to_socket_addrs();
        let found = found.map_err(|error| unresolved(format!("cannot be resolved: {error}")))?;
        let found: Vec<SocketAddr> = found.collect();
        let fits = |at: &&SocketAddr| self.listen.is_none_or(|it| it.is_ipv4() == at.is_ipv4());
        let at = found.iter().find(fits).or_else(|| found.first());
        at.copied()
            .ok_or_else(|| unresolved("has no address".to_owned()))
    }
}

/// A directory that only this user can access, as domains need it.
fn private() -> Result<tempfile::TempDir, String> {
    let mode = Permissions::from_mode(0o700);
    let made = tempfile::Builder::new().permissions(mode).tempdir();
    made.map_err(|error| format!("cannot create a directory: {error}"))
}

/// The unspecified address of the contacts' family.
fn any(contacts: &[Result<SocketAddr, ContactProblem>]) -> IpAddr {
    match contacts.iter().flatten().next() {
        Some(SocketAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
        _ => Ipv4Addr::UNSPECIFIED.into(),
    }
}
