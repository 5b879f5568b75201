//! What the journal of a display has to hold that lost its group and came back.
//!
//! ```text
//!   all samples of a topic, in order   a b c d e f g h i j k l
//!   the display's journal              a b c d . . . h i j k l
//!                                             gap: SAMPLE_LOST
//! ```

use std::collections::BTreeMap;

use super::journal::{Entry, Topic};
use super::report::DisplayReport;
use super::verdict::entries_of;

/// Names what does not hold: the display has nothing twice and nothing out of order; each time that it
/// came back it has one gap at most, whose samples it counts as lost; and from its last return on it
/// has all. `ahead_ns` is what the clock of `sent_at_ns` is ahead of that of `taken_at_ns`.
pub(super) fn check(
    whole_journal: &[Entry],
    journal: &[Entry],
    report: Option<&DisplayReport>,
    ahead_ns: i64,
) -> Vec<String> {
    let Some(report) = report else {
        return vec!["the stopped display did not report".to_owned()];
    };
    let mut complaints = Vec::new();
    if report.returns == 0 {
        complaints.push("the stopped display did not notice that it was expelled".to_owned());
    }
    // By feed: when the display took its first state after its last return. What the feed wrote later,
    // it wrote in a group with the display; what it wrote before may have waited in the one topic's writer
    // and not in the other's.
    let mut known: BTreeMap<u16, i64> = BTreeMap::new();
    for (topic, lost) in [Topic::States, Topic::Alerts].into_iter().zip(report.lost) {
        let whole = entries_of(whole_journal, topic);
        let own = entries_of(journal, topic);
        let parts = match Parts::of(&whole, &own) {
            Ok(parts) => parts,
            Err(entry) => {
                complaints.push(format!("{topic:?}: {entry:?} is twice, or not in order"));
                continue;
            }
        };
        if topic == Topic::States {
            let start = whole
                .get(parts.last_start)
                .map_or(u64::MAX, |it| it.position);
            for state in own.iter().filter(|it| it.position >= start) {
                let taken_at_ns = state.taken_at_ns as i64 + ahead_ns;
                known.entry(state.feed).or_insert(taken_at_ns);
            }
        }
        let is_due = |it: &Entry| {
            known
                .get(&it.feed)
                .is_some_and(|known| *known < it.sent_at_ns)
        };
        // With no alert after its return, the display may have missed the last ones.
        let ends_short = parts.end < whole.len();
        let start = if ends_short {
            whole.len()
        } else {
            parts.last_start
        };
        if let Some(missed) = whole[..start]
            .iter()
            .skip(parts.last_gap)
            .find(|it| is_due(it))
        {
            complaints.push(format!("{topic:?}: {missed:?} is missing after the return"));
        }
        if ends_short && topic == Topic::States {
            complaints.push(format!("{topic:?}: the last ones are missing"));
        }
        let gaps = parts.gaps + usize::from(ends_short);
        if gaps > report.returns as usize {
            let returns = report.returns;
            complaints.push(format!("{topic:?}: {gaps} gaps for {returns} returns"));
        }
        let jumped = jumped(&own);
        if jumped != lost {
            complaints.push(format!(
                "{topic:?}: {jumped} are missing, {lost} are SAMPLE_LOST"
            ));
        }
    }
    let complaint = |it| format!("the stopped display: {it}");
    complaints.into_iter().map(complaint).collect()
}

/// The parts of a whole order that a display has.
struct Parts {
    /// Gaps between them.
    gaps: usize,
    /// Where the last gap begins in the whole order; its end if there is none.
    last_gap: usize,
    /// Where the last part begins.
    last_start: usize,
    /// Where it ends.
    end: usize,
}

impl Parts {
    /// Fails with the first sample that is not in the whole order, or not after the one before it.
    fn of(whole: &[Entry], own: &[Entry]) -> Result<Self, Entry> {
        let mut parts = Self {
            gaps: 0,
            last_gap: 0,
            last_start: 0,
            end: 0,
        };
        for entry in own {
            let at = whole.partition_point(|it| it.position < entry.position);
            let is_known = whole.get(at).is_some_and(|it| it.is_same_as(entry));
            if !is_known || at < parts.end {
                return Err(*entry);
            }
            if at > parts.end {
                parts.gaps += 1;
                (parts.last_gap, parts.last_start) = (parts.end, at);
            }
            parts.end = at + 1;
        }
        if parts.gaps == 0 {
            parts.last_gap = parts.end;
        }
        Ok(parts)
    }
}

/// How many sequence numbers are missing between those of each feed.
fn jumped(own: &[Entry]) -> u64 {
    let mut last: BTreeMap<u16, u64> = BTreeMap::new();
    let jump = |it: &Entry| match last.insert(it.feed, it.number) {
        Some(before) => it.number.saturating_sub(before + 1),
        None => 0,
    };
    own.iter().map(jump).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sample `at` of two feeds in turn.
    fn entry(topic: Topic, at: u64) -> Entry {
        Entry {
            topic,
            feed: (at % 2) as u16,
            aircraft: 1,
            number: at / 2 + 1,
            position: at + 10,
            digest: at * 31,
            sent_at_ns: at as i64,
            taken_at_ns: at,
        }
    }

    fn states(at: impl Iterator<Item = u64>) -> Vec<Entry> {
        at.map(|at| entry(Topic::States, at)).collect()
    }

    fn check_journal(what: &str, journal: &[Entry], lost: [u64; 2], expected: bool) {
        let mut whole = states(0..20);
        whole.extend([2, 15].map(|at| entry(Topic::Alerts, at)));
        let report = DisplayReport {
            lost,
            returns: 1,
            ..DisplayReport::default()
        };
        let complaints = check(&whole, journal, Some(&report), 0);
        assert_eq!(complaints.is_empty(), expected, "{what}: {complaints:?}");
    }

    #[test]
    fn each_fault_of_a_returned_journal_is_found() {
        let alerts = [2, 15].map(|at| entry(Topic::Alerts, at));
        let journal = |states: Vec<Entry>| [states, alerts.to_vec()].concat();
        let good = states((0..8).chain(12..20));
        check_journal("one gap", &journal(good.clone()), [4, 0], true);
        check_journal("no gap", &journal(states(0..20)), [0, 0], true);
        check_journal(
            "lost and not counted",
            &journal(good.clone()),
            [3, 0],
            false,
        );
        check_journal(
            "the last is missing",
            &journal(states(0..19)),
            [0, 0],
            false,
        );
        check_journal(
            "nothing came after the return",
            &journal(states(0..8)),
            [0, 0],
            false,
        );
        let two = states((0..8).chain(12..15).chain(16..20));
        check_journal("two gaps", &journal(two), [5, 0], false);
        let twice = states((0..8).chain(7..20));
        check_journal("twice", &journal(twice), [0, 0], false);
        let mut other = good.clone();
        other[9].digest += 1;
        check_journal("another sample", &journal(other), [4, 0], false);
        let alert_missed = [good.clone(), alerts[..1].to_vec()].concat();
        check_journal("an alert is missing", &alert_missed, [4, 0], false);
        let late = states((0..8).chain(16..20));
        let before_return = [late, alerts[..1].to_vec()].concat();
        check_journal("an alert before the return", &before_return, [8, 0], true);
        assert!(!check(&good, &good, None, 0).is_empty());
        assert!(!check(&good, &good, Some(&DisplayReport::default()), 0).is_empty());
    }
}
