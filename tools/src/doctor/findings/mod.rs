//! Findings, computed from the facts alone.
//!
//! Each check has a name that stays the same from version to version: programs may rely on it.

mod capacity;
mod directory;
mod machine;
mod members;
mod network;

use std::collections::BTreeMap;

use serde::Serialize;

use super::contacts::ContactCheck;
use super::domain::Domain;
use super::machine::Machine;
use super::members::Members;
use super::needs::Scale;
use super::options::Requirement;
use super::place::Place;
use super::rdma::{Choice, Obstacle};

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Ok,
    /// It works, and may cease to, or can be improved.
    Warning,
    /// Spindle does not work, or a requirement is not met.
    Error,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// Name of the check.
    pub(super) check: &'static str,
    pub(super) level: Level,
    pub(super) what: String,
    /// The figures that were compared, by name; `None` is unlimited or unknown.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) figures: BTreeMap<&'static str, Option<u64>>,
    /// What to do, if anything.
    pub(super) advice: Option<String>,
}

/// All facts.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) machine: &'a Machine,
    pub(super) rdma: &'a Result<Choice, Obstacle>,
    /// Result of opening a station on trial.
    pub(super) trial: &'a Result<(), String>,
    pub(super) domain: &'a Domain,
    pub(super) place: &'a Place,
    pub(super) members: &'a Members,
    pub(super) scale: Scale,
    pub(super) contacts: &'a Result<Vec<ContactCheck>, String>,
    pub(super) require: &'a [Requirement],
}

impl Found<'_> {
    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut findings = vec![
            self.kernel(),
            self.trial(),
            self.cores(),
            self.memory(),
            self.huge_pages(),
            self.open_files(),
        ];
        findings.extend(self.threads());
        findings.extend([self.mappings(), self.pinned_memory(), self.clock()]);
        findings.extend(self.shm());
        findings.extend(self.devices());
        findings.push(self.rdma());
        findings.extend([self.directory(), self.directory_space()]);
        findings.extend(self.directory_place());
        findings.extend(self.second_directory());
        findings.push(self.domain());
        findings.extend(self.namespaces());
        findings.extend(self.member_limits());
        findings.extend(self.contacts());
        findings
    }
}

fn ok(check: &'static str, what: String) -> Finding {
    Finding {
        check,
        level: Level::Ok,
        what,
        figures: BTreeMap::new(),
        advice: None,
    }
}

fn warning(check: &'static str, what: String, advice: &str) -> Finding {
    Finding {
        level: Level::Warning,
        advice: Some(advice.to_owned()),
        ..ok(check, what)
    }
}

fn error(check: &'static str, what: String, advice: &str) -> Finding {
    Finding {
        level: Level::Error,
        ..warning(check, what, advice)
    }
}

impl Finding {
    /// The same with the figures that were compared.
    fn with<const N: usize>(self, figures: [(&'static str, Option<u64>); N]) -> Self {
        Self {
            figures: figures.into(),
            ..self
        }
    }
}

fn mebibytes(bytes: u64) -> String {
    match bytes {
        bytes if bytes < 1 << 20 => format!("{} KiB", bytes >> 10),
        bytes => format!("{} MiB", bytes >> 20),
    }
}

/// A number, or that there is no limit.
fn number(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), |it| it.to_string())
}
