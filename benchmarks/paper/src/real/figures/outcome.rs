//! Figures 12, 16, 17: all optimisations on.

use crate::model::Senders;

use super::{kept, ratio, thousands, times};
use crate::plan::{Found, LATENCY, MEMBERS, Saying, THROUGHPUT, verdict};
use crate::real::Scale;
use crate::real::outcome::{Outcome, Rounds, latency, throughput};
use crate::real::plan::{Plan, TablePlan};
use crate::real::run::Run;
use crate::report::{Axis, Claim, Subject};
use crate::simulated::figures::batching::SENDERS;
use crate::systems::{Stage, panel};

const BASELINE: &str = "baseline";
const SPINDLE: &str = "Spindle";

pub(super) fn figure_12(scale: Scale) -> Plan {
    let line = |stage| scale.line(stage, throughput, |run| run);
    let lines = vec![
        line(Stage::Nulls).named("batching and nulls"),
        line(Stage::Spindle),
    ];
    Plan {
        notes: vec![
            "Late pushes have no series here: in the paper they release a lock before posting. Our \
             engine has no lock between senders and the polling thread, and always pushes at the \
             end of a step. Spindle adds batched upcalls and summary polling to batching and \
             nulls.",
        ],
        panels: vec![panel("one subgroup", [MEMBERS, THROUGHPUT], lines)],
        ..Plan::new(Subject::Figure(12))
    }
}

fn by_senders(
    scale: Scale,
    axes: [Axis; 2],
    read: fn(&Rounds) -> f64,
    stamped: bool,
) -> Vec<crate::plan::PanelPlan<Run>> {
    let panels = SENDERS.map(|(senders, title)| {
        let line = |stage| {
            scale.line(stage, read, |run| {
                let run = Run { stamped, ..run };
                run.senders(senders)
            })
        };
        panel(
            title,
            axes,
            [Stage::Baseline, Stage::Spindle, Stage::Bounded]
                .map(line)
                .into(),
        )
    });
    panels.into()
}

const ONE: &str = "one member sends";
const ALL: &str = "all members send";

pub(super) fn figure_16(scale: Scale) -> Plan {
    let members = if scale.quick { 2 } else { 4 };
    let run = |senders| scale.long_run(members, Stage::Bounded).senders(senders);
    Plan {
        notes: vec![
            "There is no network, so utilisation is not compared, and GB/s counts messages that \
             are not copied.",
        ],
        panels: by_senders(scale, [MEMBERS, THROUGHPUT], throughput, false),
        tables: vec![TablePlan {
            title: match scale.quick {
                true => "2 members, Spindle",
                false => "4 members, Spindle",
            },
            head: vec![
                "",
                "thousand messages per second at each member [min .. max]",
                "of one sender",
                "processor time of all members per message taken, µs",
                "pushes per thousand messages taken",
            ],
            rows: vec![
                (ONE.to_owned(), run(Senders::One)),
                (ALL.to_owned(), run(Senders::All)),
            ],
            cells: |rounds| {
                let pushes = rounds.median(|it| it.pushes_a_message * 1e3);
                vec![
                    thousands(rounds),
                    ratio(rounds),
                    format!("{:.2}", rounds.median(|it| it.cpu_us)),
                    format!("{pushes:.0}"),
                ]
            },
            repeats: true,
        }],
        claims: claims_16,
        ..Plan::new(Subject::Figure(16))
    }
}

fn claims_16(found: &Found<Rounds>) -> Vec<Claim> {
    let faster = || {
        let of = |panel| {
            times(
                found,
                (panel, BASELINE),
                (panel, SPINDLE),
                Outcome::throughput,
            )
        };
        let (all, half, one) = (of(0)?, of(1)?, of(2)?);
        let told = format!("{all:.1}× (all), {half:.1}× (half), {one:.1}× (one) on average");
        Some((told, verdict(all.min(half).min(one) > 1.0, false)))
    };
    let all = || {
        let ours = kept(found, (3, ALL))?;
        Some((
            format!("{ours:.2} of that rate"),
            verdict(ours >= 1.0, ours >= 0.8),
        ))
    };
    vec![
        Saying {
            section: "figure 16",
            text: "Faster than the baseline for all, half and one sender",
            paper: "faster",
            why: "",
        }
        .with(faster()),
        Saying {
            section: "ours",
            text: "All members send: throughput at least that of one sender",
            paper: "–",
            why: "With fewer processors than members, each additional message to receive and \
                  acknowledge, and each null, takes processor time from other members.",
        }
        .with(all()),
    ]
}

pub(super) fn figure_17(scale: Scale) -> Plan {
    Plan {
        notes: vec![
            "From before claiming a message until it is taken, over all readers, while all members \
             send as fast as they can: this includes waiting behind the other messages of the \
             window.",
        ],
        panels: by_senders(scale, [MEMBERS, LATENCY], latency, true),
        claims: |found| {
            let lower = || {
                let of =
                    |panel| times(found, (panel, SPINDLE), (panel, BASELINE), Outcome::latency);
                let (all, half, one) = (of(0)?, of(1)?, of(2)?);
                let least = all.min(half).min(one);
                let told =
                    format!("{all:.1}× (all), {half:.1}× (half), {one:.1}× (one) on average");
                Some((told, verdict(least >= 80.0, least > 1.0)))
            };
            let saying = Saying {
                section: "abstract",
                text: "Latency dropped by nearly two orders of magnitude",
                paper: "nearly 100×",
                why: "With senders that never pause, the window is always full, and latency \
                      falls by the factor by which the rate rises.",
            };
            vec![saying.with(lower())]
        },
        ..Plan::new(Subject::Figure(17))
    }
}
