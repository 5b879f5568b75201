//! Pushes of a step: collected, and issued in order at its end.

use std::sync::Arc;

use spindle_dds_transport::{Fabric, MessagePush, PeerSet, WakeReason};

use crate::subgroup::header::WORDS;
use crate::subgroup::shared::Shared;

/// A list of pushes to one set of peers after another. Kept between steps, so
/// that it allocates only while it grows.
#[derive(Debug)]
pub(crate) struct Pushes {
    list: Vec<Push>,
    /// Receivers of the pushes.
    to: PeerSet,
    /// Number of members of `to`.
    peers: usize,
    /// Whether anything was issued since the last flush.
    issued: bool,
    /// Why the pushes since the last flush wake receivers; `None` if they wake none.
    reason: Option<WakeReason>,
    /// Whether there is a release among them.
    releases: bool,
    /// Whether there is a persisted position among them: no other member wakes receivers for it.
    persisted: bool,
    /// Has the counters of the pushes.
    shared: Arc<Shared>,
}

#[derive(Debug, Clone, Copy)]
enum Push {
    Range { at: usize, len: usize },
    Word { word: usize, value: u64 },
}

impl Pushes {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            list: Vec::with_capacity(64),
            to: PeerSet::EMPTY,
            peers: 0,
            issued: false,
            reason: None,
            releases: false,
            persisted: false,
            shared,
        }
    }

    /// Sets the receivers of the pushes until the next flush. `peers` is their number, which the
    /// caller knows, so that it is not counted for each message.
    #[inline]
    pub(crate) fn address(&mut self, to: &PeerSet, peers: usize) {
        debug_assert!(self.list.is_empty() && peers == to.len());
        (self.to, self.peers) = (*to, peers);
    }

    /// Pushes a range, together with the next push at the latest.
    pub(crate) fn range_later(&mut self, at: usize, len: usize) {
        self.shared.counters.data.add(self.peers, len);
        self.list.push(Push::Range { at, len });
    }

    /// Pushes a guard, which makes the pushes before it valid.
    fn word(&mut self, word: usize, value: u64, reason: WakeReason) {
        self.wakes(reason);
        self.shared.counters.data.add(self.peers, 8);
        self.list.push(Push::Word { word, value });
    }

    /// Pushes ranges (offset, length) in bytes, and their guard. Wakes receivers for `reason`.
    pub(crate) fn batch(
        &mut self,
        ranges: &[(usize, usize)],
        word: usize,
        value: u64,
        reason: WakeReason,
    ) {
        for (at, len) in ranges {
            self.range_later(*at, *len);
        }
        self.word(word, value, reason);
    }

    /// [`batch`](Self::batch) as the last pushes before the flush: issued without being collected.
    #[inline]
    pub(crate) fn last_batch<F: Fabric>(
        &mut self,
        fabric: &F,
        ranges: &[(usize, usize)],
        word: usize,
        value: u64,
        reason: WakeReason,
    ) {
        self.issue(fabric);
        self.issued = true;
        self.wakes(reason);
        let bytes = ranges.iter().fold(8, |sum, (_, len)| sum + len);
        let pushes = ranges.len() + 1;
        let counters = &self.shared.counters;
        counters
            .data
            .add_all(self.peers * pushes, self.peers * bytes);
        fabric.push_guarded(ranges, word, value, &self.to);
    }

    /// [`last_batch`](Self::last_batch) for one message whose header is not in the row yet.
    #[inline]
    pub(crate) fn last_message<F: Fabric>(&mut self, fabric: &F, message: &MessagePush<'_, WORDS>) {
        self.issue(fabric);
        (self.issued, self.reason) = (true, Some(WakeReason::Data));
        fabric.push_message(message, &self.to, self.peers);
        let counters = &self.shared.counters;
        counters
            .data
            .add_all(self.peers * message.pushes(), self.peers * message.bytes());
    }

    /// Pushes the word that says where a ring was restarted. Wakes no receiver: what comes after it
    /// does.
    pub(crate) fn restart_word(&mut self, word: usize, value: u64) {
        self.shared.counters.data.add(self.peers, 8);
        self.list.push(Push::Word { word, value });
    }

    /// Pushes acknowledgements of what was received. Wakes receivers that sleep for stability.
    pub(crate) fn acks(&mut self, at: usize, len: usize) {
        self.push_acks(at, len, WakeReason::Stability);
    }

    /// Pushes acknowledgements of what was released. Wakes receivers that sleep for room.
    pub(crate) fn releases(&mut self, at: usize, len: usize) {
        self.releases = true;
        self.push_acks(at, len, WakeReason::Room);
    }

    /// Pushes what is persisted. Wakes receivers that sleep for stability.
    pub(crate) fn persisted(&mut self, at: usize, len: usize) {
        self.persisted = true;
        self.push_acks(at, len, WakeReason::Stability);
    }

    fn push_acks(&mut self, at: usize, len: usize, reason: WakeReason) {
        self.wakes(reason);
        self.shared.counters.acks.add(self.peers, len);
        self.list.push(Push::Range { at, len });
    }

    #[inline]
    fn wakes(&mut self, reason: WakeReason) {
        self.reason = self.reason.max(Some(reason));
    }

    /// Whether the flush would wake receivers because something may be stable now, and for nothing
    /// else.
    pub(crate) fn wake_for_stability(&self) -> bool {
        self.reason == Some(WakeReason::Stability) && !self.persisted
    }

    /// Flushes, but leaves it to a later flush, of this member or another, to wake receivers that
    /// sleep for stability. Returns whether one does.
    pub(crate) fn flush_and_leave_waking<F: Fabric>(&mut self, fabric: &F) -> bool {
        debug_assert!(self.wake_for_stability());
        self.reason = None;
        self.issue(fabric);
        self.issued = false;
        let is_left = fabric.would_wake(&self.to, WakeReason::Stability);
        if core::mem::take(&mut self.releases) && is_left {
            fabric.wake(&self.to, WakeReason::Room);
        }
        is_left
    }

    /// Makes the next flush wake receivers that sleep for stability, whatever is pushed.
    pub(crate) fn wake_after_all(&mut self) {
        self.issued = true;
        self.wakes(WakeReason::Stability);
    }

    /// Pushes a word of a digest with the given value. Wakes no receiver.
    pub(crate) fn digest_word(&mut self, word: usize, value: u64) {
        self.shared.counters.digests.add(self.peers, 8);
        self.list.push(Push::Word { word, value });
    }

    #[inline]
    fn issue<F: Fabric>(&mut self, fabric: &F) {
        if !self.list.is_empty() {
            self.issue_list(fabric);
        }
    }

    fn issue_list<F: Fabric>(&mut self, fabric: &F) {
        self.issued = true;
        for push in self.list.drain(..) {
            match push {
                Push::Range { at, len } => fabric.push(at, len, &self.to),
                Push::Word { word, value } => fabric.push_word(word, value, &self.to),
            }
        }
    }

    /// Issues all pushes and wakes their receivers once, even for an empty set: a fabric may hold
    /// pushes back until then. Returns whether there was anything.
    #[inline]
    pub(crate) fn flush<F: Fabric>(&mut self, fabric: &F) -> bool {
        self.issue(fabric);
        let issued = core::mem::take(&mut self.issued);
        if issued {
            (self.releases, self.persisted) = (false, false);
            let (to, reason) = match self.reason.take() {
                Some(reason) => (&self.to, reason),
                None => (&PeerSet::EMPTY, WakeReason::Room),
            };
            fabric.wake(to, reason);
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
    fn words_that_wake_no_sleeper_leave_with_the_flush() {
        let options = SimOptions {
            shared_pairs: 0.0,
            held_batches: 1.0,
            ..SimOptions::default()
        };
        let (network, fabrics) = SimNetwork::group(1, &[512; 2], options);
        let [from, to] = &fabrics[..] else {
            unreachable!("a fabric for each")
        };
        let mut pushes = Pushes::new(Arc::new(Shared::new()));
        pushes.address(&[Rank(1)].into_iter().collect(), 1);
        pushes.digest_word(FABRIC_AREA, 7);
        pushes.flush(from);
        network.settle();
        assert_eq!(to.row(Rank(0)).load(FABRIC_AREA), 7);
        assert_eq!(from.counters().peer_wakes, 0);
    }
}
