//! Delivery and release predicates of a subgroup, and the digest of its order.

use std::sync::Arc;

use spindle_dds_transport::{Fabric, Rank};

use super::run::{Course, MessageRun, Order, RunTotals, Source};
use super::{Context, Found, SubgroupState, Trouble};
use crate::config::{Bounds, EngineConfig};
use crate::counters::bump;
use crate::ids::DeliveryClass;
use crate::limits::DIGESTS_KEPT;
use crate::sink::Sink;
use crate::spec::SubgroupSpec;
use crate::subgroup::digest::Digest;
use crate::subgroup::handle::SubgroupHandle;
use crate::sync::Ordering;

/// Messages that a step delivers at most of an order with so many senders.
fn delivery_max(config: &EngineConfig, senders: usize) -> u64 {
    let Bounds {
        step, per_sender, ..
    } = config.bounds;
    match (config.delivery_batching, config.bounded_deliveries) {
        (false, _) => 1,
        (true, false) => u64::MAX,
        (true, true) => step.max(per_sender * senders as u64),
    }
}

/// Messages after which the sink is told, though the next step delivers more, in an epoch of
/// these. Readers are told of a part of what senders have room for, while they fill the rest:
/// were they told of all of it, either would wait for the other.
pub(super) fn batch_max(config: &EngineConfig, spec: &SubgroupSpec) -> u64 {
    let rings = spec.ordered().filter_map(|sender| sender.rings[0]);
    let room: u64 = rings.map(|ring| u64::from(ring.messages)).sum();
    match (config.delivery_batching, config.bounded_deliveries) {
        (true, true) => config.bounds.batch.min(room / 4),
        _ => 0,
    }
}

/// What is next in the order.
#[derive(Debug, Clone, Copy)]
struct Next {
    /// Its place in the order.
    seq: u64,
    /// Whose it is: index among the ordered senders.
    order: usize,
    /// The place of what is next of any other sender.
    until: u64,
}

impl<F: Fabric> SubgroupState<F> {
    pub(super) fn deliver_ordered<S: Sink<F>>(
        &mut self,
        handle: &Arc<SubgroupHandle<F>>,
        context: &mut Context<'_, S>,
    ) -> bool {
        if self.delivered_num >= self.stable {
            return false;
        }
        let before = self.delivered;
        let mut left = delivery_max(context.config, self.ordered.len());
        let mut done = self.delivered_num;
        // Nothing stable is left at that place, or behind it.
        while done < self.stable && left > 0 {
            let next = self.next_at(done).or_else(|| self.next_in_order(None));
            let Some(next) = next.filter(|it| it.seq < self.stable) else {
                done = self.stable;
                break;
            };
            done = self.deliver_next(next, &mut left, handle, context);
        }
        if self.digest.is_due(done) {
            self.checkpoint(done, handle, context);
        }
        self.delivered_num = done;
        handle.fabric.store(handle.columns.delivered_num, done);
        self.pass_ordered(handle);
        self.count_delivered(before);
        // Else there will be another step, which delivers more, or ends the epoch.
        if done >= self.stable || self.untold() >= self.batch_max {
            self.end_batch(context);
        }
        true
    }

    /// Hands over what is next in order, and what follows it of the same sender before that
    /// of any other, while messages are `left` to be delivered. The place behind that.
    fn deliver_next<S: Sink<F>>(
        &mut self,
        next: Next,
        left: &mut u64,
        handle: &Arc<SubgroupHandle<F>>,
        context: &mut Context<'_, S>,
    ) -> u64 {
        if self.digest.is_due(next.seq) {
            self.checkpoint(next.seq, handle, context);
        }
        let end = next.until.min(self.stable).min(self.digest.due_at());
        let at = self.ordered[next.order];
        let handed = self.hand_over(DeliveryClass::Ordered, at, (end, left), handle, context);
        // There is a message at that place.
        handed.unwrap_or(next.seq + 1)
    }

    /// The message at just this place, where one is.
    fn next_at(&self, seq: u64) -> Option<Next> {
        let n = self.ordered.len() as u64;
        let order = (seq % n) as usize;
        let cursor = self.senders[self.ordered[order]].receive_cursors[0].as_ref()?;
        let (_, header) = cursor.front()?;
        let until = if n == 1 { u64::MAX } else { seq + 1 };
        (header.index == seq / n).then_some(Next { seq, order, until })
    }

    /// What is left below the cut, stable or not.
    /// Nothing is said of it any more.
    pub(super) fn deliver_trimmed<S: Sink<F>>(
        &mut self,
        handle: &Arc<SubgroupHandle<F>>,
        trim: &[u64],
        context: &mut Context<'_, S>,
    ) {
        let before = self.delivered;
        while let Some(next) = self.next_in_order(Some(trim)) {
            let at = self.ordered[next.order];
            let only = (next.seq + 1, &mut 1);
            self.hand_over(DeliveryClass::Ordered, at, only, handle, context);
        }
        self.count_delivered(before);
        self.end_batch(context);
    }

