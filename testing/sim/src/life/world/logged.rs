//! Logs in the world: packets between their keepers, announcements, and what is checked.

use std::sync::Arc;

use spindle_dds_core::membership::{Member as ViewMember, MemberId, View};

use super::World;
use crate::life::logged::{endpoint_of, number_of};
use crate::life::member::Member;
use crate::violation::Finding;

impl World<'_> {
    /// A participant starts: with a disk that is free, or without.
    pub(super) fn start_logs(&mut self, participant: &mut ViewMember) {
        let Some(plan) = self.plan.logged else {
            return;
        };
        let view = self.any_view();
        let Some(logs) = &mut self.logs else {
            return;
        };
        let has_disk = self.turn >= self.plan.turns || !logs.rng.chance(plan.without);
        let endpoints = logs.start(participant.id, has_disk, view.as_deref());
        let mut all = (*participant.endpoints).clone();
        all.extend(endpoints);
        participant.endpoints = all.into();
    }

    fn any_view(&self) -> Option<Arc<View>> {
        let mut up = self.members.iter().filter(|it| it.is_up());
        up.find_map(|it| it.view.clone())
    }

    /// Those that are gone let go of their disks.
    pub(super) fn release_logs(&mut self) {
        let Some(logs) = &mut self.logs else {
            return;
        };
        let lives = |id: MemberId| {
            let up = |it: &Member| it.id == id && it.is_up();
            self.members.iter().any(up) || self.joiners.iter().any(|(it, _)| it.id == id)
        };
        logs.release(lives);
        if self.turn < self.plan.turns
            && let Some(plan) = &self.plan.logged
        {
            logs.inject_faults(plan);
        }
        let is_due = self.turn > self.plan.turns && self.turn.is_multiple_of(100);
        if is_due && self.any_view().is_some() {
            self.bring_all_logs();
        }
    }

    /// Faults are over: all disks have room, and those that are free get participants.
    pub(super) fn bring_all_logs(&mut self) {
        let Some(logs) = &self.logs else {
            return;
        };
        logs.make_room();
        for id in logs.idle_users() {
            let at = self.members.iter().position(|it| it.id == id && it.is_up());
            if let Some(at) = at.filter(|_| self.turn == self.plan.turns) {
                self.end(at);
            }
        }
        let Some(logs) = &self.logs else {
            return;
        };
        for _ in 0..logs.free_slots() {
            let newcomer = self.new_participant();
            self.joiners.push((newcomer, MemberId(0)));
        }
    }

    /// Before a member's applications act: the topics that take samples.
    pub(super) fn look_at_logs(&mut self, at: usize) -> Result<(), Finding> {
        let is_over = self.turn >= self.rests_at();
        let member = &mut self.members[at];
        let Some(logs) = &mut self.logs else {
            return Ok(());
        };
        let (Some(node), Some(view)) = (logs.nodes.get(&member.id), member.view.clone()) else {
            return Ok(());
        };
        let open = node.open_topics();
        for subgroup in &open {
            let epoch = view.subgroup(*subgroup).map_or(0, |it| it.epoch);
            logs.takes_samples(*subgroup, epoch, &view)?;
        }
        member.set_open_topics(open);
        if is_over && logs.rng.chance(0.001) {
            self.members[at].give_up_on_logs();
        }
        Ok(())
    }

    /// What the engine of a member has told goes to its logs, and these take a turn.
    pub(super) fn act_in_logs(&mut self, at: usize) -> Result<(), Finding> {
        let dawdling = self.turn < self.rests_at();
        let (now, member) = (self.now, &mut self.members[at]);
        let Some(logs) = &mut self.logs else {
            return Ok(());
        };
        let told = member
            .engine
            .with_sink(|sink| core::mem::take(&mut sink.told));
        let id = member.id;
        let Some(node) = logs.nodes.get_mut(&id).filter(|_| member.is_up()) else {
            return Ok(());
        };
        node.hear(told.unwrap_or_default(), &member.engine.handle());
        for (committed, token) in member.take_committed() {
            node.sent(committed, token);
        }
        let acked = node.acknowledged(|it| member.has_receipt(it));
        if dawdling && !logs.rng.chance(0.3) {
            logs.note_acknowledged(acked);
            return Ok(());
        }
        let (own, others): (Vec<_>, Vec<_>) = core::mem::take(&mut logs.packets)
            .into_iter()
            .partition(|it| it.to == id);
        logs.packets = others;
        for parcel in own {
            node.receive(parcel, now);
        }
        let count = if dawdling {
            1 + logs.rng.below(6)
        } else {
            usize::MAX
        };
        let judges = logs.rng.chance(0.1);
        let (packets, changes) = node.act(count, now, judges)?;
        logs.packets.extend(packets);
        logs.note_acknowledged(acked);
        for (subgroup, end) in changes {
            let endpoint = end.map(|end| endpoint_of(subgroup, end));
            self.members[at].put_log(number_of(subgroup), endpoint);
        }
        Ok(())
    }

    /// Whether no keeper has anything to do, and each disk has a participant: the end is judged with all
    /// logs there.
    pub(super) fn are_logs_at_rest(&self) -> bool {
        let Some(logs) = &self.logs else {
            return true;
        };
        if logs.free_slots() > 0 && self.any_view().is_some() {
            return false;
        }
        let is_up = |id: MemberId| self.members.iter().any(|it| it.id == id && it.is_up());
        let mut packets = logs.packets.iter();
        packets.all(|it| !is_up(it.to))
            && logs
                .nodes
                .iter()
                .all(|(id, it)| !is_up(*id) || it.is_at_rest())
    }

    pub(super) fn describe_logs(&self) -> String {
        let nodes = self.logs.iter().flat_map(|it| it.nodes.values());
        nodes.map(|it| it.describe()).collect()
    }

    pub(super) fn check_logs_at_rest(&mut self) -> Result<(), Finding> {
        let (Some(logs), Some(view)) = (&self.logs, self.any_view()) else {
            return Ok(());
        };
        logs.all_open(self.plan.subgroups, &view)
    }
}
