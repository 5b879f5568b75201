//! What comes to a reader from the engine, in delivery order.

use std::collections::VecDeque;

use spindle_dds_core::Delivery;
use spindle_dds_idl_runtime::Encapsulation;
use spindle_dds_transport::{Fabric, Rank};

use super::payload::Payload;
use crate::cache::{Arrived, Origin};
use crate::status::StatusMask;

/// One entry of a reader's queue.
#[derive(Debug)]
pub(crate) enum Arrival<F: Fabric> {
    Message(Arrived<Payload<F>>),
    /// A writer departs, at this point of the delivery order.
    Departed {
        writer: u32,
        at: DeliveryPoint,
        departure: Departure,
    },
}

impl<F: Fabric> Arrival<F> {
    /// The index of its writer: among the writers of the epoch that it came by, and in the cache
    /// once the reader state has translated it.
    pub(crate) fn writer_mut(&mut self) -> &mut u32 {
        match self {
            Self::Message(message) => &mut message.origin.writer,
            Self::Departed { writer, .. } => writer,
        }
    }
}

/// The arrivals of one delivery batch, on the thread that steps, before they go to the reader.
pub(crate) struct ArrivalBatch<F: Fabric> {
    arrivals: VecDeque<Arrival<F>>,
    /// Messages received since the counts were taken, and the bytes of their payload.
    received: [u64; 2],
    /// The writer of the last message: rank, number, index in the epoch. The next message is
    /// often of the same writer.
    pub(crate) last_writer: Option<(Rank, u32, u32)>,
    /// Statuses changed by samples that went into the cache directly.
    pub(crate) changed: StatusMask,
    /// The reader has received something in this batch, and is told at the end of it.
    pub(crate) is_touched: bool,
}

/// Most arrivals of a batch: a longer delivery is handed on in several batches.
pub(crate) const BATCH_MAX: usize = 64;

impl<F: Fabric> ArrivalBatch<F> {
    /// Has no memory of its own before the first arrival: most samples go into the cache directly.
    pub(crate) fn new() -> Self {
        Self {
            arrivals: VecDeque::new(),
            received: [0; 2],
            last_writer: None,
            changed: StatusMask::NONE,
            is_touched: false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// Whether it must be handed on before another arrival is pushed.
    pub(crate) fn is_full(&self) -> bool {
        self.arrivals.len() == BATCH_MAX
    }

    #[inline]
    pub(crate) fn push(&mut self, arrival: Arrival<F>) {
        self.arrivals.push_back(arrival);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Arrival<F>> {
        self.arrivals.pop_front()
    }

    /// Gives back what was popped.
    pub(crate) fn put_back(&mut self, arrival: Arrival<F>) {
        self.arrivals.push_front(arrival);
    }

    /// Marks the batch as touched. True the first time.
    #[inline]
    pub(crate) fn touch(&mut self) -> bool {
        !std::mem::replace(&mut self.is_touched, true)
    }

    /// Counts messages, and the bytes of their payload.
    #[inline]
    pub(crate) fn count(&mut self, messages: u64, bytes: u64) {
        self.received[0] += messages;
        self.received[1] += bytes;
    }

    /// Messages and bytes counted since the last call.
    pub(crate) fn take_counts(&mut self) -> [u64; 2] {
        std::mem::take(&mut self.received)
    }
}

/// How a writer departs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departure {
    /// It was deleted, or left with its participant.
    Left {
        /// Whether that disposes its instances.
        disposes: bool,
    },
    /// Its participant failed. It never disposes.
    Failed,
}

/// A position of a subgroup's delivery order, and the source timestamp there: the same at every
/// reader.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DeliveryPoint {
    pub(crate) position: u64,
    /// Nanoseconds since the Unix epoch.
    pub(crate) timestamp: i64,
}

impl Origin {
    /// The origin of a delivered message; its writer is given by its index.
    #[inline(always)]
    pub(crate) fn of<F: Fabric>(delivery: &Delivery<'_, F>, writer: u32) -> Self {
        let header = delivery.header;
        Self {
            writer,
            writer_sequence: header.writer_seq,
            position: delivery.position,
            timestamp: header.timestamp,
            encapsulation: Encapsulation(header.encapsulation),
        }
    }
}
