//! What a reader's lock guards: its cache, its backlog, buffers, statuses.

use std::collections::VecDeque;

use spindle_dds_core::{Held, Kind, Ring};
use spindle_dds_idl_runtime::{Encapsulation, KeyHash};
use spindle_dds_transport::{Fabric, Rank};

use super::inlet::{Access, Link};
use super::payload::{Item, Payload, Pool};
use crate::cache::{Arrived, Cache, EntryRef, Offer, Origin, Query, Whose};
use crate::condition::StateMasks;
use crate::handle::InstanceHandle;
use crate::properties::{ReaderConfig, Storage};
use crate::status::{IncompatibleCounts, MatchCounts, RejectedReason, StatusMask, TotalCount};
use crate::subscription::SampleInfo;

/// What comes from the engine, in order.
#[derive(Debug)]
pub(super) enum Arrival<F: Fabric> {
    Message(Message<F>),
    /// A writer is gone, at this place of the stream; without one, right behind
    /// what arrived last.
    Gone {
        writer: u32,
        at: Option<Stamp>,
        disposes: bool,
    },
}

/// Where and when something stands in a stream, the same at every reader.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stamp {
    pub(super) position: u64,
    pub(super) timestamp: i64,
}

#[derive(Debug)]
pub(super) struct Message<F: Fabric> {
    pub(super) kind: Kind,
    pub(super) key: KeyHash,
    pub(super) origin: Origin,
    pub(super) held: Held<F>,
}

/// Statuses of a reader.
#[derive(Debug, Default)]
pub(crate) struct ReaderStatuses {
    pub(crate) matched: MatchCounts,
    pub(crate) incompatible: IncompatibleCounts,
    pub(crate) lost: TotalCount,
    pub(crate) rejected: TotalCount,
    pub(crate) last_rejected: (RejectedReason, InstanceHandle),
    /// Writers that are matched now.
    pub(crate) writers: Vec<InstanceHandle>,
}

/// Samples of one ring of one sender that still lie there, oldest first.
#[derive(Debug)]
struct InRing {
    sender: Rank,
    ring: Ring,
    entries: VecDeque<EntryRef>,
}

pub(super) struct Shelf<F: Fabric> {
    cache: Cache<Payload<F>>,
    /// The oldest message that the cache has no room for; those behind it
    /// wait in the queue of arrivals.
    waiting: Option<Message<F>>,
    in_ring: Vec<InRing>,
    /// Of what arrived last.
    last: Stamp,
    /// By writer: the writer sequence number that came last.
    sequences: Vec<u64>,
    pool: Pool,
    /// Empty collections to be used again.
    collections: Vec<Vec<Item<F>>>,
    pub(super) statuses: ReaderStatuses,
}

/// Bytes that are copied out of rings at once.
const RELIEVE_BYTES_MAX: usize = 4 << 20;
/// Most collections kept.
const COLLECTIONS_MAX: usize = 16;

impl<F: Fabric> Shelf<F> {
    pub(super) fn new(cache: Cache<Payload<F>>) -> Self {
        Self {
            cache,
            waiting: None,
            in_ring: Vec::new(),
            last: Stamp::default(),
            sequences: Vec::new(),
            pool: Pool::default(),
            collections: Vec::new(),
            statuses: ReaderStatuses::default(),
        }
    }

    pub(super) fn cache(&self) -> &Cache<Payload<F>> {
        &self.cache
    }

    /// Gets ready for the writers of a link.
    pub(super) fn connect(&mut self, link: &Link<F>, messages_max: usize) {
        self.cache
            .set_writers(link.writers.iter().map(|writer| writer.handle).collect());
        self.sequences = vec![0; link.writers.len()];
        for writer in &link.writers {
            self.statuses.matched.matched(writer.handle);
            self.statuses.writers.push(writer.handle);
            if self.in_ring_at(writer.place, writer.ring).is_none() {
                self.in_ring.push(InRing {
                    sender: writer.place,
                    ring: writer.ring,
                    entries: VecDeque::with_capacity(messages_max),
                });
            }
        }
    }

    fn in_ring_at(&self, sender: Rank, ring: Ring) -> Option<usize> {
        self.in_ring
            .iter()
            .position(|known| known.sender == sender && known.ring == ring)
    }

    /// Whether the cache is full and messages wait in their rings.
    pub(super) fn is_blocked(&self) -> bool {
        self.waiting.is_some()
    }

    /// Moves arrivals into the cache, as far as it takes them, and sees to it
    /// that no ring is held above `span_max`. Returns the statuses that changed.
    pub(super) fn drain(&mut self, link: &Link<F>, span_max: Option<u32>) -> StatusMask {
        let mut changed = StatusMask::NONE;
        loop {
            let arrival = match self.waiting.take() {
                Some(message) => Arrival::Message(message),
                None => match link.arrivals.pop() {
                    Some(arrival) => arrival,
                    None => break,
                },
            };
            match arrival {
                Arrival::Gone {
                    writer,
                    at,
                    disposes,
                } => {
                    self.last = at.unwrap_or(self.last);
                    changed |= self.writer_gone(link, writer, disposes);
                }
                Arrival::Message(message) => {
                    changed |= self.count_lost(&message.origin);
                    changed |= self.offer(link, message);
                }
            }
            if self.is_blocked() {
                break;
            }
        }
        if let Some(span_max) = span_max {
            self.relieve(link, span_max);
        }
        changed
    }

