//! What lies outside of the processes: admission of newcomers, segments, and the domain's records.

use std::sync::Arc;

use spindle_dds_core::membership::{CONTROL_ROW_LEN, Decision, MemberId, Request, View};
use spindle_dds_core::{PreparedView, SegmentLayout};
use spindle_dds_transport::Rank;
use spindle_dds_transport::sim::SimFabric;

use super::World;
use crate::life::record::DomainRecord;
use crate::violation::Finding;

impl World<'_> {
    /// A newcomer asks a member, and another one if that member is gone.
    pub(super) fn sponsor_newcomers(&mut self) {
        let up: Vec<usize> = (0..self.members.len())
            .filter(|&at| self.members[at].is_up() && !self.members[at].is_leaving)
            .collect();
        let Some(&sponsor) = self.rng.pick(&up) else {
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
            subgroups.push((
                subgroup.subgroup,
                network.fabric(segment, Rank(place as u16)),
            ));
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
        if running
            && self
                .rng
                .chance((10.0 * plan.crashes * plan.fault_bias).min(0.3))
        {
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
