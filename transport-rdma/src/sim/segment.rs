//! Segments: sets of rows, and each member's state of them.

use std::collections::VecDeque;

use super::ids::NodeId;
use super::link::RowCopy;
use crate::fabric::{FabricCounters, PeerFailure};
use crate::memory::Region;

/// A member of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemberRef {
    pub(super) segment: usize,
    pub(super) rank: usize,
}

/// A member's progress with a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenPhase {
    /// Not opened yet: what is queued for it waits, and so does all behind.
    Agreed,
    Open,
    /// Dropped, or its node has crashed: what arrives for it is discarded.
    Closed,
}

/// One member's state of a segment.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) phase: OpenPhase,
    /// Number of its fabrics.
    pub(super) handles: usize,
    /// By rank: its own row, and its copies of the others.
    pub(super) rows: Vec<Region>,
    /// Words of its own row that were ever stored as words; the rest is payload.
    pub(super) stored: Vec<bool>,
    /// Failures to be polled; always empty except in a control segment.
    pub(super) failures: VecDeque<PeerFailure>,
    pub(super) counters: FabricCounters,
}

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) control: bool,
    /// By rank.
    pub(super) nodes: Vec<usize>,
    /// By rank.
    pub(super) endpoints: Vec<Endpoint>,
}

impl Segment {
    pub(super) fn new(control: bool, rows: &[(NodeId, usize)]) -> Self {
        let end = |&(_, len): &(NodeId, usize)| Endpoint {
            phase: OpenPhase::Agreed,
            handles: 0,
            rows: rows.iter().map(|&(_, len)| Region::heap(len)).collect(),
            stored: vec![false; Region::heap_len(len) / 8],
            failures: VecDeque::new(),
            counters: FabricCounters::default(),
        };
        Self {
            control,
            nodes: rows.iter().map(|(node, _)| node.0).collect(),
            endpoints: rows.iter().map(end).collect(),
        }
    }

    pub(super) fn rank_of(&self, node: usize) -> Option<usize> {
        self.nodes.iter().position(|&other| other == node)
    }

    /// All copies of rows at other members.
    pub(super) fn targets(&self, segment: usize) -> impl Iterator<Item = RowCopy> + use<> {
        let members = self.nodes.len();
        let pairs = (0..members).flat_map(move |row| (0..members).map(move |to| (row, to)));
        pairs
            .filter(|(row, reader)| row != reader)
            .map(move |(row, reader)| RowCopy {
                segment,
                row,
                reader,
            })
    }
}
