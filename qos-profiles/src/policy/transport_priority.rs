//! Priority of the transport underneath.

use serde::{Deserialize, Serialize};

/// TRANSPORT_PRIORITY: a hint for the transport (DDS 1.4 §2.2.3.15). Default: 0.
///
/// Other values are refused with UNSUPPORTED: no transport reads them yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct TransportPriority {
    /// The priority; the greater goes first.
    pub value: i32,
}
