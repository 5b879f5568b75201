//! Costs of the network. Times in nanoseconds, rates in picoseconds per byte.

use spindle_dds_transport::Rank;

/// Costs of a network: of its NICs and links, and of reading rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Costs {
    /// Posting the work request of a push to its first peer.
    pub(crate) post_first_ns: u64,
    /// Posting it to each further peer of the same push.
    pub(crate) post_next_ns: u64,
    /// Reading the row of another member.
    pub(crate) look_ns: u64,
    /// Latency of a write of no bytes, from the NIC's start until it is in the peer's memory.
    pub(crate) latency_ns: u64,
    /// Latency that each byte adds, up to [`slope_bytes`](Self::slope_bytes) of them.
    pub(crate) slope_ps: u64,
    /// Bytes of a write beyond which only the link's rate counts.
    pub(crate) slope_bytes: u64,
    /// Time of a byte on a link, in each direction.
    pub(crate) wire_ps: u64,
}

impl Costs {
    /// Latency of a write without other traffic.
    pub(crate) fn latency(&self, bytes: u64) -> u64 {
        let steep = bytes.min(self.slope_bytes);
        self.latency_ns + (steep * self.slope_ps + (bytes - steep) * self.wire_ps) / 1000
    }

    /// Time for which a write occupies a link.
    pub(crate) fn wire(&self, bytes: u64) -> u64 {
        (bytes * self.wire_ps).div_ceil(1000)
    }

    /// Time of posting the `nth` work request of a push, from 0.
    pub(crate) fn post(&self, nth: usize) -> u64 {
        if nth == 0 {
            self.post_first_ns
        } else {
            self.post_next_ns
        }
    }
}

/// The charge for a push of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charge {
    /// A write of this many bytes to each peer: the pushed bytes, or those that they represent.
    Write(u64),
    /// Part of the previous write: no work request, and no additional bytes.
    Rides,
}

/// The charges for the owner's operations on a row.
pub(crate) trait Measure: Send + Sync {
    /// The charge for a push of `len` bytes at `at`.
    fn push(&self, owner: Rank, at: usize, len: usize) -> Charge;

    /// Time in nanoseconds of the work that raising a word by `by` stands for.
    fn rise(&self, word: usize, by: u64) -> u64 {
        let _ = (word, by);
        0
    }
}

/// A closure charges for pushes; stores are free.
impl<F: Fn(Rank, usize, usize) -> Charge + Send + Sync> Measure for F {
    fn push(&self, owner: Rank, at: usize, len: usize) -> Charge {
        self(owner, at, len)
    }
}
