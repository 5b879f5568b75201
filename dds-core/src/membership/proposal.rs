//! What members ask for, and the one change that ends a view.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use spindle_dds_transport::{MEMBERS_MAX, Rank};

use super::row::ProtocolViolation;
use super::view::{Endpoint, Member, MemberId, Note, View};
use crate::ids::SubgroupId;
use crate::limits::REQUEST_LEN_MAX;
use crate::spec::SubgroupSpec;

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

impl Request {
    /// What it is known by; `None` if it cannot be refused.
    pub(super) fn asked(&self) -> Option<Asked> {
        match self {
            Self::Update(Update { member, number, .. }) => Some(Asked::Update {
                member: *member,
                number: *number,
            }),
            Self::Join(member) => Some(Asked::Join(member.id)),
            Self::Leave => None,
        }
    }
}

/// A request, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Asked {
    /// A change of endpoints.
    Update {
        /// Whose.
        member: MemberId,
        /// Which.
        number: u64,
    },
    /// To let somebody in.
    Join(MemberId),
}

/// A request that no view can do as things stand. The refusal settles it: an update
/// counts as done, and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Which.
    pub asked: Asked,
    /// Why, in words.
    pub why: String,
}

/// A request as it is read in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asking {
    /// As it is.
    Plainly(Request),
    /// It is too long to be said, and so to be done.
    TooLong(Asked),
}

/// What has become of a request in a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// It is done by it, or refused, or was done before.
    Settled,
    /// It has to wait for the next view, and so has what its asker asks for after it.
    Waits,
}

/// A change of a member's endpoints and notes.
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
    /// What it notes. It travels apart: hardly any update has any.
    #[serde(skip)]
    pub notes: Notes,
}

