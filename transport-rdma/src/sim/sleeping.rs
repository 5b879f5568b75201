//! Announcing sleep and ringing, over links of both kinds. Sleep is the node's:
//! all its segments share one sleep word.

use super::link::{Owed, Piece};
use super::options::PlantedBug;
use super::segment::Seat;
use super::state::State;
use crate::fabric::WakeInterest;
use crate::peers::PeerSet;

impl State {
    /// Rings members of a segment, by their ranks in it.
    pub(super) fn ring(&mut self, seat: Seat, data: &PeerSet, acks: &PeerSet) {
        let me = self.node_of(seat);
        if self.nodes[me].crashed {
            return;
        }
        self.operations += 1;
        for rank in 0..self.segments[seat.segment].nodes.len() {
            let peer = self.segments[seat.segment].nodes[rank];
            self.link(me, peer).end_batch();
        }
        for rank in data.union(acks).iter() {
            let peer = self.segments[seat.segment].nodes[rank.index()];
            let owed = match data.contains(rank) {
                true => Owed::Data,
                false => Owed::Acks,
            };
            if peer == me {
                continue;
            }
            if self.link(me, peer).shared {
                self.ring_shared(me, peer, owed);
            } else {
                let link = self.link(me, peer);
                link.owed = link.owed.max(owed);
                let sleep_word = self.link(peer, me).sleep_word;
                self.ring_posted(me, peer, sleep_word);
            }
        }
    }

    /// My fence and the peer's, in its announcement, have an order. If its came
    /// first, I see its epoch, and the bell brings my stores along; if mine did,
    /// its look sees what I had stored (`announce_sleep`). No more is promised:
    /// to a peer that stays awake they show when they show.
    fn ring_shared(&mut self, me: usize, peer: usize, owed: Owed) {
        let now = self.operations;
        let fenced = !self.planted(PlantedBug::RingWithoutFence);
        let sleep_word = match fenced {
            true => self.nodes[peer].sleep_word,
            false => self.link(peer, me).sleep_word,
        };
        if fenced {
            self.link(me, peer).fenced_at = now;
        }
        if self.wanted(sleep_word, owed) {
            if fenced {
                self.flush(me, peer, now);
            }
            self.nodes[me].peer_wakes += 1;
            self.wake(peer);
        }
    }

    /// Rings by my copy of the sleep word, behind the data that is on its way;
    /// what the peer is owed stays noted until a doorbell has been sent.
    fn ring_posted(&mut self, me: usize, peer: usize, sleep_word: u64) {
        let owed = self.link(me, peer).owed;
        if !self.nodes[me].crashed && self.wanted(sleep_word, owed) {
            self.link(me, peer).owed = Owed::Nothing;
            self.nodes[me].peer_wakes += 1;
            self.enqueue(me, peer, Piece::Doorbell);
        }
    }

    fn wanted(&self, sleep_word: u64, owed: Owed) -> bool {
        match (owed, WakeInterest::of_sleep_word(sleep_word)) {
            (Owed::Nothing, _) | (_, None) => false,
            (Owed::Data, Some(_)) | (Owed::Acks, Some(WakeInterest::DataAndAcks)) => true,
            (Owed::Acks, Some(WakeInterest::Data)) => self.planted(PlantedBug::AcksRingAll),
        }
    }

    pub(super) fn announce_sleep(&mut self, me: usize, want: WakeInterest) {
        let kept_awake = self.planted(PlantedBug::FenceKeepsAwake);
        let node = &mut self.nodes[me];
        node.epoch += 1;
        node.rung = kept_awake && node.has_fenced;
        node.sleeps += 1;
        let sleep_word = want.sleep_word(node.epoch);
        self.announce(me, sleep_word);
        for peer in self.others(me) {
            if self.link(peer, me).shared {
                let fenced_at = self.link(peer, me).fenced_at;
                self.flush(peer, me, fenced_at);
            }
        }
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
        let sent = !self.planted(PlantedBug::SleepNotAnnounced);
        for peer in self.others(me) {
            if sent || self.link(me, peer).shared {
                self.enqueue(me, peer, Piece::Sleep(sleep_word));
            }
        }
    }

    /// A new odd epoch is answered by a doorbell if its owner was found awake
    /// when it should have been rung.
    pub(super) fn land_sleep_word(&mut self, from: usize, to: usize, sleep_word: u64) {
        self.note(&[12, from as u64, to as u64, sleep_word]);
        self.link(from, to).sleep_word = sleep_word;
        if !self.link(to, from).shared && !self.planted(PlantedBug::EpochNotAnswered) {
            self.ring_posted(to, from, sleep_word);
        }
    }

    pub(super) fn is_asleep(&self, node: usize) -> bool {
        WakeInterest::of_sleep_word(self.nodes[node].sleep_word).is_some()
    }

    pub(super) fn wake(&mut self, node: usize) {
        let deaf = self.planted(PlantedBug::FenceDeafens) && self.nodes[node].has_fenced;
        if self.is_asleep(node) && !deaf {
            self.note(&[3, node as u64]);
            self.nodes[node].rung = true;
        }
    }

    pub(super) fn nudge(&mut self, me: usize) {
        if self.is_asleep(me) {
            self.nodes[me].nudges += 1;
            self.wake(me);
        }
    }
}
