//! Historical data: what writers wrote before the reader matched them.
//!
//! ```text
//!   enter an epoch that awaits a transfer    begin, offer .. offer, end    what was kept aside, live
//!   ---------------------------------------> into the cache -------------> into the cache
//!        arrivals are kept aside
//! ```
//!
//! The history of a writer ends where its live samples begin, and no sample is in both. What the reader
//! has of a writer already, it knows by the sequence numbers: it asks for what comes after, and skips
//! what comes all the same. Gaps in a history are samples that were replaced, and not lost.
//!
//! Where the participant loses its group, the transfer is cut off, and with it what was kept aside of
//! writers whose history was awaited: it comes again when the group does, in its place. So a reader has
//! shown a prefix of what each writer wrote.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use spindle_dds_core::MessageKind;
use spindle_dds_core::storage::{Handover, Record, RecordMeta};
use spindle_dds_idl_runtime::{Encapsulation, KeyHash};
use spindle_dds_transport::Fabric;

use super::super::arrival::DeliveryPoint;
use super::super::epoch_cursor::EpochItem;
use super::super::payload::Payload;
use super::{Ahead, ReaderState};
use crate::cache::{Arrived, Offer, Origin};
use crate::handle::{Guid, InstanceHandle};
use crate::history::{HistoryEnd, HistoryOffer, HistoryProgress, TransferId};
use crate::status::{HistoricalDataStatus, StatusMask};

/// What a reader has to do with history.
pub(super) struct HistoricalData<F: Fabric> {
    /// What has come meanwhile. Arrivals have the indexes of their writers in their epochs.
    pub(super) handover: Handover<EpochItem<F>>,
    /// The transfer that is awaited.
    awaited: Option<TransferId>,
    /// The last transfer that is over.
    over: Option<TransferId>,
    /// Transfers of the epochs that are kept aside.
    pub(super) transfers_aside: usize,
    /// What was next had no room aside.
    pub(super) is_aside_full: bool,
    /// The transfer was cut off, and the place where the group was lost is ahead.
    pub(super) is_cut_off: bool,
    /// Writers of which nothing comes before their history, by their indexes in the cache.
    pub(super) first: BTreeSet<u32>,
    /// Writers of records that are not matched, and where their last records are.
    unmatched: BTreeMap<u32, DeliveryPoint>,
    /// The entries of the cache when it had no room for the next record.
    full_at: Option<u64>,
    /// The reader shows what logs have on disk only.
    pub(super) awaits_logs: bool,
    /// The position of the next record, if the logs did not have it.
    unlogged_at: Option<u64>,
    /// The next record was counted as rejected.
    is_rejected: bool,
    /// What brings the history is to be told that it can go on.
    is_due: bool,
    progress: HistoryProgress,
    lost_sources: usize,
}

/// How a transfer stands to the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The reader has not come to it.
    Ahead,
    Awaited,
    Over,
}

/// Most records, and about most bytes, that go into the cache under one lock.
const RECORDS_AT_ONCE: usize = 64;
const BYTES_AT_ONCE: usize = 256 << 10;

impl<F: Fabric> HistoricalData<F> {
    fn new(aside_bytes: usize) -> Self {
        Self {
            handover: Handover::new(aside_bytes),
            awaited: None,
            over: None,
            transfers_aside: 0,
            is_aside_full: false,
            is_cut_off: false,
            first: BTreeSet::new(),
            unmatched: BTreeMap::new(),
            full_at: None,
            awaits_logs: false,
            unlogged_at: None,
            is_rejected: false,
            is_due: false,
            progress: HistoryProgress::default(),
            lost_sources: 0,
        }
    }

    /// A writer was matched by an epoch that awaits a transfer.
    pub(super) fn await_first(&mut self, writer: u32) {
        self.first.insert(writer);
    }

    pub(super) fn writer_departed(&mut self, writer: u32) {
        self.first.remove(&writer);
    }

    /// Something comes before the arrivals of the cursor.
    pub(super) fn is_ahead(&self) -> bool {
        self.awaited.is_some() || self.is_cut_off || self.awaits_logs || !self.handover.is_empty()
    }

