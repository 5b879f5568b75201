//! What a view needs is had before it is agreed: the leader's intents, and the members' answers.
//!
//! ```text
//!   requests --> intent n: the proposal without trims --> every member prepares it --> answers
//!                   ^                                                                     |
//!                   |  one cannot: fewer additions at once; a single one is refused       |
//!                   +------------------------------------------------------<--------------+
//!                      all can, or nothing is added: end the view by intent n  <----------+
//! ```
//!
//! Nothing is wedged meanwhile, and messages flow. A member that cannot prepare an intent says
//! why. The leader then announces half as many additions, down to a single one, and refuses that
//! with the member's reason: so only what really cannot be had is refused, and the view goes on.
//! Departures are never refused: if a member cannot prepare one, all make what the next view needs
//! once it is agreed.
//!
//! Invariants:
//!
//! - An intent is overwritten only after all members have answered it, so none reads it torn.
//! - After it has told the members to end the view by an intent, a leader announces no other.
//! - An addition is in a proposal only as a part of an intent that all members have prepared. A
//!   proposal of a leader that suspects a member has none; it may complete an echoed one that has.
//!
//! It follows that no other leader can fulfil a request that one has refused: the maker of the
//! request is told at once, although the refusal stands in the row of the leader alone.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spindle_dds_transport::{Fabric, Rank};

use super::asking::{INVALID_REQUEST, Scope};
use super::proposal::{Proposal, Refusal};
use super::protocol::{Action, Membership, Preparation, SubgroupEnds, shortened};
use super::row::{ProtocolViolation, Text};
use crate::limits::{INTENT_LEN_MAX, REQUESTS_LEN_FEW};

/// A view that the leader has announced, and this member's answer.
#[derive(Debug)]
pub(super) struct Announced {
    pub(super) preparation: Preparation,
    /// The driver's answer.
    answer: Option<Result<(), String>>,
    is_answer_published: bool,
    /// Whether all members are to end the view by it.
    pub(super) ends_view: bool,
}

/// What a leader has announced in its view.
#[derive(Debug)]
pub(super) struct Announcer {
    /// Number of the last intent; 0 before the first.
    number: u64,
    /// The last intent.
    intent: Option<Intent>,
    /// Whether the answers to it have been judged, or need not be.
    is_judged: bool,
    /// The members that cannot prepare it, with their reasons, in the order in which they have
    /// answered: what one lacks may be why others do not reach it, which takes these longer to see.
    lacks: Vec<(Rank, String)>,
    /// All refusals so far.
    pub(super) refusals: Vec<Refusal>,
    /// Number of the intent that all members have prepared; 0 if there is none.
    pub(super) prepared_by_all: u64,
    /// Most additions in the next intent.
    additions_max: usize,
    /// Whether the last intent left out newcomers, as it had as many as the group can follow.
    newcomers_wait: bool,
    /// When it announced the first intent.
    pub(super) announced_since_ns: Option<u64>,
    /// Until when it leaves requests to gather.
    pub(super) pauses_until_ns: Option<u64>,
    /// Length of all members' requests when they were last merged.
    requests_len: u64,
    /// Since when it waits for answers.
    waiting_since_ns: u64,
}

impl Default for Announcer {
    fn default() -> Self {
        Self {
            number: 0,
            intent: None,
            is_judged: true,
            lacks: Vec::new(),
            refusals: Vec::new(),
            prepared_by_all: 0,
            additions_max: usize::MAX,
            newcomers_wait: false,
            announced_since_ns: None,
            pauses_until_ns: None,
            requests_len: 0,
            waiting_since_ns: 0,
        }
    }
}

/// An intent as it stands in a row.
#[derive(Debug)]
struct Intent {
    /// Whether the view goes on, and only the refusals count.
    is_called_off: bool,
    proposal: Proposal,
}

#[derive(Serialize, Deserialize)]
struct IntentHead {
    is_called_off: bool,
}

