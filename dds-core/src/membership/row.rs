//! The row of a view's control segment: what a member publishes about the view itself.
//!
//! ```text
//!   fabric area | suspected[4] dead[4] | heartbeat | wedged, committed |
//!   guards: request, intent, report[2], answer, proposal | the areas of these texts
//! ```
//!
//! A zeroed row says nothing. Sets only grow, numbers only rise. A text has a guard that is pushed
//! behind it: a label in the high bits, the length plus one in the low ones. Guards only rise:
//!
//! - requests are appended to; what a smaller guard vouched for stays as it is;
//! - an intent is overwritten by one with a higher label, once all members have answered it;
//! - an answer is overwritten once there is a later intent, so after the leader has read it;
//! - the other texts are written once in a view.

use spindle_dds_transport::memory::{ROW_ALIGN, Region};
use spindle_dds_transport::{FABRIC_AREA, Fabric, MEMBERS_MAX, PeerSet, Rank, WakeReason};

use crate::counters::Traffic;
use crate::landmarks::Landmark;
use crate::limits::{
    ANSWER_LEN_MAX, INTENT_LEN_MAX, PROPOSAL_LEN_MAX, REPORT_LEN_MAX, REQUESTS_LEN_MAX,
};

const SET_WORDS: usize = MEMBERS_MAX / 64;

const SUSPECTED: usize = FABRIC_AREA;
const DEAD: usize = SUSPECTED + SET_WORDS * 8;
const HEARTBEAT: usize = SUSPECTED + ROW_ALIGN;
const WEDGED: usize = HEARTBEAT + ROW_ALIGN;
const COMMITTED: usize = WEDGED + 8;
const GUARDS: usize = WEDGED + ROW_ALIGN;
const AREAS: usize = GUARDS + ROW_ALIGN;

/// Bytes of each row of a control segment.
pub const CONTROL_ROW_LEN: usize = Text::Proposal.area() + PROPOSAL_LEN_MAX;

/// Byte ranges by name, for a harness that overwrites rows; of each text its first bytes.
pub(crate) fn control_landmarks() -> Vec<(Landmark, core::ops::Range<usize>)> {
    let texts = [
        Text::Request,
        Text::Intent,
        Text::ReportSome,
        Text::ReportAll,
        Text::Answer,
        Text::Proposal,
    ];
    let guards = GUARDS..GUARDS + texts.len() * 8;
    let mut all = vec![
        (Landmark::Sets, SUSPECTED..DEAD + SET_WORDS * 8),
        (Landmark::Heartbeat, HEARTBEAT..HEARTBEAT + 8),
        (Landmark::Wedged, WEDGED..WEDGED + 8),
        (Landmark::Committed, COMMITTED..COMMITTED + 8),
        (Landmark::TextGuards, guards),
    ];
    all.extend(texts.map(|text| (Landmark::Text, text.area()..text.area() + 64)));
    all
}

/// How many of the steps that end a view its member has taken: see [`crate::landmarks`].
pub(crate) fn steps_of_end(row: &Region) -> usize {
    let report = match row.load(WEDGED) {
        0 => return 0,
        1 => Text::ReportSome,
        _ => Text::ReportAll,
    };
    let echoes = row.load(Text::Proposal.guard()) >> LABEL_SHIFT;
    let taken = [row.load(report.guard()), echoes, row.load(COMMITTED)];
    1 + taken.iter().take_while(|word| **word != 0).count()
}

/// Texts in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    /// Requests of the member.
    Request,
    /// What the leader is about to propose; labelled with its number, twice, plus one once all
    /// members are to end the view by it.
    Intent,
    /// Frozen counts of the subgroups that the intent names.
    ReportSome,
    /// Frozen counts of all subgroups.
    ReportAll,
    /// Whether the member has prepared what the intent with this label's number needs: empty, or
    /// the reason why it cannot.
    Answer,
    /// A proposal: the member's own, or its echo of another one's; labelled with the rank of the
    /// leader, plus one.
    Proposal,
}

