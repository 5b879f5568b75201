//! How an epoch of a view begins: its ordered ring takes claims once all members are
//! ready for its messages.
//!
//! A member that has not handed on what came by the epochs before holds those rings.
//! Were it given another ring by each change of members, what waits for it would grow
//! without end. So it says no, its senders find no room, and it has at most what
//! it had when it said so.

use spindle_dds_transport::{Fabric, Rank};

use super::{Context, SubgroupState};
use crate::sink::Sink;
use crate::subgroup::handle::SubgroupHandle;
use crate::sync::Ordering;

impl<F: Fabric> SubgroupState<F> {
    /// Says that this member is ready, if the layer above is, and finds out whether all
    /// are. Whether there is room by that.
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
            let (at, len) = (handle.columns.delivered_num, handle.columns.delivered_len());
            context.pushes.acks(at, len);
        }
        let members = (0..).map(Rank).zip(&self.members);
        let mut others = members.filter(|(place, _)| *place != me);
        let all = self.is_ready
            && others.all(|(place, member)| {
                !member.fenced && fabric.row(place).load(member.columns.ready()) == 1
            });
        if all {
            // Nothing is handed over with it: a claim synchronizes by the ring's own words.
            handle.begun.store(true, Ordering::Relaxed);
        }
        all
    }
}
