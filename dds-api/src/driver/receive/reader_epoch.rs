//! What lies between the engine and a reader in one epoch: the writers that match,
//! and the queue of what comes from them.
//!
//! ```text
//!   stepping thread   pushes here --------------------------> sets `next`, pushes there
//!   reader's side     pops here until it is empty and there is a next one, goes there
//! ```
//!
//! So what is told of a match has its place in the order of samples, and neither
//! side waits for the other. A link alone keeps nothing of its epoch: what lies in its
//! queue does.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crossbeam_queue::ArrayQueue;
use spindle_dds_core::membership::MemberId;
use spindle_dds_core::{Delivery, DeliveryClass, SubgroupHandle};
use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_qos::PolicyId;
use spindle_dds_transport::{Fabric, Rank};

use crate::cache::Origin;
use crate::driver::receive::arrival::{Arrival, ArrivalBatch, DeliveryPoint, Departure, Message};
use crate::handle::InstanceHandle;

/// A reader's side of one epoch.
pub(crate) struct ReaderEpoch<F: Fabric> {
    pub(crate) arrivals: ArrayQueue<Arrival<F>>,
    pub(crate) matched: Arc<MatchedWriters<F>>,
    next: OnceLock<Arc<Self>>,
}

/// Who is matched in an epoch.
pub(crate) struct MatchedWriters<F: Fabric> {
    /// Subgroups that the reader has had before: 0 while no view has it.
    pub(crate) number: u64,
    epoch: Option<u64>,
    subgroup: Weak<SubgroupHandle<F>>,
    /// By place and number.
    writers: Box<[EpochWriter]>,
    /// Writers that have gone before, and that the others have not taken out yet.
    gone: Vec<InstanceHandle>,
    /// What is new of writers that offer less than the reader asks for.
    pub(crate) refusals: Vec<Vec<PolicyId>>,
    /// All of those.
    refused: Vec<InstanceHandle>,
    /// Messages that one ring holds at most.
    pub(crate) ring_max: usize,
    /// Whether the key hashes of any writer are to be made anew.
    pub(crate) rekeys: bool,
}

/// A writer that a reader accepts samples from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MatchedWriter {
    /// Place of its member in the epoch.
    pub(crate) place: Rank,
    /// Its own number in its participant.
    pub(crate) number: u32,
    /// Its member.
    pub(crate) member: MemberId,
    pub(crate) ring: DeliveryClass,
    pub(crate) handle: InstanceHandle,
    /// Whether its instances are disposed of when it leaves with its member.
    pub(crate) autodispose: bool,
    /// Whether its key hashes are made in another way than those of the reader's type.
    pub(crate) is_rekeyed: bool,
}

pub(crate) struct EpochWriter {
    writer: MatchedWriter,
    /// Source timestamp of its last message.
    timestamp: AtomicI64,
    /// Nothing of it is taken any more. The thread that steps the engine alone.
    gone: AtomicBool,
}

impl<F: Fabric> fmt::Debug for ReaderEpoch<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderEpoch")
            .field("epoch", &self.matched.epoch)
            .finish_non_exhaustive()
    }
}

impl<F: Fabric> ReaderEpoch<F> {
    /// Before the first view.
    pub(crate) fn first() -> Self {
        let matched = MatchedWriters {
            number: 0,
            epoch: None,
            subgroup: Weak::new(),
            writers: Box::default(),
            gone: Vec::new(),
            refusals: Vec::new(),
            refused: Vec::new(),
            ring_max: 0,
            rekeys: false,
        };
        Self {
            arrivals: ArrayQueue::new(1),
            matched: Arc::new(matched),
            next: OnceLock::new(),
        }
    }

