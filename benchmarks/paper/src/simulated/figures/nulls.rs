//! Figures 10 and 11: null-sends, with delayed and with continuous senders.

use crate::model::{Delay, Delayed, Senders};

use super::batching::SENDERS;
use crate::plan::{
    Found, MEMBERS, Plan, Saying, THROUGHPUT, mean, peak, throughput, trough, verdict,
};
use crate::report::Claim;
use crate::systems::{Scale, Stage, panel};

const CASES: [(&str, Option<u64>); 3] = [
    ("1 µs", Some(1000)),
    ("100 µs", Some(100_000)),
    ("for ever", None),
];
const PROMPT: &str = "no delay";

pub(super) fn figure_10(scale: Scale) -> Plan {
    // At least one sender is not delayed.
    let members: Vec<usize> = scale.members().to_vec();
    let delayed = |senders, title: &str| {
        let prompt = scale.line(Stage::Nulls, &members, throughput, |_| {});
        let mut lines = vec![prompt.named(PROMPT)];
        lines.extend(CASES.map(|(name, ns)| {
            let line = scale.line(Stage::Nulls, &members, throughput, |experiment| {
                experiment.delay = Some(Delay { senders, ns });
            });
            line.named(name)
        }));
        panel(title, [MEMBERS, THROUGHPUT], lines)
    };
    let without = |stage: Stage, name: &str| {
        let line = scale.line(stage, scale.few_members(), throughput, |experiment| {
            let (senders, ns) = (Delayed::One, Some(100_000));
            experiment.delay = Some(Delay { senders, ns });
            experiment.config.null_sends = stage == Stage::Nulls;
        });
        line.named(name)
    };
    let control = vec![
        without(Stage::Batching, "without nulls"),
        without(Stage::Nulls, "with nulls"),
    ];
    Plan {
        number: 10,
        title: "delayed senders, with null-sends",
        notes: vec![
            "Batching and nulls, all members send. A delayed sender waits after each message; the \
             run is over when as many messages are delivered as the other senders send.",
            "The third plot is the control without nulls (not in the paper's figure).",
        ],
        panels: vec![
            delayed(Delayed::One, "one sender is delayed"),
            delayed(Delayed::Half, "half of the senders are delayed"),
            panel(
                "one sender is delayed by 100 µs",
                [MEMBERS, THROUGHPUT],
                control,
            ),
        ],
        claims: claims_10,
    }
}

fn claims_10(found: &Found) -> Vec<Claim> {
    let kept = |panel, case| found.ratios((panel, PROMPT), (panel, case), throughput);
    let rises = || {
        let cases = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)];
        let mut told = Vec::new();
        let (mut higher, mut least) = (0, f64::MAX);
        for (panel, case) in cases {
            let name = CASES[case].0;
            let ours = mean(&kept(panel, name))?;
            higher += usize::from(ours >= 1.0);
            least = least.min(ours);
            let delayed = if panel == 0 { "one" } else { "half" };
            told.push(format!("{delayed}, {name}: {ours:.2}×"));
        }
        Some((told.join("; "), verdict(higher == cases.len(), least > 0.8)))
    };
    let most = || {
        let all = [0, 1].map(|panel| {
            let lines =
                CASES.map(|(name, _)| crate::plan::values(found.line(panel, name), throughput));
            lines.concat()
        });
        let (members, ours) = peak(&all.concat())?;
        Some((
            format!("{ours:.1} GB/s at {members} members"),
            verdict(crate::plan::near(ours, 10.0), false),
        ))
    };
    let control = || {
        let ratios = found.ratios((2, "without nulls"), (2, "with nulls"), throughput);
        let (_, least) = trough(&ratios)?;
        Some((
            format!("without nulls, {least:.0}× slower at least"),
            verdict(least > 2.0, false),
        ))
    };
    let quiet = || {
        let (_, late) = found.line(0, "100 µs").last()?;
        let (_, prompt) = found.line(0, PROMPT).last()?;
        Some((
            format!(
                "{:.0} nulls per sender, {:.0} without a delay",
                late.nulls, prompt.nulls
            ),
            verdict(late.nulls > prompt.nulls, false),
        ))
    };
    vec![
        Saying {
            section: "§IV-B.1",
            text: "For every case but half of the senders delayed for ever, performance increases",
            paper: "increases",
            why: WHY_DELAYS,
        }
        .with(rises()),
        Saying {
            section: "§IV-B.1",
            text: "The peak with delays",
            paper: "10.0 GB/s",
            why: WHY_DELAYS,
        }
        .with(most()),
        Saying {
            section: "§III-B",
            text: "Without nulls, a delay in one sender leaves messages of the others waiting",
            paper: "they wait",
            why: "",
        }
        .with(control()),
        Saying {
            section: "§IV-B.1",
            text: "A delayed sender sends nulls more often than a continuous one (16 members, 1 \
                   sender delayed by 100 µs)",
            paper: "517 K iterations, 189 K",
            why: "",
        }
        .with(quiet()),
    ]
}

