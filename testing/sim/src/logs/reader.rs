//! A reader that shows samples when logs have them.

use std::collections::VecDeque;

use spindle_dds_core::membership::MemberId;
use spindle_dds_core::storage::{EpochPlace, LogId, LogLevels, Logged};

use super::participant::{Kept, LogView};
use super::plan::ShownAfter;

/// A sample that a reader has shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    pub(super) record: Kept,
    pub(super) lineage: u128,
    /// The log of the reader's participant, if that was a logger.
    pub(super) local: Option<LogId>,
}

/// A reader of a participant.
#[derive(Debug, Default)]
pub(super) struct Reader {
    levels: LogLevels,
    waits: VecDeque<(Kept, u128)>,
}

impl Reader {
    pub(super) fn begin(&mut self, view: &LogView) {
        let place = EpochPlace {
            key: (0, view.view),
            base: view.base,
            sends: None,
        };
        self.levels.enter(place, view.logs.as_ref());
    }

    /// A sample was delivered in a view.
    pub(super) fn deliver(&mut self, view: &LogView, position: u64, value: u64) {
        let Some(logs) = &view.logs else {
            return;
        };
        let record = Kept {
            position,
            generation: logs.generation.number,
            epoch: view.view,
            value,
        };
        self.waits.push_back((record, logs.lineage));
    }

    /// Looks at the words of the loggers, and shows what it may.
    pub(super) fn look(
        &mut self,
        (me, view): (MemberId, &LogView),
        word: impl Fn(MemberId) -> u64,
        shown: ShownAfter,
    ) -> Vec<Shown> {
        let logs = view.logs.as_ref().filter(|it| it.is_open());
        if let Some(logs) = logs {
            let words: Vec<u64> = logs.loggers.iter().map(|it| word(it.member)).collect();
            let own = logs.loggers.iter().position(|it| it.member == me);
            self.levels.note(&words, own);
        }
        let local = logs.and_then(|logs| logs.log_of(me));
        let mut new = Vec::new();
        while let Some((record, lineage)) = self.waits.front().copied() {
            let degree = shown.degree();
            match degree.map_or(Logged::Yes, |it| self.levels.at(it, record.position)) {
                Logged::Yes => new.push(Shown {
                    record,
                    lineage,
                    local,
                }),
                Logged::Lost => {}
                Logged::NotYet => break,
            }
            self.waits.pop_front();
        }
        new
    }
}
