//! The checks of a QoS, one per file.

mod compatibility;
mod consistency;
mod mutability;
mod unsupported;

pub use compatibility::{Incompatibility, incompatible};
pub use consistency::Inconsistent;
pub use mutability::ImmutablePolicy;
pub use unsupported::UnsupportedPolicy;

use crate::location::Location;

/// The end of a message, with the position in a file if known.
fn in_file(location: &Option<Location>) -> String {
    location
        .as_ref()
        .map_or_else(String::new, |location| format!(" (set at {location})"))
}
