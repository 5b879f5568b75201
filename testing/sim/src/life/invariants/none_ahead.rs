//! V6: nobody has delivered more of a lane, or other messages, than those who ended it:
//! who is left behind has a beginning.

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::DeliveryClass;
use spindle_dds_core::membership::MemberId;

use super::Invariant;
use crate::life::facts::{Fact, LaneKey};

/// Positions, senders, tokens.
type Order = Vec<(u64, MemberId, u64)>;

pub(super) struct NoneAhead {
    /// Where views branch, it shows in the end only which way somebody goes.
    may_branch: bool,
    orders: BTreeMap<(LaneKey, MemberId), Order>,
    /// By the branch that goes on.
    ends: BTreeMap<(LaneKey, u64), Order>,
    ended: BTreeSet<(LaneKey, MemberId)>,
}

impl NoneAhead {
    pub(super) fn new(may_branch: bool) -> Self {
        Self {
            may_branch,
            orders: BTreeMap::new(),
            ends: BTreeMap::new(),
            ended: BTreeSet::new(),
        }
    }

    fn check(&self, lane: LaneKey, who: MemberId, order: &Order) -> Result<(), String> {
        if self.ended.contains(&(lane, who)) {
            return Ok(());
        }
        let mut ends = self.ends.range((lane, 0)..=(lane, u64::MAX));
        match ends.find(|(_, end)| !end.starts_with(order)) {
            None => Ok(()),
            Some((_, end)) => Err(format!(
                "{who} has {} messages of {lane:?}: no beginning of the {} that it ended with",
                order.len(),
                end.len()
            )),
        }
    }

    fn check_lane(&self, lane: LaneKey) -> Result<(), String> {
        let first = MemberId(0);
        let last = MemberId(u128::MAX);
        let mut orders = self.orders.range((lane, first)..=(lane, last));
        orders.try_for_each(|((_, who), order)| self.check(lane, *who, order))
    }
}

impl Invariant for NoneAhead {
    fn id(&self) -> &'static str {
        "V6"
    }

    fn heed(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Delivered { to, what, .. } if what.ring == DeliveryClass::Ordered => {
                let order = self.orders.entry((what.lane, to)).or_default();
                order.push((what.position, what.sender, what.sent.token));
                let end = self.ends.get(&(what.lane, 0));
                let ahead = end.is_some_and(|end| end.get(order.len() - 1) != order.last());
                if ahead && !self.may_branch {
                    return Err(format!("{to} was handed {what:?} beyond the lane's end"));
                }
            }
            Fact::LaneEnded { at, lane, next, .. } => {
                self.ended.insert((lane, at));
                let order = self.orders.get(&(lane, at)).cloned().unwrap_or_default();
                let is_first = self.ends.insert((lane, next), order).is_none();
                if is_first && !self.may_branch {
                    self.check_lane(lane)?;
                }
            }
            Fact::Over => {
                for ((lane, who), order) in &self.orders {
                    self.check(*lane, *who, order)?;
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
        last_violates(NoneAhead::new(false), &early);
        let late = [more[0], ended(A, 2), more[1], more[2]];
        last_violates(NoneAhead::new(false), &late);
        let in_the_end = [more[0], ended(A, 2), more[1], more[2], Fact::Over];
        last_violates(NoneAhead::new(true), &in_the_end);
        let other = [more[0], ended(A, 2), delivered(B, &second)];
        last_violates(NoneAhead::new(false), &other);
    }
}
