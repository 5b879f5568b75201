//! Requests of members, in their rows, and what one view can make of them.
//!
//! A member appends requests to its row while there is room. A refused request stays there until
//! the view ends; if that end does not settle it, as another leader has made it, its member says
//! in the next view that it was refused, in its turn. So an update is refused once, and the
//! numbers of updates go on.
//!
//! Requests that are published at once are compressed together: the text is a list of such packs,
//! each with its length before it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use spindle_dds_transport::{Fabric, Rank};

use super::compression::{compress, decompress};
use super::merge::{Asked, Merge};
use super::proposal::{
    Notes, Proposal, ReadRequest, Refusal, RemovalReason, Request, RequestId, Update,
};
use super::protocol::Membership;
use super::row::Text;
use super::view::MemberId;
use crate::limits::{CHANGES_LEN_MAX, REQUEST_LEN_MAX};

/// Cause of suspicion: a request that cannot be read.
pub(super) const INVALID_REQUEST: &str = "its request violates the protocol";

/// A request of this member that no view has settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRequest {
    pub(super) request: Request,
    /// Why it is refused, if it is; its member has been told.
    pub(super) refusal: Option<Refusal>,
}

impl From<Request> for OpenRequest {
    fn from(request: Request) -> Self {
        let refusal = None;
        Self { request, refusal }
    }
}

/// Which requests a proposal takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All that fit, but at most so many that ask for more than the members have, and so many
    /// newcomers.
    Announced {
        additions_max: usize,
        joins_max: usize,
    },
    /// Only those that need no preparation.
    Removals,
}

impl<F: Fabric> Membership<F> {
    /// Appends requests to this member's row, as many as fit; the others wait for the next view.
    pub(super) fn publish_requests(&mut self) {
        while !self.is_request_row_full && self.requests_published < self.requests.len() {
            self.publish_pack_of_requests();
        }
    }

    fn publish_pack_of_requests(&mut self) {
        let mut open = Vec::new();
        for asks in &mut self.requests[self.requests_published..] {
            let asked = asks.request.id();
            let known = |refusal: &&Refusal| Some(refusal.request) == asked;
            if asks.refusal.is_none()
                && let Some(refusal) = self.refusals.iter().find(known)
            {
                asks.refusal = Some(refusal.clone());
                self.refused.push((asks.request.clone(), refusal.clone()));
                open.push(Vec::new());
                continue;
            }
            open.push(written(asks));
        }
        let (count, pack, len) = self.pack_of_first(&open);
        self.requests_published += count;
        self.is_request_row_full = count == 0;
        if pack.is_empty() {
            return;
        }
        let len_before = self.request_text.len();
        self.request_text.extend(pack);
        self.requests_len += len;
        let text = &self.request_text;
        self.rows.publish_appended(Text::Request, len_before, text);
    }

    /// Of these encoded requests, the first ones that this member's row has room for: how many, their
    /// pack, which is empty if nothing is to be said, and their length.
    fn pack_of_first(&self, requests: &[Vec<u8>]) -> (usize, Vec<u8>, usize) {
        let room = Text::Request.len_max() - self.request_text.len();
        let mut count = requests.len();
        while count > 0 {
            let bytes = requests[..count].concat();
            if bytes.is_empty() {
                return (count, Vec::new(), 0);
            }
            // Encoding into memory does not fail.
            let pack = postcard::to_allocvec(&compress(&bytes)).unwrap_or_default();
            if pack.len() <= room && self.requests_len + bytes.len() <= CHANGES_LEN_MAX {
                return (count, pack, bytes.len());
            }
            // Then half of them, as long as it takes.
            count /= 2;
        }
        (0, Vec::new(), 0)
    }

    /// Notes the refusals of an intent: requests of this member among them are refused.
    pub(super) fn note_refusals(&mut self, refusals: &[Refusal]) {
        for open in &mut self.requests {
            let Some(asked) = open.request.id() else {
                continue;
            };
            let refusal = refusals.iter().find(|refusal| refusal.request == asked);
            if let (Some(refusal), None) = (refusal, &open.refusal) {
                open.refusal = Some(refusal.clone());
                self.refused.push((open.request.clone(), refusal.clone()));
            }
        }
        self.refusals = refusals.to_vec();
    }

    /// Whether this member wants to leave and is the last one.
    pub(super) fn is_last_leaving(&self) -> bool {
        let leaves = |open: &OpenRequest| open.request == Request::Leave;
        self.all_members().len() == 1 && self.requests.iter().any(leaves)
    }

