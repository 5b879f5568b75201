//! A3, total order: of two members, the ordered deliveries of one are a prefix of the other's.

use std::collections::BTreeMap;

use spindle_dds_core::DeliveryClass;
use spindle_dds_core::membership::MemberId;

use super::Invariant;
use crate::life::facts::{Delivered, EpochKey, Fact};

#[derive(Default)]
pub(super) struct TotalOrder {
    /// The longest sequence delivered; those of all other members are prefixes.
    longest: BTreeMap<EpochKey, Vec<Delivered>>,
    /// Length of a member's prefix.
    taken: BTreeMap<(EpochKey, MemberId), usize>,
}

impl Invariant for TotalOrder {
    fn id(&self) -> &'static str {
        "A3"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::Delivered { to, what, .. } = *fact else {
            return Ok(());
        };
        if what.class != DeliveryClass::Ordered {
            return Ok(());
        }
        let order = self.longest.entry(what.epoch).or_default();
        let taken = self.taken.entry((what.epoch, to)).or_default();
        let same = |one: &Delivered| (one.position, one.sender, one.sent.token);
        match order.get(*taken) {
            None => order.push(*what),
            Some(expected) if same(expected) == same(what) => {}
            Some(expected) => {
                return Err(format!("{to} has {what:?} where another has {expected:?}"));
            }
        }
        *taken += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{A, B, delivered, last_violates, message};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let (first, second) = (message(A, 1, 0), message(B, 1, 1));
        let in_order = [delivered(A, &first), delivered(A, &second)];
        let swapped = [in_order[0], in_order[1], delivered(B, &second)];
        last_violates(TotalOrder::default(), &swapped);
        let elsewhere = message(B, 1, 2);
        let moved = [
            in_order[0],
            in_order[1],
            delivered(B, &first),
            delivered(B, &elsewhere),
        ];
        last_violates(TotalOrder::default(), &moved);
    }
}