    /// A gap in a writer's numbers: samples that a BEST_EFFORT writer dropped for
    /// want of room. One that is offered again leaves none.
    fn count_lost(&mut self, origin: &Origin) -> StatusMask {
        let last = &mut self.sequences[origin.writer as usize];
        let lost = origin
            .writer_sequence
            .saturating_sub(last.saturating_add(1));
        *last = origin.writer_sequence;
        if lost == 0 {
            return StatusMask::NONE;
        }
        self.statuses
            .lost
            .add(i32::try_from(lost).unwrap_or(i32::MAX));
        StatusMask::SAMPLE_LOST
    }

    fn offer(&mut self, link: &Link<F>, message: Message<F>) -> StatusMask {
        let Message {
            kind,
            key,
            origin,
            held,
        } = message;
        self.last = Stamp {
            position: origin.position,
            timestamp: origin.timestamp,
        };
        let arrived = Arrived {
            kind,
            key,
            origin,
            payload: Payload::Ring(held),
        };
        let Self { cache, pool, .. } = self;
        match cache.offer(arrived, &mut |old| pool.recycle(old)) {
            Offer::Kept(entry) => {
                let writer = &link.writers[origin.writer as usize];
                if let Some(at) = self.in_ring_at(writer.place, writer.ring) {
                    let Self { cache, in_ring, .. } = self;
                    let entries = &mut in_ring[at].entries;
                    // What was taken or replaced meanwhile.
                    while let Some(oldest) = entries.front()
                        && cache.payload_mut(*oldest).is_none()
                    {
                        entries.pop_front();
                    }
                    entries.push_back(entry);
                }
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

    /// Here, where `last` is.
    fn writer_gone(&mut self, link: &Link<F>, writer: u32, disposes: bool) -> StatusMask {
        let handle = link.writers[writer as usize].handle;
        self.statuses.writers.retain(|known| *known != handle);
        self.statuses.matched.unmatched(handle);
        let origin = Origin {
            writer,
            writer_sequence: 0,
            position: self.last.position,
            timestamp: self.last.timestamp,
            encapsulation: Encapsulation::CDR_LE,
        };
        let mut changed = StatusMask::SUBSCRIPTION_MATCHED;
        if self.cache.writer_gone(origin, disposes) {
            changed |= StatusMask::DATA_AVAILABLE;
        }
        changed
    }

    /// Copies the oldest samples out of rings of which more than `span_max`
    /// parts of 256 are held here, a few megabytes at most: the lock is not held
    /// for long. Returns whether there is more to copy.
    pub(super) fn relieve(&mut self, link: &Link<F>, span_max: u32) -> bool {
        let Self {
            cache,
            in_ring,
            pool,
            ..
        } = self;
        let mut budget = RELIEVE_BYTES_MAX;
        for InRing {
            sender,
            ring,
            entries,
        } in in_ring
        {
            // What was taken or replaced meanwhile.
            while let Some(oldest) = entries.front()
                && cache.payload_mut(*oldest).is_none()
            {
                entries.pop_front();
            }
            while !entries.is_empty() && link.lane.held_parts(*ring, *sender) > span_max {
                if budget == 0 {
                    return true;
                }
                let Some(oldest) = entries.pop_front() else {
                    break;
                };
                if let Some(payload) = cache.payload_mut(oldest) {
                    budget = budget.saturating_sub(payload.bytes().len());
                    copy_out(payload, pool);
                }
            }
        }
        false
    }

    /// Hands samples out, in order of presentation.
    pub(super) fn select(
        &mut self,
        access: Access,
        query: &Query,
        config: ReaderConfig,
    ) -> Vec<Item<F>> {
        let mut items = self.collections.pop().unwrap_or_default();
        let Self { cache, pool, .. } = self;
        match access {
            Access::Read => cache.read(query, &mut items, &mut |payload| {
                Payload::Copy(pool.copy(payload.bytes()))
            }),
            Access::Take => cache.take(query, &mut items),
        }
        if config.storage == Storage::Copy || config.untrusted {
            for payload in items.iter_mut().filter_map(|(_, payload)| payload.as_mut()) {
                copy_out(payload, pool);
            }
        }
        items
    }

    /// Throws away a sample whose bytes make no sense. Whether it was there still.
    pub(super) fn lose(&mut self, access: Access, info: &SampleInfo) -> bool {
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
    pub(super) fn discard(&mut self, link: &Link<F>) {
        self.waiting = None;
        while link.arrivals.pop().is_some() {}
        let all = Query {
            max: usize::MAX,
            masks: StateMasks::ANY,
            whose: Whose::Any,
        };
        let mut items = Vec::new();
        self.cache.take(&all, &mut items);
    }

    /// Takes a collection back.
    pub(super) fn give_back(&mut self, mut items: Vec<Item<F>>) {
        for (_, payload) in items.drain(..) {
            if let Some(payload) = payload {
                self.pool.recycle(payload);
            }
        }
        if self.collections.len() < COLLECTIONS_MAX {
            self.collections.push(items);
        }
    }
}

fn copy_out<F: Fabric>(payload: &mut Payload<F>, pool: &mut Pool) {
    if let Payload::Ring(held) = payload {
        let copy = pool.copy(held.bytes());
        *payload = Payload::Copy(copy);
    }
}
