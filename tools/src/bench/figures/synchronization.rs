//! Figure 12: posts at the end of a step, outside of any lock.

use crate::bench::plan::{
    Found, MEMBERS, Plan, Saying, THROUGHPUT, mean, near, peak, throughput, trough, values, verdict,
};
use crate::bench::report::Claim;
use crate::bench::systems::{Scale, Stage, panel};

const BEFORE: &str = "batching and nulls";
const AFTER: &str = "Spindle";

pub(super) fn figure_12(scale: Scale) -> Plan {
    let line = |stage| scale.line(stage, scale.members(), throughput, |_| {});
    let lines = vec![line(Stage::Nulls).named(BEFORE), line(Stage::Spindle)];
    Plan {
        number: 12,
        title: "efficient thread synchronisation, all senders",
        notes: vec![
            "Spindle pushes late, takes no lock, and has rings of payload and headers in place of \
             slots: our engine as it is.",
        ],
        panels: vec![panel("one subgroup", [MEMBERS, THROUGHPUT], lines)],
        claims: claims_12,
    }
}

fn claims_12(found: &Found) -> Vec<Claim> {
    let ratios = found.ratios((0, BEFORE), (0, AFTER), throughput);
    let average = || {
        let ours = mean(&ratios)?;
        let told: Vec<String> = ratios.iter().map(|(x, y)| format!("{x}: {y:.2}")).collect();
        Some((
            format!("{ours:.2}× ({})", told.join(", ")),
            verdict(near(ours, 1.4), ours > 1.0),
        ))
    };
    let rates = values(found.line(0, AFTER), throughput);
    let most = || {
        let (members, ours) = peak(&rates)?;
        let used = ours / 12.5 * 100.0;
        Some((
            format!("{used:.1} % at {members} members"),
            verdict(near(used, 77.6), false),
        ))
    };
    let stable = || {
        let from_four: Vec<(f64, f64)> = rates.iter().copied().filter(|(x, _)| *x >= 4.0).collect();
        let (low, high) = (trough(&from_four)?, peak(&from_four)?);
        Some((
            format!("{:.2} to {:.2} GB/s", low.1, high.1),
            verdict(low.1 > 0.8 * high.1, low.1 > 0.6 * high.1),
        ))
    };
    vec![
        Saying {
            section: "§IV-C",
            text: "Improves performance, on top of batching and nulls, on average",
            paper: "1.4×",
            why: WHY,
        }
        .with(average()),
        Saying {
            section: "§IV-C",
            text: "Most of 12.5 GB/s that is used",
            paper: "77.6 % at 4 members",
            why: WHY,
        }
        .with(most()),
        Saying {
            section: "§IV-C",
            text: "... which stays very stable from 4 to 16 members",
            paper: "very stable",
            why: WHY,
        }
        .with(stable()),
    ]
}

pub(super) const WHY: &str = "WHY12";
