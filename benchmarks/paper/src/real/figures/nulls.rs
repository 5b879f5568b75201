//! Figures 10 and 11: null-sends, with delayed and with continuous senders.

use super::{kept, ratio, thousands, times};
use crate::plan::{Found, Line, MEMBERS, Saying, THROUGHPUT, verdict};
use crate::real::Scale;
use crate::real::outcome::{Outcome, Rounds, throughput};
use crate::real::plan::{Plan, TablePlan};
use crate::real::run::{Last, Participants, Run};
use crate::report::{Claim, Subject};
use crate::simulated::figures::batching::SENDERS;
use crate::systems::{Stage, panel};
use spindle_dds_tools::harness::spread::Spread;

/// Longer than a run without a blocked sender takes.
const FOR_EVER: &str = "2s";
const CASES: [(&str, Last); 4] = [
    ("no delay", Last::Prompt),
    ("1 µs", Last::Delayed("1us")),
    ("100 µs", Last::Delayed("100us")),
    ("for ever", Last::Silent(FOR_EVER)),
];
const WITH: &str = "100 µs, with nulls";
const WITHOUT: &str = "100 µs, without nulls";

/// The default ring of a participant: it is not full while members wait for a processor. The
/// paper's members have a window of 100, and their own processors.
const WINDOW: u32 = 4096;
/// Bytes of a small message: a ring holds `WINDOW` of them in its default memory.
const SMALL: u32 = 1024;
/// Factor on the messages of other tables. With such a ring those last an eighth of a second, and
/// depend on the start of the run: a delayed sender needs at least as long for the first pass
/// through its ring, in which each message touches new memory, at the sender and at all readers.
const LONGER: u32 = 9;

const ALONE: &str = "2 senders; the third member only reads";
const BESIDE: &str = "the same, beside a thread that only sleeps, 100 µs at a time";
const SILENT_BESIDE: &str = "silent, beside such a thread";
const DELAYED: &str =
    "the third sends, delayed by 100 µs per message: it polls the clock and yields";
const SLEEPS: &str = "the same, but it sleeps";
const SILENT: &str = "the third is a sender, and sends nothing";
const DELAYED_STILL: &str = "delayed, and idle afterwards";
const SILENT_STILL: &str = "silent, and idle afterwards";
const DELAYED_NO_NULLS: &str = "delayed, without null_sends";
const SILENT_NO_NULLS: &str = "silent for 2 s, without null_sends";

pub(super) fn figure_10(scale: Scale) -> Plan {
    let cases = CASES.map(|(name, last)| {
        let line = scale.line(Stage::Nulls, throughput, |run| Run { last, ..run });
        line.named(name)
    });
    let control = |stage, name| {
        let line: Line<Run> = scale.line(stage, throughput, |run| Run {
            last: Last::Delayed("100us"),
            messages: scale.messages_by(5),
            ..run
        });
        line.named(name)
    };
    Plan {
        notes: vec![
            "As in the paper, the last sender waits after each message in a loop until the time \
             has passed. The paper's senders have a processor each; here the loop yields the \
             processor, which adds to the delay. For 1 µs it does not yield. For ever: it sends \
             nothing, and deletes its writer when it has all messages of the others, or after 2 s. \
             Throughput counts the messages of the other senders; without a delay it counts one \
             sender more. An increase is not expected here, since there is no link that the others \
             could use better. Half of 2 or 3 senders is one, the same case.",
            "In the tables rings hold 4096 messages, the default of a participant (messages of 10 \
             KB need more memory than the default), and not about 100 as in the paper: where \
             members share processors, an acknowledgement takes a turn of all members, and senders \
             would wait for room in so small a ring. In the second table messages have 1 KB.",
            "A sender that sleeps is woken by a timer up to 10,000 times per second, on processors \
             that all members share. A thread outside of the group that sleeps as often costs the \
             members as much, and also slows down unrelated threads (see the machine at the top).",
        ],
        panels: vec![
            panel("one sender is delayed", [MEMBERS, THROUGHPUT], cases.into()),
            panel(
                "one sender is delayed by 100 µs",
                [MEMBERS, THROUGHPUT],
                vec![
                    control(Stage::Batching, WITHOUT),
                    control(Stage::Nulls, WITH),
                ],
            ),
        ],
        tables: vec![
            third_member(scale, 10_240),
            third_member(scale, SMALL),
            controls(scale),
        ],
        claims: claims_10,
        ..Plan::new(Subject::Figure(10))
    }
}

