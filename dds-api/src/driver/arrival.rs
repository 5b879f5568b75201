//! What comes to a reader, in order.

use std::collections::VecDeque;
use std::sync::Arc;

use spindle_dds_core::{Delivery, Held, Kind};
use spindle_dds_idl_runtime::{Encapsulation, KeyHash};
use spindle_dds_transport::{Fabric, Rank};

use super::link::{Farewell, Link, Roster};
use super::rekey::Rekey;
use crate::cache::Origin;
use crate::status::StatusMask;

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
pub(crate) struct Batch<F: Fabric> {
    arrivals: VecDeque<Arrival<F>>,
    /// Messages among those that came since it was asked, and the bytes of their payload.
    came: [u64; 2],
    /// The writer of the last message: its place and number, and its name in the link. The
    /// next one is often of the same.
    pub(super) writer: Option<(Rank, u32, u32)>,
    /// Statuses that what went straight into the cache has changed.
    pub(super) changed: StatusMask,
    /// Something has come in this batch, of which the reader is to be told at its end.
    pub(crate) is_touched: bool,
}

/// Most arrivals of a batch: a longer one goes on in parts.
pub(super) const BATCH_MAX: usize = 64;

impl<F: Fabric> Batch<F> {
    /// With room for all that it takes.
    pub(crate) fn new() -> Self {
        Self {
            arrivals: VecDeque::with_capacity(BATCH_MAX),
            came: [0; 2],
            writer: None,
            changed: StatusMask::NONE,
            is_touched: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// Whether it has to go on before another one is added.
    pub(super) fn is_full(&self) -> bool {
        self.arrivals.len() == BATCH_MAX
    }

    #[inline]
    pub(super) fn push(&mut self, arrival: Arrival<F>) {
        self.arrivals.push_back(arrival);
    }

    /// Whether something has come, and nobody has been told that yet.
    #[inline]
    pub(crate) fn is_touched_first(&mut self) -> bool {
        !std::mem::replace(&mut self.is_touched, true)
    }

    /// Counts a message, whose payload has so many bytes.
    #[inline]
    pub(super) fn count(&mut self, len: u32) {
        self.count_all([1, len.into()]);
    }

    /// Counts messages, and the bytes of their payload.
    #[inline]
    pub(super) fn count_all(&mut self, came: [u64; 2]) {
        for (sum, more) in self.came.iter_mut().zip(came) {
            *sum += more;
        }
    }

    /// What was counted since the last time.
    pub(super) fn take_counts(&mut self) -> [u64; 2] {
        std::mem::take(&mut self.came)
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Arrival<F>> {
        self.arrivals.pop_front()
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

impl<F: Fabric> Message<F> {
    /// A message that came by this link, held; its writer by its place in the row of the
    /// link. `None` of a writer that is none of those, or gone.
    pub(super) fn of(
        delivery: &Delivery<'_, F>,
        link: &Link<F>,
        batch: &mut Batch<F>,
    ) -> Option<Self> {
        let header = delivery.header;
        let writer = link.comes(delivery, batch)?;
        Some(Self {
            kind: header.kind,
            key: KeyHash(header.key_hash),
            origin: Origin {
                writer,
                ..Origin::of(delivery)
            },
            held: delivery.hold(),
        })
    }

    /// Its key hash is to be that of the reader's type. A message that cannot be read
    /// keeps the one it has: it is lost where somebody looks at it.
    pub(super) fn rekey(&mut self, rekey: Rekey) {
        let bytes = self.held.bytes();
        if let Ok(key) = rekey(self.kind, bytes, self.origin.encapsulation) {
            self.key = key;
        }
    }
}

impl Origin {
    /// What is known of a message, but for its writer.
    #[inline(always)]
    pub(super) fn of<F: Fabric>(delivery: &Delivery<'_, F>) -> Self {
        let header = delivery.header;
        Self {
            writer: u32::MAX,
            writer_sequence: header.writer_seq,
            position: delivery.position,
            timestamp: header.timestamp,
            encapsulation: Encapsulation(header.encapsulation),
        }
    }
}
