//! Named parts of a domain, and when two lists of names meet.

use serde::{Deserialize, Serialize};

use crate::fnmatch::{fnmatch, is_pattern};

/// PARTITION: the parts of the domain that a publisher or subscriber is in (DDS
/// 1.4 §2.2.3.13). Default: the empty list, which means the one partition named "".
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Partition {
    /// Names, or patterns as `fnmatch` has them.
    pub name: Vec<String>,
}

impl Partition {
    /// A partition list of the given names.
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self {
            name: names.into_iter().map(Into::into).collect(),
        }
    }

    /// Whether this is the default partition: no name, or only empty ones.
    pub fn is_default(&self) -> bool {
        self.name.iter().all(String::is_empty)
    }

    /// Whether a publisher and a subscriber with these lists are in a common
    /// partition: equal literal names, or a literal name of one and a pattern of
    /// the other that matches it; two patterns never meet.
    ///
    /// A miss is no QoS incompatibility: the endpoints just do not match.
    pub fn matches(&self, other: &Self) -> bool {
        let ours = self.names();
        let theirs = other.names();
        ours.iter()
            .any(|our| theirs.iter().any(|their| names_match(our, their)))
    }

    fn names(&self) -> Vec<&str> {
        if self.name.is_empty() {
            return vec![""];
        }
        self.name.iter().map(String::as_str).collect()
    }
}

fn names_match(ours: &str, theirs: &str) -> bool {
    match (is_pattern(ours), is_pattern(theirs)) {
        (false, false) => ours == theirs,
        (true, false) => fnmatch(ours, theirs),
        (false, true) => fnmatch(theirs, ours),
        (true, true) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ours: &[&str], theirs: &[&str], expected: bool) {
        let (ours, theirs) = (
            Partition::new(ours.iter().copied()),
            Partition::new(theirs.iter().copied()),
        );
        assert_eq!(ours.matches(&theirs), expected, "{ours:?} {theirs:?}");
        assert_eq!(theirs.matches(&ours), expected, "{theirs:?} {ours:?}");
    }

    #[test]
    fn lists_meet() {
        check(&[], &[], true);
        check(&[], &[""], true);
        check(&[], &["*"], true);
        check(&[], &["a"], false);
        check(&["a", "b"], &["c", "b"], true);
        check(&["a"], &["b"], false);
        check(&["fleet.*"], &["fleet.north"], true);
        check(&["fleet.?"], &["fleet.north"], false);
        check(&["fleet.*"], &["fleet.*"], false);
        check(&["fleet.*"], &["*.north"], false);
        check(&["fleet.*", "x"], &["*.north", "fleet.south"], true);
    }
}
