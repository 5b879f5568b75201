//! The messages that a participant has sent in an epoch and that are still in its ring: a
//! participant that lost its group sends again what the group has not delivered, and a writer waits
//! until its last message is acknowledged.

use spindle_dds_transport::Fabric;

use crate::ids::DeliveryClass;
use crate::limits::HEADER_LEN;
use crate::subgroup::claim::Committed;
use crate::subgroup::handle::{STOPPED, SubgroupHandle};
use crate::subgroup::header::Header;

/// A message that was sent, copied out of its ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentMessage {
    /// As it was published: with the sequence number of its writer.
    pub header: Header,
    /// Its payload.
    pub payload: Vec<u8>,
}

impl<F: Fabric> SubgroupHandle<F> {
    /// This participant's messages of a class from index `from` on, in their order. To be called
    /// after [`EngineEvent::Stopped`](crate::EngineEvent::Stopped): no message is committed any
    /// more, and all that were are published. Messages that all members have released are not there any more; the group has
    /// delivered them. Empty while the group goes on, and where this participant does not send.
    /// Allocates.
    pub fn sent_since(&self, class: DeliveryClass, from: u64) -> Vec<SentMessage> {
        let mut sent = Vec::new();
        let ring = self.columns.rings[class.index()].as_ref();
        let send_ring = self.send_rings[class.index()].as_ref();
        let (Some(ring), Some(send_ring), STOPPED) = (ring, send_ring, self.gate.status()) else {
            return sent;
        };
        let from = from.max(self.released(class));
        let (mut before, real) = send_ring.taken();
        let row = self.fabric.row(self.fabric.me());
        // Newest first: each slot has the last message that was written there.
        for back in 1..=u64::from(ring.spec.messages) {
            let at = ring.header(u64::from(real).wrapping_sub(back));
            let words = row.copy_words::<{ HEADER_LEN / 8 }>(at);
            let Some(header) = Header::from_words(&words, ring.spec.memory()) else {
                break;
            };
            // A slot that was never written, or is of an earlier lap.
            if header.index >= before || header.index < from {
                break;
            }
            before = header.index;
            let len = header.len as usize;
            let mut payload = vec![0; len.next_multiple_of(8)];
            row.copy_out(ring.payload + header.offset as usize, &mut payload);
            payload.truncate(len);
            sent.push(SentMessage { header, payload });
        }
        sent.reverse();
        sent
    }

    /// The last message of a writer that was committed before the call, if it is still in the ring;
    /// `None` if all members have released it, or there is none. Found in the headers, so that a
    /// message costs nothing for it. Takes some nanoseconds for each message in the ring.
    pub fn last_of(&self, class: DeliveryClass, writer: u32) -> Option<Committed> {
        let ring = self.columns.rings[class.index()].as_ref()?;
        let send_ring = self.send_rings[class.index()].as_ref()?;
        let released = self.released(class);
        let (end, real) = send_ring.taken();
        let row = self.fabric.row(self.fabric.me());
        // A slot whose message another thread commits just now has its header of before, or a mixture.
        // The one of before is released, hence lower than any that is not. A mixture names a message
        // that is committed beside this call, or one that is released.
        let index_at = |back: u64| {
            let at = ring.header(u64::from(real).wrapping_sub(back));
            let [index, _, by] = row.copy_words::<3>(at);
            let index = index.checked_sub(1)?;
            let is_own = Header::writer_in(by) == writer && (released..end).contains(&index);
            is_own.then_some(index)
        };
        let (in_use, _) = send_ring.in_use();
        let in_use = u64::from(in_use.min(ring.spec.messages));
        let index = (1..=in_use).filter_map(index_at).max()?;
        Some(Committed {
            subgroup: self.id(),
            epoch: self.epoch(),
            class,
            index,
        })
    }
}
