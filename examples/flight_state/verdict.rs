//! What came of a run with a fault: all that the journals have to agree on.

use std::collections::BTreeMap;

use serde::Serialize;
use spindle_dds::PeerPath;

use crate::drill::Course;
use crate::journal::{Entry, Topic};
use crate::report::{Fed, Shown};

/// The part that a display had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// It was there from the beginning to the end.
    Stayed,
    /// It joined, and was there to the end.
    Late,
    /// It was there from the beginning, and was killed or stopped.
    Gone,
}

/// What is known of a run.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// For each display.
    pub(crate) journals: Vec<(Part, Vec<Entry>)>,
    /// Of the displays that stayed.
    pub(crate) shown: Vec<Shown>,
    /// Of the feeds that were not killed.
    pub(crate) fed: BTreeMap<u16, Fed>,
    /// The one that was.
    pub(crate) killed_feed: Option<u16>,
    pub(crate) course: Course,
}

/// The outcome of a run with a fault; its line of output.
#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    pub(crate) fault: String,
    /// Samples that came before the fault: of the feed that was killed; else of both
    /// topics at the display that it struck, or before the first of the one that joined.
    at_sample: u64,
    view_before: u64,
    /// The view that followed.
    view: u64,
    /// By the feeds that were not killed.
    published: u64,
    /// For each display.
    delivered: Vec<usize>,
    /// Of the displays that stayed.
    digest: Vec<String>,
    identical: bool,
    /// Whether all samples of the feeds that were not killed came, once each, in order.
    exactly_once: bool,
    /// The longest time without a sample after the fault, at each display that stayed.
    pub(crate) outage_ms: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<String>,
    /// For each feed that was not killed, how its samples went to the others at the end.
    peers: Vec<Vec<PeerPath>>,
    pub(crate) held: bool,
    /// What did not hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    complaints: Vec<String>,
}

impl Verdict {
    pub(crate) fn of(fault: String, evidence: &Evidence) -> Self {
        let order = disorder(evidence);
        let flow = losses(evidence);
        let stayed = || evidence.journals.iter().filter(|it| it.0 == Part::Stayed);
        let outage_ms = stayed().map(|(_, journal)| outage_ms(journal, evidence.course.at_ns));
        let digest: Vec<String> = evidence.shown.iter().map(|it| it.digest.clone()).collect();
        let identical = order.is_empty() && digest.iter().all(|one| *one == digest[0]);
        Self {
            fault,
            at_sample: at_sample(evidence),
            view_before: evidence.course.view_before,
            view: evidence.course.view,
            published: evidence.fed.values().map(|feed| feed.published).sum(),
            delivered: evidence.journals.iter().map(|it| it.1.len()).collect(),
            digest,
            identical,
            exactly_once: flow.is_empty(),
            outage_ms: outage_ms.collect(),
            said: evidence.course.said.clone(),
            peers: evidence.fed.values().map(|it| it.peers.clone()).collect(),
            held: identical && flow.is_empty(),
            complaints: order.into_iter().chain(flow).collect(),
        }
    }
}

/// Several runs in a row; the last line of output then.
#[derive(Debug, Serialize)]
pub(crate) struct Verdicts {
    fault: String,
    runs: usize,
    held: usize,
    /// Over all displays that stayed.
    outage_ms_median: f64,
    outage_ms_max: f64,
}

