//! Subgroups are replaced, by an oracle: the world knows what members would have to
//! agree on, and takes each of them through its part at turns of its own.
//!
//! ```text
//!   gone members fenced, lanes wedged --word in the control row--> all have said it
//!   --> freeze --counts--> (oracle: the least of them) --> finish --> next lane
//! ```

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::{CONTROL_ROW_LEN, Counts, Layout, SubgroupSpec};
use spindle_dds_transport::sim::{NodeId, SegmentId};
use spindle_dds_transport::{Fabric, PeerSet, Rank};

use crate::invariants;
use crate::node::Blunder;
use crate::violation::Finding;
use crate::world::World;

/// Where a member says in its control row up to which change it is wedged.
const WEDGED_WORD: usize = CONTROL_ROW_LEN;
/// Bytes of a control row.
pub(crate) const ROW_LEN: usize = CONTROL_ROW_LEN + 128;

/// The present lane of a subgroup.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub(crate) spec: SubgroupSpec,
    segment: SegmentId,
}

/// A change under way.
#[derive(Debug)]
pub(crate) struct Change {
    number: u64,
    /// Indexes of subgroups.
    groups: Vec<usize>,
    /// Who does not go on.
    gone: BTreeSet<Rank>,
    /// Who has said that it is wedged.
    wedged: BTreeSet<Rank>,
    /// By subgroup and member.
    stages: BTreeMap<(usize, Rank), Stage>,
    /// By subgroup: where it is cut, and its next lane.
    cuts: BTreeMap<usize, (Vec<u64>, Option<Open>)>,
}

#[derive(Debug, Clone)]
enum Stage {
    Frozen(Counts),
    Finished,
    Installed,
}

