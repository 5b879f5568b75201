//! Crashes and severed pairs: how much of what was sent still lands.

use super::link::InFlight;
use super::segment::{MemberRef, OpenPhase};
use super::state::{PendingFailure, State};
use crate::fabric::peers::Rank;
use crate::fabric::{FailureCause, PeerFailure};

impl State {
    pub(super) fn crash(&mut self, node: usize) {
        if core::mem::replace(&mut self.nodes[node].crashed, true) {
            return;
        }
        self.note(&[6, node as u64]);
        let newest = self.cut_of_stores(node);
        for peer in self.others(node) {
            self.cut(node, peer, newest);
            self.link(node, peer).severed = true;
            self.link(peer, node).close();
            if !self.nodes[peer].crashed {
                self.fail(peer, node, FailureCause::ProcessEnded);
            }
        }
        for segment in 0..self.segments.len() {
            if let Some(rank) = self.segments[segment].rank_of(node) {
                self.close(MemberRef { segment, rank });
            }
        }
    }

    /// The last operation of a crashed node that others may see through shared memory. It is
    /// the same for all of them, because there is one memory.
    fn cut_of_stores(&mut self, node: usize) -> u64 {
        let shown = self.nodes[node].newest_shown;
        let span = (self.operations - shown) as usize + 1;
        if self.rng.chance(0.5) {
            self.operations
        } else {
            shown + self.rng.below(span) as u64
        }
    }

    /// Of what is in flight, everything, a part or nothing will land.
    fn cut(&mut self, from: usize, to: usize, newest: u64) {
        self.link(from, to).batch.clear();
        if self.link(from, to).shared {
            self.link(from, to)
                .queue
                .retain(|&(operation, _)| operation <= newest);
            return;
        }
        let len = self.link(from, to).queue.len();
        let keep = match self.rng.below(3) {
            0 => 0,
            1 => len,
            _ => self.rng.below(len + 1),
        };
        let last = self
            .link(from, to)
            .queue
            .get_mut(keep)
            .map(|(_, piece)| core::mem::replace(piece, InFlight::Doorbell));
        self.link(from, to).queue.truncate(keep);
        if let Some(InFlight::Range { target, mut words }) = last {
            self.rng.shuffle(&mut words);
            words.truncate(self.rng.below(words.len() + 1));
            if !words.is_empty() {
                self.enqueue(from, to, InFlight::Range { target, words });
            }
        }
    }

    /// The two nodes lose each other; each is told some time later.
    pub(super) fn sever(&mut self, a: usize, b: usize) {
        self.note(&[7, a as u64, b as u64]);
        for (from, to) in [(a, b), (b, a)] {
            let newest = self.cut_of_stores(from);
            self.cut(from, to, newest);
            self.link(from, to).severed = true;
            self.fail(to, from, FailureCause::Unreachable("severed".into()));
        }
    }

    pub(super) fn fail(&mut self, told: usize, failed: usize, cause: FailureCause) {
        self.failing.push(PendingFailure {
            told,
            failed,
            cause,
        });
    }

    /// Tells a node of a failure, if it was not told of that peer before: in all its control
    /// segments now, and in later ones when it opens them.
    pub(super) fn tell_failure(&mut self) {
        let at = self.rng.below(self.failing.len());
        let PendingFailure {
            told,
            failed,
            cause,
        } = self.failing.swap_remove(at);
        let mut known = self.nodes[told].failed.iter();
        if known.any(|(peer, _)| *peer == failed) {
            return;
        }
        self.note(&[4, told as u64, failed as u64]);
        self.nodes[told].failed.push((failed, cause.clone()));
        for segment in 0..self.segments.len() {
            let ranks = &self.segments[segment];
            let (Some(rank), Some(peer)) = (ranks.rank_of(told), ranks.rank_of(failed)) else {
                continue;
            };
            let member = MemberRef { segment, rank };
            let told_here = ranks.control && self.endpoint(member).phase == OpenPhase::Open;
            let failure = PeerFailure {
                peer: Rank(peer as u16),
                cause: cause.clone(),
            };
            if told_here {
                self.endpoint_mut(member).failures.push_back(failure);
            }
        }
        self.wake(told);
    }
}
