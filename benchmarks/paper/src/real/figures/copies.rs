//! Figures 14 and 15: the cost of copying a message.

use super::batching::ALL_AND_ONE;
use super::times;
use crate::plan::{Found, MEMBERS, Saying, THROUGHPUT, verdict};
use crate::real::Scale;
use crate::real::outcome::{Outcome, Rounds, rate, throughput};
use crate::real::plan::Plan;
use crate::real::run::Run;
use crate::report::{Axis, Claim, Subject};
use crate::simulated::figures::copies::{COPY_AXES, measured};
use crate::systems::{Stage, panel};

pub(super) fn figure_14() -> Plan {
    let mut plot = panel("memcpy, this machine", COPY_AXES, Vec::new());
    plot.given = || vec![measured()];
    Plan {
        notes: vec!["The fastest of several rounds, from a ring of 16 MB."],
        panels: vec![plot],
        ..Plan::new(Subject::Figure(14))
    }
}

const IN_PLACE: &str = "in place";
const COPIED: &str = "copied in and out";

pub(super) fn figure_15(scale: Scale) -> Plan {
    let line = |copies, read: fn(&Rounds) -> f64, change: &dyn Fn(Run) -> Run| {
        let line = scale.line(Stage::Spindle, read, |run| change(Run { copies, ..run }));
        line.named(if copies { COPIED } else { IN_PLACE })
    };
    let panels = ALL_AND_ONE.map(|(senders, title)| {
        let lines =
            [false, true].map(|copies| line(copies, throughput, &|run| run.senders(senders)));
        panel(title, [MEMBERS, THROUGHPUT], lines.into())
    });
    let small = [false, true].map(|copies| line(copies, rate, &|run| Run { size: 1, ..run }));
    let messages = Axis {
        label: "messages delivered at a member per second",
        log: false,
    };
    let small = panel(
        "messages of 1 B, all send",
        [MEMBERS, messages],
        small.into(),
    );
    Plan {
        notes: vec![
            "Copied: a message is copied from the sender's memory into the ring, and readers copy \
             it into their own storage (spindle.reader.storage is copy). In place: a message is \
             built and read in the sender's ring; its first and last byte are touched.",
        ],
        panels: panels.into_iter().chain([small]).collect(),
        claims: claims_15,
        ..Plan::new(Subject::Figure(15))
    }
}

fn claims_15(found: &Found<Rounds>) -> Vec<Claim> {
    let kept = |panel, of, least| {
        let ours = times(found, (panel, IN_PLACE), (panel, COPIED), of)?;
        let told = format!("{ours:.2} of the rate without copies");
        Some((told, verdict(ours > least && ours < 1.05, ours > 0.5)))
    };
    let says = |text, paper| Saying {
        section: "§IV-D",
        text,
        paper,
        why: WHY_15,
    };
    vec![
        says("All senders: a decline", "7.5 GB/s (of 9.7): 0.77").with(kept(
            0,
            Outcome::throughput,
            0.6,
        )),
        says("One sender: almost no decline", "almost none").with(kept(
            1,
            Outcome::throughput,
            0.9,
        )),
        says("Messages of 1 B: no loss", "none").with(kept(2, Outcome::rate, 0.9)),
    ]
}

const WHY_15: &str = "In place, nothing moves the payload here, not even a network card, so each \
                      copy is an additional cost; and the reader's storage is allocated for each \
                      sample.";