impl Intent {
    fn to_bytes(&self) -> Vec<u8> {
        let is_called_off = self.is_called_off;
        // Encoding into memory does not fail.
        let mut bytes = postcard::to_allocvec(&IntentHead { is_called_off }).unwrap_or_default();
        bytes.extend(self.proposal.to_text());
        bytes
    }
}

/// The label of an intent: its number, and whether all are to end the view by it.
fn label(number: u64, ends_view: bool) -> u64 {
    number << 1 | u64::from(ends_view)
}

impl<F: Fabric> Membership<F> {
    /// The driver's answer to [`Action::Prepare`]: whether everything that the view needs is
    /// there, or what is lacking.
    pub fn prepared(&mut self, number: u64, answer: Result<(), String>) {
        if let Some(announced) = &mut self.announced
            && announced.preparation.number == number
        {
            announced.answer.get_or_insert(answer);
        }
    }

    /// The number of the preparation for a proposal, if this member has made it.
    pub(super) fn prepared_for(&self, proposal: &Proposal) -> Option<u64> {
        let announced = self.announced.as_ref()?;
        let is_it = announced.preparation.proposal.is_same_change(proposal);
        let is_made = announced.answer == Some(Ok(()));
        (is_it && is_made).then_some(announced.preparation.number)
    }

    /// Hears that another member cannot prepare the view. This member then waits for nothing of it,
    /// and gives the same answer: what it waits for may never come, for that very reason.
    pub(super) fn hear_lack(&mut self, subgroups: &mut impl SubgroupEnds) -> Option<Action> {
        let announced = self.announced.as_ref();
        let preparation = &announced.filter(|it| it.answer.is_none())?.preparation;
        // Departures are agreed in spite of a lack.
        preparation.proposal.additions().next()?;
        let number = preparation.number;
        let lacks = |rank: &Rank| {
            self.rows.label(*rank, Text::Answer) == number && self.rows.len(*rank, Text::Answer) > 0
        };
        let rank = self.trusted_others().find(lacks)?;
        let text = self.rows.text(rank, Text::Answer).ok().flatten();
        let Some(reason) = text.and_then(|text| String::from_utf8(text).ok()) else {
            self.suspect(rank, "its answer violates the protocol", subgroups);
            return None;
        };
        self.prepared(number, Err(reason));
        Some(Action::StopPreparing { number })
    }

    /// Publishes the driver's answer.
    pub(super) fn publish_answer(&mut self) {
        if let Some(announced) = &mut self.announced
            && let Some(answer) = &announced.answer
            && !announced.is_answer_published
        {
            announced.is_answer_published = true;
            let reason = match answer {
                Ok(()) => String::new(),
                Err(reason) if reason.is_empty() => "no reason is given".to_owned(),
                Err(reason) => shortened(reason),
            };
            let number = announced.preparation.number;
            self.rows
                .publish_labelled(Text::Answer, reason.as_bytes(), number);
        }
    }

    /// Reads the leader's intent.
    pub(super) fn read_intent(&mut self, subgroups: &mut impl SubgroupEnds) -> Option<Action> {
        if !self.suspected.is_empty() {
            return None;
        }
        let leader = self.leader();
        let label = self.rows.label(leader, Text::Intent);
        let (number, ends_view) = (label >> 1, label & 1 == 1);
        let action = if number > self.intent_read {
            let Some(intent) = self.copy_intent(leader) else {
                self.suspect(leader, "its intent violates the protocol", subgroups);
                return None;
            };
            self.intent_read = number;
            self.take_intent(number, intent)
        } else {
            None
        };
        if ends_view
            && number == self.intent_read
            && let Some(announced) = &mut self.announced
        {
            if !announced.is_answer_published {
                self.suspect(leader, "it does not wait for answers", subgroups);
                return None;
            }
            announced.ends_view = true;
        }
        action
    }

