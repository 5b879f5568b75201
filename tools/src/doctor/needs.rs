//! What participants need of the system, by the number of their peers and topics.
//!
//! The figures are upper bounds of what was counted, with all peers on this host and a topic in each
//! subgroup; `tools/tests/surroundings/domain.rs` counts again. While a view changes, a participant has the
//! segments of both views.

use serde::Serialize;

/// A domain's size, as it is or as it is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Scale {
    /// Other participants on this host, of each participant.
    pub(super) peers: u64,
    pub(super) topics: u64,
    /// Participants that run on this host.
    pub(super) running: u64,
    pub(super) from: ScaleFrom,
}

/// What a size is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ScaleFrom {
    /// It is the default of this command.
    Assumption,
    Options,
    /// The running domain, with one more participant.
    Domain,
}

/// Without a domain, and unless it is told otherwise.
const PEERS: u64 = 9;
const TOPICS: u64 = 10;

impl Scale {
    /// `running`: participants on this host, and their topics.
    pub(super) fn new(peers: Option<u64>, topics: Option<u64>, running: (u64, u64)) -> Self {
        let (running, topics_running) = running;
        let is_told = peers.is_some() || topics.is_some();
        let from = match (is_told, running) {
            (true, _) => ScaleFrom::Options,
            (false, 0) => ScaleFrom::Assumption,
            (false, _) => ScaleFrom::Domain,
        };
        let known = |running: u64, assumed: u64| if running > 0 { running } else { assumed };
        Self {
            peers: peers.unwrap_or_else(|| known(running, PEERS)),
            topics: topics.unwrap_or_else(|| known(topics_running, TOPICS)),
            running,
            from,
        }
    }

    /// Whether it is not only assumed.
    pub(super) fn is_known(self) -> bool {
        self.from != ScaleFrom::Assumption
    }

    /// Participants that are still to be started here; one at least.
    pub(super) fn missing(self) -> u64 {
        (self.peers + 1).saturating_sub(self.running).max(1)
    }

    /// Open files of a participant. A row keeps none once it is mapped.
    pub(super) fn open_files(self) -> u64 {
        FILES + self.peers * FILES_PEER
    }

    /// Threads of a participant.
    pub(super) fn threads(self) -> u64 {
        THREADS
    }

    /// Mappings of a participant.
    pub(super) fn mappings(self) -> u64 {
        MAPPINGS + (self.peers + 1) * (MAPPINGS_PEER + MAPPINGS_ROW * self.topics)
    }

    /// Memory of a participant's rows, if it writes all topics and each ring gets full.
    pub(super) fn row_bytes(self, ring_bytes: u64) -> u64 {
        CONTROL_BYTES + self.topics * (ring_bytes + ROW_BYTES)
    }

    /// Room of the domain's record, if each member has an address of this length.
    pub(super) fn record_bytes(self) -> u64 {
        // Two texts, each with a head and a line for each member and one newcomer, in whole pages.
        let text = RECORD_HEAD + (self.peers + 2) * RECORD_LINE;
        4096 + 2 * text.next_multiple_of(4096)
    }
}

/// Files of the application, too.
const FILES: u64 = 32;
const FILES_PEER: u64 = 6;
const THREADS: u64 = 8;
/// Mappings of the program and its libraries, too.
const MAPPINGS: u64 = 200;
const MAPPINGS_PEER: u64 = 4;
const MAPPINGS_ROW: u64 = 3;
const CONTROL_BYTES: u64 = 1 << 20;
const ROW_BYTES: u64 = 256 << 10;
const RECORD_HEAD: u64 = 512;
const RECORD_LINE: u64 = 384;
