//! Options and counters of RDMA. The backend itself is `verbs`, which is built with the
//! feature of that name.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Which RDMA device a station uses, and how. What is `None` is chosen automatically.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RdmaOptions {
    /// Name of the device in the kernel (`mlx5_0`). Default: the first with an active port.
    pub device: Option<String>,
    /// Number of its port, from 1. Default: its first active one.
    pub port: Option<u8>,
    /// Index into the port's GID table. Default: a GID of RoCE v2 with the IPv4 address at
    /// which the station listens, else with any IPv4 address; else any of RoCE v2; else 0.
    pub gid_index: Option<u8>,
    /// Path MTU in bytes: 256, 512, 1024, 2048 or 4096. Default: the port's active one. Two
    /// stations use the smaller of both.
    pub mtu: Option<u32>,
}

/// Number of classes of [`RdmaCounters::chains`].
pub const CHAIN_CLASSES: usize = 16;

/// Number of classes of [`RdmaCounters::batches`].
pub const BATCH_CLASSES: usize = 6;

/// What was done for one peer by RDMA since it connected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RdmaCounters {
    /// Work requests posted.
    pub work_requests: u64,
    /// Bytes of rows that they wrote.
    pub bytes: u64,
    /// Completions taken; not every work request is signalled.
    pub completions: u64,
    /// Chains of work requests (each posted by one call), by length: 1, 2, ... 15, and more.
    pub chains: [u64; CHAIN_CLASSES],
    /// Batches, by number of work requests: 1, 2, ... 5, and more. A batch is a pushed word
    /// with the ranges that it vouches for: for a batch of messages, one or two of payload
    /// and one or two of headers before their guard. Pushes that no word vouches for
    /// (acknowledgements) count in [`chains`](Self::chains) only.
    pub batches: [u64; BATCH_CLASSES],
    /// Work requests that announced to the peer that this participant is about to sleep.
    pub sleep_words: u64,
    /// Doorbells sent to the peer, because it sleeps or may sleep.
    pub doorbells_sent: u64,
    /// Doorbells received from the peer.
    pub doorbells_heard: u64,
    /// Doorbells received from the peer that woke a thread.
    pub doorbells_slept_on: u64,
    /// Times that a push waited for room in the send queue.
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
