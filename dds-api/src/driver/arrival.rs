//! What comes to a reader, in order.

use std::collections::VecDeque;
use std::sync::Arc;

use spindle_dds_core::{Held, Kind};
use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_transport::Fabric;

use super::link::{Farewell, Roster};
use crate::cache::Origin;

/// What comes from the engine, in order.
#[derive(Debug)]
pub(super) enum Arrival<F: Fabric> {
    Message(Message<F>),
    /// A writer is gone, at this place of the stream.
    Gone {
        writer: u32,
        at: Stamp,
        farewell: Farewell,
    },
}

impl<F: Fabric> Arrival<F> {
    /// Of whom it is: by the place in the row of the link that it came by, then by the
    /// index that the cache has for it.
    pub(super) fn writer(&mut self) -> &mut u32 {
        match self {
            Self::Message(message) => &mut message.origin.writer,
            Self::Gone { writer, .. } => writer,
        }
    }
}

/// Arrivals of a batch, on the engine's thread, before they go on to a reader.
pub(crate) struct Batch<F: Fabric>(VecDeque<Arrival<F>>);

/// Most arrivals of a batch: a longer one goes on in parts.
const BATCH_MAX: usize = 64;

impl<F: Fabric> Batch<F> {
    /// With room for all that it takes.
    pub(crate) fn new() -> Self {
        Self(VecDeque::with_capacity(BATCH_MAX))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it has to go on before another one is added.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() == BATCH_MAX
    }

    pub(super) fn push(&mut self, arrival: Arrival<F>) {
        self.0.push_back(arrival);
    }

    pub(super) fn pop(&mut self) -> Option<Arrival<F>> {
        self.0.pop_front()
    }
}

/// What is next for a reader.
pub(super) enum Step<F: Fabric> {
    /// To go on with the writers of the next lane.
    Enter(Arc<Roster<F>>),
    Arrival(Arrival<F>),
}

/// Where and when something stands in a stream, the same at every reader.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stamp {
    pub(super) position: u64,
    pub(super) timestamp: i64,
}

#[derive(Debug)]
pub(super) struct Message<F: Fabric> {
    pub(super) kind: Kind,
    pub(super) key: KeyHash,
    pub(super) origin: Origin,
    pub(super) held: Held<F>,
}
