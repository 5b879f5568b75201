//! What members ask for, and the one change that ends a view.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use spindle_dds_transport::{MEMBERS_MAX, Rank};

use super::view::{Endpoint, Member, MemberId, View};
use crate::ids::SubgroupId;
use crate::spec::LaneSpec;

/// Something that a member asks the leader for. It stands until a view has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Other endpoints.
    Update(Update),
    /// Somebody who has asked this member to be let in.
    Join(Member),
    /// To leave for good.
    Leave,
}

/// A change of a member's endpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// Whose.
    pub member: MemberId,
    /// Which update of that member, from 1: each is done once, in order.
    pub number: u64,
    /// New endpoints, and those that changed, by the member's numbers.
    pub put: Vec<(u64, Endpoint)>,
    /// Those that are no more.
    pub remove: Vec<u64>,
}

/// A member that is not in the next view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removal {
    /// Who, in the view that ends.
    pub rank: u16,
    /// Why.
    pub why: Why,
}

/// Why a member goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// It wanted to.
    Left,
    /// It failed, in the words of who noticed.
    Failed(String),
}

/// Where a subgroup's order is cut: of each sender's ordered ring, so many
/// messages are delivered by all, nulls counted, and nothing more by anybody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trim {
    /// Which.
    pub subgroup: SubgroupId,
    /// By the order of [`LaneSpec::senders`](crate::LaneSpec::senders).
    pub counts: Vec<u64>,
}

/// How a view ends. One for each view, whoever leads; it is completed as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The view that it ends.
    pub view: u64,
    /// Who goes.
    pub removals: Vec<Removal>,
    /// Who comes, at the end of the ranks.
    pub joins: Vec<Member>,
    /// Endpoints that change.
    pub updates: Vec<Update>,
    /// Where the orders of the touched subgroups end.
    pub trims: Vec<Trim>,
}

/// Subgroups that a change replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    /// All there are: an expulsion replaces all memory.
    All,
    /// These.
    Only(BTreeSet<SubgroupId>),
}

impl Update {
    /// Does the update, if it is this member's next.
    pub(super) fn apply(&self, member: &mut Member) {
        if self.number != member.updates + 1 {
            return;
        }
        member.updates = self.number;
        for number in &self.remove {
            member.endpoints.remove(number);
        }
        member.endpoints.extend(self.put.iter().cloned());
    }

    /// The subgroups where something changes.
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
            trims: Vec::new(),
        }
    }

    /// Whether it would make the same view once more.
    pub(super) fn is_empty(&self) -> bool {
        self.removals.is_empty() && self.joins.is_empty() && self.updates.is_empty()
    }

    /// Takes a request of the member at `rank` in, if it is one that can be done.
    pub(super) fn add(&mut self, view: &View, rank: Rank, request: &Request) {
        let before = self.clone();
        let owner = view.members[rank.index()].id;
        match request {
            Request::Leave => self.remove(rank, Why::Left),
            Request::Update(update) => {
                let expected = view.members[rank.index()].updates + 1;
                let more = self.updates.iter().filter(|other| other.member == owner);
                if update.member == owner && update.number == expected + more.count() as u64 {
                    self.updates.push(update.clone());
                }
            }
            Request::Join(member) => {
                let known = view.rank(member.id).is_some();
                if !known && !self.joins.iter().any(|other| other.id == member.id) {
                    self.joins.push(member.clone());
                }
            }
        }
        // Trims have no say in whether a view can be.
        if view.next(self).is_err() {
            *self = before;
        }
    }

    /// Removes a member, once.
    pub(super) fn remove(&mut self, rank: Rank, why: Why) {
        if !self.removals.iter().any(|removal| removal.rank == rank.0) {
            self.removals.push(Removal { rank: rank.0, why });
        }
    }

    /// Tells proposals apart that make the same view of one (when all of its members
    /// leave, those who come are the next, however it ends): FNV-1a of its bytes.
    pub fn digest(&self) -> u64 {
        // Nothing in it can fail to be written into memory.
        let bytes = postcard::to_allocvec(self).unwrap_or_default();
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
    }

    /// The subgroups that it replaces.
    pub fn touched(&self, view: &View) -> Touched {
        if self.removals.iter().any(|removal| removal.why != Why::Left) {
            return Touched::All;
        }
        let updates = self.updates.iter().flat_map(|update| update.touches(view));
        let joins = self
            .joins
            .iter()
            .flat_map(|member| member.endpoints.values().map(|endpoint| endpoint.subgroup));
        let leaving = self.removals.iter().flat_map(|removal| {
            let rank = Rank(removal.rank);
            let groups = view.lanes.iter();
            let theirs = groups.filter(move |group| group.members.contains(&rank));
            theirs.map(|group| group.subgroup)
        });
        Touched::Only(updates.chain(joins).chain(leaving).collect())
    }

    /// Reads a proposal for `view` out of a peer's row, and checks all that the
    /// reader relies on.
    pub(super) fn read(bytes: &[u8], view: &View) -> Option<(Self, View)> {
        let proposal: Self = postcard::from_bytes(bytes).ok()?;
        let members = view.members.len();
        let sound = proposal.view == view.id
            && proposal.joins.len() <= MEMBERS_MAX
            && proposal
                .removals
                .iter()
                .all(|removal| usize::from(removal.rank) < members)
            && proposal.trims.iter().all(|trim| {
                let group = view.lane(trim.subgroup);
                group.is_some_and(|group| group.senders.len() == trim.counts.len())
            });
        if !sound {
            return None;
        }
        let next = view.next(&proposal).ok()?;
        // Whatever is replaced and had senders has to say where it ends.
        let touched = proposal.touched(view);
        let replaced = view
            .lanes
            .iter()
            .filter(|group| touched.contains(group.subgroup) && !group.senders.is_empty());
        let gone = |rank: &Rank| proposal.removals.iter().any(|gone| gone.rank == rank.0);
        let told = |group: &LaneSpec| {
            let trims = proposal.trims.iter();
            group.members.iter().all(gone)
                || trims
                    .into_iter()
                    .any(|trim| trim.subgroup == group.subgroup)
        };
        replaced.into_iter().all(told).then_some((proposal, next))
    }
}
