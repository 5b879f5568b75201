//! Receive, send and null predicates of a subgroup, and its acknowledgements.
//!
//! Invariants: the own messages are received before those of others, because they bound how far
//! others can have sent; no guard beyond `reach` is followed; nulls are not acknowledged, receivers
//! infer them from the guard.

use spindle_dds_transport::{Fabric, Rank, WakeReason};

use super::{Context, Fault, MemberFault, Phase, Sender, SubgroupState};
use crate::counters::{LiveCounters, bump};
use crate::ids::DeliveryClass;
use crate::limits::MESSAGE_INDEX_MAX;
use crate::subgroup::handle::SubgroupHandle;
use crate::subgroup::outgoing::SendOrder;
use crate::subgroup::receive_cursor::{ProtocolViolation, ReceiveCursor};
use crate::subgroup::watch::{Guard, Least, Reach};
use crate::sync::Ordering;

impl<F: Fabric> SubgroupState<F> {
    pub(super) fn receive<S>(
        &mut self,
        handle: &SubgroupHandle<F>,
        context: &Context<'_, S>,
    ) -> Result<bool, MemberFault> {
        // In an epoch that is ending, receives everything: the counts must be complete.
        let all = context.config.receive_batching || self.phase != Phase::Open;
        let limit = if all { u64::MAX } else { 1 };
        let (mut taken, mut any) = (0, false);
        let (mut reach, mut from) = (0, 0);
        while let Some(at) = self.watch.next_guard(from) {
            let Guard { sender, class, .. } = &self.watch.guards[at];
            let (sender, class) = (usize::from(*sender), *class);
            let received = self.receive_ring(handle, (sender, class), limit, &mut reach);
            // Less than the guard if not all of it has been followed.
            let cursor = &self.senders[sender].receive_cursors[class.index()];
            self.watch.guards[at].seen.value = cursor.as_ref().map_or(0, ReceiveCursor::count);
            if let Some(messages) = received? {
                taken += messages;
                any = true;
            }
            from = at + 1;
        }
        handle.fabric.looked(self.watch.guards.len());
        if any {
            bump(&handle.shared.counters.received, taken);
            handle.shared.counters.receive_batches.record(taken);
        }
        Ok(any)
    }

    /// Upper bound of the guard of an ordered ring, if all members keep to the protocol. Computed
    /// after the guard was loaded.
    ///
    /// Message `k` of a sender comes after its message `k - 1`, which was real or a null, and a
    /// null `k - 1` comes after a real message of another sender at `k - 1` or above
    /// (`nulls_wanted`). So a sender that has sent `g` messages implies real messages at each of
    /// `0..g`. Few of these are unknown here: for each other sender at most what its ring holds.
    /// Hence `g` is at most
    ///
    /// - one more than the highest index of a real message known here, and
    /// - the number of real messages known here,
    ///
    /// each plus the number of unknown messages. The first bounds how far a hostile guard can jump,
    /// the second how far repeated jumps lead: not beyond the number of messages really sent.
    ///
    /// A correct member may have followed a guard that jumped, if the jump was within its bound,
    /// and others no longer see why. So nothing above the bound is followed, but a member is
    /// suspected only if it exceeds the bound by more than `slack`. At the end of an epoch no
    /// member follows nulls, and everything that is not suspect is received.
    pub(super) fn reach(&self, handle: &SubgroupHandle<F>) -> Reach {
        let me = handle.fabric.me();
        let mut reach = Reach::default();
        for &at in &self.ordered {
            let sender = &self.senders[at];
            let (Some(cursor), Some(tracker)) =
                (&sender.receive_cursors[0], &handle.release_trackers[0][at])
            else {
                continue;
            };
            reach.receive(cursor.received(), cursor.newest());
            // All own published messages have been received here.
            if sender.rank != me {
                reach.unknown += cursor.unseen_max(tracker);
            }
        }
        reach
    }

