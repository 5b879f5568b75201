//! L2, liveness: in an epoch that goes on, every committed message is delivered to every
//! member.

use std::collections::BTreeMap;

use spindle_dds_core::DeliveryClass;
use spindle_dds_core::membership::MemberId;

use super::Invariant;
use crate::life::facts::{EpochKey, Fact};

#[derive(Default)]
pub(super) struct DeliveryLiveness {
    /// How many messages, by epoch, class and sender.
    sent: BTreeMap<(EpochKey, DeliveryClass, MemberId), usize>,
    /// By epoch, class, receiver and sender.
    taken: BTreeMap<(EpochKey, DeliveryClass, MemberId, MemberId), usize>,
}

impl Invariant for DeliveryLiveness {
    fn id(&self) -> &'static str {
        "L2"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Committed {
                by, epoch, class, ..
            } => {
                *self.sent.entry((epoch, class, by)).or_default() += 1;
            }
            Fact::Delivered { to, what, .. } => {
                let key = (what.epoch, what.class, to, what.sender);
                *self.taken.entry(key).or_default() += 1;
            }
            Fact::EpochAtRest { epoch, members } => {
                let first = (epoch, DeliveryClass::Ordered, MemberId(0));
                let last = (epoch, DeliveryClass::Unordered, MemberId(u128::MAX));
                for (&(_, class, sender), sent) in self.sent.range(first..=last) {
                    for &to in members {
                        let taken = self.taken.get(&(epoch, class, to, sender));
                        let taken = taken.copied().unwrap_or(0);
                        if taken != *sent {
                            return Err(format!(
                                "{to} was handed {taken} of {sent} messages of {sender} in \
                                 {epoch:?}, {class:?}"
                            ));
                        }
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{A, B, EPOCH, committed, delivered, last_violates, message};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let what = message(A, 1, 0);
        let at_rest = |members| Fact::EpochAtRest {
            epoch: EPOCH,
            members,
        };
        let facts = [
            committed(A, 1),
            delivered(A, &what),
            at_rest(&[A]),
            at_rest(&[A, B]),
        ];
        last_violates(DeliveryLiveness::default(), &facts);
    }
}
