//! Operations of members: stores and pushes, and what these put in flight.

use super::link::{InFlight, RowCopy};
use super::segment::{MemberRef, OpenPhase};
use super::state::State;
use crate::fabric::FABRIC_AREA;
use crate::fabric::peers::{PeerSet, Rank};

impl State {
    /// The node of the caller; `None` if it has dropped the segment, or has crashed.
    fn acting(&self, member: MemberRef) -> Option<usize> {
        (self.endpoint(member).phase == OpenPhase::Open).then(|| self.node_of(member))
    }

    /// The members of a set, as nodes, with the copies to which pushes go.
    fn peers(&self, me: MemberRef, to: &PeerSet) -> Vec<(usize, RowCopy)> {
        let nodes = &self.segments[me.segment].nodes;
        let ranks = to.iter().map(Rank::index).filter(|&peer| peer != me.rank);
        let peer = |reader| (nodes[reader], target(me, reader));
        ranks.map(peer).collect()
    }

    /// Stores to the own row; visible early to members that share the memory.
    pub(super) fn store(&mut self, me: MemberRef, at: usize, value: u64) {
        let Some(node) = self.acting(me) else { return };
        self.operations += 1;
        self.note(&[1, node as u64, me.segment as u64, at as u64, value]);
        let end = self.endpoint_mut(me);
        end.rows[me.rank].store(at, value);
        end.stored[at / 8] = true;
        for reader in 0..self.segments[me.segment].nodes.len() {
            let peer = self.segments[me.segment].nodes[reader];
            if reader != me.rank && self.link(node, peer).shared {
                self.enqueue(node, peer, word(target(me, reader), at, value));
            }
        }
    }

    /// Sends a word that is not in the own row to all others.
    pub(super) fn forge(&mut self, me: MemberRef, at: usize, value: u64) {
        let Some(node) = self.acting(me) else { return };
        self.check(me, at, 8);
        self.operations += 1;
        self.note(&[11, node as u64, me.segment as u64, at as u64, value]);
        for reader in 0..self.segments[me.segment].nodes.len() {
            let peer = self.segments[me.segment].nodes[reader];
            match reader == me.rank {
                true => {}
                false if self.link(node, peer).shared => {
                    self.enqueue(node, peer, word(target(me, reader), at, value));
                }
                false => self.post(node, peer, word(target(me, reader), at, value)),
            }
        }
    }

    pub(super) fn push(&mut self, me: MemberRef, at: usize, len: usize, to: &PeerSet) {
        let Some(node) = self.acting(me) else { return };
        self.check(me, at, len);
        if len == 0 {
            return;
        }
        self.operations += 1;
        self.note(&[2, node as u64, me.segment as u64, at as u64, len as u64]);
        for (peer, target) in self.peers(me, to) {
            let counters = &mut self.endpoint_mut(me).counters;
            counters.pushes += 1;
            counters.bytes_pushed += len as u64;
            if self.link(node, peer).shared {
                let (at, len) = (at as u32, len as u32);
                self.enqueue(node, peer, InFlight::Payload { target, at, len });
            } else {
                let words = (at..at + len).step_by(8).map(|at| (at as u32, None));
                let words = words.collect();
                self.post(node, peer, InFlight::Range { target, words });
                if self.rng.chance(self.options.early_fetch) {
                    self.fetch_queued(node, peer);
                }
            }
        }
    }

    /// Fetches queued ranges. The words of a range are fetched when they land, or at the call,
    /// and then with all that is queued before them: later pushes fetch nothing older.
    fn fetch_queued(&mut self, me: usize, peer: usize) {
        let link = &mut self.links[me][peer];
        for (_, piece) in link.queue.iter_mut().chain(&mut link.batch) {
            if let InFlight::Range { target, words } = piece {
                let row = &self.segments[target.segment].endpoints[target.row].rows[target.row];
                for (at, value) in words {
                    value.get_or_insert_with(|| row.load(*at as usize));
                }
            }
        }
    }

    pub(super) fn push_word(&mut self, me: MemberRef, at: usize, value: u64, to: &PeerSet) {
        let Some(node) = self.acting(me) else { return };
        self.check(me, at, 8);
        self.store(me, at, value);
        for (peer, target) in self.peers(me, to) {
            let counters = &mut self.endpoint_mut(me).counters;
            counters.word_pushes += 1;
            counters.bytes_pushed += 8;
            if !self.link(node, peer).shared {
                self.post(node, peer, word(target, at, value));
            }
        }
    }

    fn check(&self, me: MemberRef, at: usize, len: usize) {
        let inside = at >= FABRIC_AREA && self.endpoint(me).rows[me.rank].contains(at, len);
        assert!(
            inside && at.is_multiple_of(8) && len.is_multiple_of(8),
            "push of {len} bytes at {at}: unaligned, outside the row or in the fabric's area"
        );
    }
}

fn target(me: MemberRef, reader: usize) -> RowCopy {
    RowCopy {
        segment: me.segment,
        row: me.rank,
        reader,
    }
}

fn word(target: RowCopy, at: usize, value: u64) -> InFlight {
    let at = at as u32;
    InFlight::Word { target, at, value }
}
