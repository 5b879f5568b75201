//! What members ask for, and the leader's word of what it is about to replace.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use spindle_dds_transport::{Fabric, Rank};

use super::proposal::{Added, Asked, Asking, Notes, Proposal, Request, Touched, Update, Why};
use super::protocol::{LaneEnds, Membership};
use super::row::{ProtocolViolation, Text};
use crate::ids::SubgroupId;

/// Why somebody is suspected whose requests cannot be read.
pub(super) const ASKS_NONSENSE: &str = "what it asks for makes no sense";

impl<F: Fabric> Membership<F> {
    pub(super) fn ask(&mut self) {
        if self.requests.is_empty() || self.rows.has(self.me, Text::Request) {
            return;
        }
        // As many as there is room for; the others wait for the next view.
        let mut said = Vec::new();
        for request in &self.requests {
            let bytes = written(request);
            if said.len() + bytes.len() > Text::Request.len_max() {
                break;
            }
            said.extend(bytes);
        }
        self.rows.tell(Text::Request, &said);
    }

    /// Whether this member wants to leave and nobody else is left.
    pub(super) fn leaves_alone(&self) -> bool {
        self.trusted().len() == 1
            && self.everybody().len() == 1
            && self.requests.contains(&Request::Leave)
    }

    /// What all that are trusted ask for, as far as it can be done in one view, or
    /// never; with `inside`, as far as it replaces no other subgroups than these. Fails
    /// with who asks for nonsense.
    pub(super) fn requested(
        &self,
        inside: Option<&BTreeSet<SubgroupId>>,
    ) -> Result<Proposal, Rank> {
        let mut proposal = Proposal::empty(self.view.id);
        for rank in self.suspected.iter() {
            let cause = self.causes.get(&rank).cloned().unwrap_or_default();
            proposal.remove(rank, Why::Failed(cause));
        }
        for rank in self.trusted().iter() {
            let text = self.rows.text(rank, Text::Request).map_err(|_| rank)?;
            for asking in read(&text.unwrap_or_default()).ok_or(rank)? {
                let before = proposal.clone();
                let added = proposal.add(&self.view, rank, &asking, inside);
                if !fits(&proposal) {
                    // The rest waits for the next view.
                    return Ok(before);
                }
                if added.map_err(|ProtocolViolation| rank)? == Added::Waits {
                    break;
                }
            }
        }
        Ok(proposal)
    }

    /// The leader says what it is about to replace.
    pub(super) fn intend(&mut self, lanes: &mut impl LaneEnds) {
        let quiet = self.suspected.is_empty() && !self.rows.has(self.me, Text::Intent);
        if !quiet || !self.anybody_asks() {
            return;
        }
        let proposal = match self.requested(None) {
            Ok(proposal) => proposal,
            Err(rank) => return self.suspect(rank, ASKS_NONSENSE, lanes),
        };
        if proposal.is_empty() {
            return;
        }
        let ids: Vec<u32> = match proposal.touched(&self.view) {
            Touched::All => self
                .view
                .lanes
                .iter()
                .map(|group| group.subgroup.0)
                .collect(),
            Touched::Only(some) => some.iter().map(|id| id.0).collect(),
        };
        match postcard::to_allocvec(&ids) {
            Ok(bytes) if bytes.len() <= Text::Intent.len_max() => {
                self.rows.tell(Text::Intent, &bytes);
            }
            _ => {}
        }
    }

    fn anybody_asks(&self) -> bool {
        let mut ranks = self.trusted().iter();
        ranks.any(|rank| self.rows.has(rank, Text::Request))
    }

    pub(super) fn heed_intent(&mut self, lanes: &mut impl LaneEnds) {
        let leader = self.leader();
        if self.intent.is_some() || !self.suspected.is_empty() {
            return;
        }
        let intent = match self.rows.text(leader, Text::Intent) {
            Ok(None) => return,
            Ok(Some(bytes)) => {
                postcard::from_bytes::<Vec<u32>>(&bytes).map_err(|_| ProtocolViolation)
            }
            Err(nonsense) => Err(nonsense),
        };
        match intent {
            Ok(ids) => {
                let ids: BTreeSet<_> = ids.into_iter().map(SubgroupId).collect();
                self.intent = Some(Touched::Only(ids));
            }
            Err(ProtocolViolation) => self.suspect(leader, "its intent makes no sense", lanes),
        }
    }
}

/// A request as it stands in a row.
#[derive(Serialize, Deserialize)]
enum Said {
    Plainly(Request),
    TooLong(Asked),
    /// An update that notes something.
    Noting(Update, Notes),
}

/// A request as it is said.
fn written(request: &Request) -> Vec<u8> {
    // Nothing in it can fail to be written into memory.
    let bytes = |said| postcard::to_allocvec(&said).unwrap_or_default();
    let whole = bytes(match request {
        Request::Update(update) if update.notes != Notes::default() => {
            Said::Noting(update.clone(), update.notes.clone())
        }
        _ => Said::Plainly(request.clone()),
    });
    match request.asked() {
        Some(asked) if whole.len() > Text::Request.len_max() => bytes(Said::TooLong(asked)),
        _ => whole,
    }
}

/// The requests that were said, one behind the other.
fn read(mut said: &[u8]) -> Option<Vec<Asking>> {
    let mut all = Vec::new();
    while !said.is_empty() {
        let (one, rest) = postcard::take_from_bytes(said).ok()?;
        all.push(match one {
            Said::Plainly(request) => Asking::Plainly(request),
            Said::TooLong(asked) => Asking::TooLong(asked),
            Said::Noting(update, notes) => {
                Asking::Plainly(Request::Update(Update { notes, ..update }))
            }
        });
        said = rest;
    }
    Some(all)
}

/// Whether a proposal can be said, trims and all.
fn fits(proposal: &Proposal) -> bool {
    // Half of the room is for the trims.
    proposal.to_bytes().len() <= Text::Proposal.len_max() / 2
}