    /// A proposal of what the trusted members request, as far as one view can fulfil or refuse it,
    /// and whether newcomers beyond `joins_max` wait. Fails with the member whose request violates
    /// the protocol.
    pub(super) fn merge_requests(&self, scope: Scope) -> Result<(Proposal, bool), Rank> {
        let (additions_max, joins_max) = match scope {
            Scope::Announced {
                additions_max,
                joins_max,
            } => (additions_max, joins_max),
            Scope::Removals => (0, usize::MAX),
        };
        let mut merge = Merge::new(&self.view);
        for rank in self.suspected.iter() {
            let cause = self
                .suspicion_causes
                .get(&rank)
                .cloned()
                .unwrap_or_default();
            merge.remove(rank, RemovalReason::Failed(cause));
        }
        let mut all: Vec<Asked> = Vec::new();
        for rank in self.trusted().iter() {
            let text = self.rows.text(rank, Text::Request).map_err(|_| rank)?;
            let requests = read(&text.unwrap_or_default()).ok_or(rank)?;
            all.extend(requests.into_iter().map(|it| (rank, self.with_refusal(it))));
        }
        let newcomers_wait = self.keep_first_newcomers(&mut all, joins_max);
        if additions_max == usize::MAX {
            merge.add(&all)?;
            return Ok((merge.into_proposal(), newcomers_wait));
        }
        for (rank, asking) in all {
            let is_room = || merge.proposal().additions().count() < additions_max;
            if asking.adds() && !is_room() {
                merge.wait(rank);
            }
            merge.add(&[(rank, asking)])?;
        }
        Ok((merge.into_proposal(), newcomers_wait))
    }

    /// Leaves out newcomers beyond the first `joins_max`: first of each member the one that it
    /// asked for first, then the second of each, and so on. Returns whether there are any.
    fn keep_first_newcomers(&self, all: &mut Vec<Asked>, joins_max: usize) -> bool {
        let newcomer = |(rank, asking): &Asked| match asking {
            ReadRequest::Whole(Request::Join(member)) => {
                let is_new = self.view.rank(member.id).is_none();
                is_new.then_some((*rank, member.id))
            }
            _ => None,
        };
        // By newcomer: its turn. Several members may ask for it.
        let mut turns: BTreeMap<MemberId, (usize, Rank)> = BTreeMap::new();
        let mut asked_before: BTreeMap<Rank, usize> = BTreeMap::new();
        for (rank, id) in all.iter().filter_map(newcomer) {
            let before = asked_before.entry(rank).or_default();
            let turn = (*before, rank);
            *before += 1;
            let earliest = turns.entry(id).or_insert(turn);
            *earliest = turn.min(*earliest);
        }
        let mut in_turn: Vec<_> = turns.into_iter().map(|(id, turn)| (turn, id)).collect();
        in_turn.sort_unstable();
        let waiting = in_turn.into_iter().skip(joins_max);
        let waiting: BTreeSet<MemberId> = waiting.map(|(_, id)| id).collect();
        all.retain(|asked| newcomer(asked).is_none_or(|(_, id)| !waiting.contains(&id)));
        !waiting.is_empty()
    }

    /// A request as this member treats it: refused if it has refused it in this view already.
    fn with_refusal(&self, asking: ReadRequest) -> ReadRequest {
        let asked = asking.id();
        let mut refusals = self.announcer.refusals.iter();
        let known = refusals.find(|refusal| Some(refusal.request) == asked);
        known.map_or(asking, |refusal| ReadRequest::Refused(refusal.clone()))
    }
}

/// A request as it stands in a row.
#[derive(Serialize, Deserialize)]
enum EncodedRequest {
    Whole(Request),
    TooLong(RequestId),
    /// An update with notes, which most updates do not have.
    WithNotes(Update, Notes),
    Refused(Refusal),
}

/// Encodes a request.
fn written(open: &OpenRequest) -> Vec<u8> {
    let request = &open.request;
    // Encoding into memory does not fail.
    let bytes = |said| postcard::to_allocvec(&said).unwrap_or_default();
    if let Some(refusal) = &open.refusal {
        return bytes(EncodedRequest::Refused(refusal.clone()));
    }
    let whole = bytes(match request {
        Request::Update(update) if update.notes != Notes::default() => {
            EncodedRequest::WithNotes(update.clone(), update.notes.clone())
        }
        _ => EncodedRequest::Whole(request.clone()),
    });
    match request.id() {
        Some(asked) if whole.len() > REQUEST_LEN_MAX => bytes(EncodedRequest::TooLong(asked)),
        _ => whole,
    }
}

/// Decodes the requests in a row: packs that follow each other.
fn read(mut said: &[u8]) -> Option<Vec<ReadRequest>> {
    let (mut all, mut room) = (Vec::new(), CHANGES_LEN_MAX);
    while !said.is_empty() {
        let (pack, rest) = postcard::take_from_bytes::<&[u8]>(said).ok()?;
        let bytes = decompress(pack, room)?;
        room -= bytes.len();
        read_pack(&bytes, &mut all)?;
        said = rest;
    }
    Some(all)
}

fn read_pack(mut said: &[u8], all: &mut Vec<ReadRequest>) -> Option<()> {
    while !said.is_empty() {
        let (one, rest) = postcard::take_from_bytes(said).ok()?;
        all.push(match one {
            EncodedRequest::Whole(request) => ReadRequest::Whole(request),
            EncodedRequest::TooLong(asked) => ReadRequest::TooLong(asked),
            EncodedRequest::WithNotes(update, notes) => {
                ReadRequest::Whole(Request::Update(Update { notes, ..update }))
            }
            EncodedRequest::Refused(refusal) => ReadRequest::Refused(refusal),
        });
        said = rest;
    }
    Some(())
}
