//! The sequence of views, and its branches.

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::membership::{Proposal, View};

/// Views branch where divided hosts go on as groups of their own. The first branch is 0.
#[derive(Debug, Default)]
pub(super) struct Branches {
    /// By number and branch.
    views: BTreeSet<(u64, u64)>,
    /// The proposals that ended a view, by number and branch, each with the branch that goes on.
    endings: BTreeMap<(u64, u64), Vec<(Proposal, u64)>>,
    branches: u64,
}

impl Branches {
    pub(super) fn view(&mut self, branch: u64, view: &View) {
        self.views.insert((view.id, branch));
    }

    pub(super) fn views(&self) -> usize {
        self.views.len()
    }

    /// Number of groups that have gone on apart from the first.
    pub(super) fn branches(&self) -> u64 {
        self.branches
    }

    /// Whether a member has gone on from this view.
    pub(super) fn is_changing(&self, view: Option<&View>) -> bool {
        let later = |view: &View| (view.id + 1, 0)..=(view.id + 1, u64::MAX);
        view.is_some_and(|view| self.views.range(later(view)).next().is_some())
    }

    /// The branch that goes on from a view that ends by this proposal, and whether it is the first
    /// to do so.
    pub(super) fn ending(&mut self, branch: u64, proposal: &Proposal) -> (u64, bool) {
        let endings = self.endings.entry((proposal.view, branch)).or_default();
        if let Some((_, next)) = endings.iter().find(|(known, _)| known == proposal) {
            return (*next, false);
        }
        let next = if endings.is_empty() {
            branch
        } else {
            self.branches += 1;
            self.branches
        };
        endings.push((proposal.clone(), next));
        (next, true)
    }
}