const WHY_DELAYS: &str = "No sender stalls, but the others do not gain: with the lock a sender has \
                          three turns in a pass, even if others are silent, so the messages of a \
                          delayed sender are missing. In the paper, batches grow with the delays.";

const WHY_NULLS: &str = "All members of the model are equally fast and start at the same time. \
                         Members rarely fall behind, so there are few nulls.";

pub(super) fn figure_11(scale: Scale) -> Plan {
    let panels = SENDERS.map(|(senders, title)| {
        let line = |stage: Stage, name| {
            let line = scale.line(stage, scale.members(), throughput, |experiment| {
                experiment.senders = senders;
            });
            line.named(name)
        };
        let lines = vec![
            line(Stage::Batching, "batching"),
            line(Stage::Nulls, "with nulls"),
        ];
        panel(title, [MEMBERS, THROUGHPUT], lines)
    });
    debug_assert_eq!(SENDERS[2].0, Senders::One);
    Plan {
        number: 11,
        title: "continuous senders, with and without null-sends",
        notes: vec![],
        panels: panels.into(),
        claims: claims_11,
    }
}

fn claims_11(found: &Found) -> Vec<Claim> {
    let kept = |panel| found.ratios((panel, "batching"), (panel, "with nulls"), throughput);
    let drop = |panel| {
        let (members, least) = trough(&kept(panel))?;
        let ours = 100.0 * (1.0 - least);
        Some((format!("{ours:.1} % at most, at {members} members"), ours))
    };
    let dropped = || {
        let (told, ours) = drop(0)?;
        Some((told, verdict((20.0..=30.0).contains(&ours), ours > 2.0)))
    };
    let negligible = || {
        let (told, ours) = drop(1)?;
        Some((told, verdict(ours < 5.0, false)))
    };
    let grows = || {
        let ratios = kept(0);
        let (_, last) = ratios.last()?;
        Some((
            format!("{last:.3}× at the largest"),
            verdict(*last > 1.01, *last >= 0.98),
        ))
    };
    let none = || {
        let nulls: f64 = found
            .line(2, "with nulls")
            .iter()
            .map(|(_, run)| run.nulls)
            .sum();
        let (_, least) = trough(&kept(2))?;
        let (_, most) = peak(&kept(2))?;
        let same = least > 0.999 && most < 1.001;
        Some((
            format!("{nulls} nulls, {least:.3} to {most:.3} of the rate"),
            verdict(nulls == 0.0 && same, false),
        ))
    };
    vec![
        Saying {
            section: "§IV-B.2",
            text: "All senders: performance drops for small subgroups, by up to",
            paper: "25 %",
            why: WHY_NULLS,
        }
        .with(dropped()),
        Saying {
            section: "§IV-B.2",
            text: "All senders: with larger subgroups, nulls improve performance",
            paper: "improve",
            why: WHY_NULLS,
        }
        .with(grows()),
        Saying {
            section: "§IV-B.2",
            text: "Half senders: the drop is almost negligible",
            paper: "almost negligible",
            why: "",
        }
        .with(negligible()),
        Saying {
            section: "§IV-B.2",
            text: "One sender: no nulls, no overhead",
            paper: "none",
            why: "",
        }
        .with(none()),
    ]
}