/// A change of a member's notes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Notes {
    /// New ones, by the member's numbers.
    pub put: Vec<(u64, Note)>,
    /// Those that are taken back.
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
    /// By the order of [`SubgroupSpec::senders`](crate::SubgroupSpec::senders).
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
    /// What was asked for and is not done.
    pub refusals: Vec<Refusal>,
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
    /// Does the update, if it is this member's next; `notes` are its own, as they are kept.
    pub(super) fn apply(&self, member: &mut Member, notes: Vec<(u64, Note)>) {
        if self.number != member.updates + 1 {
            return;
        }
        member.updates = self.number;
        for number in &self.remove {
            member.endpoints.remove(number);
        }
        member.endpoints.extend(self.put.iter().cloned());
        for number in &self.notes.remove {
            member.notes.remove(number);
        }
        member.notes.extend(notes);
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
            refusals: Vec::new(),
            trims: Vec::new(),
        }
    }

    /// Whether it would make the same view once more.
    pub(super) fn is_empty(&self) -> bool {
        self.removals.is_empty()
            && self.joins.is_empty()
            && self.updates.is_empty()
            && self.refusals.is_empty()
    }

    /// Takes a request of the member at `rank` in, or refuses it if no view can do it
    /// together with what is in already. With `inside`, what touches other subgroups
    /// waits.
    pub(super) fn add(
        &mut self,
        view: &View,
        rank: Rank,
        asking: &Asking,
        inside: Option<&BTreeSet<SubgroupId>>,
    ) -> Result<Added, ProtocolViolation> {
        let asked = match asking {
            Asking::Plainly(request) => request.asked(),
            Asking::TooLong(asked) => Some(*asked),
        };
        if let Some(asked) = asked
            && self.is_settled(view, rank, asked)?
        {
            return Ok(Added::Settled);
        }
        let before = self.clone();
        let refusal = match asking {
            Asking::TooLong(_) => Some(format!("it takes more than {REQUEST_LEN_MAX} bytes")),
            Asking::Plainly(request) => {
                match request {
                    Request::Leave => self.remove(rank, Why::Left),
                    Request::Update(update) => self.updates.push(update.clone()),
                    Request::Join(member) => self.joins.push(member.clone()),
                }
                // Trims have no say in whether a view can be.
                view.next(self).err().map(|error| error.to_string())
            }
        };
        let outside = match (inside, self.touched(view)) {
            (None, _) => false,
            (Some(_), Touched::All) => true,
            (Some(inside), Touched::Only(some)) => !some.is_subset(inside),
        };
        if refusal.is_some() || outside {
            *self = before;
        }
        Ok(match (refusal, asked) {
            (Some(why), Some(asked)) => {
                self.refusals.push(Refusal { asked, why });
                Added::Settled
            }
            // The last one leaves by itself.
            (Some(_), None) => Added::Waits,
            (None, _) if outside => Added::Waits,
            (None, _) => Added::Settled,
        })
    }

    /// Whether a request of the member at `rank` is done already. Fails if it is none
    /// that this member can ask for.
    fn is_settled(&self, view: &View, rank: Rank, asked: Asked) -> Result<bool, ProtocolViolation> {
        match asked {
            Asked::Update { member, number } => {
                let next = self.next_update(view, rank);
                if member != view.members[rank.index()].id || number > next {
                    return Err(ProtocolViolation);
                }
                Ok(number < next)
            }
            Asked::Join(id) => {
                let comes = self.joins.iter().any(|other| other.id == id);
                Ok(view.rank(id).is_some() || comes || self.refuses(asked).is_some())
            }
        }
    }

    /// The number of the member's next update.
    fn next_update(&self, view: &View, rank: Rank) -> u64 {
        let member = &view.members[rank.index()];
        let more = self.updates.iter().filter(|it| it.member == member.id);
        let refused = |refusal: &&Refusal| matches!(refusal.asked, Asked::Update { member: whose, .. } if whose == member.id);
        let refused = self.refusals.iter().filter(refused);
        member.updates + 1 + (more.count() + refused.count()) as u64
    }

    pub(super) fn refuses(&self, asked: Asked) -> Option<&Refusal> {
        self.refusals.iter().find(|refusal| refusal.asked == asked)
    }

    /// Removes a member, once.
    pub(super) fn remove(&mut self, rank: Rank, why: Why) {
        if !self.removals.iter().any(|removal| removal.rank == rank.0) {
            self.removals.push(Removal { rank: rank.0, why });
        }
    }

    /// As it stands in a row. Behind it, if any update notes anything: which, and what.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        // Nothing in it can fail to be written into memory.
        let mut bytes = postcard::to_allocvec(self).unwrap_or_default();
        let updates = (0..).zip(&self.updates);
        let noting = updates.filter(|(_, update)| update.notes != Notes::default());
        let notes: Vec<(u32, &Notes)> = noting.map(|(at, update)| (at, &update.notes)).collect();
        if !notes.is_empty() {
            bytes.extend(postcard::to_allocvec(&notes).unwrap_or_default());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (mut proposal, rest) = postcard::take_from_bytes::<Self>(bytes).ok()?;
        if !rest.is_empty() {
            for (at, notes) in postcard::from_bytes::<Vec<(u32, Notes)>>(rest).ok()? {
                proposal.updates.get_mut(at as usize)?.notes = notes;
            }
        }
        Some(proposal)
    }

    /// Tells decisions apart, by `next`, the view that this makes: no other proposal has this
    /// digest, nor the same one of another group of the domain, one that was there before or
    /// has gone on apart. There the ranks and numbers may be the same; the members are not.
    /// FNV-1a of its bytes and of the ids of the members.
    pub fn digest(&self, next: &View) -> u64 {
        let mut bytes = self.to_bytes();
        let ids = next.members.iter().map(|member| member.id.0.to_le_bytes());
        bytes.extend(ids.flatten());
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
        let proposal = Self::from_bytes(bytes)?;
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
        let told = |group: &SubgroupSpec| {
            let trims = proposal.trims.iter();
            group.members.iter().all(gone)
                || trims
                    .into_iter()
                    .any(|trim| trim.subgroup == group.subgroup)
        };
        replaced.into_iter().all(told).then_some((proposal, next))
    }
}

#[cfg(test)]
mod tests;
