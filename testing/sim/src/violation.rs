//! What a run that goes wrong ends in.

use std::fmt;

/// A property that does not hold, by its id, and what was seen.
pub type Finding = (&'static str, String);

/// A property that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The run.
    pub seed: u64,
    /// The property's id.
    pub property: &'static str,
    /// What was seen.
    pub what: String,
    /// When.
    pub turn: usize,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            property,
            what,
            turn,
        } = self;
        write!(
            f,
            "seed {seed}: {property} does not hold at turn {turn}: {what}"
        )
    }
}

impl std::error::Error for Violation {}
