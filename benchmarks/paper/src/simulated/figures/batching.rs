//! Figures 3, 4, 5: opportunistic batching in one subgroup.

use crate::model::{Measured, Senders};

use crate::plan::{
    Found, LATENCY, MEMBERS, Plan, Saying, THROUGHPUT, latency, mean, near, peak, throughput,
    values, verdict,
};
use crate::report::{Axis, Claim, Verdict};
use crate::systems::{Scale, Stage, panel};

const BASELINE: &str = "baseline";
const BATCHING: &str = "batching";

pub(crate) const SENDERS: [(Senders, &str); 3] = [
    (Senders::All, "all members send"),
    (Senders::Half, "half of the members send"),
    (Senders::One, "one member sends"),
];

pub(super) fn figure_3(scale: Scale) -> Plan {
    let panels = SENDERS.map(|(senders, title)| {
        let line = |stage| {
            scale.line(stage, scale.members(), throughput, |experiment| {
                experiment.senders = senders;
            })
        };
        let lines = vec![line(Stage::Baseline), line(Stage::Batching).named(BATCHING)];
        panel(title, [MEMBERS, THROUGHPUT], lines)
    });
    Plan {
        number: 3,
        title: "one subgroup, opportunistic batching",
        notes: vec![
            "Messages of 10 KB, a window of 100. Batching of sends, receives and deliveries; no \
             nulls; posts under the paper's lock.",
            "The processor time of a message is computed from this figure's peak, so the claim on \
             the peak is not independent.",
        ],
        panels: panels.into(),
        claims: claims_3,
    }
}

fn claims_3(found: &Found) -> Vec<Claim> {
    let ratios = |panel| found.ratios((panel, BASELINE), (panel, BATCHING), throughput);
    let times = |panel, paper: f64| {
        let ours = mean(&ratios(panel))?;
        Some((
            format!("{ours:.1}×"),
            verdict(near(ours, paper), ours > 1.5),
        ))
    };
    let best = || {
        let (members, ours) = peak(&ratios(0))?;
        let shape = ours > 5.0;
        Some((
            format!("{ours:.1}× at {members} members"),
            verdict(near(ours, 16.0), shape),
        ))
    };
    let top = || {
        let (members, ours) = peak(&values(found.line(0, BATCHING), throughput))?;
        let used = ours / 12.5 * 100.0;
        Some((
            format!("{ours:.2} GB/s, {used:.1} %, at {members} members"),
            verdict(near(ours, 8.03), false),
        ))
    };
    let scales = || {
        let ratios = ratios(0);
        let (first, last) = (ratios.first()?, ratios.last()?);
        Some((
            format!(
                "{:.1}× at {}, {:.1}× at {}",
                first.1, first.0, last.1, last.0
            ),
            verdict(last.1 > first.1, false),
        ))
    };
    let one = || {
        let line = values(found.line(2, BATCHING), throughput);
        let falls = line.windows(2).all(|pair| pair[1].1 <= pair[0].1);
        Some((
            format!("{:.2} to {:.2} GB/s", line.first()?.1, line.last()?.1),
            verdict(falls, false),
        ))
    };
    vec![
        Saying {
            section: "figure 3",
            text: "Performance improves by up to 16×, with 16 senders",
            paper: "16×",
            why: "The paper's baseline reaches at most 0.5 GB/s with 16 members (8.03 GB/s is the \
                  peak with batching). The paper's times of posting and reading do not explain \
                  that, so the model does not show it.",
        }
        .with(best()),
        Saying {
            section: "§IV-A.1",
            text: "All senders: faster than the baseline on average",
            paper: "9×",
            why: WHY_AVERAGES,
        }
        .with(times(0, 9.0)),
        Saying {
            section: "§IV-A.1",
            text: "Half senders: faster than the baseline on average",
            paper: "6×",
            why: WHY_AVERAGES,
        }
        .with(times(1, 6.0)),
        Saying {
            section: "§IV-A.1",
            text: "One sender: faster than the baseline on average",
            paper: "3×",
            why: "A single sender gets the lock at most three times per pass, so its batches have \
                  three messages. From 8 members on its link of 12.5 GB/s is the limit, which \
                  carries a copy for each other member.",
        }
        .with(times(2, 3.0)),
        Saying {
            section: "§IV-A.1",
            text: "Peak bandwidth with batching alone, and its share of 12.5 GB/s",
            paper: "8.03 GB/s, 64.2 %, at 11 members",
            why: "",
        }
        .with(top()),
        Saying {
            section: "§IV-A.1",
            text: "Performance scales better with the number of senders",
            paper: "the factor rises to 16 members",
            why: "",
        }
        .with(scales()),
        Saying {
            section: "§IV-A.1",
            text: "With one sender, performance declines with the subgroup's size",
            paper: "declines",
            why: "",
        }
        .with(one()),
    ]
}

