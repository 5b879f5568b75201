//! Q2: a reader shows each message once, of each writer in order, and history before what is live; the
//! history of a transfer comes by position.

use std::collections::BTreeMap;

use super::Invariant;
use crate::life::facts::Fact;
use crate::life::storage::{Guid, StorageFact, Transfer};

#[derive(Default)]
pub(super) struct HistoryOrder {
    /// Epochs of messages, by writer and sequence number.
    epochs: BTreeMap<(Guid, u64), u64>,
    /// The last message shown, by reader and writer.
    last: BTreeMap<(Guid, Guid), u64>,
    /// The epoch of the last live message shown, by reader.
    live: BTreeMap<Guid, u64>,
    /// The position of the last record shown of a transfer.
    positions: BTreeMap<Transfer, u64>,
}

impl Invariant for HistoryOrder {
    fn id(&self) -> &'static str {
        "Q2"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Storage(StorageFact::Kept { epoch, message, .. }) => {
                let key = (message.writer, message.sequence);
                self.epochs.insert(key, *epoch);
            }
            Fact::Storage(StorageFact::Shown {
                reader,
                transfer,
                message,
            }) => {
                let last = self.last.entry((*reader, message.writer)).or_default();
                if *last >= message.sequence {
                    return Err(format!(
                        "{reader:02x?} shows {message:?} after number {last}"
                    ));
                }
                *last = message.sequence;
                let epoch = self.epochs.get(&(message.writer, message.sequence));
                let Some(transfer) = transfer else {
                    self.live
                        .insert(*reader, epoch.copied().unwrap_or_default());
                    return Ok(());
                };
                if self
                    .live
                    .get(reader)
                    .is_some_and(|live| *live >= transfer.view)
                {
                    return Err(format!(
                        "{reader:02x?} shows {message:?} of history after what is live"
                    ));
                }
                let position = self.positions.entry(*transfer).or_default();
                if *position > message.position {
                    return Err(format!(
                        "{reader:02x?} shows {message:?} after position {position}"
                    ));
                }
                *position = message.position;
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{kept, last_violates, shown, transfer};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let it = Some(transfer(2));
        let with = |more: &[StorageFact]| {
            let kept = [
                kept(1, 1, 1, 1),
                kept(1, 2, 1, 5),
                kept(2, 1, 1, 3),
                kept(2, 2, 2, 7),
            ];
            let facts: Vec<_> = kept.iter().chain(more).map(Fact::Storage).collect();
            last_violates(HistoryOrder::default(), &facts);
        };
        with(&[shown(1, 1, 1, it), shown(1, 1, 1, it)]);
        with(&[shown(1, 2, 5, it), shown(1, 1, 1, it)]);
        with(&[shown(1, 2, 5, it), shown(2, 1, 3, it)]);
        with(&[shown(1, 1, 1, it), shown(2, 2, 7, None), shown(1, 2, 5, it)]);
    }
}
