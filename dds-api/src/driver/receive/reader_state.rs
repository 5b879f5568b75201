//! What a reader's lock guards: its cache, its backlog, its buffers and its statuses.

mod aside;
mod direct;
pub(super) mod historical;
pub(in crate::driver) mod logged;
mod writers;

use std::collections::VecDeque;
use std::sync::Arc;

use spindle_dds_core::{Held, MessageKind};
use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_transport::Fabric;

use super::arrival::{Arrival, ArrivalBatch};
use super::epoch_cursor::{EpochCursor, EpochItem};
use super::in_ring::InRings;
use super::payload::{Item, Payload, Pool};
use super::reader_epoch::{MatchedWriters, ReaderEpoch};
use crate::cache::{Arrived, Cache, Offer, Origin, Query, Whose};
use crate::condition::StateMasks;
use crate::handle::InstanceHandle;
use crate::properties::{ReaderConfig, Storage};
use crate::status::{
    IncompatibleCounts, LivelinessCounts, MatchCounts, RejectedReason, StatusMask, TotalCount,
};
use crate::subscription::SampleInfo;
use historical::HistoricalData;
use logged::LoggedAt;

/// Whether samples stay in the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Take,
}

/// Statuses of a reader.
#[derive(Debug, Default)]
pub(crate) struct ReaderStatuses {
    pub(crate) matched: MatchCounts,
    pub(crate) liveliness: LivelinessCounts,
    pub(crate) incompatible: IncompatibleCounts,
    pub(crate) lost: TotalCount,
    pub(crate) rejected: TotalCount,
    pub(crate) last_rejected: (RejectedReason, InstanceHandle),
    /// Writers that are matched now.
    pub(crate) writers: Vec<InstanceHandle>,
}

impl ReaderStatuses {
    /// Counts lost samples. Returns the status that changed, if any.
    #[inline]
    fn count_lost(&mut self, samples: u64) -> StatusMask {
        if samples == 0 {
            return StatusMask::NONE;
        }
        self.lost.add(i32::try_from(samples).unwrap_or(i32::MAX));
        StatusMask::SAMPLE_LOST
    }

    /// Counts a sample of this instance that was rejected. Returns the status that changed.
    fn count_rejected(&mut self, reason: RejectedReason, key: KeyHash) -> StatusMask {
        self.rejected.add(1);
        self.last_rejected = (reason, InstanceHandle::of_instance(key));
        StatusMask::SAMPLE_REJECTED
    }
}

/// What comes before the arrivals of the cursor, and holds them up.
enum Ahead<F: Fabric> {
    Nothing,
    /// The oldest message, for which the cache has no room. It was counted as rejected.
    Message(Arrived<Payload<F>>),
    /// History that is awaited; while arrivals are moved also what was kept aside for it. Of a reader that
    /// shows what logs have on disk only, all that arrives.
    History,
}

/// Whether a message is offered to the cache for the first time, or had to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    First,
    Again,
}

pub(crate) struct ReaderState<F: Fabric> {
    cache: Cache<Payload<F>>,
    cursor: EpochCursor<F>,
    /// The writers whose arrivals go into the cache now: of the cursor's epoch, or an earlier one.
    matched: Arc<MatchedWriters<F>>,
    /// Their indexes in the cache, by their indexes in the epoch.
    writers: Vec<u32>,
    ahead: Ahead<F>,
    /// Of a reader that has ever awaited history.
    historical: Option<Box<HistoricalData<F>>>,
    /// Most bytes that are kept aside while history is awaited.
    aside_bytes: usize,
    /// Of a reader that shows what logs have on disk only: how a message stands to them.
    logged: Option<LoggedAt>,
    /// Its DURABILITY is not VOLATILE.
    is_durable: bool,
    /// Number of the last epoch whose arrivals do not wait in the cursor.
    received_epoch: u64,
    in_rings: InRings<F>,
    /// Samples replaced by newer ones: released together, at most `REPLACED_MAX`.
    replaced: Vec<Held<F>>,
    /// The last sequence number by writer index of the cache; 0 before the first.
    sequences: Vec<u64>,
    /// The last sequence number of writers that failed, or that this participant lost with its
    /// group: those that come back go on after it. Of a durable reader that of all writers that are
    /// gone: their samples may be kept. The last ones; see [`writers`].
    absent: VecDeque<(InstanceHandle, u64)>,
    pool: Pool,
    /// Empty collections, reused by `select`; at most `COLLECTIONS_MAX`.
    collections: Vec<Vec<Item<F>>>,
    /// Collections that the application has.
    loans: u64,
    pub(crate) statuses: ReaderStatuses,
}

