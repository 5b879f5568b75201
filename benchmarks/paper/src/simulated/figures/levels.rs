//! Figure 18: the levels of the DDS of §IV-F.

use crate::model::{Level, Senders};
use crate::plan::{
    Found, Plan, Saying, THROUGHPUT, mean, peak, throughput, trough, values, verdict,
};
use crate::report::{Axis, Claim, Verdict};
use crate::systems::{Scale, Stage, panel};

const LEVELS: [(Level, &str); 4] = [
    (Level::Unordered, UNORDERED),
    (Level::Atomic, ATOMIC),
    (Level::Volatile, VOLATILE),
    (Level::Logged, LOGGED),
];
const UNORDERED: &str = "Unordered";
const ATOMIC: &str = "Atomic";
const VOLATILE: &str = "Volatile";
const LOGGED: &str = "Logged";
const BASELINE: &str = "baseline";
const SPINDLE: &str = "Spindle";

pub(super) fn figure_18(scale: Scale) -> Plan {
    let subscribers = Axis {
        label: "subscribers",
        log: false,
    };
    let members: Vec<usize> = scale.few_members().to_vec();
    let mut lines = Vec::new();
    for (stage, name) in [(Stage::Baseline, BASELINE), (Stage::Spindle, SPINDLE)] {
        for (level, of_level) in LEVELS {
            let mut line = scale.line(stage, &members, throughput, |experiment| {
                experiment.senders = Senders::One;
                experiment.level = level;
            });
            // One of the members is the publisher.
            line.runs
                .iter_mut()
                .for_each(|(members, _)| *members -= 1.0);
            lines.push(line.named(format!("{of_level}, {name}")));
        }
    }
    Plan {
        number: 18,
        title: "one publisher, by level",
        notes: vec![
            "Volatile: each member keeps a copy in its memory, of which the last one stays. \
             Logged: it appends a record to a log on a disk of its own, too. A run is over when \
             the last message is kept everywhere; the publisher waits for room only.",
            "Spindle, as our product: a history thread copies beside the polling thread, and a log \
             thread writes all that waits and syncs once; the slot is free when both have let go, \
             the log thread when it has written. Baseline, as far as Derecho's sources say: its \
             polling thread copies in the upcall and appends, and its log thread syncs behind, as \
             often as it can. Nothing waits for that, so what is not on the disk yet is unbounded \
             there. In both, the polling thread then tells the others how much is on the disk.",
            "The paper does not say how it copies, how much it keeps, or on which disk. Where the \
             history takes new memory for each message, keeping one took 7.4 µs here instead of \
             0.5, as the system hands out pages.",
        ],
        panels: vec![panel("throughput", [subscribers, THROUGHPUT], lines)],
        claims: claims_18,
    }
}

fn claims_18(found: &Found) -> Vec<Claim> {
    vec![
        says("Spindle improves performance at each level", "improves", "").with(improves(found)),
        says(
            "Spindle: nearly the same for Unordered and Atomic",
            "nearly the same",
            "",
        )
        .with(same(found)),
        says(
            "The baseline decreases considerably with each additional level",
            "considerably",
            "With one sender, the model's baseline is limited by the publisher's passes, each of \
             which sends one message at any level. The additional waiting of Atomic overlaps with \
             that, and copying a message takes 0.64 µs of 8 and more.",
        )
        .with(decreases(found)),
        says(
            "The improvements carry over to Volatile and Logged",
            "carry over",
            "",
        )
        .with(carries_over(found)),
        says(
            "Volatile is limited by memory copying",
            "limited",
            "A thread of its own copies, in 0.64 µs, of which the last message stays. The publisher \
             takes 1.34 µs to send one.",
        )
        .with(copying_limits(found)),
        says(
            "Logged is limited by the disk",
            "limited",
            "With many subscribers the publisher's link is slower than the disk.",
        )
        .with(disk_limits(found)),
    ]
}

