//! Numbers of members and messages.

use crate::model::MESSAGES_MAX;

use super::outcome::Rounds;
use super::run::{Participants, Run};
use crate::plan::{Line, Reading};
use crate::systems::Stage;

/// Messages of a sender in a table's rows.
pub(crate) const TABLE_MESSAGES_MAX: u32 = 10 * MESSAGES_MAX;

/// The amount of work of the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    /// Few points, few messages.
    pub(crate) quick: bool,
}

impl Scale {
    pub(super) fn members(self) -> &'static [usize] {
        match self.quick {
            true => &[2],
            false => &[2, 3, 4],
        }
    }

    pub(super) fn messages(self) -> u32 {
        match self.quick {
            true => 1000,
            false => MESSAGES_MAX,
        }
    }

    /// A fraction of the messages, for runs that take longer.
    pub(super) fn messages_by(self, part: u32) -> u32 {
        (self.messages() / part).max(100)
    }

    pub(super) fn run(self, members: usize, stage: Stage) -> Run {
        // Without batching a message takes longer.
        let part = if stage.has("send_batching") { 1 } else { 4 };
        Run::new(members, stage, self.messages_by(part))
    }

    /// For a row that is compared with another: it lasts at least a fifth of a second, so that the
    /// start of the run does not matter. The messages of a curve last only 15 ms.
    pub(super) fn long_run(self, members: usize, stage: Stage) -> Run {
        let part = if self.quick {
            1
        } else {
            TABLE_MESSAGES_MAX / MESSAGES_MAX
        };
        Run::new(members, stage, self.messages() * part)
    }

    /// A line over numbers of members.
    pub(super) fn line(
        self,
        stage: Stage,
        read: fn(&Rounds) -> f64,
        change: impl Fn(Run) -> Run,
    ) -> Line<Run> {
        self.line_over(self.members(), stage, read, change)
    }

    pub(super) fn line_over(
        self,
        members: &[usize],
        stage: Stage,
        read: fn(&Rounds) -> f64,
        change: impl Fn(Run) -> Run,
    ) -> Line<Run> {
        let run = |members: &usize| (*members as f64, change(self.run(*members, stage)));
        Line {
            name: stage.name().to_owned(),
            system: stage.system(),
            reading: Reading::Value(read),
            runs: members.iter().map(run).collect(),
        }
    }

    /// A run with a writer and a reader that has a listener.
    pub(super) fn pair(self, messages: u32) -> Run {
        Run {
            participants: Participants::Pair,
            ..Run::new(2, Stage::Bounded, messages)
        }
    }
}
