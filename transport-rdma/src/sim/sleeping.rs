//! Announcing sleep and waking, over pairs of both kinds. All segments of a node share one
//! sleep word.

use super::landing::news_bucket;
use super::link::InFlight;
use super::segment::MemberRef;
use super::state::State;
use crate::fabric::peers::PeerSet;
use crate::fabric::{WakeInterest, WakeReason};

impl State {
    /// Ends the batch and wakes members of a segment, by their ranks in it.
    pub(super) fn wake_members(&mut self, member: MemberRef, peers: &PeerSet, reason: WakeReason) {
        let me = self.node_of(member);
        if self.nodes[me].crashed {
            return;
        }
        self.operations += 1;
        self.fence_shared(me);
        for rank in 0..self.segments[member.segment].nodes.len() {
            let peer = self.segments[member.segment].nodes[rank];
            self.link(me, peer).end_batch();
            if peer != me && !self.segments[member.segment].control && self.link(me, peer).shared {
                let news = InFlight::News(news_bucket(member.segment));
                self.enqueue(me, peer, news);
            }
        }
        for rank in peers.iter() {
            let peer = self.segments[member.segment].nodes[rank.index()];
            if peer == me {
                continue;
            }
            if self.link(me, peer).shared {
                self.wake_shared(me, peer, reason);
            } else {
                let link = self.link(me, peer);
                link.owed = link.owed.max(Some(reason));
                let sleep_word = self.link(peer, me).sleep_word;
                self.wake_by_doorbell(me, peer, sleep_word);
            }
        }
    }

    /// Whether a member of a segment would wake one of these after its fence; true unless it shares
    /// memory with all of them.
    pub(super) fn would_wake(
        &self,
        member: MemberRef,
        peers: &PeerSet,
        reason: WakeReason,
    ) -> bool {
        let nodes = &self.segments[member.segment].nodes;
        let sleeps = |peer: usize| Self::is_wanted(self.nodes[peer].sleep_word, Some(reason));
        let mut peers = peers.iter().map(|rank| nodes[rank.index()]);
        !self.shares_memory(member.segment) || peers.any(sleeps)
    }

    /// Fences are ordered: from now on I see what a peer with which I share memory has stored
    /// before its last fence, and a peer that fences later sees what I have stored until now.
    /// Nothing more is promised: a peer that does not fence sees the stores at any time.
    fn fence_shared(&mut self, me: usize) {
        let now = self.operations;
        for peer in self.others(me) {
            if self.link(me, peer).shared {
                self.link(me, peer).fenced_at = now;
            }
            if self.link(peer, me).shared {
                let fenced_at = self.link(peer, me).fenced_at;
                self.flush(peer, me, fenced_at);
            }
        }
    }

    /// My fence and the fence of the peer's announcement are ordered. If the peer's came
    /// first, I see its epoch, and the wake-up brings my stores along; if mine did, its second
    /// look sees what I had stored (`announce_sleep`).
    fn wake_shared(&mut self, me: usize, peer: usize, reason: WakeReason) {
        let now = self.operations;
        let sleep_word = self.nodes[peer].sleep_word;
        if Self::is_wanted(sleep_word, Some(reason)) {
            self.flush(me, peer, now);
            self.nodes[me].peer_wakes += 1;
            self.wake(peer);
        }
    }

    /// Sends a doorbell behind the data in flight, if my copy of the peer's sleep word asks
    /// for it. What the peer is owed stays noted until a doorbell was sent.
    fn wake_by_doorbell(&mut self, me: usize, peer: usize, sleep_word: u64) {
        let owed = self.link(me, peer).owed;
        if !self.nodes[me].crashed && Self::is_wanted(sleep_word, owed) {
            self.link(me, peer).owed = None;
            self.nodes[me].peer_wakes += 1;
            self.enqueue(me, peer, InFlight::Doorbell);
        }
    }

    fn is_wanted(sleep_word: u64, owed: Option<WakeReason>) -> bool {
        match (owed, WakeInterest::of_sleep_word(sleep_word)) {
            (Some(reason), Some(interest)) => interest.includes(reason),
            _ => false,
        }
    }

    pub(super) fn announce_sleep(&mut self, me: usize, interest: WakeInterest) {
        let node = &mut self.nodes[me];
        node.epoch += 1;
        node.is_woken = false;
        node.sleeps += 1;
        let sleep_word = interest.sleep_word(node.epoch);
        self.announce(me, sleep_word);
        self.fence_shared(me);
    }

    pub(super) fn announce_awake(&mut self, me: usize) {
        let sleep_word = self.nodes[me].epoch << 2;
        self.announce(me, sleep_word);
    }

    fn announce(&mut self, me: usize, sleep_word: u64) {
        if self.nodes[me].crashed {
            return;
        }
        self.operations += 1;
        self.note(&[11, me as u64, sleep_word]);
        self.nodes[me].sleep_word = sleep_word;
        for peer in self.others(me) {
            self.enqueue(me, peer, InFlight::Sleep(sleep_word));
        }
    }

    /// A new odd epoch is answered by a doorbell if its owner was found awake by an earlier
    /// `wake`.
    pub(super) fn land_sleep_word(&mut self, from: usize, to: usize, sleep_word: u64) {
        self.note(&[12, from as u64, to as u64, sleep_word]);
        self.link(from, to).sleep_word = sleep_word;
        if !self.link(to, from).shared {
            self.wake_by_doorbell(to, from, sleep_word);
        }
    }

    pub(super) fn is_asleep(&self, node: usize) -> bool {
        WakeInterest::of_sleep_word(self.nodes[node].sleep_word).is_some()
    }

    pub(super) fn wake(&mut self, node: usize) {
        if self.is_asleep(node) {
            self.note(&[3, node as u64]);
            self.nodes[node].is_woken = true;
        }
    }

    pub(super) fn nudge(&mut self, me: usize) {
        if self.is_asleep(me) {
            self.nodes[me].nudges += 1;
            self.wake(me);
        }
    }
}
