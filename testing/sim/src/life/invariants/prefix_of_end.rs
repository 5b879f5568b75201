//! V6: no member has delivered more of an epoch, or other messages, than the members that ended it:
//! a member that is left behind has delivered a prefix.

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::DeliveryClass;
use spindle_dds_core::membership::MemberId;

use super::Invariant;
use crate::life::facts::{EpochKey, Fact};

/// Positions, senders, tokens.
type Order = Vec<(u64, MemberId, u64)>;

pub(super) struct PrefixOfEnd {
    /// Where views branch, the branch of a member is known only at the end.
    may_branch: bool,
    orders: BTreeMap<(EpochKey, MemberId), Order>,
    /// By the branch that goes on.
    ends: BTreeMap<(EpochKey, u64), Order>,
    ended: BTreeSet<(EpochKey, MemberId)>,
}

impl PrefixOfEnd {
    pub(super) fn new(may_branch: bool) -> Self {
        Self {
            may_branch,
            orders: BTreeMap::new(),
            ends: BTreeMap::new(),
            ended: BTreeSet::new(),
        }
    }

    fn check(&self, epoch: EpochKey, member: MemberId, order: &Order) -> Result<(), String> {
        if self.ended.contains(&(epoch, member)) {
            return Ok(());
        }
        let mut ends = self.ends.range((epoch, 0)..=(epoch, u64::MAX));
        match ends.find(|(_, end)| !end.starts_with(order)) {
            None => Ok(()),
            Some((_, end)) => Err(format!(
                "{member} has {} messages of {epoch:?}: no beginning of the {} that it ended with",
                order.len(),
                end.len()
            )),
        }
    }

    fn check_epoch(&self, epoch: EpochKey) -> Result<(), String> {
        let first = MemberId(0);
        let last = MemberId(u128::MAX);
        let mut orders = self.orders.range((epoch, first)..=(epoch, last));
        orders.try_for_each(|((_, member), order)| self.check(epoch, *member, order))
    }
}

impl Invariant for PrefixOfEnd {
    fn id(&self) -> &'static str {
        "V6"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Delivered { to, what, .. } if what.class == DeliveryClass::Ordered => {
                let order = self.orders.entry((what.epoch, to)).or_default();
                order.push((what.position, what.sender, what.sent.token));
                let end = self.ends.get(&(what.epoch, 0));
                let ahead = end.is_some_and(|end| end.get(order.len() - 1) != order.last());
                if ahead && !self.may_branch {
                    return Err(format!("{to} was handed {what:?} beyond the epoch's end"));
                }
            }
            Fact::EpochEnded {
                at, epoch, next, ..
            } => {
                self.ended.insert((epoch, at));
                let order = self.orders.get(&(epoch, at)).cloned().unwrap_or_default();
                let is_first = self.ends.insert((epoch, next), order).is_none();
                if is_first && !self.may_branch {
                    self.check_epoch(epoch)?;
                }
            }
            Fact::Over => {
                for ((epoch, member), order) in &self.orders {
                    self.check(*epoch, *member, order)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{A, B, delivered, ended, last_violates, message};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let (first, second) = (message(A, 1, 0), message(A, 2, 1));
        let more = [
            delivered(A, &first),
            delivered(B, &first),
            delivered(B, &second),
        ];
        let early = [more[0], more[1], more[2], ended(A, 2)];
        last_violates(PrefixOfEnd::new(false), &early);
        let late = [more[0], ended(A, 2), more[1], more[2]];
        last_violates(PrefixOfEnd::new(false), &late);
        let in_the_end = [more[0], ended(A, 2), more[1], more[2], Fact::Over];
        last_violates(PrefixOfEnd::new(true), &in_the_end);
        let other = [more[0], ended(A, 2), delivered(B, &second)];
        last_violates(PrefixOfEnd::new(false), &other);
    }
}
