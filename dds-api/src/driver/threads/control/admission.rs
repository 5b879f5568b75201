//! Newcomers that wait: a view lets in so many as the group can follow.

use spindle_dds_core::membership::{Member, MemberId};

use super::ControlThread;
use crate::joining::Packet;

impl ControlThread {
    /// Tells the newcomers that this member has asked for, and that are neither in the view nor among
    /// `admitted`, that they wait for their turn: they would ask another member, or give up.
    pub(super) fn tell_waiting(&self, admitted: &[Member]) {
        let is_admitted = |id: u128| admitted.iter().any(|it| it.id.0 == id);
        let waits = |id: &u128| !is_admitted(*id) && self.view.rank(MemberId(*id)).is_none();
        let waiting = self.asked.iter().copied().filter(waits);
        for (ahead, id) in (0..).zip(waiting) {
            self.send(id, &Packet::Waits { ahead }.write());
        }
    }
}
