//! J4: a member that ends an epoch has been delivered all that it sent in it.

use std::collections::BTreeMap;

use spindle_dds_core::DeliveryClass;
use spindle_dds_core::membership::MemberId;

use super::Invariant;
use crate::life::facts::{EpochKey, Fact};

/// Messages that a member committed and that were not delivered to it yet.
#[derive(Default)]
pub(super) struct OwnMessages(BTreeMap<(EpochKey, DeliveryClass, MemberId), i64>);

impl Invariant for OwnMessages {
    fn id(&self) -> &'static str {
        "J4"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Committed {
                by, epoch, ring, ..
            } => {
                *self.0.entry((epoch, ring, by)).or_default() += 1;
            }
            Fact::Delivered { to, what, .. } if what.sender == to => {
                *self.0.entry((what.epoch, what.ring, to)).or_default() -= 1;
            }
            Fact::EpochEnded { at, epoch, .. } => {
                let open =
                    |ring: &DeliveryClass| self.0.get(&(epoch, *ring, at)).is_some_and(|n| *n != 0);
                if let Some(ring) = DeliveryClass::BOTH.iter().find(|ring| open(ring)) {
                    return Err(format!(
                        "{at} was not handed all its own of {epoch:?}, {ring:?}"
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
    use super::super::made::{A, B, committed, delivered, ended, last_violates, message};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let what = message(A, 1, 0);
        let facts = [
            committed(A, 1),
            committed(A, 2),
            delivered(A, &what),
            ended(B, 2),
            ended(A, 2),
        ];
        last_violates(OwnMessages::default(), &facts);
    }
}
