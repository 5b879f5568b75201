//! C3, atomicity: an ordered message is delivered to all survivors that were members then or to
//! none, whatever its application knows of it; and once to each, at one position.

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::DeliveryClass;
use spindle_dds_core::membership::MemberId;

use super::history::{History, OperationId};
use crate::life::facts::EpochKey;

pub(super) fn check(history: &History, living: &BTreeSet<MemberId>) -> Result<(), String> {
    one_place(history)?;
    let ordered = history.operations.iter();
    for (id, operation) in ordered.filter(|(_, it)| it.class == DeliveryClass::Ordered) {
        let Some((epoch, _)) = operation.committed() else {
            continue;
        };
        // Among members of one branch; a member that has not ended the epoch is in it with all
        // others.
        let mut by_branch = BTreeMap::new();
        for (member, branch) in history.witnesses(epoch, living) {
            let has = history.has(member, *id);
            let (first, expected) = *by_branch.entry(branch).or_insert((member, has));
            if has != expected {
                return Err(format!(
                    "{id:?} was handed to {first}: {expected}, to {member}: {has}; {operation:?}"
                ));
            }
        }
    }
    Ok(())
}

/// Checks that no message is delivered twice, or at two positions.
fn one_place(history: &History) -> Result<(), String> {
    let mut places: BTreeMap<OperationId, (EpochKey, u64)> = BTreeMap::new();
    for (to, all) in &history.delivered {
        let mut had = BTreeSet::new();
        for what in all {
            let id = (what.sender, what.sent.token);
            if !had.insert(id) {
                return Err(format!("{to} was handed {id:?} twice: {what:?}"));
            }
            let here = (what.epoch, what.position);
            let place = *places.entry(id).or_insert(here);
            if place != here {
                return Err(format!("{to} was handed {what:?}, another at {place:?}"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::history::made::*;
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let what = message(A, 1, 0);
        let sent = [called(A, 1), committed(A, 1)];
        let with = |living: &[MemberId], more: &[_]| {
            let facts: Vec<_> = sent.iter().chain(more).copied().collect();
            let living = living.iter().copied().collect();
            last_violates(|history| check(history, &living), &facts);
        };
        with(&[B, C], &[delivered(B, &what)]);
        with(&[], &[delivered(B, &what), ended(B, 1), ended(C, 1)]);
        with(&[], &[delivered(B, &what), delivered(B, &what)]);
        let elsewhere = message(A, 1, 3);
        with(&[], &[delivered(B, &what), delivered(C, &elsewhere)]);
        let mut again = what;
        again.epoch.1 += 1;
        with(&[], &[delivered(B, &what), delivered(B, &again)]);
    }
}