    /// The next message; below the cut, if there is one.
    fn next_in_order(&self, trim: Option<&[u64]>) -> Option<Next> {
        let n = self.ordered.len() as u64;
        let mut next: Option<Next> = None;
        for (order, &at) in self.ordered.iter().enumerate() {
            let sender = &self.senders[at];
            let Some(cursor) = &sender.receive_cursors[0] else {
                continue;
            };
            let index = match cursor.front() {
                Some((_, header)) if trim.is_some_and(|trim| header.index >= trim[at]) => continue,
                Some((_, header)) => header.index,
                None => continue,
            };
            let seq = index * n + order as u64;
            match &mut next {
                Some(next) if seq > next.seq => next.until = next.until.min(seq),
                _ => {
                    let until = next.map_or(u64::MAX, |after| after.seq);
                    next = Some(Next { seq, order, until });
                }
            }
        }
        next
    }

    /// Hands the front messages of a stream to the sink, one at least: those before the place
    /// `end` in its order, or of its ring, and as many as are `left` at most, which are fewer
    /// then. The place behind them; `None` when there is none.
    fn hand_over<S: Sink<F>>(
        &mut self,
        class: DeliveryClass,
        at: usize,
        (end, left): (u64, &mut u64),
        handle: &Arc<SubgroupHandle<F>>,
        context: &mut Context<'_, S>,
    ) -> Option<u64> {
        let sender = &mut self.senders[at];
        let cursor = sender.receive_cursors[class.index()].as_mut()?;
        let tracker = handle.release_trackers[class.index()][at].as_ref()?;
        cursor.front()?;
        let is_ordered = class == DeliveryClass::Ordered;
        let EngineConfig {
            batched_upcalls: batched,
            delivery_batching,
            ..
        } = *context.config;
        let most = if batched { *left } else { 1.min(*left) };
        let source = Source {
            subgroup: handle,
            class,
            sender: sender.rank,
            sender_at: at,
            payload: cursor.payload(),
            tracker,
            tickets: &self.tickets,
        };
        let mut run = MessageRun {
            source,
            cursor,
            course: Course {
                senders: if is_ordered { handle.ordered } else { 1 },
                at: if is_ordered { sender.order } else { 0 },
                base: if is_ordered { self.spec.base } else { 0 },
                end,
            },
            order: Order {
                digest: is_ordered.then_some(&mut self.digest),
            },
            left: most,
            skips: batched && delivery_batching,
            handed: RunTotals::default(),
            behind: 0,
            is_out: false,
        };
        context.sink.deliver_run(&mut run);
        // What it has left.
        while let Some(delivery) = run.next() {
            context.sink.deliver(&delivery);
        }
        let (handed, behind) = (run.handed, run.behind);
        *left -= most - run.left;
        self.delivered.0 += handed.messages;
        self.delivered.1 += handed.bytes;
        if !batched {
            bump(&handle.common.counters.upcalls, 1);
            context.sink.batch_end();
        }
        Some(behind)
    }

    /// `before` is what had been delivered before the predicate.
    fn count_delivered(&self, before: (u64, u64)) {
        let delivered = self.delivered.0 - before.0;
        if delivered > 0 {
            let counters = &self.handle.common.counters;
            bump(&counters.delivered, delivered);
            bump(&counters.delivered_bytes, self.delivered.1 - before.1);
            counters.delivery_batches.record(delivered);
        }
    }

    /// Messages delivered since the sink was told.
    fn untold(&self) -> u64 {
        self.delivered.0 - self.told
    }

    /// Tells the sink, if there is anything to tell. Where each message is told, all is told.
    pub(crate) fn end_batch<S: Sink<F>>(&mut self, context: &mut Context<'_, S>) {
        if self.untold() > 0 && context.config.batched_upcalls {
            bump(&self.handle.common.counters.upcalls, 1);
            context.sink.batch_end();
        }
        self.told = self.delivered.0;
    }

    /// Everything below `delivered_num` has been handed over.
    fn pass_ordered(&self, handle: &SubgroupHandle<F>) {
        let n = self.ordered.len() as u64;
        for (order, &at) in self.ordered.iter().enumerate() {
            let (Some(cursor), Some(tracker)) = (
                &self.senders[at].receive_cursors[0],
                &handle.release_trackers[0][at],
            ) else {
                continue;
            };
            let below = self.delivered_num.saturating_sub(order as u64).div_ceil(n);
            tracker.pass(below.min(cursor.count()));
        }
    }

