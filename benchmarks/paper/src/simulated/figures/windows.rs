//! Figures 6 and 7: windows, and the batches that they allow.

use crate::model::{Batches, Measured};

use crate::plan::{
    Found, Line, MEMBERS, Plan, Reading, Saying, THROUGHPUT, mean, near, throughput, values,
    verdict,
};
use crate::report::{Axis, Claim, System};
use crate::systems::{Scale, Stage, panel};

const WINDOWS: [(u32, &str); 6] = [
    (5, "window 5"),
    (10, "window 10"),
    (50, "window 50"),
    (100, "window 100"),
    (500, "window 500"),
    (1000, "window 1000"),
];

pub(super) fn figure_6(scale: Scale) -> Plan {
    let members = scale.few_members();
    let mut lines = vec![scale.line(Stage::Baseline, members, throughput, |_| {})];
    lines.extend(WINDOWS.map(|(window, name)| {
        let line = scale.line(Stage::Batching, members, throughput, |experiment| {
            experiment.window = window;
        });
        line.named(name)
    }));
    Plan {
        number: 6,
        title: "windows of different sizes, all senders, batching",
        notes: vec!["The baseline has a window of 100."],
        panels: vec![panel("throughput", [MEMBERS, THROUGHPUT], lines)],
        claims: claims_6,
    }
}

fn claims_6(found: &Found) -> Vec<Claim> {
    let small = || {
        let ours = mean(&found.ratios((0, "baseline"), (0, "window 5"), throughput))?;
        Some((format!("{ours:.1}×"), verdict(near(ours, 4.5), ours > 1.5)))
    };
    let average = |name| mean(&values(found.line(0, name), throughput));
    let best = || {
        let averages: Option<Vec<(u32, f64)>> = WINDOWS
            .into_iter()
            .map(|(window, name)| Some((window, average(name)?)))
            .collect();
        let averages = averages?;
        let (window, _) = averages
            .iter()
            .copied()
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        let told: Vec<String> = averages
            .iter()
            .map(|(window, rate)| format!("{window}: {rate:.2}"))
            .collect();
        let hundred = averages.iter().find(|(window, _)| *window == 100)?.1;
        let top = averages.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        Some((
            format!("{window} (GB/s on average: {})", told.join(", ")),
            verdict(window == 100, hundred >= 0.95 * top),
        ))
    };
    let large = || {
        let at = |name, members| found.at(0, name, members).map(throughput);
        let (hundred, thousand) = (at("window 100", 16.0)?, at("window 1000", 16.0)?);
        Some((
            format!("{thousand:.2} GB/s with 1000, {hundred:.2} with 100, at 16 members"),
            verdict(thousand < 0.95 * hundred, thousand < hundred),
        ))
    };
    vec![
        Saying {
            section: "§IV-A.2",
            text: "A window of 5 with batching, relative to the baseline with one of 100, on average",
            paper: "4.5×",
            why: WHY,
        }
        .with(small()),
        Saying {
            section: "§IV-A.2",
            text: "The window with the best performance",
            paper: "100",
            why: WHY,
        }
        .with(best()),
        Saying {
            section: "§IV-A.2",
            text: "Windows of 500 and 1000 decline after 10 members",
            paper: "decline",
            why: WHY,
        }
        .with(large()),
    ]
}

const WHY: &str = "The paper gives the larger polled area and large writes as reasons. Our engine \
                   polls guards, whose number does not depend on the window, and under the lock a \
                   pass sends three messages with any window; so a window larger than the number \
                   of messages in flight changes nothing here.";

pub(crate) const BATCH_AXES: [Axis; 2] = [
    Axis {
        label: "messages in a batch",
        log: true,
    },
    Axis {
        label: "share of all batches",
        log: false,
    },
];

pub(super) fn figure_7(scale: Scale) -> Plan {
    let members = if scale.quick { 4 } else { 16 };
    let experiment = scale.experiment(members, Stage::Batching);
    let line = |name: &str, read: fn(&Measured) -> &Batches| Line {
        name: name.to_owned(),
        system: System::Stage,
        reading: Reading::Batches(read),
        runs: vec![(members as f64, experiment)],
    };
    let lines = vec![
        line("send", |found| &found.send),
        line("receive", |found| &found.receive),
        line("delivery", |found| &found.delivery),
    ];
    Plan {
        number: 7,
        title: "sizes of batches at the three stages, all senders",
        notes: vec![
            "One subgroup, a window of 100, batching. Sizes from 16 on are counted in four buckets \
             for each power of two.",
        ],
        panels: vec![panel(format!("{members} members"), BATCH_AXES, lines)],
        claims: claims_7,
    }
}

fn claims_7(found: &Found) -> Vec<Claim> {
    let run = |line| found.at(0, line, 16.0);
    let means = || {
        let found = run("send")?;
        let ours = [found.send.mean, found.receive.mean, found.delivery.mean];
        let number = ours
            .iter()
            .zip([1.72, 22.18, 35.19])
            .all(|(ours, paper)| near(*ours, paper));
        let rises = ours[0] < ours[1] && ours[1] < ours[2];
        Some((
            format!("{:.2}, {:.2}, {:.2}", ours[0], ours[1], ours[2]),
            verdict(number, rises),
        ))
    };
    let small = || {
        let buckets = &run("send")?.send.buckets;
        let all: u64 = buckets.iter().map(|(_, count)| count).sum();
        let few = buckets.iter().filter(|(size, _)| *size < 5);
        let part = few.map(|(_, count)| *count as f64).sum::<f64>() / all as f64;
        Some((
            format!("{:.0} % of them", part * 100.0),
            verdict(part > 0.5, false),
        ))
    };
    vec![
        Saying {
            section: "§IV-A.3",
            text: "Mean sizes of batches of sends, receives, deliveries, 16 members",
            paper: "1.72, 22.18, 35.19",
            why: "The sizes increase from stage to stage, as in the paper. Ours are larger because \
                  a sender has three turns with the lock in each pass, and fewer than two in the \
                  paper.",
        }
        .with(means()),
        Saying {
            section: "§IV-A.2",
            text: "Messages are typically sent in batches of less than 5",
            paper: "typically",
            why: "",
        }
        .with(small()),
    ]
}
