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
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The places in XML files where the policies of one entity QoS were last set.
///
/// Each entity QoS contains it so that an error can name the line. It is not part of
/// the value: QoS with different origins are equal, and it is not serialized.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    set: BTreeMap<PolicyId, Location>,
    refused: Vec<UnsupportedPolicy>,
}

impl Origins {
    /// Where `policy` was set, or `None` when it was not set by a file.
    pub fn get(&self, policy: PolicyId) -> Option<&Location> {
        self.set.get(&policy)
    }

    /// Notes that `policy` was set at `location`.
    pub fn record(&mut self, policy: PolicyId, location: Location) {
        self.set.insert(policy, location);
    }

    /// Forgets where `policy` was set, for instance because code changed it since.
    pub fn forget(&mut self, policy: PolicyId) {
        self.set.remove(&policy);
        self.refused.retain(|request| request.policy != policy);
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
            match other.get(policy) {
                Some(location) => self.record(policy, location.clone()),
                None => self.forget(policy),
            }
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
