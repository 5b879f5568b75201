//! Receive, send and null-send predicates of a subgroup, and what is said of it.

use spindle_dds_transport::Fabric;

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
        for (at, sender) in self.senders.iter_mut().enumerate() {
            if sender.rank == me {
                continue;
            }
            let row = fabric.row(sender.rank);
            // Of a sender that has left, all that is left: its farewell comes after.
            let limit = if sender.left { u64::MAX } else { limit };
            for ring in Ring::BOTH {
                let Some(stream) = &mut sender.streams[ring.index()] else {
                    continue;
                };
                let guard = row.load(stream.guard());
                if guard == stream.count() {
                    continue;
                }
                let Some(inbox) = &group.inboxes[ring.index()][at] else {
                    continue;
                };
                taken += stream
                    .receive(row, inbox, guard, limit, context.config)
                    .map_err(|what| StopReason::PeerNonsense {
                        rank: sender.rank,
                        what,
                    })?;
                any = true;
            }
        }
        if any {
            bump(&context.shared.counters.received, taken);
            context.shared.counters.receive_batches.record(taken);
        }
        Ok(any)
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
                    .receive(fabric.row(me), inbox, guard, u64::MAX, context.config)
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
