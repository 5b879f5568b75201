//! What comes to a reader, in order.

use std::collections::VecDeque;

use spindle_dds_core::{Delivery, Held, MessageKind};
use spindle_dds_idl_runtime::{Encapsulation, KeyHash};
use spindle_dds_transport::{Fabric, Rank};

use crate::cache::Origin;
use crate::driver::receive::rekey::Rekey;
use crate::status::StatusMask;

/// What comes from the engine, in order.
#[derive(Debug)]
pub(crate) enum Arrival<F: Fabric> {
    Message(Message<F>),
    /// A writer is gone, at this place of the stream.
    Gone {
        writer: u32,
        at: DeliveryPoint,
        departure: Departure,
    },
}

impl<F: Fabric> Arrival<F> {
    /// Of whom it is: by the place in the row of the link that it came by, then by the
    /// index that the cache has for it.
    pub(crate) fn writer(&mut self) -> &mut u32 {
        match self {
            Self::Message(message) => &mut message.origin.writer,
            Self::Gone { writer, .. } => writer,
        }
    }
}

/// Arrivals of a batch, by the thread that steps the engine, before they go on to a reader.
pub(crate) struct ArrivalBatch<F: Fabric> {
    arrivals: VecDeque<Arrival<F>>,
    /// Messages among those that came since it was asked, and the bytes of their payload.
    came: [u64; 2],
    /// The writer of the last message: its place and number, and its name in the link. The
    /// next one is often of the same.
    pub(crate) writer: Option<(Rank, u32, u32)>,
    /// Statuses that what went straight into the cache has changed.
    pub(crate) changed: StatusMask,
    /// Something has come in this batch, of which the reader is to be told at its end.
    pub(crate) is_touched: bool,
}

/// Most arrivals of a batch: a longer one goes on in parts.
pub(crate) const BATCH_MAX: usize = 64;

impl<F: Fabric> ArrivalBatch<F> {
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

    pub(crate) fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// Whether it has to go on before another one is added.
    pub(crate) fn is_full(&self) -> bool {
        self.arrivals.len() == BATCH_MAX
    }

    #[inline]
    pub(crate) fn push(&mut self, arrival: Arrival<F>) {
        self.arrivals.push_back(arrival);
    }

    /// Whether something has come, and nobody has been told that yet.
    #[inline]
    pub(crate) fn is_touched_first(&mut self) -> bool {
        !std::mem::replace(&mut self.is_touched, true)
    }

    /// Counts a message, whose payload has so many bytes.
    #[inline]
    pub(crate) fn count(&mut self, len: u32) {
        self.count_all([1, len.into()]);
    }

    /// Counts messages, and the bytes of their payload.
    #[inline]
    pub(crate) fn count_all(&mut self, came: [u64; 2]) {
        for (sum, more) in self.came.iter_mut().zip(came) {
            *sum += more;
        }
    }

    /// What was counted since the last time.
    pub(crate) fn take_counts(&mut self) -> [u64; 2] {
        std::mem::take(&mut self.came)
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Arrival<F>> {
        self.arrivals.pop_front()
    }
}

/// How a writer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departure {
    /// It was deleted, or left with its participant.
    Left {
        /// Whether its instances are disposed of by that.
        disposes: bool,
    },
    /// Its participant failed, and has no say any more.
    Failed,
}

/// Where and when something stands in a stream, the same at every reader.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DeliveryPoint {
    pub(crate) position: u64,
    pub(crate) timestamp: i64,
}

#[derive(Debug)]
pub(crate) struct Message<F: Fabric> {
    pub(crate) kind: MessageKind,
    pub(crate) key: KeyHash,
    pub(crate) origin: Origin,
    pub(crate) held: Held<F>,
}

impl<F: Fabric> Message<F> {
    /// Its key hash is to be that of the reader's type. A message that cannot be read
    /// keeps the one it has: it is lost where somebody looks at it.
    pub(crate) fn rekey(&mut self, rekey: Rekey) {
        let bytes = self.held.bytes();
        if let Ok(key) = rekey(self.kind, bytes, self.origin.encapsulation) {
            self.key = key;
        }
    }
}

impl Origin {
    /// What is known of a message, but for its writer.
    #[inline(always)]
    pub(crate) fn of<F: Fabric>(delivery: &Delivery<'_, F>) -> Self {
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
