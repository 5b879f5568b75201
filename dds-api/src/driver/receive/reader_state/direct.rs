//! The direct way of samples into the cache: from the engine's run, without a queue between.

use spindle_dds_core::{Header, MessageKind, MessageRun};
use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_transport::Fabric;

use super::super::arrival::{ArrivalBatch, BATCH_MAX};
use super::super::in_ring::Entries;
use super::super::payload::Payload;
use super::super::reader_epoch::{EpochWriter, ReaderEpoch};
use super::{Attempt, ReaderState, gap};
use crate::cache::{Arrived, Origin};
use crate::status::StatusMask;

impl<F: Fabric> ReaderState<F> {
    /// Puts the next samples of this topic into the cache: those that follow each other, at most
    /// `BATCH_MAX`; see [`drain`](ReaderState::drain) for `span_max`. The statuses that changed
    /// are noted in the batch. False if there were none, or something else has to come first.
    #[inline]
    pub(crate) fn append_run(
        &mut self,
        span_max: Option<u32>,
        epoch: &ReaderEpoch<F>,
        topic: u64,
        run: &mut MessageRun<'_, F>,
        batch: &mut ArrivalBatch<F>,
    ) -> bool {
        if !self.cursor.is_at(epoch) || self.has_arrivals() {
            return false;
        }
        let ring = (run.subgroup(), run.sender(), run.class());
        self.in_rings.select(ring);
        let mut left = BATCH_MAX as u64;
        let mut last = None::<RunWriter<'_>>;
        while left > 0
            && !self.is_blocked()
            && let Some(header) = run.peek()
            && is_sample(header, topic)
        {
            let (number, key) = (header.writer, KeyHash(header.key_hash));
            let by = match &last {
                Some(known) if known.number == number => known,
                _ => match epoch.writer(run.sender(), number) {
                    Some((index, writer)) => last.insert(RunWriter {
                        number,
                        index: self.writers[index as usize],
                        writer,
                    }),
                    // The writer has departed: its messages are skipped.
                    None => {
                        left -= 1;
                        run.next();
                        continue;
                    }
                },
            };
            left -= self.append_alike((topic, key), by, left, run, batch);
        }
        self.release_replaced();
        self.relieve_if_due(span_max, false);
        left < BATCH_MAX as u64
    }

    /// Puts the next samples into the cache that are alike in topic, instance and writer: at least
    /// one, at most `max`. Returns how many.
    #[inline]
    fn append_alike(
        &mut self,
        (topic, key): (u64, KeyHash),
        by: &RunWriter<'_>,
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
            self.append_next(by, run, batch);
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
        let is_alike = |header: &Header| {
            is_sample(header, topic) && header.writer == by.number && header.key_hash == key.0
        };
        let taken = run.each(max, is_alike, |delivery| {
            let header = delivery.header;
            timestamp = header.timestamp;
            let before = std::mem::replace(last, header.writer_seq);
            if header.writer_seq != before.wrapping_add(1) {
                lost = lost.saturating_add(gap(before, header.writer_seq));
            }
            let origin = Origin::of(delivery, by.index);
            let entry = filling.take_in(origin, Payload::Ring(delivery.hold()));
            if let Some(slot) = vacant.next() {
                *slot = entry;
            }
        });
        drop(filling);
        if let Some(kept) = kept {
            kept.came(taken.messages as usize);
        }
        by.writer.note_timestamp(timestamp);
        batch.count(taken.messages, taken.bytes);
        batch.changed |= StatusMask::DATA_AVAILABLE | statuses.count_lost(lost);
        taken.messages
    }

    /// Offers the next sample to the cache: it may be refused, replace another, or begin an
    /// instance.
    #[inline(never)]
    fn append_next(
        &mut self,
        by: &RunWriter<'_>,
        run: &mut MessageRun<'_, F>,
        batch: &mut ArrivalBatch<F>,
    ) {
        let Some(delivery) = run.next() else { return };
        let header = delivery.header;
        by.writer.note_timestamp(header.timestamp);
        batch.count(1, header.len.into());
        let origin = Origin::of(&delivery, by.index);
        batch.changed |= self.count_lost(&origin);
        let message = Arrived {
            kind: header.kind,
            key: KeyHash(header.key_hash),
            origin,
            payload: Payload::Ring(delivery.hold()),
        };
        batch.changed |= self.offer(message, Attempt::First);
    }
}

/// The writer of samples that follow each other.
struct RunWriter<'e> {
    /// Its number in its participant.
    number: u32,
    /// Its index in the cache.
    index: u32,
    writer: &'e EpochWriter,
}

fn is_sample(header: &Header, topic: u64) -> bool {
    header.topic == topic && header.kind == MessageKind::Data
}
