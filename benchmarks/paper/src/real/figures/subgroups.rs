//! Figures 8, 9, 13: several subgroups, one or all of them active.

use super::{kept, more_than, ratio, thousands, times};
use crate::plan::{Found, Line, MEMBERS, Saying, THROUGHPUT, verdict};
use crate::real::Scale;
use crate::real::outcome::{Outcome, Rounds, throughput};
use crate::real::plan::{Plan, TablePlan};
use crate::real::run::Run;
use crate::report::{Claim, Subject};
use crate::simulated::figures::subgroups::name;
use crate::systems::{Stage, panel};

fn counts(scale: Scale) -> &'static [usize] {
    match scale.quick {
        true => &[1, 10],
        false => &[1, 10, 50],
    }
}

fn one_active(scale: Scale, stage: Stage, change: fn(Run) -> Run) -> Vec<Line<Run>> {
    let line = |subgroups: &usize| {
        let line = scale.line(stage, throughput, |run| {
            change(run.idle_topics(subgroups - 1))
        });
        line.named(name(*subgroups))
    };
    counts(scale).iter().map(line).collect()
}

const NOTE: &str = "All members write and read in all subgroups, and send in the first.";

pub(super) fn figure_8(scale: Scale) -> Plan {
    let lines = one_active(scale, Stage::Baseline, |run| run);
    Plan {
        notes: vec![NOTE],
        panels: vec![panel("baseline", [MEMBERS, THROUGHPUT], lines)],
        claims: |found| {
            let falls = || {
                let ten = times(found, (0, &name(1)), (0, &name(10)), Outcome::throughput)?;
                let fifty = times(found, (0, &name(1)), (0, &name(50)), Outcome::throughput)?;
                let told = format!("{ten:.2} of the rate with 10, {fifty:.2} with 50");
                Some((told, verdict(ten < 1.0 && fifty < ten, false)))
            };
            let saying = Saying {
                section: "§IV-A.3",
                text: "Performance decreases consistently with the number of subgroups",
                paper: "0.1 of the rate with 50",
                why: "",
            };
            vec![saying.with(falls())]
        },
        ..Plan::new(Subject::Figure(8))
    }
}

const ONE: &str = "1 subgroup";
const FIFTY: &str = "50 subgroups, one active";
const UNPOLLED: &str = "the same without summary_polling";

pub(super) fn figure_9(scale: Scale) -> Plan {
    let members = *scale.members().last().unwrap_or(&2);
    let run = |idle_topics| {
        let run = scale.long_run(members, Stage::Bounded);
        run.idle_topics(idle_topics)
    };
    Plan {
        notes: vec![
            NOTE,
            "Batching has no summary polling, Spindle has. Time for the active subgroup's \
             predicates is not measured, as members do not read a clock.",
        ],
        panels: vec![
            panel(
                "batching",
                [MEMBERS, THROUGHPUT],
                one_active(scale, Stage::Batching, |run| run),
            ),
            panel(
                "Spindle",
                [MEMBERS, THROUGHPUT],
                one_active(scale, Stage::Spindle, |run| run),
            ),
        ],
        tables: vec![TablePlan {
            title: "One active subgroup, all members send",
            head: vec![
                "",
                "thousand messages per second [min .. max]",
                "of 1 subgroup",
            ],
            rows: vec![
                (ONE.to_owned(), run(0)),
                (FIFTY.to_owned(), run(49)),
                (UNPOLLED.to_owned(), run(49).without("summary_polling")),
            ],
            cells: |rounds| vec![thousands(rounds), ratio(rounds)],
            repeats: true,
        }],
        claims: claims_9,
        ..Plan::new(Subject::Figure(9))
    }
}

fn claims_9(found: &Found<Rounds>) -> Vec<Claim> {
    let graceful = || {
        let ours = times(found, (0, &name(1)), (0, &name(50)), Outcome::throughput)?;
        Some((
            format!("{ours:.2} of the rate with 50"),
            verdict(ours > 0.2, ours > 0.1),
        ))
    };
    let unchanged = || {
        let on = kept(found, (2, FIFTY))?;
        let off = kept(found, (2, UNPOLLED))?;
        Some((
            format!("{on:.2} of the rate with 50, {off:.2} without summary polling"),
            verdict(on >= 0.9, on > off),
        ))
    };
    vec![
        Saying {
            section: "§IV-A.3",
            text: "Batching: even with 50 subgroups, performance declines more gracefully than \
                   that of the baseline (0.1)",
            paper: "more gracefully",
            why: "",
        }
        .with(graceful()),
        Saying {
            section: "ours",
            text: "Spindle: 50 subgroups, one active, keep at least 0.9 of the rate with one",
            paper: "–",
            why: "",
        }
        .with(unchanged()),
    ]
}

pub(super) fn figure_13(scale: Scale) -> Plan {
    let counts: &[usize] = if scale.quick { &[1, 2] } else { &[1, 2, 5, 10] };
    let lines = |stage| {
        let line = |topics: &usize| {
            let line = scale.line(stage, throughput, |run| Run {
                topics: *topics,
                messages: scale.messages_by(*topics as u32),
                ..run
            });
            line.named(name(*topics))
        };
        counts.iter().map(line).collect()
    };
    Plan {
        notes: vec!["Each member sends in each subgroup, with a thread for each."],
        panels: vec![
            panel("baseline", [MEMBERS, THROUGHPUT], lines(Stage::Baseline)),
            panel("Spindle", [MEMBERS, THROUGHPUT], lines(Stage::Spindle)),
        ],
        claims: |found| {
            let faster = || {
                let ratios = [1, 2, 5, 10].map(|subgroups| {
                    let name = name(subgroups);
                    found.ratios((0, &name), (1, &name), throughput)
                });
                more_than(crate::plan::mean(&ratios.concat()), 1.0)
            };
            let scaling = || {
                let ours = times(found, (1, &name(1)), (1, &name(10)), Outcome::throughput)?;
                Some((
                    format!("10 subgroups have {ours:.2} of the rate of one, on average"),
                    verdict(ours > 0.8, ours > 0.5),
                ))
            };
            let says = |text, paper| Saying {
                section: "§IV-C",
                text,
                paper,
                why: "",
            };
            vec![
                says(
                    "Faster than the baseline with several active subgroups",
                    "faster",
                )
                .with(faster()),
                says(
                    "Excellent scaling with the number of subgroups",
                    "excellent",
                )
                .with(scaling()),
            ]
        },
        ..Plan::new(Subject::Figure(13))
    }
}
