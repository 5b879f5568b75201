//! The engine's side of a reader port: called under the engine's lock, so nothing here waits.

use std::sync::atomic::{Ordering, fence};

use spindle_dds_core::{Delivery, MessageKind, MessageRun};
use spindle_dds_transport::Fabric;

use super::super::arrival::{Arrival, ArrivalBatch, DeliveryPoint};
use super::super::in_ring::COPY_ALL;
use super::super::payload::Payload;
use super::super::reader_epoch::{MatchedWriter, ReaderEpoch};
use super::{ReaderPort, SPAN_MAX_RING};
use crate::cache::Arrived;
use crate::driver::send::acceptance::ASKS_FOR_RELEASE;
use crate::driver::send::writer_port::{DISPOSES, WRITER_DELETED};
use crate::properties::Storage;
use crate::status::StatusMask;

/// Ended subgroup epochs that may wait for a reader before the engine holds back the next one.
const EPOCHS_BEHIND_MAX: u64 = 2;

impl<F: Fabric> ReaderPort<F> {
    /// Receives a message for the topic of this reader, by its last epoch.
    pub(crate) fn receive(
        &self,
        epoch: &ReaderEpoch<F>,
        delivery: &Delivery<'_, F>,
        batch: &mut ArrivalBatch<F>,
    ) {
        if self.is_closed.load(Ordering::Acquire) {
            return;
        }
        if batch.is_full() {
            self.settle(epoch, batch);
        }
        if delivery.header.kind == MessageKind::Control {
            if delivery.header.flags & ASKS_FOR_RELEASE != 0 {
                // What came before it first.
                self.settle(epoch, batch);
                self.release_accepted();
            }
            if let Some(departed) = departure(epoch, delivery) {
                batch.push(departed);
            }
        } else if let Some(mut message) = epoch.receive(delivery, batch) {
            if epoch.rekeys(message.origin.writer) {
                self.rekey(&mut message, batch);
            }
            batch.push(Arrival::Message(message));
        }
    }

    /// Replaces the key hash of a message by that of the reader's type, or by the name of its key. A
    /// message that cannot be read keeps the hash it has: it is counted as lost when the application
    /// reads it.
    #[cold]
    fn rekey(&self, message: &mut Arrived<Payload<F>>, batch: &ArrivalBatch<F>) {
        let (kind, encapsulation) = (message.kind, message.origin.encapsulation);
        let bytes = message.payload.bytes();
        let key = match &self.keys {
            None => (self.rekey)(kind, bytes, encapsulation),
            Some(keys) => {
                // Names of messages that are not in the cache yet must not be forgotten.
                if keys.has_many()
                    && batch.is_empty()
                    && let Some(state) = self.try_state()
                    && !state.has_waiting()
                {
                    keys.forget(|name| state.cache().instance(name).is_some());
                }
                keys.name(kind, bytes, encapsulation)
            }
        };
        if let Ok(key) = key {
            message.key = key;
        }
    }

    /// Puts the next samples of this topic directly into the cache, as many as follow each other.
    /// False if there are none, another arrival comes first, or another thread has the lock.
    #[inline]
    pub(crate) fn append_run(
        &self,
        epoch: &ReaderEpoch<F>,
        topic: u64,
        run: &mut MessageRun<'_, F>,
        batch: &mut ArrivalBatch<F>,
    ) -> bool {
        if !batch.is_empty() || epoch.matched.rekeys || !self.accepts_arrivals() {
            return false;
        }
        let Some(mut state) = self.try_state() else {
            return false;
        };
        // Under the lock: `close` sets the flag, then drops all samples under the lock.
        if self.is_closed.load(Ordering::Acquire) {
            return false;
        }
        let any = state.append_run(self.span_max(), epoch, topic, run, batch);
        if self.is_bare.load(Ordering::Relaxed) {
            self.is_bare.store(false, Ordering::Release);
        }
        if state.holds_off() {
            self.is_blocked.store(true, Ordering::Release);
        }
        any
    }

