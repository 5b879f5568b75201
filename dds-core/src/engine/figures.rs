//! What an engine looks like at one moment: for tools that look at it from outside.

use serde::{Deserialize, Serialize};
use spindle_dds_transport::Fabric;

use crate::counters::Counters;
use crate::engine::Engine;
use crate::sink::Sink;
use crate::subgroup::{SubgroupFigures, SubgroupState};

/// All that an engine tells of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// What it has done so far.
    pub counters: Counters,
    /// What each of its writers has done so far, whatever epochs there were.
    pub writers: Vec<WriterFigures>,
    /// Its epochs, ascending by their subgroups.
    pub subgroups: Vec<SubgroupFigures>,
}

/// What a writer has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterFigures {
    /// Its number within its participant.
    pub writer: u32,
    /// Messages published.
    pub messages: u64,
    /// Bytes of their payload.
    pub bytes: u64,
}

impl<F: Fabric, S: Sink<F>> Engine<F, S> {
    /// How it stands between two steps. Waits for a step that is under way, and holds up
    /// the next one for some microseconds: to be called when figures are asked for.
    pub fn figures(&self) -> Figures {
        let state = self.state();
        let mut subgroups: Vec<SubgroupFigures> =
            state.groups.iter().map(SubgroupState::figures).collect();
        subgroups.sort_unstable_by_key(|subgroup| subgroup.subgroup);
        let writer = |(writer, messages, bytes)| WriterFigures {
            writer,
            messages,
            bytes,
        };
        Figures {
            counters: self.participant().common.counters.snapshot(),
            writers: state.seqs.published().map(writer).collect(),
            subgroups,
        }
    }
}
