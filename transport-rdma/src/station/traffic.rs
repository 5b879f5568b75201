//! What a station has sent.

use serde::{Deserialize, Serialize};

/// Packets that a station has sent to others of its host: messages, in parts, and rows of segments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StationTraffic {
    /// Number of packets.
    pub packets: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Rows of segments in these.
    pub rows: u64,
}
