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
                by, epoch, class, ..
            } => {
                *self.0.entry((epoch, class, by)).or_default() += 1;
            }
            Fact::Delivered { to, what, .. } if what.sender == to => {
                *self.0.entry((what.epoch, what.class, to)).or_default() -= 1;
            }
            Fact::EpochEnded { at, epoch, .. } => {
                let open = |class: &DeliveryClass| {
                    self.0.get(&(epoch, *class, at)).is_some_and(|n| *n != 0)
                };
                if let Some(class) = DeliveryClass::BOTH.iter().find(|class| open(class)) {
                    return Err(format!(
                        "{at} was not handed all its own of {epoch:?}, {class:?}"
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