    /// Receives what a sender's guard covers; `None` when nothing is new. `ordered_reach` is the
    /// bound of this pass. A guard above it makes it be computed anew, because a release meanwhile
    /// allows more.
    pub(super) fn receive_ring(
        &mut self,
        handle: &SubgroupHandle<F>,
        (at, class): (usize, DeliveryClass),
        limit: u64,
        ordered_reach: &mut u64,
    ) -> Result<Option<u64>, MemberFault> {
        let place = self.senders[at].rank;
        let row = handle.fabric.row(place);
        let (Some(cursor), Some(tracker)) = (
            &mut self.senders[at].receive_cursors[class.index()],
            &handle.release_trackers[class.index()][at],
        ) else {
            return Ok(None);
        };
        let guard = row.load(cursor.guard());
        let count = cursor.count();
        if guard == count {
            return Ok(None);
        }
        let fault = |what| MemberFault {
            place,
            what: Fault::ProtocolViolation(what),
        };
        cursor.follow_restart(row, tracker).map_err(fault)?;
        let reach = match class {
            // The unordered ring has no nulls.
            DeliveryClass::Unordered => cursor.received() + cursor.unseen_max(tracker),
            DeliveryClass::Ordered if guard <= *ordered_reach => *ordered_reach,
            DeliveryClass::Ordered if guard <= self.watch.reach.bound() => {
                *ordered_reach = self.watch.reach.bound();
                *ordered_reach
            }
            DeliveryClass::Ordered => {
                self.watch.reach = self.reach(handle);
                *ordered_reach = self.watch.reach.bound();
                *ordered_reach + self.slack
            }
        };
        let is_jump =
            class == DeliveryClass::Ordered && self.phase == Phase::Open && guard <= reach;
        let guard = if is_jump && guard > *ordered_reach {
            count.max(*ordered_reach)
        } else {
            guard
        };
        if guard == count {
            return Ok(None);
        }
        let Some(cursor) = &mut self.senders[at].receive_cursors[class.index()] else {
            return Ok(None);
        };
        let before = cursor.received();
        let taken = cursor.receive(row, tracker, guard, reach, limit);
        // Some of it may have been received before a violation.
        let real = cursor.received() - before;
        let (count, newest) = (cursor.count(), cursor.newest());
        if real > 0 {
            self.watch.waiting[class.index()].insert(at);
        }
        if class == DeliveryClass::Ordered {
            self.watch.unacknowledged.insert(at);
            self.watch.reach.receive(real, newest);
            self.watch.reach.unknown = self.watch.reach.unknown.saturating_sub(real);
            let nulls = self.nulls_wanted(handle, self.senders[at].order, count);
            self.watch.nulls_due = self.watch.nulls_due.max(nulls);
        }
        taken.map(Some).map_err(fault)
    }

    /// Receives what the own guards cover: messages published by committing threads since the last
    /// pass.
    pub(super) fn receive_own(&mut self, handle: &SubgroupHandle<F>) -> Result<(), MemberFault> {
        let Some(mine) = handle.mine else {
            return Ok(());
        };
        for class in DeliveryClass::BOTH.map(DeliveryClass::index) {
            let (Some(cursor), Some(outgoing), Some(tracker)) = (
                &mut self.senders[mine].receive_cursors[class],
                &self.outgoing[class],
                &handle.release_trackers[class][mine],
            ) else {
                continue;
            };
            let guard = outgoing.published.index;
            if guard != cursor.count() {
                let place = handle.fabric.me();
                let row = handle.fabric.row(place);
                let before = cursor.received();
                let taken = cursor.receive(row, tracker, guard, guard, u64::MAX);
                let real = cursor.received() - before;
                if real > 0 {
                    self.watch.waiting[class].insert(mine);
                }
                if class == DeliveryClass::Ordered.index() {
                    self.watch.reach.receive(real, cursor.newest());
                }
                taken.map_err(|what| MemberFault {
                    place,
                    what: Fault::ProtocolViolation(what),
                })?;
            }
        }
        Ok(())
    }

    /// Publishes committed messages, and the nulls that others need given what has been received of
    /// them. Returns whether there was anything.
    pub(super) fn send<S>(
        &mut self,
        handle: &SubgroupHandle<F>,
        context: &mut Context<'_, S>,
    ) -> bool {
        if context.config.null_sends && self.phase == Phase::Open {
            self.null_target = self.null_target.max(self.watch.nulls_due);
        }
        self.send_rings(handle, context, false)
    }

