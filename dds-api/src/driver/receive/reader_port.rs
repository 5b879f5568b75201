//! Where samples come in: between the thread that steps the engine and a reader.
//!
//! ```text
//!   append_run:  samples that follow each other ---------------------> ReaderState -> Cache
//!   receive:     anything else -> ArrivalBatch -> settle ------------> ReaderState -> Cache
//!                                                   | lock is taken,        ^
//!                                                   v or cache is full      | drain, by the thread
//!                                                 queue of the ReaderEpoch -+ that has the lock
//! ```
//!
//! The thread that steps only *tries* the reader's lock. If another thread has it, or the cache
//! is full, arrivals go into a queue that has room for all that can be in flight. The thread that
//! has the lock looks at the queue once more after it has released the lock, and both sides fence
//! between their two accesses: no arrival is left behind. Arrivals bypass the queue only while it
//! is empty, under the lock: their order is kept.

mod delivery;
mod historical;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use spindle_dds_core::Held;
use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_transport::Fabric;

use super::arrival::ArrivalBatch;
use super::in_ring::COPY_ALL;
use super::payload::{Item, Payload, in_ring};
use super::reader_epoch::ReaderEpoch;
use super::reader_state::logged::LoggedAt;
use super::reader_state::{Access, ReaderState, ReaderStatuses};
use super::rekey::Rekey;
use crate::cache::{Cache, Query};
use crate::condition::{StateMasks, Subject};
use crate::driver::group_status::GroupStatus;
use crate::driver::waiting::history_waiters::HistoryWaiters;
use crate::driver::waiting::stream_wakers::StreamWakers;
use crate::error::Error;
use crate::keys::KnownKeys;
use crate::properties::{ReaderConfig, Storage};
use crate::status::{StatusFlags, StatusMask};
use crate::subscription::SampleInfo;

/// The data side of a reader.
pub(crate) struct ReaderPort<F: Fabric> {
    config: ReaderConfig,
    /// Hashes keys as the reader's type does.
    rekey: Rekey,
    /// The keys of the instances, if their hashes are digests.
    keys: Option<KnownKeys>,
    reader: Arc<StatusFlags>,
    subscriber: Arc<StatusFlags>,
    streams: Arc<StreamWakers>,
    group_status: Arc<GroupStatus>,
    state: Mutex<ReaderState<F>>,
    /// The queue has been pushed to since it was looked at.
    is_due: AtomicBool,
    /// The last `select` found the cache empty, and nothing was put in since. Written under the
    /// lock.
    is_bare: AtomicBool,
    /// The cache is full: arrivals stay in the queue. Written under the lock.
    is_blocked: AtomicBool,
    /// A next epoch has been set.
    has_next_epoch: AtomicBool,
    /// Number of the epoch whose samples go into the cache now. Written under the lock.
    epoch_number: AtomicU64,
    /// `is_ready` has answered no: the engine is to be nudged when the reader has caught up.
    is_held_off: AtomicBool,
    /// A writer waits for acknowledgments: what is accepted is copied out of the rings at once, until
    /// nothing is held back. Changed under the lock, and by the engine.
    is_asked_to_release: AtomicBool,
    /// The reader shows what logs have on disk only. Set once.
    awaits_logs: AtomicBool,
    /// Its history is in logs that are shut.
    awaits_opening: AtomicBool,
    /// The reader is deleted.
    is_closed: AtomicBool,
    /// For messages: what the reader is.
    what: String,
    /// Told when a transfer of history can go on.
    history_wake: OnceLock<Arc<dyn Fn() + Send + Sync>>,
    /// What waits for historical data.
    history_waiters: HistoryWaiters,
    /// Why the group refuses the reader, if it does.
    refused: OnceLock<Error>,
    /// Samples received, and the bytes of their payload. Written by the thread that steps.
    received: [AtomicU64; 2],
    /// How often samples were asked for, or returned. Written under the lock.
    selects: AtomicU64,
    /// Samples are to stay in the ring, but the application does not take them: until it does, they
    /// are copied out like those of any reader.
    is_neglected: AtomicBool,
}

/// Parts of 256 of a ring that may be held before samples are copied out.
const SPAN_MAX_COPY: u32 = 128;
/// The same, for readers that want samples to stay in the ring.
const SPAN_MAX_RING: u32 = 192;

impl<F: Fabric> fmt::Debug for ReaderPort<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderPort")
            .field("config", &self.config)
            .field("aside_bytes_max", &self.config.aside_bytes)
            .finish_non_exhaustive()
    }
}