impl Text {
    const fn guard(self) -> usize {
        GUARDS + self as usize * 8
    }

    const fn area(self) -> usize {
        let before = match self {
            Self::Request => 0,
            Self::Intent => REQUESTS_LEN_MAX,
            Self::ReportSome => REQUESTS_LEN_MAX + INTENT_LEN_MAX,
            Self::ReportAll => REQUESTS_LEN_MAX + INTENT_LEN_MAX + REPORT_LEN_MAX,
            Self::Answer => REQUESTS_LEN_MAX + INTENT_LEN_MAX + 2 * REPORT_LEN_MAX,
            Self::Proposal => {
                REQUESTS_LEN_MAX + INTENT_LEN_MAX + 2 * REPORT_LEN_MAX + ANSWER_LEN_MAX
            }
        };
        AREAS + before
    }

    pub(super) const fn len_max(self) -> usize {
        match self {
            Self::Request => REQUESTS_LEN_MAX,
            Self::Intent => INTENT_LEN_MAX,
            Self::ReportSome | Self::ReportAll => REPORT_LEN_MAX,
            Self::Answer => ANSWER_LEN_MAX,
            Self::Proposal => PROPOSAL_LEN_MAX,
        }
    }
}

/// Number of texts.
const TEXTS: usize = Text::Proposal as usize + 1;

/// How much of a view is wedged for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Level {
    /// Nothing.
    #[default]
    None,
    /// The subgroups that the leader's intent replaces.
    Some,
    /// All subgroups, as a member is suspected.
    All,
}

impl Level {
    pub(super) const fn report(self) -> Text {
        match self {
            Self::None | Self::Some => Text::ReportSome,
            Self::All => Text::ReportAll,
        }
    }
}

/// A value that a row cannot have by the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProtocolViolation;

/// A control segment, seen as texts, sets and flags.
#[derive(Debug)]
pub(super) struct Rows<F> {
    pub(super) fabric: F,
    /// All members but this one.
    pub(super) others: PeerSet,
    /// Whether something was pushed since the last flush.
    has_pushed: bool,
    /// Whether any of it is to wake the others; a heartbeat alone wakes no member.
    wakes_others: bool,
    /// Pushes that [`take_traffic`](Self::take_traffic) has not returned yet.
    traffic: Traffic,
}

impl<F: Fabric> Rows<F> {
    pub(super) fn new(fabric: F) -> Self {
        let ranks = (0..fabric.members() as u16).map(Rank);
        let others = ranks.filter(|rank| *rank != fabric.me()).collect();
        Self {
            fabric,
            others,
            has_pushed: false,
            wakes_others: false,
            traffic: Traffic::default(),
        }
    }

    /// What was pushed since the last call.
    pub(super) fn take_traffic(&mut self) -> Traffic {
        core::mem::take(&mut self.traffic)
    }

    fn push(&mut self, at: usize, len: usize) {
        self.fabric.push(at, len, &self.others);
        self.count(len);
    }

    fn push_word(&mut self, word: usize, value: u64) {
        self.fabric.push_word(word, value, &self.others);
        self.count(8);
    }

    fn count(&mut self, len: usize) {
        let peers = self.others.len() as u64;
        self.traffic.pushes += peers;
        self.traffic.bytes += peers * len as u64;
        self.has_pushed = true;
    }

    /// Lets pushes go that were held back, and wakes the others if something other than a heartbeat
    /// was published.
    pub(super) fn flush(&mut self) {
        let woken = match core::mem::take(&mut self.wakes_others) {
            true => self.others,
            false => PeerSet::EMPTY,
        };
        if core::mem::take(&mut self.has_pushed) {
            self.fabric.wake(&woken, WakeReason::Data);
        }
    }

    fn publish_word(&mut self, word: usize, value: u64) {
        self.push_word(word, value);
        self.wakes_others = true;
    }

