//! A segment inside another one: a window of the rows of some of its members.

use core::time::Duration;
use std::sync::Arc;

use crate::fabric::{Fabric, FabricCounters, Failure, Park, Want};
use crate::mem::Region;
use crate::peers::{PeerSet, Rank};

/// A [`Fabric`] over a part of each row of another fabric, and over some of its
/// members, which have ranks of their own here. For groups whose segments all
/// live and die together: they need one fabric only.
///
/// All parts of a fabric are one process: they share its sleep, and a peer that
/// is fenced in one of them is fenced in all. Failures are reported by whichever
/// is polled, so one alone is to be polled, and it has to have all members.
#[derive(Debug)]
pub struct Part<F> {
    whole: Arc<F>,
    me: Rank,
    /// By rank here: the rank in the whole.
    ranks: Vec<Rank>,
    /// Whether these are the same.
    same: bool,
    /// By rank here.
    rows: Vec<Region>,
    /// Where my window begins in my row.
    start: usize,
}

/// Where a member's row of a part lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Whose row: the rank in the whole.
    pub of: Rank,
    /// Where it begins there, a multiple of [`ROW_ALIGN`](crate::mem::ROW_ALIGN).
    pub at: usize,
    /// Bytes, a multiple of 8.
    pub len: usize,
}

impl<F: Fabric> Part<F> {
    /// The part with these windows, by rank. `None` when a window lies outside
    /// of its row, or none is mine. Each row of a part begins with an area for
    /// the fabric, as all rows do.
    pub fn new(whole: Arc<F>, windows: &[Window]) -> Option<Self> {
        let me = windows.iter().position(|window| window.of == whole.me())?;
        let row = |window: &Window| whole.row(window.of).window(window.at, window.len);
        Some(Self {
            me: Rank(me as u16),
            ranks: windows.iter().map(|window| window.of).collect(),
            same: (0..)
                .zip(windows)
                .all(|(rank, window)| window.of == Rank(rank)),
            rows: windows.iter().map(row).collect::<Option<_>>()?,
            start: windows[me].at,
            whole,
        })
    }

    /// The fabric that it is a part of.
    pub fn whole(&self) -> &Arc<F> {
        &self.whole
    }

    /// The same members by their ranks in the whole.
    fn outside(&self, peers: &PeerSet) -> PeerSet {
        if self.same {
            return *peers;
        }
        peers.iter().map(|rank| self.ranks[rank.index()]).collect()
    }
}

impl<F: Fabric> Fabric for Part<F> {
    fn me(&self) -> Rank {
        self.me
    }

    fn members(&self) -> usize {
        self.rows.len()
    }

    fn row(&self, of: Rank) -> &Region {
        &self.rows[of.index()]
    }

    fn store(&self, word: usize, value: u64) {
        self.whole.store(self.start + word, value);
    }

    fn push(&self, at: usize, len: usize, to: &PeerSet) {
        self.whole.push(self.start + at, len, &self.outside(to));
    }

    fn push_word(&self, word: usize, value: u64, to: &PeerSet) {
        self.whole
            .push_word(self.start + word, value, &self.outside(to));
    }

    fn ring(&self, data: &PeerSet, acks: &PeerSet) {
        self.whole.ring(&self.outside(data), &self.outside(acks));
    }

    fn announce_sleep(&self, want: Want) {
        self.whole.announce_sleep(want);
    }

    fn announce_awake(&self) {
        self.whole.announce_awake();
    }

    fn nudge(&self) {
        self.whole.nudge();
    }

    fn acknowledge(&self, word: usize, value: u64, to: Rank) {
        let to = self.ranks[to.index()];
        self.whole.acknowledge(self.start + word, value, to);
    }

    fn poll(&self) -> Option<Failure> {
        while let Some(failure) = self.whole.poll() {
            let peer = self.ranks.iter().position(|rank| *rank == failure.peer);
            if let Some(peer) = peer {
                return Some(Failure {
                    peer: Rank(peer as u16),
                    ..failure
                });
            }
        }
        None
    }

    fn fence(&self, peer: Rank) {
        self.whole.fence(self.ranks[peer.index()]);
    }

    fn counters(&self) -> FabricCounters {
        self.whole.counters()
    }
}

impl<F: Park> Park for Part<F> {
    fn park(&self, timeout: Option<Duration>) -> bool {
        self.whole.park(timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::FABRIC_AREA;
    use crate::sim::{SimFabric, SimNetwork, SimOptions};

    /// Of three members the last and the first, in windows that begin at
    /// different places.
    fn windows() -> [Window; 2] {
        [(Rank(2), 512), (Rank(0), 1024)].map(|(of, at)| Window { of, at, len: 512 })
    }

    fn part(whole: SimFabric) -> Option<Part<SimFabric>> {
        Part::new(Arc::new(whole), &windows())
    }

    #[test]
    fn a_part_has_ranks_and_rows_of_its_own() {
        let (network, mut fabrics) = SimNetwork::group(1, &[2048; 3], SimOptions::default());
        let (c, b, a) = (fabrics.pop(), fabrics.pop(), fabrics.pop());
        assert!(b.and_then(part).is_none(), "no member");
        let (a, c) = (a.and_then(part).unwrap(), c.and_then(part).unwrap());
        assert_eq!((a.me(), c.me(), a.members()), (Rank(1), Rank(0), 2));
        let to = [Rank(1)].into_iter().collect();
        c.store(FABRIC_AREA, 7);
        c.push(FABRIC_AREA, 8, &to);
        c.push_word(FABRIC_AREA + 8, 8, &to);
        network.settle();
        assert_eq!(a.row(Rank(0)).load(FABRIC_AREA), 7);
        assert_eq!(a.row(Rank(0)).load(FABRIC_AREA + 8), 8);
        assert_eq!(a.whole().row(Rank(2)).load(512 + FABRIC_AREA), 7);
        a.acknowledge(FABRIC_AREA, 9, Rank(0));
        assert_eq!(a.row(Rank(1)).load(FABRIC_AREA), 9);
        assert_eq!(a.whole().row(Rank(0)).load(1024 + FABRIC_AREA), 9);
        network.crash(crate::sim::NodeId(2));
        network.settle();
        assert_eq!(a.poll().map(|failure| failure.peer), Some(Rank(0)));
        a.fence(Rank(0));
    }

    #[test]
    fn a_window_lies_inside_of_its_row() {
        let (_network, mut fabrics) = SimNetwork::group(1, &[1024; 3], SimOptions::default());
        assert!(fabrics.pop().and_then(part).is_none());
    }
}