    fn begin(&mut self, transfer: TransferId) {
        self.handover.begin();
        self.awaited = Some(transfer);
        self.is_aside_full = false;
        self.is_due = true;
        self.progress = HistoryProgress::default();
        self.lost_sources = 0;
    }

    fn end(&mut self, transfer: TransferId) {
        self.handover.end();
        self.awaited = None;
        self.over = self.over.max(Some(transfer));
        self.full_at = None;
        self.unlogged_at = None;
        self.is_rejected = false;
        self.progress.donors = 0;
    }
}

impl<F: Fabric> ReaderState<F> {
    #[cold]
    pub(super) fn historical(&mut self) -> &mut HistoricalData<F> {
        let new = || Box::new(HistoricalData::new(self.aside_bytes));
        self.historical.get_or_insert_with(new)
    }

    /// An epoch begins before which this transfer is to come.
    #[cold]
    pub(super) fn await_history(&mut self, transfer: TransferId) {
        let is_lost = self.cursor.has_loss();
        let historical = self.historical();
        historical.begin(transfer);
        self.ahead = Ahead::History;
        if is_lost {
            // Its sources are of a group that is lost.
            self.cut_off();
        }
    }

    /// Whether the transfer can go on because something was taken, or logs have what comes next.
    pub(super) fn look_for_room(&mut self) {
        let entries = self.cache.len();
        let unlogged_at = self.historical.as_ref().and_then(|it| it.unlogged_at);
        let is_logged = unlogged_at.is_some_and(|position| self.is_logged(position));
        let historical = self.historical();
        if historical.full_at.is_some_and(|full_at| entries < full_at) {
            historical.full_at = None;
            historical.is_due = true;
        }
        if is_logged {
            historical.unlogged_at = None;
            historical.is_due = true;
        }
    }

    pub(super) fn is_awaiting(&self) -> bool {
        let awaited = self.historical.as_ref().and_then(|it| it.awaited);
        awaited.is_some()
    }

    fn stage(&self, transfer: TransferId) -> Stage {
        match &self.historical {
            Some(it) if it.awaited == Some(transfer) => Stage::Awaited,
            Some(it) if it.over >= Some(transfer) => Stage::Over,
            _ => Stage::Ahead,
        }
    }

    /// Whether what brings the history is to be told that it can go on.
    pub(crate) fn take_history_wake(&mut self) -> bool {
        let historical = self.historical.as_mut();
        historical.is_some_and(|it| std::mem::take(&mut it.is_due))
    }

    /// Whether the reader is in a view, and no history is to come that is known of.
    pub(crate) fn has_history(&self) -> bool {
        self.matched.is_in_view() && !self.has_transfer()
    }

    /// Whether history is awaited, now or after what waits.
    fn has_transfer(&self) -> bool {
        let aside = self.historical.as_ref().map_or(0, |it| it.transfers_aside);
        self.is_awaiting() || aside > 0 || self.cursor.has_transfer()
    }

    pub(crate) fn historical_data(&self) -> HistoricalDataStatus {
        let historical = self.historical.as_ref();
        let progress = historical.map(|it| it.progress).unwrap_or_default();
        HistoricalDataStatus {
            is_awaiting: self.has_transfer(),
            samples: progress.samples,
            bytes: progress.bytes,
            donors: progress.donors,
            lost_sources: historical.map_or(0, |it| it.lost_sources),
        }
    }

    /// Bytes that are kept aside.
    pub(super) fn bytes_aside(&self) -> usize {
        self.historical.as_ref().map_or(0, |it| it.handover.bytes())
    }

