//! Figure 12: posts at the end of a step, outside of any lock.

use crate::plan::{
    Found, MEMBERS, Plan, Saying, THROUGHPUT, mean, near, peak, throughput, trough, values, verdict,
};
use crate::report::Claim;
use crate::systems::{Scale, Stage, panel};

const BEFORE: &str = "batching and nulls";
const AFTER: &str = "late pushes";
const OURS: &str = "Spindle";
const BOUNDED_OURS: &str = "Spindle, bounded deliveries";

/// A note of figures 12 and 16.
pub(super) const BOUNDED: &str = "Bounded deliveries are not in the paper: a step delivers a part \
     of the stable messages, releases their room, and sends and receives before the next part.";

pub(super) fn figure_12(scale: Scale) -> Plan {
    let line = |stage| scale.line(stage, scale.members(), throughput, |_| {});
    let lines = vec![
        line(Stage::Nulls).named(BEFORE),
        line(Stage::Late).named(AFTER),
        line(Stage::Spindle),
        line(Stage::Bounded),
    ];
    Plan {
        number: 12,
        title: "efficient thread synchronisation, all senders",
        notes: vec![
            "Late pushes are those of the paper: the lock is released before posts. Our engine \
             always posts at the end of a step; without late pushes the model holds the lock \
             during these posts. Spindle is our engine with the paper's switches: no lock, and \
             rings of payload and headers instead of slots.",
            BOUNDED,
        ],
        panels: vec![panel("one subgroup", [MEMBERS, THROUGHPUT], lines)],
        claims: claims_12,
    }
}

fn claims_12(found: &Found) -> Vec<Claim> {
    let average = |line, paper: f64| {
        let ratios = found.ratios((0, BEFORE), (0, line), throughput);
        let ours = mean(&ratios)?;
        let is_never_slower = ratios.iter().all(|(_, ratio)| *ratio > 0.95);
        let told: Vec<String> = ratios.iter().map(|(x, y)| format!("{x}: {y:.2}")).collect();
        Some((
            format!("{ours:.2}× ({})", told.join(", ")),
            verdict(near(ours, paper) && is_never_slower, ours > 1.0),
        ))
    };
    let rates = |line| values(found.line(0, line), throughput);
    let most = |line| {
        let (members, ours) = peak(&rates(line))?;
        let used = ours / 12.5 * 100.0;
        Some((
            format!("{used:.1} % at {members} members"),
            verdict(near(used, 77.6), used > 60.0),
        ))
    };
    let stable = |line| {
        let from_four = rates(line).into_iter().filter(|(x, _)| *x >= 4.0);
        let from_four: Vec<(f64, f64)> = from_four.collect();
        let (low, high) = (trough(&from_four)?, peak(&from_four)?);
        Some((
            format!("{:.2} to {:.2} GB/s", low.1, high.1),
            verdict(low.1 > 0.8 * high.1, low.1 > 0.6 * high.1),
        ))
    };
    let improves = Saying {
        section: "§IV-C",
        text: "Late pushes improve performance, on top of batching and nulls, on average",
        paper: "1.4×",
        why: WHY,
    };
    let uses = Saying {
        section: "§IV-C",
        text: "Late pushes: the largest share of 12.5 GB/s that is used",
        paper: "77.6 % at 4 members",
        why: WHY,
    };
    let stays = Saying {
        section: "§IV-C",
        text: "Late pushes: throughput is very stable from 4 to 16 members",
        paper: "very stable",
        why: WHY,
    };
    let bounded = || {
        let ratios = found.ratios((0, OURS), (0, BOUNDED_OURS), throughput);
        let (least, ours) = (trough(&ratios)?, mean(&ratios)?);
        Some((
            format!("{ours:.2}×, at least {:.2}× ({} members)", least.1, least.0),
            verdict(least.1 > 1.0, ours > 1.0),
        ))
    };
    vec![
        improves.with(average(AFTER, 1.4)),
        Saying {
            text: "Spindle, our engine: the same",
            why: WHY_OURS,
            ..improves
        }
        .with(average(OURS, 1.4)),
        uses.with(most(AFTER)),
        Saying {
            text: "Spindle, our engine: the same",
            why: WHY_OURS,
            ..uses
        }
        .with(most(OURS)),
        stays.with(stable(AFTER)),
        Saying {
            text: "Spindle, our engine: the same",
            why: WHY_OURS,
            ..stays
        }
        .with(stable(OURS)),
        Saying {
            section: "ours",
            text: "Bounded deliveries are faster than Spindle without them",
            paper: "–",
            why: "",
        }
        .with(bounded()),
    ]
}

const WHY: &str = "Up to 8 members the lock limits the senders, and few messages are in flight; \
                   the model also lacks the irregularities of real hosts that leave links idle. \
                   From 11 members on windows are full, and batches too large: see the next claim.";

/// A reason in figures 12, 13 and 16.
pub(super) const WHY_OURS: &str = "Without a lock our senders fill their windows at once when room \
                                   is released, which happens after whole delivery batches. Such a \
                                   batch is sent to one peer after the other, and is stable only \
                                   when the last peer has it. So links and processors wait for \
                                   each other in turn, and more so in larger groups. The paper \
                                   observes this with windows of 500 and 1000 (figure 6). Bounded \
                                   deliveries test this explanation: figure 12.";
