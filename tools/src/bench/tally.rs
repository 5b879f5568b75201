//! The trials of a cell: medians, and ratios of medians.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cell::Cell;
use super::contender::{LatencyKind, SPINDLE};
use super::trial::Trial;
use crate::harness::cache_line::are_alike;
use crate::harness::spread::Spread;

/// The trials of a cell.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) cell: Cell,
    /// Contenders in the order of their first trials.
    names: Vec<&'static str>,
    /// Trials by contender and round. Round 0 only warms up.
    trials: BTreeMap<(&'static str, usize), Trial>,
    errors: BTreeMap<&'static str, String>,
}

/// The figures of a contender in a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) contender: &'static str,
    pub(super) rounds: usize,
    /// Samples per second, or nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<Spread>,
    /// Spindle's value by this one's: the ratio of the medians, and the least and greatest ratio of
    /// the rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ratio: Option<Spread>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p99_ns: Option<Spread>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) latency: Option<LatencyKind>,
    /// Processor time of all its processes for each sample that a reader received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu_us_per_sample: Option<Spread>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) foreign: Option<Spread>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line_ns: Option<Spread>,
    /// Rounds in which the processors were closer together for some contenders than for others.
    pub(super) uneven: usize,
    /// Lost samples of all rounds.
    pub(super) lost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl Tally {
    pub(super) fn new(cell: Cell) -> Self {
        Self {
            cell,
            names: Vec::new(),
            trials: BTreeMap::new(),
            errors: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, name: &'static str, round: usize, outcome: Result<Trial, String>) {
        if !self.names.contains(&name) {
            self.names.push(name);
        }
        match outcome {
            Ok(trial) => {
                self.trials.insert((name, round), trial);
            }
            Err(error) => {
                self.errors.insert(name, error);
            }
        }
    }

    /// Whether the processors were as close together for all contenders of a round.
    fn is_even(&self, round: usize) -> bool {
        let trials = self.names.iter();
        are_alike(trials.filter_map(|name| self.trials.get(&(*name, round))?.line_ns))
    }

    /// Its last rate, if it has run.
    pub(super) fn rate_hz(&self, name: &'static str) -> Option<f64> {
        let mut trials = self.trials.range((name, 0)..=(name, usize::MAX));
        trials
            .next_back()
            .map(|(_, trial)| trial.figures.samples_per_s)
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        self.names.iter().map(|name| self.row(name)).collect()
    }

    /// Whether Spindle took part and has no result.
    pub(super) fn lacks_spindle(&self) -> bool {
        self.names.contains(&SPINDLE) && self.of(SPINDLE).is_empty()
    }

    fn row(&self, name: &'static str) -> Row {
        let trials = self.of(name);
        let all = |value: &dyn Fn(&Trial) -> Option<f64>| {
            Spread::of(trials.values().filter_map(|trial| value(trial)).collect())
        };
        let latency = |trial: &Trial| trial.figures.latency;
        Row {
            contender: name,
            rounds: trials.len(),
            value: all(&|trial| self.value(trial)),
            ratio: self.ratio(name),
            p99_ns: all(&|trial| Some(latency(trial)?.p99_ns)),
            latency: trials.values().find_map(|trial| Some(latency(trial)?.kind)),
            cpu_us_per_sample: all(&|trial| {
                let samples = trial.figures.samples;
                (samples > 0).then(|| trial.load.cpu_seconds * 1e6 / samples as f64)
            }),
            foreign: all(&|trial| Some(trial.load.foreign)),
            line_ns: all(&|trial| {
                trial
                    .line_ns
                    .map(|(before, after)| f64::midpoint(before, after))
            }),
            uneven: trials.keys().filter(|round| !self.is_even(**round)).count(),
            lost: trials.values().map(|trial| trial.figures.lost).sum(),
            error: self.errors.get(name).cloned(),
        }
    }

    fn ratio(&self, name: &'static str) -> Option<Spread> {
        let (ours, theirs) = (self.of(SPINDLE), self.of(name));
        let medians = [&ours, &theirs].map(|trials| {
            let values = trials.values().filter_map(|trial| self.value(trial));
            Spread::of(values.collect())
        });
        let [Some(our_median), Some(their_median)] = medians else {
            return None;
        };
        // Trials of the same round are compared, as they are neighbours in time.
        let rounds = ours.iter().filter_map(|(round, trial)| {
            let their_value = self.value(theirs.get(round)?)?;
            Some(self.value(trial)? / their_value)
        });
        let spread = Spread::of(rounds.collect())?;
        Some(Spread {
            median: our_median.median / their_median.median,
            ..spread
        })
    }

    fn of(&self, name: &'static str) -> BTreeMap<usize, &Trial> {
        let trials = self.trials.range((name, 1)..=(name, usize::MAX));
        trials.map(|((_, round), trial)| (*round, trial)).collect()
    }

    fn value(&self, trial: &Trial) -> Option<f64> {
        let value = match self.cell.is_time() {
            true => trial.figures.latency?.p50_ns,
            false => trial.figures.samples_per_s,
        };
        (value > 0.0).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::contender::Figures;
    use super::super::options::{Measure, Read, Wait};
    use super::*;
    use crate::harness::load::Load;

    fn trial(samples_per_s: f64) -> Trial {
        Trial {
            figures: Figures {
                samples_per_s,
                samples: 1000,
                lost: 1,
                latency: None,
            },
            load: Load {
                cpu_seconds: 0.002,
                foreign: 0.5,
            },
            line_ns: Some((50.0, 50.0)),
        }
    }

    fn tally(ours: &[f64], theirs: &[f64]) -> Tally {
        let mut tally = Tally::new(Cell {
            measure: Measure::Throughput,
            size: 128,
            readers: 1,
            read: Read::Touch,
            wait: Wait::Poll,
        });
        for (name, rates) in [(SPINDLE, ours), ("other", theirs)] {
            for (round, rate) in rates.iter().enumerate() {
                tally.add(name, round, Ok(trial(*rate)));
            }
        }
        tally
    }

    #[test]
    fn ratios_are_of_medians_and_leave_the_warm_up_out() {
        let tally = tally(&[1.0, 200.0, 300.0, 100.0], &[9.0, 100.0, 100.0, 50.0]);
        let rows = tally.rows();
        let ratio = rows[1].ratio.expect("a ratio");
        assert_eq!((ratio.median, ratio.min, ratio.max), (2.0, 2.0, 3.0));
        assert_eq!((rows[1].rounds, rows[1].lost), (3, 3));
        assert_eq!(rows[1].cpu_us_per_sample.map(|cpu| cpu.median), Some(2.0));
        assert_eq!(tally.rate_hz("other"), Some(50.0));
        assert!(!tally.lacks_spindle());
    }

    #[test]
    fn rounds_with_changed_processors_are_counted() {
        let mut tally = tally(&[1.0; 4], &[1.0; 4]);
        let far = |line_ns| Trial {
            line_ns: Some(line_ns),
            ..trial(1.0)
        };
        tally.add("other", 1, Ok(far((50.0, 75.0))));
        tally.add("other", 2, Ok(far((50.0, 76.0))));
        tally.add("other", 3, Ok(far((160.0, 160.0))));
        assert_eq!(tally.rows()[1].uneven, 2);
    }

    #[test]
    fn a_contender_that_fails_has_an_error_and_no_ratio() {
        let mut tally = tally(&[1.0, 2.0], &[1.0]);
        tally.add("other", 1, Err("hangs".to_owned()));
        let rows = tally.rows();
        assert_eq!((rows[1].ratio, rows[1].value), (None, None));
        assert_eq!(rows[1].error.as_deref(), Some("hangs"));
        assert!(rows[0].value.is_some());
    }
}
