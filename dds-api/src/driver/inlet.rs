//! Where samples come in: between the engine's thread and a reader.
//!
//! The engine pushes onto a queue that holds all that can be in flight, then
//! *tries* the reader's lock to move arrivals into the cache. If somebody has
//! it, that one moves them after letting go of it: it looks at the queue once
//! more (both sides fence between their two steps), so nothing is left behind.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use crossbeam_queue::ArrayQueue;
use spindle_dds_core::{Delivery, Kind, Lane, Ring};
use spindle_dds_idl_runtime::{Encapsulation, KeyHash};
use spindle_dds_transport::{Fabric, Rank};

use super::fate::Fate;
use super::payload::{Item, Payload};
use super::port::{DISPOSES, WRITER_DELETED};
use super::shelf::{Arrival, Message, ReaderStatuses, Shelf, Stamp};
use super::streams::Streams;
use crate::cache::{Cache, Origin, Query};
use crate::condition::StateMasks;
use crate::error::Error;
use crate::handle::InstanceHandle;
use crate::properties::{ReaderConfig, Storage};
use crate::status::{Beacon, StatusMask};
use crate::subscription::SampleInfo;

/// The data side of a reader.
pub(crate) struct Inlet<F: Fabric> {
    config: ReaderConfig,
    reader: Arc<Beacon>,
    subscriber: Arc<Beacon>,
    streams: Arc<Streams>,
    link: OnceLock<Link<F>>,
    shelf: Mutex<Shelf<F>>,
    /// The cache is full; arrivals stay in the queue.
    blocked: AtomicBool,
    /// The reader is deleted.
    closed: AtomicBool,
    /// Something arrived in this batch. The engine's thread alone.
    touched: AtomicBool,
    /// How often samples were asked for, or given back.
    selects: AtomicU64,
    /// Samples are to stay in the ring, but nobody takes them: while this is
    /// so they are copied out like those of any reader.
    neglected: AtomicBool,
}

/// Parts of 256 of a ring that may be held before samples are copied out.
const SPAN_MAX_COPY: u32 = 128;
/// The same, for readers that want samples to stay in the ring.
const SPAN_MAX_RING: u32 = 192;

/// What a reader has once the group is formed.
pub(crate) struct Link<F: Fabric> {
    pub(super) arrivals: ArrayQueue<Arrival<F>>,
    pub(super) lane: Arc<Lane<F>>,
    /// By place and number.
    pub(super) writers: Vec<MatchedWriter>,
    /// Which of them are gone: nothing of them is taken any more. The engine's
    /// thread alone.
    gone: Box<[AtomicBool]>,
    fate: Arc<Fate>,
}

/// A writer that a reader accepts samples from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MatchedWriter {
    /// Place of its member in the lane.
    pub(crate) place: Rank,
    pub(crate) number: u32,
    /// Its member.
    pub(crate) rank: Rank,
    pub(crate) ring: Ring,
    pub(crate) handle: InstanceHandle,
    /// Whether its instances are disposed of when it leaves with its member.
    pub(crate) autodispose: bool,
}

/// Whether samples are left in the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Take,
}

impl<F: Fabric> Link<F> {
    /// `in_flight` messages can be in the rings of the writers together,
    /// `ring_max` in the largest of them.
    pub(crate) fn new(
        lane: Arc<Lane<F>>,
        fate: Arc<Fate>,
        mut writers: Vec<MatchedWriter>,
        in_flight: usize,
    ) -> Self {
        writers.sort_unstable();
        Self {
            // Each writer can go once.
            arrivals: ArrayQueue::new(in_flight + writers.len() + 1),
            lane,
            gone: writers.iter().map(|_| AtomicBool::new(false)).collect(),
            writers,
            fate,
        }
    }

    fn writer(&self, place: Rank, number: u32) -> Option<u32> {
        let key = (place, number);
        let found = self
            .writers
            .binary_search_by_key(&key, |writer| (writer.place, writer.number));
        found.ok().map(|at| at as u32)
    }

    fn is_gone(&self, writer: u32) -> bool {
        self.gone[writer as usize].load(Ordering::Relaxed)
    }

    /// Says that a writer is gone, once.
    fn say_gone(&self, writer: u32, at: Option<Stamp>, disposes: bool) -> bool {
        let gone = Arrival::Gone {
            writer,
            at,
            disposes,
        };
        let first = !self.gone[writer as usize].swap(true, Ordering::Relaxed);
        first && self.arrivals.push(gone).is_ok()
    }
}

