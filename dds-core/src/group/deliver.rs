//! Delivery and release predicates of a subgroup, and the digest of its order.

use spindle_dds_transport::Fabric;

use super::{Context, Group};
use crate::config::PlantedBug;
use crate::counters::bump;
use crate::digest::Digest;
use crate::engine::{Event, Sink, StopReason};
use crate::ids::Ring;
use crate::limits::DIGESTS_KEPT;
use crate::shared::{Delivery, GroupShared};
use crate::stream::Stream;
use crate::sync::Ordering;

impl Group {
    pub(super) fn deliver_ordered<F: Fabric, S: Sink<F>>(
        &mut self,
        group: &GroupShared,
        context: &mut Context<'_, F, S>,
    ) -> bool {
        if self.delivered_num >= self.stable {
            return false;
        }
        let mut delivered = 0;
        let done = loop {
            let Some((seq, place)) = self.next_in_order().filter(|(seq, _)| *seq < self.stable)
            else {
                break self.stable;
            };
            if self.digest.is_due(seq) {
                self.checkpoint(seq, group, context);
            }
            let at = self.ordered[place];
            let rank = self.senders[at].rank;
            if !self.hand_over(Ring::Ordered, at, seq, group, context) {
                self.senders[at].left_told[0] = true;
                let stream = self.senders[at].streams[0].as_ref();
                context.sink.event(Event::SenderLeft {
                    subgroup: self.id,
                    ring: Ring::Ordered,
                    rank,
                    position: seq,
                    timestamp: stream.map_or(0, Stream::last_timestamp),
                });
                continue;
            }
            delivered += 1;
            if !context.config.delivery_batching {
                break seq + 1;
            }
        };
        if self.digest.is_due(done) {
            self.checkpoint(done, group, context);
        }
        self.delivered_num = done;
        context
            .shared
            .fabric
            .store(group.columns.delivered_num, done);
        self.pass_ordered(group);
        self.end_batch(delivered, context);
        true
    }

    /// Position and ordered place of the next message, or farewell, in order.
    fn next_in_order(&self) -> Option<(u64, usize)> {
        let n = self.ordered.len() as u64;
        let mut next: Option<(u64, usize)> = None;
        for (place, &at) in self.ordered.iter().enumerate() {
            let sender = &self.senders[at];
            let Some(stream) = &sender.streams[0] else {
                continue;
            };
            let index = match stream.front() {
                Some((_, header)) => header.index,
                None if sender.left && !sender.left_told[0] => stream.count(),
                None => continue,
            };
            let seq = index * n + place as u64;
            if next.is_none_or(|(least, _)| seq < least) {
                next = Some((seq, place));
            }
        }
        next
    }

    /// Hands the front message of a stream to the sink. False when there is none.
    fn hand_over<F: Fabric, S: Sink<F>>(
        &mut self,
        ring: Ring,
        at: usize,
        position: u64,
        group: &GroupShared,
        context: &mut Context<'_, F, S>,
    ) -> bool {
        let sender = &mut self.senders[at];
        let Some(stream) = &mut sender.streams[ring.index()] else {
            return false;
        };
        let Some((real, header)) = stream.front() else {
            return false;
        };
        if ring == Ring::Ordered {
            let wrong = u32::from(context.config.plants(PlantedBug::WrongDigest));
            self.digest
                .add(position, sender.rank.0, header.topic, header.len ^ wrong);
        }
        context.sink.deliver(&Delivery {
            subgroup: self.id,
            ring,
            sender: sender.rank,
            position,
            header,
            shared: context.shared,
            sender_at: at,
            real,
        });
        if let Some(inbox) = &group.inboxes[ring.index()][at] {
            stream.pop(inbox);
        }
        if !context.config.batched_upcalls {
            context.sink.batch_end();
        }
        true
    }

    fn end_batch<F: Fabric, S: Sink<F>>(&self, delivered: u64, context: &mut Context<'_, F, S>) {
        if delivered > 0 {
            bump(&context.shared.counters.delivered, delivered);
            context.shared.counters.delivery_batches.record(delivered);
            context.sink.batch_end();
        }
    }

    /// Everything below `delivered_num` has been handed over.
    fn pass_ordered(&self, group: &GroupShared) {
        let n = self.ordered.len() as u64;
        for (place, &at) in self.ordered.iter().enumerate() {
            let (Some(stream), Some(inbox)) = (&self.senders[at].streams[0], &group.inboxes[0][at])
            else {
                continue;
            };
            let below = self.delivered_num.saturating_sub(place as u64).div_ceil(n);
            inbox.pass(below.min(stream.count()));
        }
    }