const REPLACED_MAX: usize = 64;
const COLLECTIONS_MAX: usize = 16;

impl<F: Fabric> ReaderState<F> {
    pub(crate) fn new(cache: Cache<Payload<F>>, aside_bytes: usize, is_durable: bool) -> Self {
        let epoch = Arc::new(ReaderEpoch::first());
        Self {
            cache,
            matched: epoch.matched.clone(),
            cursor: EpochCursor::new(epoch),
            writers: Vec::new(),
            ahead: Ahead::Nothing,
            historical: None,
            aside_bytes,
            logged: None,
            is_durable,
            received_epoch: 0,
            in_rings: InRings::default(),
            replaced: Vec::new(),
            sequences: Vec::new(),
            absent: VecDeque::new(),
            pool: Pool::default(),
            collections: Vec::new(),
            loans: 0,
            statuses: ReaderStatuses::default(),
        }
    }

    pub(crate) fn cache(&self) -> &Cache<Payload<F>> {
        &self.cache
    }

    /// Begins anew, before anything has come; `is_durable` unless its DURABILITY is VOLATILE.
    pub(crate) fn replace_cache(&mut self, cache: Cache<Payload<F>>, is_durable: bool) {
        self.cache = cache;
        self.is_durable = is_durable;
    }

    /// Bytes allocated for what the reader has, and for what waits for it.
    pub(crate) fn allocated(&self) -> [usize; 2] {
        let collections = self.collections.iter().map(Vec::capacity);
        let collections = collections.sum::<usize>() * size_of::<Item<F>>();
        let cache = self.cache.bytes(Payload::allocated);
        let caches = cache + self.pool.allocated() + collections;
        [caches, self.cursor.bytes() + self.bytes_aside()]
    }

    /// The epoch that the cursor has come to.
    pub(crate) fn epoch(&self) -> &Arc<ReaderEpoch<F>> {
        self.cursor.epoch()
    }

    /// Number of the last epoch whose arrivals do not wait: they go into the cache, or are kept
    /// aside.
    pub(crate) fn epoch_number(&self) -> u64 {
        self.received_epoch
    }

    /// Goes on with the writers of the next epoch. Returns the statuses that changed.
    fn enter(&mut self, matched: Arc<MatchedWriters<F>>) -> StatusMask {
        let mut changed = StatusMask::NONE;
        self.writers.clear();
        let handle = matched.handle();
        for writer in matched.writers() {
            let (index, is_new) = self.cache.admit(writer.handle);
            self.writers.push(index);
            if is_new {
                changed |= self.writer_matched(index, writer.handle);
                if matched.awaits.is_some() {
                    self.historical().await_first(index);
                }
            }
            if let Some(handle) = &handle {
                self.in_rings.add(handle, writer.rank, writer.class);
            }
        }
        for policies in &matched.refusals {
            self.statuses.incompatible.add(policies.iter().copied());
            changed |= StatusMask::REQUESTED_INCOMPATIBLE_QOS;
        }
        self.received_epoch = self.received_epoch.max(matched.number);
        if let Some(transfer) = matched.awaits {
            self.await_history(transfer);
        }
        self.matched = matched;
        changed
    }

    /// Whether arrivals do not go into the cache: it is full, or history comes first.
    pub(crate) fn is_blocked(&self) -> bool {
        !matches!(self.ahead, Ahead::Nothing)
    }

    /// Whether arrivals stay where they are, in their rings.
    #[inline]
    pub(crate) fn holds_off(&self) -> bool {
        self.is_blocked() && self.keeps_nothing_aside()
    }

    /// Whether there is work even if nothing new arrives.
    pub(crate) fn is_behind(&self) -> bool {
        self.in_rings.linger() || self.is_blocked() || self.cursor.is_behind()
    }