    /// Publishes committed messages, and nulls up to the last computed target. With `is_last`,
    /// nothing is pushed after them before the flush.
    pub(super) fn send_rings<S>(
        &mut self,
        handle: &SubgroupHandle<F>,
        context: &mut Context<'_, S>,
        is_last: bool,
    ) -> bool {
        let open = self.phase == Phase::Open;
        let mut order = SendOrder {
            limit: if context.config.send_batching || !open {
                u64::MAX
            } else {
                1
            },
            // Once the epoch is wedged, no member waits for nulls.
            null_target: if open { self.null_target } else { 0 },
            nulls_wake: match self.shares_memory {
                true => WakeReason::Stability,
                false => WakeReason::Data,
            },
            is_last,
        };
        let mut any = false;
        for (outgoing, send_ring) in self.outgoing.iter_mut().zip(&handle.send_rings) {
            if let (Some(outgoing), Some(send_ring)) = (outgoing, send_ring) {
                let bytes = outgoing.bytes;
                let (sent, nulls) = outgoing.send(
                    &handle.fabric,
                    send_ring,
                    context.seqs,
                    &order,
                    context.pushes,
                );
                if sent + nulls > 0 {
                    let counters = &handle.shared.counters;
                    count_publication(counters, sent, nulls, outgoing.bytes - bytes);
                    any = true;
                }
            }
            // The unordered ring has no nulls.
            order.null_target = 0;
        }
        any
    }

    /// Number of messages this member must have sent so that none of another sender's first `count`
    /// messages waits for it: on receipt of message `k` of sender `j`, senders before `j` fill up
    /// through round `k`, senders after it through round `k - 1` (Spindle §III-B).
    pub(super) fn nulls_wanted(&self, handle: &SubgroupHandle<F>, order: u64, count: u64) -> u64 {
        let wanted = match handle.my_order {
            None => 0,
            Some(mine) if mine < order => count,
            Some(_) => count.saturating_sub(1),
        };
        wanted.min(MESSAGE_INDEX_MAX)
    }

    /// Number of messages of an ordered sender that have been received here. For this member, its
    /// guard: all own published messages count as received.
    pub(super) fn count(&self, sender: &Sender) -> Option<u64> {
        let cursor = sender.receive_cursors[0].as_ref()?;
        Some(match &self.outgoing[0] {
            Some(outgoing) if sender.rank == self.handle.fabric.me() => outgoing.published.index,
            _ => cursor.count(),
        })
    }

    /// Sequence number below which every message has been received here.
    pub(super) fn received(&self, handle: &SubgroupHandle<F>) -> u64 {
        let others = self.watch.next_of_others.value;
        match (&self.outgoing[0], handle.my_order) {
            // All own published messages count as received.
            (Some(own), Some(mine)) => others.min(own.published.index * handle.ordered + mine),
            _ => others,
        }
    }

    /// The sequence number of the next message of each ordered sender but this member, of all that
    /// have been received here.
    fn next_of_others(&self, me: Rank) -> Least {
        let n = self.ordered.len() as u64;
        let senders = self.ordered.iter().map(|&at| (at, &self.senders[at]));
        let others = senders.filter(|(_, sender)| sender.rank != me);
        Least::of(others.filter_map(|(at, sender)| {
            let count = sender.receive_cursors[0].as_ref()?.count();
            Some(Least {
                value: count * n + sender.order,
                holder: at as u16,
            })
        }))
    }

    /// Whether the member is the only ordered sender, so that its guard implies its receipt.
    pub(super) fn sends_all(&self, place: Rank) -> bool {
        match self.ordered[..] {
            [] => true,
            [only] => self.senders[only].rank == place,
            _ => false,
        }
    }

    /// Acknowledges what has been received of other senders; a sender's guard implies the receipt
    /// of its own. Pushes only if a real message is among it.
    pub(super) fn acknowledge<S>(
        &mut self,
        handle: &SubgroupHandle<F>,
        context: &mut Context<'_, S>,
    ) {
        if self.ordered.is_empty() {
            return;
        }
        let (fabric, me) = (&handle.fabric, handle.fabric.me());
        let received = self.watch.unacknowledged.take();
        if received.contains(self.watch.next_of_others.holder.into()) {
            self.watch.next_of_others = self.next_of_others(me);
        }
        self.received_num = self.received_num.max(self.received(handle));
        if received.is_empty() {
            return;
        }
        let of_others = self.watch.next_of_others.value;
        raise_word(fabric, handle.columns.received_num, of_others);
        let mut changed = false;
        for at in received.iter() {
            if let Some(cursor) = &self.senders[at].receive_cursors[0] {
                let told = raise_word(fabric, handle.columns.received(at), cursor.count());
                changed |= cursor.newest() > told;
            }
        }
        if changed {
            let (at, len) = (handle.columns.received_num, handle.columns.received_len());
            context.pushes.acks(at, len);
        }
    }