    /// The sequence numbers after which records are to come, by the GUIDs of the writers. `None` if the
    /// reader has not come to the transfer.
    pub(crate) fn begin_history(&self, transfer: TransferId) -> Option<BTreeMap<[u8; 16], u64>> {
        let lasts = match self.stage(transfer) {
            Stage::Ahead => return None,
            Stage::Over => return Some(BTreeMap::new()),
            Stage::Awaited => self.matched.writers().zip(&self.writers),
        };
        let lasts = lasts.map(|(writer, index)| (writer.handle, self.sequences[*index as usize]));
        let lasts = lasts.chain(self.absent.iter().copied());
        let known = lasts.filter(|(_, last)| *last > 0);
        Some(
            known
                .filter_map(|(writer, last)| Some((writer.guid()?.0, last)))
                .collect(),
        )
    }

    pub(crate) fn note_history(&mut self, transfer: TransferId, progress: HistoryProgress) {
        if self.stage(transfer) == Stage::Awaited {
            self.historical().progress = progress;
        }
    }

    /// Puts records into the cache, from the front. `rekey` makes the key hash of a message anew. `None`
    /// if there is more to do, after the lock was free for a moment.
    pub(crate) fn offer_history(
        &mut self,
        transfer: TransferId,
        records: &mut VecDeque<Record>,
        rekey: impl Fn(&RecordMeta, &[u8]) -> KeyHash,
        changed: &mut StatusMask,
    ) -> Option<HistoryOffer> {
        match self.stage(transfer) {
            Stage::Ahead => return Some(HistoryOffer::NotYet),
            Stage::Over => return Some(HistoryOffer::Closed),
            Stage::Awaited => {}
        }
        let mut bytes = 0;
        for _ in 0..RECORDS_AT_ONCE {
            let Some(record) = records.front() else {
                break;
            };
            let position = record.meta().position;
            if !self.is_logged(position) {
                self.historical().unlogged_at = Some(position);
                self.release_replaced();
                return Some(HistoryOffer::Full);
            }
            bytes += record.bytes().len();
            if !self.offer_record(record, &rekey, changed) {
                let entries = self.cache.len();
                let historical = self.historical();
                historical.full_at = Some(entries);
                self.release_replaced();
                return Some(HistoryOffer::Full);
            }
            records.pop_front();
            if bytes >= BYTES_AT_ONCE {
                break;
            }
        }
        self.release_replaced();
        records.is_empty().then_some(HistoryOffer::Taken)
    }

    /// False if the cache has no room for it, and may have after a take.
    fn offer_record(
        &mut self,
        record: &Record,
        rekey: &impl Fn(&RecordMeta, &[u8]) -> KeyHash,
        changed: &mut StatusMask,
    ) -> bool {
        let meta = record.meta();
        let writer = self.writer_of(&meta);
        if meta.sequence <= self.sequences[writer as usize] {
            // The reader has it.
            return true;
        }
        let key = match self.is_rekeyed(writer) {
            true => rekey(&meta, record.payload()),
            false => KeyHash(meta.key),
        };
        let origin = Origin {
            writer,
            writer_sequence: meta.sequence,
            position: meta.position,
            timestamp: meta.timestamp,
            encapsulation: Encapsulation(meta.encapsulation),
        };
        let arrived = Arrived {
            kind: meta.kind,
            key,
            origin,
            payload: Payload::Copy(self.pool.copy(record.payload())),
        };
        if !self.take_record(arrived, changed) {
            return false;
        }
        self.sequences[writer as usize] = meta.sequence;
        true
    }

    /// The index of a record's writer in the cache. One that is not matched is admitted until the end
    /// of the transfer.
    fn writer_of(&mut self, meta: &RecordMeta) -> u32 {
        let handle = InstanceHandle::of_entity(Guid(meta.writer));
        let (writer, is_new) = self.cache.admit(handle);
        if is_new {
            self.go_on_after_last(writer, handle);
        }
        let at = DeliveryPoint {
            position: meta.position,
            timestamp: meta.timestamp,
        };
        let unmatched = &mut self.historical().unmatched;
        match unmatched.get_mut(&writer) {
            Some(last) => *last = at,
            None if is_new => drop(unmatched.insert(writer, at)),
            None => {}
        }
        writer
    }

