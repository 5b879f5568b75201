//! Pushes of a step: collected, and issued last, in order.

use spindle_dds_transport::{Fabric, PeerSet};

/// A list of pushes to one set of peers after another. Kept between steps, so
/// that it allocates only while it grows.
#[derive(Debug)]
pub(crate) struct Pushes {
    list: Vec<(PeerSet, Push)>,
    /// Where the pushes that are added now go.
    to: PeerSet,
    late: bool,
    data: PeerSet,
    acks: PeerSet,
}

#[derive(Debug, Clone, Copy)]
enum Push {
    Range { at: usize, len: usize },
    Word { word: usize, value: u64 },
}

impl Pushes {
    pub(crate) fn new(late: bool) -> Self {
        Self {
            list: Vec::with_capacity(64),
            to: PeerSet::EMPTY,
            late,
            data: PeerSet::EMPTY,
            acks: PeerSet::EMPTY,
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
        self.list.push((self.to, Push::Range { at, len }));
    }

    /// A word that vouches for what was pushed before: wakes those who sleep for data.
    pub(crate) fn word<F: Fabric>(&mut self, fabric: &F, word: usize, value: u64) {
        self.data = self.data.union(&self.to);
        self.list.push((self.to, Push::Word { word, value }));
        self.unless_late(fabric);
    }

    /// Acknowledgements: wakes those who sleep for them.
    pub(crate) fn acks<F: Fabric>(&mut self, fabric: &F, at: usize, len: usize) {
        self.acks = self.acks.union(&self.to);
        self.range(fabric, at, len);
    }

    /// A word that goes out with the value given here and wakes nobody.
    pub(crate) fn quiet_word<F: Fabric>(&mut self, fabric: &F, word: usize, value: u64) {
        self.list.push((self.to, Push::Word { word, value }));
        self.unless_late(fabric);
    }

    fn unless_late<F: Fabric>(&mut self, fabric: &F) {
        if !self.late {
            self.issue(fabric);
        }
    }

    fn issue<F: Fabric>(&mut self, fabric: &F) {
        for (to, push) in self.list.drain(..) {
            match push {
                Push::Range { at, len } => fabric.push(at, len, &to),
                Push::Word { word, value } => fabric.push_word(word, value, &to),
            }
        }
    }

    /// Issues everything and rings once. Returns whether there was anything.
    pub(crate) fn flush<F: Fabric>(&mut self, fabric: &F) -> bool {
        self.issue(fabric);
        let (data, acks) = (self.data, self.acks);
        if data.is_empty() && acks.is_empty() {
            return false;
        }
        (self.data, self.acks) = (PeerSet::EMPTY, PeerSet::EMPTY);
        fabric.ring(&data, &acks);
        true
    }
}