    /// Moves arrivals into the cache as far as it takes them, and copies samples out of rings that
    /// are held above `span_max`. A `new` batch of an epoch comes after that epoch's queue; what
    /// does not fit stays in the batch. Returns the statuses that changed.
    pub(crate) fn drain(
        &mut self,
        span_max: Option<u32>,
        mut new: Option<(&ReaderEpoch<F>, &mut ArrivalBatch<F>)>,
    ) -> StatusMask {
        let mut changed = StatusMask::NONE;
        let may_enter = self.has_arrivals();
        loop {
            if self.is_blocked() {
                self.go_on(&mut changed);
            }
            while !self.is_blocked()
                && self.cursor.has_any()
                && let Some(arrival) = self.next_arrival(&mut changed)
            {
                self.append(arrival, &mut changed);
            }
            if let Some((epoch, batch)) = &mut new
                && self.cursor.is_at(epoch)
            {
                while !self.is_blocked()
                    && let Some(arrival) = batch.pop()
                {
                    let arrival = self.with_cache_writer(arrival);
                    self.append(arrival, &mut changed);
                }
            }
            if !self.is_blocked() || !self.hold_up(&mut new, &mut changed) {
                break;
            }
        }
        self.release_replaced();
        self.relieve_if_due(span_max, may_enter);
        changed
    }

    /// Copies samples out of rings that are held above `span_max`, and all samples of ended
    /// epochs. An epoch can have ended only where the reader may have entered a new one.
    fn relieve_if_due(&mut self, span_max: Option<u32>, may_have_entered: bool) {
        if span_max.is_some() || may_have_entered || self.in_rings.linger() {
            self.relieve(span_max.unwrap_or(u32::MAX));
        }
    }

    fn append(&mut self, arrival: Arrival<F>, changed: &mut StatusMask) {
        match arrival {
            Arrival::Departed {
                writer,
                at,
                departure,
            } => *changed |= self.writer_departed(writer, at, departure),
            Arrival::Message(message) => {
                *changed |= self.count_lost(&message.origin);
                *changed |= self.offer(message, Attempt::First);
            }
        }
    }

    fn release_replaced(&mut self) {
        if !self.replaced.is_empty() {
            Held::release_all(self.replaced.drain(..));
        }
    }

    /// Translates the writer's index from that of the epoch to that of the cache.
    fn with_cache_writer(&self, mut arrival: Arrival<F>) -> Arrival<F> {
        let writer = arrival.writer_mut();
        *writer = self.writers[*writer as usize];
        arrival
    }

    /// Whether anything comes before a new batch.
    pub(crate) fn has_arrivals(&self) -> bool {
        self.is_blocked() || self.cursor.has_any()
    }

    /// What comes next, in this epoch or the one after it.
    /// `None` also where history comes before it.
    fn next_arrival(&mut self, changed: &mut StatusMask) -> Option<Arrival<F>> {
        loop {
            match self.cursor.next()? {
                EpochItem::Enter(matched) => {
                    *changed |= self.enter(matched);
                    if self.is_blocked() {
                        return None;
                    }
                }
                EpochItem::Arrival(arrival) => return Some(self.with_cache_writer(arrival)),
            }
        }
    }

    /// Counts the gap before a sample in its writer's sequence numbers: samples that a BEST_EFFORT
    /// writer dropped for lack of ring space.
    #[inline]
    fn count_lost(&mut self, origin: &Origin) -> StatusMask {
        let last = &mut self.sequences[origin.writer as usize];
        let before = std::mem::replace(last, origin.writer_sequence);
        self.statuses
            .count_lost(gap(before, origin.writer_sequence))
    }

    #[inline(never)]
    fn offer(&mut self, message: Arrived<Payload<F>>, attempt: Attempt) -> StatusMask {
        let Arrived {
            kind, key, origin, ..
        } = message;
        if let Payload::Ring(held) = &message.payload {
            let ring = (held.subgroup(), held.sender(), held.class());
            self.in_rings.select(ring);
        } else {
            self.in_rings.select_none();
        }
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
        let changed = match cache.offer(message, &mut evicted) {
            Offer::Kept(entry) => {
                self.in_rings.keep(entry, &mut self.cache);
                StatusMask::DATA_AVAILABLE
            }
            Offer::State { changed: true, .. } => StatusMask::DATA_AVAILABLE,
            Offer::State { changed: false, .. } => StatusMask::NONE,
            Offer::Full { reason, payload } => {
                self.ahead = Ahead::Message(Arrived {
                    kind,
                    key,
                    origin,
                    payload,
                });
                match attempt {
                    Attempt::First => self.statuses.count_rejected(reason, key),
                    Attempt::Again => StatusMask::NONE,
                }
            }
            Offer::Rejected { reason, .. } => {
                // A RELIABLE reader gets what it rejects again; this it does not.
                let is_lost = self.cache.holds_back() && kind == MessageKind::Data;
                let changed = self.statuses.count_lost(u64::from(is_lost));
                match attempt {
                    Attempt::First => changed | self.statuses.count_rejected(reason, key),
                    Attempt::Again => changed,
                }
            }
        };
        if self.replaced.len() == REPLACED_MAX {
            self.release_replaced();
        }
        changed
    }

