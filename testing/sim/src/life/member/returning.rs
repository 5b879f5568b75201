//! What a member that comes back still has in store.

use spindle_dds_core::membership::DeliveredCounts;
use spindle_dds_core::storage::RecordMeta;
use spindle_dds_core::{DeliveryClass, SentMessage};

use super::Member;
use crate::life::storage::{Level, StorageFact, writer_of};

impl Member {
    /// It has what it had kept and shown before, and what the group has delivered of its writers,
    /// as far as it is told. Its writers go on with their sequence numbers.
    pub(crate) fn return_storage(&mut self, before: &mut Self, counts: &DeliveredCounts, now: u64) {
        let (Some(storage), Some(had)) = (&mut self.storage, before.storage.take()) else {
            return;
        };
        storage.return_from(had, now);
        let mut sequences = before.engine.writer_sequences();
        let handle = before.engine.handle();
        let class = DeliveryClass::Ordered;
        let number = class.index() as u32;
        for subgroup in handle.subgroups() {
            let (Some(epoch), Some(view)) = (handle.subgroup(subgroup), before.view.as_deref())
            else {
                continue;
            };
            let writer = writer_of(view, before.id, subgroup);
            let sequence = sequences
                .iter_mut()
                .find(|(its, _)| *its == 2 * subgroup.0 + number);
            let Some((_, last)) = sequence else { continue };
            let delivered = counts.of(subgroup, epoch.epoch());
            if let (None, Some((writer, Level::TransientLocal))) = (delivered, writer) {
                let (after, last) = (storage.last_of(subgroup, &writer), *last);
                storage.facts.push(StorageFact::Unsure {
                    writer,
                    after,
                    last,
                });
            }
            let Some(delivered) = delivered else { continue };
            let sent = epoch.sent_since(class, 0);
            let is_known = |it: &&SentMessage| it.header.index < delivered;
            if let Some((writer, Level::TransientLocal)) = writer {
                for SentMessage { header, payload } in sent.iter().take_while(is_known) {
                    let meta = RecordMeta {
                        position: 0,
                        sequence: header.writer_seq,
                        timestamp: header.timestamp,
                        writer,
                        key: header.key_hash,
                        kind: header.kind,
                        encapsulation: header.encapsulation,
                    };
                    storage.put_missed(subgroup, meta, payload, now);
                }
            }
            // What is sent again has the same sequence numbers as before.
            // A thread that was stopped in the middle of a commit has not published it.
            let is_numbered = |it: &&SentMessage| it.header.writer_seq > 0;
            let mut again = sent.iter().filter(|it| !is_known(it));
            if let Some(again) = again.find(is_numbered) {
                *last = again.header.writer_seq - 1;
            }
        }
        self.engine.go_on_after(&sequences);
    }
}
