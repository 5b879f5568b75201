//! Passes every fact of a life to the invariants, and to the history of the applications.

use std::collections::BTreeSet;

use spindle_dds_core::membership::MemberId;

use super::client::{self, History};
use super::facts::Fact;
use super::invariants::{self, Invariant};
use super::storage::StorageFact;
use crate::violation::Finding;

/// All checkers of a life.
pub(super) struct Checkers {
    /// Hostile members: what they do to themselves and to their messages does not count.
    hostile: BTreeSet<MemberId>,
    invariants: Vec<Box<dyn Invariant>>,
    history: History,
    /// The one property that is judged, if not all are.
    only: Option<String>,
    pub(super) delivered: usize,
    pub(super) committed: usize,
    /// Records of history that readers have shown.
    pub(super) historical: usize,
}

impl Checkers {
    pub(super) fn new(may_branch: bool, only: Option<&str>) -> Self {
        Self {
            hostile: BTreeSet::new(),
            invariants: invariants::all(may_branch),
            history: History::default(),
            only: only.map(str::to_owned),
            delivered: 0,
            committed: 0,
            historical: 0,
        }
    }

    /// Facts of this member do not count.
    pub(super) fn is_hostile(&mut self, member: MemberId) {
        self.hostile.insert(member);
    }

    /// Records a fact.
    pub(super) fn tell(&mut self, fact: &Fact<'_>) -> Result<(), Finding> {
        match *fact {
            Fact::Committed { .. } => self.committed += 1,
            Fact::Storage(StorageFact::Shown {
                transfer: Some(_), ..
            }) => self.historical += 1,
            Fact::Delivered { .. } if !self.concerns_hostile(fact) => self.delivered += 1,
            _ => {}
        }
        if self.hostile.is_empty() {
            return self.notify(fact);
        }
        if self.concerns_hostile(fact) {
            return Ok(());
        }
        let counts = |id: &MemberId| !self.hostile.contains(id);
        match *fact {
            Fact::Delivered { to, what, lacking } => {
                let lacking: Vec<_> = lacking.iter().copied().filter(counts).collect();
                let lacking = &lacking;
                self.notify(&Fact::Delivered { to, what, lacking })
            }
            Fact::EpochAtRest { epoch, members } => {
                let members: Vec<_> = members.iter().copied().filter(counts).collect();
                let members = &members;
                self.notify(&Fact::EpochAtRest { epoch, members })
            }
            // It covers messages of hostile members.
            Fact::EpochEnded {
                at,
                epoch,
                next,
                position,
                ..
            } => self.notify(&Fact::EpochEnded {
                at,
                epoch,
                next,
                position,
                digest: 0,
            }),
            _ => self.notify(fact),
        }
    }

    /// Whether a fact concerns only hostile members or their messages.
    fn concerns_hostile(&self, fact: &Fact<'_>) -> bool {
        let hostile = |id: MemberId| self.hostile.contains(&id);
        match *fact {
            Fact::Called { by, .. }
            | Fact::Committed { by, .. }
            | Fact::NotSent { by, .. }
            | Fact::Awaited { by, .. }
            | Fact::Abandoned { by, .. }
            | Fact::Acknowledged { by, .. } => hostile(by),
            Fact::Delivered { to, what, .. } => hostile(to) || hostile(what.sender),
            Fact::EpochEnded { at, .. } | Fact::ViewBegun { at, .. } => hostile(at),
            Fact::Stopped { member, .. } | Fact::Returned { was: member, .. } => hostile(member),
            Fact::Prepared { .. }
            | Fact::ViewEnded { .. }
            | Fact::ViewKnown { .. }
            | Fact::Refused { .. }
            | Fact::Settled { .. }
            | Fact::EpochAtRest { .. }
            | Fact::RingAtRest { .. }
            | Fact::Woken { .. }
            | Fact::Storage(_)
            | Fact::Over => false,
        }
    }

    fn notify(&mut self, fact: &Fact<'_>) -> Result<(), Finding> {
        self.history.observe(fact);
        for invariant in &mut self.invariants {
            let held = invariant.observe(fact);
            let counts = self.only.as_deref().is_none_or(|id| id == invariant.id());
            if let (Err(what), true) = (held, counts) {
                return Err((invariant.id(), what));
            }
        }
        Ok(())
    }

    /// Numbers of operations that were acknowledged, refused, and unknown.
    pub(super) fn outcomes(&self) -> [usize; 3] {
        self.history.outcomes()
    }

    /// Judges the history of the applications: halfway, or as a whole with the survivors.
    pub(super) fn judge(&self, survivors: Option<&BTreeSet<MemberId>>) -> Result<(), Finding> {
        client::judge(&self.history, survivors, self.only.as_deref())
    }
}