    /// The one after this, in a new epoch. `sizes` are messages that the rings of these
    /// writers hold, each ring once. A writer that is gone already, and that the others
    /// have not taken out yet, stays gone.
    pub(crate) fn follow(
        &self,
        subgroup: &Arc<SubgroupHandle<F>>,
        mut writers: Vec<MatchedWriter>,
        refused: Vec<(InstanceHandle, Vec<PolicyId>)>,
        sizes: &[usize],
    ) -> Self {
        let old = &self.matched;
        let is_gone = |writer: &MatchedWriter| {
            let before = old.known(writer.handle);
            old.gone.contains(&writer.handle) || before.is_some_and(EpochWriter::is_gone)
        };
        let gone = writers.extract_if(.., |writer| is_gone(writer));
        let gone = gone.map(|writer| writer.handle).collect();
        writers.sort_unstable_by_key(|writer| (writer.place, writer.number));
        let linked = writers.into_iter().map(|writer| {
            let before = old.known(writer.handle);
            let timestamp = before.map_or(0, |it| it.timestamp.load(Ordering::Relaxed));
            EpochWriter {
                writer,
                timestamp: AtomicI64::new(timestamp),
                gone: AtomicBool::new(false),
            }
        });
        let writers: Box<[_]> = linked.collect();
        let is_new = |handle: &InstanceHandle| !old.refused.contains(handle);
        let new = refused.iter().filter(|(handle, _)| is_new(handle));
        // Each writer can go once.
        let len_max = sizes.iter().sum::<usize>() + writers.len() + 1;
        let matched = MatchedWriters {
            number: old.number + 1,
            epoch: Some(subgroup.epoch()),
            subgroup: Arc::downgrade(subgroup),
            refusals: new.map(|(_, policies)| policies.clone()).collect(),
            refused: refused.into_iter().map(|(handle, _)| handle).collect(),
            gone,
            ring_max: sizes.iter().copied().max().unwrap_or(0),
            rekeys: writers.iter().any(|it| it.writer.is_rekeyed),
            writers,
        };
        Self {
            arrivals: ArrayQueue::new(len_max),
            matched: Arc::new(matched),
            next: OnceLock::new(),
        }
    }

    /// Nothing more is pushed here: it goes on there.
    pub(crate) fn set_next(&self, next: Arc<Self>) {
        let _ = self.next.set(next);
    }

    pub(crate) fn next(&self) -> Option<&Arc<Self>> {
        self.next.get()
    }

    /// Its epoch.
    pub(crate) fn epoch(&self) -> Option<u64> {
        self.matched.epoch
    }

    /// Its epoch, if that has not ended or something of it is still held.
    pub(crate) fn subgroup(&self) -> Option<Arc<SubgroupHandle<F>>> {
        self.matched.subgroup()
    }

    /// Holds a delivered message, and counts it in the batch. `None` if its writer is not
    /// matched, or has departed.
    pub(crate) fn receive(
        &self,
        delivery: &Delivery<'_, F>,
        batch: &mut ArrivalBatch<F>,
    ) -> Option<Message<F>> {
        let header = delivery.header;
        let writer = self.comes(delivery, batch)?;
        Some(Message {
            kind: header.kind,
            key: KeyHash(header.key_hash),
            origin: Origin {
                writer,
                ..Origin::of(delivery)
            },
            held: delivery.hold(),
        })
    }

    /// A message comes, and is counted. Which writer it is of, unless that is gone.
    #[inline]
    fn comes(&self, delivery: &Delivery<'_, F>, batch: &mut ArrivalBatch<F>) -> Option<u32> {
        let header = delivery.header;
        let whose = (delivery.sender, header.writer);
        let writer = self.came(whose, header.timestamp, &mut batch.writer)?;
        batch.count(header.len);
        Some(writer)
    }