impl<F: Fabric> fmt::Debug for Inlet<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inlet")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl<F: Fabric> Inlet<F> {
    pub(crate) fn new(
        cache: Cache<Payload<F>>,
        config: ReaderConfig,
        [reader, subscriber]: [Arc<Beacon>; 2],
        streams: Arc<Streams>,
    ) -> Self {
        Self {
            config,
            reader,
            subscriber,
            streams,
            link: OnceLock::new(),
            shelf: Mutex::new(Shelf::new(cache)),
            blocked: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            touched: AtomicBool::new(false),
            selects: AtomicU64::new(0),
            neglected: AtomicBool::new(false),
        }
    }

    /// The group is formed.
    pub(crate) fn connect(&self, link: Link<F>, ring_max: usize) {
        self.shelf().connect(&link, ring_max);
        let any = !link.writers.is_empty();
        let _ = self.link.set(link);
        if any {
            self.reader.raise(StatusMask::SUBSCRIPTION_MATCHED);
        }
    }

    pub(crate) fn subscriber(&self) -> &Beacon {
        &self.subscriber
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf<F>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- the engine's thread: nothing waits ----

    /// A message for the topic of this reader. Whether the reader wants it.
    pub(super) fn accept(&self, delivery: &Delivery<'_, F>) -> bool {
        let Some(link) = self.link.get() else {
            return false;
        };
        let header = delivery.header;
        let Some(writer) = link.writer(delivery.sender, header.writer) else {
            return false;
        };
        if self.closed.load(Ordering::Acquire) || link.is_gone(writer) {
            return false;
        }
        let arrival = match header.kind {
            Kind::Control if header.flags & WRITER_DELETED != 0 => {
                let stamp = Stamp {
                    position: delivery.position,
                    timestamp: header.timestamp,
                };
                return link.say_gone(writer, Some(stamp), header.flags & DISPOSES != 0)
                    && !self.touched.swap(true, Ordering::Relaxed);
            }
            Kind::Control => return false,
            kind => {
                let Some(held) = delivery.hold() else {
                    return false;
                };
                Arrival::Message(Message {
                    kind,
                    key: KeyHash(header.key_hash),
                    origin: Origin {
                        writer,
                        writer_sequence: header.writer_seq,
                        position: delivery.position,
                        timestamp: header.timestamp,
                        encapsulation: Encapsulation(header.encapsulation),
                    },
                    held,
                })
            }
        };
        // The queue holds all that can be in flight: never full.
        let pushed = link.arrivals.push(arrival);
        debug_assert!(pushed.is_ok());
        !self.touched.swap(true, Ordering::Relaxed)
    }

    /// A sender's last message of a ring has been delivered: its writers that did
    /// not find room for their own farewell go here.
    pub(super) fn sender_left(&self, place: Rank, ring: Ring, at: Stamp) -> bool {
        let Some(link) = self.link.get() else {
            return false;
        };
        let mut any = false;
        for (writer, number) in link.writers.iter().zip(0..) {
            if writer.place == place && writer.ring == ring {
                any |= link.say_gone(number, Some(at), writer.autodispose);
            }
        }
        any && !self.touched.swap(true, Ordering::Relaxed)
    }

    /// The end of a batch: into the cache, if nobody else is at it.
    pub(super) fn settle(&self) {
        self.touched.store(false, Ordering::Relaxed);
        // Pairs with the fences after a drain: either whoever has the lock sees the
        // arrivals after letting go of it, or the lock is free here.
        fence(Ordering::SeqCst);
        self.tidy();
    }

    /// Nothing is going on: samples of readers that take copies need not stay
    /// in the ring, where a large claim may wait for all of it. Returns whether
    /// there is more to do.
    pub(super) fn relieve(&self) -> bool {
        self.config.storage == Storage::Copy && self.relieve_to(0)
    }

    fn relieve_to(&self, span_max: u32) -> bool {
        let Some(link) = self.link.get() else {
            return false;
        };
        let Ok(mut shelf) = self.shelf.try_lock() else {
            return true;
        };
        let more = shelf.relieve(link, span_max);
        drop(shelf);
        fence(Ordering::SeqCst);
        self.tidy();
        more
    }

    /// Of a reader whose samples stay in a ring that is nearly full of them:
    /// how often samples were asked for.
    pub(super) fn selects_if_tight(&self) -> Option<u64> {
        let link = self
            .link
            .get()
            .filter(|_| self.config.storage == Storage::Ring)?;
        let tight = link
            .writers
            .iter()
            .any(|writer| link.lane.held_parts(writer.ring, writer.place) > SPAN_MAX_RING);
        tight.then(|| self.selects.load(Ordering::Relaxed))
    }

    /// Nobody has asked for samples for a while, and their writer waits.
    pub(super) fn neglect(&self) {
        self.neglected.store(true, Ordering::Relaxed);
        self.relieve_to(SPAN_MAX_RING);
    }

    /// The group has failed: whoever waits for data is to find out by taking. The
    /// writers of the member that is `dead` are gone, right behind what was
    /// delivered here; the dead dispose of nothing.
    pub(super) fn failed(&self, dead: Option<Rank>) {
        let writers = self.link.get().into_iter().flat_map(|link| {
            let of = |(writer, _): &(&MatchedWriter, u32)| Some(writer.rank) == dead;
            let writers = link.writers.iter().zip(0..).filter(of);
            writers.map(move |(_, number)| (link, number))
        });
        for (link, number) in writers {
            link.say_gone(number, None, false);
        }
        self.settle();
        self.streams.notify();
        self.subscriber.raise(StatusMask::DATA_ON_READERS);
        self.reader.raise(StatusMask::DATA_AVAILABLE);
    }

    // ---- any thread ----

    /// How much of a ring may be held. Samples that stay in the ring hold back
    /// their writer until they are taken: that is what was asked for, unless
    /// nobody takes them.
    fn span_max(&self) -> Option<u32> {
        match self.config.storage {
            Storage::Copy => Some(SPAN_MAX_COPY),
            Storage::Ring => self
                .neglected
                .load(Ordering::Relaxed)
                .then_some(SPAN_MAX_RING),
        }
    }

    /// Moves arrivals into the cache until there are none, or somebody else does.
    fn tidy(&self) {
        let Some(link) = self.link.get() else {
            return;
        };
        while !link.arrivals.is_empty() && !self.blocked.load(Ordering::Acquire) {
            let shelf = match self.shelf.try_lock() {
                Ok(shelf) => shelf,
                Err(TryLockError::Poisoned(shelf)) => shelf.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            self.drain(shelf, link);
            fence(Ordering::SeqCst);
        }
    }

    fn drain(&self, mut shelf: MutexGuard<'_, Shelf<F>>, link: &Link<F>) {
        if self.closed.load(Ordering::Acquire) {
            shelf.discard(link);
            self.blocked.store(false, Ordering::Release);
            return;
        }
        let changed = shelf.drain(link, self.span_max());
        self.blocked.store(shelf.is_blocked(), Ordering::Release);
        drop(shelf);
        if !changed.is_empty() {
            if changed.contains(StatusMask::DATA_AVAILABLE) {
                self.subscriber.raise(StatusMask::DATA_ON_READERS);
                self.streams.notify();
            }
            self.reader.raise(changed);
        }
    }

    /// Works on the shelf, then lets arrivals in.
    fn with<R>(&self, work: impl FnOnce(&mut Shelf<F>) -> R) -> R {
        let mut shelf = self.shelf();
        let result = work(&mut shelf);
        if let Some(link) = self.link.get() {
            self.drain(shelf, link);
            fence(Ordering::SeqCst);
            self.tidy();
        }
        result
    }

    /// Hands samples out; see [`DataReader`](crate::DataReader).
    pub(crate) fn select(&self, access: Access, query: &Query) -> Vec<Item<F>> {
        self.is_used();
        let items = self.with(|shelf| shelf.select(access, query, self.config));
        if !items.is_empty() {
            // Samples were read, instances looked at: conditions may hold by that.
            self.reader.observers().notify();
        }
        items
    }

    /// Whether taken samples lie in the rings of their writers.
    pub(crate) fn keeps_in_ring(&self) -> bool {
        self.config.storage == Storage::Ring && !self.config.untrusted
    }

    /// Somebody takes samples.
    fn is_used(&self) {
        self.selects.fetch_add(1, Ordering::Relaxed);
        self.neglected.store(false, Ordering::Relaxed);
    }

    /// Takes a collection back.
    pub(crate) fn give_back(&self, items: Vec<Item<F>>) {
        self.is_used();
        self.with(|shelf| shelf.give_back(items));
    }

    pub(crate) fn has(&self, masks: &StateMasks) -> bool {
        self.with(|shelf| shelf.cache().has(masks)) || self.is_failed()
    }

    pub(crate) fn knows(&self, key: KeyHash) -> bool {
        self.with(|shelf| shelf.cache().instance(key).is_some())
    }

    pub(crate) fn with_statuses<R>(&self, work: impl FnOnce(&mut ReaderStatuses) -> R) -> R {
        let result = work(&mut self.shelf().statuses);
        // What arrived meanwhile found the lock taken.
        fence(Ordering::SeqCst);
        self.tidy();
        result
    }

    /// The bytes of a sample that was handed out make no sense: it is thrown away, and
    /// lost, once.
    pub(crate) fn lose(&self, access: Access, info: &SampleInfo) {
        let lost = self.with(|shelf| shelf.lose(access, info));
        if lost {
            self.reader.raise(StatusMask::SAMPLE_LOST);
        }
    }

    fn is_failed(&self) -> bool {
        self.link
            .get()
            .is_some_and(|link| link.fate.failure().is_some())
    }

    /// Why there is nothing to hand out.
    pub(crate) fn nothing(&self) -> Error {
        let ended = self.link.get().and_then(|link| link.fate.check().err());
        ended.unwrap_or(Error::NoData("no sample fits"))
    }

    /// Throws away what it holds and takes no more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        // Whoever lets arrivals in from now on throws them away.
        self.with(|_| ());
    }
}
