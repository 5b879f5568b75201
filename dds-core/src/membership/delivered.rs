//! How many messages of a member the group has delivered: what a member that comes back has to know
//! before it sends again what was not.

use std::collections::VecDeque;
use std::sync::Arc;

use super::proposal::Proposal;
use super::view::{MemberId, View};
use crate::ids::{DeliveryClass, SubgroupId};

/// Views whose ends are remembered: a member may have been in earlier ones than those that removed
/// it had agreed on.
const VIEWS_MAX: usize = 8;
/// Members that are gone, of which it is remembered what was delivered.
const GONE_MAX: usize = 64;

/// Of subgroup epochs: how many ordered messages of one sender were delivered, nulls included. Those
/// of a member that was removed are by the trims of the views that it was in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveredCounts(Vec<(SubgroupId, u64, u64)>);

impl DeliveredCounts {
    /// The messages of that epoch; `None` if that is not known.
    pub fn of(&self, subgroup: SubgroupId, epoch: u64) -> Option<u64> {
        let mut all = self.0.iter();
        let found = all.find(|(of, in_epoch, _)| (*of, *in_epoch) == (subgroup, epoch));
        found.map(|(.., messages)| *messages)
    }

    fn add(&mut self, view: &View, proposal: &Proposal, member: MemberId) {
        for trim in &proposal.trims {
            let messages = || {
                let spec = view.subgroup(trim.subgroup)?;
                let rank = view.rank(member)?;
                let place = spec.members.iter().position(|it| *it == rank)?;
                let senders = &spec.senders;
                let sender = senders.iter().position(|it| it.rank.index() == place)?;
                senders[sender].rings[DeliveryClass::Ordered.index()]?;
                Some((trim.subgroup, spec.epoch, *trim.counts.get(sender)?))
            };
            self.0.extend(messages());
        }
    }

    /// As bytes, for [`from_bytes`](Self::from_bytes).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (subgroup, epoch, messages) in &self.0 {
            out.extend(subgroup.0.to_le_bytes());
            out.extend(epoch.to_le_bytes());
            out.extend(messages.to_le_bytes());
        }
        out
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `None` for other lengths.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (entries, rest) = bytes.as_chunks::<20>();
        let word = |entry: &[u8; 20], at: usize| {
            let bytes = entry[at..].first_chunk();
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let entry = |entry: &[u8; 20]| {
            let subgroup = entry.first_chunk();
            let subgroup = subgroup.map_or(0, |bytes| u32::from_le_bytes(*bytes));
            (SubgroupId(subgroup), word(entry, 4), word(entry, 12))
        };
        rest.is_empty()
            .then(|| Self(entries.iter().map(entry).collect()))
    }
}

/// What was delivered of the members that are gone. Each member keeps one: it tells a newcomer that
/// was a member before.
#[derive(Debug, Default)]
pub struct DeliveredHistory {
    ended: VecDeque<(Arc<View>, Arc<Proposal>)>,
    gone: VecDeque<(MemberId, DeliveredCounts)>,
}

impl DeliveredHistory {
    /// A view has ended with this proposal.
    pub fn view_ended(&mut self, view: &Arc<View>, proposal: &Arc<Proposal>) {
        self.ended.truncate(VIEWS_MAX - 1);
        self.ended.push_front((view.clone(), proposal.clone()));
        let removed = proposal.removals.iter();
        let removed = removed.filter_map(|it| view.members.get(usize::from(it.rank)));
        for member in removed {
            let mut counts = DeliveredCounts::default();
            for (view, proposal) in &self.ended {
                counts.add(view, proposal, member.id);
            }
            self.gone.truncate(GONE_MAX - 1);
            self.gone.push_front((member.id, counts));
        }
    }

    /// What was delivered of a member that is gone, if that is known.
    pub fn of(&self, member: MemberId) -> Option<&DeliveredCounts> {
        let mut gone = self.gone.iter();
        gone.find(|(id, _)| *id == member).map(|(_, counts)| counts)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_they_were_written() {
        let counts = DeliveredCounts(vec![(SubgroupId(7), 3, 41), (SubgroupId(8), 2, u64::MAX)]);
        let bytes = counts.to_bytes();
        assert_eq!(DeliveredCounts::from_bytes(&bytes), Some(counts.clone()));
        assert_eq!(DeliveredCounts::from_bytes(&bytes[1..]), None);
        assert_eq!(counts.of(SubgroupId(7), 3), Some(41));
        assert_eq!(counts.of(SubgroupId(7), 2), None);
    }
}
