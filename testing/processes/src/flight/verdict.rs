//! The verdict on a run with a fault: what the journals of the displays have to agree on.

use std::collections::BTreeMap;

use serde::Serialize;
use spindle_dds::PeerPath;

use super::fault_sequence::FaultRecord;
use super::journal::{Entry, Topic};
use super::kept::{Absence, Kept};
use super::report::{DisplayReport, FeedReport};
use super::{returned, tables};

/// When a display was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// From the beginning to the end.
    Stayed,
    /// It joined late, and stayed to the end.
    Late,
    /// From the beginning, until it was killed.
    Gone,
    /// It was stopped, and came back.
    Returned,
}

/// What is known of a run.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// The journal of each display.
    pub(super) journals: Vec<(Presence, Vec<Entry>)>,
    /// Of the displays that stayed.
    pub(super) shown: Vec<DisplayReport>,
    /// Of the display that was stopped.
    pub(super) returned: Option<DisplayReport>,
    /// Of the display that joined.
    pub(super) late: Option<DisplayReport>,
    /// What is kept for the two; `None` without a feed.
    pub(super) kept: Option<Kept>,
    /// Of the feeds that were not killed.
    pub(super) fed: BTreeMap<u16, FeedReport>,
    /// The feed that was killed.
    pub(super) killed_feed: Option<u16>,
    /// The feed that was stopped.
    pub(super) stopped_feed: Option<u16>,
    pub(super) record: FaultRecord,
    /// What the clock of `sent_at_ns` is ahead of that of `taken_at_ns`.
    pub(super) ahead_ns: i64,
}

/// The outcome of a run with a fault; its line of output.
#[derive(Debug, Serialize)]
pub(super) struct Verdict {
    pub(super) fault: String,
    /// What is kept for a display that joins or comes back.
    kept: Kept,
    /// Samples before the fault: of the feed that was killed or stopped; else at the display that
    /// was, or before the first sample of the one that joined. If that got what was kept, at the
    /// first display.
    at_sample: u64,
    view_before: u64,
    /// The view that followed.
    view: u64,
    /// Samples of the feeds that were not killed.
    published: u64,
    /// Samples at each display.
    delivered: Vec<usize>,
    /// Of the displays that stayed.
    digest: Vec<String>,
    /// Whether all displays have the same samples in the same order, as far as they were there or
    /// got them later, and tables that say the same.
    identical: bool,
    /// Whether all samples of the feeds that were not killed came once each, in order.
    exactly_once: bool,
    /// The longest time without a sample after the fault, at each display that stayed.
    pub(super) outage_ms: Vec<f64>,
    /// Time from the resumption of the process that was stopped until it was back in the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    back_after_ms: Option<f64>,
    /// Samples that the display which was stopped counts as lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    missed: Option<u64>,
    /// For each feed that was not killed, how its samples were carried to the others at the end.
    peers: Vec<Vec<PeerPath>>,
    pub(super) held: bool,
    /// What did not hold, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    complaints: Vec<String>,
}

impl Verdict {
    pub(super) fn of(fault: String, evidence: &Evidence) -> Self {
        let mut order = check_order(evidence);
        order.extend(tables::check(evidence));
        let flow = check_losses(evidence);
        let stay = check_membership(evidence);
        let stayed = || {
            evidence
                .journals
                .iter()
                .filter(|it| it.0 == Presence::Stayed)
        };
        let outage_ms =
            stayed().map(|(_, journal)| outage_ms(journal, evidence.record.injected_at_ns));
        let digest: Vec<String> = evidence.shown.iter().map(|it| it.digest.clone()).collect();
        let identical = order.is_empty() && digest.iter().all(|one| *one == digest[0]);
        Self {
            fault,
            kept: evidence.kept.unwrap_or_default(),
            at_sample: at_sample(evidence),
            view_before: evidence.record.view_before,
            view: evidence.record.view,
            published: evidence.fed.values().map(|feed| feed.published).sum(),
            delivered: evidence.journals.iter().map(|it| it.1.len()).collect(),
            digest,
            identical,
            exactly_once: flow.is_empty(),
            outage_ms: outage_ms.collect(),
            back_after_ms: evidence.record.back_after_ns.map(|it| it as f64 / 1e6),
            missed: evidence.returned.as_ref().map(|it| it.lost.iter().sum()),
            peers: evidence.fed.values().map(|it| it.peers.clone()).collect(),
            held: identical && flow.is_empty() && stay.is_empty(),
            complaints: order.into_iter().chain(flow).chain(stay).collect(),
        }
    }
}

