//! Packets about the transfer of history, and those of logs: threads of their own handle them.

use spindle_dds_core::membership::MemberId;
use spindle_dds_transport::hybrid::Station;
use spindle_dds_transport::shm::StationEvent;

use crate::history::{
    HISTORY_KINDS, HistoryContent, HistoryPacket, HistoryService, LOG_KINDS, LOG_NOTICE_KIND,
    LogService,
};
use crate::joining::Packet;

/// Hands an event over to the history or the log thread if it is such a packet; else returns it. Also called while
/// the control thread waits for something else: transfers go on meanwhile.
pub(super) fn hand_over(
    (history, logs): (&HistoryService, &LogService),
    station: &Station,
    event: StationEvent,
) -> Option<StationEvent> {
    let StationEvent::Message { from, bytes } = &event else {
        return Some(event);
    };
    let is_such = |kind: &u8| {
        HISTORY_KINDS.contains(kind) || LOG_KINDS.contains(kind) || *kind == LOG_NOTICE_KIND
    };
    if !bytes.get(4).is_some_and(is_such) {
        return Some(event);
    }
    let packet = match Packet::read(bytes) {
        Ok(Packet::History(packet)) => packet,
        Ok(Packet::Log(message)) => {
            logs.handle(MemberId(*from), message);
            return None;
        }
        Ok(Packet::LogNotice(notice)) => {
            logs.troubles().note(Some(MemberId(*from)), notice);
            return None;
        }
        _ => return Some(event),
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
