//! The runs of a size in figures: medians and spreads over the rounds, and over the processes where
//! each has a figure of its own.

use serde::Serialize;

use super::Size;
use super::contender::Contender;
use super::late::LateJoin;
use super::protocol::Group;
use super::resources::Resources;
use super::run::{RunFigures, Stage};
use crate::harness::spread::Spread;

/// The figures of a size.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Cell {
    #[serde(flatten)]
    pub(super) size: Size,
    pub(super) contenders: Vec<Summary>,
    /// Time until all are matched: Spindle's over the peer's in the same round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) matched_ratio: Option<Spread>,
}

/// The figures of a middleware. Times are those of all processes together.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Summary {
    pub(super) contender: Contender,
    pub(super) rounds: usize,
    /// Matches, summed over all endpoints: of each with those of its topic in all processes.
    pub(super) matches: u64,
    /// From the start until all processes had a participant.
    pub(super) participants_s: Spread,
    /// From the start until all processes had their endpoints.
    pub(super) endpoints_s: Spread,
    /// From the start until all endpoints were matched everywhere.
    pub(super) matched_s: Spread,
    /// Processor time of all processes from the start until then.
    pub(super) cpu_s: Spread,
    /// From when the first process began to close until the last one had closed.
    pub(super) close_s: Spread,
    /// Views that were agreed until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) views: Option<Spread>,
    /// Subgroup epochs that have begun until then, summed over all processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) epochs: Option<Spread>,
    /// Pushes of the view protocol until then, summed over all processes, times the peers of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) control_pushes: Option<Spread>,
    /// Bytes of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) control_pushed_bytes: Option<Spread>,
    /// Packets that the processes' stations have sent each other until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) packets: Option<Spread>,
    /// Bytes of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) packet_bytes: Option<Spread>,
    /// Rows of segments in these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rows: Option<Spread>,
    /// Pushes in subgroups until then, summed over all processes, times the peers of each: no
    /// sample has been sent, so they are what epochs take to begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subgroup_pushes: Option<Spread>,
    /// Bytes of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subgroup_pushed_bytes: Option<Spread>,
    /// How one more participant has joined, with `--late`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) late: Option<LateSummary>,
    pub(super) stages: Vec<StageSummary>,
}

/// How one more participant has joined those that run.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct LateSummary {
    /// From when it was told to begin until all its endpoints were matched.
    pub(super) matched_s: Spread,
    /// Longest time for which a process had no sample of one of the others, before it joined.
    pub(super) gap_before_s: Spread,
    /// The same while it joined.
    pub(super) gap_s: Spread,
    /// The latter over the former, in the same round.
    pub(super) gap_ratio: Spread,
}

/// What a process holds at one stage, over all processes and rounds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct StageSummary {
    pub(super) stage: Stage,
    /// Proportional share of all memory.
    pub(super) pss_bytes: Spread,
    /// The same without what the process held before it used the middleware.
    pub(super) added_bytes: Spread,
    /// The part in memory files.
    pub(super) shared_bytes: Spread,
    /// The part in anonymous memory.
    pub(super) anonymous_bytes: Spread,
    /// The part in files: programs and libraries.
    pub(super) program_bytes: Spread,
    pub(super) descriptors: Spread,
    pub(super) mappings: Spread,
    pub(super) threads: Spread,
}

impl Cell {
    /// `rounds` has, for each round, the runs of the contenders in turn: Spindle's first.
    pub(super) fn of(size: Size, contenders: &[Contender], rounds: &[Vec<RunFigures>]) -> Self {
        let summary = |(at, contender): (usize, &Contender)| {
            let runs: Vec<&RunFigures> = rounds.iter().filter_map(|round| round.get(at)).collect();
            Summary::of(*contender, &runs)
        };
        let ratio = |round: &Vec<RunFigures>| match round.as_slice() {
            [ours, theirs] => Some(ours.matched_s / theirs.matched_s.max(1e-9)),
            _ => None,
        };
        Self {
            size,
            contenders: contenders.iter().enumerate().map(summary).collect(),
            matched_ratio: Spread::of(rounds.iter().filter_map(ratio).collect()),
        }
    }
}

impl Summary {
    fn of(contender: Contender, runs: &[&RunFigures]) -> Self {
        let spread = |read: fn(&RunFigures) -> f64| spread(runs.iter().map(|run| read(run)));
        let of_group = |read: fn(&Group) -> u64| {
            let groups = runs.iter().filter_map(|run| run.group.as_ref());
            Spread::of(groups.map(|group| read(group) as f64).collect())
        };
        let stages = runs.first().map_or(&[][..], |run| run.stages.as_slice());
        let stage = |(at, (stage, _)): (usize, &(Stage, _))| StageSummary::of(*stage, at, runs);
        Self {
            contender,
            rounds: runs.len(),
            matches: runs.first().map_or(0, |run| run.matches),
            participants_s: spread(|run| run.participants_s),
            endpoints_s: spread(|run| run.endpoints_s),
            matched_s: spread(|run| run.matched_s),
            cpu_s: spread(|run| run.cpu_s),
            close_s: spread(|run| run.close_s),
            views: of_group(|group| group.view),
            epochs: of_group(|group| group.epochs),
            control_pushes: of_group(|group| group.control_pushes),
            control_pushed_bytes: of_group(|group| group.control_pushed_bytes),
            packets: of_group(|group| group.packets),
            packet_bytes: of_group(|group| group.packet_bytes),
            rows: of_group(|group| group.rows),
            subgroup_pushes: of_group(|group| group.pushes),
            subgroup_pushed_bytes: of_group(|group| group.pushed_bytes),
            late: LateSummary::of(runs),
            stages: stages.iter().enumerate().map(stage).collect(),
        }
    }