/// Several runs in a row; the last line of output then.
#[derive(Debug, Serialize)]
pub(super) struct Verdicts {
    fault: String,
    runs: usize,
    held: usize,
    /// Over all displays that stayed.
    outage_ms_median: f64,
    outage_ms_max: f64,
}

impl Verdicts {
    pub(super) fn of(verdicts: &[Verdict]) -> Self {
        let outages = verdicts.iter().flat_map(|verdict| &verdict.outage_ms);
        let mut outages: Vec<f64> = outages.copied().collect();
        outages.sort_by(f64::total_cmp);
        let first = verdicts.first().map(|verdict| verdict.fault.clone());
        Self {
            fault: first.unwrap_or_default(),
            runs: verdicts.len(),
            held: verdicts.iter().filter(|verdict| verdict.held).count(),
            outage_ms_median: outages.get(outages.len() / 2).copied().unwrap_or(0.0),
            outage_ms_max: outages.last().copied().unwrap_or(0.0),
        }
    }
}

/// The entries of one topic.
pub(super) fn entries_of(journal: &[Entry], topic: Topic) -> Vec<Entry> {
    let entries = journal.iter().filter(|entry| entry.topic == topic);
    entries.copied().collect()
}

/// Names each display that has not the same samples in the same order: a display that stayed has
/// all, one that joined has all from its first on, one that is gone has the first ones. Where
/// something is kept, one that joined or came back has that too: see [`Kept::check`]; where
/// nothing is, see [`returned`] for one that came back.
fn check_order(evidence: &Evidence) -> Vec<String> {
    let mut complaints = Vec::new();
    for topic in [Topic::States, Topic::Alerts] {
        let stayed = evidence.journals.iter().find(|it| it.0 == Presence::Stayed);
        let whole = stayed
            .map(|it| entries_of(&it.1, topic))
            .unwrap_or_default();
        if whole.is_empty() {
            complaints.push(format!("{topic:?}: no samples"));
        }
        if !whole.is_sorted_by(|one, next| one.position < next.position) {
            complaints.push(format!("{topic:?}: positions do not rise"));
        }
        for (display, (part, journal)) in evidence.journals.iter().enumerate() {
            let own = entries_of(journal, topic);
            if let Some(kept) = catches_up(evidence, *part) {
                let absence = absence(evidence, *part, &whole);
                if let Err(right) = kept.check(&whole, &own, absence) {
                    complaints.push(format!(
                        "display {display}, {topic:?}: {right} samples as kept and sent, then {:?} \
                         ({} in all, of {})",
                        own.get(right),
                        own.len(),
                        whole.len()
                    ));
                }
                continue;
            }
            if *part == Presence::Returned {
                continue;
            }
            if own.is_empty() && (*part, topic) == (Presence::Late, Topic::States) {
                complaints.push(format!("display {display} joined and took nothing"));
            }
            let expected = match (part, own.first()) {
                (Presence::Stayed | Presence::Returned, _) => &whole[..],
                (Presence::Gone, _) => whole.get(..own.len()).unwrap_or(&whole),
                (Presence::Late, first) => {
                    &whole[late_start(&whole, first, journal, evidence.ahead_ns)..]
                }
            };
            let same = own
                .iter()
                .zip(expected)
                .take_while(|(own, it)| own.is_same_as(it));
            let same = same.count();
            if same < own.len().max(expected.len()) {
                complaints.push(format!(
                    "display {display}, {topic:?}: {same} samples as expected, then {:?} \
                     instead of {:?} ({} in all, not {})",
                    own.get(same),
                    expected.get(same),
                    own.len(),
                    expected.len()
                ));
            }
        }
    }
    let journal_of = |part| evidence.journals.iter().find(|it| it.0 == part);
    if let (Some((_, journal)), None) = (
        journal_of(Presence::Returned),
        catches_up(evidence, Presence::Returned),
    ) {
        let whole = journal_of(Presence::Stayed).map_or(&[][..], |it| &it.1);
        complaints.extend(returned::check(
            whole,
            journal,
            evidence.returned.as_ref(),
            evidence.ahead_ns,
        ));
    }
    complaints
}