impl Verdicts {
    pub(crate) fn of(verdicts: &[Verdict]) -> Self {
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

/// Of one topic.
fn of(journal: &[Entry], topic: Topic) -> Vec<Entry> {
    let entries = journal.iter().filter(|entry| entry.topic == topic);
    entries.copied().collect()
}

/// Where displays that should have the same samples in the same order do not: those
/// that stayed, all; who joined, all after its first; who is gone, a beginning.
fn disorder(evidence: &Evidence) -> Vec<String> {
    let mut complaints = Vec::new();
    for topic in [Topic::States, Topic::Alerts] {
        let stayed = evidence.journals.iter().find(|it| it.0 == Part::Stayed);
        let whole = stayed.map(|it| of(&it.1, topic)).unwrap_or_default();
        if whole.is_empty() {
            complaints.push(format!("{topic:?}: no samples"));
        }
        if !whole.is_sorted_by(|one, next| one.position < next.position) {
            complaints.push(format!("{topic:?}: positions do not rise"));
        }
        for (display, (part, journal)) in evidence.journals.iter().enumerate() {
            let own = of(journal, topic);
            if own.is_empty() && (*part, topic) == (Part::Late, Topic::States) {
                complaints.push(format!("display {display} joined and saw nothing"));
            }
            let wanted = match (part, own.first()) {
                (Part::Stayed, _) => &whole[..],
                (Part::Gone, _) => whole.get(..own.len()).unwrap_or(&whole),
                (Part::Late, first) => &whole[late_from(&whole, first, journal)..],
            };
            let same = own.iter().zip(wanted).take_while(|(own, it)| own.is(it));
            let same = same.count();
            if same < own.len().max(wanted.len()) {
                complaints.push(format!(
                    "display {display}, {topic:?}: {same} samples as they should be, then {:?} \
                     instead of {:?} ({} in all, not {})",
                    own.get(same),
                    wanted.get(same),
                    own.len(),
                    wanted.len()
                ));
            }
        }
    }
    complaints
}

/// Where in the whole order of a topic begins what a display that joined has to have:
/// with its first sample, and with what a feed sent after the first state that it has
/// of that feed, if that is earlier.
fn late_from(whole: &[Entry], first: Option<&Entry>, journal: &[Entry]) -> usize {
    let own = first.and_then(|first| whole.iter().position(|it| it.is(first)));
    let heard_before = |it: &Entry| {
        let mut of_feed = journal.iter().filter(|state| state.feed == it.feed);
        let state = of_feed.find(|state| state.topic == Topic::States);
        state.is_some_and(|state| state.sent_at_ns < it.sent_at_ns)
    };
    let due = whole.iter().position(heard_before);
    own.into_iter().chain(due).min().unwrap_or(whole.len())
}

/// Where samples are missing or come twice: each feed's numbers rise by one, from 1 at
/// displays that were there from the start, to the last one of a feed that lives.
fn losses(evidence: &Evidence) -> Vec<String> {
    let mut complaints = Vec::new();
    for (display, (part, journal)) in evidence.journals.iter().enumerate() {
        let mut last: BTreeMap<(Topic, u16), u64> = BTreeMap::new();
        for entry in journal {
            let before = last.insert((entry.topic, entry.feed), entry.number);
            let wanted = match (before, part) {
                (Some(before), _) => before + 1,
                (None, Part::Late) => entry.number,
                (None, _) => 1,
            };
            if entry.number != wanted {
                complaints.push(format!(
                    "display {display}: {entry:?} is not number {wanted}"
                ));
            }
        }
        if *part == Part::Gone {
            continue;
        }
        for (feed, fed) in &evidence.fed {
            for (topic, sent) in [
                (Topic::States, fed.published - fed.alerts),
                (Topic::Alerts, fed.alerts),
            ] {
                let got = last.get(&(topic, *feed)).copied();
                if got.is_none() && *part == Part::Late {
                    // Whether there was any for it is a matter of order.
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
                    "the display that stayed, {display}: not what feed {feed} sent"
                ));
            }
        }
    }
    complaints
}

fn at_sample(evidence: &Evidence) -> u64 {
    let part = |part| evidence.journals.iter().find(|it| it.0 == part);
    let stayed = part(Part::Stayed).map_or(&[][..], |it| &it.1);
    let count = match (evidence.killed_feed, part(Part::Gone), part(Part::Late)) {
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

/// The longest time without a sample that ended after the fault.
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
                (Part::Stayed, journal(10)),
                (Part::Late, journal(10)[5..].to_vec()),
                (Part::Gone, journal(6)),
            ],
            fed: BTreeMap::from([(
                0,
                Fed {
                    published: 6,
                    alerts: 1,
                    ..Fed::default()
                },
            )]),
            killed_feed: Some(1),
            ..Evidence::default()
        }
    }

    fn check(what: &str, spoil: impl FnOnce(&mut Evidence), wanted: bool) {
        let mut evidence = evidence();
        spoil(&mut evidence);
        let verdict = Verdict::of(what.to_owned(), &evidence);
        assert_eq!(verdict.held, wanted, "{verdict:?}");
    }

    #[test]
    fn whatever_is_wrong_is_found() {
        check("nothing is", |_| {}, true);
        check(
            "a late one's lost",
            |it| it.journals[1].1.retain(|it| it.position != 16),
            false,
        );
        check(
            "a late one's last lost",
            |it| it.journals[1].1.truncate(5),
            false,
        );
        check(
            "a late one has no states",
            |it| it.journals[1].1.clear(),
            false,
        );
        check(
            "one lost at all",
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
            "the dead saw more",
            |it| {
                it.journals[2].1 = journal(11);
            },
            false,
        );
        check(
            "not all of a feed that lives",
            |it| {
                it.fed.entry(0).and_modify(|fed| fed.published += 1);
            },
            false,
        );
        check(
            "another digest",
            |it| {
                it.shown = vec![Shown::default()];
            },
            false,
        );
    }

    #[test]
    fn the_outage_is_after_the_fault() {
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
