//! A view of the participant group: its members, their endpoints, and the subgroups that follow.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spindle_dds_transport::{MEMBERS_MAX, Rank};

use super::compression::{compress, decompress};
use super::logs::{LogEnds, LogGroups};
use super::proposal::{Proposal, RequestId, Touched, Trim};
use crate::ids::{DeliveryClass, SubgroupId, TopicKey};
use crate::limits::{NOTE_LEN_MIN, NOTES_LEN_MAX, REPORT_LEN_MAX, SUBGROUPS_MAX, VIEW_LEN_MAX};
use crate::spec::{RingSpec, SenderSpec, SpecError, SubgroupSpec};
use crate::storage::{LogEnd, LogGroup, LogId};

/// Identity of a participant; never used again.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct MemberId(pub u128);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Identity of a running kernel. Members on one host share memory, and can certify each other's
/// deaths.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct HostId(pub u128);

/// An endpoint, as far as the group needs to know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The subgroup that carries its topic.
    pub subgroup: SubgroupId,
    /// Its topic.
    pub topic: TopicKey,
    /// The ring it writes to, with the sizes it asks for; `None` for a reader.
    pub ring: Option<(DeliveryClass, RingSpec)>,
    /// Opaque bytes for the layer above.
    pub info: Vec<u8>,
    /// The log that it stands for. A participant has one at most of a topic, without a ring.
    pub log: Option<LogEnd>,
}

/// A participant in a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its identity.
    pub id: MemberId,
    /// The host it runs on.
    pub host: HostId,
    /// Its address, for the driver.
    pub address: Vec<u8>,
    /// Opaque bytes for the layer above.
    pub info: Vec<u8>,
    /// Number of its updates that `endpoints` includes.
    pub updates: u64,
    /// Its endpoints, by numbers that it has chosen.
    /// Views in which the member has the same share them.
    pub endpoints: Arc<BTreeMap<u64, Endpoint>>,
    /// Its notes for the layer above, by numbers that it has chosen: data for all members that no
    /// subgroup depends on. Empty for a newcomer.
    #[serde(skip)]
    pub notes: BTreeMap<u64, Note>,
}

#[cfg(test)]
impl Member {
    /// A member with these endpoints, numbered from 0.
    pub(super) fn test(id: u128, endpoints: impl IntoIterator<Item = Endpoint>) -> Self {
        Self {
            id: MemberId(id),
            host: HostId(1),
            address: Vec::new(),
            info: Vec::new(),
            updates: 0,
            endpoints: Arc::new((0..).zip(endpoints).collect()),
            notes: BTreeMap::new(),
        }
    }
}

/// A note of a member. Equal notes in a view share memory.
pub type Note = Arc<[u8]>;

/// A view: agreed by all its members, immutable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Number of the view; each view's is one more than that of the view before.
    pub id: u64,
    /// The members by rank, the oldest first.
    pub members: Vec<Member>,
    /// The subgroups that have members, ascending.
    pub subgroups: Vec<SubgroupSpec>,
    /// The logs of each topic that has any.
    pub logs: BTreeMap<TopicKey, LogGroup>,
}

/// Why a list of members is no valid view.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// No member, or too many.
    #[error("a group has 1 to {MEMBERS_MAX} participants, and this one would have {0}")]
    Members(usize),
    /// A subgroup beyond the limit.
    #[error("subgroup {0} does not exist: there are {SUBGROUPS_MAX}")]
    Subgroup(SubgroupId),
    /// A subgroup that cannot be laid out.
    #[error(transparent)]
    SubgroupHandle(#[from] SpecError),
    /// More senders in more subgroups than a report has room for.
    #[error("the endpoints of all members together make too many senders in too many subgroups")]
    TooLarge,
    /// More notes than a newcomer can be told.
    #[error("the notes of all members together take more than {NOTES_LEN_MAX} bytes")]
    Notes,
    /// A topic with logs in two subgroups, or two of one member.
    #[error("subgroup {0}: a topic has a second log of a participant, or logs in another subgroup")]
    Logs(SubgroupId),
    /// A log that says what no log can have.
    #[error("log {0} has no possible end or rosters")]
    LogEnd(LogId),
    /// One member twice.
    #[error("member {0} is there twice")]
    Twice(MemberId),
    /// Bytes that are no view.
    #[error("not a view")]
    Unreadable,
}

