//! Faults of members, at random and by the script, and forged rows of hostile members.

use spindle_dds_core::SubgroupSpec;
use spindle_dds_core::membership::{HostId, Member as ViewMember, MemberId};
use spindle_dds_transport::sim::{NodeId, Rng};

use super::World;
use crate::life::hostile::Target;
use crate::life::member::Member;
use crate::life::plan::Action;

impl World<'_> {
    pub(super) fn inject_faults(&mut self, at: usize) {
        let plan = self.plan;
        let fault_bias = self.fault_bias(at);
        if !self.members[at].is_up() {
            if self.rng.chance(plan.joins) && self.nodes.len() < plan.members_max {
                let newcomer = self.new_participant();
                self.joiners.push((newcomer, MemberId(0)));
            }
            return;
        }
        if self.rng.chance(plan.crashes * fault_bias) && self.is_crowd() {
            return self.end(at);
        }
        if self.rng.chance(plan.pauses * fault_bias) {
            let pause = self.rng.below(2 * plan.limit as usize) as u64;
            self.members[at].paused_until = self.now + pause;
        }
        if plan.cuts > 0.0 && self.rng.chance(plan.cuts * fault_bias) {
            self.cut_one_way(at);
        }
        if self.rng.chance(plan.divisions * fault_bias) {
            self.divide();
        }
        if self.rng.chance(plan.joins) && self.nodes.len() < plan.members_max {
            let newcomer = self.new_participant();
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

    pub(super) fn forge_rows(&mut self, at: usize) {
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
            .filter(|subgroup| subgroup.members.contains(&me));
        let key = |subgroup: &SubgroupSpec| member.epoch_key(subgroup.subgroup, subgroup.epoch);
        let segment = |subgroup: &SubgroupSpec| self.subgroups.get(&key(subgroup)).copied();
        let subgroups = mine.filter_map(|subgroup| Some((subgroup, segment(subgroup)?)));
        let target = Target {
            view,
            me,
            control: self.controls[&(view.id, member.branch)],
            subgroups: subgroups.collect(),
        };
        let preference = self.plan.seed as usize + member.id.0 as usize * 7;
        self.forger.act(&self.network, &target, preference);
    }

    /// Hostile members crash; what they have forged stays.
    pub(super) fn end_hostile_members(&mut self) {
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
        let stays = |(joiner, _): &(ViewMember, MemberId)| !self.plan.is_hostile(joiner.id);
        let (joiners, gone) = core::mem::take(&mut self.joiners)
            .into_iter()
            .partition(stays);
        self.joiners = joiners;
        let gone: Vec<(ViewMember, MemberId)> = gone;
        self.died_joining
            .extend(gone.into_iter().map(|(joiner, _)| joiner.id));
    }

    pub(super) fn follow_script(&mut self) {
        let plan = self.plan;
        let now = self.turn;
        let due = plan.script.iter().filter(|(turn, _)| *turn == now);
        for (_, action) in due {
            let number = match *action {
                Action::Join => {
                    let newcomer = self.new_participant();
                    self.joiners.push((newcomer, MemberId(0)));
                    continue;
                }
                Action::Crash(number)
                | Action::Pause(number, _)
                | Action::Leave(number)
                | Action::Update(number) => number,
            };
            let id = plan.id(number);
            let at = self.members.iter().position(|member| member.id == id);
            let Some(at) = at else {
                // It has not joined, and never will.
                if *action == Action::Crash(number) {
                    self.joiners.retain(|(joiner, _)| joiner.id != id);
                    self.died_joining.insert(id);
                }
                continue;
            };
            if !self.members[at].is_up() {
                continue;
            }
            match action {
                Action::Crash(_) => {}
                action => self.tell(at, |_| format!("{action:?}")),
            }
            match *action {
                Action::Crash(_) => self.end(at),
                Action::Pause(_, turns) => self.members[at].paused_until = self.now + turns,
                Action::Leave(_) => self.members[at].leave(),
                Action::Update(_) => self.members[at].update(plan),
                Action::Join => {}
            }
        }
    }

    /// Whether so many members are up that one may crash.
    pub(super) fn is_crowd(&self) -> bool {
        let up = self.members.iter().filter(|member| member.is_up());
        up.count() >= self.plan.crowd
    }

    /// Holds up what a member sends to another one, for less or more than the heartbeat timeout.
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

    /// Ends cuts that are over: what was held up lands from now on.
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

    /// Two hosts lose each other for good.
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
                    self.severed.extend([(*one, *other), (*other, *one)]);
                }
            }
        }
    }

    pub(super) fn end(&mut self, at: usize) {
        self.tell(at, |_| "dies".to_owned());
        self.count_crash(at);
        let member = &mut self.members[at];
        member.is_down = true;
        self.network.crash(member.node);
    }
}
