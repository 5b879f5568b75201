//! One run: what the processes do one after the other, and its figures.

use std::time::Duration;

use indicatif::ProgressBar;
use serde::Serialize;

use super::Size;
use super::contender::Contender;
use super::late::LateJoin;
use super::processes::Processes;
use super::protocol::{Closed, Counted, Exchange, Group, Matched, Order, Told, Writers};
use super::resources::Resources;
use crate::perf::Failure;

/// What is run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) contender: Contender,
    pub(super) size: Size,
    /// Bytes of payload of the few samples.
    pub(super) sample_bytes: u32,
    /// Whether it ends with many samples on one topic.
    pub(super) burst: bool,
    /// Whether one more participant joins at the end.
    pub(super) late: bool,
    pub(super) time_limit: Duration,
}

/// The figures of a run.
#[derive(Debug, Clone)]
pub(super) struct RunFigures {
    /// Matches, summed over all endpoints.
    pub(super) matches: u64,
    /// From the start until all processes had a participant.
    pub(super) participants_s: f64,
    /// From the start until all processes had their endpoints.
    pub(super) endpoints_s: f64,
    /// From the start until all endpoints were matched everywhere.
    pub(super) matched_s: f64,
    /// Processor time of all processes from the start until then.
    pub(super) cpu_s: f64,
    /// From when the first process began to close until the last one had closed.
    pub(super) close_s: f64,
    /// How one more participant has joined, if one has.
    pub(super) late: Option<LateJoin>,
    /// The number of the view, and the sum of the pushes.
    pub(super) group: Option<Group>,
    /// What each process held, stage by stage.
    pub(super) stages: Vec<(Stage, Vec<Resources>)>,
}

/// A moment at which memory is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage {
    /// The processes have started, and use no middleware yet.
    Start,
    /// All endpoints are matched.
    Matched,
    /// One writer of each topic has sent one sample.
    OneSampleATopic,
    /// And each writer of each topic.
    OneSampleAWriter,
    /// And one of them many samples of the first topic.
    Burst,
}

impl Plan {
    /// Lines that the processes of a run print: steps of the progress.
    pub(super) fn steps(&self) -> u64 {
        let exchanges = 2 + u64::from(self.burst);
        let participants = u64::from(self.size.participants);
        let late = u64::from(self.late) * (2 * participants + 3);
        participants * (4 + exchanges) + late
    }

    fn exchanges(&self) -> Vec<(Stage, Exchange)> {
        let one = |writers| Exchange {
            topics: self.size.topics,
            writers,
            samples: 1,
            size: self.sample_bytes,
        };
        let mut all = vec![
            (Stage::OneSampleATopic, one(Writers::One)),
            (Stage::OneSampleAWriter, one(Writers::All)),
        ];
        if self.burst {
            all.push((Stage::Burst, BURST));
        }
        all
    }

    /// Runs it. Each line of a process is a step of the progress.
    pub(super) fn run(&self, progress: &ProgressBar) -> Result<RunFigures, Failure> {
        let mut run = Processes::start(*self, progress)?;
        run.ask_all(
            |_| None,
            "starting",
            |told| matches!(told, Told::Ready).then_some(()),
        )?;
        let mut stages = vec![(Stage::Start, run.resources()?)];
        let matched = run.ask(Order::Begin, "matching", |told| match told {
            Told::Matched(matched) => Some(matched),
            _ => None,
        })?;
        let counted = run.ask(Order::Count, "counting", |told| match told {
            Told::Counted(counted) => Some(counted),
            _ => None,
        })?;
        self.check(&counted)?;
        stages.push((Stage::Matched, run.settled_resources()?));
        for (stage, exchange) in self.exchanges() {
            run.ask(Order::Exchange(exchange), "sending", |told| {
                matches!(told, Told::Exchanged).then_some(())
            })?;
            stages.push((stage, run.settled_resources()?));
        }
        let late = self.late.then(|| run.join_late()).transpose()?;
        let close = |_| Some(Order::Close);
        let closed = run.ask_all(close, "closing", |told| match told {
            Told::Closed(closed) => Some(closed),
            _ => None,
        })?;
        run.end()?;
        let figures = RunFigures::of(&matched, &counted, &closed, stages);
        Ok(RunFigures { late, ..figures })
    }