impl World<'_> {
    /// Opens the first lanes, at all.
    pub(crate) fn open_lanes(&mut self) -> Result<(), Finding> {
        for group in &self.plan.groups {
            let spec = group.lane(0, 0, |_| true);
            let open = self.open(spec)?;
            for place in 0..open.spec.members.len() {
                let at = open.spec.members[place].index();
                let segment = self.network.fabric(open.segment, Rank(place as u16));
                self.nodes[at].add_lane(&open.spec, segment)?;
            }
            self.lanes.push(Some(open));
        }
        Ok(())
    }

    fn open(&self, spec: SubgroupSpec) -> Result<Open, Finding> {
        let layout = Layout::new(&spec).map_err(|error| ("X0", error.to_string()))?;
        let nodes = spec.members.iter().map(|rank| NodeId(rank.index()));
        let rows: Vec<_> = nodes.zip(layout.row_lens()).collect();
        let segment = self.network.open(&rows);
        Ok(Open { spec, segment })
    }

    /// Now and then a change begins, or somebody fails.
    pub(crate) fn stir(&mut self) {
        if self.change.is_some() {
            if self.rng.chance(self.plan.expel_chance * 0.01) {
                self.fail_during_change();
            }
            return;
        }
        let due = self.changes_left > 0 && self.rng.chance(self.plan.change_chance);
        let forced = self.lanes_have_dead() && self.rng.chance(0.05);
        let anybody = self.nodes.iter().any(|node| node.is_present());
        if (due || forced) && anybody && self.is_settled() {
            self.begin();
        }
    }

    /// Whether some lane has a member that has failed, and members that go on.
    pub(crate) fn lanes_have_dead(&self) -> bool {
        self.lanes.iter().flatten().any(|lane| {
            let nodes = || {
                lane.spec
                    .members
                    .iter()
                    .map(|rank| &self.nodes[rank.index()])
            };
            nodes().any(|node| node.dead || node.expelled) && nodes().any(|node| node.is_present())
        })
    }

    /// Whether everybody knows of all who have left: they cannot be asked any more.
    fn is_settled(&self) -> bool {
        let left = self.nodes.iter().filter(|node| node.left);
        let left: Vec<Rank> = left.map(|node| node.rank).collect();
        let mut present = self.nodes.iter().filter(|node| node.is_present());
        present.all(|node| {
            let known = node.engine.with_sink(|sink| sink.left.clone());
            let known = known.unwrap_or_default();
            left.iter().all(|rank| known.contains(rank))
        })
    }

    fn begin(&mut self) {
        self.changes_left = self.changes_left.saturating_sub(1);
        self.changes += 1;
        let expelled = self.rng.chance(self.plan.expel_chance);
        let victim = expelled.then(|| self.somebody()).flatten();
        if let Some(rank) = victim {
            // Some are dead, and some do not know that they are thought to be.
            let at = rank.index();
            self.nodes[at].expelled = true;
            if self.rng.chance(0.5) {
                self.crash(rank);
            }
        }
        let gone = self.nodes.iter().filter(|node| node.dead || node.expelled);
        let gone: BTreeSet<Rank> = gone.map(|node| node.rank).collect();
        let all = self.lanes_have_dead() || self.rng.chance(0.4);
        let alive: Vec<usize> = (0..self.lanes.len())
            .filter(|&at| self.lanes[at].is_some())
            .collect();
        let groups = alive.iter().copied();
        let groups = groups.filter(|_| all || self.rng.chance(0.5)).collect();
        self.change = Some(Change {
            number: self.changes as u64,
            groups,
            gone,
            wedged: BTreeSet::new(),
            stages: BTreeMap::new(),
            cuts: BTreeMap::new(),
        });
    }

    /// A member that can fail: somebody has to go on.
    fn somebody(&mut self) -> Option<Rank> {
        let present = self.nodes.iter().filter(|node| node.is_present());
        let present: Vec<Rank> = present.map(|node| node.rank).collect();
        (present.len() > 1).then(|| present[self.rng.below(present.len())])
    }

    pub(crate) fn crash(&mut self, rank: Rank) {
        self.network.crash(NodeId(rank.index()));
        self.nodes[rank.index()].dead = true;
    }

    /// Before anything is agreed on, who fails does not go on; afterwards it
    /// takes another change.
    fn fail_during_change(&mut self) {
        let Some(rank) = self.somebody() else { return };
        let Some(change) = &mut self.change else {
            return;
        };
        let partial = self.lanes.iter().flatten().count() > change.groups.len();
        if change.cuts.is_empty() && !partial {
            change.gone.insert(rank);
        }
        self.crash(rank);
    }

    /// A member does its part of the change.
    pub(crate) fn tend(&mut self, at: usize) -> Result<(), Finding> {
        let Some(mut change) = self.change.take() else {
            return Ok(());
        };
        if self.rng.chance(0.5) {
            self.advance(&mut change, at)?;
        }
        let over = change.groups.iter().all(|&group| {
            let mut present = self.members(group).into_iter();
            present.all(|rank| matches!(change.stages.get(&(group, rank)), Some(Stage::Installed)))
        });
        if !over {
            self.change = Some(change);
            return Ok(());
        }
        for group in change.groups {
            self.lanes[group] = change.cuts.remove(&group).and_then(|(_, next)| next);
        }
        Ok(())
    }

    /// Who takes part in the end of a lane.
    fn members(&self, group: usize) -> Vec<Rank> {
        let lane = self.lanes[group].iter();
        let members = lane.flat_map(|lane| lane.spec.members.iter().copied());
        members
            .filter(|rank| self.nodes[rank.index()].is_present())
            .collect()
    }

    fn advance(&mut self, change: &mut Change, at: usize) -> Result<(), Finding> {
        let rank = self.nodes[at].rank;
        for &gone in &change.gone {
            self.nodes[at].suspect(gone);
        }
        let groups: Vec<usize> = change.groups.clone();
        let mine = |group: &usize| self.members(*group).contains(&rank);
        let mut mine: Vec<usize> = groups.into_iter().filter(mine).collect();
        if mine.is_empty() {
            return Ok(());
        }
        if !change.wedged.contains(&rank) {
            if self.wedge(at, &mine, change.number) {
                change.wedged.insert(rank);
            }
            return Ok(());
        }
        if !self.sees_all_wedged(change, at) {
            return Ok(());
        }
        let group = mine.swap_remove(self.rng.below(mine.len()));
        self.cut(change, group)?;
        match change.stages.get(&(group, rank)).cloned() {
            None => self.freeze(change, group, at),
            Some(Stage::Frozen(counts)) => self.finish(change, group, at, &counts),
            Some(Stage::Finished) => self.install(change, group, at),
            Some(Stage::Installed) => Ok(()),
        }
    }

    fn wedge(&mut self, at: usize, groups: &[usize], number: u64) -> bool {
        let engine = &self.nodes[at].engine;
        let done = groups.iter().all(|&group| {
            let subgroup = self.plan.groups[group].subgroup;
            engine.with_lanes(|lanes| lanes.wedge(subgroup)) == Some(Ok(true))
        });
        if done {
            let control = engine.handle();
            let control = control.fabric();
            let all: PeerSet = (0..control.members() as u16).map(Rank).collect();
            control.push_word(WEDGED_WORD, number, &all);
            control.wake(&all, &PeerSet::EMPTY);
        }
        done
    }

    /// Whether all who go on have said here that they are wedged.
    fn sees_all_wedged(&self, change: &Change, at: usize) -> bool {
        let handle = self.nodes[at].engine.handle();
        let groups = change.groups.iter();
        let mut members = groups.flat_map(|&group| self.members(group));
        members.all(|rank| handle.fabric().row(rank).load(WEDGED_WORD) >= change.number)
    }

    fn freeze(&mut self, change: &mut Change, group: usize, at: usize) -> Result<(), Finding> {
        let node = &self.nodes[at];
        let subgroup = self.plan.groups[group].subgroup;
        let frozen = node.engine.with_lanes(|lanes| lanes.freeze(subgroup));
        match frozen {
            Some(Ok(counts)) => {
                change
                    .stages
                    .insert((group, node.rank), Stage::Frozen(counts));
                Ok(())
            }
            other => Err(("A6", format!("{} cannot freeze: {other:?}", node.rank))),
        }
    }

    /// Once all who go on are frozen: the cut, and the lane that comes after.
    fn cut(&mut self, change: &mut Change, group: usize) -> Result<(), Finding> {
        let Some(lane) = &self.lanes[group] else {
            return Ok(());
        };
        if change.cuts.contains_key(&group) {
            return Ok(());
        }
        let mut trim = vec![u64::MAX; lane.spec.senders.len()];
        for rank in self.members(group) {
            let Some(Stage::Frozen(counts)) = change.stages.get(&(group, rank)) else {
                return Ok(());
            };
            for (least, count) in trim.iter_mut().zip(counts.ordered()) {
                *least = (*least).min(*count);
            }
        }
        // Farewells have places of their own.
        let senders = lane.spec.senders.iter().zip(&trim);
        let left = |place: Rank| self.nodes[lane.spec.members[place.index()].index()].left;
        let taken = senders.map(|(sender, count)| count + u64::from(left(sender.rank)));
        let base = lane.spec.end(&taken.collect::<Vec<_>>());
        let present = |rank: Rank| self.nodes[rank.index()].is_present();
        let next = self.plan.groups[group].lane(change.number, base, present);
        let next = self.open(next)?;
        change.cuts.insert(group, (trim, Some(next)));
        Ok(())
    }

    fn finish(
        &mut self,
        change: &mut Change,
        group: usize,
        at: usize,
        own: &Counts,
    ) -> Result<(), Finding> {
        let Some((trim, _)) = change.cuts.get(&group) else {
            return Ok(());
        };
        let node = &self.nodes[at];
        let subgroup = self.plan.groups[group].subgroup;
        let trim = match self.plan.blunder {
            Some(Blunder::OwnTrim) => own.ordered(),
            _ => trim,
        };
        let finished = node.engine.with_lanes(|lanes| lanes.finish(subgroup, trim));
        if finished != Some(Ok(())) {
            return Err(("A6", format!("{} cannot finish: {finished:?}", node.rank)));
        }
        change.stages.insert((group, node.rank), Stage::Finished);
        self.check_lane_ends(at)?;
        self.check_node(at, false)
    }

    fn check_lane_ends(&mut self, at: usize) -> Result<(), Finding> {
        let node = &self.nodes[at];
        let ended = node
            .engine
            .with_sink(|sink| core::mem::take(&mut sink.ended));
        for end in ended.unwrap_or_default() {
            let mine = (end.end, end.digest);
            let key = (end.subgroup, end.epoch);
            let others = *self.ends.entry(key).or_insert(mine);
            invariants::ends_agree(node.rank, end.subgroup, end.epoch, [mine, others])?;
        }
        Ok(())
    }

    fn install(&mut self, change: &mut Change, group: usize, at: usize) -> Result<(), Finding> {
        let Some((_, Some(next))) = change.cuts.get(&group) else {
            return Ok(());
        };
        let rank = self.nodes[at].rank;
        let place = next.spec.members.iter().position(|member| *member == rank);
        if let Some(place) = place {
            let segment = self.network.fabric(next.segment, Rank(place as u16));
            self.nodes[at].add_lane(&next.spec, segment)?;
        }
        change.stages.insert((group, rank), Stage::Installed);
        Ok(())
    }
}
