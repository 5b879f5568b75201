//! The straight way of samples into the cache: from the engine, with nothing in between.

use spindle_dds_core::{Kind, Run};
use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_transport::Fabric;

use super::super::arrival::{BATCH_MAX, Batch, Message};
use super::super::link::{Link, LinkedWriter};
use super::super::payload::Payload;
use super::Shelf;
use crate::cache::{Origin, Roomy};
use crate::status::StatusMask;

impl<F: Fabric> Shelf<F> {
    /// Samples of this topic that are next, as many as follow each other, but no more than a
    /// batch has, straight into the cache; see [`drain`](Shelf::drain). What statuses change
    /// by them is noted in the batch. Whether there were any: not if something else is to
    /// come first.
    #[inline]
    pub(in crate::driver) fn take_run(
        &mut self,
        span_max: Option<u32>,
        link: &Link<F>,
        topic: u64,
        run: &mut Run<'_, F>,
        batch: &mut Batch<F>,
    ) -> bool {
        if !std::ptr::eq(&*self.link, link) || self.has_arrivals() {
            return false;
        }
        let whose = (run.lane(), run.sender(), run.ring());
        self.in_rings.come_to(whose);
        let mut taken = 0;
        let mut came = [0; 2];
        // Messages that follow each other are often of one writer, and of one instance.
        let mut of = None::<(u32, u32, &LinkedWriter)>;
        let mut room = None::<Roomy>;
        let mut changed = batch.changed;
        while taken < BATCH_MAX
            && !self.is_blocked()
            && let Some(delivery) =
                run.next_if(|header| header.topic == topic && header.kind == Kind::Data)
        {
            taken += 1;
            let header = delivery.header;
            let by = match &of {
                Some(it) if it.0 == header.writer => it,
                _ => {
                    let found = link.writer(delivery.sender, header.writer);
                    let Some((at, linked)) = found else { continue };
                    let writer = self.writers[at as usize];
                    of.insert((header.writer, writer, linked))
                }
            };
            by.2.came_at(header.timestamp);
            came[0] += 1;
            came[1] += u64::from(header.len);
            let key = KeyHash(header.key_hash);
            let origin = Origin {
                writer: by.1,
                ..Origin::of(&delivery)
            };
            changed |= self.count_lost(&origin);
            let held = delivery.hold();
            if !room
                .as_ref()
                .is_some_and(|it| it.is_for(key, origin.writer))
            {
                room = self.cache.room_for(key, origin.writer);
            }
            let Some(room) = &mut room else {
                changed |= self.offer_next(Message {
                    kind: header.kind,
                    key,
                    origin,
                    held,
                });
                continue;
            };
            let entry = self.cache.take_in(room, origin, Payload::Ring(held));
            self.in_rings.keep(entry, &mut self.cache);
            changed |= StatusMask::DATA_AVAILABLE;
        }
        batch.count_all(came);
        batch.changed = changed;
        self.let_go_replaced();
        self.relieve_if_due(span_max, false);
        taken > 0
    }
}
