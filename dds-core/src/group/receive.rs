//! Receive, send and null-send predicates of a subgroup, and what is said of it.

use spindle_dds_transport::{Fabric, Rank};

use super::{Context, Group};
use crate::config::{EngineConfig, PlantedBug};
use crate::counters::bump;
use crate::engine::StopReason;
use crate::ids::Ring;
use crate::limits::MESSAGE_INDEX_MAX;
use crate::outgoing::SendOrder;
use crate::shared::{GroupShared, count_publication};
use crate::sync::Ordering;

impl Group {
    pub(super) fn receive<F: Fabric, S>(
        &mut self,
        group: &GroupShared,
        context: &mut Context<'_, F, S>,
    ) -> Result<bool, StopReason> {
        let fabric = &context.shared.fabric;
        let me = fabric.me();
        let limit = if context.config.receive_batching {
            u64::MAX
        } else {
            1
        };
        let (mut taken, mut any) = (0, false);
        let mut ordered_reach = 0;
        for at in 0..self.senders.len() {
            let rank = self.senders[at].rank;
            if rank == me {
                continue;
            }
            let row = fabric.row(rank);
            // Of a sender that has left, all that is left: its farewell comes after.
            let limit = if self.senders[at].left {
                u64::MAX
            } else {
                limit
            };
            for ring in Ring::BOTH {
                let (Some(stream), Some(inbox)) = (
                    &self.senders[at].streams[ring.index()],
                    &group.inboxes[ring.index()][at],
                ) else {
                    continue;
                };
                let guard = row.load(stream.guard());
                if guard == stream.count() {
                    continue;
                }
                let reach = match ring {
                    // Once a pass is enough, unless somebody releases meanwhile.
                    Ring::Ordered if guard <= ordered_reach => ordered_reach,
                    Ring::Ordered => {
                        ordered_reach = self.reach(group, me);
                        ordered_reach
                    }
                    // There are no nulls in this ring.
                    Ring::Unordered => stream.real() + stream.unseen_max(inbox),
                };
                let Some(stream) = &mut self.senders[at].streams[ring.index()] else {
                    continue;
                };
                taken += stream
                    .receive(row, inbox, guard, reach, limit, context.config)
                    .map_err(|what| StopReason::PeerNonsense { rank, what })?;
                any = true;
            }
        }
        if any {
            bump(&context.shared.counters.received, taken);
            context.shared.counters.receive_batches.record(taken);
        }
        Ok(any)
    }

    /// Where the guard of an ordered ring stands at most, if everybody keeps to
    /// the protocol. To be computed after the guard was loaded.
    ///
    /// Call a real message, or a sender's leaving (which stands where its next
    /// message would), an event. Message `k` of a sender comes after its message
    /// `k - 1`, which was an event or a null; and a null `k - 1` comes after an
    /// event of somebody at `k - 1` or above (`nulls_wanted`). So whoever has
    /// sent `g` messages, there are events at each of `0..g`. Those that are not
    /// known here are few: of each of the others at most what its ring holds,
    /// and its leaving. Hence `g` is at most
    ///
    /// - one more than the highest index of an event known here, and
    /// - the number of events known here,
    ///
    /// each plus the number of those unknown. The first bounds how far a hostile
    /// guard can jump, the second how far such jumps lead: not further than the
    /// messages that were really sent.
    fn reach(&self, group: &GroupShared, me: Rank) -> u64 {
        let (mut highest, mut known, mut unknown) = (0_u64, 0_u64, 0_u64);
        for &at in &self.ordered {
            let sender = &self.senders[at];
            let (Some(stream), Some(inbox)) = (&sender.streams[0], &group.inboxes[0][at]) else {
                continue;
            };
            highest = highest.max(stream.newest());
            known += stream.real();
            // Of my own messages, all that are published have been received here.
            if sender.rank != me {
                unknown += stream.unseen_max(inbox) + 1;
            }
        }
        highest.min(known) + unknown
    }

    pub(super) fn receive_own<F: Fabric, S>(
        &mut self,
        group: &GroupShared,
        context: &mut Context<'_, F, S>,
    ) -> Result<bool, StopReason> {
        let fabric = &context.shared.fabric;
        let me = fabric.me();
        let mut any = false;
        let Ok(at) = self.senders.binary_search_by_key(&me, |sender| sender.rank) else {
            return Ok(false);
        };
        for ring in Ring::BOTH.map(Ring::index) {
            let (Some(stream), Some(outgoing), Some(inbox)) = (
                &mut self.senders[at].streams[ring],
                &self.outgoing[ring],
                &group.inboxes[ring][at],
            ) else {
                continue;
            };
            let guard = outgoing.published.index;
            if guard != stream.count() {
                stream
                    .receive(
                        fabric.row(me),
                        inbox,
                        guard,
                        guard,
                        u64::MAX,
                        context.config,
                    )
                    .map_err(|what| StopReason::PeerNonsense { rank: me, what })?;
                any = true;
            }
        }
        Ok(any)
    }