impl<F: Fabric> ReaderPort<F> {
    /// `what` it is, for messages; `is_durable` unless its DURABILITY is VOLATILE.
    pub(crate) fn new(
        (what, is_durable): (&str, bool),
        cache: Cache<Payload<F>>,
        config: ReaderConfig,
        (rekey, keys): (Rekey, Option<KnownKeys>),
        [reader, subscriber]: [Arc<StatusFlags>; 2],
        streams: Arc<StreamWakers>,
        group_status: Arc<GroupStatus>,
    ) -> Self {
        let state = ReaderState::new(cache, config.aside_bytes, is_durable);
        Self {
            config,
            rekey,
            keys,
            reader,
            subscriber,
            streams,
            group_status,
            state: Mutex::new(state),
            is_due: AtomicBool::new(false),
            is_bare: AtomicBool::new(false),
            is_blocked: AtomicBool::new(false),
            has_next_epoch: AtomicBool::new(false),
            epoch_number: AtomicU64::new(0),
            is_held_off: AtomicBool::new(false),
            is_asked_to_release: AtomicBool::new(false),
            awaits_logs: AtomicBool::new(false),
            awaits_opening: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            what: what.to_owned(),
            history_wake: OnceLock::new(),
            history_waiters: HistoryWaiters::default(),
            refused: OnceLock::new(),
            received: [const { AtomicU64::new(0) }; 2],
            selects: AtomicU64::new(0),
            is_neglected: AtomicBool::new(false),
        }
    }

    /// The reader's last epoch. It may not have come to it yet.
    pub(crate) fn last_epoch(&self) -> Arc<ReaderEpoch<F>> {
        let mut last = self.state().epoch().clone();
        while let Some(next) = last.next().cloned() {
            last = next;
        }
        last
    }

    pub(crate) fn subscriber(&self) -> &StatusFlags {
        &self.subscriber
    }