    fn set(&self, of: Rank, at: usize) -> PeerSet {
        let row = self.fabric.row(of);
        let words = core::array::from_fn(|i| row.load(at + i * 8));
        PeerSet::from_words(words)
    }

    fn publish_set(&mut self, at: usize, set: &PeerSet) {
        for (i, word) in set.words().into_iter().enumerate() {
            self.fabric.store(at + i * 8, word);
        }
        self.push(at, SET_WORDS * 8);
        self.wakes_others = true;
    }

    pub(super) fn suspected(&self, of: Rank) -> PeerSet {
        self.set(of, SUSPECTED)
    }

    pub(super) fn publish_suspected(&mut self, set: &PeerSet) {
        self.publish_set(SUSPECTED, set);
    }

    pub(super) fn dead(&self, of: Rank) -> PeerSet {
        self.set(of, DEAD)
    }

    pub(super) fn publish_dead(&mut self, set: &PeerSet) {
        self.publish_set(DEAD, set);
    }

    pub(super) fn heartbeat(&self, of: Rank) -> u64 {
        self.fabric.row(of).load(HEARTBEAT)
    }

    /// Publishes the next heartbeat; wakes no member.
    pub(super) fn publish_heartbeat(&mut self) {
        let beat = self.heartbeat(self.fabric.me()) + 1;
        self.push_word(HEARTBEAT, beat);
    }

    pub(super) fn wedged(&self, of: Rank) -> Result<Level, ProtocolViolation> {
        match self.fabric.row(of).load(WEDGED) {
            0 => Ok(Level::None),
            1 => Ok(Level::Some),
            2 => Ok(Level::All),
            _ => Err(ProtocolViolation),
        }
    }

    pub(super) fn publish_wedged(&mut self, level: Level) {
        self.publish_word(WEDGED, level as u64);
    }

    /// Whether all words of a row are valid in a view of these members.
    pub(super) fn is_valid(&self, of: Rank, members: &PeerSet) -> bool {
        let row = self.fabric.row(of);
        let known = |at| self.set(of, at).without(members).is_empty();
        known(SUSPECTED) && known(DEAD) && row.load(WEDGED) <= 2 && row.load(COMMITTED) <= 1
    }

    /// A sum over what a member has published in this view, but for heartbeats. It changes with
    /// every publication, as no word falls. A death is published together with a suspicion, or
    /// after a commit, so its words are left out.
    pub(super) fn published(&self, of: Rank) -> u64 {
        let row = self.fabric.row(of);
        let suspected: [u64; SET_WORDS] = row.copy_words(SUSPECTED);
        let ends: [u64; 2] = row.copy_words(WEDGED);
        let guards: [u64; TEXTS] = row.copy_words(GUARDS);
        let sum = |words: &[u64]| {
            words
                .iter()
                .fold(0, |sum: u64, word| sum.wrapping_add(*word))
        };
        sum(&suspected)
            .wrapping_add(sum(&ends))
            .wrapping_add(sum(&guards))
    }

    pub(super) fn is_committed(&self, of: Rank) -> bool {
        self.fabric.row(of).load(COMMITTED) == 1
    }

    pub(super) fn publish_committed(&mut self) {
        self.publish_word(COMMITTED, 1);
    }

    /// Whether a member has published a text.
    #[cfg(all(test, not(loom)))]
    pub(super) fn has(&self, of: Rank, text: Text) -> bool {
        self.fabric.row(of).load(text.guard()) != 0
    }

    /// A text; `None` if it is not published yet.
    pub(super) fn text(&self, of: Rank, text: Text) -> Result<Option<Vec<u8>>, ProtocolViolation> {
        let row = self.fabric.row(of);
        let guard = row.load(text.guard());
        let Some(len) = (guard & LEN_MASK).checked_sub(1) else {
            return if guard == 0 {
                Ok(None)
            } else {
                Err(ProtocolViolation)
            };
        };
        if len > text.len_max() as u64 {
            return Err(ProtocolViolation);
        }
        let mut bytes = vec![0; (len as usize).next_multiple_of(8)];
        row.copy_out(text.area(), &mut bytes);
        bytes.truncate(len as usize);
        Ok(Some(bytes))
    }

