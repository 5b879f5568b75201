//! Requests of members, and the proposal that ends a view.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spindle_dds_transport::{MEMBERS_MAX, Rank};

use super::compression::{compress, decompress};
use super::view::{Endpoint, Member, MemberId, Note, View, ViewError};
use crate::ids::SubgroupId;
use crate::limits::CHANGES_LEN_MAX;
use crate::spec::SubgroupSpec;

/// A request to the leader. It stays open until a view fulfils or refuses it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// A change of the member's endpoints.
    Update(Update),
    /// Admission of a newcomer that has contacted this member.
    Join(Member),
    /// To leave for good.
    Leave,
}

impl Request {
    /// Its identity; `None` for a request that is never refused.
    pub(super) fn id(&self) -> Option<RequestId> {
        match self {
            Self::Update(Update { member, number, .. }) => Some(RequestId::Update {
                member: *member,
                number: *number,
            }),
            Self::Join(member) => Some(RequestId::Join(member.id)),
            Self::Leave => None,
        }
    }
}

/// Identity of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RequestId {
    /// An update.
    Update {
        /// The member that changes.
        member: MemberId,
        /// Number of the update.
        number: u64,
    },
    /// Admission of a newcomer.
    Join(MemberId),
}

/// A request that no view can fulfil as things stand, or for which a member lacks something. The
/// refusal settles it: a refused update counts as applied, and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The request.
    pub request: RequestId,
    /// The reason, in words.
    pub reason: String,
    /// Whether a member lacks something for it, which it may have another time.
    pub is_lack: bool,
}

impl Refusal {
    /// The next view would be invalid with it. A view that is full has room another time.
    pub(super) fn of(request: RequestId, error: &ViewError) -> Self {
        Self {
            is_lack: matches!(error, ViewError::Members(len) if *len > MEMBERS_MAX),
            ..Self::invalid(request, error.to_string())
        }
    }

    /// No view can fulfil the request.
    pub(super) fn invalid(request: RequestId, reason: String) -> Self {
        Self {
            request,
            reason,
            is_lack: false,
        }
    }
}

/// A request, read from a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReadRequest {
    /// The request.
    Whole(Request),
    /// A request that is too long for a row, and is refused.
    TooLong(RequestId),
    /// A request that was refused before, in a view that ended without saying so.
    Refused(Refusal),
}

impl ReadRequest {
    pub(super) fn id(&self) -> Option<RequestId> {
        match self {
            Self::Whole(request) => request.id(),
            Self::TooLong(asked) => Some(*asked),
            Self::Refused(refusal) => Some(refusal.request),
        }
    }

    /// Whether it asks for more than the members have.
    pub(super) fn adds(&self) -> bool {
        match self {
            Self::Whole(Request::Join(_)) => true,
            Self::Whole(Request::Update(update)) => update.adds(),
            Self::Whole(Request::Leave) | Self::TooLong(_) | Self::Refused(_) => false,
        }
    }
}

/// A change of a member's endpoints and notes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// The member.
    pub member: MemberId,
    /// Number of this update of the member, from 1; updates are applied once, in order.
    pub number: u64,
    /// New and changed endpoints, by the member's numbers.
    pub put: Vec<(u64, Endpoint)>,
    /// Numbers of the endpoints that go.
    pub remove: Vec<u64>,
    /// Changes of notes. Encoded apart, as most updates have none.
    #[serde(skip)]
    pub notes: Notes,
}

/// A change of a member's notes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Notes {
    /// New notes, by the member's numbers.
    pub put: Vec<(u64, Note)>,
    /// Numbers of the notes that go.
    pub remove: Vec<u64>,
}

/// A member that is not in the next view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removal {
    /// Its rank in the view that ends.
    pub rank: u16,
    /// Why it is removed.
    pub reason: RemovalReason,
}

/// Why a member is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RemovalReason {
    /// It asked to leave.
    Left,
    /// It was expelled: the cause that the first member to suspect it gave.
    Failed(String),
}

/// The trim of a subgroup: of each sender's ordered ring, all members deliver this many messages,
/// nulls counted, and nothing beyond.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trim {
    /// The subgroup.
    pub subgroup: SubgroupId,
    /// By sender, in the order of [`SubgroupSpec::senders`](crate::SubgroupSpec::senders).
    pub counts: Vec<u64>,
}

/// How a view ends. There is one in each view, whichever member leads; a new leader completes it
/// unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// Number of the view that it ends.
    pub view: u64,
    /// Members that leave or are expelled.
    pub removals: Vec<Removal>,
    /// Members that join; they take the last ranks.
    pub joins: Vec<Member>,
    /// Updates of endpoints.
    pub updates: Vec<Update>,
    /// Requests that are refused.
    pub refusals: Vec<Refusal>,
    /// Trims of the touched subgroups.
    pub trims: Vec<Trim>,
    /// Number of the preparation that all members have made for it; 0 if it is not prepared by
    /// all.
    pub preparation: u64,
}

