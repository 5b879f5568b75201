//! R1: what a member that comes back sends again, the group has not delivered and does not deliver
//! later; and it sends again all that the group has not delivered, where that is known.

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::DeliveryClass;
use spindle_dds_core::membership::MemberId;

use super::Invariant;
use crate::life::facts::{EpochKey, Fact};

/// The ordered messages of a sender in an epoch.
type Ring = (EpochKey, MemberId);

/// Members that came back, and what was delivered of them.
#[derive(Default)]
pub(super) struct Returned {
    /// Tokens in their order.
    sent: BTreeMap<Ring, Vec<u64>>,
    /// Tokens by receiver.
    delivered: BTreeMap<Ring, BTreeMap<MemberId, BTreeSet<u64>>>,
    ended: BTreeSet<(EpochKey, MemberId)>,
    /// Tokens that are sent again.
    again: BTreeMap<Ring, BTreeSet<u64>>,
}

impl Returned {
    fn check_end(&self) -> Result<(), String> {
        for (ring, again) in &self.again {
            let (epoch, was) = ring;
            let sent = self.sent.get(ring).map_or(0, Vec::len);
            for (to, delivered) in self.delivered.get(ring).into_iter().flatten() {
                let complete = self.ended.contains(&(*epoch, *to)) && to != was;
                if complete && delivered.len() + again.len() != sent {
                    return Err(format!(
                        "{was} sent {sent} messages in {epoch:?}: {} were delivered to {to}, and {} \
                         sent again",
                        delivered.len(),
                        again.len()
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Invariant for Returned {
    fn id(&self) -> &'static str {
        "R1"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Committed {
                by,
                epoch,
                class: DeliveryClass::Ordered,
                sent,
            } => self.sent.entry((epoch, by)).or_default().push(sent.token),
            Fact::Delivered { to, what, .. } if what.class == DeliveryClass::Ordered => {
                let (ring, token) = ((what.epoch, what.sender), what.sent.token);
                let by_receiver = self.delivered.entry(ring).or_default();
                by_receiver.entry(to).or_default().insert(token);
                if self.again.get(&ring).is_some_and(|it| it.contains(&token)) {
                    return Err(format!("{to} was handed {what:?}, which is sent again"));
                }
            }
            Fact::EpochEnded { at, epoch, .. } => drop(self.ended.insert((epoch, at))),
            Fact::Returned { was, epoch, again } => {
                let ring = (epoch, was);
                let sent = self.sent.get(&ring).map_or(&[][..], Vec::as_slice);
                if !sent.ends_with(again) {
                    return Err(format!("{was} sends {again:?} again, of {sent:?}"));
                }
                let delivered = self.delivered.get(&ring).into_iter().flatten();
                for (to, tokens) in delivered {
                    if let Some(token) = again.iter().find(|it| tokens.contains(it)) {
                        return Err(format!("{was} sends {token} again, which {to} has"));
                    }
                }
                self.again.insert(ring, again.iter().copied().collect());
            }
            Fact::Over => return self.check_end(),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{A, B, EPOCH, committed, delivered, ended, last_violates, message};
    use super::*;

    fn returned(again: &[u64]) -> Fact<'_> {
        let (was, epoch) = (A, EPOCH);
        Fact::Returned { was, epoch, again }
    }

    #[test]
    fn it_can_be_violated() {
        let what = message(A, 1, 0);
        let sent = [committed(A, 1), committed(A, 2)];
        let with = |more: &[Fact<'_>]| {
            let facts: Vec<_> = sent.iter().chain(more).copied().collect();
            last_violates(Returned::default(), &facts);
        };
        with(&[delivered(B, &what), returned(&[1, 2])]);
        with(&[returned(&[1, 2]), delivered(B, &what)]);
        with(&[returned(&[1])]);
        with(&[delivered(B, &what), ended(B, 1), returned(&[]), Fact::Over]);
    }
}