/// Three members: the rate of two senders for each behaviour of the third.
fn third_member(scale: Scale, size: u32) -> TablePlan {
    // A thread that wakes as often as a delayed sender, and sends nothing.
    let beside = |run: Run| Run {
        beside: Some("100us"),
        ..run
    };
    let silent = third(scale, Last::Silent(FOR_EVER));
    let rows = [
        (ALONE, alone(scale)),
        (BESIDE, beside(alone(scale))),
        (DELAYED, third(scale, Last::Delayed("100us"))),
        (SLEEPS, third(scale, Last::Sleeps("100us"))),
        (SILENT, silent.clone()),
        (SILENT_BESIDE, beside(silent)),
    ];
    let sized = |(name, run): (&str, Run)| (name.to_owned(), Run { size, ..run });
    TablePlan {
        title: match size {
            SMALL => "Three members: the same with messages of 1 KB",
            _ => "Three members: the messages of two senders, for each behaviour of the third",
        },
        head: vec![
            "",
            "thousand messages per second [min .. max]",
            "of the first row",
            "thousand per second of the last sender",
            "nulls",
            "ns of a cache line between processors [min .. max]",
        ],
        rows: rows.map(sized).into(),
        cells: |rounds| {
            vec![
                thousands(rounds),
                ratio(rounds),
                format!("{:.1}", rounds.median(|it| it.last_messages_per_s / 1e3)),
                nulls(rounds),
                lines(rounds),
            ]
        },
        repeats: true,
    }
}

/// Runs without null-sends, which are slow, and the pushes of idle members after a run, which take
/// seconds. They have their own table, so that they do not run between rows that are compared.
fn controls(scale: Scale) -> TablePlan {
    let still = |last| Run {
        still: (!scale.quick).then_some("5s"),
        ..third(scale, last)
    };
    // Without nulls a silent sender stops the others for 2 s, with any number of messages.
    let stopped = |last| {
        let run = Run {
            messages: scale.messages_by(4),
            ..third(scale, last)
        };
        run.without("null_sends")
    };
    TablePlan {
        title: "Three members: idling afterwards, and without null-sends",
        head: vec![
            "",
            "thousand messages per second [min .. max]",
            "of the first row",
            "nulls",
            "pushes in subgroups during 5 s of idling afterwards",
        ],
        rows: vec![
            (ALONE.to_owned(), alone(scale)),
            (DELAYED_STILL.to_owned(), still(Last::Delayed("100us"))),
            (SILENT_STILL.to_owned(), still(Last::Silent(FOR_EVER))),
            (DELAYED_NO_NULLS.to_owned(), stopped(Last::Delayed("100us"))),
            (SILENT_NO_NULLS.to_owned(), stopped(Last::Silent(FOR_EVER))),
        ],
        cells: |rounds| {
            let pushes = rounds.each.iter().map(|it| it.still_pushes);
            // The maximum over all rounds, which should be 0.
            let pushes = pushes.max().flatten();
            vec![
                thousands(rounds),
                ratio(rounds),
                nulls(rounds),
                pushes.map_or_else(|| "–".to_owned(), |pushes| pushes.to_string()),
            ]
        },
        repeats: false,
    }
}

fn third(scale: Scale, last: Last) -> Run {
    let run = scale.long_run(3, Stage::Bounded);
    Run {
        last,
        window: WINDOW,
        messages: LONGER * run.messages,
        ..run
    }
}

fn alone(scale: Scale) -> Run {
    Run {
        participants: Participants::Members(3, 2),
        ..third(scale, Last::Prompt)
    }
}

/// Nanoseconds of a cache line between processors, around these runs.
fn lines(rounds: &Rounds) -> String {
    let around = rounds.each.iter().filter_map(|it| it.line_ns);
    let lines = Spread::of(
        around
            .map(|(before, after)| f64::midpoint(before, after))
            .collect(),
    );
    lines.map_or_else(
        || "–".to_owned(),
        |ns| format!("{:.0} [{:.0} .. {:.0}]", ns.median, ns.min, ns.max),
    )
}

fn nulls(rounds: &Rounds) -> String {
    format!("{:.0}", rounds.median(|it| it.nulls as f64))
}