/// Subgroups whose epochs end with a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    /// All: an expulsion replaces all memory that the expelled member can write to.
    All,
    /// These.
    Only(BTreeSet<SubgroupId>),
}

impl Update {
    /// Applies the update, if it is this member's next; `notes` are its notes with shared memory.
    pub(super) fn apply(&self, member: &mut Member, notes: Vec<(u64, Note)>) {
        if self.number != member.updates + 1 {
            return;
        }
        member.updates = self.number;
        let endpoints = Arc::make_mut(&mut member.endpoints);
        for number in &self.remove {
            endpoints.remove(number);
        }
        endpoints.extend(self.put.iter().cloned());
        for number in &self.notes.remove {
            member.notes.remove(number);
        }
        member.notes.extend(notes);
    }

    /// Whether it needs anything of the members: endpoints or notes come, or change.
    pub(super) fn adds(&self) -> bool {
        !self.put.is_empty() || !self.notes.put.is_empty()
    }

    /// The subgroups whose endpoints change.
    fn touches(&self, view: &View) -> BTreeSet<SubgroupId> {
        let member = view
            .rank(self.member)
            .map(|rank| &view.members[rank.index()]);
        let put = self.put.iter().map(|(number, _)| number);
        let changed = put.chain(&self.remove);
        let before = changed.filter_map(|number| member?.endpoints.get(number));
        let after = self.put.iter().map(|(_, endpoint)| endpoint);
        before
            .chain(after)
            .map(|endpoint| endpoint.subgroup)
            .collect()
    }
}

impl Proposal {
    /// A proposal that changes nothing.
    pub(super) fn empty(view: u64) -> Self {
        Self {
            view,
            removals: Vec::new(),
            joins: Vec::new(),
            updates: Vec::new(),
            refusals: Vec::new(),
            trims: Vec::new(),
            preparation: 0,
        }
    }

    /// Whether it changes no member.
    pub(super) fn changes_nothing(&self) -> bool {
        self.removals.is_empty() && self.joins.is_empty() && self.updates.is_empty()
    }

    /// The requests that it fulfils and that ask for more than the members have.
    pub fn additions(&self) -> impl Iterator<Item = RequestId> {
        let joins = self.joins.iter().map(|member| RequestId::Join(member.id));
        let updates = self.updates.iter().filter(|update| update.adds());
        let updates = updates.map(|update| RequestId::Update {
            member: update.member,
            number: update.number,
        });
        joins.chain(updates)
    }

    /// Whether it changes the same, whatever its trims are and whether it is prepared or not.
    pub fn is_same_change(&self, other: &Self) -> bool {
        self.view == other.view
            && self.removals == other.removals
            && self.joins == other.joins
            && self.updates == other.updates
            && self.refusals == other.refusals
    }

    pub(super) fn refuses(&self, asked: RequestId) -> Option<&Refusal> {
        self.refusals
            .iter()
            .find(|refusal| refusal.request == asked)
    }

    /// Removes a member, once.
    pub(super) fn remove(&mut self, rank: Rank, reason: RemovalReason) {
        if !self.removals.iter().any(|removal| removal.rank == rank.0) {
            self.removals.push(Removal {
                rank: rank.0,
                reason,
            });
        }
    }

    /// All bytes of it: the proposal, then the notes of its updates, if there are any.
    fn to_bytes(&self) -> Vec<u8> {
        // Encoding into memory does not fail.
        let mut bytes = postcard::to_allocvec(self).unwrap_or_default();
        bytes.extend(self.notes_bytes());
        bytes
    }

    fn notes_bytes(&self) -> Vec<u8> {
        let updates = (0..).zip(&self.updates);
        let noting = updates.filter(|(_, update)| update.notes != Notes::default());
        let notes: Vec<(u32, &Notes)> = noting.map(|(at, update)| (at, &update.notes)).collect();
        match notes.is_empty() {
            true => Vec::new(),
            false => postcard::to_allocvec(&notes).unwrap_or_default(),
        }
    }

    /// What it changes, the notes of its updates behind it.
    fn changes_bytes(&self) -> Vec<u8> {
        let (view, removals, joins) = (self.view, &self.removals, &self.joins);
        let changes = (view, removals, joins, &self.updates, &self.refusals);
        let mut bytes = postcard::to_allocvec(&changes).unwrap_or_default();
        bytes.extend(self.notes_bytes());
        bytes
    }

