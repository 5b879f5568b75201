//! Announcing sleep and ringing, over links of both kinds.

use super::link::{Owed, Piece};
use super::options::PlantedBug;
use super::state::{State, word};
use crate::fabric::{SLEEP_WORD, Want};
use crate::peers::{PeerSet, Rank};

impl State {
    pub(super) fn ring(&mut self, me: usize, data: &PeerSet, acks: &PeerSet) {
        if self.members[me].crashed {
            return;
        }
        self.operations += 1;
        for peer in self.others(me) {
            self.link(me, peer).end_batch();
        }
        for peer in data
            .union(acks)
            .iter()
            .map(Rank::index)
            .filter(|&peer| peer != me)
        {
            let owed = if data.contains(Rank(peer as u16)) {
                Owed::Data
            } else {
                Owed::Acks
            };
            if self.link(me, peer).shared {
                self.ring_shared(me, peer, owed);
            } else {
                let epoch = self.members[me].rows[peer].load(SLEEP_WORD);
                let link = self.link(me, peer);
                link.owed = link.owed.max(owed);
                self.ring_posted(me, peer, epoch);
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
        let sees = if fenced { peer } else { me };
        let epoch = self.members[sees].rows[peer].load(SLEEP_WORD);
        if fenced {
            self.link(me, peer).fenced_at = now;
        }
        if self.wanted(epoch, owed) {
            if fenced {
                self.flush(me, peer, now);
            }
            self.members[me].counters.rings += 1;
            self.wake(peer);
        }
    }

    /// Rings by my copy of the epoch, behind the data that is on its way; what
    /// the peer is owed stays noted until a doorbell has been sent.
    pub(super) fn ring_posted(&mut self, me: usize, peer: usize, epoch: u64) {
        let owed = self.link(me, peer).owed;
        if !self.members[me].crashed && self.wanted(epoch, owed) {
            self.link(me, peer).owed = Owed::Nothing;
            self.members[me].counters.rings += 1;
            self.enqueue(me, peer, Piece::Ring);
        }
    }

    fn wanted(&self, epoch: u64, owed: Owed) -> bool {
        match (owed, Want::of_sleep_word(epoch)) {
            (Owed::Nothing, _) | (_, None) => false,
            (Owed::Data, Some(_)) | (Owed::Acks, Some(Want::DataAndAcks)) => true,
            (Owed::Acks, Some(Want::Data)) => self.planted(PlantedBug::AcksRingAll),
        }
    }

    pub(super) fn announce_sleep(&mut self, me: usize, want: Want) {
        let member = &mut self.members[me];
        member.epoch += 1;
        member.rung = false;
        member.counters.sleeps += 1;
        let epoch = want.sleep_word(member.epoch);
        self.announce(me, epoch);
        for peer in self.others(me) {
            if self.link(peer, me).shared {
                let fenced_at = self.link(peer, me).fenced_at;
                self.flush(peer, me, fenced_at);
            }
        }
    }

    pub(super) fn announce_awake(&mut self, me: usize) {
        let epoch = self.members[me].epoch << 2;
        self.announce(me, epoch);
    }

    fn announce(&mut self, me: usize, epoch: u64) {
        self.store(me, SLEEP_WORD, epoch);
        if self.members[me].crashed || self.planted(PlantedBug::SleepNotAnnounced) {
            return;
        }
        for peer in self.others(me) {
            if !self.link(me, peer).shared {
                self.enqueue(me, peer, word(SLEEP_WORD, epoch));
            }
        }
    }

    pub(super) fn is_asleep(&self, rank: usize) -> bool {
        Want::of_sleep_word(self.members[rank].rows[rank].load(SLEEP_WORD)).is_some()
    }

    pub(super) fn wake(&mut self, rank: usize) {
        if self.is_asleep(rank) {
            self.note(3, rank, 0, 0);
            self.members[rank].rung = true;
        }
    }

    pub(super) fn nudge(&mut self, me: usize) {
        if self.is_asleep(me) {
            self.members[me].counters.nudges += 1;
            self.wake(me);
        }
    }
}