const WHY_AVERAGES: &str = "The averages are over the sizes that were run, and depend on those of \
                            the baseline: see the claim of 16×.";

pub(crate) const SIZES: [(u32, &str); 4] = [
    (1, "1 B"),
    (128, "128 B"),
    (1024, "1 KB"),
    (10_240, "10 KB"),
];

pub(super) fn figure_4(scale: Scale) -> Plan {
    let rate = Axis {
        label: "messages delivered at a member per second",
        log: false,
    };
    let panels = SENDERS.map(|(senders, title)| {
        let lines = SIZES.map(|(size, name)| {
            let line = scale.line(
                Stage::Batching,
                scale.few_members(),
                |found| found.messages_per_s,
                |experiment| {
                    experiment.senders = senders;
                    experiment.size = size;
                },
            );
            line.named(name)
        });
        panel(title, [MEMBERS, rate], lines.into())
    });
    Plan {
        number: 4,
        title: "one subgroup, opportunistic batching: rates by message size",
        notes: vec![],
        panels: panels.into(),
        claims: |found| {
            let spread = |panel| {
                let rate = |found: &Measured| found.messages_per_s;
                let ratios = found.ratios((panel, "1 B"), (panel, "10 KB"), rate);
                let (members, least) = crate::plan::trough(&ratios)?;
                Some((
                    format!("10 KB at {least:.2} of the rate of 1 B, at {members} members"),
                    verdict(least >= 0.8, least >= 0.5),
                ))
            };
            let saying = Saying {
                section: "§IV-A.1",
                text: "All senders: the rate is about the same for different small sizes",
                paper: "about the same",
                why: WHY_SIZES,
            };
            vec![
                saying.with(spread(0)),
                Saying {
                    text: "Half senders: the same",
                    ..saying
                }
                .with(spread(1)),
                Saying {
                    text: "One sender: the same",
                    ..saying
                }
                .with(spread(2)),
            ]
        },
    }
}

const WHY_SIZES: &str = "Where few members send to many, the sender's link is the limit at 10 KB: \
                         it carries a copy for each other member. At 1 B the processors are the \
                         limit.";

pub(crate) const STAGES: [Stage; 4] = [
    Stage::Baseline,
    Stage::Delivery,
    Stage::Receive,
    Stage::Batching,
];

pub(super) fn figure_5(scale: Scale) -> Plan {
    let lines = |read| {
        STAGES
            .map(|stage| scale.line(stage, scale.members(), read, |_| {}))
            .into()
    };
    Plan {
        number: 5,
        title: "batching added stage by stage, all senders",
        notes: vec![
            "A request is a push to any number of peers; writes count for each peer (runs.jsonl \
             has both). The paper's 18.2 M must be requests, because 16 M deliveries were \
             acknowledged one by one.",
        ],
        panels: vec![
            panel("throughput", [MEMBERS, THROUGHPUT], lines(throughput)),
            panel("latency", [MEMBERS, LATENCY], lines(latency)),
        ],
        claims: claims_5,
    }
}

