//! The costs: from the paper where it states them, otherwise as measured here.
//!
//! If a constant is computed from numbers of a figure, the claim of that figure is not independent
//! of it, and the report says so. The cost of sending, the halves of a message's cost, and the cost
//! of a copy were chosen after trial runs: the cost of sending was first the 100 ns of our own
//! claim and commit, and is now computed from the paper's batches of §IV-A.3.

use crate::network::Costs;
use serde::Serialize;

/// A constant, and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Constant {
    /// The name of the cost.
    pub(crate) name: &'static str,
    /// The amount.
    pub(crate) value: u64,
    /// Its unit.
    pub(crate) unit: &'static str,
    /// Its source in the paper, or how it was measured.
    pub(crate) source: &'static str,
}

/// Posting a push to its first peer.
pub(crate) const POST_FIRST: Constant = Constant {
    name: "posting a work request",
    value: 1000,
    unit: "ns",
    source: "§III-A: \"posting an RDMA request to the NIC takes ~1 µs\"",
};

/// Posting the same push to one more peer.
pub(crate) const POST_NEXT: Constant = Constant {
    name: "posting the same to one more peer",
    value: 183,
    unit: "ns",
    source: "§IV-A.1, baseline, 16 senders: 64.84 s of posting for 18.2 M requests are 3.56 µs \
             each, for 15 peers (a request counts once: 16 M deliveries were acknowledged one \
             by one); the first takes 1 µs, the others share the rest",
};

/// Latency of the smallest write.
pub(crate) const LATENCY: Constant = Constant {
    name: "latency of a write of 1 byte",
    value: 1730,
    unit: "ns",
    source: "§III-A, figure 1: 1.73 µs",
};

/// Latency that each byte adds.
pub(crate) const SLOPE: Constant = Constant {
    name: "latency that each byte adds, up to 4 KB",
    value: 178,
    unit: "ps",
    source: "§III-A, figure 1: 2.46 µs for 4 KB; beyond that the link's rate",
};

/// Time of a byte on a link.
pub(crate) const WIRE: Constant = Constant {
    name: "a byte on a link, in each direction",
    value: 80,
    unit: "ps",
    source: "§IV: 12.5 GB/s (100 Gbps)",
};

/// Reading another member's row.
pub(crate) const LOOK: Constant = Constant {
    name: "reading another member's row",
    value: 99,
    unit: "ns",
    source: "§IV-A.3, 16 nodes, 10 subgroups: sends of 21.67 messages take at least 266 µs on the \
             link, and a tenth of the time goes to 9 inactive subgroups: 2.96 µs each, or 30 reads \
             of our engine",
};

/// The receive predicate, for a message.
pub(crate) const RECEIVE: Constant = Constant {
    name: "receiving a message, or a null",
    value: 315,
    unit: "ns",
    source: "figure 3, peak of batching alone: 8.03 GB/s are 1.275 µs per message of 10 KB, less \
             posting (4.29 s for 16 M messages), reads and the lock (once in 22.18 messages): \
             0.63 µs for receiving and delivering it; this is half of it",
};

/// The delivery predicate, for a message.
pub(crate) const DELIVER: Constant = Constant {
    name: "delivering a message",
    value: 315,
    unit: "ns",
    source: "the other half of the cost of receiving",
};

/// Handing the lock over.
pub(crate) const LOCK: Constant = Constant {
    name: "handing a contended lock over",
    value: 1460,
    unit: "ns",
    source: "§III-D, baseline: upcalls of 1 and 100 µs cost 9 and 90 %, so a message takes 10.2 \
             µs; less 30 % for posting (§III-A), reads and the message itself; for three \
             predicates",
};

/// Claiming and committing.
pub(crate) const SEND: Constant = Constant {
    name: "sending a message, for an application",
    value: 1340,
    unit: "ns",
    source: "§IV-A.3, 16 nodes: with 9 more inactive subgroups, a send has 21.67 messages instead \
             of 1.72; polling them takes 2.96 µs each, in which applications send",
};

/// A byte copied.
pub(crate) const COPY: Constant = Constant {
    name: "copying a byte of a message",
    value: 36,
    unit: "ps",
    source: "measured here, blocks of 10 KB from a ring of 16 MB: 367 ns at best (the paper's \
             figure 14 is an image)",
};

/// Keeping a message in memory, besides the copy.
pub(crate) const KEEP: Constant = Constant {
    name: "keeping a message in memory, besides the copy",
    value: 274,
    unit: "ns",
    source: "measured here on another machine than the copy, 10 KB into a history that keeps the \
             last message: 499 ns at best, of which the copy takes 225",
};

/// A write to a log.
pub(crate) const WRITE: Constant = Constant {
    name: "a write to the log",
    value: 6500,
    unit: "ns",
    source: "measured here, ext4, a file with its blocks allocated: 8.5 µs at best for one record, \
             less its bytes",
};

/// A byte written to a log.
pub(crate) const APPEND: Constant = Constant {
    name: "a byte of a write to the log",
    value: 190,
    unit: "ps",
    source: "measured here, the same: 131 µs at best for 64 records of 10,336 bytes, 8.5 µs for one",
};

/// A sync of a log.
pub(crate) const SYNC: Constant = Constant {
    name: "a sync of the log, besides its bytes",
    value: 26_000,
    unit: "ns",
    source: "13 µs for a write of an Intel P4500 (Lenovo's product guide), twice: the data, and the \
             file system's journal. Measured by others with disks that have power loss protection: \
             12 to 58 µs for 16 KB (smalldatum.blogspot.com, January 2026). The paper only says \
             that it is an SSD",
};

/// A byte on a disk.
pub(crate) const DISK: Constant = Constant {
    name: "a byte on the disk",
    value: 556,
    unit: "ps",
    source: "the same disk of 4 TB, sequential writes: 1.8 GB/s",
};

/// All constants.
pub(crate) const ALL: [Constant; 16] = [
    POST_FIRST, POST_NEXT, LATENCY, SLOPE, WIRE, LOOK, RECEIVE, DELIVER, LOCK, SEND, COPY, KEEP,
    WRITE, APPEND, SYNC, DISK,
];

/// The costs of the network.
pub(crate) const COSTS: Costs = Costs {
    post_first_ns: POST_FIRST.value,
    post_next_ns: POST_NEXT.value,
    look_ns: LOOK.value,
    latency_ns: LATENCY.value,
    slope_ps: SLOPE.value,
    slope_bytes: 4096,
    wire_ps: WIRE.value,
};

/// Time of copying a message.
pub(super) const fn copy_ns(bytes: u32) -> u64 {
    bytes as u64 * COPY.value / 1000
}

/// Time of keeping a message in memory.
pub(super) const fn keep_ns(bytes: u32) -> u64 {
    KEEP.value + copy_ns(bytes)
}

/// Time of writing a record to a log, besides that of the write itself.
pub(super) const fn append_ns(bytes: u32) -> u64 {
    bytes as u64 * APPEND.value / 1000
}
