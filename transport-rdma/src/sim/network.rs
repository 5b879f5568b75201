//! The interface of the simulator: a network that is stepped by hand.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ids::{NodeId, SegmentId};
use super::options::SimOptions;
use super::segment::MemberRef;
use super::state::State;
use crate::fabric::peers::Rank;

/// A network of nodes, and of segments among them, in one process. Its only time is its steps.
/// Clones are the same network.
///
/// The test harness decides the order of everything: it steps members and network in turn,
/// by its own generator. The same seed, options and calls give the same run;
/// [`SimNetwork::trace_hash`] tells whether two runs were the same.
#[derive(Debug, Clone)]
pub struct SimNetwork(Arc<Mutex<State>>);

impl SimNetwork {
    /// A network of `nodes` nodes, without segments.
    pub fn new(seed: u64, nodes: usize, options: SimOptions) -> Self {
        Self(Arc::new(Mutex::new(State::new(seed, nodes, options))))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock is a failed assertion of the caller's; a second one must not
        // hide it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a node. It is told of nodes that have crashed before.
    pub fn add_node(&self) -> NodeId {
        NodeId(self.state().add_node())
    }

    /// Agrees on a segment: a zeroed row of a length in bytes for each of these nodes, which
    /// have ranks in this order. A node opens it by its call of [`fabric`](Self::fabric).
    /// Pushes to the node in this segment wait for that, and all later pushes of the same
    /// pair in any segment wait behind (shared memory exists at once).
    pub fn open(&self, rows: &[(NodeId, usize)]) -> SegmentId {
        SegmentId(self.state().open(false, rows))
    }

    /// Like [`open`](Self::open), for a control segment: its fabrics report each member that
    /// their node has lost, before or after it opened the segment, once.
    pub fn open_control(&self, rows: &[(NodeId, usize)]) -> SegmentId {
        SegmentId(self.state().open(true, rows))
    }

    /// The node will not open this segment, or not use it any more: what is in flight to it
    /// there is discarded; its fabric stores and pushes nothing. What it has pushed before
    /// lands, unless it was held back. No effect on a node that is not a member.
    pub fn close(&self, segment: SegmentId, node: NodeId) {
        let mut state = self.state();
        if let Some(rank) = state.segments[segment.0].rank_of(node.0) {
            let segment = segment.0;
            state.close(MemberRef { segment, rank });
        }
    }

    /// Lands one element of a random pair: a word or some words of a push, a store that
    /// becomes visible early, a doorbell, or the report of a failure. False if nothing is
    /// pending.
    pub fn step(&self) -> bool {
        self.state().step()
    }

    /// Number of elements in flight, without pairs that are held or wait for a segment to be
    /// opened.
    pub fn pending(&self) -> usize {
        self.state().pending()
    }

    /// Lands everything, on held pairs, too, except what waits for a segment to be opened.
    pub fn settle(&self) {
        self.state().settle();
    }

    /// Whether this node was woken (by a peer, its own threads, or a failure) since it
    /// announced sleep. Resets it.
    pub fn take_wakeup(&self, node: NodeId) -> bool {
        core::mem::take(&mut self.state().nodes[node.0].is_woken)
    }

    /// Whether it was woken, without [resetting](Self::take_wakeup) that.
    pub fn is_woken(&self, node: NodeId) -> bool {
        self.state().nodes[node.0].is_woken
    }

    /// Whether its sleep epoch is odd.
    pub fn is_asleep(&self, node: NodeId) -> bool {
        self.state().is_asleep(node.0)
    }

    /// The node's process ends. What it had sent lands wholly, partly or not at all; nothing
    /// reaches it any more; each other node is told once, sooner or later. Its fabrics ignore
    /// calls from now on.
    pub fn crash(&self, node: NodeId) {
        self.state().crash(node.0);
    }

    /// The two nodes, both alive, lose each other: what was in flight may land in part,
    /// nothing sent later does, and each is told once.
    pub fn sever(&self, a: NodeId, b: NodeId) {
        self.state().sever(a.0, b.0);
    }

    /// Forges a word of a member's row: all others read this value once it has landed, in
    /// order with what the member pushes; the row itself is unchanged. No effect if the
    /// member has not opened the segment.
    pub fn forge(&self, segment: SegmentId, row: Rank, word: usize, value: u64) {
        let member = MemberRef {
            segment: segment.0,
            rank: row.index(),
        };
        self.state().forge(member, word, value);
    }

    /// Holds back what is sent from one node to another, or releases it. (A doorbell or a
    /// fence in shared memory still brings the stores along.)
    pub fn hold(&self, from: NodeId, to: NodeId, held: bool) {
        self.state().link(from.0, to.0).held = held;
    }

    /// A hash over all stores, pushes, landings and wake-ups so far.
    pub fn trace_hash(&self) -> u64 {
        self.state().trace
    }
}