    fn copy_intent(&self, leader: Rank) -> Option<(bool, Proposal, Arc<super::View>)> {
        let text = self.rows.text(leader, Text::Intent);
        let bytes = text.ok().flatten()?;
        let (head, bytes) = postcard::take_from_bytes::<IntentHead>(&bytes).ok()?;
        let (proposal, next) = Proposal::read_untrimmed(bytes, &self.view)?;
        let is_sound = proposal.trims.is_empty() && proposal.preparation == 0;
        is_sound.then(|| (head.is_called_off, proposal, Arc::new(next)))
    }

    fn take_intent(
        &mut self,
        number: u64,
        (is_called_off, proposal, next): (bool, Proposal, Arc<super::View>),
    ) -> Option<Action> {
        self.note_refusals(&proposal.refusals);
        let before = self.announced.take();
        if is_called_off {
            self.rows.publish_labelled(Text::Answer, &[], number);
            return before.map(|_| Action::CallOff);
        }
        let preparation = Preparation {
            number,
            touched: proposal.touched(&self.view),
            proposal: Arc::new(proposal),
            next,
        };
        self.announced = Some(Announced {
            preparation: preparation.clone(),
            answer: None,
            is_answer_published: false,
            ends_view: false,
        });
        Some(Action::Prepare(preparation))
    }

    // The leader.

    /// Judges the answers to the last intent, and announces the next one if there is anything to
    /// announce.
    pub(super) fn announce(&mut self, now: u64, subgroups: &mut impl SubgroupEnds) {
        let is_ending = self.rows.label(self.me, Text::Intent) & 1 == 1;
        if !self.keeps_pace(now) || !self.suspected.is_empty() || is_ending {
            return;
        }
        match self.read_answers() {
            Ok(true) => {}
            Ok(false) => return self.wait_for_answers(now, subgroups),
            Err(rank) => return self.suspect(rank, "its answer violates the protocol", subgroups),
        }
        let has_failed = !core::mem::replace(&mut self.announcer.is_judged, true);
        if has_failed && self.judge() {
            return;
        }
        let len = |rank| self.rows.len(rank, Text::Request);
        let requests_len = self.trusted().iter().map(len).sum();
        let is_same = requests_len == self.announcer.requests_len;
        if !has_failed && is_same && !self.announcer.newcomers_wait {
            return;
        }
        let scope = Scope::Announced {
            additions_max: self.announcer.additions_max,
            joins_max: self.pace.joins_max(self.view.members.len()),
        };
        let (proposal, newcomers_wait) = match self.merge_requests(scope) {
            Ok(merged) => merged,
            Err(rank) => return self.suspect(rank, INVALID_REQUEST, subgroups),
        };
        self.announcer.requests_len = requests_len;
        self.announcer.newcomers_wait = newcomers_wait;
        if let Some(is_called_off) = self.is_called_off(&proposal, has_failed) {
            self.publish_intent(now, is_called_off, proposal);
        }
    }

    /// Reads the answers to the last intent, and notes the members that cannot prepare it. True if
    /// all have answered. Fails with a member whose answer violates the protocol.
    fn read_answers(&mut self) -> Result<bool, Rank> {
        let number = self.announcer.number;
        let mut is_answered = true;
        if number == 0 {
            return Ok(true);
        }
        for rank in self.trusted().iter() {
            let answered = self.rows.label(rank, Text::Answer);
            if answered > number {
                return Err(rank);
            }
            if answered < number {
                is_answered = false;
                continue;
            }
            let lacks = &mut self.announcer.lacks;
            if lacks.iter().any(|(of, _)| *of == rank) {
                continue;
            }
            let text = self.rows.text(rank, Text::Answer);
            let text = text.map_err(|ProtocolViolation| rank)?.unwrap_or_default();
            if !text.is_empty() {
                let reason = String::from_utf8(text).map_err(|_| rank)?;
                lacks.push((rank, shortened(&reason)));
            }
        }
        Ok(is_answered)
    }