    pub(super) fn send<F: Fabric, S>(
        &mut self,
        group: &GroupShared,
        context: &mut Context<'_, F, S>,
    ) -> bool {
        let fabric = &context.shared.fabric;
        let limit = if context.config.send_batching {
            u64::MAX
        } else {
            1
        };
        if context.config.null_sends {
            self.null_target = self
                .null_target
                .max(self.nulls_wanted(group, context.config));
        }
        let mut any = false;
        for ring in Ring::BOTH.map(Ring::index) {
            let (Some(outgoing), Some(outbox)) = (&mut self.outgoing[ring], &group.outboxes[ring])
            else {
                continue;
            };
            let before = outgoing.published;
            let target = if ring == Ring::Ordered.index() {
                self.null_target
            } else {
                0
            };
            let order = SendOrder {
                limit,
                null_target: target,
                config: context.config,
            };
            outgoing.send(fabric, outbox, context.seqs, &order, context.pushes);
            if outgoing.published != before {
                count_publication(&context.shared.counters, &before, &outgoing.published);
                any = true;
            }
        }
        any
    }

    /// How many messages I must have sent so that nobody waits for me: on
    /// receiving message `k` of sender `j`, senders before it fill up through
    /// round `k`, senders behind it through round `k - 1` (Spindle §III-B).
    fn nulls_wanted(&self, group: &GroupShared, config: &EngineConfig) -> u64 {
        let Some(mine) = group.my_place else { return 0 };
        let mut wanted = 0;
        for (place, &at) in self.ordered.iter().enumerate() {
            let sender = &self.senders[at];
            let (Some(stream), place) = (&sender.streams[0], place as u64) else {
                continue;
            };
            if place == mine {
                continue;
            }
            // Its leaving stands where its next message would.
            let count = stream.count() + u64::from(sender.left);
            wanted = wanted.max(if mine < place {
                count
            } else {
                count.saturating_sub(1)
            });
            if config.plants(PlantedBug::NullsForEver) {
                wanted = wanted.max(count + 1);
            }
        }
        if config.plants(PlantedBug::NullsTooFew) {
            wanted = wanted.saturating_sub(1);
        }
        wanted.min(MESSAGE_INDEX_MAX)
    }

    /// Position below which everything has been received here.
    fn received(&self) -> u64 {
        let n = self.ordered.len() as u64;
        let counts = self.ordered.iter().zip(0..).filter_map(|(&at, place)| {
            let sender = &self.senders[at];
            Some((sender.left, sender.streams[0].as_ref()?.count(), place))
        });
        let present = counts.clone().filter(|(left, ..)| !left);
        let least = present
            .map(|(_, count, place): (_, _, u64)| count * n + place)
            .min();
        // When all have left, everything is here, and so are their farewells.
        least.unwrap_or_else(|| {
            counts
                .map(|(_, count, _)| (count + 1) * n)
                .max()
                .unwrap_or_default()
        })
    }

    /// Tells the others what has been received.
    pub(super) fn acknowledge<F: Fabric, S>(
        &mut self,
        group: &GroupShared,
        context: &mut Context<'_, F, S>,
    ) {
        let fabric = &context.shared.fabric;
        let mut changed = false;
        for (at, sender) in self.senders.iter().enumerate() {
            let Some(stream) = &sender.streams[0] else {
                continue;
            };
            let word = group.columns.received(at);
            // My own row: what stands there is what I stored.
            if fabric.row(fabric.me()).load(word) != stream.count() {
                fabric.store(word, stream.count());
                changed = true;
            }
        }
        let received_num = self.received();
        if received_num > self.received_num {
            self.received_num = received_num;
            fabric.store(group.columns.received_num, received_num);
            changed = true;
        }
        if changed {
            let (at, len) = (group.columns.received_num, group.columns.received_len());
            context.pushes.acks(fabric, at, len);
        }
    }

    /// Position below which every member has received everything.
    pub(super) fn find_stable<F: Fabric, S>(
        &mut self,
        group: &GroupShared,
        context: &Context<'_, F, S>,
    ) -> Result<bool, StopReason> {
        let fabric = &context.shared.fabric;
        let me = fabric.me();
        let mut stable = self.received_num;
        for member in self
            .members
            .iter_mut()
            .filter(|member| !member.gone && member.rank != me)
        {
            let received_num = fabric.row(member.rank).load(member.columns.received_num);
            // A push may fetch an older value than one before it did (F1).
            member.received_num = member.received_num.max(received_num);
            if !context.config.plants(PlantedBug::DeliverUnstable) {
                stable = stable.min(member.received_num);
            }
        }
        if stable <= self.stable {
            return Ok(false);
        }
        self.stable = stable;
        group.stable.store(stable, Ordering::Release);
        Ok(true)
    }
}
