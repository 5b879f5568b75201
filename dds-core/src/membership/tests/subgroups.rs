//! Subgroups that are counters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spindle_dds_transport::Rank;

use crate::membership::{MemberId, SubgroupEnds, Touched, Trim, View};
use crate::spec::SubgroupSpec;

/// What every member has of every sender: the truth, which no member knows.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// By epoch (subgroup, number) and sender.
    pub(super) sent: BTreeMap<(u32, u64), BTreeMap<MemberId, u64>>,
    /// By epoch, receiver and sender.
    pub(super) received: BTreeMap<(u32, u64), BTreeMap<MemberId, BTreeMap<MemberId, u64>>>,
}

/// One member's subgroups.
#[derive(Debug)]
pub(super) struct Mock {
    id: MemberId,
    pub(super) view: Arc<View>,
    pub(super) counters: Counters,
    pub(super) wedged: BTreeSet<(u32, u64)>,
    pub(super) frozen: BTreeSet<(u32, u64)>,
    pub(super) fenced: BTreeSet<MemberId>,
    pub(super) slow: u32,
    /// Whether its report leaves out all subgroups.
    pub(super) omits_report: bool,
    /// What others have sent, as far as it is visible here.
    pub(super) visible: BTreeMap<(u32, u64), BTreeMap<MemberId, u64>>,
}

impl Mock {
    pub(super) fn new(id: MemberId, view: Arc<View>) -> Self {
        Self {
            id,
            view,
            counters: Counters::default(),
            wedged: BTreeSet::new(),
            frozen: BTreeSet::new(),
            fenced: BTreeSet::new(),
            slow: 0,
            omits_report: false,
            visible: BTreeMap::new(),
        }
    }

    /// The subgroups of `which` that this member is in.
    pub(super) fn mine(&self, which: &Touched) -> Vec<SubgroupSpec> {
        let me = self.view.rank(self.id);
        let groups = self.view.subgroups.iter();
        let mine = groups.filter(|group| which.contains(group.subgroup));
        let member = |group: &&SubgroupSpec| me.is_some_and(|me| group.members.contains(&me));
        mine.filter(member).cloned().collect()
    }
}

/// The key of a subgroup epoch.
pub(super) fn epoch_key(group: &SubgroupSpec) -> (u32, u64) {
    (group.subgroup.0, group.epoch)
}

/// The senders of a subgroup, in its order.
pub(super) fn senders<'a>(
    view: &'a View,
    group: &'a SubgroupSpec,
) -> impl Iterator<Item = MemberId> + 'a {
    group
        .senders
        .iter()
        .map(|sender| view.members[group.members[sender.rank.index()].index()].id)
}

impl SubgroupEnds for Mock {
    fn wedge(&mut self, which: &Touched) -> bool {
        if self.slow > 0 {
            self.slow -= 1;
            return false;
        }
        let mine = self.mine(which);
        self.wedged.extend(mine.iter().map(epoch_key));
        true
    }

    fn freeze(&mut self, which: &Touched) -> Result<Vec<Trim>, (Rank, String)> {
        if self.omits_report {
            return Ok(Vec::new());
        }
        let view = self.view.clone();
        let groups = self.mine(which);
        let trim = |group: &SubgroupSpec| {
            let epoch = epoch_key(group);
            let first = self.frozen.insert(epoch);
            let counts = senders(&view, group).map(|sender| {
                let have = self.counters.received.entry(epoch).or_default();
                let have = have.entry(self.id).or_default().entry(sender).or_default();
                if first && !self.fenced.contains(&sender) {
                    let visible = self.visible.get(&epoch).and_then(|sent| sent.get(&sender));
                    *have = (*have).max(visible.copied().unwrap_or(0));
                }
                *have
            });
            Trim {
                subgroup: group.subgroup,
                counts: counts.collect(),
            }
        };
        Ok(groups.iter().map(trim).collect())
    }

    fn fence(&mut self, member: Rank) {
        self.fenced.insert(self.view.members[member.index()].id);
    }
}
