//! V3: nothing of a lane is delivered after its end.

use std::collections::BTreeSet;

use spindle_dds_core::membership::MemberId;

use super::Invariant;
use crate::life::facts::{Fact, LaneKey};

/// For whom which lane is over.
#[derive(Default)]
pub(super) struct NoneLater(BTreeSet<(LaneKey, MemberId)>);

impl Invariant for NoneLater {
    fn id(&self) -> &'static str {
        "V3"
    }

    fn heed(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::LaneEnded { at, lane, .. } => {
                self.0.insert((lane, at));
            }
            Fact::Delivered { to, what, .. } if self.0.contains(&(what.lane, to)) => {
                return Err(format!("{to} was handed {what:?} after the lane's end"));
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
        last_violates(NoneLater::default(), &facts);
    }
}
