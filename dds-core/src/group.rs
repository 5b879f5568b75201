//! A subgroup as the engine keeps it: receive, null, send and delivery predicates.
//!
//! ```text
//!   guards of senders --receive--> counts --min--> received_num (mine) --push-->
//!   received_num of members --min--> stable --deliver--> delivered_num, released --push-->
//! ```
//!
//! Message `k` of ordered sender `i` of `n` stands at position `k * n + i`. With
//! `c[i]` messages received of sender `i`, everything below the least
//! `c[i] * n + i` is here: that is `received_num`. A sender that has left counts
//! as having sent nulls for ever after its last message; the position right
//! behind that message is where its leaving is told, at every member the same.

use std::sync::Arc;

use spindle_dds_transport::{Fabric, PeerSet, Rank};

use crate::config::{EngineConfig, PlantedBug};
use crate::counters::bump;
use crate::digest::Digest;
use crate::engine::{Event, Position, Sink, StopReason};
use crate::ids::{Ring, SubgroupId};
use crate::layout::Columns;
use crate::limits::{DIGESTS_KEPT, MESSAGE_INDEX_MAX};
use crate::outgoing::{Outgoing, SendOrder, WriterSeqs};
use crate::pushes::Pushes;
use crate::shared::{Delivery, GroupShared, Shared, count_publication};
use crate::spec::ViewSpec;
use crate::stream::Stream;
use crate::sync::Ordering;

/// The engine's state of one subgroup.
pub(crate) struct Group {
    id: SubgroupId,
    others: PeerSet,
    members: Vec<Member>,
    senders: Vec<Sender>,
    /// Indexes into `senders` of the ordered ones.
    ordered: Vec<usize>,
    outgoing: [Option<Outgoing>; 2],
    received_num: u64,
    delivered_num: u64,
    stable: u64,
    null_target: u64,
    digest: Digest,
    /// What the rows of others have been told of `released`, by ring and sender.
    released_told: [Vec<u64>; 2],
}

struct Member {
    rank: Rank,
    columns: Columns,
    received_num: u64,
    /// Checkpoints compared with this member's.
    compared: u64,
    gone: bool,
}

struct Sender {
    rank: Rank,
    streams: [Option<Stream>; 2],
    left: bool,
    /// By ring: its leaving has been told.
    left_told: [bool; 2],
}

/// What a pass over the predicates did.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Progress {
    pub(crate) any: bool,
    pub(crate) room: bool,
    pub(crate) stable: bool,
}

/// What a group needs from its engine during a step.
pub(crate) struct Context<'a, F: Fabric, S> {
    pub(crate) shared: &'a Arc<Shared<F>>,
    pub(crate) config: &'a EngineConfig,
    pub(crate) pushes: &'a mut Pushes,
    pub(crate) seqs: &'a mut WriterSeqs,
    pub(crate) sink: &'a mut S,
}

impl Group {
    pub(crate) fn new<F: Fabric>(shared: &Shared<F>, spec: &ViewSpec, at: usize) -> Option<Self> {
        let group = shared.groups[at].as_ref()?;
        let me = shared.fabric.me();
        let spec_group = &spec.subgroups[at];
        let stream = |ring: Ring, sender: usize| group.rings[ring.index()][sender].map(Stream::new);
        let senders: Vec<Sender> = (0..spec_group.senders.len())
            .map(|at| Sender {
                rank: spec_group.senders[at].rank,
                streams: Ring::BOTH.map(|ring| stream(ring, at)),
                left: false,
                left_told: [false; 2],
            })
            .collect();
        let members = spec_group.members.iter().filter_map(|&rank| {
            let columns = shared.layout.columns(rank, at)?.clone();
            Some(Member {
                rank,
                columns,
                received_num: 0,
                compared: 0,
                gone: false,
            })
        });
        Some(Self {
            id: SubgroupId(at as u32),
            others: spec_group
                .members
                .iter()
                .copied()
                .filter(|rank| *rank != me)
                .collect(),
            members: members.collect(),
            ordered: (0..senders.len())
                .filter(|&at| senders[at].streams[0].is_some())
                .collect(),
            outgoing: group.columns.rings.map(|ring| ring.map(Outgoing::new)),
            received_num: 0,
            delivered_num: 0,
            stable: 0,
            null_target: 0,
            digest: Digest::new(spec.view_id, at as u32),
            released_told: [vec![0; senders.len()], vec![0; senders.len()]],
            senders,
        })
    }

    /// The member has left for good; its guards are final.
    pub(crate) fn member_left(&mut self, rank: Rank, config: &EngineConfig) {
        if config.plants(PlantedBug::LeaverNotForgotten) {
            return self.member_gone(rank);
        }
        for sender in self.senders.iter_mut().filter(|sender| sender.rank == rank) {
            sender.left = true;
        }
        self.member_gone(rank);
    }

