//! How far the types of a writer and a reader may differ.

use serde::{Deserialize, Serialize};

use crate::label::labelled_enum;

labelled_enum! {
    /// Whether the types of writer and reader may differ at all.
    pub enum TypeConsistencyKind {
        /// They must be the same.
        DisallowTypeCoercion = "DISALLOW_TYPE_COERCION",
        /// The writer's must be assignable to the reader's.
        #[default]
        AllowTypeCoercion = "ALLOW_TYPE_COERCION",
    }
}

/// TYPE_CONSISTENCY_ENFORCEMENT: how far the types of a writer and a reader may
/// differ (XTypes 1.3 §7.6.3.7). Default: as far as the writer's is assignable to
/// the reader's, bounds ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct TypeConsistencyEnforcement {
    /// Whether they may differ at all.
    pub kind: TypeConsistencyKind,
    /// Whether bounds of sequences are left out of the comparison.
    pub ignore_sequence_bounds: bool,
    /// Whether bounds of strings are left out of the comparison.
    pub ignore_string_bounds: bool,
    /// Whether names of members are left out of the comparison.
    pub ignore_member_names: bool,
    /// Whether the reader's type may have no member that the writer's lacks.
    pub prevent_type_widening: bool,
    /// Whether endpoints without type information are refused.
    pub force_type_validation: bool,
}

impl Default for TypeConsistencyEnforcement {
    fn default() -> Self {
        Self {
            kind: TypeConsistencyKind::AllowTypeCoercion,
            ignore_sequence_bounds: true,
            ignore_string_bounds: true,
            ignore_member_names: false,
            prevent_type_widening: false,
            force_type_validation: false,
        }
    }
}
