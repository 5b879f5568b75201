//! Figures 14 and 15: the cost of copying a message.

use std::hint::black_box;
use std::time::Instant;

use crate::model::constants::COPY;

use super::batching::SENDERS;
use crate::plan::{
    Found, MEMBERS, Plan, Saying, THROUGHPUT, mean, near, throughput, values, verdict,
};
use crate::report::{Axis, Claim, Series, Source, System};
use crate::systems::{Scale, Stage, panel};

pub(crate) const COPY_AXES: [Axis; 2] = [
    Axis {
        label: "bytes",
        log: true,
    },
    Axis {
        label: "time of a copy, ns",
        log: true,
    },
];

pub(super) fn figure_14() -> Plan {
    let mut plot = panel("memcpy", COPY_AXES, Vec::new());
    plot.given = || {
        let copy = |size: usize| (size as f64, size as f64 * COPY.value as f64 / 1000.0);
        vec![Series {
            name: "model".to_owned(),
            system: System::Machine,
            source: Source::Simulated,
            points: sizes().map(copy).collect(),
        }]
    };
    Plan {
        number: 14,
        title: "memcpy",
        notes: vec![
            "The paper's figure is an image, and its text has no number: the model uses the \
             constant below.",
        ],
        panels: vec![plot],
        claims: |_| Vec::new(),
    }
}

/// Times of copies on this machine.
pub(crate) fn measured() -> Series {
    Series {
        name: "this machine".to_owned(),
        system: System::Machine,
        source: Source::Real,
        points: sizes().map(|size| (size as f64, copy_ns(size))).collect(),
    }
}

fn sizes() -> impl Iterator<Item = usize> {
    (4..=20).map(|power| 1 << power)
}

/// Time of a copy on this machine, from a ring of 16 MB: the best of several rounds, as other
/// processes run too.
fn copy_ns(size: usize) -> f64 {
    const RING: usize = 16 << 20;
    let (ring, mut to) = (vec![1_u8; RING], vec![0_u8; size]);
    let copies = (RING / size).min(10_000);
    let mut best = f64::INFINITY;
    for _ in 0..10 {
        let begin = Instant::now();
        for nth in 0..copies {
            to.copy_from_slice(&ring[nth * size..][..size]);
            black_box(&mut to);
        }
        best = best.min(begin.elapsed().as_nanos() as f64 / copies as f64);
    }
    best
}

const WITHOUT: &str = "without copies";
const WITH: &str = "copied in and out";
const BYTES: &str = "copied, messages of 1 B";
const FEW: &str = "messages of 1 B";

pub(super) fn figure_15(scale: Scale) -> Plan {
    let mut panels: Vec<_> = SENDERS
        .map(|(senders, title)| {
            let line = |copies, name| {
                let line = scale.line(Stage::Spindle, scale.members(), throughput, |experiment| {
                    experiment.senders = senders;
                    experiment.copies = copies;
                });
                line.named(name)
            };
            let lines = vec![line(false, WITHOUT), line(true, WITH)];
            panel(title, [MEMBERS, THROUGHPUT], lines)
        })
        .into();
    let rate = Axis {
        label: "messages delivered at a member per second",
        log: false,
    };
    let small = [(false, FEW), (true, BYTES)].map(|(copies, name)| {
        let line = scale.line(
            Stage::Spindle,
            scale.few_members(),
            |found| found.messages_per_s,
            |experiment| {
                experiment.size = 1;
                experiment.copies = copies;
            },
        );
        line.named(name)
    });
    panels.push(panel(
        "messages of 1 B, all send",
        [MEMBERS, rate],
        small.into(),
    ));
    Plan {
        number: 15,
        title: "messages copied into the ring and out of it, Spindle",
        notes: vec![],
        panels,
        claims: claims_15,
    }
}

fn claims_15(found: &Found) -> Vec<Claim> {
    let kept = |panel| mean(&found.ratios((panel, WITHOUT), (panel, WITH), throughput));
    let rate = || {
        let ours = mean(&values(found.line(0, WITH), throughput))?;
        let kept = kept(0)?;
        Some((
            format!("{ours:.2} GB/s on average, {kept:.2} of the rate without copies"),
            verdict(near(ours, 7.5), kept < 1.0),
        ))
    };
    let slight = |panel, least| {
        let ours = kept(panel)?;
        Some((
            format!("{ours:.2} of the rate without copies"),
            verdict(ours > least, ours > 0.5),
        ))
    };
    let bytes = || {
        let ratios = found.ratios((3, FEW), (3, BYTES), throughput);
        let ours = mean(&ratios)?;
        Some((
            format!("{ours:.3} of the rate without copies"),
            verdict(ours > 0.98, false),
        ))
    };
    vec![
        Saying {
            section: "§IV-D",
            text: "All senders: a decline, bandwidth still around",
            paper: "7.5 GB/s (of 9.7)",
            why: WHY_COPIES,
        }
        .with(rate()),
        Saying {
            section: "§IV-D",
            text: "Half senders: a slight decline",
            paper: "slight",
            why: WHY_COPIES,
        }
        .with(slight(1, 0.8)),
        Saying {
            section: "§IV-D",
            text: "One sender: almost no decline",
            paper: "almost none",
            why: WHY_COPIES,
        }
        .with(slight(2, 0.9)),
        Saying {
            section: "§IV-D",
            text: "Messages of 1 B: no loss",
            paper: "none",
            why: "",
        }
        .with(bytes()),
    ]
}

const WHY_COPIES: &str = "A copy takes the polling thread as long as the delivery. It costs \
                          nothing where links are the limit; in small groups the processors are.";
