//! What a reader's lock guards: its cache, its backlog, buffers, statuses.

mod run;

use std::sync::Arc;

use spindle_dds_core::Held;
use spindle_dds_idl_runtime::Encapsulation;
use spindle_dds_transport::Fabric;

use crate::cache::{Arrived, Cache, Offer, Origin, Query, Whose};
use crate::condition::StateMasks;
use crate::driver::receive::arrival::{Arrival, ArrivalBatch, DeliveryPoint, Departure, Message};
use crate::driver::receive::epoch_cursor::{EpochCursor, EpochItem};
use crate::driver::receive::in_ring::InRings;
use crate::driver::receive::payload::{Item, Payload, Pool};
use crate::driver::receive::reader_epoch::{MatchedWriters, ReaderEpoch};
use crate::handle::InstanceHandle;
use crate::properties::{ReaderConfig, Storage};
use crate::status::{
    IncompatibleCounts, LivelinessCounts, MatchCounts, RejectedReason, StatusMask, TotalCount,
};
use crate::subscription::SampleInfo;

/// Whether samples are left in the reader.
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
    /// So many samples were lost. The status that changed, if any were.
    #[inline]
    fn count_lost(&mut self, samples: u64) -> StatusMask {
        if samples == 0 {
            return StatusMask::NONE;
        }
        self.lost.add(i32::try_from(samples).unwrap_or(i32::MAX));
        StatusMask::SAMPLE_LOST
    }
}

pub(crate) struct ReaderState<F: Fabric> {
    cache: Cache<Payload<F>>,
    /// From where arrivals come.
    cursor: EpochCursor<F>,
    /// Whose arrivals go into the cache now: of the cursor's link, or one before it.
    matched: Arc<MatchedWriters<F>>,
    /// The cache's indexes of the writers there.
    writers: Vec<u32>,
    /// The oldest message that the cache has no room for: before all of the cursor.
    waiting: Option<Message<F>>,
    in_rings: InRings<F>,
    /// Samples that newer ones have replaced, to be let go together.
    replaced: Vec<Held<F>>,
    /// By writer: the writer sequence number that came last; 0 before the first.
    sequences: Vec<u64>,
    pool: Pool,
    /// Empty collections to be used again.
    collections: Vec<Vec<Item<F>>>,
    /// Those that are out.
    loans: u64,
    pub(crate) statuses: ReaderStatuses,
}

/// Replaced samples that are let go together at most.
const REPLACED_MAX: usize = 64;
/// Most collections kept.
const COLLECTIONS_MAX: usize = 16;

impl<F: Fabric> ReaderState<F> {
    pub(crate) fn new(cache: Cache<Payload<F>>) -> Self {
        let link = Arc::new(ReaderEpoch::first());
        Self {
            cache,
            matched: link.matched.clone(),
            cursor: EpochCursor::new(link),
            writers: Vec::new(),
            waiting: None,
            in_rings: InRings::default(),
            replaced: Vec::new(),
            sequences: Vec::new(),
            pool: Pool::default(),
            collections: Vec::new(),
            loans: 0,
            statuses: ReaderStatuses::default(),
        }
    }

    pub(crate) fn cache(&self) -> &Cache<Payload<F>> {
        &self.cache
    }

    pub(crate) fn link(&self) -> &Arc<ReaderEpoch<F>> {
        self.cursor.link()
    }

    /// Number of the epoch whose arrivals go into the cache now.
    pub(crate) fn epoch(&self) -> u64 {
        self.matched.number
    }

    /// Goes on with the writers of the next epoch. Returns the statuses that changed.
    fn enter(&mut self, matched: Arc<MatchedWriters<F>>) -> StatusMask {
        let mut changed = StatusMask::NONE;
        self.writers.clear();
        let subgroup = matched.subgroup();
        for writer in matched.writers() {
            let (index, is_new) = self.cache.admit(writer.handle);
            self.writers.push(index);
            if is_new {
                changed |= self.writer_came(index, writer.handle);
            }
            if let Some(subgroup) = &subgroup {
                let len_max = matched.ring_max;
                self.in_rings
                    .add(subgroup, writer.place, writer.ring, len_max);
            }
        }
        for policies in &matched.refusals {
            self.statuses.incompatible.add(policies.iter().copied());
            changed |= StatusMask::REQUESTED_INCOMPATIBLE_QOS;
        }
        self.matched = matched;
        changed
    }