/// A view as it is sent to newcomers; the subgroups follow from the members.
#[derive(Serialize, Deserialize)]
struct Wire {
    id: u64,
    members: Vec<Member>,
    /// Subgroup, epoch, base.
    subgroups: Vec<(u32, u64, u64)>,
    /// Ascending.
    logs: Vec<(TopicKey, LogGroup)>,
    /// Distinct notes.
    notes: Vec<Note>,
    /// Rank, number, and index into `notes`.
    noted: Vec<(u16, u64, u32)>,
}

impl View {
    /// The first view of a domain, of one member.
    pub fn first(founder: Member) -> Result<Self, ViewError> {
        let members = vec![founder];
        let ends = LogEnds::of(&members);
        ends.check()?;
        let logs = ends.next(&LogGroups::new(), &LogEnds::of(&[]), 1);
        let floors = ends.floors();
        let floor = |group| floors.get(&group).copied().unwrap_or(0);
        Self::of(1, members, logs, |group| (1, floor(group)))
    }

    /// Derives the subgroups; `since` gives epoch and base of each.
    fn of(
        id: u64,
        members: Vec<Member>,
        logs: LogGroups,
        since: impl Fn(SubgroupId) -> (u64, u64),
    ) -> Result<Self, ViewError> {
        if members.is_empty() || members.len() > MEMBERS_MAX {
            return Err(ViewError::Members(members.len()));
        }
        let mut known = BTreeSet::new();
        if let Some(twice) = members.iter().find(|member| !known.insert(member.id)) {
            return Err(ViewError::Twice(twice.id));
        }
        let subgroups = subgroups(&members, since)?;
        // A number takes at most ten bytes, a list has a length.
        let counts = subgroups
            .iter()
            .map(|group| 2 * 10 + group.senders.len() * 10);
        if counts.sum::<usize>() > REPORT_LEN_MAX {
            return Err(ViewError::TooLarge);
        }
        let notes = distinct(&members);
        let len = notes.iter().map(|note| note.len().max(NOTE_LEN_MIN));
        if len.sum::<usize>() > NOTES_LEN_MAX {
            return Err(ViewError::Notes);
        }
        Ok(Self {
            id,
            members,
            subgroups,
            logs,
        })
    }

    /// The rank of a member.
    pub fn rank(&self, id: MemberId) -> Option<Rank> {
        let at = self.members.iter().position(|member| member.id == id)?;
        Some(Rank(at as u16))
    }

    /// A subgroup, if it has members.
    pub fn subgroup(&self, id: SubgroupId) -> Option<&SubgroupSpec> {
        let at = self
            .subgroups
            .binary_search_by_key(&id, |subgroup| subgroup.subgroup);
        at.ok().map(|at| &self.subgroups[at])
    }

    /// The view as bytes, compressed, for newcomers.
    pub fn to_bytes(&self) -> Vec<u8> {
        let subgroup =
            |subgroup: &SubgroupSpec| (subgroup.subgroup.0, subgroup.epoch, subgroup.base);
        let notes = distinct(&self.members);
        let places: BTreeMap<_, _> = (0..)
            .zip(&notes)
            .map(|(at, it)| (it.as_ptr(), at))
            .collect();
        let members = (0..).zip(&self.members);
        let noted = members.flat_map(|(rank, member)| {
            let place = |note: &Note| places.get(&note.as_ptr()).copied();
            let notes = member.notes.iter();
            notes.filter_map(move |(number, note)| Some((rank, *number, place(note)?)))
        });
        let wire = Wire {
            id: self.id,
            members: self.members.clone(),
            subgroups: self.subgroups.iter().map(subgroup).collect(),
            logs: self.logs.clone().into_iter().collect(),
            noted: noted.collect(),
            notes,
        };
        // Encoding into memory does not fail.
        compress(&postcard::to_allocvec(&wire).unwrap_or_default())
    }