    /// The member does not acknowledge any more.
    pub(crate) fn member_gone(&mut self, rank: Rank) {
        for member in self.members.iter_mut().filter(|member| member.rank == rank) {
            member.gone = true;
        }
        self.others.remove(rank);
    }

    /// Receives, sends, delivers, releases. Events go to the sink.
    pub(crate) fn step<F: Fabric, S: Sink<F>>(
        &mut self,
        context: &mut Context<'_, F, S>,
    ) -> Result<Progress, StopReason> {
        let shared = context.shared.clone();
        let Some(group) = &shared.groups[self.id.index()] else {
            return Ok(Progress::default());
        };
        context.pushes.address(&self.others);
        let mut progress = Progress::default();
        progress.any |= self.receive(group, context)?;
        progress.any |= self.send(group, context);
        // A sender's own receipt is implied by its guard.
        progress.any |= self.receive_own(group, context)?;
        self.acknowledge(group, context);
        progress.stable = self.find_stable(group, context)?;
        progress.any |= self.deliver_ordered(group, context);
        progress.any |= self.deliver_unordered(group, context);
        self.release(group, context);
        progress.room = self.reclaim(group, context);
        if progress.room || progress.stable {
            // Pairs with the acquire in `Handle::changes`.
            group.changes.fetch_add(1, Ordering::Release);
        }
        self.compare_digests(context)?;
        Ok(progress)
    }

    /// Only what a committing thread needs: publishes. What it published waits
    /// for its delivery here like everything else.
    pub(crate) fn publish<F: Fabric, S>(
        &mut self,
        context: &mut Context<'_, F, S>,
    ) -> Result<(), StopReason> {
        let shared = context.shared.clone();
        let Some(group) = &shared.groups[self.id.index()] else {
            return Ok(());
        };
        context.pushes.address(&self.others);
        self.send(group, context);
        self.receive_own(group, context)?;
        // With its own receipt goes the last word that others wait for.
        self.acknowledge(group, context);
        Ok(())
    }

    fn receive<F: Fabric, S>(
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

    fn receive_own<F: Fabric, S>(
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

    fn send<F: Fabric, S>(&mut self, group: &GroupShared, context: &mut Context<'_, F, S>) -> bool {
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
    fn acknowledge<F: Fabric, S>(&mut self, group: &GroupShared, context: &mut Context<'_, F, S>) {
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
    fn find_stable<F: Fabric, S>(
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

    fn deliver_ordered<F: Fabric, S: Sink<F>>(
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
                context.sink.event(Event::SenderLeft {
                    subgroup: self.id,
                    ring: Ring::Ordered,
                    rank,
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

    fn deliver_unordered<F: Fabric, S: Sink<F>>(
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
                });
            }
        }
        self.end_batch(delivered, context);
        delivered > 0
    }

    /// Tells senders which room is theirs again.
    fn release<F: Fabric, S>(&mut self, group: &GroupShared, context: &mut Context<'_, F, S>) {
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
    fn reclaim<F: Fabric, S>(&mut self, group: &GroupShared, context: &Context<'_, F, S>) -> bool {
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
        });
    }

    /// Compares checkpoints with those of the other members.
    fn compare_digests<F: Fabric, S>(
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

    /// Whether acknowledgements of others would let this member go on with
    /// something that somebody waits for.
    pub(crate) fn wants_acks<F: Fabric, S: Sink<F>>(&self, sink: &S, me: Rank) -> bool {
        self.senders.iter().any(|sender| {
            let waits = |stream: &Stream| {
                let urgent = sender.rank != me || sink.is_reading(self.id);
                stream.waiting() > 0 && (urgent || stream.is_half_full())
            };
            let farewell = sender.left && sender.streams[0].is_some() && !sender.left_told[0];
            farewell || sender.streams.iter().flatten().any(waits)
        })
    }

    pub(crate) fn id(&self) -> SubgroupId {
        self.id
    }

    /// How far this member is.
    pub(crate) fn position(&self) -> Position {
        Position {
            received_num: self.received_num,
            stable: self.stable,
            delivered_num: self.delivered_num,
            digest: self.digest.value(),
        }
    }

    /// Whether everything committed has been published.
    pub(crate) fn is_published<F: Fabric>(&self, shared: &Shared<F>) -> bool {
        let Some(group) = &shared.groups[self.id.index()] else {
            return true;
        };
        self.outgoing
            .iter()
            .zip(&group.outboxes)
            .all(|(outgoing, outbox)| {
                let (Some(outgoing), Some(outbox)) = (outgoing, outbox) else {
                    return true;
                };
                let (index, real) = outbox.taken();
                index == outgoing.published.index && real == outgoing.published.real as u16
            })
    }
}
