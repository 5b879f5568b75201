//! Where samples come in: between the thread that steps the engine and a reader.
//!
//! The engine *tries* the reader's lock to put samples that follow each other straight into
//! the cache (`accept_run`). What comes otherwise (for several readers of a topic, what is no
//! sample, what finds somebody at the lock) goes into a batch, at whose end it tries again.
//! If somebody has the lock then, or the cache is full, arrivals go onto a queue that holds
//! all that can be in flight, and that one moves them after letting go of the lock: it looks
//! at the queue once more (both sides fence between their two steps), so nothing is left
//! behind. Arrivals go past the queue only while it is empty, and they have the lock.

mod engine_side;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use spindle_dds_core::Held;
use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_transport::Fabric;

use crate::cache::{Cache, Query};
use crate::condition::{StateMasks, Subject};
use crate::driver::group_status::GroupStatus;
use crate::driver::receive::arrival::ArrivalBatch;
use crate::driver::receive::payload::{Item, Payload, in_ring};
use crate::driver::receive::reader_epoch::ReaderEpoch;
use crate::driver::receive::reader_state::{Access, ReaderState, ReaderStatuses};
use crate::driver::receive::rekey::Rekey;
use crate::driver::waiting::stream_wakers::StreamWakers;
use crate::error::Error;
use crate::properties::{ReaderConfig, Storage};
use crate::status::{StatusFlags, StatusMask};
use crate::subscription::SampleInfo;

/// The data side of a reader.
pub(crate) struct ReaderPort<F: Fabric> {
    config: ReaderConfig,
    /// Of the reader's type.
    rekey: Rekey,
    reader: Arc<StatusFlags>,
    subscriber: Arc<StatusFlags>,
    streams: Arc<StreamWakers>,
    group_status: Arc<GroupStatus>,
    state: Mutex<ReaderState<F>>,
    /// Something came since somebody looked.
    due: AtomicBool,
    /// There was no sample when somebody asked for some, and none has been put in since. Written
    /// by whoever has the lock.
    bare: AtomicBool,
    /// The cache is full; arrivals stay in the queue.
    blocked: AtomicBool,
    /// There is another link.
    goes_on: AtomicBool,
    /// Number of the epoch whose samples go into the cache now.
    epoch: AtomicU64,
    /// It was not ready when it was asked.
    held_off: AtomicBool,
    /// The reader is deleted.
    closed: AtomicBool,
    /// The group does not take the reader, and why.
    refused: OnceLock<String>,
    /// What has arrived so far, and the bytes of its payload. The thread that steps the engine alone.
    arrived: [AtomicU64; 2],
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

impl<F: Fabric> fmt::Debug for ReaderPort<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderPort")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl<F: Fabric> ReaderPort<F> {
    pub(crate) fn new(
        cache: Cache<Payload<F>>,
        config: ReaderConfig,
        rekey: Rekey,
        [reader, subscriber]: [Arc<StatusFlags>; 2],
        streams: Arc<StreamWakers>,
        group_status: Arc<GroupStatus>,
    ) -> Self {
        Self {
            config,
            rekey,
            reader,
            subscriber,
            streams,
            group_status,
            state: Mutex::new(ReaderState::new(cache)),
            due: AtomicBool::new(false),
            bare: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            goes_on: AtomicBool::new(false),
            epoch: AtomicU64::new(0),
            held_off: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            refused: OnceLock::new(),
            arrived: [const { AtomicU64::new(0) }; 2],
            selects: AtomicU64::new(0),
            neglected: AtomicBool::new(false),
        }
    }

    /// Where its reader stands: nobody has followed it yet.
    pub(crate) fn link(&self) -> Arc<ReaderEpoch<F>> {
        self.state().link().clone()
    }

    pub(crate) fn subscriber(&self) -> &StatusFlags {
        &self.subscriber
    }

    fn state(&self) -> MutexGuard<'_, ReaderState<F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_state(&self) -> Option<MutexGuard<'_, ReaderState<F>>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The group does not take the reader: no data will come, and whoever waits for some
    /// is to find out by taking.
    pub(crate) fn refuse(&self, why: String) {
        let _ = self.refused.set(why);
        self.failed();
    }

    /// The group has failed: whoever waits for data is to find out by taking.
    pub(crate) fn failed(&self) {
        self.look();
        self.streams.notify();
        self.subscriber.raise(StatusMask::DATA_ON_READERS);
        self.reader.raise(StatusMask::DATA_AVAILABLE);
    }

    /// There is something in the queue, or there will be nothing any more.
    fn look(&self) {
        self.due.store(true, Ordering::Release);
        // Pairs with the fences after a drain: either whoever has the lock sees the
        // arrivals after letting go of it, or the lock is free here.
        fence(Ordering::SeqCst);
        self.tidy();
    }

    /// What has arrived so far: samples, and bytes of their payload.
    pub(crate) fn arrived(&self) -> [u64; 2] {
        [0, 1].map(|at: usize| self.arrived[at].load(Ordering::Relaxed))
    }

