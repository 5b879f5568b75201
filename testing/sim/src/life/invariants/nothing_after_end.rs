//! V3: nothing of an epoch is delivered after its end.

use std::collections::BTreeSet;

use spindle_dds_core::membership::MemberId;

use super::Invariant;
use crate::life::facts::{EpochKey, Fact};

/// Epochs that have ended, by member.
#[derive(Default)]
pub(super) struct NothingAfterEnd(BTreeSet<(EpochKey, MemberId)>);

impl Invariant for NothingAfterEnd {
    fn id(&self) -> &'static str {
        "V3"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::EpochEnded { at, epoch, .. } => {
                self.0.insert((epoch, at));
            }
            Fact::Delivered { to, what, .. } if self.0.contains(&(what.epoch, to)) => {
                return Err(format!("{to} was handed {what:?} after the epoch's end"));
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
        let what = message(A, 1, 0);
        let facts = [ended(A, 1), delivered(B, &what), delivered(A, &what)];
        last_violates(NothingAfterEnd::default(), &facts);
    }
}
