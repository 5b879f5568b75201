//! Members that leave the group without having asked to: why they do, and what is left of them.

use std::time::Duration;

use spindle_dds_core::membership::{MemberId, View};
use spindle_dds_transport::shm::StationEvent;

use super::control::ControlThread;
use crate::discovery::ParticipantInfo;
use crate::joining::Packet;

impl ControlThread {
    /// Tells the members why this one is about to leave the group. They would only see it go.
    pub(super) fn give_up(&self, view: &View, reason: &str) {
        let packet = Packet::GivesUp(reason.to_owned()).write();
        for member in view.members.iter().filter(|member| member.id != self.me) {
            // A member that is not reached sees this one go.
            let _ = self.station.send(member.id.0, &packet);
        }
    }

    /// The reason that a member has given, as far as it has arrived: a member sends it before it
    /// closes its station.
    pub(super) fn reason_of(&mut self, id: MemberId) -> Option<String> {
        while let Some(event) = self.station.next_event(Duration::ZERO) {
            let packet = match &event {
                StationEvent::Message { from, bytes } => Some((*from, Packet::read(bytes))),
                _ => None,
            };
            match packet {
                Some((from, Ok(Packet::GivesUp(reason)))) => {
                    self.gave_up.insert(from, reason);
                }
                _ => self.later.push_back(event),
            }
        }
        self.gave_up.remove(&id.0)
    }

    /// Logs the members that the view that has ended expelled, with the reasons that they gave, or
    /// that the others had.
    pub(super) fn say_expelled(&mut self, expelled: &[(MemberId, String)]) {
        for (id, reason) in expelled {
            let own = self.reason_of(*id);
            let reason = own.as_ref().unwrap_or(reason);
            let members = &self.view.members;
            let member = members.iter().find(|member| member.id == *id);
            let info = member.and_then(|member| ParticipantInfo::of(member).ok());
            let pid = info.map(|info| info.pid);
            tracing::warn!(pid, reason, "a participant is out of the group");
        }
    }

    /// Drops peers that are lost and not in the view any more, or were expelled. A member that has
    /// left closes its station by itself.
    pub(super) fn drop_gone(&mut self, expelled: &[(MemberId, String)]) {
        let view = &self.view;
        self.gave_up
            .retain(|id, _| view.rank(MemberId(*id)).is_some());
        let lost = std::mem::take(&mut self.lost);
        for id in lost {
            match self.view.rank(MemberId(id)) {
                Some(_) => drop(self.lost.insert(id)),
                None => self.station.drop_peer(id),
            }
        }
        for (id, _) in expelled {
            self.station.drop_peer(id.0);
        }
    }
}