    /// Judges the answers to an intent that is not called off. True if all are to end the view by
    /// it.
    fn judge(&mut self) -> bool {
        let lacks = core::mem::take(&mut self.announcer.lacks);
        let intent = self.announcer.intent.as_ref();
        let additions: Vec<_> = intent
            .iter()
            .flat_map(|intent| intent.proposal.additions())
            .collect();
        if lacks.is_empty() {
            self.announcer.prepared_by_all = self.announcer.number;
        }
        let first = lacks.into_iter().next().map(|(_, reason)| reason);
        match (first, &additions[..]) {
            (None, _) | (_, []) => {
                let label = label(self.announcer.number, true);
                self.rows.publish_label(Text::Intent, label);
                return true;
            }
            (Some(reason), &[request]) => {
                let refusal = Refusal {
                    request,
                    reason,
                    is_lack: true,
                };
                self.announcer.refusals.push(refusal);
            }
            (Some(_), several) => self.announcer.additions_max = several.len() / 2,
        }
        false
    }

    /// Whether a proposal is announced to be agreed, or only for its refusals; `None` if it is not
    /// worth announcing. `has_failed`: the intent before it has not been prepared by all.
    fn is_called_off(&self, proposal: &Proposal, has_failed: bool) -> Option<bool> {
        // Rows, and intents, begin anew with a view.
        let is_long = |rank| self.rows.len(rank, Text::Request) > REQUESTS_LEN_FEW as u64;
        let is_full =
            self.trusted().iter().any(is_long) || proposal.to_text().len() > INTENT_LEN_MAX / 4;
        if !proposal.changes_nothing() || is_full {
            return Some(false);
        }
        let told = self.announcer.intent.as_ref();
        let told = told.map_or(&[][..], |intent| &intent.proposal.refusals);
        let tells_more = proposal.refusals.iter().any(|it| !told.contains(it));
        (has_failed || tells_more).then_some(true)
    }

    fn publish_intent(&mut self, now: u64, is_called_off: bool, proposal: Proposal) {
        let announcer = &mut self.announcer;
        for refusal in &proposal.refusals {
            if !announcer.refusals.contains(refusal) {
                announcer.refusals.push(refusal.clone());
            }
        }
        announcer.announced_since_ns.get_or_insert(now);
        announcer.number += 1;
        announcer.lacks.clear();
        announcer.is_judged = is_called_off;
        announcer.waiting_since_ns = now;
        let label = label(announcer.number, false);
        let intent = announcer.intent.insert(Intent {
            is_called_off,
            proposal,
        });
        let bytes = intent.to_bytes();
        self.rows.publish_labelled(Text::Intent, &bytes, label);
    }

    /// Gives up waiting for answers after twice the time that a preparation may take, as nothing
    /// else waits for it, and the heartbeat timeout. A driver of this member that does not answer counts as one that cannot prepare.
    fn wait_for_answers(&mut self, now: u64, subgroups: &mut impl SubgroupEnds) {
        let number = self.announcer.number;
        let silent = |rank: &Rank| self.rows.label(*rank, Text::Answer) < number;
        let silent: Vec<Rank> = self.trusted().iter().filter(silent).collect();
        // Before its first heartbeat a member prepares the present view.
        let begins = |rank: &Rank| self.rows.heartbeat(*rank) == 0;
        if silent.iter().any(begins) || self.detector.was_paused() {
            self.announcer.waiting_since_ns = now;
        }
        let preparation_ns = self.rules.detection.preparation_ns.saturating_mul(2);
        let patience = self.detector.timeout_ns().saturating_add(preparation_ns);
        if now.saturating_sub(self.announcer.waiting_since_ns) <= patience {
            return;
        }
        for rank in silent {
            if rank == self.me {
                let reason = "the leader did not prepare it in time";
                self.prepared(number, Err(reason.to_owned()));
            } else {
                self.suspect(rank, "it did not prepare the next view in time", subgroups);
            }
        }
    }
}
