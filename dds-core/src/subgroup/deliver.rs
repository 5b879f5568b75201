//! Delivery and release predicates of a subgroup, and the digest of its order.
//!
//! ```text
//!   sequence numbers   | delivered | stable, not delivered | received | missing
//!                                  ^ delivered_num         ^ stable
//! ```
//!
//! Invariants: messages are delivered in the order of their sequence numbers, and only below
//! `stable`; `delivered_num` and each `released` only rise.

use std::sync::Arc;

use spindle_dds_transport::{Fabric, Rank};

use super::run::{MessageRun, Order, RunTotals, SequenceSpan, Source};
use super::{Context, Fault, MemberFault, SubgroupState};
use crate::config::{Bounds, EngineConfig};
use crate::counters::bump;
use crate::ids::DeliveryClass;
use crate::limits::DIGESTS_KEPT;
use crate::sink::Sink;
use crate::spec::SubgroupSpec;
use crate::subgroup::digest::Digest;
use crate::subgroup::handle::SubgroupHandle;
use crate::subgroup::watch::Least;
use crate::sync::Ordering;

/// Maximum number of messages that a step delivers, with this many ordered senders.
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

/// Real messages after which the sink sees the end of a batch even if the next step delivers more.
/// Readers are woken for a part of what the senders have room for, and work while the senders fill
/// the rest. If they were woken for all of it, readers and senders would wait for each other.
pub(super) fn batch_max(config: &EngineConfig, spec: &SubgroupSpec) -> u64 {
    let rings = spec.ordered().filter_map(|sender| sender.rings[0]);
    let room: u64 = rings.map(|ring| u64::from(ring.messages)).sum();
    match (config.delivery_batching, config.bounded_deliveries) {
        (true, true) => config.bounds.batch.min(room / 4),
        _ => 0,
    }
}

