//! Pushes of a step: collected, and issued last, in order.

use std::sync::Arc;

use spindle_dds_transport::{Fabric, PeerSet};

use crate::handle::Common;

/// A list of pushes to one set of peers after another. Kept between steps, so
/// that it allocates only while it grows.
#[derive(Debug)]
pub(crate) struct Pushes {
    list: Vec<(PeerSet, Push)>,
    /// Where the pushes that are added now go.
    to: PeerSet,
    late: bool,
    /// Since the last ring.
    issued: bool,
    data: PeerSet,
    acks: PeerSet,
    /// Where they are counted.
    common: Arc<Common>,
}

#[derive(Debug, Clone, Copy)]
enum Push {
    Range { at: usize, len: usize },
    Word { word: usize, value: u64 },
}

impl Pushes {
    pub(crate) fn new(late: bool, common: Arc<Common>) -> Self {
        Self {
            list: Vec::with_capacity(64),
            to: PeerSet::EMPTY,
            late,
            issued: false,
            data: PeerSet::EMPTY,
            acks: PeerSet::EMPTY,
            common,
        }
    }

    /// Following pushes go to `to`, and wake sleepers for data or for
    /// acknowledgements only.
    pub(crate) fn address(&mut self, to: &PeerSet) {
        self.to = *to;
    }

    /// A range of words that vouch for nothing.
    pub(crate) fn range<F: Fabric>(&mut self, fabric: &F, at: usize, len: usize) {
        self.range_later(at, len);
        self.unless_late(fabric);
    }

    /// A range, issued with the next push at the latest.
    pub(crate) fn range_later(&mut self, at: usize, len: usize) {
        self.common.counters.data.add(self.to.len(), len);
        self.list.push((self.to, Push::Range { at, len }));
    }

    /// A word that vouches for what was pushed before: wakes those who sleep for data.
    pub(crate) fn word<F: Fabric>(&mut self, fabric: &F, word: usize, value: u64) {
        self.data = self.data.union(&self.to);
        self.common.counters.data.add(self.to.len(), 8);
        self.list.push((self.to, Push::Word { word, value }));
        self.unless_late(fabric);
    }

    /// Acknowledgements: wakes those who sleep for them.
    pub(crate) fn acks<F: Fabric>(&mut self, fabric: &F, at: usize, len: usize) {
        self.acks = self.acks.union(&self.to);
        self.common.counters.acks.add(self.to.len(), len);
        self.list.push((self.to, Push::Range { at, len }));
        self.unless_late(fabric);
    }

    /// A word of a digest, which goes out with the value given here and wakes nobody.
    pub(crate) fn digest_word<F: Fabric>(&mut self, fabric: &F, word: usize, value: u64) {
        self.common.counters.digests.add(self.to.len(), 8);
        self.list.push((self.to, Push::Word { word, value }));
        self.unless_late(fabric);
    }

    fn unless_late<F: Fabric>(&mut self, fabric: &F) {
        if !self.late {
            self.issue(fabric);
        }
    }

    fn issue<F: Fabric>(&mut self, fabric: &F) {
        self.issued |= !self.list.is_empty();
        for (to, push) in self.list.drain(..) {
            match push {
                Push::Range { at, len } => fabric.push(at, len, &to),
                Push::Word { word, value } => fabric.push_word(word, value, &to),
            }
        }
    }

    /// Issues everything and rings once, if only for nobody: a fabric may hold
    /// pushes back until then. Whether there was anything.
    pub(crate) fn flush<F: Fabric>(&mut self, fabric: &F) -> bool {
        self.issue(fabric);
        let issued = core::mem::take(&mut self.issued);
        if issued {
            fabric.ring(&self.data, &self.acks);
            (self.data, self.acks) = (PeerSet::EMPTY, PeerSet::EMPTY);
        }
        issued
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use spindle_dds_transport::sim::{SimNetwork, SimOptions};
    use spindle_dds_transport::{FABRIC_AREA, Rank};

    use super::*;

    #[test]
    fn words_that_wake_nobody_leave_with_the_flush() {
        let options = SimOptions {
            shared_pairs: 0.0,
            held_batches: 1.0,
            ..SimOptions::default()
        };
        for late in [false, true] {
            let (network, fabrics) = SimNetwork::group(1, &[512; 2], options.clone());
            let [from, to] = &fabrics[..] else {
                unreachable!("a fabric for each")
            };
            let mut pushes = Pushes::new(late, Arc::new(Common::new()));
            pushes.address(&[Rank(1)].into_iter().collect());
            pushes.digest_word(from, FABRIC_AREA, 7);
            pushes.flush(from);
            network.settle();
            assert_eq!(to.row(Rank(0)).load(FABRIC_AREA), 7);
            assert_eq!(from.counters().rings, 0);
        }
    }
}
