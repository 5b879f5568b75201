//! A reader's part in one subgroup epoch: the writers that match, and the queue of what comes
//! from them.
//!
//! ```text
//!   thread that steps   pushes here --------------------------> sets `next`, pushes there
//!   reader's side       pops here until it is empty and there is a `next`, goes there
//! ```
//!
//! So a match has its place in the order of samples, and neither side waits for the other. A
//! reader epoch does not keep its subgroup handle alive: the samples in its queue do.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use spindle_dds_core::membership::MemberId;
use spindle_dds_core::{Delivery, DeliveryClass, SubgroupHandle};
use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_qos::PolicyId;
use spindle_dds_transport::{Fabric, Rank};

use super::arrival::{Arrival, ArrivalBatch, DeliveryPoint, Departure};
use super::arrival_queue::ArrivalQueue;
use super::payload::Payload;
use crate::cache::{Arrived, Origin};
use crate::handle::InstanceHandle;
use crate::history::TransferId;

pub(crate) struct ReaderEpoch<F: Fabric> {
    /// Has room for all messages that can be in flight, and for one departure of each writer.
    pub(crate) arrivals: ArrivalQueue<Arrival<F>>,
    pub(crate) matched: Arc<MatchedWriters<F>>,
    next: OnceLock<Arc<Self>>,
}

/// The writers that match a reader in one subgroup epoch.
pub(crate) struct MatchedWriters<F: Fabric> {
    /// How many epochs the reader has had before: 0 while no view has the reader.
    pub(crate) number: u64,
    /// The view that began the epoch. `None` before the first.
    epoch: Option<u64>,
    handle: Weak<SubgroupHandle<F>>,
    /// Sorted by rank and number. Arrivals name a writer by its index here.
    writers: Box<[EpochWriter]>,
    /// Writers that have departed, while the announcements of the view still have them.
    departed: Vec<InstanceHandle>,
    /// The violated policies of writers that became incompatible with this epoch.
    pub(crate) refusals: Vec<Vec<PolicyId>>,
    /// All incompatible writers.
    refused: Vec<InstanceHandle>,
    /// Whether the key hashes of any writer are replaced.
    pub(crate) rekeys: bool,
    /// The transfer of history that comes before what arrives from this epoch on.
    pub(crate) awaits: Option<TransferId>,
}

/// A writer that a reader accepts samples from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MatchedWriter {
    /// Rank of its member in the subgroup.
    pub(crate) rank: Rank,
    /// Its number in its participant.
    pub(crate) number: u32,
    pub(crate) member: MemberId,
    pub(crate) class: DeliveryClass,
    pub(crate) handle: InstanceHandle,
    /// Whether its instances are disposed when it leaves with its member.
    pub(crate) autodispose: bool,
    /// Whether the key hashes of its messages are replaced: its type hashes keys in another way than
    /// the reader's, or key hashes are digests.
    pub(crate) is_rekeyed: bool,
}

pub(crate) struct EpochWriter {
    writer: MatchedWriter,
    /// Source timestamp of its last message.
    timestamp: AtomicI64,
    /// None of its messages is accepted any more. Written by the thread that steps.
    departed: AtomicBool,
}

impl<F: Fabric> fmt::Debug for ReaderEpoch<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderEpoch")
            .field("epoch", &self.matched.epoch)
            .finish_non_exhaustive()
    }
}

impl<F: Fabric> ReaderEpoch<F> {
    /// Before the first view that has the reader: no writers.
    pub(crate) fn first() -> Self {
        let matched = MatchedWriters {
            number: 0,
            epoch: None,
            handle: Weak::new(),
            writers: Box::default(),
            departed: Vec::new(),
            refusals: Vec::new(),
            refused: Vec::new(),
            rekeys: false,
            awaits: None,
        };
        Self {
            arrivals: ArrivalQueue::new(1),
            matched: Arc::new(matched),
            next: OnceLock::new(),
        }
    }

    /// The epoch after this one, with these matched and refused writers. `sizes` are the messages
    /// that the rings of the writers hold, each ring once. A writer that has departed stays so
    /// while the announcements still have it. A reader `awaits` a transfer of history before it shows
    /// what arrives from this epoch on.
    pub(crate) fn follow(
        &self,
        handle: &Arc<SubgroupHandle<F>>,
        writers: Vec<MatchedWriter>,
        refused: Vec<(InstanceHandle, Vec<PolicyId>)>,
        sizes: &[usize],
        awaits: Option<TransferId>,
    ) -> Self {
        let (epoch, handle) = (handle.epoch(), Arc::downgrade(handle));
        self.follow_in((epoch, handle), writers, refused, sizes, awaits)
    }

