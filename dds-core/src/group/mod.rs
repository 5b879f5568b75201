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

mod deliver;
mod receive;
#[cfg(all(test, not(loom)))]
mod tests;

use std::sync::Arc;

use spindle_dds_transport::{Fabric, PeerSet, Rank};

use crate::config::{EngineConfig, PlantedBug};
use crate::digest::Digest;
use crate::engine::{Position, Sink, StopReason};
use crate::ids::{Ring, SubgroupId};
use crate::inbox::Inbox;
use crate::layout::Columns;
use crate::outgoing::{Outgoing, WriterSeqs};
use crate::pushes::Pushes;
use crate::shared::Shared;
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

    /// Whether messages of other senders are still held here.
    pub(crate) fn is_holding<F: Fabric>(&self, shared: &Shared<F>) -> bool {
        let Some(group) = &shared.groups[self.id.index()] else {
            return false;
        };
        let me = shared.fabric.me();
        Ring::BOTH.into_iter().any(|ring| {
            let inboxes = group.inboxes[ring.index()].iter().zip(&*group.senders);
            inboxes
                .filter(|(_, sender)| **sender != me)
                .any(|(inbox, _)| inbox.as_ref().is_some_and(Inbox::is_held))
        })
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