    /// The text in a row: what it changes, compressed, then its trims and the number of its
    /// preparation.
    pub(super) fn to_text(&self) -> Vec<u8> {
        let changes = compress(&self.changes_bytes());
        let tail = (&self.trims, self.preparation);
        postcard::to_allocvec(&(changes, tail)).unwrap_or_default()
    }

    /// The length of its text without trims; `None` if what it changes is more than members read.
    pub(super) fn text_len(&self) -> Option<usize> {
        let bytes = self.changes_bytes();
        // Its length, no trims, a number.
        let more = 10 + 1 + 10;
        (bytes.len() <= CHANGES_LEN_MAX).then(|| compress(&bytes).len() + more)
    }

    fn from_text(text: &[u8]) -> Option<Self> {
        type Changes = (u64, Vec<Removal>, Vec<Member>, Vec<Update>, Vec<Refusal>);
        let (changes, tail) = postcard::take_from_bytes::<&[u8]>(text).ok()?;
        let (tail, rest) = postcard::take_from_bytes::<(Vec<Trim>, u64)>(tail).ok()?;
        if !rest.is_empty() {
            return None;
        }
        let changes = decompress(changes, CHANGES_LEN_MAX)?;
        let (changes, notes) = postcard::take_from_bytes::<Changes>(&changes).ok()?;
        let (view, removals, joins, updates, refusals) = changes;
        let (trims, preparation) = tail;
        let mut proposal = Self {
            view,
            removals,
            joins,
            updates,
            refusals,
            trims,
            preparation,
        };
        if !notes.is_empty() {
            for (at, notes) in postcard::from_bytes::<Vec<(u32, Notes)>>(notes).ok()? {
                proposal.updates.get_mut(at as usize)?.notes = notes;
            }
        }
        Some(proposal)
    }

    /// Identifies the decision for `next`, the view that this makes. It differs from that of any
    /// other proposal, and of an equal proposal of another group of the same domain, an earlier or
    /// a divided one: there ranks and numbers may be equal, but member ids are not. FNV-1a over the
    /// bytes and the ids.
    pub fn digest(&self, next: &View) -> u64 {
        let mut bytes = self.to_bytes();
        let ids = next.members.iter().map(|member| member.id.0.to_le_bytes());
        bytes.extend(ids.flatten());
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
    }

    /// The subgroups that it replaces.
    pub fn touched(&self, view: &View) -> Touched {
        if self
            .removals
            .iter()
            .any(|removal| removal.reason != RemovalReason::Left)
        {
            return Touched::All;
        }
        let updates = self.updates.iter().flat_map(|update| update.touches(view));
        let joins = self
            .joins
            .iter()
            .flat_map(|member| member.endpoints.values().map(|endpoint| endpoint.subgroup));
        let leaving = self.removals.iter().flat_map(|removal| {
            let rank = Rank(removal.rank);
            let groups = view.subgroups.iter();
            let theirs = groups.filter(move |group| group.members.contains(&rank));
            theirs.map(|group| group.subgroup)
        });
        Touched::Only(updates.chain(joins).chain(leaving).collect())
    }

    /// Reads a proposal for `view` from a member's row, and checks everything that its readers rely
    /// on.
    pub(super) fn read(text: &[u8], view: &View) -> Option<(Self, View)> {
        let (proposal, next) = Self::read_untrimmed(text, view)?;
        // Each replaced subgroup with senders needs a trim.
        let touched = proposal.touched(view);
        let replaced = view
            .subgroups
            .iter()
            .filter(|group| touched.contains(group.subgroup) && !group.senders.is_empty());
        let gone = |rank: &Rank| proposal.removals.iter().any(|gone| gone.rank == rank.0);
        let trimmed = proposal.trims.iter().map(|trim| trim.subgroup);
        let trimmed: BTreeSet<SubgroupId> = trimmed.collect();
        let told = |group: &SubgroupSpec| {
            group.members.iter().all(gone) || trimmed.contains(&group.subgroup)
        };
        replaced.into_iter().all(told).then_some((proposal, next))
    }

    /// Reads a proposal that may lack trims, and the view that it makes.
    pub(super) fn read_untrimmed(text: &[u8], view: &View) -> Option<(Self, View)> {
        let proposal = Self::from_text(text)?;
        let members = view.members.len();
        let sound = proposal.view == view.id
            && proposal.joins.len() <= MEMBERS_MAX
            && proposal
                .removals
                .iter()
                .all(|removal| usize::from(removal.rank) < members)
            && proposal.trims.iter().all(|trim| {
                let group = view.subgroup(trim.subgroup);
                group.is_some_and(|group| group.senders.len() == trim.counts.len())
            });
        if !sound {
            return None;
        }
        let next = view.next(&proposal).ok()?;
        Some((proposal, next))
    }
}

#[cfg(test)]
mod tests;