    /// Reads and checks the bytes that [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ViewError> {
        let bytes = decompress(bytes, VIEW_LEN_MAX).ok_or(ViewError::Unreadable)?;
        let mut wire: Wire = postcard::from_bytes(&bytes).map_err(|_| ViewError::Unreadable)?;
        for (rank, number, place) in &wire.noted {
            let member = wire.members.get_mut(usize::from(*rank));
            let note = wire.notes.get(*place as usize);
            let (member, note) = member.zip(note).ok_or(ViewError::Unreadable)?;
            member.notes.insert(*number, note.clone());
        }
        let subgroups: BTreeMap<u32, (u64, u64)> = wire
            .subgroups
            .iter()
            .map(|&(id, epoch, base)| (id, (epoch, base)))
            .collect();
        let ends = LogEnds::of(&wire.members);
        ends.check()?;
        let logs = ends.read(wire.logs, wire.id).ok_or(ViewError::Unreadable)?;
        let view = Self::of(wire.id, wire.members, logs, |id| {
            subgroups.get(&id.0).copied().unwrap_or_default()
        })?;
        let known = |subgroup: &SubgroupSpec| subgroup.epoch > 0 && subgroup.epoch <= view.id;
        if view.subgroups.iter().all(known) && subgroups.len() == view.subgroups.len() {
            Ok(view)
        } else {
            Err(ViewError::Unreadable)
        }
    }

    /// The view that a proposal makes of this one: a pure function, so that all members compute the
    /// same view. Requests that no view can fulfil are left out before they are proposed.
    pub fn next(&self, proposal: &Proposal) -> Result<Self, ViewError> {
        let id = self.id + 1;
        let touched = proposal.touched(self);
        let gone: BTreeSet<u16> = proposal.removals.iter().map(|gone| gone.rank).collect();
        let staying = (0..).zip(&self.members);
        let mut members: Vec<Member> = staying
            .filter(|(rank, _)| !gone.contains(rank))
            .map(|(_, member)| member.clone())
            .collect();
        // A refused update counts as applied, in its turn.
        let skip = |member: &mut Member| {
            let next = |member: &Member| RequestId::Update {
                member: member.id,
                number: member.updates + 1,
            };
            while proposal.refuses(next(member)).is_some() {
                member.updates += 1;
            }
        };
        for update in &proposal.updates {
            let notes = as_noted(&update.notes.put, &members);
            if let Some(member) = members.iter_mut().find(|member| member.id == update.member) {
                skip(member);
                update.apply(member, notes);
            }
        }
        members.iter_mut().for_each(skip);
        members.extend(proposal.joins.iter().cloned());
        let trims = proposal.trims.iter().map(|trim| (trim.subgroup, trim));
        let trims: BTreeMap<SubgroupId, &Trim> = trims.collect();
        let ends = |id| Some(self.subgroup(id)?.end(&trims.get(&id)?.counts));
        let log_ends = LogEnds::of(&members);
        log_ends.check()?;
        let before = match self.logs.is_empty() {
            true => LogEnds::of(&[]),
            false => LogEnds::of(&self.members),
        };
        let logs = log_ends.next(&self.logs, &before, id);
        let floors = log_ends.floors();
        let floor = |group| floors.get(&group).copied().unwrap_or(0);
        Self::of(id, members, logs, |group| match self.subgroup(group) {
            Some(old) if !touched.contains(group) => (old.epoch, old.base),
            Some(_) => (id, ends(group).unwrap_or(0).max(floor(group))),
            None => (id, floor(group)),
        })
    }
}

