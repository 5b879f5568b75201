//! The runs with real processes for each figure. Only trends can be compared with the paper, whose
//! numbers are of 2 to 16 machines with 16 processors each.

mod batching;
mod copies;
mod levels;
mod nulls;
mod outcome;
mod subgroups;
mod upcalls;
mod windows;

use super::Scale;
use super::outcome::{Outcome, Rounds};
use super::plan::Plan;
use crate::plan::{Found, mean, verdict};
use crate::report::{Subject, Verdict};
use crate::simulated::figures::NUMBERS;

/// All subjects.
pub(crate) const SUBJECTS: [Subject; NUMBERS.len() + 1] = {
    let mut all = [Subject::Upcalls; NUMBERS.len() + 1];
    let mut at = 0;
    while at < NUMBERS.len() {
        all[at] = Subject::Figure(NUMBERS[at]);
        at += 1;
    }
    all
};

/// The plan of a subject of [`SUBJECTS`].
pub(crate) fn plan(subject: Subject, scale: Scale) -> Plan {
    match subject {
        Subject::Figure(3) => batching::figure_3(scale),
        Subject::Figure(4) => batching::figure_4(scale),
        Subject::Figure(5) => batching::figure_5(scale),
        Subject::Figure(6) => windows::figure_6(scale),
        Subject::Figure(7) => windows::figure_7(scale),
        Subject::Figure(8) => subgroups::figure_8(scale),
        Subject::Figure(9) => subgroups::figure_9(scale),
        Subject::Figure(10) => nulls::figure_10(scale),
        Subject::Figure(11) => nulls::figure_11(scale),
        Subject::Figure(12) => outcome::figure_12(scale),
        Subject::Figure(13) => subgroups::figure_13(scale),
        Subject::Figure(14) => copies::figure_14(),
        Subject::Figure(15) => copies::figure_15(scale),
        Subject::Figure(16) => outcome::figure_16(scale),
        Subject::Figure(17) => outcome::figure_17(scale),
        Subject::Figure(_) => levels::figure_18(scale),
        Subject::Upcalls => upcalls::plan(scale),
    }
}

/// A line of a panel.
type Place<'a> = (usize, &'a str);

/// The ratio of line `to` to line `from`, on average.
fn times(
    found: &Found<Rounds>,
    from: Place<'_>,
    to: Place<'_>,
    of: fn(&Outcome) -> f64,
) -> Option<f64> {
    let firsts = found.line(from.0, from.1).iter();
    let points: Vec<_> = firsts
        .filter_map(|(x, first)| Some((*x, found.at(to.0, to.1, *x)?.over(first, of))))
        .collect();
    mean(&points)
}

/// The rate of a row relative to the first row of its table.
fn kept(found: &Found<Rounds>, (table, row): Place<'_>) -> Option<f64> {
    Some(found.at(table, row, 0.0)?.of_first())
}

/// The text and verdict of a ratio that should exceed `least`: only a trend, never the number.
fn more_than(ratio: Option<f64>, least: f64) -> Option<(String, Verdict)> {
    let ratio = ratio?;
    Some((
        format!("{ratio:.2}× on average"),
        verdict(false, ratio > least),
    ))
}

/// The ratio of a row to the first row, for tables.
fn ratio(rounds: &Rounds) -> String {
    format!("{:.3}", rounds.of_first())
}

/// Thousand messages per second: median, minimum and maximum.
fn thousands(rounds: &Rounds) -> String {
    let rates = rounds.spread(|it| it.messages_per_s / 1e3);
    format!("{:.1} [{:.1} .. {:.1}]", rates.median, rates.min, rates.max)
}
