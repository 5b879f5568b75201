//! Q3: the history that a transfer brings is exactly what the donor's history was at the boundary, but
//! for what the reader had. If several donors gave some of it, what only one of them had may be lacking.

use std::collections::{BTreeMap, BTreeSet};

use super::Invariant;
use crate::life::facts::Fact;
use crate::life::storage::{Guid, Source, SourceEnd, StorageFact, Transfer};

/// Writer and sequence number.
type Message = (Guid, u64);

#[derive(Default)]
pub(super) struct HistoryExact {
    epochs: BTreeMap<Message, u64>,
    pinned: BTreeMap<(Transfer, Source), BTreeSet<Message>>,
}

impl HistoryExact {
    /// What must have come of a source, and what may.
    fn of_source(
        &self,
        transfer: Transfer,
        end: &SourceEnd,
    ) -> (BTreeSet<Message>, BTreeSet<Message>) {
        let pinned = end.asked.iter();
        let pinned = pinned.filter_map(|donor| self.pinned.get(&(transfer, *donor)));
        let may = pinned.clone().flatten().copied().collect();
        let all = pinned.cloned().reduce(|all, it| &all & &it);
        let must = all.filter(|_| !end.is_lost).unwrap_or_default();
        (must, may)
    }
}

impl Invariant for HistoryExact {
    fn id(&self) -> &'static str {
        "Q3"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Storage(StorageFact::Kept { epoch, message, .. }) => {
                let key = (message.writer, message.sequence);
                self.epochs.insert(key, *epoch);
            }
            Fact::Storage(StorageFact::Pinned {
                transfer,
                source,
                must_be,
            }) => {
                let messages = must_be.iter().map(|it| (it.writer, it.sequence));
                self.pinned.insert((*transfer, *source), messages.collect());
            }
            Fact::Storage(StorageFact::Transferred {
                transfer,
                after,
                sources,
                came,
            }) => {
                let came: BTreeSet<_> = came.iter().map(|it| (it.writer, it.sequence)).collect();
                let is_new = |(writer, sequence): &Message| {
                    after.get(writer).is_none_or(|after| after < sequence)
                };
                let sources = sources.iter().map(|end| self.of_source(*transfer, end));
                let (must, may): (Vec<_>, Vec<_>) = sources.unzip();
                let mut must = must.iter().flatten().filter(|it| is_new(it));
                if let Some(lacking) = must.find(|it| !came.contains(it)) {
                    return Err(format!("{transfer:?} lacks {lacking:02x?}"));
                }
                let may = |it: &Message| is_new(it) && may.iter().any(|may| may.contains(it));
                if let Some(excess) = came.iter().find(|it| !may(it)) {
                    return Err(format!(
                        "{transfer:?} has {excess:02x?}, which no donor kept"
                    ));
                }
                let late =
                    |it: &&Message| self.epochs.get(it).is_some_and(|it| *it >= transfer.view);
                if let Some(late) = came.iter().find(late) {
                    return Err(format!(
                        "{transfer:?} has {late:02x?} from behind its boundary"
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
    use spindle_dds_core::storage::RecordMeta;

    use super::super::made::{A, B, kept, last_violates, sample, transfer};
    use super::*;
    use crate::life::storage::Level;

    fn transferred(asked: &[Source], came: &[u64]) -> StorageFact {
        StorageFact::Transferred {
            transfer: transfer(2),
            after: [([1; 16], 1)].into(),
            sources: vec![SourceEnd {
                asked: asked.to_vec(),
                is_lost: false,
                writers: Vec::new(),
                level: Level::Transient,
            }],
            came: came.iter().map(|it| sample(1, *it, *it)).collect(),
        }
    }

    #[test]
    fn it_can_be_violated() {
        let [a, b] = [A, B].map(|it| (it, Level::Transient));
        let pinned = |source, must_be: &[u64]| StorageFact::Pinned {
            transfer: transfer(2),
            source,
            must_be: must_be
                .iter()
                .map(|it| sample(1, *it, *it))
                .collect::<Vec<RecordMeta>>(),
        };
        let before = [
            pinned(a, &[1, 2, 3, 7]),
            pinned(b, &[1, 3, 4]),
            kept(1, 7, 2, 7),
        ];
        let with = |more: StorageFact| {
            let good = [
                transferred(&[b], &[3, 4]),
                transferred(&[a, b], &[2, 3, 4]),
                more,
            ];
            let facts: Vec<_> = before.iter().chain(&good).map(Fact::Storage).collect();
            last_violates(HistoryExact::default(), &facts);
        };
        with(transferred(&[b], &[3]));
        with(transferred(&[b], &[3, 4, 5]));
        with(transferred(&[b], &[1, 3, 4]));
        with(transferred(&[a], &[2, 3, 7]));
        with(transferred(&[a, b], &[2, 4]));
    }
}
