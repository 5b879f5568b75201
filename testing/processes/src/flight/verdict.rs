//! The verdict on a run with a fault: what the journals of the displays have to agree on.

use std::collections::BTreeMap;

use serde::Serialize;
use spindle_dds::PeerPath;

use super::fault_sequence::FaultRecord;
use super::journal::{Entry, Topic};
use super::report::{DisplayReport, FeedReport};
use super::returned;

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
    /// Of the feeds that were not killed.
    pub(super) fed: BTreeMap<u16, FeedReport>,
    /// The feed that was killed.
    pub(super) killed_feed: Option<u16>,
    /// The feed that was stopped.
    pub(super) stopped_feed: Option<u16>,
    pub(super) record: FaultRecord,
}

/// The outcome of a run with a fault; its line of output.
#[derive(Debug, Serialize)]
pub(super) struct Verdict {
    pub(super) fault: String,
    /// Samples before the fault: of the feed that was killed or stopped; else at the display that
    /// was, or before the first sample of the one that joined.
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
        let order = check_order(evidence);
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
/// all, one that joined has all from its first on, one that is gone has the first ones. See
/// [`returned`] for one that came back.
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
            if *part == Presence::Returned {
                continue;
            }
            let own = entries_of(journal, topic);
            if own.is_empty() && (*part, topic) == (Presence::Late, Topic::States) {
                complaints.push(format!("display {display} joined and took nothing"));
            }
            let expected = match (part, own.first()) {
                (Presence::Stayed | Presence::Returned, _) => &whole[..],
                (Presence::Gone, _) => whole.get(..own.len()).unwrap_or(&whole),
                (Presence::Late, first) => &whole[late_start(&whole, first, journal)..],
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
    if let Some((_, journal)) = journal_of(Presence::Returned) {
        let whole = journal_of(Presence::Stayed).map_or(&[][..], |it| &it.1);
        complaints.extend(returned::check(
            whole,
            journal,
            evidence.returned.as_ref(),
            crate::clock::realtime_ahead_ns(),
        ));
    }
    complaints
}

/// Names each participant that was out of the group without a fault of its own, and a stopped feed
/// that was not.
fn check_membership(evidence: &Evidence) -> Vec<String> {
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
        .collect()
}

/// Index in the whole order of a topic from which a display that joined has to have all: that of
/// its first sample, or that of a sample which a feed sent after the first state that the display
/// has of that feed, if that is earlier.
fn late_start(whole: &[Entry], first: Option<&Entry>, journal: &[Entry]) -> usize {
    let own = first.and_then(|first| whole.iter().position(|it| it.is_same_as(first)));
    let sent_after_first_state = |it: &Entry| {
        let mut of_feed = journal.iter().filter(|state| state.feed == it.feed);
        let state = of_feed.find(|state| state.topic == Topic::States);
        state.is_some_and(|state| state.sent_at_ns < it.sent_at_ns)
    };
    let due = whole.iter().position(sent_after_first_state);
    own.into_iter().chain(due).min().unwrap_or(whole.len())
}

/// Names each sample that is missing or comes twice: the numbers of each feed rise by one, from 1
/// at displays that were there from the beginning, up to the last sample of a feed that was not
/// killed.
fn check_losses(evidence: &Evidence) -> Vec<String> {
    let mut complaints = Vec::new();
    for (display, (part, journal)) in evidence.journals.iter().enumerate() {
        if *part == Presence::Returned {
            continue;
        }
        let mut last: BTreeMap<(Topic, u16), u64> = BTreeMap::new();
        for entry in journal {
            let before = last.insert((entry.topic, entry.feed), entry.number);
            let expected = match (before, part) {
                (Some(before), _) => before + 1,
                (None, Presence::Late) => entry.number,
                (None, _) => 1,
            };
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
                if got.is_none() && *part == Presence::Late {
                    // All samples of this feed may come before its first one in the order.
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
mod tests {
    use super::*;

    fn entry(feed: u16, number: u64, position: u64) -> Entry {
        Entry {
            topic: Topic::States,
            feed,
            number,
            position,
            digest: position * 31,
            sent_at_ns: position as i64,
            taken_at_ns: position * 1_000_000,
        }
    }

    /// One alert, then states of two feeds in turn.
    fn journal(samples: u64) -> Vec<Entry> {
        let states = (0..samples).map(|at| entry((at % 2) as u16, at / 2 + 1, at + 10));
        let alert = Entry {
            topic: Topic::Alerts,
            ..entry(0, 1, 1)
        };
        std::iter::once(alert).chain(states).collect()
    }

    /// Feed 1 was killed, display 1 joined late, display 2 was killed too.
    fn evidence() -> Evidence {
        Evidence {
            journals: vec![
                (Presence::Stayed, journal(10)),
                (Presence::Late, journal(10)[5..].to_vec()),
                (Presence::Gone, journal(6)),
            ],
            fed: BTreeMap::from([(
                0,
                FeedReport {
                    published: 6,
                    alerts: 1,
                    ..FeedReport::default()
                },
            )]),
            killed_feed: Some(1),
            ..Evidence::default()
        }
    }

    fn check(what: &str, spoil: impl FnOnce(&mut Evidence), expected: bool) {
        let mut evidence = evidence();
        spoil(&mut evidence);
        let verdict = Verdict::of(what.to_owned(), &evidence);
        assert_eq!(verdict.held, expected, "{verdict:?}");
    }

    #[test]
    fn each_fault_of_a_journal_is_found() {
        check("nothing is wrong", |_| {}, true);
        check(
            "a late display lost one",
            |it| it.journals[1].1.retain(|it| it.position != 16),
            false,
        );
        check(
            "a late display lost its last ones",
            |it| it.journals[1].1.truncate(5),
            false,
        );
        check(
            "a late display has no states",
            |it| it.journals[1].1.clear(),
            false,
        );
        check(
            "all lost one",
            |it| {
                it.journals
                    .iter_mut()
                    .for_each(|it| it.1.retain(|it| it.position != 14));
            },
            false,
        );
        check(
            "twice",
            |it| {
                let again = it.journals[0].1[3];
                it.journals[0].1.insert(4, again);
            },
            false,
        );
        let late_alert = |it: &mut Evidence, displays: &[usize]| {
            let alert = Entry {
                topic: Topic::Alerts,
                ..entry(0, 2, 30)
            };
            displays
                .iter()
                .for_each(|at| it.journals[*at].1.push(alert));
            it.fed.entry(0).and_modify(|fed| fed.published += 1);
            it.fed.entry(0).and_modify(|fed| fed.alerts += 1);
        };
        check("a late alert", |it| late_alert(it, &[0, 1]), true);
        check("a late alert lost", |it| late_alert(it, &[0]), false);
        check("another order", |it| it.journals[0].1.swap(4, 5), false);
        check("other bytes", |it| it.journals[2].1[4].digest += 1, false);
        check(
            "the killed display has more",
            |it| {
                it.journals[2].1 = journal(11);
            },
            false,
        );
        check(
            "not all of a feed that was not killed",
            |it| {
                it.fed.entry(0).and_modify(|fed| fed.published += 1);
            },
            false,
        );
        check(
            "another digest",
            |it| {
                it.shown = vec![DisplayReport::default()];
            },
            false,
        );
        check(
            "a stopped feed never left",
            |it| it.stopped_feed = Some(0),
            false,
        );
        let returned = |it: &mut Evidence| {
            it.fed.entry(0).and_modify(|fed| fed.returns = 1);
        };
        check("a healthy feed was expelled", returned, false);
        check(
            "a stopped feed came back",
            |it| {
                it.stopped_feed = Some(0);
                returned(it);
            },
            true,
        );
    }

    #[test]
    fn only_gaps_after_the_fault_are_outages() {
        let mut journal = journal(10);
        journal
            .iter_mut()
            .skip(4)
            .for_each(|it| it.taken_at_ns += 3_000_000);
        assert_eq!(outage_ms(&journal, 9_000_000), 9.0);
        assert_eq!(outage_ms(&journal, 11_000_000), 4.0);
        assert_eq!(outage_ms(&journal, 17_000_000), 1.0);
    }
}