    /// What a process holds when all endpoints are matched.
    pub(super) fn matched(&self) -> Option<&StageSummary> {
        self.stages.iter().find(|it| it.stage == Stage::Matched)
    }
}

impl LateSummary {
    fn of(runs: &[&RunFigures]) -> Option<Self> {
        let spread = |read: fn(&LateJoin) -> f64| {
            let late = runs.iter().filter_map(|run| run.late.as_ref());
            Spread::of(late.map(read).collect())
        };
        Some(Self {
            matched_s: spread(|late| late.matched_s)?,
            gap_before_s: spread(|late| late.gap_before_s)?,
            gap_s: spread(|late| late.gap_s)?,
            gap_ratio: spread(|late| late.gap_s / late.gap_before_s.max(1e-9))?,
        })
    }
}

impl StageSummary {
    /// `at` is the place of the stage in each run.
    fn of(stage: Stage, at: usize, runs: &[&RunFigures]) -> Self {
        let held = || {
            let stages = runs.iter().filter_map(|run| run.stages.get(at));
            stages.flat_map(|(_, processes)| processes)
        };
        let before = runs.iter().filter_map(|run| run.stages.first());
        let before = before.flat_map(|(_, processes)| processes);
        let pairs = held().zip(before);
        let of = |read: fn(&Resources) -> u64| spread(held().map(|it| read(it) as f64));
        Self {
            stage,
            pss_bytes: of(|it| it.pss_bytes),
            added_bytes: spread(pairs.map(|(now, before)| {
                // A program's pages are shared by more processes later on.
                now.pss_bytes as f64 - before.pss_bytes as f64
            })),
            shared_bytes: of(|it| it.shared_bytes),
            anonymous_bytes: of(|it| it.anonymous_bytes),
            program_bytes: of(|it| it.program_bytes),
            descriptors: of(|it| it.descriptors),
            mappings: of(|it| it.mappings),
            threads: of(|it| it.threads),
        }
    }
}

fn spread(values: impl Iterator<Item = f64>) -> Spread {
    Spread::of(values.collect()).unwrap_or(Spread::ZERO)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A run of two processes, whose memory grows by `mib` each.
    fn run(matched_s: f64, mib: u64) -> RunFigures {
        let held = |mib: u64| Resources {
            pss_bytes: mib << 20,
            shared_bytes: 0,
            anonymous_bytes: mib << 20,
            program_bytes: 0,
            descriptors: 3,
            mappings: 40,
            threads: 1,
        };
        RunFigures {
            matches: 24,
            participants_s: matched_s / 4.0,
            endpoints_s: matched_s / 2.0,
            matched_s,
            cpu_s: 2.0 * matched_s,
            close_s: 0.5,
            late: None,
            group: Some(Group {
                view: 4,
                pushes: 10,
                pushed_bytes: 80,
                ..Group::default()
            }),
            stages: vec![
                (Stage::Start, vec![held(1), held(2)]),
                (Stage::Matched, vec![held(1 + mib), held(2 + mib)]),
            ],
        }
    }

    /// Three rounds of Spindle and Cyclone DDS.
    pub(in super::super) fn cell(participants: u32, topics: u32) -> Cell {
        let without_views = |run: RunFigures| RunFigures { group: None, ..run };
        let rounds = [(1.0, 2.0), (3.0, 2.0), (2.0, 1.0)]
            .map(|(ours, theirs)| vec![run(ours, 5), without_views(run(theirs, 3))]);
        let size = Size {
            participants,
            topics,
        };
        Cell::of(size, &[Contender::Spindle, Contender::Cyclone], &rounds)
    }

    #[test]
    fn figures_are_medians_over_rounds_and_processes() {
        let cell = cell(2, 3);
        let [ours, theirs] = cell.contenders.as_slice() else {
            panic!("{cell:?}");
        };
        assert_eq!(
            (ours.rounds, ours.matched_s.median, ours.matched_s.max),
            (3, 2.0, 3.0)
        );
        assert_eq!(theirs.matched_s.median, 2.0);
        // Each round's own ratio: 0.5, 1.5 and 2.
        let ratio = cell.matched_ratio.expect("two contenders");
        assert_eq!((ratio.median, ratio.min, ratio.max), (1.5, 0.5, 2.0));
        assert_eq!(ours.views.map(|views| views.median), Some(4.0));
        assert_eq!(theirs.views, None);
        let matched = ours.matched().expect("a stage");
        let mib = f64::from(1 << 20);
        assert_eq!(matched.pss_bytes.min, 6.0 * mib);
        assert_eq!(matched.pss_bytes.max, 7.0 * mib);
        // Of each process what it held more than before.
        assert_eq!(matched.added_bytes.min, 5.0 * mib);
        assert_eq!(matched.added_bytes.max, 5.0 * mib);
        assert_eq!(ours.stages[0].added_bytes.max, 0.0);
    }
}
