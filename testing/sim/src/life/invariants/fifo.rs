//! A2, FIFO: each sender's messages are delivered in its commit order, none twice, none left out.

use std::collections::BTreeMap;

use spindle_dds_core::DeliveryClass;
use spindle_dds_core::membership::MemberId;

use super::Invariant;
use crate::life::facts::{EpochKey, Fact};

#[derive(Default)]
pub(super) struct Fifo {
    /// Tokens, by epoch, class and sender.
    sent: BTreeMap<(EpochKey, DeliveryClass, MemberId), Vec<u64>>,
    /// Number of them delivered, by epoch, class, receiver and sender.
    taken: BTreeMap<(EpochKey, DeliveryClass, MemberId, MemberId), usize>,
}

impl Invariant for Fifo {
    fn id(&self) -> &'static str {
        "A2"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Committed {
                by,
                epoch,
                class,
                sent,
            } => {
                let tokens = self.sent.entry((epoch, class, by)).or_default();
                tokens.push(sent.token);
            }
            Fact::Delivered { to, what, .. } => {
                let (epoch, class, sender) = (what.epoch, what.class, what.sender);
                let tokens = self.sent.get(&(epoch, class, sender));
                let taken = self.taken.entry((epoch, class, to, sender)).or_default();
                let expected = tokens.and_then(|tokens| tokens.get(*taken));
                if expected != Some(&what.sent.token) {
                    return Err(format!(
                        "{to} was handed {what:?}, number {taken} of its sender is {expected:?}"
                    ));
                }
                *taken += 1;
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
        let (first, second) = (message(A, 1, 0), message(A, 2, 1));
        let sent = [committed(A, 1), committed(A, 2)];
        let with = |more: &[Fact<'_>]| {
            let facts: Vec<_> = sent.iter().chain(more).copied().collect();
            last_violates(Fifo::default(), &facts);
        };
        with(&[delivered(B, &second)]);
        with(&[delivered(B, &first), delivered(B, &first)]);
        let all = [delivered(B, &first), delivered(B, &second)];
        with(&[all[0], all[1], delivered(A, &first), delivered(B, &second)]);
    }
}
