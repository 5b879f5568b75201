//! A1, integrity: a message that is delivered was sent by that sender, in that epoch and length.

use std::collections::BTreeMap;

use spindle_dds_core::DeliveryClass;
use spindle_dds_core::membership::MemberId;

use super::Invariant;
use crate::life::facts::{EpochKey, Fact, Sent};

/// Lengths of committed messages, by epoch, class, sender and token.
#[derive(Default)]
pub(super) struct Integrity(BTreeMap<(EpochKey, DeliveryClass, MemberId, u64), u32>);

impl Invariant for Integrity {
    fn id(&self) -> &'static str {
        "A1"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Committed {
                by,
                epoch,
                class,
                sent: Sent { token, len },
            } => {
                self.0.insert((epoch, class, by, token), len);
            }
            Fact::Delivered { to, what, .. } => {
                let key = (what.epoch, what.class, what.sender, what.sent.token);
                let len = self.0.get(&key);
                if len != Some(&what.sent.len) {
                    return Err(format!("{to} was handed {what:?}, sent were {len:?} bytes"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{A, B, committed, delivered, last_violates, message};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let sent = message(A, 1, 0);
        let mut longer = sent;
        longer.sent.len += 1;
        let mut unordered = sent;
        unordered.class = DeliveryClass::Unordered;
        for wrong in [longer, unordered, message(A, 2, 0), message(B, 1, 0)] {
            let facts = [committed(A, 1), delivered(B, &sent), delivered(B, &wrong)];
            last_violates(Integrity::default(), &facts);
        }
    }
}
