//! Packets on their way to other members, and to this participant itself.

use std::collections::VecDeque;
use std::sync::Arc;

use spindle_dds_core::membership::MemberId;
use spindle_dds_transport::hybrid::HybridError;
use spindle_dds_transport::shm::StationError;

use super::packet::HistoryPacket;
use crate::driver::ControlQueue;
use crate::joining::Packet;

/// A participant that gives or gets history: a member, or `None` for this participant itself.
pub(super) type Place = Option<MemberId>;

/// Sends packets in their order. One for which a station has no room now waits here.
#[derive(Default)]
pub(super) struct Outbox {
    control_queue: Option<Arc<ControlQueue>>,
    waiting: VecDeque<(MemberId, Vec<u8>)>,
    /// Packets for this participant.
    local: VecDeque<HistoryPacket>,
}

/// Most packets that wait for one member; a joiner grants far fewer.
const WAITING_MAX: usize = 4096;

impl Outbox {
    /// Whether packets go by this queue.
    pub(super) fn is_of(&self, control_queue: &Arc<ControlQueue>) -> bool {
        let known = self.control_queue.as_ref();
        known.is_some_and(|known| Arc::ptr_eq(known, control_queue))
    }

    /// Packets go by this queue from now on, or nowhere.
    pub(super) fn set_control_queue(&mut self, control_queue: Option<Arc<ControlQueue>>) {
        self.control_queue = control_queue;
        self.waiting.clear();
    }

    /// Sends a packet. False if the member is not reached: it is gone, or about to be.
    pub(super) fn send(&mut self, to: Place, packet: HistoryPacket) -> bool {
        let Some(to) = to else {
            self.local.push_back(packet);
            return true;
        };
        self.send_to(to, Packet::History(packet).write())
    }

    /// The same for a packet of any kind to another member.
    pub(super) fn send_to(&mut self, to: MemberId, bytes: Vec<u8>) -> bool {
        if self.waiting.iter().any(|(waits, _)| *waits == to) {
            let has_room = self.waiting.len() < WAITING_MAX;
            if has_room {
                self.waiting.push_back((to, bytes));
            }
            return has_room;
        }
        match self.try_send(to, &bytes) {
            Ok(()) => true,
            Err(HybridError::Station(StationError::Full { .. })) => {
                self.waiting.push_back((to, bytes));
                true
            }
            Err(error) => {
                tracing::debug!(%error, "a packet of history is not sent");
                false
            }
        }
    }

    fn try_send(&self, to: MemberId, bytes: &[u8]) -> Result<(), HybridError> {
        match &self.control_queue {
            Some(control_queue) => control_queue.send(to, bytes),
            None => Ok(()),
        }
    }

    /// Sends what waits, as far as there is room for it.
    pub(super) fn send_waiting(&mut self) {
        let mut still = VecDeque::new();
        for (to, bytes) in std::mem::take(&mut self.waiting) {
            let is_behind = still.iter().any(|(waits, _)| *waits == to);
            let is_full =
                |sent| matches!(sent, Err(HybridError::Station(StationError::Full { .. })));
            if is_behind || is_full(self.try_send(to, &bytes)) {
                still.push_back((to, bytes));
            }
        }
        self.waiting = still;
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The next packet of this participant to itself.
    pub(super) fn next_local(&mut self) -> Option<HistoryPacket> {
        self.local.pop_front()
    }

    pub(super) fn has_local(&self) -> bool {
        !self.local.is_empty()
    }
}
