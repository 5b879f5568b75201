//! Requests become a proposal.
//!
//! Whether a view can fulfil a request depends on the whole view, and computing a view takes time
//! in proportion to its endpoints. So requests are added many at a time: the view is computed once
//! if it can fulfil all of them, and for halves, in turn, where it cannot. The time is linear in
//! the requests and the endpoints as long as few are refused.

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_transport::Rank;

use super::proposal::{Proposal, ReadRequest, Refusal, RemovalReason, Request, RequestId};
use super::row::{ProtocolViolation, Text};
use super::view::View;
use crate::limits::REQUEST_LEN_MAX;

/// A proposal in the making.
#[derive(Debug)]
pub(super) struct Merge<'a> {
    view: &'a View,
    proposal: Proposal,
    /// By rank: the number of the member's next update, where it is not the view's next.
    next_updates: BTreeMap<Rank, u64>,
    /// Newcomers that join or are refused.
    joins: BTreeSet<RequestId>,
    removed: BTreeSet<u16>,
    /// Members whose requests wait, as one that came before them does.
    waiting: BTreeSet<Rank>,
    is_full: bool,
}

/// A request of the member of this rank.
pub(super) type Asked = (Rank, ReadRequest);

/// A state of the merge, to return to.
struct Mark {
    removals: usize,
    joins: usize,
    updates: usize,
    refusals: usize,
}

impl<'a> Merge<'a> {
    pub(super) fn new(view: &'a View) -> Self {
        Self {
            view,
            proposal: Proposal::empty(view.id),
            next_updates: BTreeMap::new(),
            joins: BTreeSet::new(),
            removed: BTreeSet::new(),
            waiting: BTreeSet::new(),
            is_full: false,
        }
    }

    pub(super) fn into_proposal(self) -> Proposal {
        self.proposal
    }

    pub(super) fn proposal(&self) -> &Proposal {
        &self.proposal
    }

    /// Removes a member, once.
    pub(super) fn remove(&mut self, rank: Rank, reason: RemovalReason) {
        if self.removed.insert(rank.0) {
            self.proposal.remove(rank, reason);
        }
    }

    /// Makes the later requests of a member wait.
    pub(super) fn wait(&mut self, rank: Rank) {
        self.waiting.insert(rank);
    }

    /// Adds requests in their order, or their refusals if no view can fulfil them together with
    /// what is already in. What does not fit into a row waits, with all that follow. Fails with the
    /// member whose request violates the protocol.
    pub(super) fn add(&mut self, asked: &[Asked]) -> Result<(), Rank> {
        if asked.is_empty() || self.is_full {
            return Ok(());
        }
        let mark = self.mark();
        for (rank, asking) in asked {
            self.push(*rank, asking)
                .map_err(|ProtocolViolation| *rank)?;
        }
        let error = self.view.next(&self.proposal).err();
        if error.is_none() && fits(&self.proposal) {
            return Ok(());
        }
        let [(rank, asking)] = asked else {
            self.return_to(&mark);
            let (first, second) = asked.split_at(asked.len() / 2);
            self.add(first)?;
            return self.add(second);
        };
        self.return_to(&mark);
        match (error, asking.id()) {
            (None, _) => self.is_full = true,
            // Only the last member's leaving is invalid: it ends its view alone.
            (Some(_), None) => self.wait(*rank),
            (Some(error), Some(request)) => {
                self.refuse(*rank, Refusal::of(request, &error));
                if !fits(&self.proposal) {
                    self.return_to(&mark);
                    self.is_full = true;
                }
            }
        }
        Ok(())
    }

    /// Adds a request, unless it is fulfilled or refused already, or waits.
    fn push(&mut self, rank: Rank, asking: &ReadRequest) -> Result<(), ProtocolViolation> {
        // A member that leaves waits for none of its requests.
        let leaves = *asking == ReadRequest::Whole(Request::Leave);
        if self.waiting.contains(&rank) && !leaves {
            return Ok(());
        }
        if let Some(asked) = asking.id()
            && self.is_settled(rank, asked)?
        {
            return Ok(());
        }
        match asking {
            ReadRequest::Whole(Request::Leave) => self.remove(rank, RemovalReason::Left),
            ReadRequest::Whole(Request::Update(update)) => {
                self.next_updates.insert(rank, update.number + 1);
                self.proposal.updates.push(update.clone());
            }
            ReadRequest::Whole(Request::Join(member)) => {
                self.joins.insert(RequestId::Join(member.id));
                self.proposal.joins.push(member.clone());
            }
            ReadRequest::TooLong(request) => {
                let reason = format!("it takes more than {REQUEST_LEN_MAX} bytes");
                let request = *request;
                self.refuse(rank, Refusal::invalid(request, reason));
            }
            ReadRequest::Refused(refusal) => self.refuse(rank, refusal.clone()),
        }
        Ok(())
    }

    fn refuse(&mut self, rank: Rank, refusal: Refusal) {
        match refusal.request {
            RequestId::Update { number, .. } => drop(self.next_updates.insert(rank, number + 1)),
            RequestId::Join(_) => drop(self.joins.insert(refusal.request)),
        }
        self.proposal.refusals.push(refusal);
    }

    /// Whether a request of the member at `rank` is already fulfilled or refused. Fails if it is
    /// not one that this member can make.
    fn is_settled(&self, rank: Rank, asked: RequestId) -> Result<bool, ProtocolViolation> {
        match asked {
            RequestId::Update { member, number } => {
                let its = &self.view.members[rank.index()];
                let next = self.next_updates.get(&rank).copied();
                let next = next.unwrap_or(its.updates + 1);
                if member != its.id || number > next {
                    return Err(ProtocolViolation);
                }
                Ok(number < next)
            }
            RequestId::Join(id) => Ok(self.joins.contains(&asked) || self.view.rank(id).is_some()),
        }
    }

    fn mark(&self) -> Mark {
        Mark {
            removals: self.proposal.removals.len(),
            joins: self.proposal.joins.len(),
            updates: self.proposal.updates.len(),
            refusals: self.proposal.refusals.len(),
        }
    }

    /// Takes back all requests that were added since.
    fn return_to(&mut self, mark: &Mark) {
        for removal in self.proposal.removals.drain(mark.removals..) {
            self.removed.remove(&removal.rank);
        }
        for member in self.proposal.joins.drain(mark.joins..) {
            self.joins.remove(&RequestId::Join(member.id));
        }
        let refused = self.proposal.refusals.drain(mark.refusals..);
        let mut back: Vec<RequestId> = refused.map(|refusal| refusal.request).collect();
        let updates = self.proposal.updates.drain(mark.updates..);
        back.extend(updates.map(|update| RequestId::Update {
            member: update.member,
            number: update.number,
        }));
        for asked in back {
            match asked {
                RequestId::Join(_) => drop(self.joins.remove(&asked)),
                RequestId::Update { member, number } => {
                    if let Some(rank) = self.view.rank(member) {
                        let next = self.next_updates.entry(rank).or_insert(number);
                        *next = number.min(*next);
                    }
                }
            }
        }
    }
}

/// Whether a proposal fits into a row with its trims.
fn fits(proposal: &Proposal) -> bool {
    // Half of the area is for the trims.
    let len = proposal.text_len();
    len.is_some_and(|len| len <= Text::Proposal.len_max() / 2)
}
