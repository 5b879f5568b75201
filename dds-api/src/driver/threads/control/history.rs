//! Packets about the transfer of history: the history thread handles them.

use spindle_dds_core::membership::MemberId;
use spindle_dds_transport::hybrid::Station;
use spindle_dds_transport::shm::StationEvent;

use crate::history::{HISTORY_KINDS, HistoryContent, HistoryPacket, HistoryService};
use crate::joining::Packet;

/// Hands an event over to the history thread if it is such a packet; else returns it. Also called while
/// the control thread waits for something else: transfers go on meanwhile.
pub(super) fn hand_over(
    history: &HistoryService,
    station: &Station,
    event: StationEvent,
) -> Option<StationEvent> {
    let StationEvent::Message { from, bytes } = &event else {
        return Some(event);
    };
    if !bytes
        .get(4)
        .is_some_and(|kind| HISTORY_KINDS.contains(kind))
    {
        return Some(event);
    }
    let Ok(Packet::History(packet)) = Packet::read(bytes) else {
        return Some(event);
    };
    if history.is_started() {
        history.handle(MemberId(*from), packet);
    } else if let HistoryContent::Ask { .. } = packet.content {
        let answer = HistoryPacket {
            name: packet.name,
            content: HistoryContent::Unknown,
        };
        // A joiner that is not reached is gone.
        let _ = station.send(*from, &Packet::History(answer).write());
    }
    None
}
