//! Crashes and cut links: how much of what was sent still lands.

use super::link::Piece;
use super::options::PlantedBug;
use super::state::State;
use crate::fabric::{Failure, FailureCause};
use crate::peers::Rank;

impl State {
    pub(super) fn crash(&mut self, rank: usize) {
        if core::mem::replace(&mut self.members[rank].crashed, true) {
            return;
        }
        self.note(6, rank, 0, 0);
        let newest = self.cut_of_stores(rank);
        for peer in self.others(rank) {
            self.cut(rank, peer, newest);
            self.link(peer, rank).close();
            if !self.members[peer].crashed {
                self.fail(peer, rank, FailureCause::ProcessEnded);
            }
        }
    }

    /// The last operation of a dying member that others may see through shared
    /// memory: the same for all of them, as there is one memory.
    fn cut_of_stores(&mut self, rank: usize) -> u64 {
        let shown = self.members[rank].newest_shown;
        let span = (self.operations - shown) as usize + 1;
        if self.rng.chance(0.5) {
            self.operations
        } else {
            shown + self.rng.below(span) as u64
        }
    }

    /// Of what is on its way, all, some or nothing will land.
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
            .map(|(_, piece)| core::mem::replace(piece, Piece::Ring));
        self.link(from, to).queue.truncate(keep);
        if let Some(Piece::Range(mut words)) = last {
            self.rng.shuffle(&mut words);
            words.truncate(self.rng.below(words.len() + 1));
            if !words.is_empty() {
                self.enqueue(from, to, Piece::Range(words));
            }
        }
    }

    /// The two lose each other, and are told some time later.
    pub(super) fn sever(&mut self, a: usize, b: usize) {
        self.note(7, a, b, 0);
        for (from, to) in [(a, b), (b, a)] {
            let newest = self.cut_of_stores(from);
            self.cut(from, to, newest);
            self.link(from, to).severed = true;
            self.fail(to, from, FailureCause::Unreachable("severed".into()));
        }
    }

    fn fail(&mut self, told: usize, peer: usize, cause: FailureCause) {
        let peer = Rank(peer as u16);
        self.failing.push((told, Failure { peer, cause }));
    }

    /// Somebody is told of a failure.
    pub(super) fn tell_failure(&mut self) {
        let at = self.rng.below(self.failing.len());
        let (told, failure) = self.failing.swap_remove(at);
        self.note(4, told, failure.peer.index(), 0);
        if self.planted(PlantedBug::FailureTwice) {
            self.members[told].failures.push_back(failure.clone());
        }
        self.members[told].failures.push_back(failure);
        self.wake(told);
    }
}
