//! RDMA as a station is asked for it, and what it counts; the backend itself is
//! `verbs`, which is built with the feature of that name.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Which RDMA device a station uses, and how. What is not said is chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RdmaOptions {
    /// Name of the device, as the kernel has it (`mlx5_0`). Else: the first that has an
    /// active port.
    pub device: Option<String>,
    /// Number of its port, from 1. Else: its first active one.
    pub port: Option<u8>,
    /// Index into the port's table of GIDs. Else: that of RoCE v2 with an IPv4 address,
    /// if possible with the one that the station listens at; else of RoCE v2; else 0.
    pub gid_index: Option<u8>,
    /// Path MTU in bytes: 256, 512, 1024, 2048 or 4096. Else: the port's active one.
    /// Between two stations the smaller one holds.
    pub mtu: Option<u32>,
}

/// Classes of [`RdmaCounters::chains`].
pub const CHAIN_CLASSES: usize = 16;

/// Classes of [`RdmaCounters::batches`].
pub const BATCH_CLASSES: usize = 6;

/// What has been done for one peer by RDMA since it was connected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RdmaCounters {
    /// Work requests posted.
    pub work_requests: u64,
    /// Bytes of rows that they carried.
    pub bytes: u64,
    /// Completions taken of those that were signalled.
    pub completions: u64,
    /// Chains of work requests, each posted by one call: of 1, 2, ... 15 work requests,
    /// and of more.
    pub chains: [u64; CHAIN_CLASSES],
    /// Batches by their work requests: of 1, 2, ... 5, and of more. A batch is a word
    /// that was pushed and the ranges that it vouches for: those of a batch of messages
    /// are one or two of payload and one or two of headers, before their guard. What
    /// vouches for nothing (acknowledgements) counts in [`chains`](Self::chains) only.
    pub batches: [u64; BATCH_CLASSES],
    /// Work requests that told the peer that this participant is about to sleep.
    pub sleep_words: u64,
    /// Doorbells sent to the peer, because it sleeps or may.
    pub doorbells_sent: u64,
    /// Doorbells of the peer that came here.
    pub doorbells_heard: u64,
    /// Doorbells of the peer that woke somebody here.
    pub doorbells_slept_on: u64,
    /// Times that a push had to wait for room in the send queue.
    pub slot_waits: u64,
}

impl fmt::Display for RdmaCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chains: u64 = self.chains.iter().sum();
        write!(
            f,
            "{} work requests in {chains} chains, {} bytes, {} completions, {} doorbells sent, \
             {} slept on, {} waits for room",
            self.work_requests,
            self.bytes,
            self.completions,
            self.doorbells_sent,
            self.doorbells_slept_on,
            self.slot_waits,
        )
    }
}
