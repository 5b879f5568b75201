//! What everybody sent, and was handed: the truth, and what is checked of it.

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::membership::{Member, MemberId, Proposal, View};
use spindle_dds_core::{Ring, SubgroupId};

use crate::violation::Finding;

/// A lane: subgroup, epoch, and the branch of views that it was made in.
pub(super) type LaneKey = (SubgroupId, u64, u64);

/// A message: the token that its sender built it with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) token: u64,
    pub(super) len: u32,
}

/// A delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delivered {
    pub(super) lane: LaneKey,
    pub(super) ring: Ring,
    pub(super) sender: MemberId,
    pub(super) position: u64,
    pub(super) sent: Sent,
}

/// What was handed over of an ordered ring: position, sender, message.
type Order = Vec<(u64, MemberId, Sent)>;

/// How a lane ended, as the first who ended it saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct End {
    position: u64,
    digest: u64,
    order: Order,
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(super) struct Book {
    /// Whoever is hostile may do to itself what it likes, and to its messages.
    pub(super) hostile: BTreeSet<MemberId>,
    /// Divided hosts may go on as groups of their own: views branch, and each
    /// branch has to keep all promises for itself.
    may_branch: bool,
    /// By number and branch.
    views: BTreeMap<(u64, u64), View>,
    /// How views end, by number and branch: and the branch that goes on.
    endings: BTreeMap<(u64, u64), Vec<(Proposal, u64)>>,
    branches: u64,
    sent: BTreeMap<(LaneKey, Ring, MemberId), Vec<Sent>>,
    /// By receiver: what it was handed of each sender.
    taken: BTreeMap<(LaneKey, Ring, MemberId, MemberId), usize>,
    /// By receiver: the ordered rings, in order.
    orders: BTreeMap<(LaneKey, MemberId), Order>,
    /// By the branch that goes on.
    ends: BTreeMap<(LaneKey, u64), End>,
    ended: BTreeMap<(LaneKey, MemberId), ()>,
    /// Updates that were done, and that were refused, by member and number.
    done: BTreeSet<(MemberId, u64)>,
    refused: BTreeSet<(MemberId, u64)>,
    pub(super) delivered: usize,
    pub(super) committed: usize,
}

impl Book {
    pub(super) fn new(may_branch: bool) -> Self {
        Self {
            may_branch,
            ..Self::default()
        }
    }

    pub(super) fn view(&mut self, branch: u64, view: &View) -> Result<(), Finding> {
        let known = self.views.entry((view.id, branch));
        let known = known.or_insert_with(|| view.clone());
        if known == view {
            return Ok(());
        }
        Err(("V4", format!("view {} is two views", view.id)))
    }

    pub(super) fn views(&self) -> usize {
        self.views.len()
    }

    /// Whether somebody has gone on from this view.
    pub(super) fn is_changing(&self, view: Option<&View>) -> bool {
        let later = |view: &View| (view.id + 1, 0)..=(view.id + 1, u64::MAX);
        view.is_some_and(|view| self.views.range(later(view)).next().is_some())
    }

    /// How many groups have gone on apart from the first.
    pub(super) fn branches(&self) -> u64 {
        self.branches
    }

    /// V5: a view ends in one way; or, where it may branch, in several. (Who is cut off
    /// may still be in the view that the others go on with, until they expel it.)
    /// Returns the branch that goes on, and whether it is news.
    pub(super) fn ending(
        &mut self,
        branch: u64,
        proposal: &Proposal,
        has_cause: bool,
    ) -> Result<(u64, bool), Finding> {
        let endings = self.endings.entry((proposal.view, branch)).or_default();
        if let Some((_, next)) = endings.iter().find(|(known, _)| known == proposal) {
            return Ok((*next, false));
        }
        let mut next = branch;
        if let Some((known, _)) = endings.first() {
            if !(self.may_branch && has_cause) {
                let view = proposal.view;
                let what = format!("view {view} ends in two ways: {known:?} and {proposal:?}");
                return Err(("V5", what));
            }
            self.branches += 1;
            next = self.branches;
        }
        endings.push((proposal.clone(), next));
        let updates = proposal.updates.iter();
        self.done.extend(updates.map(|it| (it.member, it.number)));
        Ok((next, true))
    }

    /// J7: what is refused is told once, and not done.
    pub(super) fn refuse(&mut self, of: MemberId, number: u64, why: &str) -> Result<(), Finding> {
        if self.refused.insert((of, number)) && !self.done.contains(&(of, number)) {
            return Ok(());
        }
        let what = format!("update {number} of {of} is refused once more, or done: {why}");
        Err(("J7", what))
    }

    /// J7: whatever a member asked for has been done, or it has heard that it is not.
    pub(super) fn settled(&self, member: &Member) -> Result<(), Finding> {
        let settled = |number| {
            let key = (member.id, number);
            self.done.contains(&key) != self.refused.contains(&key)
        };
        match (1..=member.updates).find(|number| !settled(*number)) {
            None => Ok(()),
            Some(number) => {
                let what = format!(
                    "update {number} of {} is neither done nor refused",
                    member.id
                );
                Err(("J7", what))
            }
        }
    }

    pub(super) fn send(&mut self, sender: MemberId, lane: LaneKey, ring: Ring, sent: Sent) {
        self.committed += 1;
        self.sent
            .entry((lane, ring, sender))
            .or_default()
            .push(sent);
    }

