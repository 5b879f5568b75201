//! Figures 6 and 7: windows, and the batches that they allow.

use crate::model::Batches;

use super::times;
use crate::plan::{Found, Line, MEMBERS, Reading, Saying, THROUGHPUT, mean, values, verdict};
use crate::real::Scale;
use crate::real::outcome::{Outcome, Rounds, throughput};
use crate::real::plan::Plan;
use crate::real::run::Run;
use crate::report::{Claim, Subject, System};
use crate::simulated::figures::windows::BATCH_AXES;
use crate::systems::{Stage, panel};

/// Rings have a power of two of messages.
const WINDOWS: [(u32, &str); 6] = [
    (8, "window 8"),
    (16, "window 16"),
    (64, "window 64"),
    (128, "window 128"),
    (512, "window 512"),
    (1024, "window 1024"),
];

pub(super) fn figure_6(scale: Scale) -> Plan {
    let mut lines = vec![scale.line(Stage::Baseline, throughput, |run| run)];
    lines.extend(WINDOWS.map(|(window, name)| {
        let line = scale.line(Stage::Batching, throughput, |run| Run { window, ..run });
        line.named(name)
    }));
    Plan {
        notes: vec![
            "Rings hold a power of two of messages, somewhat above the paper's window. The \
             baseline has 128. There is no claim on the decline of large windows after 10 members.",
        ],
        panels: vec![panel("throughput", [MEMBERS, THROUGHPUT], lines)],
        claims: claims_6,
        ..Plan::new(Subject::Figure(6))
    }
}

fn claims_6(found: &Found<Rounds>) -> Vec<Claim> {
    let small = || {
        let ours = times(found, (0, "baseline"), (0, "window 8"), Outcome::throughput)?;
        Some((format!("{ours:.1}×"), verdict(false, ours > 1.5)))
    };
    let averages = || {
        let average = |(window, name): (u32, &str)| {
            Some((window, mean(&values(found.line(0, name), throughput))?))
        };
        let averages: Option<Vec<(u32, f64)>> = WINDOWS.into_iter().map(average).collect();
        let averages = averages?;
        let told: Vec<String> = averages
            .iter()
            .map(|(window, rate)| format!("{window}: {rate:.2}"))
            .collect();
        let (_, smallest) = averages.first()?;
        let (_, paper) = averages.iter().find(|(window, _)| *window == 128)?;
        Some((
            format!("GB/s on average: {}", told.join(", ")),
            verdict(false, paper > smallest),
        ))
    };
    vec![
        Saying {
            section: "§IV-A.2",
            text: "A small window with batching beats the baseline with one of 100",
            paper: "4.5× with 5",
            why: WHY_6,
        }
        .with(small()),
        Saying {
            section: "§IV-A.2",
            text: "A window of 100 is better than small ones",
            paper: "100 is the best",
            why: WHY_6,
        }
        .with(averages()),
    ]
}

const WHY_6: &str = "With fewer processors than threads, a sender uses up a small window within \
                     its time slice, and then waits for the others.";

pub(super) fn figure_7(scale: Scale) -> Plan {
    let members = *scale.members().last().unwrap_or(&2);
    let run = scale.run(members, Stage::Batching);
    let line = |name: &str, read: fn(&Rounds) -> &Batches| Line {
        name: name.to_owned(),
        system: System::Stage,
        reading: Reading::Batches(read),
        runs: vec![(members as f64, run.clone())],
    };
    let lines = vec![
        line("send", |rounds| &rounds.send),
        line("receive", |rounds| &rounds.receive),
        line("delivery", |rounds| &rounds.delivery),
    ];
    Plan {
        notes: vec![
            "Batches of all members and rounds. A batch contains the messages since the thread \
             last had a processor: with fewer processors than threads batches are large, and their \
             means are not compared.",
        ],
        panels: vec![panel(format!("{members} members"), BATCH_AXES, lines)],
        claims: |found| {
            let send = found.line(0, "send").first();
            let means = send.map(|(_, rounds)| {
                let means = [rounds.send.mean, rounds.receive.mean, rounds.delivery.mean];
                let [send, receive, delivery] = means;
                let rises = send < receive && receive < delivery;
                (
                    format!("{send:.1}, {receive:.1}, {delivery:.1}"),
                    verdict(false, rises),
                )
            });
            let saying = Saying {
                section: "§IV-A.3",
                text: "Batches grow from stage to stage: sends, receives, deliveries",
                paper: "1.72, 22.18, 35.19 (16 members)",
                why: "With 2 to 4 members a receive batch has messages of 1 to 3 others, and a \
                      sender that has a processor commits many at once.",
            };
            vec![saying.with(means)]
        },
        ..Plan::new(Subject::Figure(7))
    }
}