fn says(text: &'static str, paper: &'static str, why: &'static str) -> Saying {
    Saying {
        section: "§IV-F",
        text,
        paper,
        why,
    }
}

/// Ratios of the rate of a level and system to that of another.
fn ratios(found: &Found, from: (&str, &str), to: (&str, &str)) -> Vec<(f64, f64)> {
    let line = |(level, system): (&str, &str)| format!("{level}, {system}");
    found.ratios((0, &line(from)), (0, &line(to)), throughput)
}

/// The mean rate of Spindle at a level, of the baseline's.
fn improvement(found: &Found, level: &str) -> Option<f64> {
    mean(&ratios(found, (level, BASELINE), (level, SPINDLE)))
}

fn improves(found: &Found) -> Option<(String, Verdict)> {
    let improved: Option<Vec<f64>> = LEVELS
        .iter()
        .map(|(_, level)| improvement(found, level))
        .collect();
    let improved = improved?;
    let names = LEVELS.iter().zip(&improved);
    let told: Vec<String> = names
        .map(|((_, level), improved)| format!("{level} {improved:.1}×"))
        .collect();
    let all = improved.iter().all(|it| *it > 1.0);
    Some((told.join(", "), verdict(all, false)))
}

fn same(found: &Found) -> Option<(String, Verdict)> {
    let ours = mean(&ratios(found, (UNORDERED, SPINDLE), (ATOMIC, SPINDLE)))?;
    Some((
        format!("Atomic has {ours:.2} of Unordered's rate"),
        verdict(ours > 0.8, ours > 0.5),
    ))
}

fn decreases(found: &Found) -> Option<(String, Verdict)> {
    let steps: Option<Vec<f64>> = LEVELS
        .windows(2)
        .map(|pair| mean(&ratios(found, (pair[0].1, BASELINE), (pair[1].1, BASELINE))))
        .collect();
    let steps = steps?;
    let told: Vec<String> = LEVELS
        .windows(2)
        .zip(&steps)
        .map(|(pair, step)| format!("{} has {step:.2} of {}", pair[1].1, pair[0].1))
        .collect();
    let all_below = |limit: f64| steps.iter().all(|step| *step < limit);
    Some((told.join(", "), verdict(all_below(0.8), all_below(1.0))))
}

fn carries_over(found: &Found) -> Option<(String, Verdict)> {
    let least = |level| trough(&ratios(found, (level, BASELINE), (level, SPINDLE)));
    let (volatile, logged) = (least(VOLATILE)?, least(LOGGED)?);
    Some((
        format!(
            "at least {:.1}× (Volatile), {:.1}× (Logged)",
            volatile.1, logged.1
        ),
        verdict(volatile.1.min(logged.1) > 1.0, false),
    ))
}

fn copying_limits(found: &Found) -> Option<(String, Verdict)> {
    let ours = trough(&ratios(found, (ATOMIC, SPINDLE), (VOLATILE, SPINDLE)))?;
    Some((
        format!(
            "Spindle: Volatile has at least {:.2} of Atomic's rate",
            ours.1
        ),
        verdict(ours.1 < 0.9, false),
    ))
}

fn disk_limits(found: &Found) -> Option<(String, Verdict)> {
    let of_volatile = ratios(found, (VOLATILE, SPINDLE), (LOGGED, SPINDLE));
    let (least, most) = (trough(&of_volatile)?, peak(&of_volatile)?);
    let rates = values(found.line(0, &format!("{LOGGED}, {SPINDLE}")), throughput);
    let (_, rate) = peak(&rates)?;
    let told: Vec<String> = of_volatile
        .iter()
        .map(|(subscribers, of_volatile)| format!("{subscribers}: {of_volatile:.2}"))
        .collect();
    Some((
        format!(
            "Spindle: at most {rate:.2} GB/s; of Volatile's rate, by subscribers: {}",
            told.join(", ")
        ),
        verdict(most.1 < 0.9, least.1 < 0.9),
    ))
}
