//! Opening, closing and fencing segments.

use super::ids::NodeId;
use super::link::RowCopy;
use super::segment::{Endpoint, MemberRef, OpenPhase, Segment};
use super::state::State;
use crate::fabric::PeerFailure;
use crate::fabric::peers::Rank;
use crate::memory::Region;

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
        for target in segment.targets(at) {
            let (from, to) = (segment.nodes[target.row], segment.nodes[target.reader]);
            self.links[from][to].add_target(target);
        }
        self.segments.push(segment);
        for (rank, (node, _)) in rows.iter().enumerate() {
            if self.nodes[node.0].crashed {
                self.close(MemberRef { segment: at, rank });
            }
        }
        at
    }

    /// Adds a fabric for a member; the first one opens the segment.
    pub(super) fn acquire(&mut self, member: MemberRef) -> Vec<Region> {
        let end = self.endpoint_mut(member);
        assert_ne!(end.phase, OpenPhase::Closed, "closed, or dead: {member:?}");
        end.handles += 1;
        let rows = end.rows.clone();
        if core::mem::replace(&mut end.phase, OpenPhase::Open) == OpenPhase::Agreed {
            self.note(&[9, member.segment as u64, member.rank as u64]);
            self.tell_what_failed_before(member);
        }
        rows
    }

    fn tell_what_failed_before(&mut self, member: MemberRef) {
        let segment = &self.segments[member.segment];
        if !segment.control {
            return;
        }
        let node = segment.nodes[member.rank];
        let told = self.nodes[node].failed.iter();
        let failures: Vec<_> = told
            .filter_map(|(peer, cause)| {
                let peer = Rank(segment.rank_of(*peer)? as u16);
                let cause = cause.clone();
                Some(PeerFailure { peer, cause })
            })
            .collect();
        if !failures.is_empty() {
            self.endpoint_mut(member).failures.extend(failures);
            self.wake(node);
        }
    }

    /// A fabric is dropped; the last one closes the segment.
    pub(super) fn release(&mut self, member: MemberRef) {
        let end = self.endpoint_mut(member);
        end.handles -= 1;
        if end.handles == 0 {
            self.close(member);
        }
    }

    pub(super) fn close(&mut self, member: MemberRef) {
        let end = self.endpoint_mut(member);
        if core::mem::replace(&mut end.phase, OpenPhase::Closed) == OpenPhase::Closed {
            return;
        }
        self.note(&[10, member.segment as u64, member.rank as u64]);
        for row in 0..self.segments[member.segment].nodes.len() {
            self.remove_target(member, row);
        }
        self.free_unused(member.segment);
    }

    /// This member sees nothing more of a row.
    fn remove_target(&mut self, reader: MemberRef, row: usize) {
        let MemberRef { segment, rank } = reader;
        let nodes = &self.segments[segment].nodes;
        self.links[nodes[row]][nodes[rank]].remove_target(RowCopy {
            segment,
            row,
            reader: rank,
        });
    }

    pub(super) fn fence(&mut self, member: MemberRef, peer: usize) {
        if peer == member.rank {
            return;
        }
        self.remove_target(member, peer);
    }

    /// Frees the memory of a segment that all members have closed. Until then queued ranges
    /// may be fetched from the rows of members that have dropped it.
    fn free_unused(&mut self, segment: usize) {
        let endpoints = &mut self.segments[segment].endpoints;
        if endpoints.iter().all(|end| end.phase == OpenPhase::Closed) {
            for end in endpoints {
                end.rows = Vec::new();
                end.stored = Vec::new();
            }
        }
    }

    pub(super) fn endpoint(&self, member: MemberRef) -> &Endpoint {
        &self.segments[member.segment].endpoints[member.rank]
    }

    pub(super) fn endpoint_mut(&mut self, member: MemberRef) -> &mut Endpoint {
        &mut self.segments[member.segment].endpoints[member.rank]
    }

    pub(super) fn node_of(&self, member: MemberRef) -> usize {
        self.segments[member.segment].nodes[member.rank]
    }

    /// The sender's own row.
    pub(super) fn source(&self, target: RowCopy) -> &Region {
        &self.segments[target.segment].endpoints[target.row].rows[target.row]
    }

    /// The reader's copy of it.
    pub(super) fn copy(&self, target: RowCopy) -> &Region {
        &self.segments[target.segment].endpoints[target.reader].rows[target.row]
    }
}
