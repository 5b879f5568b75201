//! When all is at rest, and what must be true then.

use std::collections::BTreeSet;

use spindle_dds_core::membership::{Member as ViewMember, MemberId, View};

use super::World;
use crate::life::facts::Fact;
use crate::life::member::{Member, Mode};
use crate::violation::Finding;

impl World<'_> {
    pub(super) fn is_at_rest(&self) -> bool {
        self.is_group_at_rest() && self.is_all_stored() && self.are_logs_at_rest()
    }

    /// What is violated if there is no rest, though the group was in so many turns.
    pub(super) fn no_rest(&self, rests: usize) -> Finding {
        if rests > 1000 && !self.are_logs_at_rest() {
            let what = format!("keepers of logs do not rest: {}", self.describe_logs());
            return ("D7", what);
        }
        if rests > 1000 {
            return (
                "Q4",
                format!("transfers do not end: {}", self.describe_storage()),
            );
        }
        ("L3", format!("no rest: {}", self.describe()))
    }

    pub(super) fn is_group_at_rest(&self) -> bool {
        let up = || self.members.iter().filter(|member| member.is_up());
        let Some(first) = up().next() else {
            return true;
        };
        let calm = |member: &Member, view: &View| {
            member.preparing.is_none()
                && member.answering.is_none()
                && member.paused_until <= self.now
                && member.mode == Mode::Asleep
                && !self.network.is_woken(member.node)
                && member.is_done()
                && member.is_content(view)
                && !member.is_ending_epochs()
        };
        let same = |one: &Member, other: &Member| {
            let id = |member: &Member| member.view.as_ref().map(|view| view.id);
            id(one) == id(other) && one.branch == other.branch
        };
        let settled = |member: &Member| {
            let Some(view) = &member.view else {
                return false;
            };
            let here = |participant: &ViewMember| {
                up().any(|it| it.id == participant.id && same(it, member))
            };
            let alone = self.plan.availability || same(member, first);
            calm(member, view) && alone && view.members.iter().all(here)
        };
        up().all(settled) && self.joiners.is_empty() && self.network.pending() == 0
    }

    pub(super) fn check_end(&mut self) -> Result<(), Finding> {
        self.check_rest()?;
        self.let_go()?;
        self.check_room()?;
        self.check_quiescence()?;
        self.checkers.tell(&Fact::Over)?;
        self.checkers.judge(Some(&self.survivors()))
    }

    fn up(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.is_up())
    }

    fn survivors(&self) -> BTreeSet<MemberId> {
        self.up().map(|member| member.id).collect()
    }

    /// Checks what must hold without another step, which would find what a lost wake-up has missed.
    fn check_rest(&mut self) -> Result<(), Finding> {
        let up = self.members.iter().filter(|member| member.is_up());
        for member in up {
            let Some(view) = &member.view else { continue };
            for participant in &view.members {
                let (of, updates) = (participant.id, participant.updates);
                self.checkers.tell(&Fact::Settled { of, updates })?;
            }
            let (of, updates) = (member.id, member.updates);
            self.checkers.tell(&Fact::Settled { of, updates })?;
            for subgroup in &view.subgroups {
                let key = member.epoch_key(subgroup.subgroup, subgroup.epoch);
                let ids = subgroup.members.iter();
                let mut ids: Vec<_> = ids.map(|rank| view.members[rank.index()].id).collect();
                if ids.contains(&member.id) {
                    ids.retain(|id| self.plan.reads(*id));
                    let (epoch, members) = (key, &ids[..]);
                    self.checkers.tell(&Fact::EpochAtRest { epoch, members })?;
                }
            }
        }
        self.check_storage_at_rest()?;
        self.check_logs_at_rest()?;
        // A member that does not read is in no hurry to deliver what it sent itself.
        let mut survivors = self.survivors();
        survivors.retain(|id| self.plan.reads(*id));
        self.checkers.judge(Some(&survivors))
    }

    /// Returns all loans to their senders. A member that does not read is in no hurry to deliver
    /// what it sent itself: it is lent messages by these steps, too, at worst one by each. A ring
    /// has 16 at most.
    fn let_go(&mut self) -> Result<(), Finding> {
        let turn = self.turn;
        for _ in 0..20 {
            for member in &self.members {
                let engine = &member.engine;
                engine.with_sink(|sink| sink.return_loans(turn, true));
            }
            for member in self.up() {
                member.engine.step(self.now);
            }
            self.network.settle();
        }
        for at in 0..self.members.len() {
            self.read_events(at)?;
        }
        Ok(())
    }

    fn check_room(&mut self) -> Result<(), Finding> {
        let up = self.members.iter().filter(|member| member.is_up());
        for member in up {
            for fact in member.rings_at_rest(self.turn, self.now) {
                self.checkers.tell(&fact)?;
            }
        }
        Ok(())
    }

    fn check_quiescence(&mut self) -> Result<(), Finding> {
        self.network.settle();
        let up = self.members.iter().filter(|member| member.is_up());
        for member in up {
            member.engine.step(self.now);
            let (member, pushes) = (member.id, self.network.pending());
            self.checkers.tell(&Fact::Woken { member, pushes })?;
        }
        Ok(())
    }

    pub(super) fn describe(&self) -> String {
        let members = self.members.iter().map(|member| {
            let view = member.view.as_ref().map_or(0, |view| view.id);
            format!(
                "\n{:?} in view {view} due {} {:?} preparing {:?} down {} stopped {:?} done {}",
                member.id.0,
                member.due,
                member.mode,
                member.preparing.as_ref().map(|(view, _)| view.id),
                member.is_down,
                member.stopped,
                member.todo()
            )
        });
        members.collect::<Vec<_>>().join("; ")
    }
}
