//! The systems that the paper compares, and how long they are run.

use crate::model::{Experiment, Lock, MESSAGES_MAX, Slots};
use spindle_dds_core::{EngineConfig, SWITCHES};

use super::plan::{Line, PanelPlan, Reading, Work};
use super::report::{Axis, System};

/// Deliveries at a member in a run without batching.
const DELIVERIES_SLOW: u32 = 16_000;
/// Deliveries at a member in a run with batching.
const DELIVERIES_FAST: u32 = 64_000;
/// The fewest windows that a sender sends in a run.
const WINDOWS: u32 = 10;

/// Stages of the paper; each includes the previous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Baseline,
    Delivery,
    Receive,
    /// All batching, with the paper's slots and lock.
    Batching,
    Nulls,
    /// Late pushes, behind the lock: the last stage of the paper.
    Late,
    /// The same with our rings, and no lock.
    Spindle,
    /// All switches on, including the one that the paper does not have: our engine as it is.
    Bounded,
}

impl Stage {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Delivery => "+ delivery batching",
            Self::Receive => "+ receive batching",
            Self::Batching => "+ send batching",
            Self::Nulls => "+ null-sends",
            Self::Late => "+ late pushes",
            Self::Spindle => "Spindle",
            Self::Bounded => "Spindle, bounded deliveries",
        }
    }

    pub(super) fn system(self) -> System {
        match self {
            Self::Baseline => System::Baseline,
            Self::Spindle | Self::Bounded => System::Spindle,
            _ => System::Stage,
        }
    }

    /// Whether it has the switch of this name.
    pub(super) fn has(self, switch: &str) -> bool {
        let config = self.config();
        let mut known = SWITCHES.iter().filter(|known| known.name == switch);
        known.any(|known| known.is_on(&config))
    }

    /// Switches of the engine. Stages of the paper that post earlier, or hold a lock while they
    /// post, are modelled as costs: see [`Lock`].
    fn config(self) -> EngineConfig {
        let has = |stage: Self| self as u32 >= stage as u32;
        EngineConfig {
            delivery_batching: has(Self::Delivery),
            receive_batching: has(Self::Receive),
            send_batching: has(Self::Batching),
            null_sends: has(Self::Nulls),
            batched_upcalls: has(Self::Spindle),
            summary_polling: has(Self::Spindle),
            bounded_deliveries: has(Self::Bounded),
            ..EngineConfig::SPINDLE
        }
    }

    fn slots(self) -> Slots {
        match self {
            Self::Spindle | Self::Bounded => Slots::Rings,
            _ => Slots::Fixed,
        }
    }

    fn lock(self) -> Lock {
        match self {
            Self::Spindle | Self::Bounded => Lock::Free,
            Self::Late => Lock::BeforePosts,
            _ => Lock::OverPosts,
        }
    }
}

/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scale {
    /// Few points, few messages: seconds instead of minutes.
    pub(super) quick: bool,
}

impl Scale {
    pub(super) fn members(self) -> &'static [usize] {
        match self.quick {
            true => &[2, 4, 8],
            false => &[2, 3, 4, 6, 8, 10, 11, 12, 14, 16],
        }
    }

    /// For the experiments that take longest.
    pub(super) fn few_members(self) -> &'static [usize] {
        match self.quick {
            true => &[2, 4],
            false => &[2, 4, 8, 12, 16],
        }
    }

    pub(super) fn subgroups(self) -> &'static [usize] {
        match self.quick {
            true => &[1, 2, 10],
            false => &[1, 2, 10, 50],
        }
    }

    /// The paper's usual experiment, with enough messages.
    pub(super) fn experiment(self, members: usize, stage: Stage) -> Experiment {
        let experiment = Experiment::new(members, stage.config(), stage.slots(), stage.lock());
        self.long_enough(experiment)
    }

    /// Sets the number of messages for this kind of run.
    pub(super) fn long_enough(self, experiment: Experiment) -> Experiment {
        let config = experiment.config;
        let fast = config.delivery_batching && config.receive_batching;
        let deliveries = if fast {
            DELIVERIES_FAST
        } else {
            DELIVERIES_SLOW
        };
        let deliveries = if self.quick {
            deliveries / 16
        } else {
            deliveries
        };
        // Polling inactive subgroups takes time too.
        let idle = (experiment.subgroups - experiment.active) as u32;
        let deliveries = deliveries / (1 + idle / 8) / experiment.active as u32;
        let windows = if self.quick { 2 } else { WINDOWS };
        let least = if fast {
            windows * experiment.window
        } else {
            100
        };
        let messages = (deliveries / experiment.members as u32).max(least);
        Experiment {
            messages: messages.min(MESSAGES_MAX),
            ..experiment
        }
    }

    /// A line over numbers of members.
    pub(super) fn line(
        self,
        stage: Stage,
        members: &[usize],
        read: fn(&crate::model::Measured) -> f64,
        change: impl Fn(&mut Experiment),
    ) -> Line {
        let run = |members: &usize| {
            let mut experiment = self.experiment(*members, stage);
            change(&mut experiment);
            let experiment = self.long_enough(experiment);
            (*members as f64, experiment)
        };
        Line {
            name: stage.name().to_owned(),
            system: stage.system(),
            reading: Reading::Value(read),
            runs: members.iter().map(run).collect(),
        }
    }
}

pub(super) fn panel<W: Work>(
    title: impl Into<String>,
    [x, y]: [Axis; 2],
    lines: Vec<Line<W>>,
) -> PanelPlan<W> {
    PanelPlan {
        title: title.into(),
        x,
        y,
        lines,
        given: Vec::new,
    }
}
