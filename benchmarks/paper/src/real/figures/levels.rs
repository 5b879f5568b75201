//! Figure 18: the levels of the DDS of §IV-F.

use super::times;
use crate::model::Senders;
use crate::plan::{Found, Line, Saying, THROUGHPUT, verdict};
use crate::real::Scale;
use crate::real::outcome::{Outcome, Rounds, throughput};
use crate::real::plan::Plan;
use crate::real::run::Run;
use crate::report::{Axis, Claim, Subject, Verdict};
use crate::systems::{Stage, panel};

const LEVELS: [Level; 4] = [
    Level {
        name: UNORDERED,
        unordered: true,
        durability: None,
    },
    Level {
        name: ATOMIC,
        unordered: false,
        durability: None,
    },
    Level {
        name: "Volatile",
        unordered: false,
        durability: Some("transient"),
    },
    Level {
        name: "Logged",
        unordered: false,
        durability: Some("persistent"),
    },
];
const UNORDERED: &str = "Unordered";
const ATOMIC: &str = "Atomic";
const BASELINE: &str = "baseline";
const SPINDLE: &str = "Spindle";

/// A level: RELIABILITY and DURABILITY.
struct Level {
    name: &'static str,
    unordered: bool,
    durability: Option<&'static str>,
}

pub(super) fn figure_18(scale: Scale) -> Plan {
    let subscribers = Axis {
        label: "subscribers besides the publisher, which subscribes too",
        log: false,
    };
    let mut lines: Vec<Line<Run>> = Vec::new();
    for (stage, name) in [(Stage::Baseline, BASELINE), (Stage::Spindle, SPINDLE)] {
        for level in LEVELS {
            let mut line = scale.line(stage, throughput, |run| {
                let run = Run {
                    unordered: level.unordered,
                    durability: level.durability,
                    ..run
                };
                run.senders(Senders::One)
            });
            line.runs
                .iter_mut()
                .for_each(|(members, _)| *members -= 1.0);
            lines.push(line.named(format!("{}, {name}", level.name)));
        }
    }
    Plan {
        notes: vec![
            "An Unordered sender that finds no room tries again. Volatile is DURABILITY TRANSIENT: \
             each member's history thread copies a message into memory, of which the last one \
             stays, and its slot is free after that; also in the baseline, unlike in the paper's. Logged is PERSISTENT: each member's log thread writes, \
             too, and syncs what has gathered; all logs are on one disk.",
        ],
        panels: vec![panel("throughput", [subscribers, THROUGHPUT], lines)],
        claims: claims_18,
        ..Plan::new(Subject::Figure(18))
    }
}

fn claims_18(found: &Found<Rounds>) -> Vec<Claim> {
    let says = |text, paper, why| Saying {
        section: "§IV-F",
        text,
        paper,
        why,
    };
    vec![
        says("Spindle improves performance at each level", "improves", "").with(improves(found)),
        says(
            "Spindle: nearly the same for Unordered and Atomic",
            "nearly the same",
            "",
        )
        .with(same(found)),
        says(
            "Spindle: a level above Atomic is no faster than the one before",
            "slower: memory copying, disk",
            "",
        )
        .with(falls(found)),
    ]
}

/// The ratio of the second level and system to the first, on average.
fn ratio(found: &Found<Rounds>, from: (&str, &str), to: (&str, &str)) -> Option<f64> {
    let line = |(level, system): (&str, &str)| format!("{level}, {system}");
    times(found, (0, &line(from)), (0, &line(to)), Outcome::throughput)
}

fn improves(found: &Found<Rounds>) -> Option<(String, Verdict)> {
    let improved: Option<Vec<f64>> = LEVELS
        .iter()
        .map(|level| ratio(found, (level.name, BASELINE), (level.name, SPINDLE)))
        .collect();
    let improved = improved?;
    let names = LEVELS.iter().zip(&improved);
    let told: Vec<String> = names
        .map(|(level, improved)| format!("{} {improved:.1}×", level.name))
        .collect();
    let all = improved.iter().all(|it| *it > 1.0);
    Some((told.join(", "), verdict(all, false)))
}

fn same(found: &Found<Rounds>) -> Option<(String, Verdict)> {
    let ours = ratio(found, (UNORDERED, SPINDLE), (ATOMIC, SPINDLE))?;
    Some((
        format!("Atomic has {ours:.2} of Unordered's rate"),
        verdict(ours > 0.8, ours > 0.5),
    ))
}

/// The order of the levels, from Atomic on: only that, as few processors show no more.
fn falls(found: &Found<Rounds>) -> Option<(String, Verdict)> {
    let steps: Option<Vec<(&str, &str, f64)>> = LEVELS[1..]
        .windows(2)
        .map(|pair| {
            let (before, after) = (pair[0].name, pair[1].name);
            Some((
                before,
                after,
                ratio(found, (before, SPINDLE), (after, SPINDLE))?,
            ))
        })
        .collect();
    let steps = steps?;
    let told: Vec<String> = steps
        .iter()
        .map(|(before, after, step)| format!("{after} has {step:.2} of {before}'s rate"))
        .collect();
    let falls = steps.iter().all(|(.., step)| *step <= 1.0);
    Some((told.join(", "), verdict(false, falls)))
}
