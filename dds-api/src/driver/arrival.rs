//! What comes to a reader, in order.

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