    /// Whether the cache is full and messages wait in their rings.
    pub(crate) fn is_blocked(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether there is something to be done even if nothing new arrives.
    pub(crate) fn is_behind(&self) -> bool {
        self.in_rings.linger() || self.is_blocked() || self.cursor.is_behind()
    }

    /// Moves arrivals into the cache, as far as it takes them, and sees to it
    /// that no ring is held above `span_max`. What is `new` by a link comes after what lies
    /// in its queue. Returns the statuses that changed.
    pub(crate) fn drain(
        &mut self,
        span_max: Option<u32>,
        new: Option<(&ReaderEpoch<F>, &mut ArrivalBatch<F>)>,
    ) -> StatusMask {
        let mut changed = StatusMask::NONE;
        let may_go_on = self.has_arrivals();
        while self.has_arrivals()
            && let Some(arrival) = self.next_arrival(&mut changed)
        {
            self.take_in(arrival, &mut changed);
            if self.is_blocked() {
                break;
            }
        }
        if let Some((link, batch)) = new
            && self.cursor.is_at(link)
        {
            while !self.is_blocked()
                && let Some(arrival) = batch.pop()
            {
                let arrival = self.renamed(arrival);
                self.take_in(arrival, &mut changed);
            }
        }
        self.release_replaced();
        if self.is_blocked() {
            self.cursor.catch_up();
        }
        self.relieve_if_due(span_max, may_go_on);
        changed
    }

    /// Sees to it that no ring is held above `span_max`, and that nothing stays where it is
    /// of epochs that have ended: one more may have only where it `may_go_on`.
    fn relieve_if_due(&mut self, span_max: Option<u32>, may_go_on: bool) {
        if span_max.is_some() || may_go_on || self.in_rings.linger() {
            self.relieve(span_max.unwrap_or(u32::MAX));
        }
    }

    fn take_in(&mut self, arrival: Arrival<F>, changed: &mut StatusMask) {
        match arrival {
            Arrival::Gone {
                writer,
                at,
                departure,
            } => *changed |= self.writer_gone(writer, at, departure),
            Arrival::Message(message) => {
                *changed |= self.count_lost(&message.origin);
                *changed |= self.offer_next(message);
            }
        }
    }

    #[inline(never)]
    fn offer_next(&mut self, message: Message<F>) -> StatusMask {
        let changed = self.offer(message);
        if self.replaced.len() == REPLACED_MAX {
            self.release_replaced();
        }
        changed
    }

    fn release_replaced(&mut self) {
        if !self.replaced.is_empty() {
            Held::release_all(self.replaced.drain(..));
        }
    }

    /// From the link's names of writers to those of the cache.
    fn renamed(&self, mut arrival: Arrival<F>) -> Arrival<F> {
        let writer = arrival.writer();
        *writer = self.writers[*writer as usize];
        arrival
    }

    /// Whether anything may come before what is new.
    fn has_arrivals(&self) -> bool {
        self.waiting.is_some() || self.cursor.has_any()
    }

    /// What comes next, in this epoch or the one after it.
    fn next_arrival(&mut self, changed: &mut StatusMask) -> Option<Arrival<F>> {
        if let Some(message) = self.waiting.take() {
            return Some(Arrival::Message(message));
        }
        loop {
            match self.cursor.next()? {
                EpochItem::Enter(matched) => *changed |= self.enter(matched),
                EpochItem::Arrival(arrival) => return Some(self.renamed(arrival)),
            }
        }
    }

    /// A gap in a writer's numbers: samples that a BEST_EFFORT writer dropped for
    /// want of room. One that is offered again leaves none.
    #[inline]
    fn count_lost(&mut self, origin: &Origin) -> StatusMask {
        let last = &mut self.sequences[origin.writer as usize];
        let before = std::mem::replace(last, origin.writer_sequence);
        self.statuses
            .count_lost(left_out(before, origin.writer_sequence))
    }

    fn offer(&mut self, message: Message<F>) -> StatusMask {
        let Message {
            kind,
            key,
            origin,
            held,
        } = message;
        let whose = (held.subgroup(), held.sender(), held.class());
        self.in_rings.come_to(whose);
        let arrived = Arrived {
            kind,
            key,
            origin,
            payload: Payload::Ring(held),
        };
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
        match cache.offer(arrived, &mut evicted) {
            Offer::Kept(entry) => {
                self.in_rings.keep(entry, &mut self.cache);
                StatusMask::DATA_AVAILABLE
            }
            Offer::State { changed: true, .. } => StatusMask::DATA_AVAILABLE,
            Offer::State { changed: false, .. } => StatusMask::NONE,
            Offer::Full(Payload::Ring(held)) => {
                self.waiting = Some(Message {
                    kind,
                    key,
                    origin,
                    held,
                });
                StatusMask::NONE
            }
            Offer::Full(Payload::Copy(_)) => StatusMask::NONE,
            Offer::Rejected { reason, .. } => {
                self.statuses.rejected.add(1);
                self.statuses.last_rejected = (reason, InstanceHandle::of_instance(key));
                StatusMask::SAMPLE_REJECTED
            }
        }
    }

    /// A writer is matched, and alive by that: its participant is in the view.
    fn writer_came(&mut self, writer: u32, handle: InstanceHandle) -> StatusMask {
        if writer as usize >= self.sequences.len() {
            self.sequences.resize(writer as usize + 1, 0);
        }
        self.sequences[writer as usize] = 0;
        self.statuses.writers.push(handle);
        self.statuses.matched.matched(handle);
        self.statuses.liveliness.came(handle);
        StatusMask::SUBSCRIPTION_MATCHED | StatusMask::LIVELINESS_CHANGED
    }

    fn writer_gone(&mut self, writer: u32, at: DeliveryPoint, departure: Departure) -> StatusMask {
        let handle = self.cache.writer(writer);
        self.statuses.writers.retain(|known| *known != handle);
        self.statuses.matched.unmatched(handle);
        let disposes = match departure {
            Departure::Left { disposes } => {
                self.statuses.liveliness.left(handle);
                disposes
            }
            Departure::Failed => {
                self.statuses.liveliness.failed(handle);
                false
            }
        };
        let origin = Origin {
            writer,
            writer_sequence: 0,
            position: at.position,
            timestamp: at.timestamp,
            encapsulation: Encapsulation::CDR_LE,
        };
        let mut changed = StatusMask::SUBSCRIPTION_MATCHED | StatusMask::LIVELINESS_CHANGED;
        if self.cache.writer_gone(origin, disposes) {
            changed |= StatusMask::DATA_AVAILABLE;
        }
        changed
    }

    /// See [`InRings::relieve`], of the rings of epochs that the reader has come to.
    pub(crate) fn relieve(&mut self, span_max: u32) -> bool {
        let Self { cache, pool, .. } = self;
        let [now, last] = [&self.matched, &self.cursor.link().matched];
        self.in_rings.relieve(cache, pool, [now, last], span_max)
    }

    /// Hands samples out, in order of presentation.
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
            self.keep(items);
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

    /// Throws away a sample whose bytes make no sense. Whether it was there still.
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

    /// Throws everything away: the reader is deleted.
    pub(crate) fn discard(&mut self) {
        self.waiting = None;
        self.matched = self.cursor.discard();
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

    /// Takes a collection back that was handed out.
    pub(crate) fn hand_back(&mut self, mut items: Vec<Item<F>>) {
        self.loans -= 1;
        for (_, payload) in items.drain(..) {
            if let Some(payload) = payload {
                self.pool.recycle(payload);
            }
        }
        self.keep(items);
    }

    fn keep(&mut self, items: Vec<Item<F>>) {
        if items.capacity() > 0 && self.collections.len() < COLLECTIONS_MAX {
            self.collections.push(items);
        }
    }
}

/// How many samples of a writer are missing between two numbers, which are what that
/// writer's process says. Whoever comes late, before the first, has lost nothing.
fn left_out(before: u64, now: u64) -> u64 {
    match before {
        0 => 0,
        before => now.saturating_sub(before).saturating_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_numbers_of_a_writer_can_be_compared() {
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
            assert_eq!(left_out(before, now), expected, "{before} {now}");
        }
    }
}
