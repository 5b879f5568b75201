//! The outcome of a run that violates a property.

use std::fmt;

/// The id of a property that does not hold, and a description of what was observed.
pub type Finding = (&'static str, String);

/// A property that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The seed of the run.
    pub seed: u64,
    /// The property's id.
    pub property: &'static str,
    /// What was observed.
    pub what: String,
    /// The turn of the run at which it was observed.
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
