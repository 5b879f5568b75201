//! The side of a reader port that history comes from: a thread that may wait for the lock.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use spindle_dds_core::storage::{Record, RecordMeta};
use spindle_dds_idl_runtime::{Encapsulation, KeyHash};
use spindle_dds_transport::Fabric;

use super::ReaderPort;
use crate::driver::waiting::future_wakers::FutureWaker;
use crate::driver::waiting::history_waiters::HistoryWait;
use crate::error::{Error, Result};
use crate::history::{HistoryEnd, HistoryOffer, HistoryProgress, TransferId};
use crate::status::{HistoricalDataStatus, StatusMask};

impl<F: Fabric> ReaderPort<F> {
    /// Sets what is called when [`begin_history`](Self::begin_history) or
    /// [`offer_history`](Self::offer_history) may succeed that did not. Any thread calls it, one that steps
    /// too, so it must not wait; and it may be called in vain. Set once: later calls change nothing.
    pub(crate) fn set_history_wake(&self, wake: Arc<dyn Fn() + Send + Sync>) {
        let _ = self.history_wake.set(wake);
    }

    #[cold]
    pub(super) fn wake_history(&self) {
        if let Some(wake) = self.history_wake.get() {
            wake();
        }
    }

    /// The sequence numbers after which the reader is to get records, by the GUIDs of their writers.
    /// `None` if it has not come to the epoch that awaits the transfer. Of a transfer that is over it is
    /// empty: an offer says so.
    pub(crate) fn begin_history(&self, transfer: TransferId) -> Option<BTreeMap<[u8; 16], u64>> {
        if self.is_closed.load(Ordering::Acquire) {
            return Some(BTreeMap::new());
        }
        self.with(|state| state.begin_history(transfer))
    }

    /// Takes records from the front, oldest first: those that the reader has already it drops.
    pub(crate) fn offer_history(
        &self,
        transfer: TransferId,
        records: &mut VecDeque<Record>,
    ) -> HistoryOffer {
        let rekey = |meta: &RecordMeta, payload: &[u8]| self.key_of_record(meta, payload);
        loop {
            if self.is_closed.load(Ordering::Acquire) {
                return HistoryOffer::Closed;
            }
            let mut changed = StatusMask::NONE;
            let offer =
                self.with(|state| state.offer_history(transfer, records, rekey, &mut changed));
            if !changed.is_empty() {
                self.raise(changed);
            }
            if let Some(offer) = offer {
                return offer;
            }
        }
    }

    /// The key hash that the reader's type makes of a record, or the name of its key. A record that
    /// cannot be read keeps the hash it has, as a message does.
    fn key_of_record(&self, meta: &RecordMeta, payload: &[u8]) -> KeyHash {
        let encapsulation = Encapsulation(meta.encapsulation);
        let key = match &self.keys {
            None => (self.rekey)(meta.kind, payload, encapsulation),
            Some(keys) => keys.name(meta.kind, payload, encapsulation),
        };
        key.unwrap_or(KeyHash(meta.key))
    }

    /// How far a transfer is, for the status.
    pub(crate) fn note_history(&self, transfer: TransferId, progress: HistoryProgress) {
        self.with(|state| state.note_history(transfer, progress));
    }

    /// The transfer has ended: the reader goes on with what has come meanwhile. False if it does not await
    /// it: the transfer is over, or the reader has not come to it.
    pub(crate) fn end_history(&self, transfer: TransferId, end: &HistoryEnd) -> bool {
        let Some(changed) = self.with(|state| state.end_history(transfer, end)) else {
            return false;
        };
        if !changed.is_empty() {
            self.raise(changed);
        }
        if end.lost_sources > 0 {
            tracing::warn!(
                "{}: of {} sources of history none is left that keeps it: samples that were written \
                 before may be missing",
                self.what,
                end.lost_sources
            );
        }
        self.history_waiters.notify();
        true
    }

    pub(crate) fn historical_data(&self) -> HistoricalDataStatus {
        let awaits_opening = self.awaits_opening();
        let mut status = self.with(|state| state.historical_data());
        status.is_awaiting |= awaits_opening;
        status
    }

    /// The history of the reader is in logs that are shut, or is there no more.
    pub(crate) fn set_awaits_opening(&self, awaits: bool) {
        self.awaits_opening.store(awaits, Ordering::Release);
    }

    pub(crate) fn awaits_opening(&self) -> bool {
        self.awaits_opening.load(Ordering::Acquire)
    }

    /// Whether the reader has the historical data of the writers that it is matched with. `None` if not
    /// yet.
    ///
    /// # Errors
    /// Why it will not come.
    pub(crate) fn has_historical_data(&self) -> Option<Result<()>> {
        if self.is_closed.load(Ordering::Acquire) {
            let text = format!("{} was deleted", self.what);
            return Some(Err(Error::AlreadyDeleted(text)));
        }
        let refused = self.refused.get().cloned();
        if let Some(error) = refused.or_else(|| self.group_status.check().err()) {
            return Some(Err(error));
        }
        // First: where this ends, a transfer has begun.
        if self.awaits_opening() {
            return None;
        }
        let has_history = self.with(|state| state.has_history());
        has_history.then_some(Ok(()))
    }

    /// A future is marked when that may have changed, until the result is dropped.
    pub(crate) fn wait_for_history(&self, future: &Arc<FutureWaker>) -> HistoryWait<'_> {
        self.history_waiters.wait(future)
    }
}

#[cfg(test)]
mod tests;