/// The distinct notes of members.
fn distinct(members: &[Member]) -> Vec<Note> {
    let notes = members.iter().flat_map(|member| member.notes.values());
    let mut known = BTreeSet::new();
    let new = notes.filter(|note| known.insert(note.as_ptr()));
    new.cloned().collect()
}

/// New notes; a note that a member already has shares that memory.
fn as_noted(notes: &[(u64, Note)], members: &[Member]) -> Vec<(u64, Note)> {
    let known = |note: &Note| {
        let mut all = members.iter().flat_map(|member| member.notes.values());
        all.find(|known| *known == note).unwrap_or(note).clone()
    };
    notes
        .iter()
        .map(|(number, note)| (*number, known(note)))
        .collect()
}

/// What endpoints make of a subgroup.
#[derive(Debug, Default)]
struct SubgroupParts {
    /// Its members, each with the rings that it writes to.
    members: Vec<(Rank, [Option<RingSpec>; 2])>,
    /// Some of them several times.
    topics: Vec<TopicKey>,
    is_logged: bool,
}

impl SubgroupParts {
    /// Adds an endpoint of a member; those of one member follow each other. A sender's ring is as
    /// large as the largest that its writers ask for.
    fn add(&mut self, rank: Rank, endpoint: &Endpoint) {
        if self.topics.last() != Some(&endpoint.topic) {
            self.topics.push(endpoint.topic);
        }
        if self.members.last().is_none_or(|(last, _)| *last != rank) {
            self.members.push((rank, [None; 2]));
        }
        self.is_logged |= endpoint.log.is_some();
        if let Some((class, spec)) = endpoint.ring
            && let Some((_, rings)) = self.members.last_mut()
        {
            let have: &mut Option<RingSpec> = &mut rings[class.index()];
            *have = Some(have.map_or(spec, |have| have.larger(spec)));
        }
    }

    fn into_spec(mut self, subgroup: SubgroupId, (epoch, base): (u64, u64)) -> SubgroupSpec {
        self.topics.sort_unstable();
        self.topics.dedup();
        let places = (0..).map(Rank).zip(&self.members);
        let senders = places.filter(|(_, (_, rings))| rings.iter().any(Option::is_some));
        SubgroupSpec {
            subgroup,
            epoch,
            base,
            senders: senders
                .map(|(rank, (_, rings))| SenderSpec {
                    rank,
                    rings: *rings,
                })
                .collect(),
            members: self.members.iter().map(|(rank, _)| *rank).collect(),
            topics: self.topics,
            is_logged: self.is_logged,
        }
    }
}

/// The subgroups of all members with an endpoint on one of their topics, in one pass over the
/// endpoints; `since` gives epoch and base of each.
fn subgroups(
    members: &[Member],
    since: impl Fn(SubgroupId) -> (u64, u64),
) -> Result<Vec<SubgroupSpec>, ViewError> {
    // By subgroup.
    let mut parts: Vec<Option<SubgroupParts>> = Vec::new();
    for (rank, member) in (0..).map(Rank).zip(members) {
        for endpoint in member.endpoints.values() {
            let at = endpoint.subgroup.index();
            if at >= SUBGROUPS_MAX {
                return Err(ViewError::Subgroup(endpoint.subgroup));
            }
            if at >= parts.len() {
                parts.resize_with(at + 1, || None);
            }
            parts[at].get_or_insert_default().add(rank, endpoint);
        }
    }
    let there = (0..).map(SubgroupId).zip(parts);
    let there = there.filter_map(|(id, parts)| Some((id, parts?)));
    let specs = there.map(|(id, parts)| {
        let spec = parts.into_spec(id, since(id));
        spec.check()?;
        Ok(spec)
    });
    specs.collect()
}

impl Touched {
    pub(crate) fn contains(&self, subgroup: SubgroupId) -> bool {
        match self {
            Self::All => true,
            Self::Only(some) => some.contains(&subgroup),
        }
    }
}
