//! What lies outside of the processes: admission of newcomers, segments, and the domain's records.

use std::sync::Arc;

use spindle_dds_core::membership::{
    CONTROL_ROW_LEN, Decision, MemberId, Preparation, Proposal, Request, RequestId, View,
};
use spindle_dds_core::{EpochMemory, PreparedSubgroup, PreparedView, SegmentLayout};
use spindle_dds_transport::Rank;
use spindle_dds_transport::sim::SimFabric;

use super::World;
use crate::life::facts::Fact;
use crate::life::record::DomainRecord;
use crate::violation::Finding;

impl World<'_> {
    /// A newcomer asks a member, and another one if that member is gone.
    pub(super) fn sponsor_newcomers(&mut self) {
        let up: Vec<usize> = (0..self.members.len())
            .filter(|&at| self.members[at].is_up() && !self.members[at].is_leaving)
            .collect();
        let Some(&sponsor) = self.rng.pick(&up) else {
            // They would found a group of their own, which is another life.
            if self.plan.returns > 0.0 && self.members.iter().all(|member| !member.is_up()) {
                self.joiners.clear();
            }
            return;
        };
        let alive = |id: MemberId| up.iter().any(|&at| self.members[at].id == id);
        let waiting = self.joiners.iter().position(|(_, asked)| !alive(*asked));
        if let Some(at) = waiting {
            let sponsor = &self.members[sponsor];
            self.joiners[at].1 = sponsor.id;
            let newcomer = self.joiners[at].0.clone();
            sponsor.engine.request(Request::Join(newcomer));
        }
    }

    /// A member begins to prepare a view that is about to be proposed.
    pub(super) fn prepare_ahead(&mut self, at: usize, preparation: Preparation) {
        let when = self.now + self.long_preparation();
        let lacks = self.what_lacks(at, &preparation.proposal);
        let answer = lacks.map_or(Ok(()), Err);
        self.members[at].answering = Some((preparation, answer, when));
    }

    /// What a member, or a newcomer that it sponsors, lacks for a view.
    fn what_lacks(&mut self, at: usize, proposal: &Proposal) -> Option<String> {
        let plan = self.plan;
        let me = self.members[at].id;
        for request in proposal.additions() {
            if let Some(lacks) = plan.always_lacks(me, request) {
                return Some(lacks);
            }
            let RequestId::Join(id) = request else {
                continue;
            };
            let mut sponsored = self.joiners.iter();
            let is_sponsor = sponsored.any(|(joiner, asked)| joiner.id == id && *asked == me);
            if self.died_joining.contains(&id) {
                return Some(format!("lacking: {} is not reached by {}", id.0, me.0));
            }
            if is_sponsor && let Some(lacks) = plan.always_lacks(id, request) {
                return Some(lacks);
            }
        }
        let lacks = plan.lacking > 0.0 && self.odds.chance(plan.lacking);
        lacks.then(|| format!("lacking: {} has no room now", me.0))
    }

    /// A member answers what it has prepared.
    pub(super) fn answer(&mut self, at: usize) -> Result<(), Finding> {
        let now = self.now;
        let answering = self.members[at]
            .answering
            .take_if(|(.., when)| *when <= now);
        let Some((preparation, answer, _)) = answering else {
            return Ok(());
        };
        let member = &self.members[at];
        let (by, branch, proposal) = (member.id, member.branch, &*preparation.proposal);
        member.engine.prepared(preparation.number, answer.clone());
        if let Err(lacks) = &answer {
            self.tell(at, |_| lacks.clone());
        }
        let answer = &answer;
        self.checkers.tell(&Fact::Prepared {
            by,
            branch,
            proposal,
            answer,
        })
    }

    /// How long it takes to make segments with all members.
    pub(super) fn long_preparation(&mut self) -> u64 {
        let delay = self.rng.below(100) as u64;
        delay.max(self.preparation_delay())
    }

    /// The first member to prepare a segment makes it.
    pub(super) fn prepare(
        &mut self,
        at: usize,
        view: Arc<View>,
    ) -> Result<PreparedView<SimFabric>, Finding> {
        let id = self.members[at].id;
        let node = |rank: &Rank| self.nodes[&view.members[rank.index()].id];
        let ranks: Vec<Rank> = (0..view.members.len() as u16).map(Rank).collect();
        let rows: Vec<_> = ranks
            .iter()
            .map(|rank| (node(rank), CONTROL_ROW_LEN))
            .collect();
        let network = &self.network;
        let control = *self
            .controls
            .entry((view.id, self.members[at].branch))
            .or_insert_with(|| network.open_control(&rows));
        let me = view.rank(id).unwrap_or(Rank(0));
        let mut subgroups = Vec::new();
        for subgroup in view
            .subgroups
            .iter()
            .filter(|subgroup| subgroup.epoch == view.id)
        {
            let Some(place) = subgroup.members.iter().position(|rank| *rank == me) else {
                continue;
            };
            let layout = SegmentLayout::new(subgroup).map_err(|error| ("X2", error.to_string()))?;
            let lens = layout.row_lens();
            let rows: Vec<_> = subgroup.members.iter().map(node).zip(lens).collect();
            let key = self.members[at].epoch_key(subgroup.subgroup, subgroup.epoch);
            let segment = *self
                .subgroups
                .entry(key)
                .or_insert_with(|| network.open(&rows));
            let place = Rank(place as u16);
            let memory = EpochMemory::new(subgroup, place);
            subgroups.push(PreparedSubgroup {
                subgroup: subgroup.subgroup,
                segment: network.fabric(segment, place),
                memory: memory.map_err(|error| ("X2", error.to_string()))?,
            });
        }
        Ok(PreparedView {
            control: network.fabric(control, me),
            view,
            subgroups,
        })
    }

    /// Compare-and-set in the host's record. With several hosts the majority has decided, and the
    /// record only serves newcomers.
    pub(super) fn decide(&mut self, at: usize, decision: &Decision) {
        let Decision { next, digest } = decision;
        let member = &self.members[at];
        let host = self.hosts[&member.id];
        let ends = member.view.as_ref();
        let one_host = ends.is_some_and(|view| view.members.iter().all(|one| one.host == host));
        let by = member.id;
        let record = self.records.get_mut(&host);
        let answer = match record {
            Some(record) if one_host => record.decide(by, next, *digest),
            _ => self.note(at, next, *digest),
        };
        self.members[at].engine.decided(answer);
        // Crashes are likeliest here: the view is decided, and no member has been told.
        let plan = self.plan;
        let running = self.turn < plan.turns;
        let chance = (10.0 * plan.crashes * plan.fault_bias).min(0.3);
        if running && self.rng.chance(chance) && self.is_crowd() {
            self.end(at);
        }
    }

    /// Notes a decision in the record of a member's host.
    pub(super) fn note(&mut self, at: usize, view: &Arc<View>, digest: u64) -> Result<(), String> {
        let by = self.members[at].id;
        let host = self.hosts[&by];
        let (members, hosts) = (&self.members, &self.hosts);
        let lives = |id: MemberId| {
            let mut others = members.iter().filter(|it| it.id != by && it.is_up());
            others.any(|it| it.id == id && hosts[&id] == host)
        };
        let new = || DomainRecord::new(view.clone(), digest);
        let record = self.records.entry(host).or_insert_with(new);
        record.follow(by, view, digest, lives)
    }
}