    /// Whether each endpoint is matched with those of all processes.
    fn check(&self, counted: &[Counted]) -> Result<(), Failure> {
        let Size {
            participants,
            topics,
        } = self.size;
        let all = 2 * u64::from(topics) * u64::from(participants);
        match counted.iter().find(|it| it.matches != all) {
            None => Ok(()),
            Some(it) => Err(Failure::Workers(format!(
                "the endpoints of a process have {} matches, not {all}, after all were matched",
                it.matches
            ))),
        }
    }
}

impl RunFigures {
    fn of(
        matched: &[Matched],
        counted: &[Counted],
        closed: &[Closed],
        stages: Vec<(Stage, Vec<Resources>)>,
    ) -> Self {
        let began_at_ns = matched.iter().map(|it| it.began_at_ns).min();
        let since = |read: fn(&Matched) -> u64| {
            let last_ns = matched.iter().map(read).max();
            seconds(began_at_ns, last_ns)
        };
        let groups = counted.iter().filter_map(|it| it.group);
        let cpu_ns: u64 = counted.iter().map(|it| it.cpu_ns).sum();
        Self {
            matches: counted.iter().map(|it| it.matches).sum(),
            participants_s: since(|it| it.participant_at_ns),
            endpoints_s: since(|it| it.endpoints_at_ns),
            matched_s: since(|it| it.matched_at_ns),
            cpu_s: cpu_ns as f64 / 1e9,
            close_s: seconds(
                closed.iter().map(|it| it.began_at_ns).min(),
                closed.iter().map(|it| it.ended_at_ns).max(),
            ),
            late: None,
            group: groups.reduce(Group::and),
            stages,
        }
    }
}

fn seconds(from_ns: Option<u64>, until_ns: Option<u64>) -> f64 {
    let ns = until_ns.unwrap_or(0).saturating_sub(from_ns.unwrap_or(0));
    ns as f64 / 1e9
}

/// 10,000 samples of 10 KB on one topic.
const BURST: Exchange = Exchange {
    topics: 1,
    writers: Writers::One,
    samples: 10_000,
    size: 10_240,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_from_the_first_begin_to_the_last_end() {
        let matched = |began_at_ns, matched_at_ns| Matched {
            began_at_ns,
            participant_at_ns: began_at_ns + 1,
            endpoints_at_ns: began_at_ns + 2,
            matched_at_ns,
        };
        let counted = |view, pushes| Counted {
            cpu_ns: 1_500_000_000,
            matches: 12,
            group: Some(Group {
                view,
                epochs: 2,
                pushes,
                pushed_bytes: 8 * pushes,
                ..Group::default()
            }),
        };
        let closed = [(5, 9), (4, 7)].map(|(began_at_ns, ended_at_ns)| Closed {
            began_at_ns,
            ended_at_ns,
        });
        let figures = RunFigures::of(
            &[matched(10, 500), matched(30, 90)],
            &[counted(3, 7), counted(4, 5)],
            &closed,
            Vec::new(),
        );
        let times = [
            figures.participants_s,
            figures.endpoints_s,
            figures.matched_s,
            figures.cpu_s,
            figures.close_s,
        ];
        assert_eq!(times, [21e-9, 22e-9, 490e-9, 3.0, 5e-9]);
        let group = figures.group.expect("counts");
        assert_eq!((figures.matches, group.view), (24, 4));
        assert_eq!((group.pushes, group.pushed_bytes), (12, 96));
        assert_eq!(group.epochs, 4);
    }
}
