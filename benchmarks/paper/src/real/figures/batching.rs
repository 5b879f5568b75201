//! Figures 3, 4, 5: opportunistic batching in one subgroup.

use crate::model::Senders;

use super::{more_than, times};
use crate::plan::{Found, LATENCY, MEMBERS, Saying, THROUGHPUT, verdict};
use crate::real::Scale;
use crate::real::outcome::{Outcome, Rounds, latency, rate, throughput};
use crate::real::plan::Plan;
use crate::real::run::Run;
use crate::report::{Axis, Claim, Subject};
use crate::simulated::figures::batching::{SENDERS, SIZES, STAGES};
use crate::systems::{Stage, panel};

const BASELINE: &str = "baseline";
const BATCHING: &str = "batching";

pub(super) fn figure_3(scale: Scale) -> Plan {
    let panels = SENDERS.map(|(senders, title)| {
        let line = |stage| scale.line(stage, throughput, |run| run.senders(senders));
        let lines = vec![line(Stage::Baseline), line(Stage::Batching).named(BATCHING)];
        panel(title, [MEMBERS, THROUGHPUT], lines)
    });
    Plan {
        notes: vec![
            "Messages of 10 KB, a window of 128. There is no link, so there is no utilisation: \
             messages stay where they were built, and GB/s counts the bytes delivered at members. \
             There is no claim on scaling with the number of senders: they share the same \
             processors.",
        ],
        panels: panels.into(),
        claims: claims_3,
        ..Plan::new(Subject::Figure(3))
    }
}

fn claims_3(found: &Found<Rounds>) -> Vec<Claim> {
    let faster = |panel| {
        let ours = times(
            found,
            (panel, BASELINE),
            (panel, BATCHING),
            Outcome::throughput,
        );
        more_than(ours, 1.5)
    };
    let says = |text, paper| Saying {
        section: "§IV-A.1",
        text,
        paper,
        why: WHY_3,
    };
    vec![
        says(
            "All senders: faster than the baseline",
            "9× (2 to 16 members)",
        )
        .with(faster(0)),
        says("Half senders: the same", "6×").with(faster(1)),
        says("One sender: the same", "3×").with(faster(2)),
    ]
}

const WHY_3: &str = "The paper's averages are of 2 to 16 members, and a push there is a work \
                     request of 1 µs; here it is a store to shared memory.";

pub(super) fn figure_4(scale: Scale) -> Plan {
    let messages = Axis {
        label: "messages delivered at a member per second",
        log: false,
    };
    let panels = SENDERS.map(|(senders, title)| {
        let lines = SIZES.map(|(size, name)| {
            let line = scale.line(Stage::Batching, rate, |run| {
                let run = Run { size, ..run };
                run.senders(senders)
            });
            line.named(name)
        });
        panel(title, [MEMBERS, messages], lines.into())
    });
    Plan {
        panels: panels.into(),
        claims: |found| {
            let spread = |panel| {
                let ours = times(found, (panel, "1 B"), (panel, "10 KB"), Outcome::rate)?;
                Some((
                    format!("10 KB at {ours:.2} of the rate of 1 B, on average"),
                    verdict((0.8..=1.25).contains(&ours), ours >= 0.5),
                ))
            };
            let saying = Saying {
                section: "§IV-A.1",
                text: "All senders: the rate is about the same for different small sizes",
                paper: "about the same",
                why: "",
            };
            let half = "Half senders: the same";
            let one = "One sender: the same";
            vec![
                saying.with(spread(0)),
                Saying {
                    text: half,
                    ..saying
                }
                .with(spread(1)),
                Saying {
                    text: one,
                    ..saying
                }
                .with(spread(2)),
            ]
        },
        ..Plan::new(Subject::Figure(4))
    }
}

pub(super) fn figure_5(scale: Scale) -> Plan {
    let lines = |read, stamped| {
        let line = |stage| scale.line(stage, read, |run| Run { stamped, ..run });
        STAGES.map(line).into()
    };
    Plan {
        notes: vec![
            "Latency is measured from before claiming a message, at a sender that never pauses, \
             until it is taken, over all readers: most of it is waiting behind the other messages \
             of the window.",
        ],
        panels: vec![
            panel(
                "throughput",
                [MEMBERS, THROUGHPUT],
                lines(throughput, false),
            ),
            panel("latency", [MEMBERS, LATENCY], lines(latency, true)),
        ],
        claims: claims_5,
        ..Plan::new(Subject::Figure(5))
    }
}

fn claims_5(found: &Found<Rounds>) -> Vec<Claim> {
    let first = Stage::Baseline.name();
    let last = Stage::Batching.name();
    let steps = |panel, of: fn(&Outcome) -> f64, rises: bool| {
        let mut told = Vec::new();
        let mut all = true;
        for pair in STAGES.windows(2) {
            let ratio = times(found, (panel, pair[0].name()), (panel, pair[1].name()), of)?;
            all &= (ratio > 1.0) == rises;
            told.push(format!("{}: {ratio:.2}×", pair[1].name()));
        }
        let whole = times(found, (panel, first), (panel, last), of)?;
        told.push(format!("together {whole:.2}×"));
        Some((told.join(", "), verdict(all, (whole > 1.0) == rises)))
    };
    let fewer = || {
        let ratio = times(found, (0, last), (0, first), |it| it.pushes as f64)?;
        Some((
            format!("{ratio:.1}× fewer pushes"),
            verdict(false, ratio > 1.5),
        ))
    };
    vec![
        Saying {
            section: "figure 5",
            text: "Each stage improves throughput",
            paper: "delivery, receive, send: each does",
            why: WHY_5,
        }
        .with(steps(0, Outcome::throughput, true)),
        Saying {
            section: "figure 5",
            text: "Each stage improves latency",
            paper: "delivery, receive, send: each does",
            why: WHY_5,
        }
        .with(steps(1, Outcome::latency, false)),
        Saying {
            section: "§IV-A.1",
            text: "Fewer write requests",
            paper: "16.5× (16 senders)",
            why: "",
        }
        .with(fewer()),
    ]
}

const WHY_5: &str =
    "A next stage without batching is the limit, and batches before it do not help.";

/// The senders of other figures.
pub(super) const ALL_AND_ONE: [(Senders, &str); 2] = [
    (Senders::All, "all members send"),
    (Senders::One, "one member sends"),
];
