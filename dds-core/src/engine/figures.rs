//! A snapshot of an engine, for tools.

use serde::{Deserialize, Serialize};
use spindle_dds_transport::Fabric;

use crate::counters::Counters;
use crate::engine::Engine;
use crate::engine::views::Views;
use crate::membership::DetectorFigures;
use crate::sink::Sink;
use crate::subgroup::{SubgroupFigures, SubgroupState};

/// A snapshot of an engine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Counts since the engine was made.
    pub counters: Counters,
    /// Totals of each writer, across epochs.
    pub writers: Vec<WriterFigures>,
    /// Its subgroups that have an epoch, by ascending id.
    pub subgroups: Vec<SubgroupFigures>,
    /// What it knows of the heartbeats of its view; `None` between two views.
    pub detector: Option<DetectorFigures>,
}

/// Totals of a writer.
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
    /// Takes a snapshot between two steps. Waits for a step in progress, and delays the next one
    /// by some microseconds: to be called on request only.
    pub fn figures(&self) -> Figures {
        let state = self.state();
        let subgroups = state.subgroups.iter().map(SubgroupState::figures);
        let mut subgroups: Vec<SubgroupFigures> = subgroups.collect();
        subgroups.sort_unstable_by_key(|it| it.subgroup);
        let writer = |(writer, messages, bytes)| WriterFigures {
            writer,
            messages,
            bytes,
        };
        Figures {
            counters: self.participant().shared.counters.snapshot(),
            writers: state.seqs.published().map(writer).collect(),
            subgroups,
            detector: state.views.as_ref().and_then(Views::detector_figures),
        }
    }
}
