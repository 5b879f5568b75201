//! What endpoints announce of storage, and what is kept of a topic.

use spindle_dds_core::MessageKind;
use spindle_dds_core::membership::{Endpoint, MemberId, View};
use spindle_dds_core::storage::HistoryLimits;
use spindle_dds_core::{DeliveryClass, SubgroupId};
use spindle_dds_transport::sim::Rng;

/// An endpoint. It keeps its GUID when its participant comes back.
pub(crate) type Guid = [u8; 16];

/// A storage level: DURABILITY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// A writer's participant keeps what it has written.
    TransientLocal,
    /// All participants with such an endpoint keep the topic.
    Transient,
}

/// An endpoint with a storage level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) member: MemberId,
    pub(crate) guid: Guid,
    pub(crate) level: Level,
    pub(crate) is_writer: bool,
    /// Its participant was a member before, under another id.
    pub(crate) has_returned: bool,
}

/// [`Member::info`](spindle_dds_core::membership::Member::info) of a participant that was a member
/// before.
pub(crate) const RETURNED: &[u8] = b"returned";

/// What [`Endpoint::info`] says: GUID and level, of a reader or a writer of ordered messages.
fn read(endpoint: &Endpoint) -> Option<(Guid, Level)> {
    let (guid, level) = endpoint.info.split_first_chunk()?;
    let level = match *level {
        [1] => Level::TransientLocal,
        [2] => Level::Transient,
        _ => return None,
    };
    let is_unordered = matches!(endpoint.ring, Some((DeliveryClass::Unordered, _)));
    (!is_unordered).then_some((*guid, level))
}

/// Gives an endpoint a storage level by chance.
pub(crate) fn draw(endpoint: &mut Endpoint, rng: &Rng, chance: f64) {
    // A copy of the generator: old seeds keep their lives.
    let mut rng = rng.clone();
    if !rng.chance(chance) {
        return;
    }
    let guid = [rng.next_u64(), rng.next_u64()];
    let level = 1 + rng.below(2) as u8;
    endpoint.info = [guid[0].to_le_bytes(), guid[1].to_le_bytes()].concat();
    endpoint.info.push(level);
}

/// The endpoints of a subgroup that have a storage level, by rank and number.
pub(crate) fn announced(view: &View, subgroup: SubgroupId) -> Vec<Announced> {
    let members = view.members.iter();
    let endpoints =
        members.flat_map(|member| member.endpoints.values().map(move |it| (member, it)));
    let here = endpoints.filter(|(_, endpoint)| endpoint.subgroup == subgroup);
    let with_level = here.filter_map(|(member, endpoint)| {
        let (guid, level) = read(endpoint)?;
        Some(Announced {
            member: member.id,
            guid,
            level,
            is_writer: endpoint.ring.is_some(),
            has_returned: member.info == RETURNED,
        })
    });
    with_level.collect()
}

/// The writer that a member's ordered messages in a subgroup are of, if it has a storage level.
pub(crate) fn writer_of(
    view: &View,
    member: MemberId,
    subgroup: SubgroupId,
) -> Option<(Guid, Level)> {
    let member = &view.members[view.rank(member)?.index()];
    let is_ordered = |it: &Endpoint| matches!(it.ring, Some((DeliveryClass::Ordered, _)));
    let mut writers = member.endpoints.values();
    let first = writers.find(|it| it.subgroup == subgroup && is_ordered(it))?;
    read(first)
}

/// What is kept of a topic, and what its messages are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Topic {
    pub(crate) limits: HistoryLimits,
    keys: u64,
    /// Whether instances are disposed of and unregistered.
    pub(crate) disposes: bool,
}

impl Topic {
    /// The topic of a subgroup in the life with this seed.
    pub(crate) fn of(seed: u64, subgroup: SubgroupId) -> Self {
        let mut rng = Rng::new(seed ^ 0x70_71c5 ^ u64::from(subgroup.0) << 32);
        let depth = [None, None, Some(1), Some(3)][rng.below(4)];
        let cleanup_delay_ns = [Some(0), Some(500), None][rng.below(3)];
        Self {
            limits: HistoryLimits {
                depth,
                cleanup_delay_ns,
                ..HistoryLimits::default()
            },
            keys: [1, 3][rng.below(2)],
            disposes: rng.chance(0.4),
        }
    }

    /// A topic whose history has all samples.
    #[cfg(test)]
    pub(crate) fn keeps_all() -> Self {
        Self {
            limits: HistoryLimits::default(),
            keys: 1,
            disposes: false,
        }
    }

    /// Kind and key hash of a message.
    pub(crate) fn message(&self, token: u64) -> (MessageKind, [u8; 16]) {
        let kind = match token % 11 {
            3 if self.disposes => MessageKind::Dispose,
            5 | 7 if self.disposes => MessageKind::DisposeUnregister,
            8 if self.disposes => MessageKind::Unregister,
            _ => MessageKind::Data,
        };
        (kind, [1 + (token / 2 % self.keys) as u8; 16])
    }
}
