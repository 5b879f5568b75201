//! The face of the simulator: a network that is stepped by hand.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fabric::SimFabric;
use super::options::SimOptions;
use super::segment::Seat;
use super::state::State;
use crate::peers::Rank;

/// A process of a network. Numbers are given out from 0, and never again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// A segment of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub(super) usize);

/// A network of nodes and of segments among them, in one process, on no time
/// but its own steps. Clones are the same network.
///
/// The harness owns the order of everything: it steps members and network in
/// turn, as its own generator says. The same seed, options and calls give the
/// same run; [`SimNetwork::trace_hash`] tells whether two runs were the same.
#[derive(Debug, Clone)]
pub struct SimNetwork(Arc<Mutex<State>>);

impl SimNetwork {
    /// A network of nodes 0 to `nodes`, and no segment yet.
    pub fn new(seed: u64, nodes: usize, options: SimOptions) -> Self {
        Self(Arc::new(Mutex::new(State::new(seed, nodes, options))))
    }

    /// A network with one control segment that all its nodes have opened, with
    /// rows of these lengths in bytes: node `n` has rank `n`, and fabric `n`.
    pub fn group(seed: u64, row_lens: &[usize], options: SimOptions) -> (Self, Vec<SimFabric>) {
        let network = Self::new(seed, row_lens.len(), options);
        let rows = row_lens.iter().enumerate();
        let rows: Vec<_> = rows.map(|(node, &len)| (NodeId(node), len)).collect();
        let segment = network.open_control(&rows);
        let ranks = (0..rows.len() as u16).map(Rank);
        let fabrics = ranks.map(|rank| network.fabric(segment, rank)).collect();
        (network, fabrics)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock is a failed assertion of the caller's: let it
        // be seen, not hidden behind a second one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more node. Of those who ended before it is told like everybody.
    pub fn add_node(&self) -> NodeId {
        NodeId(self.state().add_node())
    }

    /// Agrees on a segment: a zeroed row of a length in bytes for each of these
    /// nodes, which are its ranks in this order. Each node has it from its call
    /// of [`fabric`](Self::fabric) on; what others push to it before waits, and
    /// all that they push to it afterwards, in any segment, waits behind (shared
    /// memory is simply there).
    pub fn open(&self, rows: &[(NodeId, usize)]) -> SegmentId {
        SegmentId(self.state().open(false, rows))
    }

    /// The same, for a segment whose fabrics report failures: of each of its
    /// members that the node has lost, before or after it opened it, once.
    pub fn open_control(&self, rows: &[(NodeId, usize)]) -> SegmentId {
        SegmentId(self.state().open(true, rows))
    }

    /// A member's fabric: with the first, its node has opened the segment, with
    /// the last that is dropped, it has closed it. More than one are the same
    /// fabric. Panics if it has been closed, or the node has crashed.
    pub fn fabric(&self, segment: SegmentId, rank: Rank) -> SimFabric {
        let seat = Seat {
            segment: segment.0,
            rank: rank.index(),
        };
        let mut state = self.state();
        let mut rows = state.acquire(seat);
        for (of, row) in rows.iter_mut().enumerate() {
            if of != rank.index() {
                *row = row.read_only();
            }
        }
        SimFabric::new(self.clone(), state.node_of(seat), seat, rows)
    }

    /// The node will not open this segment, or not use it any more: what is on
    /// its way to it there is thrown away, its fabric stores and pushes nothing.
    /// What it has pushed before lands, if it was not held back for a ring. Does nothing for a node that is not in the segment.
    pub fn close(&self, segment: SegmentId, node: NodeId) {
        let mut state = self.state();
        if let Some(rank) = state.segments[segment.0].rank_of(node.0) {
            let segment = segment.0;
            state.close(Seat { segment, rank });
        }
    }

    /// Lands one pending piece, of a random pair: a word or some words of a
    /// push, a store that shows early, a doorbell, the news of a failure.
    /// False when nothing is pending.
    pub fn step(&self) -> bool {
        self.state().step()
    }

    /// How much is on its way; not counted are pairs that are held or wait for
    /// somebody to open a segment.
    pub fn pending(&self) -> usize {
        self.state().pending()
    }

    /// Lands everything, held links included: nothing stays on its way but what
    /// waits for somebody to open a segment.
    pub fn settle(&self) {
        self.state().settle();
    }

    /// Whether somebody rang this node (or its own threads, or a failure) since
    /// it announced sleep. Takes the ring.
    pub fn take_wakeup(&self, node: NodeId) -> bool {
        core::mem::take(&mut self.state().nodes[node.0].rung)
    }

    /// Whether it was rung, and has not [taken](Self::rung) that yet.
    pub fn is_woken(&self, node: NodeId) -> bool {
        self.state().nodes[node.0].rung
    }

    /// Whether its sleep epoch is odd.
    pub fn is_asleep(&self, node: NodeId) -> bool {
        self.state().is_asleep(node.0)
    }

    /// The node's process ends. What it had sent may land wholly, partly or not
    /// at all; nothing reaches it any more; each other node is told once, sooner
    /// or later. Its fabrics ignore calls from now on.
    pub fn crash(&self, node: NodeId) {
        self.state().crash(node.0);
    }

    /// The two lose each other, alive: what was on its way may land in part,
    /// nothing sent later does, and each is told once.
    pub fn sever(&self, a: NodeId, b: NodeId) {
        self.state().sever(a.0, b.0);
    }

    /// A word of a member's row reads otherwise at all others from now on, as soon as
    /// it lands; in order with what the member pushes, of which its own row is the
    /// truth still. Nothing happens if it has not the segment.
    pub fn forge(&self, segment: SegmentId, row: Rank, word: usize, value: u64) {
        let seat = Seat {
            segment: segment.0,
            rank: row.index(),
        };
        self.state().forge(seat, word, value);
    }

    /// Holds back what goes from one node to another, or lets it go on. (A
    /// doorbell or a fence in shared memory still brings the stores along.)
    pub fn hold(&self, from: NodeId, to: NodeId, held: bool) {
        self.state().link(from.0, to.0).held = held;
    }

    /// A hash over all that was stored, pushed, landed and rung so far.
    pub fn trace_hash(&self) -> u64 {
        self.state().trace
    }
}
