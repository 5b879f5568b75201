//! What things cost. Times in nanoseconds, rates in picoseconds a byte.

use spindle_dds_transport::Rank;

/// Costs of a network: of its NICs and links, and of looking at what they wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Costs {
    /// Handing the NIC the work request of a push to its first peer.
    pub(crate) post_first_ns: u64,
    /// ... and to each further peer of the same push.
    pub(crate) post_next_ns: u64,
    /// Looking at the row of another member.
    pub(crate) look_ns: u64,
    /// From the NIC's taking up a write without bytes until it stands in the peer's memory.
    pub(crate) latency_ns: u64,
    /// What each byte adds to that, up to [`slope_bytes`](Self::slope_bytes) of them.
    pub(crate) slope_ps: u64,
    /// Bytes of a write behind which the link alone counts.
    pub(crate) slope_bytes: u64,
    /// A byte's time on a link, either way.
    pub(crate) wire_ps: u64,
}

impl Costs {
    /// How long a write of so many bytes takes that meets no other.
    pub(crate) fn latency(&self, bytes: u64) -> u64 {
        let steep = bytes.min(self.slope_bytes);
        self.latency_ns + (steep * self.slope_ps + (bytes - steep) * self.wire_ps) / 1000
    }

    /// How long it occupies a link.
    pub(crate) fn wire(&self, bytes: u64) -> u64 {
        (bytes * self.wire_ps).div_ceil(1000)
    }

    /// What it costs to hand the NIC the `nth` work request of a push, from 0.
    pub(crate) fn post(&self, nth: usize) -> u64 {
        if nth == 0 {
            self.post_first_ns
        } else {
            self.post_next_ns
        }
    }
}

/// What a push of a range counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charge {
    /// A write of so many bytes to each peer: as many as were pushed, or as those stand for.
    Write(u64),
    /// Part of the write before it: no work request, no bytes of its own.
    Rides,
}

/// Says what the owner of a row spends on what it does to it.
pub(crate) trait Measure: Send + Sync {
    /// What a push of `len` bytes from `at` on counts for.
    fn push(&self, owner: Rank, at: usize, len: usize) -> Charge;

    /// Time for the work that is done when a word has risen by so much, in nanoseconds.
    fn rise(&self, word: usize, by: u64) -> u64 {
        let _ = (word, by);
        0
    }
}

/// Stores cost nothing.
impl<F: Fn(Rank, usize, usize) -> Charge + Send + Sync> Measure for F {
    fn push(&self, owner: Rank, at: usize, len: usize) -> Charge {
        self(owner, at, len)
    }
}