    /// A1, A2: what was sent in this lane, in order, without a gap.
    pub(super) fn deliver(&mut self, to: MemberId, what: &Delivered) -> Result<(), Finding> {
        if self.hostile.contains(&to) || self.hostile.contains(&what.sender) {
            return Ok(());
        }
        self.delivered += 1;
        let Delivered {
            lane,
            ring,
            sender,
            position,
            sent,
        } = *what;
        let all = self.sent.get(&(lane, ring, sender));
        let taken = self.taken.entry((lane, ring, to, sender)).or_default();
        let expected = all.and_then(|all| all.get(*taken));
        if expected != Some(&sent) {
            let what = format!(
                "{to} was handed {what:?}, number {taken} of its sender there is {expected:?}"
            );
            return Err(("A2", what));
        }
        *taken += 1;
        if ring == Ring::Ordered {
            let order = self.orders.entry((lane, to)).or_default();
            if order.last().is_some_and(|(last, _, _)| *last >= position) {
                return Err(("A5", format!("{to}: positions fall at {what:?}")));
            }
            order.push((position, sender, sent));
            // Which branch somebody goes to shows where the lane ends.
            if !self.may_branch {
                self.check_order(lane, to, false)?;
            }
        }
        if self.ended.contains_key(&(lane, to)) {
            return Err((
                "V3",
                format!("{to} was handed {what:?} after the lane's end"),
            ));
        }
        Ok(())
    }

    /// A3, V5, V6: a beginning of what those had who ended the lane.
    fn check_order(&self, lane: LaneKey, of: MemberId, whole: bool) -> Result<(), Finding> {
        let empty = Vec::new();
        let mine = self.orders.get(&(lane, of)).unwrap_or(&empty);
        let others = self.orders.iter();
        let others = others.filter(|((other, who), _)| *other == lane && *who != of);
        let last = mine.len().saturating_sub(1);
        for ((_, who), theirs) in others {
            let from = if whole { 0 } else { last };
            let differs = (from..mine.len().min(theirs.len())).find(|&at| mine[at] != theirs[at]);
            if let Some(at) = differs {
                let what = format!("{of} has {:?} where {who} has {:?}", mine[at], theirs[at]);
                return Err(("A3", what));
            }
        }
        if let Some(end) = self.ends.get(&(lane, 0))
            && mine.len() > end.order.len()
        {
            let what = format!("{of} has more of {lane:?} than who ended it");
            return Err(("V6", what));
        }
        Ok(())
    }

    /// V5, J4: all who end a lane have the same of it, and all of their own.
    pub(super) fn end(
        &mut self,
        (lane, branch): (LaneKey, u64),
        at: MemberId,
        position: u64,
        digest: u64,
    ) -> Result<(), Finding> {
        if self.hostile.contains(&at) {
            return Ok(());
        }
        let digest = if self.hostile.is_empty() { digest } else { 0 };
        self.ended.insert((lane, at), ());
        let order = self.orders.get(&(lane, at)).cloned().unwrap_or_default();
        if order.last().is_some_and(|(last, _, _)| *last >= position) {
            return Err((
                "A5",
                format!("{at}: {lane:?} ends at {position}, before its order"),
            ));
        }
        let end = End {
            position,
            digest,
            order,
        };
        let first = self
            .ends
            .entry((lane, branch))
            .or_insert_with(|| end.clone());
        if *first != end {
            let what = format!(
                "{at} ends {lane:?} with {} messages at {position}, another with {} at {}",
                end.order.len(),
                first.order.len(),
                first.position
            );
            return Err(("V5", what));
        }
        if !self.may_branch {
            self.check_order(lane, at, true)?;
        }
        for ring in Ring::BOTH {
            let sent = self.sent.get(&(lane, ring, at)).map_or(0, Vec::len);
            let own = self.taken.get(&(lane, ring, at, at)).copied().unwrap_or(0);
            if sent != own {
                let what = format!("{at} sent {sent} in {lane:?} and was handed {own} of them");
                return Err(("J4", what));
            }
        }
        // Nobody may have gone further than those who end it.
        if self.may_branch {
            return Ok(());
        }
        let longest = self.orders.iter().filter(|((other, _), _)| *other == lane);
        let longest = longest.map(|(_, order)| order.len()).max().unwrap_or(0);
        if longest > end.order.len() {
            return Err((
                "V6",
                format!("somebody has more of {lane:?} than {at} who ended it"),
            ));
        }
        Ok(())
    }

    /// V6, where views branch: whoever did not end a lane has a beginning of each of
    /// its ends.
    pub(super) fn unfinished(&self) -> Result<(), Finding> {
        for ((lane, who), order) in &self.orders {
            if self.ended.contains_key(&(*lane, *who)) {
                continue;
            }
            let ends = self.ends.range((*lane, 0)..=(*lane, u64::MAX));
            if let Some((key, _)) = ends
                .into_iter()
                .find(|(_, end)| !end.order.starts_with(order))
            {
                return Err(("V6", format!("{who} has not a beginning of {key:?}")));
            }
        }
        Ok(())
    }

    /// L2: in a lane that goes on, everybody who is there has been handed all.
    pub(super) fn complete(&self, lane: LaneKey, members: &[MemberId]) -> Result<(), Finding> {
        for (&(there, ring, sender), sent) in &self.sent {
            if there != lane || self.hostile.contains(&sender) {
                continue;
            }
            for &to in members.iter().filter(|id| !self.hostile.contains(id)) {
                let key = (lane, ring, to, sender);
                let taken = self.taken.get(&key).copied().unwrap_or(0);
                if taken != sent.len() {
                    let what = format!(
                        "{to} was handed {taken} of {} messages of {sender} in {lane:?}, {ring:?}",
                        sent.len()
                    );
                    return Err(("L2", what));
                }
            }
        }
        Ok(())
    }
}