fn claims_10(found: &Found<Rounds>) -> Vec<Claim> {
    let full = |table| {
        let (delayed, silent) = (
            kept(found, (table, DELAYED))?,
            kept(found, (table, SILENT))?,
        );
        let least = delayed.min(silent);
        Some((
            format!("{delayed:.2} if it is delayed, {silent:.2} if it is silent"),
            verdict(least >= 0.9, least > 0.5),
        ))
    };
    let woken = |table| {
        let rate = |it: &Outcome| it.messages_per_s;
        let of_slept = times(found, (table, BESIDE), (table, SLEEPS), rate)?;
        let (woken, slept) = (kept(found, (table, SLEEPS))?, kept(found, (table, BESIDE))?);
        let silent = kept(found, (table, SILENT_BESIDE))?;
        Some((
            format!(
                "{woken:.2}; beside a thread that only sleeps as long, {slept:.2} if the third \
                 only reads (ratio {of_slept:.2}), and {silent:.2} if the third is silent"
            ),
            verdict(woken >= 0.9, woken > 0.5),
        ))
    };
    let stopped = || {
        let delayed = kept(found, (4, DELAYED_NO_NULLS))?;
        let silent = kept(found, (4, SILENT_NO_NULLS))?;
        Some((
            format!("{delayed:.3} if it is delayed, {silent:.3} if it is silent"),
            verdict(delayed < 0.5 && silent < 0.5, false),
        ))
    };
    let control = || {
        let ours = times(found, (1, WITHOUT), (1, WITH), Outcome::throughput)?;
        Some((
            format!("with nulls {ours:.0}× as fast"),
            verdict(ours > 2.0, false),
        ))
    };
    let quiet = || {
        let rounds = [DELAYED_STILL, SILENT_STILL].map(|row| found.at(4, row, 0.0));
        let each = rounds.into_iter().flatten().flat_map(|rounds| &rounds.each);
        let pushes = each.map(|it| it.still_pushes).max()??;
        Some((
            format!("{pushes} pushes in subgroups at most, of all members and rounds"),
            verdict(pushes == 0, false),
        ))
    };
    vec![
        Saying {
            section: "§IV-B.3",
            text: "With nulls, the other senders run at full speed for each behaviour of one of \
                   three: at least 0.9 of their rate without it",
            paper: "full speed",
            why: WHY_LATE,
        }
        .with(full(2)),
        Saying {
            section: "§IV-B.3",
            text: "... if it sleeps, and a timer wakes it on the shared processors",
            paper: "full speed",
            why: WHY_WOKEN,
        }
        .with(woken(2)),
        Saying {
            section: "§IV-B.3",
            text: "The same with messages of 1 KB",
            paper: "full speed",
            why: WHY_LATE,
        }
        .with(full(3)),
        Saying {
            section: "§IV-B.3",
            text: "... if it sleeps, and a timer wakes it",
            paper: "full speed",
            why: WHY_WOKEN,
        }
        .with(woken(3)),
        Saying {
            section: "§III-B",
            text: "Without nulls they do not",
            paper: "they wait",
            why: "",
        }
        .with(stopped()),
        Saying {
            section: "§III-B",
            text: "Without nulls, a delay in one sender leaves messages of the others waiting",
            paper: "they wait",
            why: "",
        }
        .with(control()),
        Saying {
            section: "§III-B",
            text: "Nothing is pushed when no member sends: idle for 5 s afterwards",
            paper: "quiescent",
            why: "",
        }
        .with(quiet()),
    ]
}

const WHY_LATE: &str = "A message is delivered when all members have received all earlier messages \
                        and nulls: each round waits until the third member, and then the others, \
                        have had a processor.";
const WHY_WOKEN: &str = "It is woken up to 10,000 times per second. A thread outside of the group \
                         that sleeps as long costs the members about as much, so the group cannot \
                         avoid this cost.";

pub(super) fn figure_11(scale: Scale) -> Plan {
    let panels = SENDERS.map(|(senders, title)| {
        let line = |stage, name| {
            let line = scale.line(stage, throughput, |run| run.senders(senders));
            line.named(name)
        };
        let lines = vec![
            line(Stage::Batching, "batching"),
            line(Stage::Nulls, "with nulls"),
        ];
        panel(title, [MEMBERS, THROUGHPUT], lines)
    });
    Plan {
        notes: vec![
            "Whether nulls slow down or speed up senders that never pause depends on the \
             scheduling of the processors, so there is no claim for all and half of the senders.",
        ],
        panels: panels.into(),
        claims: |found| {
            let none = || {
                let line = found.line(2, "with nulls").iter();
                let nulls = line.map(|(_, rounds)| rounds.median(|it| it.nulls as f64));
                let nulls =
                    nulls.fold(None, |sum: Option<f64>, one| Some(sum.unwrap_or(0.0) + one))?;
                let kept = times(
                    found,
                    (2, "batching"),
                    (2, "with nulls"),
                    Outcome::throughput,
                )?;
                Some((
                    format!("{nulls} nulls, {kept:.2} of the rate"),
                    verdict(nulls == 0.0 && kept > 0.8, nulls == 0.0),
                ))
            };
            let saying = Saying {
                section: "§IV-B.2",
                text: "One sender: no nulls, no overhead",
                paper: "none",
                why: "There are no nulls; the rates are of different times on a busy machine.",
            };
            vec![saying.with(none())]
        },
        ..Plan::new(Subject::Figure(11))
    }
}
