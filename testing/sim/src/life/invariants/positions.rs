//! A5: positions in the order rise, and continue where the epoch before has ended.

use std::collections::BTreeMap;

use spindle_dds_core::membership::MemberId;
use spindle_dds_core::{DeliveryClass, SubgroupId};

use super::Invariant;
use crate::life::facts::{EpochKey, Fact};

#[derive(Default)]
pub(super) struct Positions {
    /// The last position, by epoch and member.
    last: BTreeMap<(EpochKey, MemberId), u64>,
    /// Where epochs ended, until the next view begins.
    ends: BTreeMap<(MemberId, SubgroupId), u64>,
}

impl Invariant for Positions {
    fn id(&self) -> &'static str {
        "A5"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Delivered { to, what, .. } if what.class == DeliveryClass::Ordered => {
                let before = self.last.insert((what.epoch, to), what.position);
                if before.is_some_and(|before| before >= what.position) {
                    return Err(format!("{to}: positions fall at {what:?}"));
                }
            }
            Fact::EpochEnded {
                at,
                epoch,
                position,
                ..
            } => {
                let last = self.last.get(&(epoch, at));
                if last.is_some_and(|last| *last >= position) {
                    return Err(format!(
                        "{at}: {epoch:?} ends at {position}, before its order"
                    ));
                }
                self.ends.insert((at, epoch.0), position);
            }
            Fact::ViewBegun { at, view, .. } => {
                let subgroups = view
                    .subgroups
                    .iter()
                    .filter(|subgroup| subgroup.epoch == view.id);
                for subgroup in subgroups {
                    let end = self.ends.get(&(at, subgroup.subgroup));
                    if end.is_some_and(|end| *end > subgroup.base) {
                        let (subgroup, base) = (subgroup.subgroup, subgroup.base);
                        return Err(format!("{at}: {subgroup} goes on at {base}, not {end:?}"));
                    }
                }
                self.ends.retain(|(member, _), _| *member != at);
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{A, B, alone, delivered, ended, last_violates, message};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let (first, second) = (message(A, 1, 3), message(A, 2, 3));
        let falls = [delivered(B, &first), delivered(B, &second)];
        last_violates(Positions::default(), &falls);
        last_violates(Positions::default(), &[delivered(B, &first), ended(B, 3)]);
        let view = &alone(B);
        let at = B;
        let begun = Fact::ViewBegun {
            at,
            view,
            recorded: 1,
        };
        let facts = [ended(A, 4), ended(B, 4), begun];
        last_violates(Positions::default(), &facts);
    }
}
