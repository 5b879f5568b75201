//! Q1: what a reader shows of a writer is without a gap, as far as HISTORY allows it: of the past
//! KEEP_ALL every sample, KEEP_LAST the last ones of each instance at the boundary; and from there on
//! everything. Instances that were disposed of may be gone; and so may be what no donor is left of.

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::storage::RecordMeta;
use spindle_dds_core::{MessageKind, SubgroupId};

use super::Invariant;
use crate::life::facts::Fact;
use crate::life::storage::{Guid, Level, SourceEnd, StorageFact, Topic, Transfer};

#[derive(Default)]
pub(super) struct HistoryComplete {
    /// What was delivered, by writer and sequence number.
    written: BTreeMap<Guid, BTreeMap<u64, Written>>,
    topics: BTreeMap<SubgroupId, Topic>,
    /// The epoch from which on the keepers of a topic have all of it.
    since: BTreeMap<SubgroupId, u64>,
    /// The epoch in which a reader has met a writer.
    met: BTreeMap<(Guid, Guid), u64>,
    shown: BTreeMap<(Guid, Guid), BTreeSet<u64>>,
    /// Messages of a writer of which its participant does not know whether they were delivered.
    unsure: BTreeMap<Guid, Vec<(u64, u64)>>,
}

#[derive(Clone, Copy)]
struct Written {
    subgroup: SubgroupId,
    epoch: u64,
    level: Level,
    message: RecordMeta,
}

impl HistoryComplete {
    fn has_shown(&self, reader: Guid, writer: Guid, sequence: u64) -> bool {
        let shown = self.shown.get(&(reader, writer));
        shown.is_some_and(|shown| shown.contains(&sequence))
    }

    /// A live message is shown: so is the one before it, from the first that was live for the reader.
    fn check_live(&self, reader: Guid, message: &RecordMeta) -> Result<(), String> {
        let writer = message.writer;
        let Some(met) = self.met.get(&(reader, writer)) else {
            return Err(format!(
                "{reader:02x?} shows {message:?} of an unknown writer"
            ));
        };
        let written = self.written.get(&writer);
        let before = written.and_then(|it| it.range(..message.sequence).next_back());
        let Some((before, _)) = before.filter(|(_, it)| it.epoch >= *met) else {
            return Ok(());
        };
        if !self.has_shown(reader, writer, *before) {
            return Err(format!(
                "{reader:02x?} shows {message:?}, and not number {before}"
            ));
        }
        Ok(())
    }

    fn check_rest(&self, reader: Guid) -> Result<(), String> {
        let (first, last) = ((reader, [0; 16]), (reader, [u8::MAX; 16]));
        for ((_, writer), met) in self.met.range(first..=last) {
            let written = self.written.get(writer).and_then(BTreeMap::last_key_value);
            let Some((sequence, _)) = written.filter(|(_, it)| it.epoch >= *met) else {
                continue;
            };
            if !self.has_shown(reader, *writer, *sequence) {
                return Err(format!(
                    "{reader:02x?} does not show number {sequence} of {writer:02x?}"
                ));
            }
        }
        Ok(())
    }

    fn check_source(
        &self,
        transfer: Transfer,
        after: &BTreeMap<Guid, u64>,
        source: &SourceEnd,
    ) -> Result<(), String> {
        let Some(topic) = self.topics.get(&transfer.subgroup) else {
            return Ok(());
        };
        let past = self.past(transfer, source);
        let ended = past.iter().filter(|it| it.kind != MessageKind::Data);
        let ended: BTreeSet<_> = ended.map(|it| it.key).collect();
        let mut newer: BTreeMap<_, u32> = BTreeMap::new();
        for message in past.iter().rev().filter(|it| !ended.contains(&it.key)) {
            let RecordMeta {
                writer, sequence, ..
            } = *message;
            let of_writer = (source.level == Level::TransientLocal).then_some(writer);
            let newer = newer.entry((of_writer, message.key)).or_default();
            let is_kept = topic.limits.depth.is_none_or(|depth| *newer < depth);
            *newer += 1;
            let is_new = after.get(&writer).is_none_or(|after| *after < sequence);
            let unsure = self.unsure.get(&writer).into_iter().flatten();
            let is_unsure = unsure
                .into_iter()
                .any(|(after, to)| *after < sequence && sequence <= *to);
            if is_kept && is_new && !is_unsure && !self.has_shown(transfer.reader, writer, sequence)
            {
                return Err(format!("{transfer:?} has not brought {message:?}"));
            }
        }
        Ok(())
    }

