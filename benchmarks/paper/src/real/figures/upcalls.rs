//! Section III-D: slow upcalls.

use super::{kept, ratio, thousands, times};
use crate::plan::{Found, Saying, verdict};
use crate::real::Scale;
use crate::real::outcome::{Outcome, Rounds, rate};
use crate::real::plan::{Plan, TablePlan};
use crate::real::run::{Run, Upcall};
use crate::report::{Claim, Subject};

/// Durations of an upcall, and the factors by which fewer messages are sent.
const TIMES: [(&str, &str, u32); 3] = [
    ("1us", "1 µs", 1),
    ("100us", "100 µs", 10),
    ("1ms", "1 ms", 40),
];
const AT_ONCE: &str = "no time";

pub(super) fn plan(scale: Scale) -> Plan {
    Plan {
        notes: vec![
            "A writer, and a reader whose listener keeps a processor busy for this time, either \
             for each message or for each call that takes all messages. In the paper the receiving \
             thread makes the upcalls; here a separate thread does, with a ring of 128 messages in \
             between. So only upcalls that take longer than the interval of messages limit the \
             rate; shorter ones are not added to the time of receiving. Without batched_upcalls \
             that thread is notified of each message separately.",
        ],
        tables: [
            ("Slow upcalls, batched_upcalls on", true),
            ("Slow upcalls, batched_upcalls off", false),
        ]
        .map(|(title, batched)| table(scale, title, batched))
        .into(),
        claims,
        ..Plan::new(Subject::Upcalls)
    }
}

fn each(time: &str) -> String {
    format!("{time} per message")
}

fn once(time: &str) -> String {
    format!("{time} per call")
}

fn table(scale: Scale, title: &'static str, batched: bool) -> TablePlan {
    let run = |upcall, part| {
        let run = Run {
            upcall,
            ..scale.pair(scale.messages_by(part))
        };
        match batched {
            true => run,
            false => run.without("batched_upcalls"),
        }
    };
    let mut rows = vec![(AT_ONCE.to_owned(), run(Upcall::No, 1))];
    rows.extend(TIMES.map(|(time, name, part)| (each(name), run(Upcall::Each(time), part))));
    rows.extend(TIMES.map(|(time, name, _)| (once(name), run(Upcall::Once(time), 1))));
    TablePlan {
        title,
        head: vec![
            "an upcall takes",
            "thousand messages per second [min .. max]",
            "of the first row",
            "messages per notification of the engine",
        ],
        rows,
        cells: |rounds| {
            let told = rounds.median(|it| it.messages_an_upcall);
            vec![thousands(rounds), ratio(rounds), format!("{told:.1}")]
        },
        repeats: false,
    }
}

fn claims(found: &Found<Rounds>) -> Vec<Claim> {
    let lost = |table| {
        let mut lost = Vec::new();
        for (_, name, _) in TIMES {
            lost.push(100.0 * (1.0 - kept(found, (table, &each(name)))?));
        }
        let told = lost.iter().map(|part| format!("{part:.0} %"));
        Some((lost.clone(), told.collect::<Vec<_>>().join(", ")))
    };
    let falls = |table| {
        let (lost, told) = lost(table)?;
        let number = lost[0] <= 20.0 && lost[1] >= 80.0 && lost[2] >= 95.0;
        Some((told, verdict(number, lost[1] > 50.0 && lost[2] > lost[1])))
    };
    let one_a_delay = || {
        let rate = |name| Some(rate(found.at(0, &each(name), 0.0)?));
        let (hundred, thousand) = (rate("100 µs")?, rate("1 ms")?);
        let near = |ours: f64, paper: f64| (ours / paper - 1.0).abs() <= 0.2;
        Some((
            format!("{hundred:.0} and {thousand:.0} per second"),
            verdict(near(hundred, 10_000.0) && near(thousand, 1000.0), false),
        ))
    };
    let batched = || {
        let least = |name| {
            let ours = times(found, (0, &each(name)), (0, &once(name)), Outcome::rate)?;
            Some((ours, format!("{name}: {ours:.1}×")))
        };
        let (hundred, thousand) = (least("100 µs")?, least("1 ms")?);
        Some((
            format!("{}, {}", hundred.1, thousand.1),
            verdict(hundred.0.min(thousand.0) > 2.0, false),
        ))
    };
    let says = |text, paper, why| Saying {
        section: "§III-D",
        text,
        paper,
        why,
    };
    vec![
        says(
            "Upcalls of 1 µs, 100 µs, 1 ms decrease performance by (batched_upcalls off)",
            "9 %, 90 %, 99 %",
            WHY,
        )
        .with(falls(1)),
        says("... batched_upcalls on", "–", WHY).with(falls(0)),
        says(
            "With 100 µs and 1 ms, one message is delivered each time",
            "10,000 and 1000 a second",
            "",
        )
        .with(one_a_delay()),
        says(
            "An upcall that takes a batch in the time of a message speeds it up",
            "speedups",
            "",
        )
        .with(batched()),
    ]
}

const WHY: &str = "Without a delay a message takes less than 1 µs here, and several µs in the \
                   paper, so an upcall of 1 µs is a larger share.";
