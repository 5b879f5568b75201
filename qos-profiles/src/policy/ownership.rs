//! Whether several writers may update one instance.

use serde::{Deserialize, Serialize};

use crate::label::labelled_enum;

labelled_enum! {
    /// Whether instances are shared among writers.
    pub enum OwnershipKind {
        /// Every writer's updates are seen.
        #[default]
        Shared = "SHARED_OWNERSHIP_QOS",
        /// Only those of the strongest living writer are.
        Exclusive = "EXCLUSIVE_OWNERSHIP_QOS",
    }
}

/// OWNERSHIP: whether several writers may update one instance (DDS 1.4 §2.2.3.9).
/// Default: they may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Ownership {
    /// Whether instances are shared.
    pub kind: OwnershipKind,
}

impl From<OwnershipKind> for Ownership {
    fn from(kind: OwnershipKind) -> Self {
        Self { kind }
    }
}

/// OWNERSHIP_STRENGTH: which writer owns an instance under EXCLUSIVE ownership
/// (DDS 1.4 §2.2.3.10). Default: 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct OwnershipStrength {
    /// The strength; the greatest wins.
    pub value: i32,
}