    /// Whether it takes no more samples until some are taken from it: it is full of them.
    pub(crate) fn is_full(&self) -> bool {
        self.blocked.load(Ordering::Relaxed)
    }

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
        while self.due.load(Ordering::Acquire) && self.takes_in() {
            let Some(state) = self.try_state() else {
                return;
            };
            self.drain(state, None);
            fence(Ordering::SeqCst);
        }
    }

    /// Whether there is a point in moving arrivals into the cache.
    fn takes_in(&self) -> bool {
        let blocked = self.blocked.load(Ordering::Acquire);
        !blocked || self.goes_on.load(Ordering::Acquire)
    }

    /// What is in the queue, then what is new, goes into the cache; of what is new, that
    /// which finds no place there stays where it is.
    fn drain(
        &self,
        mut state: MutexGuard<'_, ReaderState<F>>,
        new: Option<(&ReaderEpoch<F>, &mut ArrivalBatch<F>)>,
    ) {
        // First: what comes from now on makes it due again.
        for flag in [&self.due, &self.goes_on] {
            if flag.load(Ordering::Acquire) {
                flag.swap(false, Ordering::AcqRel);
            }
        }
        let mut changed = StatusMask::NONE;
        if self.closed.load(Ordering::Acquire) {
            // What is new comes after it by the queue.
            state.discard();
        } else {
            changed = state.drain(self.span_max(), new);
        }
        self.blocked.store(state.is_blocked(), Ordering::Release);
        self.bare.store(false, Ordering::Release);
        self.came_to(&state);
        drop(state);
        if !changed.is_empty() {
            self.tell(changed);
        }
    }

    /// Statuses have changed.
    fn tell(&self, changed: StatusMask) {
        if changed.contains(StatusMask::DATA_AVAILABLE) {
            self.subscriber.raise(StatusMask::DATA_ON_READERS);
            self.streams.notify();
        }
        self.reader.raise(changed);
    }

    /// The epoch that it has come to may make it ready for the last one.
    fn came_to(&self, state: &ReaderState<F>) {
        // By whoever has the lock alone.
        if self.epoch.load(Ordering::Relaxed) == state.epoch() {
            return;
        }
        self.epoch.store(state.epoch(), Ordering::Release);
        fence(Ordering::SeqCst);
        // An epoch that is gone has another behind it, to which this comes then.
        if self.held_off.load(Ordering::Acquire)
            && let Some(subgroup) = state.link().subgroup()
            && self.held_off.swap(false, Ordering::AcqRel)
        {
            subgroup.nudge();
        }
    }

    /// Works on the state, then lets arrivals in.
    fn with<R>(&self, work: impl FnOnce(&mut ReaderState<F>) -> R) -> R {
        let mut state = self.state();
        let result = work(&mut state);
        let flags = [&self.due, &self.goes_on, &self.closed];
        let is_due = flags.iter().any(|flag| flag.load(Ordering::Acquire));
        if is_due || state.is_behind() {
            self.drain(state, None);
        } else {
            drop(state);
        }
        fence(Ordering::SeqCst);
        self.tidy();
        result
    }

    /// Collections of samples that are out.
    pub(crate) fn loans(&self) -> u64 {
        self.with(|state| state.loans())
    }

    /// Hands samples out; see [`DataReader`](crate::DataReader). A collection that has any is
    /// out until it is given back.
    pub(crate) fn select(&self, access: Access, query: &Query) -> Vec<Item<F>> {
        if self.is_bare() {
            return Vec::new();
        }
        let items = self.with(|state| {
            self.is_used();
            let items = state.select(access, query, self.config);
            if items.is_empty() && state.cache().is_empty() {
                self.bare.store(true, Ordering::Relaxed);
            }
            items
        });
        if !items.is_empty() {
            // Samples were read, instances looked at: conditions may hold by that.
            let samples = |subject| subject == Subject::Samples;
            self.reader.observers().notify_of(samples);
        }
        items
    }

    /// Whether there is nothing to hand out, without a look: for who polls.
    #[inline]
    fn is_bare(&self) -> bool {
        let flags = [&self.due, &self.goes_on, &self.closed];
        self.bare.load(Ordering::Acquire) && !flags.iter().any(|it| it.load(Ordering::Acquire))
    }

    /// Somebody takes samples, and has the lock.
    fn is_used(&self) {
        let selects = self.selects.load(Ordering::Relaxed);
        self.selects.store(selects + 1, Ordering::Relaxed);
        if self.neglected.load(Ordering::Relaxed) {
            self.neglected.store(false, Ordering::Relaxed);
        }
    }

    /// Takes a collection back, which [`select`](Self::select) gave.
    pub(crate) fn hand_back(&self, mut items: Vec<Item<F>>) {
        // All at once, and without the lock: somebody may have to be woken.
        Held::release_all(items.iter_mut().filter_map(|(_, payload)| in_ring(payload)));
        self.with(|state| {
            self.is_used();
            state.hand_back(items);
        });
    }

    pub(crate) fn has(&self, masks: &StateMasks) -> bool {
        self.with(|state| state.cache().has(masks)) || self.is_failed()
    }

    pub(crate) fn knows(&self, key: KeyHash) -> bool {
        self.with(|state| state.cache().instance(key).is_some())
    }

    pub(crate) fn with_statuses<R>(&self, work: impl FnOnce(&mut ReaderStatuses) -> R) -> R {
        let result = work(&mut self.state().statuses);
        // What arrived meanwhile found the lock taken.
        fence(Ordering::SeqCst);
        self.tidy();
        result
    }

    /// The bytes of a sample that was handed out make no sense: it is thrown away, and
    /// lost, once.
    pub(crate) fn lose(&self, access: Access, info: &SampleInfo) {
        let lost = self.with(|state| state.lose(access, info));
        if lost {
            self.reader.raise(StatusMask::SAMPLE_LOST);
        }
    }

    fn is_failed(&self) -> bool {
        self.refused.get().is_some() || self.group_status.failure().is_some()
    }

    /// Why there is nothing to hand out.
    pub(crate) fn nothing(&self) -> Error {
        let refused = self.refused.get().map(|why| Error::Error(why.clone()));
        let ended = refused.or_else(|| self.group_status.check().err());
        ended.unwrap_or(Error::NoData("no sample fits"))
    }

    /// Throws away what it holds and takes no more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        // Whoever lets arrivals in from now on throws them away.
        self.with(|_| ());
    }
}
