//! The side that gives history: answers the joiners of this and other participants.

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::membership::MemberId;
use spindle_dds_core::storage::{Cursor, Donor, DonorReply, Snapshot};

use super::outbox::Place;
use super::packet::{HistoryContent, TransferName};

/// A transfer, of this joiner.
type Transfer = (Place, TransferName);

/// What is pinned at the beginnings of views, and questions that came before theirs.
#[derive(Default)]
pub(super) struct Donating {
    donor: Donor<Transfer>,
    /// The view that has begun.
    view: Option<u64>,
    waiting: BTreeMap<Transfer, Question>,
    /// What will be pinned when it is complete.
    expected: BTreeSet<Transfer>,
}

struct Question {
    parts: u32,
    from: Option<Cursor>,
    after: BTreeMap<[u8; 16], u64>,
}

/// An answer for a joiner.
pub(super) type Answer = (Place, TransferName, HistoryContent);

/// Most questions that wait for their view.
const WAITING_MAX: usize = 1024;
/// A member is at most so many views ahead of another one.
const VIEWS_AHEAD_MAX: u64 = 16;

impl Donating {
    /// The group is lost, or another one is entered.
    pub(super) fn group_lost(&mut self) {
        self.view = None;
        self.waiting.retain(|(joiner, _), _| joiner.is_none());
        self.expected.retain(|(joiner, _)| joiner.is_none());
        self.donor.drop_if(|(joiner, _)| joiner.is_some());
    }

    /// A view begins, with these members. What joiners may ask for is pinned next.
    pub(super) fn begin_view(&mut self, view: u64, members: &BTreeSet<MemberId>) {
        self.view = Some(view);
        let is_gone = |joiner: &Place| joiner.is_some_and(|it| !members.contains(&it));
        self.donor.drop_if(|(joiner, _)| is_gone(joiner));
        self.waiting.retain(|(joiner, _), _| !is_gone(joiner));
        self.expected.retain(|(joiner, _)| !is_gone(joiner));
    }

    /// It will be pinned: questions wait until then.
    pub(super) fn expect(&mut self, transfer: Transfer) {
        self.expected.insert(transfer);
    }

    /// Whether it is to be pinned still.
    pub(super) fn is_expected(&self, transfer: &Transfer) -> bool {
        self.expected.contains(transfer)
    }

    pub(super) fn pin(&mut self, transfer: Transfer, snapshots: &[Snapshot], now_ns: u64) {
        self.expected.remove(&transfer);
        self.donor.pin(transfer, Snapshot::merge(snapshots), now_ns);
    }

    /// Answers what has waited for the view.
    pub(super) fn answer_waiting(&mut self, now_ns: u64) -> Vec<Answer> {
        let Some(view) = self.view else {
            return Vec::new();
        };
        let expected = &self.expected;
        let due = |transfer: &Transfer, _: &mut Question| {
            transfer.1.view <= view && !expected.contains(transfer)
        };
        let due: Vec<_> = self.waiting.extract_if(.., due).collect();
        let mut answers = Vec::new();
        for (transfer, question) in due {
            answers.extend(self.ask(transfer, question, now_ns));
        }
        answers
    }

    /// A joiner says this.
    pub(super) fn handle(
        &mut self,
        (joiner, name): Transfer,
        content: HistoryContent,
        now_ns: u64,
    ) -> Vec<Answer> {
        let transfer = (joiner, name);
        match content {
            HistoryContent::Ask { parts, from, after } => {
                let parts = parts.into();
                self.ask(transfer, Question { parts, from, after }, now_ns)
            }
            HistoryContent::More { grants: true } => {
                let replies = self.donor.more(&transfer, now_ns);
                answers(transfer, replies)
            }
            HistoryContent::More { grants: false } => {
                let is_early = self.view.is_none_or(|view| view < name.view);
                let is_known = self.donor.touch(&transfer, now_ns)
                    || is_early
                    || self.expected.contains(&transfer)
                    || self.waiting.contains_key(&transfer);
                let unknown = (!is_known).then_some((joiner, name, HistoryContent::Unknown));
                unknown.into_iter().collect()
            }
            HistoryContent::Part(_) | HistoryContent::End(_) | HistoryContent::Unknown => {
                Vec::new()
            }
        }
    }

    fn ask(&mut self, transfer: Transfer, question: Question, now_ns: u64) -> Vec<Answer> {
        let asked = transfer.1.view;
        let is_early = self.expected.contains(&transfer)
            || match self.view {
                None => true,
                Some(view) => (view + 1..=view + VIEWS_AHEAD_MAX).contains(&asked),
            };
        if is_early && !self.donor.has(&transfer) && self.waiting.len() < WAITING_MAX {
            self.waiting.insert(transfer, question);
            return Vec::new();
        }
        let Question { parts, from, after } = question;
        let replies = self.donor.ask(&transfer, after, from, parts, now_ns);
        answers(transfer, replies)
    }

    /// Drops what was not asked for within `limit_ns`.
    pub(super) fn expire(&mut self, now_ns: u64, limit_ns: u64) {
        for (_, name) in self.donor.expire(now_ns, limit_ns) {
            tracing::debug!(?name, "history is not asked for in time");
        }
    }

    /// Whether anything is kept for a joiner.
    pub(super) fn is_idle(&self) -> bool {
        self.donor.transfers().next().is_none()
    }
}

fn answers((joiner, name): Transfer, replies: Vec<DonorReply>) -> Vec<Answer> {
    let content = |reply| match reply {
        DonorReply::Part(records) => HistoryContent::Part(records),
        DonorReply::End { lasts } => HistoryContent::End(lasts),
        DonorReply::Unknown => HistoryContent::Unknown,
    };
    let replies = replies.into_iter();
    replies
        .map(|reply| (joiner, name, content(reply)))
        .collect()
}
