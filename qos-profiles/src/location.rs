//! Positions in files, and the policies that were set there.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::policy_id::PolicyId;
use crate::rules::UnsupportedPolicy;

/// A place in an XML file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Location {
    /// The file's name as it was given to the reader.
    #[serde(serialize_with = "shared_text")]
    pub file: Arc<str>,
    /// The line, from 1; 0 for a built-in profile, which `file` then names.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}:{}", self.file, self.column),
        }
    }
}

/// The places in XML files where the policies of one entity QoS were last set.
///
/// Each entity QoS contains it so that an error can name the line. It is not part of
/// the value: QoS with different origins are equal, and it is not serialized.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    set: BTreeMap<PolicyId, Location>,
    /// By policy and member; of properties, by their names.
    values: BTreeMap<(PolicyId, String), Location>,
    refused: Vec<UnsupportedPolicy>,
}

impl Origins {
    /// Where `policy` was set, or `None` when it was not set by a file.
    pub fn get(&self, policy: PolicyId) -> Option<&Location> {
        self.set.get(&policy)
    }

    /// Where `member` of `policy` was set, or `None` when it was not set by a file. The member of
    /// a property is its name.
    pub fn of_value(&self, policy: PolicyId, member: &str) -> Option<&Location> {
        self.values.get(&(policy, member.to_owned()))
    }

    /// Notes that `policy` was set at `location`.
    pub fn record(&mut self, policy: PolicyId, location: Location) {
        self.set.insert(policy, location);
    }

    /// Notes that `member` of `policy` was set at `location`.
    pub(crate) fn record_value(&mut self, policy: PolicyId, member: &str, location: Location) {
        self.values.insert((policy, member.to_owned()), location);
    }

    /// Forgets where `policy` was set, for instance because code changed it since.
    pub fn forget(&mut self, policy: PolicyId) {
        self.set.remove(&policy);
        self.values.retain(|(of, _), _| *of != policy);
        self.refused.retain(|request| request.policy != policy);
    }

    /// Forgets where a property was set, for instance because code changed it since.
    pub fn forget_property(&mut self, name: &str) {
        self.values.remove(&(PolicyId::Property, name.to_owned()));
    }

    /// Notes a request for which the QoS structures have no member.
    pub(crate) fn refuse(&mut self, request: UnsupportedPolicy) {
        self.refused.retain(|known| known.policy != request.policy);
        self.refused.push(request);
    }

    /// The requests for which the QoS structures have no member.
    pub(crate) fn refused(&self) -> &[UnsupportedPolicy] {
        &self.refused
    }

    /// Copies the origins of `policies` from `other`.
    pub(crate) fn copy(&mut self, other: &Self, policies: &[PolicyId]) {
        for &policy in policies {
            self.forget(policy);
            if let Some(location) = other.get(policy) {
                self.record(policy, location.clone());
            }
            let values = other.values.iter().filter(|((of, _), _)| *of == policy);
            self.values
                .extend(values.map(|(key, location)| (key.clone(), location.clone())));
        }
    }
}

/// Always equal: the origin of a policy is not part of its value.
impl PartialEq for Origins {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Origins {}

fn shared_text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}
