//! Segments: agreed sets of rows, and what each member has of them.

use std::collections::VecDeque;

use super::link::Spot;
use super::network::NodeId;
use super::options::PlantedBug;
use super::state::State;
use crate::fabric::{FabricCounters, PeerFailure};
use crate::mem::Region;
use crate::peers::Rank;

/// Who is meant: a member of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) segment: usize,
    pub(super) rank: usize,
}

/// How far a member is with a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It will open it: what is queued for it waits, and so does all behind.
    Agreed,
    Open,
    /// It has dropped it, or is dead: what comes for it is thrown away.
    Closed,
}

/// What one member has of a segment.
#[derive(Debug)]
pub(super) struct End {
    pub(super) phase: Phase,
    /// Fabrics given out.
    handles: usize,
    /// By rank: its own row, and its copies of the others'.
    pub(super) rows: Vec<Region>,
    /// Which words of its row it has ever stored as words; the rest is payload.
    pub(super) stored: Vec<bool>,
    /// To be polled; always empty but in a control segment.
    pub(super) failures: VecDeque<PeerFailure>,
    pub(super) counters: FabricCounters,
}

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) control: bool,
    /// By rank.
    pub(super) nodes: Vec<usize>,
    /// By rank.
    pub(super) ends: Vec<End>,
}

impl Segment {
    fn new(control: bool, rows: &[(NodeId, usize)]) -> Self {
        let end = |&(_, len): &(NodeId, usize)| End {
            phase: Phase::Agreed,
            handles: 0,
            rows: rows.iter().map(|&(_, len)| Region::heap(len)).collect(),
            stored: vec![false; Region::heap_len(len) / 8],
            failures: VecDeque::new(),
            counters: FabricCounters::default(),
        };
        Self {
            control,
            nodes: rows.iter().map(|(node, _)| node.0).collect(),
            ends: rows.iter().map(end).collect(),
        }
    }

    pub(super) fn rank_of(&self, node: usize) -> Option<usize> {
        self.nodes.iter().position(|&other| other == node)
    }

    /// What a member sends to another lands here.
    fn spots(&self, segment: usize) -> impl Iterator<Item = Spot> + use<> {
        let members = self.nodes.len();
        let pairs = (0..members).flat_map(move |row| (0..members).map(move |to| (row, to)));
        pairs
            .filter(|(row, reader)| row != reader)
            .map(move |(row, reader)| Spot {
                segment,
                row,
                reader,
            })
    }
}

impl State {
    /// Agrees on a segment.
    pub(super) fn open(&mut self, control: bool, rows: &[(NodeId, usize)]) -> usize {
        let at = self.segments.len();
        let segment = Segment::new(control, rows);
        for (rank, &node) in segment.nodes.iter().enumerate() {
            assert_eq!(segment.rank_of(node), Some(rank), "node {node} twice");
            assert!(node < self.nodes.len(), "no node {node}");
            self.note(&[8, at as u64, node as u64, rows[rank].1 as u64]);
        }
        for spot in segment.spots(at) {
            let (from, to) = (segment.nodes[spot.row], segment.nodes[spot.reader]);
            self.links[from][to].admit(spot);
        }
        self.segments.push(segment);
        for (rank, (node, _)) in rows.iter().enumerate() {
            if self.nodes[node.0].crashed {
                self.close(Seat { segment: at, rank });
            }
        }
        at
    }

    /// One more fabric for a member; with the first it opens the segment.
    pub(super) fn acquire(&mut self, seat: Seat) -> Vec<Region> {
        let end = self.end_mut(seat);
        assert_ne!(end.phase, Phase::Closed, "closed, or dead: {seat:?}");
        end.handles += 1;
        let rows = end.rows.clone();
        if core::mem::replace(&mut end.phase, Phase::Open) == Phase::Agreed {
            self.note(&[9, seat.segment as u64, seat.rank as u64]);
            self.tell_what_failed_before(seat);
        }
        rows
    }

    fn tell_what_failed_before(&mut self, seat: Seat) {
        let segment = &self.segments[seat.segment];
        if !segment.control || self.planted(PlantedBug::OldFailuresUntold) {
            return;
        }
        let node = segment.nodes[seat.rank];
        let told = self.nodes[node].failed.iter();
        let failures: Vec<_> = told
            .filter_map(|(peer, cause)| {
                let peer = Rank(segment.rank_of(*peer)? as u16);
                let cause = cause.clone();
                Some(PeerFailure { peer, cause })
            })
            .collect();
        if !failures.is_empty() {
            self.end_mut(seat).failures.extend(failures);
            self.wake(node);
        }
    }

    /// A fabric is gone; with the last the segment is closed.
    pub(super) fn release(&mut self, seat: Seat) {
        let end = self.end_mut(seat);
        end.handles -= 1;
        if end.handles == 0 {
            self.close(seat);
        }
    }

    pub(super) fn close(&mut self, seat: Seat) {
        let end = self.end_mut(seat);
        if core::mem::replace(&mut end.phase, Phase::Closed) == Phase::Closed {
            return;
        }
        self.note(&[10, seat.segment as u64, seat.rank as u64]);
        for row in 0..self.segments[seat.segment].nodes.len() {
            self.dismiss(seat, row);
        }
        self.free_unused(seat.segment);
    }

    /// Nothing more of a row is seen by this member.
    fn dismiss(&mut self, reader: Seat, row: usize) {
        let Seat { segment, rank } = reader;
        let nodes = &self.segments[segment].nodes;
        self.links[nodes[row]][nodes[rank]].dismiss(Spot {
            segment,
            row,
            reader: rank,
        });
    }

    pub(super) fn fence(&mut self, seat: Seat, peer: usize) {
        if peer == seat.rank {
            return;
        }
        let node = self.node_of(seat);
        self.nodes[node].has_fenced = true;
        if self.planted(PlantedBug::FenceLeaks) {
            return;
        }
        self.dismiss(seat, peer);
        if self.planted(PlantedBug::FenceTooWide) {
            let nodes = &self.segments[seat.segment].nodes;
            self.links[nodes[peer]][nodes[seat.rank]].close();
        }
    }

    /// The memory of a segment is freed once nobody has it any more: until
    /// then queued ranges may be fetched from the rows of those who dropped it.
    fn free_unused(&mut self, segment: usize) {
        let ends = &mut self.segments[segment].ends;
        if ends.iter().all(|end| end.phase == Phase::Closed) {
            for end in ends {
                end.rows = Vec::new();
                end.stored = Vec::new();
            }
        }
    }

    pub(super) fn end(&self, seat: Seat) -> &End {
        &self.segments[seat.segment].ends[seat.rank]
    }

    pub(super) fn end_mut(&mut self, seat: Seat) -> &mut End {
        &mut self.segments[seat.segment].ends[seat.rank]
    }

    pub(super) fn node_of(&self, seat: Seat) -> usize {
        self.segments[seat.segment].nodes[seat.rank]
    }

    /// The sender's own row.
    pub(super) fn source(&self, spot: Spot) -> &Region {
        &self.segments[spot.segment].ends[spot.row].rows[spot.row]
    }

    /// The reader's copy of it.
    pub(super) fn copy(&self, spot: Spot) -> &Region {
        &self.segments[spot.segment].ends[spot.reader].rows[spot.row]
    }
}
