//! Receive, send and null-send predicates of a subgroup, and what is said of it.

use spindle_dds_transport::{Fabric, Rank};

use super::{Context, Found, Phase, Sender, SubgroupState, Trouble};
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
    ) -> Result<bool, Trouble> {
        let me = handle.fabric.me();
        let batching = context.config.receive_batching;
        let (mut taken, mut any) = (0, false);
        let mut reach = 0;
        for at in 0..self.senders.len() {
            let sender = &self.senders[at];
            if sender.rank == me || self.members[sender.rank.index()].fenced {
                continue;
            }
            // Of an epoch that ends, all: the counts come after.
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
            bump(&handle.common.counters.received, taken);
            handle.common.counters.receive_batches.record(taken);
        }
        Ok(any)
    }

    /// Where the guard of an ordered ring stands at most, if everybody keeps to
    /// the protocol. To be computed after the guard was loaded.
    ///
    /// Message `k` of a sender comes after its message `k - 1`, which was real or a null;
    /// and a null `k - 1` comes after a real message of another sender at `k - 1` or above
    /// (`nulls_wanted`). So if a sender has sent `g` messages, there are real messages at
    /// each of `0..g`. Those that are not known here are few: of each of the others at most
    /// what its ring holds. Hence `g` is at most
    ///
    /// - one more than the highest index of a real message known here, and
    /// - the number of real messages known here,
    ///
    /// each plus the number of those unknown. The first bounds how far a hostile
    /// guard can jump, the second how far such jumps lead: not further than the
    /// messages that were really sent.
    ///
    /// Who keeps to the protocol may have followed a guard that jumped, as far as it
    /// could tell, which others do not see any more. So nothing above is followed, but
    /// only a member that is further than that by `slack` is to blame. When an epoch ends, no member
    /// follows anybody, and all that is not to blame is received.
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
            known += cursor.real();
            // Of my own messages, all that are published have been received here.
            if sender.rank != me {
                unknown += cursor.unseen_max(tracker);
            }
        }
        highest.min(known) + unknown
    }

    /// Takes what a sender's guard vouches for; `None` when there is nothing new.
    /// `ordered_reach` is as of this pass: computing it once is enough, unless
    /// somebody releases meanwhile.
    pub(super) fn receive_ring(
        &mut self,
        handle: &SubgroupHandle<F>,
        (at, class): (usize, DeliveryClass),
        limit: u64,
        ordered_reach: &mut u64,
    ) -> Result<Option<u64>, Trouble> {
        let place = self.senders[at].rank;
        let row = handle.fabric.row(place);
        let (Some(cursor), Some(tracker)) = (
            &self.senders[at].receive_cursors[class.index()],
            &handle.release_trackers[class.index()][at],
        ) else {
            return Ok(None);
        };
        let guard = row.load(cursor.guard());
        if guard == cursor.count() {
            return Ok(None);
        }
        let reach = match class {
            // There are no nulls in this ring.
            DeliveryClass::Unordered => cursor.real() + cursor.unseen_max(tracker),
            DeliveryClass::Ordered if guard <= *ordered_reach => *ordered_reach,
            DeliveryClass::Ordered => {
                *ordered_reach = self.reach(handle);
                *ordered_reach + self.slack
            }
        };
        let is_jump =
            class == DeliveryClass::Ordered && self.phase == Phase::Open && guard <= reach;
        let guard = if is_jump && guard > *ordered_reach {
            cursor.count().max(*ordered_reach)
        } else {
            guard
        };
        if guard == cursor.count() {
            return Ok(None);
        }
        let Some(cursor) = &mut self.senders[at].receive_cursors[class.index()] else {
            return Ok(None);
        };
        let taken = cursor.receive(row, tracker, guard, reach, limit);
        taken.map(Some).map_err(|what| Trouble {
            place,
            what: Found::ProtocolViolation(what),
        })
    }

    /// Takes what my guards vouch for: messages that committing threads have published since
    /// the last pass wait for it.
    pub(super) fn receive_own(&mut self, handle: &SubgroupHandle<F>) -> Result<(), Trouble> {
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
                taken.map_err(|what| Trouble {
                    place,
                    what: Found::ProtocolViolation(what),
                })?;
            }
        }
        Ok(())
    }

    /// Publishes what is committed, and the nulls that others wait for by what has been
    /// received of them. Whether there was anything.
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

    /// Publishes what is committed, and nulls up to the target as it was found last. With
    /// `is_last`, nothing is pushed behind that before the flush.
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
            // Once the epoch is wedged, no sender is waited for.
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
                    let counters = &handle.common.counters;
                    count_publication(counters, sent, nulls, outgoing.bytes - bytes);
                    any = true;
                }
            }
            // There are none in the unordered ring.
            order.null_target = 0;
        }
        any
    }

    /// How many messages this member must have sent so that none waits for it: on
    /// receiving message `k` of sender `j`, senders before it fill up through
    /// round `k`, senders behind it through round `k - 1` (Spindle §III-B).
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

    /// Messages of an ordered sender that have been received here. Of my own these are all that
    /// are published: what I have of them, my guard says.
    pub(super) fn count(&self, sender: &Sender) -> Option<u64> {
        let cursor = sender.receive_cursors[0].as_ref()?;
        Some(match &self.outgoing[0] {
            Some(outgoing) if sender.rank == self.handle.fabric.me() => outgoing.published.index,
            _ => cursor.count(),
        })
    }

    /// Position below which everything has been received here.
    pub(super) fn received(&self) -> u64 {
        self.received_of(|_| true).unwrap_or_default()
    }

    /// The same of the ordered senders at some places alone; `None` without any.
    fn received_of(&self, is_counted: impl Fn(Rank) -> bool) -> Option<u64> {
        let n = self.ordered.len() as u64;
        let senders = self.ordered.iter().map(|&at| &self.senders[at]).zip(0..);
        let counted = senders.filter(|(sender, _)| is_counted(sender.rank));
        let counts = counted.filter_map(|(sender, place)| Some((self.count(sender)?, place)));
        counts
            .map(|(count, place): (_, u64)| count * n + place)
            .min()
    }

    /// Whether a member sends all that is ordered here: that it has received that, its
    /// guard says.
    pub(super) fn sends_all(&self, place: Rank) -> bool {
        let mut senders = self.ordered.iter().map(|&at| &self.senders[at]);
        senders.all(|sender| sender.rank == place)
    }

    /// Tells the others what has been received of others: what a sender has received of
    /// its own, its guard says. They are pushed to only where there is a message among it.
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
        tell(
            fabric,
            handle.columns.received_num,
            of_others.unwrap_or(self.received_num),
        );
        let mut changed = false;
        for (at, sender) in self.senders.iter().enumerate() {
            if let Some(cursor) = &sender.receive_cursors[0]
                && sender.rank != me
            {
                let told = tell(fabric, handle.columns.received(at), cursor.count());
                changed |= cursor.newest() > told;
            }
        }
        if changed {
            let (at, len) = (handle.columns.received_num, handle.columns.received_len());
            context.pushes.acks(at, len);
        }
    }

    /// Position below which every member has received all messages.
    pub(super) fn find_stable(&mut self, handle: &SubgroupHandle<F>) -> Result<bool, Trouble> {
        let me = handle.fabric.me();
        let mut stable = self.received_num;
        for place in (0..self.members.len() as u16).map(Rank) {
            let member = &self.members[place.index()];
            if place == me {
                continue;
            }
            if !member.fenced {
                self.heed_ack(handle, place)?;
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

    /// Place below which a member has received all messages, if that is below `end`, up to
    /// which everything has been received here. Nulls that are known here it may lack: what
    /// they say, that there is no message, need not be told twice. So who is silent
    /// delays others by one way less, and nulls are not acknowledged.
    pub(super) fn received_by(&self, place: Rank, end: u64) -> u64 {
        let handle = &self.handle;
        let member = &self.members[place.index()];
        let (received_num, n) = (member.received_num, self.ordered.len() as u64);
        if received_num >= end || member.fenced {
            return received_num;
        }
        // What it has sent itself it has.
        let cursor = |order: u64| {
            let sender = &self.senders[self.ordered[order as usize]];
            let cursor = sender.receive_cursors[0].as_ref();
            cursor.filter(|_| sender.rank != place)
        };
        // Mostly it lacks a message at just that place, and nothing else need be asked.
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

    /// Takes note of what a member says that it has received. Fails if nobody can
    /// have sent that much.
    pub(super) fn heed_ack(
        &mut self,
        handle: &SubgroupHandle<F>,
        place: Rank,
    ) -> Result<(), Trouble> {
        let member = &self.members[place.index()];
        let received_num = handle.fabric.row(place).load(member.columns.received_num);
        if received_num > self.ack_reach {
            // Once in a ring of messages or so.
            let n = self.ordered.len() as u64;
            self.ack_reach = (self.reach(handle) + self.slack + 1) * n;
            if received_num > self.ack_reach {
                let what = Found::ProtocolViolation(ProtocolViolation::AcknowledgedTooMuch);
                return Err(Trouble { place, what });
            }
        }
        let member = &mut self.members[place.index()];
        // A push may fetch an older value than one before it did (F1).
        member.received_num = member.received_num.max(received_num);
        Ok(())
    }
}

/// Has a word of my own row rise to `value`. What it was.
fn tell<F: Fabric>(fabric: &F, word: usize, value: u64) -> u64 {
    // What stands there is what I stored.
    let told = fabric.row(fabric.me()).load(word);
    if told < value {
        fabric.store(word, value);
    }
    told
}

/// Bookkeeping of a publication, by the publishing thread.
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

/// The same of one message, without nulls behind it.
#[inline]
pub(super) fn count_one(counters: &LiveCounters, bytes: u64) {
    bump(&counters.sent, 1);
    bump(&counters.sent_bytes, bytes);
    counters.send_batches.record(1);
}