    /// Ends a batch: it goes into the cache if the lock is free, else into the queue.
    pub(crate) fn settle(&self, epoch: &ReaderEpoch<F>, batch: &mut ArrivalBatch<F>) {
        for (sum, more) in self.received.iter().zip(batch.take_counts()) {
            sum.store(sum.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        }
        let changed = std::mem::replace(&mut batch.changed, StatusMask::NONE);
        if !changed.is_empty() {
            self.raise(changed);
        }
        if batch.is_empty() {
            return;
        }
        if self.accepts_arrivals()
            && let Some(state) = self.try_state()
        {
            self.drain(state, Some((epoch, batch)));
        }
        if batch.is_empty() {
            return;
        }
        while let Some(arrival) = batch.pop() {
            // The queue has room for all that can be in flight.
            let pushed = epoch.arrivals.push(arrival);
            debug_assert!(pushed.is_ok());
        }
        self.set_due();
    }

    /// A writer waits until its samples are accepted, which a release tells it: copies those that are in
    /// the cache out of their rings, and those that go into it until nothing is held back any more.
    #[cold]
    fn release_accepted(&self) {
        self.is_asked_to_release.store(true, Ordering::Release);
        // A thread that has the lock does it when it has released that.
        self.is_due.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        if let Some(state) = self.try_state() {
            self.drain(state, None);
            fence(Ordering::SeqCst);
            self.drain_while_due();
        }
    }

    /// The last epoch has a next one.
    pub(crate) fn enter_next_epoch(&self) {
        self.has_next_epoch.store(true, Ordering::Release);
        self.set_due();
    }

    /// The logs have more on disk: what was kept aside for them may go on.
    pub(crate) fn persisted(&self) {
        if self.awaits_logs() {
            // As if an epoch had begun: more may go into the cache although it was blocked.
            self.enter_next_epoch();
        }
    }

    /// Whether the reader shows what logs have on disk only.
    pub(crate) fn awaits_logs(&self) -> bool {
        self.awaits_logs.load(Ordering::Acquire)
    }

    /// Whether the engine may deliver messages of this epoch to the reader: not while the arrivals
    /// of several earlier epochs wait for it.
    pub(crate) fn is_ready(&self, epoch: &ReaderEpoch<F>) -> bool {
        let is_near = || {
            let behind = epoch.matched.number - self.epoch_number.load(Ordering::Acquire);
            behind <= EPOCHS_BEHIND_MAX
        };
        if is_near() {
            return true;
        }
        self.is_held_off.store(true, Ordering::Release);
        // Pairs with the fence in `note_epoch`: either the flag is seen there, or the new epoch
        // number is seen here.
        fence(Ordering::SeqCst);
        is_near()
    }

    /// Called before a thread sleeps: copies the samples of a reader with copies out of the rings,
    /// where a large claim may wait for the space. Returns whether there is more to copy.
    pub(crate) fn relieve(&self) -> bool {
        match self.is_asked_to_release.load(Ordering::Relaxed) {
            true => self.relieve_to(COPY_ALL),
            false => self.config.storage == Storage::Copy && self.relieve_to(0),
        }
    }

    fn relieve_to(&self, span_max: u32) -> bool {
        let Some(mut state) = self.try_state() else {
            return true;
        };
        let more = state.relieve(span_max);
        drop(state);
        fence(Ordering::SeqCst);
        self.drain_while_due();
        more
    }

    /// How often the application has asked for samples, if samples of this reader stay in a ring
    /// that is nearly full of them.
    pub(crate) fn selects_if_nearly_full(&self, epoch: &ReaderEpoch<F>) -> Option<u64> {
        if self.config.storage != Storage::Ring {
            return None;
        }
        let handle = epoch.matched.handle()?;
        let held = |writer: &MatchedWriter| handle.held_parts(writer.class, writer.rank);
        let mut writers = epoch.matched.writers();
        let is_nearly_full = writers.any(|writer| held(writer) > SPAN_MAX_RING);
        is_nearly_full.then(|| self.selects.load(Ordering::Relaxed))
    }

    /// Copies the samples out of the rings: the application has not asked for any for a while, and
    /// their writer may wait for room.
    pub(crate) fn copy_out_neglected(&self) {
        self.is_neglected.store(true, Ordering::Relaxed);
        self.relieve_to(SPAN_MAX_RING);
    }
}

/// What a control message means to a reader; `None` if nothing.
#[cold]
fn departure<F: Fabric>(epoch: &ReaderEpoch<F>, delivery: &Delivery<'_, F>) -> Option<Arrival<F>> {
    let header = delivery.header;
    if header.flags & WRITER_DELETED == 0 {
        return None;
    }
    let at = DeliveryPoint {
        position: delivery.position,
        timestamp: header.timestamp,
    };
    let disposes = header.flags & DISPOSES != 0;
    epoch.depart(delivery.sender, header.writer, at, disposes)
}
