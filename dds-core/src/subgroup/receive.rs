//! Receive, send and null predicates of a subgroup, and its acknowledgements.
//!
//! Invariants: the own messages are received before those of others, because they bound how far
//! others can have sent; no guard beyond `reach` is followed; nulls are not acknowledged, receivers
//! infer them from the guard.

use spindle_dds_transport::{Fabric, Rank};

use super::{Context, Fault, MemberFault, Phase, Sender, SubgroupState};
use crate::counters::{LiveCounters, bump};
use crate::ids::DeliveryClass;
use crate::limits::MESSAGE_INDEX_MAX;
use crate::subgroup::handle::SubgroupHandle;
use crate::subgroup::outgoing::SendOrder;
use crate::subgroup::receive_cursor::ProtocolViolation;
use crate::sync::Ordering;

impl<F: Fabric> SubgroupState<F> {
    pub(super) fn receive<S>(
        &mut self,
        handle: &SubgroupHandle<F>,
        context: &Context<'_, S>,
    ) -> Result<bool, MemberFault> {
        let me = handle.fabric.me();
        let batching = context.config.receive_batching;
        let (mut taken, mut any) = (0, false);
        let mut reach = 0;
        for at in 0..self.senders.len() {
            let sender = &self.senders[at];
            if sender.rank == me || self.members[sender.rank.index()].fenced {
                continue;
            }
            // In an epoch that is ending, receives everything: the counts must be complete.
            let all = batching || self.phase != Phase::Open;
            let limit = if all { u64::MAX } else { 1 };
            for class in DeliveryClass::BOTH {
                let received = self.receive_ring(handle, (at, class), limit, &mut reach)?;
                if let Some(messages) = received {
                    taken += messages;
                    any = true;
                }
            }
        }
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
    fn reach(&self, handle: &SubgroupHandle<F>) -> u64 {
        let me = handle.fabric.me();
        let (mut highest, mut known, mut unknown) = (0_u64, 0_u64, 0_u64);
        for &at in &self.ordered {
            let sender = &self.senders[at];
            let (Some(cursor), Some(tracker)) =
                (&sender.receive_cursors[0], &handle.release_trackers[0][at])
            else {
                continue;
            };
            highest = highest.max(cursor.newest());
            known += cursor.received();
            // All own published messages have been received here.
            if sender.rank != me {
                unknown += cursor.unseen_max(tracker);
            }
        }
        highest.min(known) + unknown
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
            DeliveryClass::Ordered => {
                *ordered_reach = self.reach(handle);
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
        let taken = cursor.receive(row, tracker, guard, reach, limit);
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
                let taken = cursor.receive(row, tracker, guard, guard, u64::MAX);
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
            self.null_target = self.null_target.max(self.nulls_wanted(handle));
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

    /// Number of messages this member must have sent so that no message waits for it: on receipt of
    /// message `k` of sender `j`, senders before `j` fill up through round `k`, senders after it
    /// through round `k - 1` (Spindle §III-B).
    fn nulls_wanted(&self, handle: &SubgroupHandle<F>) -> u64 {
        let Some(mine) = handle.my_order else {
            return 0;
        };
        let mut wanted = 0;
        for (place, &at) in self.ordered.iter().enumerate() {
            let sender = &self.senders[at];
            let (Some(cursor), place) = (&sender.receive_cursors[0], place as u64) else {
                continue;
            };
            if place == mine {
                continue;
            }
            let count = cursor.count();
            wanted = wanted.max(if mine < place {
                count
            } else {
                count.saturating_sub(1)
            });
        }
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
    pub(super) fn received(&self) -> u64 {
        self.received_of(|_| true).unwrap_or_default()
    }

    /// The same for the ordered senders at the ranks for which `is_counted` holds; `None` without
    /// any.
    fn received_of(&self, is_counted: impl Fn(Rank) -> bool) -> Option<u64> {
        let n = self.ordered.len() as u64;
        let senders = self.ordered.iter().map(|&at| &self.senders[at]).zip(0..);
        let counted = senders.filter(|(sender, _)| is_counted(sender.rank));
        let counts = counted.filter_map(|(sender, place)| Some((self.count(sender)?, place)));
        counts
            .map(|(count, place): (_, u64)| count * n + place)
            .min()
    }

    /// Whether the member is the only ordered sender, so that its guard implies its receipt.
    pub(super) fn sends_all(&self, place: Rank) -> bool {
        let mut senders = self.ordered.iter().map(|&at| &self.senders[at]);
        senders.all(|sender| sender.rank == place)
    }

    /// Acknowledges what has been received of other senders; a sender's guard implies the receipt
    /// of its own. Pushes only if a real message is among it.
    pub(super) fn acknowledge<S>(
        &mut self,
        handle: &SubgroupHandle<F>,
        context: &mut Context<'_, S>,
    ) {
        let fabric = &handle.fabric;
        let me = fabric.me();
        self.received_num = self.received_num.max(self.received());
        if self.sends_all(me) {
            return;
        }
        let of_others = self.received_of(|rank| rank != me);
        raise_word(
            fabric,
            handle.columns.received_num,
            of_others.unwrap_or(self.received_num),
        );
        let mut changed = false;
        for (at, sender) in self.senders.iter().enumerate() {
            if let Some(cursor) = &sender.receive_cursors[0]
                && sender.rank != me
            {
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
        let me = handle.fabric.me();
        let mut stable = self.received_num;
        for place in (0..self.members.len() as u16).map(Rank) {
            let member = &self.members[place.index()];
            if place == me {
                continue;
            }
            if !member.fenced {
                self.note_acknowledgement(handle, place)?;
            }
            if !self.sends_all(place) {
                stable = stable.min(self.received_by(place, stable));
            }
        }
        if stable <= self.stable {
            return Ok(false);
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
        let cursor = |order: u64| {
            let sender = &self.senders[self.ordered[order as usize]];
            let cursor = sender.receive_cursors[0].as_ref();
            cursor.filter(|_| sender.rank != place)
        };
        // Usually it lacks exactly the next message, and no other count need be read.
        let (next, order) = (received_num / n, received_num % n);
        if cursor(order).and_then(|cursor| cursor.first_from(next)) == Some(next) {
            return received_num;
        }
        let row = handle.fabric.row(place);
        let lacks = (0..n).zip(&self.ordered).filter_map(|(order, &at)| {
            let cursor = cursor(order)?;
            let received = row.load(member.columns.received(at));
            Some(cursor.first_from(received)? * n + order)
        });
        lacks.min().unwrap_or(end).max(received_num)
    }

    /// Notes what a member has acknowledged. Fails if that much cannot have been sent.
    pub(super) fn note_acknowledgement(
        &mut self,
        handle: &SubgroupHandle<F>,
        place: Rank,
    ) -> Result<(), MemberFault> {
        let member = &self.members[place.index()];
        let received_num = handle.fabric.row(place).load(member.columns.received_num);
        if received_num > self.ack_reach {
            // Recomputed about once in a ring of messages.
            let n = self.ordered.len() as u64;
            self.ack_reach = (self.reach(handle) + self.slack + 1) * n;
            if received_num > self.ack_reach {
                let what = Fault::ProtocolViolation(ProtocolViolation::AcknowledgedTooMuch);
                return Err(MemberFault { place, what });
            }
        }
        let member = &mut self.members[place.index()];
        // A push may carry an older value than an earlier push (F1).
        member.received_num = member.received_num.max(received_num);
        Ok(())
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
