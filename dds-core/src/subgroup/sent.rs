//! The messages that a participant has sent in an epoch and that are still in its ring: a
//! participant that lost its group sends again what the group has not delivered.

use spindle_dds_transport::Fabric;

use crate::ids::DeliveryClass;
use crate::limits::HEADER_LEN;
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
}
