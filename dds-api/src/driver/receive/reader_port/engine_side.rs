//! What the thread that steps the engine does to a reader: nothing waits.

use std::sync::atomic::{Ordering, fence};

use spindle_dds_core::{Delivery, MessageKind, MessageRun};
use spindle_dds_transport::Fabric;

use super::{ReaderPort, SPAN_MAX_RING};
use crate::driver::receive::arrival::{Arrival, ArrivalBatch, DeliveryPoint};
use crate::driver::receive::reader_epoch::{MatchedWriter, ReaderEpoch};
use crate::driver::send::writer_port::{DISPOSES, WRITER_DELETED};
use crate::properties::Storage;
use crate::status::StatusMask;

/// Subgroups that have ended and may wait for a reader before it is given nothing more.
const LANES_BEHIND_MAX: u64 = 2;

impl<F: Fabric> ReaderPort<F> {
    /// A message for the topic of this reader, by the last link.
    pub(crate) fn accept(
        &self,
        link: &ReaderEpoch<F>,
        delivery: &Delivery<'_, F>,
        batch: &mut ArrivalBatch<F>,
    ) {
        if self.closed.load(Ordering::Acquire) {
            return;
        }
        if batch.is_full() {
            self.settle(link, batch);
        }
        if delivery.header.kind == MessageKind::Control {
            if let Some(gone) = says_gone(link, delivery) {
                batch.push(gone);
            }
        } else if let Some(mut message) = link.receive(delivery, batch) {
            if link.rekeys(message.origin.writer) {
                message.rekey(self.rekey);
            }
            batch.push(Arrival::Message(message));
        }
    }

    /// Samples of this topic, as many as come one after the other, straight into the cache:
    /// if nothing is in the way, and nobody else is at it. Whether there were any.
    #[inline]
    pub(crate) fn accept_run(
        &self,
        link: &ReaderEpoch<F>,
        topic: u64,
        run: &mut MessageRun<'_, F>,
        batch: &mut ArrivalBatch<F>,
    ) -> bool {
        if !batch.is_empty() || link.matched.rekeys || !self.takes_in() {
            return false;
        }
        let Some(mut state) = self.try_state() else {
            return false;
        };
        // Under the lock: who closes it throws away what has come before, under the lock too.
        if self.closed.load(Ordering::Acquire) {
            return false;
        }
        let any = state.take_run(self.span_max(), link, topic, run, batch);
        if self.bare.load(Ordering::Relaxed) {
            self.bare.store(false, Ordering::Release);
        }
        if state.is_blocked() {
            self.blocked.store(true, Ordering::Release);
        }
        any
    }

    /// The end of a batch: into the cache, if nobody else is at it, else into the queue.
    pub(crate) fn settle(&self, link: &ReaderEpoch<F>, batch: &mut ArrivalBatch<F>) {
        for (sum, more) in self.arrived.iter().zip(batch.take_counts()) {
            sum.store(sum.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        }
        let changed = std::mem::replace(&mut batch.changed, StatusMask::NONE);
        if !changed.is_empty() {
            self.tell(changed);
        }
        if batch.is_empty() {
            return;
        }
        if self.takes_in()
            && let Some(state) = self.try_state()
        {
            self.drain(state, Some((link, batch)));
        }
        if batch.is_empty() {
            return;
        }
        while let Some(arrival) = batch.pop() {
            // The queue holds all that can be in flight: never full.
            let pushed = link.arrivals.push(arrival);
            debug_assert!(pushed.is_ok());
        }
        self.look();
    }

    /// There is a link behind the last one.
    pub(crate) fn go_on(&self) {
        self.goes_on.store(true, Ordering::Release);
        self.look();
    }

    /// Whether it may be given the messages of the epoch that this is of: not while
    /// it has not come through those of several epochs before.
    pub(crate) fn is_ready(&self, link: &ReaderEpoch<F>) -> bool {
        let is_near = || {
            let behind = link.matched.number - self.epoch.load(Ordering::Acquire);
            behind <= LANES_BEHIND_MAX
        };
        if is_near() {
            return true;
        }
        self.held_off.store(true, Ordering::Release);
        // Pairs with the fence in `came_to`: either that is seen there, or where the
        // reader has come to is seen here.
        fence(Ordering::SeqCst);
        is_near()
    }

    /// Nothing is going on: samples of readers that take copies need not stay
    /// in the ring, where a large claim may wait for all of it. Returns whether
    /// there is more to do.
    pub(crate) fn relieve(&self) -> bool {
        self.config.storage == Storage::Copy && self.relieve_to(0)
    }

    fn relieve_to(&self, span_max: u32) -> bool {
        let Some(mut state) = self.try_state() else {
            return true;
        };
        let more = state.relieve(span_max);
        drop(state);
        fence(Ordering::SeqCst);
        self.tidy();
        more
    }

    /// Of a reader whose samples stay in a ring that is nearly full of them:
    /// how often samples were asked for.
    pub(crate) fn selects_if_tight(&self, link: &ReaderEpoch<F>) -> Option<u64> {
        if self.config.storage != Storage::Ring {
            return None;
        }
        let subgroup = link.subgroup()?;
        let held = |writer: &MatchedWriter| subgroup.held_parts(writer.ring, writer.place);
        let mut writers = link.matched.writers();
        let tight = writers.any(|writer| held(writer) > SPAN_MAX_RING);
        tight.then(|| self.selects.load(Ordering::Relaxed))
    }

    /// Nobody has asked for samples for a while, and their writer waits.
    pub(crate) fn neglect(&self) {
        self.neglected.store(true, Ordering::Relaxed);
        self.relieve_to(SPAN_MAX_RING);
    }
}

/// What a control message is for a reader; `None` if it is nothing to it.
#[cold]
fn says_gone<F: Fabric>(link: &ReaderEpoch<F>, delivery: &Delivery<'_, F>) -> Option<Arrival<F>> {
    let header = delivery.header;
    if header.flags & WRITER_DELETED == 0 {
        return None;
    }
    let stamp = DeliveryPoint {
        position: delivery.position,
        timestamp: header.timestamp,
    };
    let disposes = header.flags & DISPOSES != 0;
    link.says_gone(delivery.sender, header.writer, stamp, disposes)
}