    fn state(&self) -> MutexGuard<'_, ReaderState<F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` in a child of `fork`: a thread of the parent had the lock, and never releases it here.
    #[cold]
    fn wait_for_state(&self) -> Option<MutexGuard<'_, ReaderState<F>>> {
        (!self.reader.is_inherited()).then(|| self.state())
    }

    fn try_state(&self) -> Option<MutexGuard<'_, ReaderState<F>>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The group refuses the reader: no data will come. Wakes threads that wait for data: `take`
    /// returns the error.
    pub(crate) fn refuse(&self, why: Error) {
        let _ = self.refused.set(why);
        self.group_failed();
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.refused.get().is_some()
    }

    /// The group has failed. Wakes threads that wait for data: `take` returns the error.
    pub(crate) fn group_failed(&self) {
        self.set_due();
        self.streams.notify();
        self.history_waiters.notify();
        self.subscriber.raise(StatusMask::DATA_ON_READERS);
        self.reader.raise(StatusMask::DATA_AVAILABLE);
    }

    /// The queue has changed, or nothing will come any more.
    fn set_due(&self) {
        self.is_due.store(true, Ordering::Release);
        // Pairs with the fences after a drain: either the thread that has the lock sees the
        // arrivals after it has released it, or the lock is free here.
        fence(Ordering::SeqCst);
        self.drain_while_due();
    }

    /// Samples received so far, and the bytes of their payload.
    pub(crate) fn received(&self) -> [u64; 2] {
        [0, 1].map(|at: usize| self.received[at].load(Ordering::Relaxed))
    }

    /// Whether the cache takes no sample until one is taken from it.
    pub(crate) fn is_full(&self) -> bool {
        self.is_blocked.load(Ordering::Relaxed)
    }

    /// Parts of 256 of a ring that may be held; `None`: all of it. Samples that stay in the ring
    /// hold back their writer until they are taken. That is what the property asks for, unless the
    /// reader neglects them.
    fn span_max(&self) -> Option<u32> {
        match self.config.storage {
            Storage::Copy => Some(SPAN_MAX_COPY),
            Storage::Ring => self
                .is_neglected
                .load(Ordering::Relaxed)
                .then_some(SPAN_MAX_RING),
        }
    }

    /// Moves arrivals into the cache until none is due, or another thread has the lock.
    fn drain_while_due(&self) {
        while self.is_due.load(Ordering::Acquire) && self.accepts_arrivals() {
            let Some(state) = self.try_state() else {
                return;
            };
            self.drain(state, None);
            fence(Ordering::SeqCst);
        }
    }

    /// Whether moving arrivals into the cache can succeed.
    fn accepts_arrivals(&self) -> bool {
        let is_blocked = self.is_blocked.load(Ordering::Acquire);
        !is_blocked || self.has_next_epoch.load(Ordering::Acquire)
    }

    /// Puts the queue into the cache, then the `new` batch; what does not fit stays in the batch.
    fn drain(
        &self,
        mut state: MutexGuard<'_, ReaderState<F>>,
        new: Option<(&ReaderEpoch<F>, &mut ArrivalBatch<F>)>,
    ) {
        // Cleared first: an arrival from now on sets it again.
        for flag in [&self.is_due, &self.has_next_epoch] {
            if flag.load(Ordering::Acquire) {
                flag.swap(false, Ordering::AcqRel);
            }
        }
        let mut changed = StatusMask::NONE;
        if self.is_closed.load(Ordering::Acquire) {
            // The batch goes through the queue, and is dropped with it.
            state.discard();
        } else {
            let flag = &self.is_asked_to_release;
            let is_asked = flag.load(Ordering::Relaxed) && flag.swap(false, Ordering::AcqRel);
            let span_max = if is_asked {
                Some(COPY_ALL)
            } else {
                self.span_max()
            };
            changed = state.drain(span_max, new);
            if is_asked && state.is_behind() {
                flag.store(true, Ordering::Release);
            }
        }
        self.is_blocked.store(state.holds_off(), Ordering::Release);
        self.is_bare.store(false, Ordering::Release);
        let has_entered = self.note_epoch(&state);
        let wakes = (has_entered || state.is_blocked()) && state.take_history_wake();
        drop(state);
        if has_entered || wakes {
            self.tell_history(has_entered, wakes);
        }
        if !changed.is_empty() {
            self.raise(changed);
        }
    }

    /// The reader has entered an epoch, or its history may go on.
    #[cold]
    #[inline(never)]
    fn tell_history(&self, has_entered: bool, wakes: bool) {
        if has_entered {
            self.history_waiters.notify();
        }
        if wakes {
            self.wake_history();
        }
    }

    fn raise(&self, changed: StatusMask) {
        if changed.contains(StatusMask::DATA_AVAILABLE) {
            self.subscriber.raise(StatusMask::DATA_ON_READERS);
            self.streams.notify();
        }
        self.reader.raise(changed);
    }

    /// Publishes the epoch that the reader has come to: it may make the reader ready for the last
    /// one. Returns whether it is another one than before.
    fn note_epoch(&self, state: &ReaderState<F>) -> bool {
        // Written under the lock alone.
        if self.epoch_number.load(Ordering::Relaxed) == state.epoch_number() {
            return false;
        }
        self.epoch_number
            .store(state.epoch_number(), Ordering::Release);
        fence(Ordering::SeqCst);
        // An epoch whose handle is gone has another behind it; the handle is found there.
        if self.is_held_off.load(Ordering::Acquire)
            && let Some(handle) = state.epoch().matched.handle()
            && self.is_held_off.swap(false, Ordering::AcqRel)
        {
            handle.nudge();
        }
        true
    }

    /// Works on the state, then lets arrivals in.
    fn with<R>(&self, work: impl FnOnce(&mut ReaderState<F>) -> R) -> R {
        self.with_locked(self.state(), work)
    }

    #[inline]
    fn with_locked<R>(
        &self,
        mut state: MutexGuard<'_, ReaderState<F>>,
        work: impl FnOnce(&mut ReaderState<F>) -> R,
    ) -> R {
        let result = work(&mut state);
        if self.has_pending_work() || state.is_behind() {
            self.drain(state, None);
        } else {
            drop(state);
        }
        fence(Ordering::SeqCst);
        self.drain_while_due();
        result
    }

    #[inline]
    fn has_pending_work(&self) -> bool {
        let flags = [&self.is_due, &self.has_next_epoch, &self.is_closed];
        flags.iter().any(|flag| flag.load(Ordering::Acquire))
    }

    /// Of a reader that is not announced yet: it begins with this cache; `is_durable` unless its
    /// DURABILITY is VOLATILE.
    pub(crate) fn replace_cache(&self, cache: Cache<Payload<F>>, is_durable: bool) {
        self.with(|state| state.replace_cache(cache, is_durable));
    }

    /// Of a reader that is not announced yet: whether it shows what logs have on disk only.
    pub(crate) fn show_logged(&self, logged: Option<LoggedAt>) {
        self.awaits_logs.store(logged.is_some(), Ordering::Release);
        self.with(|state| state.show_logged(logged));
    }

    /// Collections of samples that the application has.
    pub(crate) fn loans(&self) -> u64 {
        self.with(|state| state.loans())
    }

    /// Bytes allocated for what the reader has, and for what waits for it.
    pub(crate) fn allocated(&self) -> [usize; 2] {
        self.with(|state| state.allocated())
    }

    /// Reads or takes samples; see [`DataReader`](crate::DataReader). A collection that has any
    /// counts as a loan until it is handed back.
    pub(crate) fn select(&self, access: Access, query: &Query) -> Vec<Item<F>> {
        // A thread that polls an empty reader takes no lock.
        if self.is_bare.load(Ordering::Acquire) && !self.has_pending_work() {
            return Vec::new();
        }
        let items = self.with(|state| {
            self.note_select();
            let mut items = state.select(access, query, self.config);
            if let Some(keys) = &self.keys {
                // Under the lock: the keys of instances that are forgotten are forgotten, too.
                add_keys(keys, &mut items);
            }
            if items.is_empty() && state.cache().is_empty() {
                self.is_bare.store(true, Ordering::Relaxed);
            }
            items
        });
        if !items.is_empty() {
            // Samples are read, instances viewed: that may trigger conditions.
            let samples = |subject| subject == Subject::Samples;
            self.reader.observers().notify_of(samples);
        }
        items
    }

    /// Counts a use of the reader, under the lock.
    fn note_select(&self) {
        let selects = self.selects.load(Ordering::Relaxed);
        self.selects.store(selects + 1, Ordering::Relaxed);
        if self.is_neglected.load(Ordering::Relaxed) {
            self.is_neglected.store(false, Ordering::Relaxed);
        }
    }

    /// Takes back a collection that [`select`](Self::select) returned.
    pub(crate) fn return_loan(&self, mut items: Vec<Item<F>>) {
        // All at once, and without the lock: a writer may have to be woken.
        let mut has_payloads = false;
        Held::release_all(items.iter_mut().filter_map(|(_, payload)| {
            let held = in_ring(payload);
            has_payloads |= payload.is_some();
            held
        }));
        let Some(state) = self.try_state().or_else(|| self.wait_for_state()) else {
            std::mem::forget(items);
            return;
        };
        self.with_locked(state, |state| {
            self.note_select();
            state.return_loan(items, has_payloads);
        });
    }

    pub(crate) fn has(&self, masks: &StateMasks) -> bool {
        self.with(|state| state.cache().has(masks)) || self.has_failed()
    }

    /// The keys of the instances, if their hashes are digests.
    pub(crate) fn keys(&self) -> Option<&KnownKeys> {
        self.keys.as_ref()
    }

    pub(crate) fn knows(&self, key: KeyHash) -> bool {
        self.with(|state| state.cache().instance(key).is_some())
    }

    pub(crate) fn with_statuses<R>(&self, work: impl FnOnce(&mut ReaderStatuses) -> R) -> R {
        let result = work(&mut self.state().statuses);
        // An arrival in between found the lock taken.
        fence(Ordering::SeqCst);
        self.drain_while_due();
        result
    }

    /// Drops a sample that cannot be decoded, and counts it as lost, once.
    pub(crate) fn lose(&self, access: Access, info: &SampleInfo) {
        let lost = self.with(|state| state.lose(access, info));
        if lost {
            self.reader.raise(StatusMask::SAMPLE_LOST);
        }
    }

    fn has_failed(&self) -> bool {
        self.is_refused() || self.group_status.failure().is_some()
    }

    /// Why `select` has returned nothing.
    pub(crate) fn nothing(&self) -> Error {
        let refused = self.refused.get().cloned();
        let ended = refused.or_else(|| self.group_status.check().err());
        ended.unwrap_or(Error::NoData("no sample fits"))
    }

    /// Drops all samples, and accepts none any more.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        // Every later drain discards what has come.
        self.with(|_| ());
        self.history_waiters.notify();
        self.wake_history();
    }
}

/// Adds the keys of the instances to what is handed out without a sample.
fn add_keys<F: Fabric>(keys: &KnownKeys, items: &mut [Item<F>]) {
    for (info, payload) in items {
        if payload.is_none() {
            let name = info.instance_handle.key_hash();
            let key = name.and_then(|name| keys.key(name));
            *payload = key.map(|key| Payload::Copy(key.to_vec()));
        }
    }
}