/// What a display gets of what it was not there for; `None` where nothing is kept for it.
pub(super) fn catches_up(evidence: &Evidence, part: Presence) -> Option<Kept> {
    let was_absent = matches!(part, Presence::Late | Presence::Returned);
    let kept = evidence.kept.filter(|kept| *kept != Kept::Nothing);
    kept.filter(|_| was_absent)
}

/// When that display was not there, by what a display took that was: `whole`.
fn absence(evidence: &Evidence, part: Presence, whole: &[Entry]) -> Absence {
    let until = |at_ns: u64| whole.partition_point(|it| it.taken_at_ns <= at_ns);
    let record = &evidence.record;
    match part {
        Presence::Late => Absence {
            count: 1,
            from_max: 0,
            boundary_min: until(record.injected_at_ns),
        },
        _ => Absence {
            count: evidence.returned.as_ref().map_or(0, |it| it.returns) as usize,
            // Of the view before, some samples may not have been taken yet.
            from_max: until(record.view_changed_at_ns) + TAKEN_LATER_MAX,
            boundary_min: until(record.resumed_at_ns),
        },
    }
}

/// More than the rings hold, and a display has not taken.
const TAKEN_LATER_MAX: usize = 1000;

/// Names each participant that was out of the group without a fault of its own, and a stopped feed
/// that was not.
fn check_membership(evidence: &Evidence) -> Vec<String> {
    let returned = evidence.returned.iter().filter(|it| it.returns == 0);
    let unnoticed = returned.map(|_| "the stopped display did not notice that it was expelled");
    let displays = evidence
        .shown
        .iter()
        .map(|it| ("a display", false, it.returns));
    let feeds = evidence.fed.iter();
    let feeds = feeds.map(|(feed, it)| {
        let is_stopped = evidence.stopped_feed == Some(*feed);
        ("a feed", is_stopped, it.returns)
    });
    let wrong = displays.chain(feeds).filter(|it| it.1 != (it.2 > 0));
    wrong
        .map(|(name, is_stopped, returns)| match is_stopped {
            true => format!("{name} did not notice that it was expelled"),
            false => format!("{name} that was not stopped lost its group {returns} times"),
        })
        .chain(unnoticed.map(str::to_owned))
        .collect()
}

/// Index in the whole order of a topic from which a display that joined has to have all: that of
/// its first sample, or that of a sample which a feed sent after the display took its first state of that
/// feed, if that is earlier. What was sent before may have waited in the one topic's writer until the view of
/// the display, and not in the other's.
fn late_start(whole: &[Entry], first: Option<&Entry>, journal: &[Entry], ahead_ns: i64) -> usize {
    let own = first.and_then(|first| whole.iter().position(|it| it.is_same_as(first)));
    let is_due = |it: &Entry| {
        let mut of_feed = journal.iter().filter(|state| state.feed == it.feed);
        let state = of_feed.find(|state| state.topic == Topic::States);
        state.is_some_and(|state| (state.taken_at_ns as i64 + ahead_ns) < it.sent_at_ns)
    };
    let due = whole.iter().position(is_due);
    own.into_iter().chain(due).min().unwrap_or(whole.len())
}

/// The number that a sample of a feed has to have after the one before it.
fn expected_number(entry: &Entry, before: Option<u64>, part: Presence, kept: Option<Kept>) -> u64 {
    let is_kept_in_part = matches!(kept, Some(Kept::Last { .. }));
    let was_absent = matches!(part, Presence::Late | Presence::Returned);
    match before {
        // The others were replaced.
        _ if was_absent && is_kept_in_part => entry.number.max(before.unwrap_or(0) + 1),
        Some(before) => before + 1,
        None if part == Presence::Late && kept != Some(Kept::All) => entry.number,
        None => 1,
    }
}

