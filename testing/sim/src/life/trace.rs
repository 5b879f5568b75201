//! What happened in a life, line by line.
//!
//! ```text
//!     turn  member  view  what
//!      600       2     3  asks for update 1
//!      713       1     3  view 3 ends: update 1 of 2
//! ```
//! `turn` counts the turns of the world; `member` is numbered from 1 in order of creation; `view`
//! is the member's present view, or its last one, or 0 before the first; `what` is what it did or
//! was told.

use std::fmt;

use spindle_dds_core::membership::{
    Finish, Member, Proposal, RemovalReason, Request, RequestId, View,
};

/// A line of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The turn.
    pub turn: usize,
    /// The member; the founder is 1.
    pub member: u128,
    /// The member's view, present or last.
    pub view: u64,
    /// What it did or was told.
    pub what: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            turn,
            member,
            view,
            what,
        } = self;
        write!(f, "{turn:>8}  {member:>6}  {view:>4}  {what}")
    }
}

/// A request in words.
pub(super) fn request(request: &Request) -> String {
    match request {
        Request::Update(update) => format!("update {}", update.number),
        Request::Join(member) => format!("that {} joins", member.id.0),
        Request::Leave => "to leave".to_owned(),
    }
}

/// The end of a view in words.
pub(super) fn ending(old: Option<&View>, finish: &Finish) -> String {
    let proposal = &finish.proposal;
    format!("view {} ends: {}", proposal.view, changes(old, proposal))
}

/// What a proposal changes, in words.
pub(super) fn changes(old: Option<&View>, proposal: &Proposal) -> String {
    let id = |rank: u16| {
        let member = old.and_then(|old| old.members.get(usize::from(rank)));
        member.map_or(0, |member| member.id.0)
    };
    let mut changes = Vec::new();
    for removal in &proposal.removals {
        changes.push(match &removal.reason {
            RemovalReason::Left => format!("{} leaves", id(removal.rank)),
            RemovalReason::Failed(cause) => format!("{} is expelled ({cause})", id(removal.rank)),
        });
    }
    for member in &proposal.joins {
        changes.push(format!("{} joins", member.id.0));
    }
    for update in &proposal.updates {
        changes.push(format!("update {} of {}", update.number, update.member.0));
    }
    for refusal in &proposal.refusals {
        changes.push(match refusal.request {
            RequestId::Update { member, number } => {
                format!("update {number} of {} is refused", member.0)
            }
            RequestId::Join(id) => format!("{} is refused", id.0),
        });
    }
    changes.join(", ")
}

/// The beginning of a view in words.
pub(super) fn beginning(view: &View) -> String {
    let ids = view.members.iter().map(|Member { id, .. }| id.0);
    let ids: Vec<u128> = ids.collect();
    let subgroup = |subgroup: &spindle_dds_core::SubgroupSpec| {
        format!("{} since view {}", subgroup.subgroup, subgroup.epoch)
    };
    let subgroups: Vec<String> = view.subgroups.iter().map(subgroup).collect();
    format!(
        "view {} of {ids:?}; subgroups: {}",
        view.id,
        subgroups.join(", ")
    )
}