    /// What the source of a transfer must know, by position.
    fn past(&self, transfer: Transfer, source: &SourceEnd) -> Vec<RecordMeta> {
        let since = self
            .since
            .get(&transfer.subgroup)
            .copied()
            .unwrap_or_default();
        let written = self.written.values().flat_map(BTreeMap::values);
        let of_source = written.filter(|it| {
            it.subgroup == transfer.subgroup
                && it.level == source.level
                && match it.level {
                    Level::TransientLocal => source.writers.contains(&it.message.writer),
                    Level::Transient => it.epoch >= since,
                }
        });
        let past = of_source.filter(|it| it.epoch < transfer.view);
        let mut past: Vec<_> = past.map(|it| (it.epoch, it.message)).collect();
        past.sort_by_key(|(epoch, it)| (*epoch, it.position, it.sequence));
        past.into_iter().map(|(_, message)| message).collect()
    }
}

impl Invariant for HistoryComplete {
    fn id(&self) -> &'static str {
        "Q1"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::Storage(fact) = *fact else {
            return Ok(());
        };
        match fact {
            StorageFact::Kept {
                subgroup,
                epoch,
                level,
                topic,
                message,
            } => {
                self.topics.insert(*subgroup, *topic);
                let written = Written {
                    subgroup: *subgroup,
                    epoch: *epoch,
                    level: *level,
                    message: *message,
                };
                let of_writer = self.written.entry(message.writer).or_default();
                of_writer.insert(message.sequence, written);
            }
            StorageFact::BeginsAnew { subgroup, epoch } => {
                let since = self.since.entry(*subgroup).or_default();
                *since = (*since).max(*epoch);
            }
            StorageFact::Meets {
                reader,
                is_new,
                epoch,
                writers,
            } => {
                self.met.retain(|(its, _), _| !is_new || its != reader);
                let writers = writers.iter().map(|writer| ((*reader, *writer), *epoch));
                self.met.extend(writers);
            }
            StorageFact::Unsure {
                writer,
                after,
                last,
            } => self
                .unsure
                .entry(*writer)
                .or_default()
                .push((*after, *last)),
            StorageFact::Shown {
                reader,
                transfer,
                message,
            } => {
                if transfer.is_none() {
                    self.check_live(*reader, message)?;
                }
                let shown = self.shown.entry((*reader, message.writer)).or_default();
                shown.insert(message.sequence);
            }
            StorageFact::Transferred {
                transfer,
                after,
                sources,
                ..
            } => {
                let of_keeper = transfer.reader == [0; 16];
                for source in sources {
                    if of_keeper && source.is_lost {
                        let since = self.since.entry(transfer.subgroup).or_default();
                        *since = (*since).max(transfer.view);
                    } else if !of_keeper && !source.is_lost {
                        self.check_source(*transfer, after, source)?;
                    }
                }
            }
            StorageFact::ReaderAtRest { reader } => self.check_rest(*reader)?,
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{A, kept, last_violates, shown, transfer};
    use super::*;

    fn transferred(is_lost: bool) -> StorageFact {
        StorageFact::Transferred {
            transfer: transfer(2),
            after: [([1; 16], 1)].into(),
            sources: vec![SourceEnd {
                asked: vec![(A, Level::TransientLocal)],
                is_lost,
                writers: vec![[1; 16]],
                level: Level::TransientLocal,
            }],
            came: Vec::new(),
        }
    }

    #[test]
    fn it_can_be_violated() {
        let it = Some(transfer(2));
        let met = StorageFact::Meets {
            reader: transfer(2).reader,
            is_new: true,
            epoch: 2,
            writers: vec![[1; 16]],
        };
        let kept: Vec<_> = (1..=5).map(|at| kept(1, at, at.div_ceil(3), at)).collect();
        let with = |more: &[StorageFact]| {
            let facts = [&kept[..], &[met.clone(), transferred(true)], more].concat();
            let facts: Vec<_> = facts.iter().map(Fact::Storage).collect();
            last_violates(HistoryComplete::default(), &facts);
        };
        let reader = transfer(2).reader;
        let at_rest = StorageFact::ReaderAtRest { reader };
        with(&[shown(1, 2, 2, it), transferred(false)]);
        with(&[
            shown(1, 2, 2, it),
            shown(1, 3, 3, it),
            transferred(false),
            at_rest.clone(),
        ]);
        with(&[shown(1, 4, 4, None), at_rest]);
        with(&[shown(1, 5, 5, None)]);
        with(&[shown(2, 1, 1, None)]);
    }
}
