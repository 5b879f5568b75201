//! C1: a message that its application was told all members have is delivered to every survivor that
//! was a member then.

use std::collections::BTreeSet;

use spindle_dds_core::membership::MemberId;

use super::history::History;

pub(super) fn check(history: &History, living: &BTreeSet<MemberId>) -> Result<(), String> {
    for (id, operation) in &history.operations {
        let told = operation.acknowledged().zip(operation.committed());
        let Some((at, (epoch, _))) = told else {
            continue;
        };
        // A sender that was told at the end of the epoch knows it of the members that go on with
        // it.
        let end = history.end(epoch, id.0).filter(|(ended, _)| *ended < at);
        let goes_with = |branch: Option<u64>| match (end, branch) {
            (Some((_, mine)), Some(its)) => mine == its,
            _ => true,
        };
        let witnesses = history.witnesses(epoch, living);
        let mut those = witnesses.filter(|(_, branch)| goes_with(*branch));
        if let Some((member, _)) = those.find(|(member, _)| !history.has(*member, *id)) {
            return Err(format!(
                "{id:?} was told that all have it, and {member} has not: {operation:?}"
            ));
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
        let begun = [
            called(A, 1),
            committed(A, 1),
            delivered(A, &what),
            delivered(B, &what),
        ];
        let with = |living: &[MemberId], more: &[_]| {
            let facts: Vec<_> = begun.iter().chain(more).copied().collect();
            let living = living.iter().copied().collect();
            last_violates(|history| check(history, &living), &facts);
        };
        // C lives and lacks it.
        with(&[A, B, C], &[acknowledged(A, 1)]);
        // C has ended the epoch without it.
        with(&[B], &[acknowledged(A, 1), ended(B, 1), ended(C, 1)]);
    }

    #[test]
    fn crashed_and_expelled_members_need_not_have_delivered() {
        let living = BTreeSet::from([B]);
        let what = message(A, 1, 0);
        let elsewhere = crate::life::facts::Fact::EpochEnded {
            at: C,
            epoch: EPOCH,
            next: 1,
            position: 0,
            digest: 0,
        };
        let facts = [
            called(A, 1),
            committed(A, 1),
            delivered(B, &what),
            delivered(A, &what),
            ended(A, 1),
            acknowledged(A, 1),
        ];
        assert_eq!(check(&history(&facts), &living), Ok(()));
        let facts: Vec<_> = facts.into_iter().chain([elsewhere]).collect();
        assert_eq!(check(&history(&facts), &living), Ok(()));
    }
}
