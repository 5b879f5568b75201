//! The straight way of samples into the cache: from the engine, with nothing in between.

use spindle_dds_core::{Header, MessageKind, MessageRun};
use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_transport::Fabric;

use super::{ReaderState, left_out};
use crate::cache::Origin;
use crate::driver::receive::arrival::{ArrivalBatch, BATCH_MAX, Message};
use crate::driver::receive::in_ring::Entries;
use crate::driver::receive::payload::Payload;
use crate::driver::receive::reader_epoch::{EpochWriter, ReaderEpoch};
use crate::status::StatusMask;

impl<F: Fabric> ReaderState<F> {
    /// Samples of this topic that are next, as many as follow each other, but no more than a
    /// batch has, straight into the cache; see [`drain`](ReaderState::drain). What statuses change
    /// by them is noted in the batch. Whether there were any: not if something else is to
    /// come first.
    #[inline]
    pub(crate) fn take_run(
        &mut self,
        span_max: Option<u32>,
        link: &ReaderEpoch<F>,
        topic: u64,
        run: &mut MessageRun<'_, F>,
        batch: &mut ArrivalBatch<F>,
    ) -> bool {
        if !self.cursor.is_at(link) || self.has_arrivals() {
            return false;
        }
        let whose = (run.subgroup(), run.sender(), run.class());
        self.in_rings.come_to(whose);
        let mut left = BATCH_MAX as u64;
        let mut of = None::<Known<'_>>;
        while left > 0
            && !self.is_blocked()
            && let Some(header) = run.peek()
            && is_sample(header, topic)
        {
            let (number, key) = (header.writer, KeyHash(header.key_hash));
            let by = match &of {
                Some(known) if known.number == number => known,
                _ => match link.writer(run.sender(), number) {
                    Some((at, linked)) => of.insert(Known {
                        number,
                        index: self.writers[at as usize],
                        linked,
                    }),
                    // It is gone: nothing of it is taken any more.
                    None => {
                        left -= 1;
                        run.next();
                        continue;
                    }
                },
            };
            left -= self.take_alike((topic, key), by, left, run, batch);
        }
        self.release_replaced();
        self.relieve_if_due(span_max, false);
        left < BATCH_MAX as u64
    }

    /// Of the samples that are next, one at least, and at most so many: those that are alike
    /// in topic, instance and writer. How many.
    #[inline]
    fn take_alike(
        &mut self,
        (topic, key): (u64, KeyHash),
        by: &Known<'_>,
        max: u64,
        run: &mut MessageRun<'_, F>,
        batch: &mut ArrivalBatch<F>,
    ) -> u64 {
        let Self {
            cache,
            in_rings,
            sequences,
            statuses,
            ..
        } = self;
        let mut kept = in_rings.kept(cache);
        let Some(mut filling) = cache.fill(key, by.index) else {
            self.take_next(by, run, batch);
            return 1;
        };
        let vacant = kept.as_deref_mut().map(Entries::vacant);
        let room = vacant
            .as_ref()
            .map_or(u64::MAX, |vacant| vacant.len() as u64);
        let mut vacant = vacant.unwrap_or_default().iter_mut();
        let max = max.min(filling.left()).min(room);
        let last = &mut sequences[by.index as usize];
        let (mut lost, mut timestamp) = (0_u64, 0);
        let alike = |header: &Header| {
            is_sample(header, topic) && header.writer == by.number && header.key_hash == key.0
        };
        let taken = run.each(max, alike, |delivery| {
            let header = delivery.header;
            timestamp = header.timestamp;
            let before = std::mem::replace(last, header.writer_seq);
            if header.writer_seq != before.wrapping_add(1) {
                lost = lost.saturating_add(left_out(before, header.writer_seq));
            }
            let origin = Origin {
                writer: by.index,
                ..Origin::of(delivery)
            };
            let entry = filling.take_in(origin, Payload::Ring(delivery.hold()));
            if let Some(place) = vacant.next() {
                *place = entry;
            }
        });
        drop(filling);
        if let Some(kept) = kept {
            kept.came(taken.messages as usize);
        }
        by.linked.came_at(timestamp);
        batch.count_all([taken.messages, taken.bytes]);
        batch.changed |= StatusMask::DATA_AVAILABLE | statuses.count_lost(lost);
        taken.messages
    }

    /// The next sample, which may be refused, replace another, or be of a new instance.
    #[inline(never)]
    fn take_next(
        &mut self,
        by: &Known<'_>,
        run: &mut MessageRun<'_, F>,
        batch: &mut ArrivalBatch<F>,
    ) {
        let Some(delivery) = run.next() else { return };
        let header = delivery.header;
        by.linked.came_at(header.timestamp);
        batch.count(header.len);
        let origin = Origin {
            writer: by.index,
            ..Origin::of(&delivery)
        };
        batch.changed |= self.count_lost(&origin);
        batch.changed |= self.offer_next(Message {
            kind: header.kind,
            key: KeyHash(header.key_hash),
            origin,
            held: delivery.hold(),
        });
    }
}

/// A writer of samples that follow each other.
struct Known<'l> {
    /// Its own number in its participant.
    number: u32,
    /// That of the cache.
    index: u32,
    linked: &'l EpochWriter,
}

fn is_sample(header: &Header, topic: u64) -> bool {
    header.topic == topic && header.kind == MessageKind::Data
}