    pub(super) fn deliver_unordered<F: Fabric, S: Sink<F>>(
        &mut self,
        group: &GroupShared,
        context: &mut Context<'_, F, S>,
    ) -> bool {
        let mut delivered = 0;
        for at in 0..self.senders.len() {
            while let Some((_, header)) =
                self.senders[at].streams[1].as_ref().and_then(Stream::front)
            {
                let position = header.index;
                self.hand_over(Ring::Unordered, at, position, group, context);
                delivered += 1;
            }
            let sender = &mut self.senders[at];
            let Some(stream) = &sender.streams[1] else {
                continue;
            };
            if let Some(inbox) = &group.inboxes[1][at] {
                inbox.pass(stream.count());
            }
            if sender.left && !sender.left_told[1] {
                sender.left_told[1] = true;
                context.sink.event(Event::SenderLeft {
                    subgroup: self.id,
                    ring: Ring::Unordered,
                    rank: sender.rank,
                    position: stream.count(),
                    timestamp: stream.last_timestamp(),
                });
            }
        }
        self.end_batch(delivered, context);
        delivered > 0
    }

    /// Tells senders which room is theirs again.
    pub(super) fn release<F: Fabric, S>(
        &mut self,
        group: &GroupShared,
        context: &mut Context<'_, F, S>,
    ) {
        let fabric = &context.shared.fabric;
        let mut changed = false;
        for ring in Ring::BOTH.map(Ring::index) {
            for (at, inbox) in group.inboxes[ring].iter().enumerate() {
                let Some(inbox) = inbox else { continue };
                if context.config.plants(PlantedBug::MissingRelease) {
                    continue;
                }
                let word = group.columns.released(ring, at);
                inbox.release(|value| fabric.store(word, value));
                // Another thread may have released since the last step too.
                let released = inbox.released();
                changed |= released != self.released_told[ring][at];
                self.released_told[ring][at] = released;
            }
        }
        if changed {
            let (at, len) = (group.columns.delivered_num, group.columns.delivered_len());
            context.pushes.acks(fabric, at, len);
        }
    }

    /// Takes room back that all members have released.
    pub(super) fn reclaim<F: Fabric, S>(
        &mut self,
        group: &GroupShared,
        context: &Context<'_, F, S>,
    ) -> bool {
        let fabric = &context.shared.fabric;
        let Ok(mine) = group.senders.binary_search(&fabric.me()) else {
            return false;
        };
        let mut room = false;
        for ring in Ring::BOTH.map(Ring::index) {
            let Some(outbox) = &group.outboxes[ring] else {
                continue;
            };
            if outbox.is_empty() {
                continue;
            }
            let present = self.members.iter().filter(|member| !member.gone);
            let released = present
                .map(|member| {
                    fabric
                        .row(member.rank)
                        .load(member.columns.released(ring, mine))
                })
                .min()
                .unwrap_or(0);
            group.released[ring].store(released, Ordering::Release);
            let too_far = u64::from(context.config.plants(PlantedBug::ReleaseTooFar));
            room |= outbox.reclaim(released + too_far);
        }
        room
    }

    fn checkpoint<F: Fabric, S>(
        &mut self,
        position: u64,
        group: &GroupShared,
        context: &mut Context<'_, F, S>,
    ) {
        let fabric = &context.shared.fabric;
        let pushes = &mut *context.pushes;
        self.digest.checkpoint(position, |number, value| {
            let slot = group.columns.digest_slot(number);
            fabric.store(slot, Digest::position(number));
            fabric.store(slot + 8, value);
            pushes.range(fabric, slot, 16);
            pushes.quiet_word(fabric, group.columns.digest_count, number + 1);
            // The count stands before the next slot is written: readers rely on it.
            pushes.issue(fabric);
        });
    }

    /// Compares checkpoints with those of the other members.
    pub(super) fn compare_digests<F: Fabric, S>(
        &mut self,
        context: &Context<'_, F, S>,
    ) -> Result<(), StopReason> {
        let fabric = &context.shared.fabric;
        let taken = self.digest.taken();
        for member in self.members.iter_mut().filter(|member| !member.gone) {
            if member.compared == taken || member.rank == fabric.me() {
                continue;
            }
            let row = fabric.row(member.rank);
            let theirs = row.load(member.columns.digest_count);
            // The slot behind the count may be under way already.
            let oldest = taken.max(theirs).saturating_sub(DIGESTS_KEPT - 1);
            for number in member.compared.max(oldest)..taken.min(theirs) {
                let slot = member.columns.digest_slot(number);
                let value = row.load(slot + 8);
                let lapped = row.load(member.columns.digest_count) >= number + DIGESTS_KEPT;
                let mine = self.digest.at(number);
                if let Some(mine) = mine.filter(|mine| *mine != value && !lapped) {
                    return Err(StopReason::Disagreement {
                        subgroup: self.id,
                        position: Digest::position(number),
                        mine,
                        rank: member.rank,
                        theirs: value,
                    });
                }
            }
            member.compared = member.compared.max(taken.min(theirs));
        }
        Ok(())
    }
}