    /// As [`follow`](Self::follow), in the epoch that began with this view.
    pub(super) fn follow_in(
        &self,
        (epoch, handle): (u64, Weak<SubgroupHandle<F>>),
        mut writers: Vec<MatchedWriter>,
        refused: Vec<(InstanceHandle, Vec<PolicyId>)>,
        sizes: &[usize],
        awaits: Option<TransferId>,
    ) -> Self {
        let old = &self.matched;
        let has_departed = |writer: &MatchedWriter| {
            let before = old.find_handle(writer.handle);
            old.departed.contains(&writer.handle) || before.is_some_and(EpochWriter::has_departed)
        };
        let departed = writers.extract_if(.., |writer| has_departed(writer));
        let departed = departed.map(|writer| writer.handle).collect();
        writers.sort_unstable_by_key(|writer| (writer.rank, writer.number));
        let writers = writers.into_iter().map(|writer| {
            let before = old.find_handle(writer.handle);
            let timestamp = before.map_or(0, |it| it.timestamp.load(Ordering::Relaxed));
            EpochWriter {
                writer,
                timestamp: AtomicI64::new(timestamp),
                departed: AtomicBool::new(false),
            }
        });
        let writers: Box<[_]> = writers.collect();
        let is_new = |handle: &InstanceHandle| !old.refused.contains(handle);
        let new = refused.iter().filter(|(handle, _)| is_new(handle));
        // Each writer can depart once.
        let len_max = sizes.iter().sum::<usize>() + writers.len() + 1;
        let matched = MatchedWriters {
            number: old.number + 1,
            epoch: Some(epoch),
            handle,
            refusals: new.map(|(_, policies)| policies.clone()).collect(),
            refused: refused.into_iter().map(|(handle, _)| handle).collect(),
            departed,
            rekeys: writers.iter().any(|it| it.writer.is_rekeyed),
            awaits,
            writers,
        };
        Self {
            arrivals: ArrivalQueue::new(len_max),
            matched: Arc::new(matched),
            next: OnceLock::new(),
        }
    }

    /// What comes after this epoch when the group has failed: no messages, and of the writers those
    /// that stay.
    pub(crate) fn follow_without_group(&self, stays: impl Fn(InstanceHandle) -> bool) -> Self {
        let old = &self.matched;
        let own = |handles: &[InstanceHandle]| {
            let own = handles.iter().copied();
            own.filter(|handle| stays(*handle)).collect()
        };
        let is_left = |it: &&EpochWriter| !it.has_departed() && stays(it.writer.handle);
        let writers = old.writers.iter().filter(is_left).map(|it| EpochWriter {
            writer: it.writer,
            timestamp: AtomicI64::new(it.timestamp.load(Ordering::Relaxed)),
            departed: AtomicBool::new(false),
        });
        let matched = MatchedWriters {
            number: old.number + 1,
            epoch: None,
            handle: Weak::new(),
            writers: writers.collect(),
            departed: own(&old.departed),
            refusals: Vec::new(),
            refused: own(&old.refused),
            rekeys: old.rekeys,
            awaits: None,
        };
        Self {
            arrivals: ArrivalQueue::new(1),
            matched: Arc::new(matched),
            next: OnceLock::new(),
        }
    }

    /// Nothing is pushed here any more: arrivals go to `next`.
    pub(crate) fn set_next(&self, next: Arc<Self>) {
        let _ = self.next.set(next);
    }

    pub(crate) fn next(&self) -> Option<&Arc<Self>> {
        self.next.get()
    }

    /// The view that began the epoch.
    pub(crate) fn epoch(&self) -> Option<u64> {
        self.matched.epoch
    }

    /// Holds a delivered message and counts it in the batch. `None` if its writer is not matched,
    /// or has departed.
    #[inline]
    pub(crate) fn receive(
        &self,
        delivery: &Delivery<'_, F>,
        batch: &mut ArrivalBatch<F>,
    ) -> Option<Arrived<Payload<F>>> {
        let header = delivery.header;
        let (rank, number) = (delivery.sender, header.writer);
        let index = match batch.last_writer {
            Some((of, known, index)) if (of, known) == (rank, number) => index,
            _ => {
                let index = self.find(rank, number)? as u32;
                batch.last_writer = Some((rank, number, index));
                index
            }
        };
        let writer = &self.matched.writers[index as usize];
        if writer.has_departed() {
            return None;
        }
        writer.note_timestamp(header.timestamp);
        batch.count(1, header.len.into());
        Some(Arrived {
            kind: header.kind,
            key: KeyHash(header.key_hash),
            origin: Origin::of(delivery, index),
            payload: Payload::Ring(delivery.hold()),
        })
    }