fn claims_5(found: &Found) -> Vec<Claim> {
    let steps = |of: fn(&Measured) -> f64, rises: bool| {
        let mut told = Vec::new();
        let mut all = true;
        for pair in STAGES.windows(2) {
            let ratio = mean(&found.ratios((0, pair[0].name()), (0, pair[1].name()), of))?;
            all &= (ratio > 1.0) == rises;
            told.push(format!("{}: {ratio:.2}×", pair[1].name()));
        }
        Some((told.join(", "), verdict(all, false)))
    };
    let last = found.line(0, BASELINE).last().map_or(0.0, |(x, _)| *x);
    let pair = || {
        let before = found.at(0, BASELINE, last)?;
        Some((before, found.at(0, Stage::Batching.name(), last)?))
    };
    let a_message = |of: fn(&Measured) -> f64| {
        let (before, after) = pair()?;
        // Per delivered message, as runs differ in length.
        let each = |found: &Measured| of(found) / (found.messages_per_s * found.seconds);
        Some((each(before), each(after)))
    };
    let factor = |of, paper: f64, unit: &str, scale: f64| {
        let (before, after) = a_message(of)?;
        let ratio = before / after;
        Some((
            format!(
                "{ratio:.1}×: {:.2} to {:.2} {unit} for 16 M deliveries, {last} members",
                before * 16e6 * scale,
                after * 16e6 * scale
            ),
            verdict(near(ratio, paper), ratio > paper / 2.0),
        ))
    };
    let waiting = || {
        let (before, after) = pair()?;
        let (before, after) = (before.waiting_share * 100.0, after.waiting_share * 100.0);
        let number = near(before, 97.6) && near(after, 52.7);
        Some((
            format!("{before:.1} % to {after:.1} %, {last} members"),
            verdict(number, after < before),
        ))
    };
    vec![
        Saying {
            section: "figure 5",
            text: "Each stage improves throughput",
            paper: "delivery, receive, send: each does",
            why: WHY_STAGES,
        }
        .with(steps(throughput, true)),
        Saying {
            section: "figure 5",
            text: "Each stage improves latency",
            paper: "delivery, receive, send: each does",
            why: WHY_STAGES,
        }
        .with(steps(latency, false)),
        Saying {
            section: "§IV-A.1",
            text: "Fewer RDMA write requests, 16 senders",
            paper: "16.5×: 18.2 M to 1.1 M",
            why: WHY_REQUESTS,
        }
        .with(factor(|found| found.requests, 16.5, "M", 1e-6)),
        Saying {
            section: "§IV-A.1",
            text: "Less time for posting them, 16 senders",
            paper: "15.1×: 64.84 s to 4.29 s",
            why: WHY_REQUESTS,
        }
        .with(factor(|found| found.posting_seconds, 15.1, "s", 1.0)),
        Saying {
            section: "§IV-A.1",
            text: "Time that a sender waits for a free buffer, 16 senders",
            paper: "97.6 % to 52.7 %",
            why: "With batching, a sender of the model gets the lock three times per pass, and \
                  nearly always finds room: it waits for the lock instead. The baseline's share is \
                  lower by the time that its senders wait for the lock.",
        }
        .with(waiting()),
        Saying {
            section: "§III-A",
            text: "The share of its time that the baseline spends posting is more than",
            paper: "30 %",
            why: "",
        }
        .with(share(found)),
    ]
}

fn share(found: &Found) -> Option<(String, Verdict)> {
    let shares = values(found.line(0, BASELINE), |found| found.posting_share * 100.0);
    let least = crate::plan::trough(&shares)?.1;
    let most = peak(&shares)?.1;
    Some((
        format!("{least:.0} to {most:.0} %"),
        verdict(least > 30.0, most > 30.0),
    ))
}

const WHY_REQUESTS: &str = "With batching the numbers agree with the paper's. Those of the \
                            baseline are larger: in the model it receives 1.2 messages per pass \
                            and acknowledges each, while 18.2 M requests allow for 7 messages per \
                            pass (16 M requests acknowledge deliveries).";

const WHY_STAGES: &str = "A next stage without batching is the limit, and batches before it do not \
                          help.";
