//! Storage in the world: packets of history between members, and what is told to the checkers.

use std::sync::Arc;

use spindle_dds_core::membership::MemberId;

use super::World;
use crate::life::facts::Fact;
use crate::life::member::Member;
use crate::life::storage::{Packet, Road, Storage};
use crate::violation::Finding;

impl World<'_> {
    /// A newcomer's view follows the one that its sponsor was in.
    pub(super) fn begin_storage(&mut self, newcomer: usize, sponsor: usize) {
        let before = self.members[sponsor].view.clone();
        if let (Some(before), Some(storage)) = (before, &mut self.members[newcomer].storage) {
            storage.follows(Arc::clone(&before));
        }
    }

    /// What the engine of a member has told goes to its storage.
    pub(super) fn tell_storage(&mut self, at: usize) -> Result<(), Finding> {
        let member = &mut self.members[at];
        let Some(storage) = &mut member.storage else {
            return Ok(());
        };
        let told = member
            .engine
            .with_sink(|sink| core::mem::take(&mut sink.told));
        storage.hear(told.unwrap_or_default());
        self.read_storage_facts(at)
    }

    /// The history thread and the readers of a member take a turn.
    pub(super) fn act_in_storage(&mut self, at: usize) -> Result<(), Finding> {
        let dawdling = self.turn < self.rests_at();
        let member = &mut self.members[at];
        if let (true, Some(storage)) = (member.is_up(), &mut member.storage) {
            let packets = storage.act(self.now, dawdling);
            self.send(packets);
        }
        self.read_storage_facts(at)
    }

    fn send(&mut self, packets: Vec<Packet>) {
        for packet in packets {
            self.post.send(packet, self.turn);
        }
    }

    fn read_storage_facts(&mut self, at: usize) -> Result<(), Finding> {
        let storage = self.members[at].storage.as_mut();
        let facts = storage.map_or_else(Vec::new, |it| core::mem::take(&mut it.facts));
        let mut facts = facts.iter();
        facts.try_for_each(|fact| self.checkers.tell(&Fact::Storage(fact)))
    }

    /// Packets arrive.
    pub(super) fn carry_packets(&mut self) -> Result<(), Finding> {
        if self.post.is_empty() {
            return Ok(());
        }
        let pairs = self.post.between();
        let roads = pairs.map(|(from, to)| ((from, to), self.road(from, to)));
        let roads = roads.collect();
        for packet in self.post.arrive(self.turn, &roads) {
            let Some(at) = self.members.iter().position(|it| it.id == packet.to) else {
                continue;
            };
            if let Some(storage) = &mut self.members[at].storage {
                let replies = storage.receive(packet, self.now);
                self.send(replies);
            }
            self.read_storage_facts(at)?;
        }
        Ok(())
    }

    fn road(&self, from: MemberId, to: MemberId) -> Road {
        let is_up = |id| self.members.iter().any(|it| it.id == id && it.is_up());
        let (node, other) = (self.nodes[&from], self.nodes[&to]);
        let is_paused = |it: &Member| it.id == to && it.paused_until > self.now;
        let is_paused = self.members.iter().any(is_paused);
        let is_cut = self.cuts.iter().any(|(_, a, b)| (*a, *b) == (node, other));
        if !is_up(to) || self.severed.contains(&(node, other)) {
            Road::Broken
        } else if !is_up(from) {
            Road::SenderGone
        } else if is_paused || is_cut {
            Road::HeldUp
        } else {
            Road::Open
        }
    }

    fn storages(&self) -> impl Iterator<Item = &Storage> {
        let up = self.members.iter().filter(|it| it.is_up());
        up.filter_map(|it| it.storage.as_ref())
    }

    /// Whether nothing is under way, kept aside or awaited.
    pub(super) fn is_storage_at_rest(&self) -> bool {
        self.post.is_empty() && self.storages().all(Storage::is_at_rest)
    }

    /// Nor anything pinned.
    pub(super) fn is_all_stored(&self) -> bool {
        self.is_storage_at_rest() && self.storages().all(|it| it.pinned() == 0)
    }

    pub(super) fn check_storage_at_rest(&mut self) -> Result<(), Finding> {
        let up = self.members.iter().filter(|it| it.is_up());
        let facts = |it: &Member| Some(it.storage.as_ref()?.facts_at_rest(self.plan.reads(it.id)));
        let facts: Vec<_> = up.filter_map(facts).flatten().collect();
        let mut facts = facts.iter();
        facts.try_for_each(|fact| self.checkers.tell(&Fact::Storage(fact)))
    }

    pub(super) fn describe_storage(&self) -> String {
        let members = self.members.iter().filter(|it| it.is_up());
        let members = members.map(|it| format!("\n{}: {:?}", it.id.0, it.storage));
        members.collect::<String>() + &format!("\n{:?}", self.post)
    }
}