/// The next message in the order.
#[derive(Debug, Clone, Copy)]
struct Next {
    /// Its sequence number.
    seq: u64,
    /// Its sender, as index among the ordered senders.
    order: usize,
    /// Sequence number of the next message of any other sender: exclusive end of this sender's run.
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
        // Invariant: every stable message below `done` has been delivered.
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
        // Otherwise a further step delivers more, or ends the epoch.
        if done >= self.stable || self.unreported() >= self.batch_max {
            self.end_batch(context);
        }
        true
    }

    /// Delivers the next message and those of the same sender that follow it before a message of
    /// another sender, at most `left`. Returns the sequence number after them.
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
        // A message exists at `next.seq`, so something was handed over.
        handed.unwrap_or(next.seq + 1)
    }

    /// The message with exactly this sequence number, if it is not a null.
    fn next_at(&self, seq: u64) -> Option<Next> {
        let n = self.ordered.len() as u64;
        let order = (seq % n) as usize;
        let cursor = self.senders[self.ordered[order]].receive_cursors[0].as_ref()?;
        let (_, header) = cursor.front()?;
        let until = if n == 1 { u64::MAX } else { seq + 1 };
        (header.index == seq / n).then_some(Next { seq, order, until })
    }

    /// Delivers what is left below the ragged trim, stable or not. Nothing is acknowledged.
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

    /// The next message in the order; below the ragged trim, if one is given.
    fn next_in_order(&self, trim: Option<&[u64]>) -> Option<Next> {
        let n = self.ordered.len() as u64;
        let mut next: Option<Next> = None;
        for at in self.watch.waiting[0].iter() {
            let sender = &self.senders[at];
            let Some(cursor) = &sender.receive_cursors[0] else {
                continue;
            };
            let order = sender.order as usize;
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

    /// Hands messages at the front of a cursor to the sink, at least one: those below the sequence
    /// number `end`, at most `left`, which is reduced. Returns the sequence number after them;
    /// `None` when there is none.
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
            span: SequenceSpan {
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
        // Messages that the sink did not take from the run.
        while let Some(delivery) = run.next() {
            context.sink.deliver(&delivery);
        }
        let (handed, behind) = (run.handed, run.behind);
        *left -= most - run.left;
        if run.cursor.waiting() == 0 {
            self.watch.waiting[class.index()].remove(at);
        }
        self.delivered.0 += handed.messages;
        self.delivered.1 += handed.bytes;
        if !batched {
            bump(&handle.shared.counters.upcalls, 1);
            context.sink.batch_end();
        }
        Some(behind)
    }

    /// Adds to the counters what was delivered since `before`.
    fn count_delivered(&self, before: (u64, u64)) {
        let delivered = self.delivered.0 - before.0;
        if delivered > 0 {
            let counters = &self.handle.shared.counters;
            bump(&counters.delivered, delivered);
            bump(&counters.delivered_bytes, self.delivered.1 - before.1);
            counters.delivery_batches.record(delivered);
        }
    }

    /// Real messages delivered since the sink last saw the end of a batch.
    fn unreported(&self) -> u64 {
        self.delivered.0 - self.reported
    }

    /// Ends the batch, if it has a message. With unbatched upcalls, each message has ended its own.
    pub(crate) fn end_batch<S: Sink<F>>(&mut self, context: &mut Context<'_, S>) {
        if self.unreported() > 0 && context.config.batched_upcalls {
            bump(&self.handle.shared.counters.upcalls, 1);
            context.sink.batch_end();
        }
        self.reported = self.delivered.0;
    }

    /// Passes, for each ordered sender, all messages below `delivered_num`.
    fn pass_ordered(&mut self, handle: &SubgroupHandle<F>) {
        let n = self.ordered.len() as u64;
        let (rounds, rest) = (self.delivered_num / n, self.delivered_num % n);
        for (order, &at) in (0..).zip(&self.ordered) {
            let (Some(cursor), Some(tracker)) = (
                &self.senders[at].receive_cursors[0],
                &handle.release_trackers[0][at],
            ) else {
                continue;
            };
            let below = rounds + u64::from(order < rest);
            let below = below.min(cursor.count());
            if below != tracker.passed() {
                tracker.pass(below);
                self.watch.passed[0].insert(at);
            }
        }
    }

    pub(super) fn deliver_unordered<S: Sink<F>>(
        &mut self,
        handle: &Arc<SubgroupHandle<F>>,
        context: &mut Context<'_, S>,
    ) -> bool {
        let waiting = self.watch.waiting[1];
        if waiting.is_empty() {
            return false;
        }
        let before = self.delivered;
        let mut left = u64::MAX;
        for at in waiting.iter() {
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
                self.watch.passed[1].insert(at);
            }
        }
        self.count_delivered(before);
        self.end_batch(context);
        true
    }

    /// Acknowledges to senders which room they may reuse.
    pub(super) fn release<S>(&mut self, handle: &SubgroupHandle<F>, context: &mut Context<'_, S>) {
        let fabric = &handle.fabric;
        for class in DeliveryClass::BOTH.map(DeliveryClass::index) {
            for at in self.watch.passed[class].take().iter() {
                // A thread that releases messages later recomputes `released` itself.
                if let Some(tracker) = &handle.release_trackers[class][at] {
                    let word = handle.columns.released(class, at);
                    tracker.release(|value| fabric.store(word, value));
                }
            }
        }
        // Another thread may also have released since the last step.
        let (row, first) = (
            fabric.row(fabric.me()),
            handle.columns.released(self.told_classes.start, 0),
        );
        let mut changed = false;
        let words = row.word_groups::<1>(first, self.released_told.len());
        for (word, told) in words.zip(&mut self.released_told) {
            let released = word.load(0);
            changed |= released != *told;
            *told = released;
        }
        if changed {
            let (at, len) = (handle.columns.delivered_num, handle.columns.delivered_len);
            context.pushes.releases(at, len);
        }
    }

    /// Frees room that all members have released, and restarts a ring that is empty. What a fenced
    /// member has released is unknown, so nothing is freed then. Returns whether room or a release
    /// came.
    pub(super) fn reclaim<S>(
        &mut self,
        handle: &SubgroupHandle<F>,
        context: &mut Context<'_, S>,
    ) -> Result<bool, MemberFault> {
        let Some(mine) = handle.mine else {
            return Ok(false);
        };
        if self.watch.any_fenced {
            return Ok(false);
        }
        let mut room = false;
        for class in DeliveryClass::BOTH.map(DeliveryClass::index) {
            let Some(send_ring) = &handle.send_rings[class] else {
                continue;
            };
            if send_ring.is_empty() {
                continue;
            }
            let released = self.released_by_all(handle, class, mine);
            // A push may carry an older value of a word after a newer one (F1).
            if released > handle.released[class].load(Ordering::Relaxed) {
                // Pairs with the acquire in `SubgroupHandle::released`.
                handle.released[class].store(released, Ordering::Release);
                // Even if a message that is still being built keeps the room: a thread may wait for
                // exactly this release.
                room = true;
            }
            if send_ring.reclaim(released) {
                room = true;
                if send_ring.should_restart(&context.config.ring_stretch) {
                    self.restart(handle, class, context)?;
                }
            }
        }
        Ok(room)
    }

    /// Restarts an own ring, whose messages all members have released, unless a message was
    /// committed meanwhile.
    #[cold]
    fn restart<S>(
        &mut self,
        handle: &SubgroupHandle<F>,
        class: usize,
        context: &mut Context<'_, S>,
    ) -> Result<(), MemberFault> {
        let (Some(mine), Some(send_ring), Some(outgoing)) = (
            handle.mine,
            &handle.send_rings[class],
            &mut self.outgoing[class],
        ) else {
            return Ok(());
        };
        let messages = context.config.ring_stretch.messages;
        if !outgoing.restart(send_ring, messages, context.pushes) {
            return Ok(());
        }
        let index = outgoing.published.index;
        let (Some(cursor), Some(tracker)) = (
            &mut self.senders[mine].receive_cursors[class],
            &handle.release_trackers[class][mine],
        ) else {
            return Ok(());
        };
        // What this member has released it has received. At once, because the numbers of what is
        // published and of what is delivered are compared.
        cursor.restart(index, tracker).map_err(|what| MemberFault {
            place: handle.fabric.me(),
            what: Fault::ProtocolViolation(what),
        })
    }

    /// What all members have released of the own ring.
    fn released_by_all(&mut self, handle: &SubgroupHandle<F>, class: usize, mine: usize) -> u64 {
        let released = |holder: u16| {
            let word = self.members[usize::from(holder)]
                .columns
                .released(class, mine);
            handle.fabric.row(Rank(holder)).load(word)
        };
        let least = self.watch.released[class];
        if released(least.holder) == least.value {
            return least.value;
        }
        let members = 0..self.members.len() as u16;
        let least = Least::of(members.map(|holder| Least {
            value: released(holder),
            holder,
        }));
        self.watch.released[class] = least;
        least.value
    }

    pub(super) fn checkpoint<S>(
        &mut self,
        seq: u64,
        handle: &SubgroupHandle<F>,
        context: &mut Context<'_, S>,
    ) {
        let pushes = &mut *context.pushes;
        self.watch.digests_due = true;
        self.digest.checkpoint(seq, |number, value| {
            let slot = handle.columns.digest_slot(number);
            // Pushed as words, with their values of now, because a pushed range may be read when
            // its slot has been reused. Stored and pushed in this order, so that a reader of a
            // reused slot reads a later count afterwards.
            pushes.digest_word(slot, Digest::position(number));
            pushes.digest_word(slot + 8, value);
            pushes.digest_word(handle.columns.digest_count, number + 1);
        });
    }

    /// Compares digest checkpoints with those of the other members.
    pub(super) fn compare_digests(
        &mut self,
        handle: &SubgroupHandle<F>,
    ) -> Result<(), MemberFault> {
        if !self.watch.digests_due {
            return Ok(());
        }
        let fabric = &handle.fabric;
        let me = fabric.me();
        let taken = self.digest.taken();
        let mut due = false;
        for (place, member) in (0..).map(Rank).zip(&mut self.members) {
            if member.fenced || member.compared == taken || place == me {
                continue;
            }
            let row = fabric.row(place);
            let theirs = row.load(member.columns.digest_count);
            // The slot after the count may be in the middle of an overwrite.
            let oldest = taken.max(theirs).saturating_sub(DIGESTS_KEPT - 1);
            for number in member.compared.max(oldest)..taken.min(theirs) {
                let slot = member.columns.digest_slot(number);
                let value = row.load(slot + 8);
                let lapped = row.load(member.columns.digest_count) >= number + DIGESTS_KEPT;
                let mine = self.digest.at(number);
                if let Some(mine) = mine.filter(|mine| *mine != value && !lapped) {
                    return Err(MemberFault {
                        place,
                        what: Fault::Disagreement {
                            position: self.spec.base + Digest::position(number),
                            mine,
                            theirs: value,
                        },
                    });
                }
            }
            member.compared = member.compared.max(taken.min(theirs));
            due |= member.compared != taken;
        }
        self.watch.digests_due = due;
        Ok(())
    }
}