/// Names each sample that is missing or comes twice: the numbers of each feed rise by one, from 1
/// at displays that were there from the beginning or get all that they were not there for, up to the
/// last sample of a feed that was not killed.
fn check_losses(evidence: &Evidence) -> Vec<String> {
    let mut complaints = Vec::new();
    for (display, (part, journal)) in evidence.journals.iter().enumerate() {
        let catches_up = catches_up(evidence, *part);
        if *part == Presence::Returned && catches_up.is_none() {
            continue;
        }
        let mut last: BTreeMap<(Topic, u16), u64> = BTreeMap::new();
        for entry in journal {
            let before = last.insert((entry.topic, entry.feed), entry.number);
            let expected = expected_number(entry, before, *part, evidence.kept);
            if entry.number != expected {
                complaints.push(format!(
                    "display {display}: {entry:?} is not number {expected}"
                ));
            }
        }
        if *part == Presence::Gone {
            continue;
        }
        for (feed, fed) in &evidence.fed {
            for (topic, sent) in [
                (Topic::States, fed.published - fed.alerts),
                (Topic::Alerts, fed.alerts),
            ] {
                let got = last.get(&(topic, *feed)).copied();
                if got.is_none() && *part == Presence::Late && catches_up.is_none() {
                    // All samples of this feed may come before its first one in the order.
                    continue;
                }
                if *part != Presence::Stayed && evidence.kept.is_some_and(Kept::is_of_all_feeds) {
                    // Another feed's sample may have replaced the last one before the display came:
                    // what it has to have is checked against the order of all.
                    continue;
                }
                let got = got.unwrap_or(0);
                if got != sent {
                    complaints.push(format!(
                        "display {display}: the last of {topic:?} of feed {feed} is {got}, not {sent}"
                    ));
                }
            }
        }
    }
    for (display, shown) in evidence.shown.iter().enumerate() {
        for (feed, fed) in &evidence.fed {
            if shown.fifo_digests.get(feed) != Some(&fed.fifo_digest) {
                complaints.push(format!(
                    "display {display} of those that stayed: not what feed {feed} sent"
                ));
            }
        }
    }
    complaints
}

/// How many samples came before the fault.
fn at_sample(evidence: &Evidence) -> u64 {
    if let Some(samples) = evidence.record.samples_of_stopped {
        return samples;
    }
    let part = |part| evidence.journals.iter().find(|it| it.0 == part);
    if part(Presence::Late).is_some() && catches_up(evidence, Presence::Late).is_some() {
        return evidence.record.samples_of_first;
    }
    let stayed = part(Presence::Stayed).map_or(&[][..], |it| &it.1);
    let count = match (
        evidence.killed_feed,
        part(Presence::Gone),
        part(Presence::Late),
    ) {
        (Some(feed), _, _) => stayed.iter().filter(|entry| entry.feed == feed).count(),
        (_, Some((_, journal)), _) => journal.len(),
        (_, _, Some((_, journal))) => {
            let first = journal.iter().find(|entry| entry.topic == Topic::States);
            let first = first.map_or(0, |entry| entry.position);
            let before = |it: &&Entry| it.topic != Topic::States || it.position < first;
            stayed.iter().take_while(before).count()
        }
        (None, None, None) => 0,
    };
    count as u64
}

/// The longest time without a sample that ended after the fault, in milliseconds.
fn outage_ms(journal: &[Entry], at_ns: u64) -> f64 {
    let after = journal
        .windows(2)
        .filter(|pair| pair[1].taken_at_ns > at_ns);
    let gaps = after.map(|pair| pair[1].taken_at_ns.saturating_sub(pair[0].taken_at_ns));
    gaps.max().unwrap_or(0) as f64 / 1e6
}

#[cfg(test)]
mod tests;
