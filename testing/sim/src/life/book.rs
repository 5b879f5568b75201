//! Where everything that happens is told: to the invariants, and to the history of the
//! applications.

use std::collections::BTreeSet;

use spindle_dds_core::membership::MemberId;

use super::client::{self, History};
use super::facts::Fact;
use super::invariants::{self, Invariant};
use crate::violation::Finding;

/// Who has to be told.
pub(super) struct Book {
    /// Whoever is hostile may do to itself what it likes, and to its messages.
    hostile: BTreeSet<MemberId>,
    invariants: Vec<Box<dyn Invariant>>,
    history: History,
    /// The one property that is judged, if not all are.
    only: Option<String>,
    pub(super) delivered: usize,
    pub(super) committed: usize,
}

impl Book {
    pub(super) fn new(may_branch: bool, only: Option<&str>) -> Self {
        Self {
            hostile: BTreeSet::new(),
            invariants: invariants::all(may_branch),
            history: History::default(),
            only: only.map(str::to_owned),
            delivered: 0,
            committed: 0,
        }
    }

    /// What this member does, and says, does not count.
    pub(super) fn is_hostile(&mut self, who: MemberId) {
        self.hostile.insert(who);
    }

    /// Something has happened.
    pub(super) fn tell(&mut self, fact: &Fact<'_>) -> Result<(), Finding> {
        match *fact {
            Fact::Committed { .. } => self.committed += 1,
            Fact::Delivered { .. } if !self.is_spoilt(fact) => self.delivered += 1,
            _ => {}
        }
        if self.hostile.is_empty() {
            return self.pass_on(fact);
        }
        if self.is_spoilt(fact) {
            return Ok(());
        }
        let counts = |id: &MemberId| !self.hostile.contains(id);
        match *fact {
            Fact::Delivered { to, what, lacking } => {
                let lacking: Vec<_> = lacking.iter().copied().filter(counts).collect();
                let lacking = &lacking;
                self.pass_on(&Fact::Delivered { to, what, lacking })
            }
            Fact::LaneAtRest { lane, members } => {
                let members: Vec<_> = members.iter().copied().filter(counts).collect();
                let members = &members;
                self.pass_on(&Fact::LaneAtRest { lane, members })
            }
            // The messages of the hostile are in it.
            Fact::LaneEnded {
                at,
                lane,
                next,
                position,
                ..
            } => self.pass_on(&Fact::LaneEnded {
                at,
                lane,
                next,
                position,
                digest: 0,
            }),
            _ => self.pass_on(fact),
        }
    }

    /// Whether it is of hostile members only, or of their messages.
    fn is_spoilt(&self, fact: &Fact<'_>) -> bool {
        let hostile = |id: MemberId| self.hostile.contains(&id);
        match *fact {
            Fact::Called { by, .. }
            | Fact::Committed { by, .. }
            | Fact::NotSent { by, .. }
            | Fact::Awaited { by, .. }
            | Fact::Abandoned { by, .. }
            | Fact::Acknowledged { by, .. } => hostile(by),
            Fact::Delivered { to, what, .. } => hostile(to) || hostile(what.sender),
            Fact::LaneEnded { at, .. } | Fact::ViewBegun { at, .. } => hostile(at),
            Fact::Stopped { who, .. } => hostile(who),
            Fact::ViewEnded { .. }
            | Fact::ViewKnown { .. }
            | Fact::Refused { .. }
            | Fact::Settled { .. }
            | Fact::LaneAtRest { .. }
            | Fact::RingAtRest { .. }
            | Fact::Woken { .. }
            | Fact::Over => false,
        }
    }

    fn pass_on(&mut self, fact: &Fact<'_>) -> Result<(), Finding> {
        self.history.heed(fact);
        for invariant in &mut self.invariants {
            let held = invariant.heed(fact);
            let counts = self.only.as_deref().is_none_or(|id| id == invariant.id());
            if let (Err(what), true) = (held, counts) {
                return Err((invariant.id(), what));
            }
        }
        Ok(())
    }

    /// Operations that were acknowledged, that were refused, and of which neither is known.
    pub(super) fn outcomes(&self) -> [usize; 3] {
        self.history.outcomes()
    }

    /// Judges the history of the applications: in its middle, or, with those who live in
    /// the end, as a whole.
    pub(super) fn judge(&self, survivors: Option<&BTreeSet<MemberId>>) -> Result<(), Finding> {
        client::judge(&self.history, survivors, self.only.as_deref())
    }
}
