//! Figures 16 and 17: all optimisations on.

use super::batching::SENDERS;
use super::synchronization::BOUNDED;
use crate::plan::{
    Found, LATENCY, MEMBERS, Plan, Saying, THROUGHPUT, latency, mean, near, peak, throughput,
    trough, values, verdict,
};
use crate::report::{Axis, Claim};
use crate::systems::{Scale, Stage, panel};

const BASELINE: &str = "baseline";
const SPINDLE: &str = "Spindle";

fn by_senders(
    scale: Scale,
    axes: [Axis; 2],
    read: fn(&crate::model::Measured) -> f64,
) -> Vec<crate::plan::PanelPlan> {
    let panels = SENDERS.map(|(senders, title)| {
        let line = |stage| {
            scale.line(stage, scale.members(), read, |experiment| {
                experiment.senders = senders;
            })
        };
        let lines = [Stage::Baseline, Stage::Spindle, Stage::Bounded]
            .map(line)
            .into();
        panel(title, axes, lines)
    });
    panels.into()
}

pub(super) fn figure_16(scale: Scale) -> Plan {
    Plan {
        number: 16,
        title: "final throughput, one subgroup",
        notes: vec![
            "Messages of 10 KB, a window of 100; Spindle has all optimisations of the paper.",
            BOUNDED,
        ],
        panels: by_senders(scale, [MEMBERS, THROUGHPUT], throughput),
        claims: claims_16,
    }
}

fn claims_16(found: &Found) -> Vec<Claim> {
    let from_to = || {
        let before = mean(&values(found.line(0, BASELINE), throughput))?;
        let (members, after) = peak(&values(found.line(0, SPINDLE), throughput))?;
        let number = near(before, 1.0) && near(after, 9.7);
        Some((
            format!("{before:.2} on average to {after:.2} GB/s, at {members} members"),
            verdict(number, after > 4.0 * before),
        ))
    };
    let used = || {
        let (members, ours) = peak(&values(found.line(0, SPINDLE), throughput))?;
        let used = ours / 12.5 * 100.0;
        Some((
            format!("{used:.1} % at {members} members"),
            verdict(near(used, 77.6), false),
        ))
    };
    let faster = || {
        let least = [0, 1, 2].map(|panel| {
            let ratios = found.ratios((panel, BASELINE), (panel, SPINDLE), throughput);
            trough(&ratios)
        });
        let [Some(all), Some(half), Some(one)] = least else {
            return None;
        };
        let told = format!(
            "at least {:.1}× (all), {:.1}× (half), {:.1}× (one)",
            all.1, half.1, one.1
        );
        Some((told, verdict(all.1.min(half.1).min(one.1) > 1.0, false)))
    };
    vec![
        Saying {
            section: "abstract",
            text: "Bandwidth for messages of 10 KB rose from 1 GB/s to 9.7 GB/s",
            paper: "1 to 9.7 GB/s",
            why: super::synchronization::WHY_OURS,
        }
        .with(from_to()),
        Saying {
            section: "§IV-C",
            text: "Peak utilisation of a network of 12.5 GB/s",
            paper: "77.6 %",
            why: super::synchronization::WHY_OURS,
        }
        .with(used()),
        Saying {
            section: "figure 16",
            text: "Faster than the baseline for all, half and one sender, at all sizes",
            paper: "faster",
            why: "",
        }
        .with(faster()),
    ]
}

pub(super) fn figure_17(scale: Scale) -> Plan {
    Plan {
        number: 17,
        title: "final latency, one subgroup",
        notes: vec![
            "From claiming a message to its delivery at its sender, while all members send as fast \
             as they can: this includes waiting behind the other messages of the window.",
        ],
        panels: by_senders(scale, [MEMBERS, LATENCY], latency),
        claims: claims_17,
    }
}

fn claims_17(found: &Found) -> Vec<Claim> {
    let drop = || {
        let ratios = [0, 1, 2]
            .map(|panel| found.ratios((panel, SPINDLE), (panel, BASELINE), latency))
            .concat();
        let (members, ours) = peak(&ratios)?;
        let least = trough(&ratios)?;
        Some((
            format!(
                "{ours:.0}× at best ({members} members), {:.1}× at least",
                least.1
            ),
            verdict(ours >= 80.0, least.1 > 1.0),
        ))
    };
    vec![
        Saying {
            section: "abstract",
            text: "Latency dropped by nearly two orders of magnitude",
            paper: "nearly 100×",
            why: "With senders that never pause, the window is always full, and the messages in \
                  flight are the rate times the latency: latency falls by the factor by which the \
                  rate rises. Below saturation it falls further: see figure 5, where the lock \
                  keeps senders from filling their windows.",
        }
        .with(drop()),
    ]
}