    /// Which writer that is, unless it is gone; its message of this time came.
    /// `last` is what this found last, if it did.
    #[inline]
    fn came(
        &self,
        (place, number): (Rank, u32),
        timestamp: i64,
        last: &mut Option<(Rank, u32, u32)>,
    ) -> Option<u32> {
        let at = match *last {
            Some((of, is, at)) if (of, is) == (place, number) => at,
            _ => {
                let at = self.find(place, number)? as u32;
                *last = Some((place, number, at));
                at
            }
        };
        let writer = &self.matched.writers[at as usize];
        if writer.is_gone() {
            return None;
        }
        writer.came_at(timestamp);
        Some(at)
    }

    /// The writer of this name, unless it is gone: which it is, for messages that follow each
    /// other.
    pub(crate) fn writer(&self, place: Rank, number: u32) -> Option<(u32, &EpochWriter)> {
        let at = self.find(place, number)?;
        Some((at as u32, &self.matched.writers[at]))
    }

    /// Whether the key hashes of this writer are to be made anew.
    pub(crate) fn rekeys(&self, writer: u32) -> bool {
        let writers = &self.matched.writers;
        let found = writers.get(writer as usize);
        found.is_some_and(|it| it.writer.is_rekeyed)
    }

    fn find(&self, place: Rank, number: u32) -> Option<usize> {
        let key = |it: &EpochWriter| (it.writer.place, it.writer.number);
        let writers = &self.matched.writers;
        let found = writers.binary_search_by_key(&(place, number), key);
        found.ok().filter(|at| !writers[*at].is_gone())
    }

    /// A writer says that it is gone: what arrives by that, if it is news.
    pub(crate) fn says_gone(
        &self,
        place: Rank,
        number: u32,
        at: DeliveryPoint,
        disposes: bool,
    ) -> Option<Arrival<F>> {
        let writer = self.find(place, number)?;
        Some(self.goes(writer, at, Departure::Left { disposes }))
    }

    /// Those that `stays` does not know any more go where the epoch ends, in the way that
    /// `departure` says. Whether there are any.
    pub(crate) fn end(
        &self,
        end: Option<u64>,
        stays: impl Fn(InstanceHandle) -> bool,
        departure: impl Fn(&MatchedWriter) -> Departure,
    ) -> bool {
        let mut any = false;
        let writers = self.matched.writers.iter().enumerate();
        for (at, linked) in writers.filter(|(_, it)| !it.is_gone()) {
            if stays(linked.writer.handle) {
                continue;
            }
            let stamp = DeliveryPoint {
                position: end.unwrap_or(0),
                timestamp: linked.timestamp.load(Ordering::Relaxed),
            };
            let gone = self.goes(at, stamp, departure(&linked.writer));
            any |= self.arrivals.push(gone).is_ok();
        }
        any
    }

    fn goes(&self, writer: usize, at: DeliveryPoint, departure: Departure) -> Arrival<F> {
        let linked = &self.matched.writers[writer];
        linked.gone.store(true, Ordering::Relaxed);
        Arrival::Gone {
            writer: writer as u32,
            at,
            departure,
        }
    }
}

impl<F: Fabric> MatchedWriters<F> {
    /// The writers. Arrivals name them by their places in this row.
    pub(crate) fn writers(&self) -> impl Iterator<Item = &MatchedWriter> {
        self.writers.iter().map(|it| &it.writer)
    }

    fn known(&self, handle: InstanceHandle) -> Option<&EpochWriter> {
        self.writers.iter().find(|it| it.writer.handle == handle)
    }

    pub(crate) fn subgroup(&self) -> Option<Arc<SubgroupHandle<F>>> {
        self.subgroup.upgrade()
    }

    /// Whether this is its epoch.
    pub(crate) fn is_of(&self, subgroup: &Arc<SubgroupHandle<F>>) -> bool {
        std::ptr::eq(self.subgroup.as_ptr(), Arc::as_ptr(subgroup))
    }
}

impl EpochWriter {
    /// A message of this time came.
    #[inline]
    pub(crate) fn came_at(&self, timestamp: i64) {
        self.timestamp.store(timestamp, Ordering::Relaxed);
    }

    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }
}