    /// The matched writer of this rank and number, and its index. `None` if it has departed.
    pub(crate) fn writer(&self, rank: Rank, number: u32) -> Option<(u32, &EpochWriter)> {
        let index = self.find(rank, number)?;
        Some((index as u32, &self.matched.writers[index]))
    }

    /// Whether the key hashes of the writer of this index are replaced.
    pub(crate) fn rekeys(&self, index: u32) -> bool {
        let found = self.matched.writers.get(index as usize);
        found.is_some_and(|it| it.writer.is_rekeyed)
    }

    fn find(&self, rank: Rank, number: u32) -> Option<usize> {
        let key = |it: &EpochWriter| (it.writer.rank, it.writer.number);
        let writers = &self.matched.writers;
        let found = writers.binary_search_by_key(&(rank, number), key);
        found.ok().filter(|at| !writers[*at].has_departed())
    }

    /// A control message says that a writer was deleted. `None` if that is known.
    pub(crate) fn depart(
        &self,
        rank: Rank,
        number: u32,
        at: DeliveryPoint,
        disposes: bool,
    ) -> Option<Arrival<F>> {
        let index = self.find(rank, number)?;
        Some(self.mark_departed(index, at, Departure::Left { disposes }))
    }

    /// Ends the epoch at `position`: writers that do not `stay` depart there, each in the way that
    /// `departure` says.
    pub(crate) fn end(
        &self,
        position: Option<u64>,
        stays: impl Fn(InstanceHandle) -> bool,
        departure: impl Fn(&MatchedWriter) -> Departure,
    ) {
        let writers = self.matched.writers.iter().enumerate();
        for (index, known) in writers.filter(|(_, it)| !it.has_departed()) {
            if stays(known.writer.handle) {
                continue;
            }
            let at = DeliveryPoint {
                position: position.unwrap_or(0),
                timestamp: known.timestamp.load(Ordering::Relaxed),
            };
            let departed = self.mark_departed(index, at, departure(&known.writer));
            // The queue has room for one departure of each writer.
            let pushed = self.arrivals.push(departed);
            debug_assert!(pushed.is_ok());
        }
    }

    fn mark_departed(&self, index: usize, at: DeliveryPoint, departure: Departure) -> Arrival<F> {
        let writer = &self.matched.writers[index];
        writer.departed.store(true, Ordering::Relaxed);
        Arrival::Departed {
            writer: index as u32,
            at,
            departure,
        }
    }
}

impl<F: Fabric> MatchedWriters<F> {
    /// The writers, in the order of their indexes.
    pub(crate) fn writers(&self) -> impl Iterator<Item = &MatchedWriter> {
        self.writers.iter().map(|it| &it.writer)
    }

    /// Whether the reader is in a view: not before the first, nor while its participant is out of its
    /// group.
    pub(crate) fn is_in_view(&self) -> bool {
        self.epoch.is_some()
    }

    /// Whether the participant has lost its group before.
    pub(crate) fn is_out_of_group(&self) -> bool {
        self.epoch.is_none() && self.number > 0
    }

    /// Bytes that it has allocated.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.writers.len() * size_of::<EpochWriter>()
    }

    /// Whether a writer matched when the epoch began, or has departed since.
    pub(crate) fn knows(&self, writer: InstanceHandle) -> bool {
        self.find_handle(writer).is_some() || self.departed.contains(&writer)
    }

    fn find_handle(&self, handle: InstanceHandle) -> Option<&EpochWriter> {
        self.writers.iter().find(|it| it.writer.handle == handle)
    }

    /// The subgroup handle of the epoch, unless the epoch has ended and none of its samples is
    /// held.
    pub(crate) fn handle(&self) -> Option<Arc<SubgroupHandle<F>>> {
        self.handle.upgrade()
    }

    /// Whether this is the subgroup handle of the epoch.
    pub(crate) fn is_of(&self, handle: &Arc<SubgroupHandle<F>>) -> bool {
        std::ptr::eq(self.handle.as_ptr(), Arc::as_ptr(handle))
    }
}

impl EpochWriter {
    /// A message with this source timestamp has come.
    #[inline]
    pub(crate) fn note_timestamp(&self, timestamp: i64) {
        self.timestamp.store(timestamp, Ordering::Relaxed);
    }

    fn has_departed(&self) -> bool {
        self.departed.load(Ordering::Relaxed)
    }
}