    /// Whether the key hashes of a writer's messages are replaced. How the type of one hashes keys that
    /// is not matched is not known.
    fn is_rekeyed(&self, writer: u32) -> bool {
        match self.writers.iter().position(|known| *known == writer) {
            Some(_) if !self.matched.rekeys => false,
            Some(at) => self
                .matched
                .writers()
                .nth(at)
                .is_some_and(|it| it.is_rekeyed),
            None => true,
        }
    }

    fn take_record(&mut self, arrived: Arrived<Payload<F>>, changed: &mut StatusMask) -> bool {
        let (kind, key) = (arrived.kind, arrived.key);
        let Self {
            cache,
            pool,
            replaced,
            ..
        } = self;
        let mut evicted = |old| match old {
            Payload::Ring(held) => replaced.push(held),
            Payload::Copy(_) => pool.recycle(old),
        };
        let is_first = !self.historical.as_ref().is_some_and(|it| it.is_rejected);
        let is_taken = match cache.offer(arrived, &mut evicted) {
            Offer::Kept(_) => {
                *changed |= StatusMask::DATA_AVAILABLE;
                true
            }
            Offer::State {
                changed: state,
                payload,
            } => {
                pool.recycle(payload);
                if state {
                    *changed |= StatusMask::DATA_AVAILABLE;
                }
                true
            }
            Offer::Full { reason, payload } => {
                pool.recycle(payload);
                if is_first {
                    *changed |= self.statuses.count_rejected(reason, key);
                }
                false
            }
            Offer::Rejected { reason, payload } => {
                pool.recycle(payload);
                let is_lost = cache.holds_back() && kind == MessageKind::Data;
                *changed |= self.statuses.count_lost(u64::from(is_lost));
                if is_first {
                    *changed |= self.statuses.count_rejected(reason, key);
                }
                true
            }
        };
        self.historical().is_rejected = !is_taken;
        is_taken
    }

    /// The transfer has ended: what was kept aside comes next. The statuses that changed; `None` if it
    /// is not the one that is awaited.
    pub(crate) fn end_history(
        &mut self,
        transfer: TransferId,
        end: &HistoryEnd,
    ) -> Option<StatusMask> {
        if self.stage(transfer) != Stage::Awaited {
            return None;
        }
        for (writer, last) in &end.lasts {
            self.note_last(InstanceHandle::of_entity(Guid(*writer)), *last);
        }
        let changed = self.dismiss_unmatched();
        let historical = self.historical();
        historical.end(transfer);
        historical.first.clear();
        historical.lost_sources = end.lost_sources;
        Some(changed)
    }

    /// A writer's history ends with this sequence number.
    fn note_last(&mut self, writer: InstanceHandle, last: u64) {
        let known = match self.cache.index_of(writer) {
            Some(index) => self.sequences.get_mut(index as usize),
            None => {
                let mut absent = self.absent.iter_mut();
                absent.find(|it| it.0 == writer).map(|it| &mut it.1)
            }
        };
        if let Some(known) = known {
            *known = last.max(*known);
        }
    }

    /// Writers of records that are not matched leave the cache: their instances lose them.
    fn dismiss_unmatched(&mut self) -> StatusMask {
        let mut changed = StatusMask::NONE;
        for (writer, at) in std::mem::take(&mut self.historical().unmatched) {
            self.note_absent(writer, self.cache.writer(writer));
            let origin = Origin {
                writer,
                writer_sequence: 0,
                position: at.position,
                timestamp: at.timestamp,
                encapsulation: Encapsulation::CDR_LE,
            };
            if self.cache.writer_gone(origin, false) {
                changed |= StatusMask::DATA_AVAILABLE;
            }
        }
        changed
    }

    /// The group is lost, and the transfer with it.
    pub(super) fn cut_off(&mut self) -> StatusMask {
        let changed = self.dismiss_unmatched();
        let historical = self.historical();
        if let Some(transfer) = historical.awaited {
            historical.end(transfer);
        }
        historical.is_cut_off = true;
        historical.is_due = true;
        changed
    }

    /// The reader is deleted.
    pub(super) fn discard_history(&mut self) {
        self.historical = None;
    }
}
