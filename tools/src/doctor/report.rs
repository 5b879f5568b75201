//! The report as text and as JSON.

use core::fmt;

use serde::Serialize;

use super::contacts::ContactCheck;
use super::domain::Domain;
use super::findings::{Finding, Level};
use super::machine::Machine;
use super::members::Members;
use super::needs::Scale;
use super::place::Place;
use super::rdma::{Choice, Obstacle};

/// The report of `spindle doctor`.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) fit: bool,
    pub(super) fabrics: Vec<PeerFabric>,
    pub(super) findings: Vec<Finding>,
    pub(super) machine: Machine,
    pub(super) domain: Domain,
    pub(super) place: Place,
    pub(super) members: Members,
    pub(super) scale: Scale,
    pub(super) contacts: Vec<ContactCheck>,
}

/// The fabric to a kind of peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct PeerFabric {
    pub(super) peer: &'static str,
    pub(super) fabric: &'static str,
    pub(super) why: String,
}

/// The fabrics to peers that are like this machine. Each pair of participants decides by itself.
pub(super) fn fabrics(rdma: &Result<Choice, Obstacle>) -> Vec<PeerFabric> {
    let other = |fabric, why| PeerFabric {
        peer: "on another host",
        fabric,
        why,
    };
    let other = match rdma {
        Ok(choice) => other(
            "verbs",
            format!("{choice}, if the peer has RDMA too and a trial succeeds"),
        ),
        Err(obstacle) => other("tcp", obstacle.what.clone()),
    };
    let same = PeerFabric {
        peer: "on this host",
        fabric: "shm",
        why: "the same boot and directory".to_owned(),
    };
    vec![same, other]
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} port {} GID {}",
            self.device, self.port, self.gid_index
        )?;
        self.gid.map_or(Ok(()), |gid| write!(f, " ({gid})"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            let level = match finding.level {
                Level::Ok => "ok",
                Level::Warning => "warning",
                Level::Error => "ERROR",
            };
            writeln!(f, "{level:<7} {:<16} {}", finding.check, finding.what)?;
            if let Some(advice) = &finding.advice {
                writeln!(f, "{:<24} -> {advice}", "")?;
            }
        }
        writeln!(f)?;
        if !self.scale.is_known() {
            writeln!(
                f,
                "The number of peers and topics is assumed: give --peers and --topics.\n"
            )?;
        }
        for one in &self.fabrics {
            writeln!(f, "a peer {:<15} {:<6} {}", one.peer, one.fabric, one.why)?;
        }
        let verdict = match self.fit {
            true => "This machine is fit.",
            false => "This machine is not fit.",
        };
        writeln!(f, "\n{verdict}")
    }
}