    /// Publishes a text without a label. Panics if it is too long: the caller checks the length.
    pub(super) fn publish_text(&mut self, text: Text, bytes: &[u8]) {
        self.publish_from(text, 0, bytes, 0);
    }

    /// Publishes a text over an earlier one with a lower label.
    pub(super) fn publish_labelled(&mut self, text: Text, bytes: &[u8], label: u64) {
        self.publish_from(text, 0, bytes, label);
    }

    /// Publishes what was appended to a text of `len_before` bytes.
    pub(super) fn publish_appended(&mut self, text: Text, len_before: usize, bytes: &[u8]) {
        // The last word before may be a part of both.
        self.publish_from(text, len_before & !7, bytes, 0);
    }

    /// Publishes `bytes`, of which those before `from` stand in the row already.
    fn publish_from(&mut self, text: Text, from: usize, bytes: &[u8], label: u64) {
        assert!(bytes.len() <= text.len_max(), "{text:?} of {}", bytes.len());
        for (i, chunk) in bytes[from..].chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.fabric
                .store(text.area() + from + i * 8, u64::from_le_bytes(word));
        }
        let len = bytes.len().next_multiple_of(8) - from;
        self.push(text.area() + from, len);
        let guard = bytes.len() as u64 + 1;
        self.publish_word(text.guard(), guard | label << LABEL_SHIFT);
    }

    /// The length of a text; 0 if it is not published yet.
    pub(super) fn len(&self, of: Rank, text: Text) -> u64 {
        let guard = self.fabric.row(of).load(text.guard());
        (guard & LEN_MASK).saturating_sub(1)
    }

    /// The label of a text; 0 if it has none.
    pub(super) fn label(&self, of: Rank, text: Text) -> u64 {
        self.fabric.row(of).load(text.guard()) >> LABEL_SHIFT
    }

    /// Labels a text in this member's row that stays as it is.
    pub(super) fn publish_label(&mut self, text: Text, label: u64) {
        let word = text.guard();
        let len = self.fabric.row(self.fabric.me()).load(word) & LEN_MASK;
        self.publish_word(word, len | label << LABEL_SHIFT);
    }

    /// The leader on whose behalf the proposal in a member's row was proposed or echoed last.
    pub(super) fn proposer(&self, of: Rank) -> Option<Rank> {
        let label = self.label(of, Text::Proposal).checked_sub(1);
        label.map(|rank| Rank(rank as u16))
    }

    /// Proposes, or echoes, the proposal in this member's row on behalf of a leader.
    pub(super) fn publish_proposer(&mut self, rank: Rank) {
        self.publish_label(Text::Proposal, u64::from(rank.0) + 1);
    }
}

/// A guard: the length plus one in the low bits, above it the label.
const LABEL_SHIFT: u32 = 40;
const LEN_MASK: u64 = (1 << LABEL_SHIFT) - 1;

const _: () = {
    assert!(DEAD == SUSPECTED + SET_WORDS * 8 && COMMITTED == WEDGED + 8);
    assert!(DEAD + SET_WORDS * 8 <= HEARTBEAT);
    assert!(COMMITTED + 8 <= GUARDS && Text::Proposal.guard() + 8 <= AREAS);
    assert!(REQUESTS_LEN_MAX.is_multiple_of(ROW_ALIGN) && INTENT_LEN_MAX.is_multiple_of(ROW_ALIGN));
    assert!(ANSWER_LEN_MAX.is_multiple_of(ROW_ALIGN));
    assert!(REPORT_LEN_MAX.is_multiple_of(ROW_ALIGN) && PROPOSAL_LEN_MAX.is_multiple_of(ROW_ALIGN));
};