    pub(super) fn deliver_unordered<S: Sink<F>>(
        &mut self,
        handle: &Arc<SubgroupHandle<F>>,
        context: &mut Context<'_, S>,
    ) -> bool {
        let before = self.delivered;
        let mut left = u64::MAX;
        for at in 0..self.senders.len() {
            while self
                .hand_over(
                    DeliveryClass::Unordered,
                    at,
                    (u64::MAX, &mut left),
                    handle,
                    context,
                )
                .is_some()
            {}
            if let (Some(cursor), Some(tracker)) = (
                &self.senders[at].receive_cursors[1],
                &handle.release_trackers[1][at],
            ) {
                tracker.pass(cursor.count());
            }
        }
        self.count_delivered(before);
        if self.delivered != before {
            self.end_batch(context);
        }
        self.delivered != before
    }

    /// Tells senders which room is theirs again.
    pub(super) fn release<S>(&mut self, handle: &SubgroupHandle<F>, context: &mut Context<'_, S>) {
        let fabric = &handle.fabric;
        let mut changed = false;
        for class in DeliveryClass::BOTH.map(DeliveryClass::index) {
            for (at, tracker) in handle.release_trackers[class].iter().enumerate() {
                let Some(tracker) = tracker else { continue };
                // Who lets go of messages accounts for that itself.
                let passed = tracker.passed();
                if self.accounted[class][at] != passed {
                    let word = handle.columns.released(class, at);
                    tracker.release(|value| fabric.store(word, value));
                    self.accounted[class][at] = passed;
                }
                // Another thread may have released since the last step too.
                let released = tracker.released();
                changed |= released != self.released_told[class][at];
                self.released_told[class][at] = released;
            }
        }
        if changed {
            let (at, len) = (handle.columns.delivered_num, handle.columns.delivered_len());
            context.pushes.acks(at, len);
        }
    }

    /// Takes room back that all members have released; of a member whose row is
    /// not read any more it is unknown. Whether there was any.
    pub(super) fn reclaim(&mut self, handle: &SubgroupHandle<F>) -> bool {
        let fabric = &handle.fabric;
        let Some(mine) = handle.mine else {
            return false;
        };
        if self.members.iter().any(|member| member.fenced) {
            return false;
        }
        let mut room = false;
        for class in DeliveryClass::BOTH.map(DeliveryClass::index) {
            let Some(send_ring) = &handle.send_rings[class] else {
                continue;
            };
            if send_ring.is_empty() {
                continue;
            }
            let members = (0..).map(Rank).zip(&self.members);
            let released = members
                .map(|(place, member)| {
                    let word = member.columns.released(class, mine);
                    fabric.row(place).load(word)
                })
                .min()
                .unwrap_or(0);
            // An older value of a word may come after a newer one.
            if released > handle.released[class].load(Ordering::Relaxed) {
                // Pairs with the acquire in `SubgroupHandle::released`.
                handle.released[class].store(released, Ordering::Release);
                // Also without room, behind a message that is still being built:
                // a thread may wait for just these.
                room = true;
            }
            room |= send_ring.reclaim(released);
        }
        room
    }

    pub(super) fn checkpoint<S>(
        &mut self,
        seq: u64,
        handle: &SubgroupHandle<F>,
        context: &mut Context<'_, S>,
    ) {
        let pushes = &mut *context.pushes;
        self.digest.checkpoint(seq, |number, value| {
            let slot = handle.columns.digest_slot(number);
            // As words, whose values are those of now: a range may be fetched
            // when its slot is used again. Stored and sent in this order, so that
            // a reader of a slot that is used again reads a later count then.
            pushes.digest_word(slot, Digest::position(number));
            pushes.digest_word(slot + 8, value);
            pushes.digest_word(handle.columns.digest_count, number + 1);
        });
    }

    /// Compares checkpoints with those of the other members.
    pub(super) fn compare_digests(&mut self, handle: &SubgroupHandle<F>) -> Result<(), Trouble> {
        let fabric = &handle.fabric;
        let me = fabric.me();
        let taken = self.digest.taken();
        for (place, member) in (0..).map(Rank).zip(&mut self.members) {
            if member.fenced || member.compared == taken || place == me {
                continue;
            }
            let row = fabric.row(place);
            let theirs = row.load(member.columns.digest_count);
            // The slot behind the count may be under way already.
            let oldest = taken.max(theirs).saturating_sub(DIGESTS_KEPT - 1);
            for number in member.compared.max(oldest)..taken.min(theirs) {
                let slot = member.columns.digest_slot(number);
                let value = row.load(slot + 8);
                let lapped = row.load(member.columns.digest_count) >= number + DIGESTS_KEPT;
                let mine = self.digest.at(number);
                if let Some(mine) = mine.filter(|mine| *mine != value && !lapped) {
                    return Err(Trouble {
                        place,
                        what: Found::Disagreement {
                            position: self.spec.base + Digest::position(number),
                            mine,
                            theirs: value,
                        },
                    });
                }
            }
            member.compared = member.compared.max(taken.min(theirs));
        }
        Ok(())
    }
}