    /// Recomputes `stable`: the sequence number below which all members have received every
    /// message.
    pub(super) fn find_stable(&mut self, handle: &SubgroupHandle<F>) -> Result<bool, MemberFault> {
        let mut from = 0;
        while let Some(at) = self.watch.next_ack(from) {
            let noted = self.note_acknowledgement(handle, self.watch.acks[at].place)?;
            self.watch.acks[at].value = noted;
            from = at + 1;
        }
        handle.fabric.looked(self.watch.acks.len());
        if self.received_num <= self.stable {
            return Ok(false);
        }
        // Most often one that was behind before is still.
        let me = handle.fabric.me();
        let all = (0..self.members.len() as u16).map(Rank);
        let mut stable = self.received_num;
        for place in std::iter::once(self.watch.behind).chain(all) {
            if place == me || self.sends_all(place) {
                continue;
            }
            stable = stable.min(self.received_by(place, stable));
            if stable <= self.stable {
                self.watch.behind = place;
                return Ok(false);
            }
        }
        self.stable = stable;
        handle.stable.store(stable, Ordering::Release);
        Ok(true)
    }

    /// Sequence number below which a member has received every message, if that is below `end`, up
    /// to which everything has been received here. Nulls known here count as received by the
    /// member: it learns from the guard that there is no message. So a silent sender delays others
    /// by one way less, and nulls are not acknowledged.
    pub(super) fn received_by(&self, place: Rank, end: u64) -> u64 {
        let handle = &self.handle;
        let member = &self.members[place.index()];
        let (received_num, n) = (member.received_num, self.ordered.len() as u64);
        if received_num >= end || member.fenced {
            return received_num;
        }
        // It has received what it has sent itself.
        let cursor = |at: usize| {
            let sender = &self.senders[at];
            let cursor = sender.receive_cursors[0].as_ref();
            cursor.filter(|_| sender.rank != place)
        };
        // Usually it lacks exactly the next message, and no other count need be read.
        let (next, order) = (received_num / n, received_num % n);
        let at = self.ordered[order as usize];
        if cursor(at).and_then(|cursor| cursor.first_from(next)) == Some(next) {
            return received_num;
        }
        let row = handle.fabric.row(place);
        // Of others no real message is undelivered here.
        let lacks = self.watch.waiting[0].iter().filter_map(|at| {
            let cursor = cursor(at)?;
            let received = row.load(member.columns.received(at));
            Some(cursor.first_from(received)? * n + self.senders[at].order)
        });
        lacks.min().unwrap_or(end).max(received_num)
    }

    /// Notes what a member has acknowledged, and returns the word. Fails if that much cannot have
    /// been sent.
    pub(super) fn note_acknowledgement(
        &mut self,
        handle: &SubgroupHandle<F>,
        place: Rank,
    ) -> Result<u64, MemberFault> {
        let member = &self.members[place.index()];
        let received_num = handle.fabric.row(place).load(member.columns.received_num);
        if received_num > self.ack_reach {
            // Recomputed about once in a ring of messages.
            let n = self.ordered.len() as u64;
            self.watch.reach = self.reach(handle);
            self.ack_reach = (self.watch.reach.bound() + self.slack + 1) * n;
            if received_num > self.ack_reach {
                let what = Fault::ProtocolViolation(ProtocolViolation::AcknowledgedTooMuch);
                return Err(MemberFault { place, what });
            }
        }
        let member = &mut self.members[place.index()];
        // A push may carry an older value than an earlier push (F1).
        member.received_num = member.received_num.max(received_num);
        Ok(received_num)
    }
}

/// Raises a word of the own row to `value`. Returns its previous value.
fn raise_word<F: Fabric>(fabric: &F, word: usize, value: u64) -> u64 {
    // Only this engine writes the word.
    let told = fabric.row(fabric.me()).load(word);
    if told < value {
        fabric.store(word, value);
    }
    told
}

/// Counts a publication by the publishing thread.
pub(super) fn count_publication(counters: &LiveCounters, sent: u64, nulls: u64, bytes: u64) {
    if nulls > 0 {
        bump(&counters.nulls, nulls);
    }
    if sent > 0 {
        bump(&counters.sent, sent);
        bump(&counters.sent_bytes, bytes);
        counters.send_batches.record(sent);
    }
}

/// The same for one message without nulls after it.
#[inline]
pub(super) fn count_one(counters: &LiveCounters, bytes: u64) {
    bump(&counters.sent, 1);
    bump(&counters.sent_bytes, bytes);
    counters.send_batches.record(1);
}
