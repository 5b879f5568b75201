//! V5: all members that end a view or an epoch end it alike: by one proposal, with one order,
//! position and digest. Where availability is preferred and hosts are divided, this holds in each
//! branch of views.

use std::collections::BTreeMap;

use spindle_dds_core::DeliveryClass;
use spindle_dds_core::membership::{MemberId, Proposal};

use super::Invariant;
use crate::life::facts::{Delivered, EpochKey, Fact};

/// Number of messages, and a hash over them.
type Order = (usize, u64);

pub(super) struct SameEnd {
    may_branch: bool,
    /// The first proposal that ended each view, by number and branch.
    views: BTreeMap<(u64, u64), Proposal>,
    /// What members have delivered of epochs.
    orders: BTreeMap<(EpochKey, MemberId), Order>,
    /// Ends of epochs, by the branch that goes on: position, digest, order.
    subgroups: BTreeMap<(EpochKey, u64), (u64, u64, Order)>,
}

impl SameEnd {
    pub(super) fn new(may_branch: bool) -> Self {
        Self {
            may_branch,
            views: BTreeMap::new(),
            orders: BTreeMap::new(),
            subgroups: BTreeMap::new(),
        }
    }

    fn deliver(&mut self, to: MemberId, what: &Delivered) {
        let (count, hash) = self.orders.entry((what.epoch, to)).or_default();
        *count += 1;
        let words = [what.position, what.sender.0 as u64, what.sent.token];
        for word in words {
            *hash = (*hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (*hash >> 29);
        }
    }
}

impl Invariant for SameEnd {
    fn id(&self) -> &'static str {
        "V5"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::ViewEnded {
                branch,
                proposal,
                is_divided,
                ..
            } => {
                let first = self.views.entry((proposal.view, branch));
                let first = first.or_insert_with(|| proposal.clone());
                if first != proposal && !(self.may_branch && is_divided) {
                    let view = proposal.view;
                    return Err(format!(
                        "view {view} ends in two ways: {first:?} and {proposal:?}"
                    ));
                }
            }
            Fact::Delivered { to, what, .. } if what.class == DeliveryClass::Ordered => {
                self.deliver(to, what);
            }
            Fact::EpochEnded {
                at,
                epoch,
                next,
                position,
                digest,
            } => {
                let order = self.orders.get(&(epoch, at)).copied().unwrap_or_default();
                let end = (position, digest, order);
                let first = *self.subgroups.entry((epoch, next)).or_insert(end);
                if first != end {
                    return Err(format!(
                        "{at} ends {epoch:?} with (position, digest, order) {end:?}, another \
                         with {first:?}"
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use spindle_dds_core::membership::{Refusal, RequestId};

    use super::super::made::{A, B, EPOCH, delivered, ended, last_violates, message, proposal};
    use super::*;

    #[test]
    fn it_can_be_violated_by_views() {
        let mut other = proposal();
        other.refusals.push(Refusal {
            request: RequestId::Join(B),
            reason: String::new(),
            is_lack: false,
        });
        let (one, other) = (&proposal(), &other);
        let ends = |proposal, is_divided| Fact::ViewEnded {
            at: A,
            branch: 0,
            proposal,
            is_divided,
        };
        let together = [ends(one, false), ends(one, false), ends(other, false)];
        last_violates(SameEnd::new(false), &together);
        let divided = [ends(one, false), ends(other, true), ends(other, false)];
        last_violates(SameEnd::new(true), &divided);
    }

    #[test]
    fn it_can_be_violated_by_epochs() {
        last_violates(SameEnd::new(false), &[ended(A, 4), ended(B, 5)]);
        let (one, other) = (message(A, 1, 0), message(A, 2, 0));
        let unlike = [
            delivered(A, &one),
            delivered(B, &other),
            ended(A, 4),
            ended(B, 4),
        ];
        last_violates(SameEnd::new(false), &unlike);
        let digest = Fact::EpochEnded {
            at: B,
            epoch: EPOCH,
            next: 0,
            position: 4,
            digest: 8,
        };
        last_violates(SameEnd::new(true), &[ended(A, 4), digest]);
    }
}