    /// Copies samples out of the rings of epochs that the reader has entered, until no ring is held
    /// above `span_max` (parts of 256). Returns whether there is more to copy.
    pub(crate) fn relieve(&mut self, span_max: u32) -> bool {
        let Self { cache, pool, .. } = self;
        let [now, last] = [&self.matched, &self.cursor.epoch().matched];
        self.in_rings.relieve(cache, pool, [now, last], span_max)
    }

    /// Reads or takes samples, in presentation order.
    pub(crate) fn select(
        &mut self,
        access: Access,
        query: &Query,
        config: ReaderConfig,
    ) -> Vec<Item<F>> {
        if self.cache.is_empty() {
            return Vec::new();
        }
        let mut items = self.collections.pop().unwrap_or_default();
        let Self { cache, pool, .. } = self;
        match access {
            Access::Read => cache.read(query, &mut items, &mut |payload| {
                Payload::Copy(pool.copy(payload.bytes()))
            }),
            Access::Take => cache.take(query, &mut items),
        }
        if items.is_empty() {
            self.keep_collection(items);
            return Vec::new();
        }
        self.loans += 1;
        if self.cache.is_empty() {
            self.in_rings.are_taken();
        }
        if config.storage == Storage::Copy || config.untrusted {
            let payloads = items.iter_mut().filter_map(|(_, it)| it.as_mut());
            Held::release_all(payloads.filter_map(|payload| self.pool.copy_out(payload)));
        }
        items
    }

    /// Drops a sample that cannot be decoded, and counts it as lost. False if it was dropped
    /// before.
    pub(crate) fn lose(&mut self, access: Access, info: &SampleInfo) -> bool {
        let Self { cache, pool, .. } = self;
        if access == Access::Read {
            let Some(payload) = cache.remove_sample(info.publication_handle, info.position) else {
                return false;
            };
            pool.recycle(payload);
        }
        self.statuses.lost.add(1);
        true
    }

    /// Drops everything: the reader is deleted.
    pub(crate) fn discard(&mut self) {
        self.ahead = Ahead::Nothing;
        self.matched = self.cursor.discard();
        self.received_epoch = self.matched.number;
        self.discard_history();
        self.logged = None;
        self.in_rings.clear();
        let all = Query {
            max: usize::MAX,
            masks: StateMasks::ANY,
            whose: Whose::Any,
        };
        let mut items = Vec::new();
        self.cache.take(&all, &mut items);
    }

    pub(crate) fn loans(&self) -> u64 {
        self.loans
    }

    /// Takes back a collection that `select` returned; `has_payloads` unless all were taken out.
    #[inline]
    pub(crate) fn return_loan(&mut self, mut items: Vec<Item<F>>, has_payloads: bool) {
        self.loans -= 1;
        if has_payloads {
            let payloads = items.iter_mut().filter_map(|(_, payload)| payload.take());
            payloads.for_each(|payload| self.pool.recycle(payload));
        }
        items.clear();
        self.keep_collection(items);
    }

    fn keep_collection(&mut self, items: Vec<Item<F>>) {
        if items.capacity() > 0 && self.collections.len() < COLLECTIONS_MAX {
            self.collections.push(items);
        }
    }
}

/// How many samples are missing between two sequence numbers of a writer, which may be any
/// numbers: they come from the writer's process. 0 before the first sample: a reader that joins
/// late has lost nothing.
fn gap(before: u64, now: u64) -> u64 {
    match before {
        0 => 0,
        before => now.saturating_sub(before).saturating_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_between_any_two_sequence_numbers_is_counted() {
        for (before, now, expected) in [
            (0, 7, 0),
            (7, 8, 0),
            (7, 10, 2),
            (7, 7, 0),
            (7, 3, 0),
            (1, u64::MAX, u64::MAX - 2),
            (u64::MAX, 1, 0),
            (u64::MAX, u64::MAX, 0),
        ] {
            assert_eq!(gap(before, now), expected, "{before} {now}");
        }
    }
}
