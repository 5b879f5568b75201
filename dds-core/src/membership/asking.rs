//! Requests of members, and the leader's intent: the subgroups that it is about to replace.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use spindle_dds_transport::{Fabric, Rank};

use super::proposal::{
    Added, Notes, Proposal, ReadRequest, RemovalReason, Request, RequestId, Touched, Update,
};
use super::protocol::{Membership, SubgroupEnds};
use super::row::{ProtocolViolation, Text};
use crate::ids::SubgroupId;

/// Cause of suspicion: a request that cannot be read.
pub(super) const INVALID_REQUEST: &str = "its request violates the protocol";

impl<F: Fabric> Membership<F> {
    pub(super) fn publish_requests(&mut self) {
        if self.requests.is_empty() || self.rows.has(self.me, Text::Request) {
            return;
        }
        // As many as fit into the row; the others wait for the next view.
        let mut said = Vec::new();
        for request in &self.requests {
            let bytes = written(request);
            if said.len() + bytes.len() > Text::Request.len_max() {
                break;
            }
            said.extend(bytes);
        }
        self.rows.publish_text(Text::Request, &said);
    }

    /// Whether this member wants to leave and is the last one.
    pub(super) fn is_last_leaving(&self) -> bool {
        self.trusted().len() == 1
            && self.all_members().len() == 1
            && self.requests.contains(&Request::Leave)
    }

    /// A proposal of what the trusted members request, as far as one view can fulfil or refuse it.
    /// With `inside`, it touches no other subgroups than these. Fails with the member whose request
    /// violates the protocol.
    pub(super) fn merge_requests(
        &self,
        inside: Option<&BTreeSet<SubgroupId>>,
    ) -> Result<Proposal, Rank> {
        let mut proposal = Proposal::empty(self.view.id);
        for rank in self.suspected.iter() {
            let cause = self
                .suspicion_causes
                .get(&rank)
                .cloned()
                .unwrap_or_default();
            proposal.remove(rank, RemovalReason::Failed(cause));
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

    /// Publishes the leader's intent, if anything is requested.
    pub(super) fn announce_intent(&mut self, subgroups: &mut impl SubgroupEnds) {
        let quiet = self.suspected.is_empty() && !self.rows.has(self.me, Text::Intent);
        if !quiet || !self.is_anything_requested() {
            return;
        }
        let proposal = match self.merge_requests(None) {
            Ok(proposal) => proposal,
            Err(rank) => return self.suspect(rank, INVALID_REQUEST, subgroups),
        };
        if proposal.is_empty() {
            return;
        }
        let ids: Vec<u32> = match proposal.touched(&self.view) {
            Touched::All => self
                .view
                .subgroups
                .iter()
                .map(|group| group.subgroup.0)
                .collect(),
            Touched::Only(some) => some.iter().map(|id| id.0).collect(),
        };
        match postcard::to_allocvec(&ids) {
            Ok(bytes) if bytes.len() <= Text::Intent.len_max() => {
                self.rows.publish_text(Text::Intent, &bytes);
            }
            _ => {}
        }
    }

    fn is_anything_requested(&self) -> bool {
        let mut ranks = self.trusted().iter();
        ranks.any(|rank| self.rows.has(rank, Text::Request))
    }

    pub(super) fn read_intent(&mut self, subgroups: &mut impl SubgroupEnds) {
        let leader = self.leader();
        if self.intent.is_some() || !self.suspected.is_empty() {
            return;
        }
        let intent = match self.rows.text(leader, Text::Intent) {
            Ok(None) => return,
            Ok(Some(bytes)) => {
                postcard::from_bytes::<Vec<u32>>(&bytes).map_err(|_| ProtocolViolation)
            }
            Err(violation) => Err(violation),
        };
        match intent {
            Ok(ids) => {
                let ids: BTreeSet<_> = ids.into_iter().map(SubgroupId).collect();
                self.intent = Some(Touched::Only(ids));
            }
            Err(ProtocolViolation) => {
                self.suspect(leader, "its intent violates the protocol", subgroups)
            }
        }
    }
}

/// A request as it stands in a row.
#[derive(Serialize, Deserialize)]
enum EncodedRequest {
    Whole(Request),
    TooLong(RequestId),
    /// An update with notes, which most updates do not have.
    WithNotes(Update, Notes),
}

/// Encodes a request.
fn written(request: &Request) -> Vec<u8> {
    // Encoding into memory does not fail.
    let bytes = |said| postcard::to_allocvec(&said).unwrap_or_default();
    let whole = bytes(match request {
        Request::Update(update) if update.notes != Notes::default() => {
            EncodedRequest::WithNotes(update.clone(), update.notes.clone())
        }
        _ => EncodedRequest::Whole(request.clone()),
    });
    match request.id() {
        Some(asked) if whole.len() > Text::Request.len_max() => {
            bytes(EncodedRequest::TooLong(asked))
        }
        _ => whole,
    }
}

/// Decodes the requests in a row, which follow each other.
fn read(mut said: &[u8]) -> Option<Vec<ReadRequest>> {
    let mut all = Vec::new();
    while !said.is_empty() {
        let (one, rest) = postcard::take_from_bytes(said).ok()?;
        all.push(match one {
            EncodedRequest::Whole(request) => ReadRequest::Whole(request),
            EncodedRequest::TooLong(asked) => ReadRequest::TooLong(asked),
            EncodedRequest::WithNotes(update, notes) => {
                ReadRequest::Whole(Request::Update(Update { notes, ..update }))
            }
        });
        said = rest;
    }
    Some(all)
}

/// Whether a proposal fits into a row with its trims.
fn fits(proposal: &Proposal) -> bool {
    // Half of the area is for the trims.
    proposal.to_bytes().len() <= Text::Proposal.len_max() / 2
}
