//! The begin of an epoch: its ordered ring takes claims once all members are ready.
//!
//! A member whose layer above still holds messages of earlier epochs holds those rings. If each
//! change of members gave it another ring, its backlog would grow without bound. So it reports
//! that it is not ready, its senders find no room, and the backlog stays as it is.

use spindle_dds_transport::{Fabric, Rank};

use super::{Context, SubgroupState};
use crate::sink::Sink;
use crate::subgroup::handle::SubgroupHandle;
use crate::sync::Ordering;

impl<F: Fabric> SubgroupState<F> {
    /// Announces that this member is ready, if the layer above is, and checks whether all members
    /// are. Returns whether claims find room from now on.
    pub(super) fn begin<S: Sink<F>>(
        &mut self,
        handle: &SubgroupHandle<F>,
        context: &mut Context<'_, S>,
    ) -> bool {
        if handle.begun.load(Ordering::Relaxed) {
            return false;
        }
        let (fabric, me) = (&handle.fabric, handle.fabric.me());
        if !self.is_ready && context.sink.is_ready(self.id()) {
            self.is_ready = true;
            fabric.store(handle.columns.ready(), 1);
            let (at, len) = (handle.columns.delivered_num, handle.columns.delivered_len);
            context.pushes.releases(at, len);
        }
        let members = (0..).map(Rank).zip(&self.members);
        let mut others = members.filter(|(place, _)| *place != me);
        let all = self.is_ready
            && others.all(|(place, member)| {
                !member.fenced && fabric.row(place).load(member.columns.ready()) == 1
            });
        if all {
            // Relaxed: no data is handed over with it. A claim synchronizes by the ring's own
            // words.
            handle.begun.store(true, Ordering::Relaxed);
        }
        all
    }
}
