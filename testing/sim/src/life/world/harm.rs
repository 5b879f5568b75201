//! What is done to members: by chance, by the script, and to rows by those who are hostile.

use spindle_dds_core::SubgroupSpec;
use spindle_dds_core::membership::{HostId, Member as ViewMember, MemberId};
use spindle_dds_transport::sim::{NodeId, Rng};

use super::World;
use crate::life::hostile::Target;
use crate::life::member::Member;
use crate::life::plan::Deed;

impl World<'_> {
    pub(super) fn do_harm(&mut self, at: usize) {
        let plan = self.plan;
        let member = &mut self.members[at];
        let changing =
            member.preparing.is_some() || self.course.is_changing(member.view.as_deref());
        let malice = if changing { plan.malice } else { 1.0 };
        if !member.is_up() {
            if self.rng.chance(plan.joins) && self.nodes.len() < plan.members_max {
                let newcomer = self.born();
                self.joiners.push((newcomer, MemberId(0)));
            }
            return;
        }
        if self.rng.chance(plan.crashes * malice) {
            return self.end(at);
        }
        if self.rng.chance(plan.pauses * malice) {
            let pause = self.rng.below(2 * plan.limit as usize) as u64;
            self.members[at].paused_until = self.now + pause;
        }
        if plan.cuts > 0.0 && self.rng.chance(plan.cuts * malice) {
            self.cut_one_way(at);
        }
        if self.rng.chance(plan.divisions * malice) {
            self.divide();
        }
        if self.rng.chance(plan.joins) && self.nodes.len() < plan.members_max {
            let newcomer = self.born();
            self.joiners.push((newcomer, MemberId(0)));
        }
        let member = &mut self.members[at];
        if self.rng.chance(plan.leaves) && !member.is_leaving {
            member.leave();
        }
        if self.rng.chance(plan.updates) {
            member.update(plan);
        }
    }

    pub(super) fn be_hostile(&mut self, at: usize) {
        let member = &self.members[at];
        let (true, Some(view)) = (self.plan.is_hostile(member.id), &member.view) else {
            return;
        };
        let Some(me) = view.rank(member.id).filter(|_| member.is_up()) else {
            return;
        };
        let mine = view
            .subgroups
            .iter()
            .filter(|lane| lane.members.contains(&me));
        let key = |lane: &SubgroupSpec| member.lane_key(lane.subgroup, lane.epoch);
        let segment = |lane: &SubgroupSpec| self.lanes.get(&key(lane)).copied();
        let lanes = mine.filter_map(|lane| Some((lane, segment(lane)?)));
        let target = Target {
            view,
            me,
            control: self.controls[&(view.id, member.branch)],
            lanes: lanes.collect(),
        };
        let taste = self.plan.seed as usize + member.id.0 as usize * 7;
        self.hostility.act(&self.network, &target, taste);
    }

    /// What they have done stays done.
    pub(super) fn end_hostilities(&mut self) {
        let hostile = |member: &Member| self.plan.is_hostile(member.id) && member.is_up();
        let all = self.members.iter();
        let all: Vec<usize> = (0..)
            .zip(all)
            .filter(|(_, it)| hostile(it))
            .map(|(at, _)| at)
            .collect();
        for at in all {
            self.end(at);
        }
        let stays = |(who, _): &(ViewMember, MemberId)| !self.plan.is_hostile(who.id);
        let (joiners, gone) = core::mem::take(&mut self.joiners)
            .into_iter()
            .partition(stays);
        self.joiners = joiners;
        let gone: Vec<(ViewMember, MemberId)> = gone;
        self.stillborn
            .extend(gone.into_iter().map(|(who, _)| who.id));
    }

    pub(super) fn follow_script(&mut self) {
        let plan = self.plan;
        let now = self.turn;
        let due = plan.script.iter().filter(|(turn, _)| *turn == now);
        for (_, deed) in due {
            let who = match *deed {
                Deed::Join => {
                    let newcomer = self.born();
                    self.joiners.push((newcomer, MemberId(0)));
                    continue;
                }
                Deed::Crash(who) | Deed::Pause(who, _) | Deed::Leave(who) | Deed::Update(who) => {
                    who
                }
            };
            let id = plan.id(who);
            let at = self.members.iter().position(|member| member.id == id);
            let Some(at) = at else {
                // It has not been let in, and now it never will be.
                if *deed == Deed::Crash(who) {
                    self.joiners.retain(|(joiner, _)| joiner.id != id);
                    self.stillborn.insert(id);
                }
                continue;
            };
            if !self.members[at].is_up() {
                continue;
            }
            match deed {
                Deed::Crash(_) => {}
                deed => self.tell(at, |_| format!("{deed:?}")),
            }
            match *deed {
                Deed::Crash(_) => self.end(at),
                Deed::Pause(_, turns) => self.members[at].paused_until = self.now + turns,
                Deed::Leave(_) => self.members[at].leave(),
                Deed::Update(_) => self.members[at].update(plan),
                Deed::Join => {}
            }
        }
    }

    /// What a member sends to another one stands still, for less or for more than the
    /// heartbeat timeout.
    fn cut_one_way(&mut self, at: usize) {
        let from = self.members[at].node;
        let nodes: Vec<NodeId> = self.nodes.values().copied().collect();
        let Some(&to) = self.rng.pick(&nodes) else {
            return;
        };
        if to == from {
            return;
        }
        let turns = self.rng.below(2 * self.plan.limit as usize);
        self.tell(at, |_| format!("is cut off from node {} one way", to.0));
        self.network.hold(from, to, true);
        self.cuts.push((self.turn + turns, from, to));
    }

    /// Cuts that are over: what was on its way lands from now on.
    pub(super) fn mend_cuts(&mut self) {
        let (turn, last) = (self.turn, self.plan.turns);
        let over = |(until, ..): &(usize, NodeId, NodeId)| *until <= turn || turn >= last;
        let (mended, cut) = core::mem::take(&mut self.cuts).into_iter().partition(over);
        self.cuts = cut;
        let mended: Vec<_> = mended;
        for (_, from, to) in mended {
            let again = |(_, a, b): &(usize, NodeId, NodeId)| (*a, *b) == (from, to);
            if !self.cuts.iter().any(again) {
                self.network.hold(from, to, false);
            }
        }
    }

    /// Two hosts lose each other, for good.
    fn divide(&mut self) {
        let host = |rng: &mut Rng, count| HostId(rng.below(count) as u128);
        let a = host(&mut self.rng, self.plan.hosts);
        let b = host(&mut self.rng, self.plan.hosts);
        if a == b || self.divided.contains(&(a, b)) {
            return;
        }
        self.divided.extend([(a, b), (b, a)]);
        for (left, one) in &self.nodes {
            for (right, other) in &self.nodes {
                if self.hosts[left] == a && self.hosts[right] == b {
                    self.network.sever(*one, *other);
                }
            }
        }
    }

    pub(super) fn end(&mut self, at: usize) {
        self.tell(at, |_| "dies".to_owned());
        let member = &mut self.members[at];
        member.is_down = true;
        self.network.crash(member.node);
    }
}
