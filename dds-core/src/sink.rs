//! The interface to the layer above: deliveries and events.

use std::sync::Arc;

use spindle_dds_transport::Fabric;

use crate::ids::SubgroupId;
use crate::membership::{Decision, Finish, OutReason, Request, View};
use crate::subgroup::MessageRun;
use crate::subgroup::held::Delivery;

/// The layer above: what the engine hands messages and events to. Called by
/// the thread that steps, in order; must not block, and must not call the engine.
pub trait Sink<F: Fabric> {
    /// The next message. Its bytes stay valid beyond the call only when held.
    fn deliver(&mut self, delivery: &Delivery<'_, F>);

    /// Messages of one sender that are next. Whatever is not taken of them is
    /// [`deliver`](Self::deliver)ed afterwards: for those who take many at once more cheaply.
    fn deliver_run(&mut self, run: &mut MessageRun<'_, F>) {
        let _ = run;
    }

    /// The end of a batch of `deliver` calls, of one step or several: a good moment to wake
    /// readers. No step that finds nothing to do leaves a batch without its end, and an epoch
    /// that ends, or a group that stops, does not either.
    fn batch_end(&mut self);

    /// Something happened to the group. Stands in order with the deliveries of
    /// the subgroup it names.
    fn event(&mut self, event: EngineEvent);

    /// Whether topics of the subgroup are read here: only then its own
    /// messages are worth waking up for. Changes with a view at most.
    fn is_reading(&self, subgroup: SubgroupId) -> bool;

    /// Whether messages of the subgroup are welcome, in an epoch that has begun with a
    /// view: until all its members say so, its senders find no room in their ordered
    /// rings. Asked at every step until it is true; whoever makes it true sees to it that
    /// there is a step ([`Fabric::nudge`]).
    fn is_ready(&self, subgroup: SubgroupId) -> bool {
        let _ = subgroup;
        true
    }
}

/// What happens to a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineEvent {
    /// An epoch has ended; everything in it has been delivered. The subgroup goes
    /// on, if it does, in an epoch that begins at `end`.
    EpochEnded {
        /// Where.
        subgroup: SubgroupId,
        /// Which of its epochs.
        epoch: u64,
        /// Position behind the epoch's order.
        end: u64,
        /// Digest of the epoch's order: the same at all who go on.
        digest: u64,
    },
    /// To be decided by the driver, in the domain's record on this host: whether
    /// the domain goes on like this. The answer goes to
    /// [`Engine::decided`].
    Decide(Decision),
    /// The view that is about to end does not do what this participant asked for, and
    /// no later one will: the request is settled, and nothing of it has changed. Stands
    /// right before [`ViewEnded`](Self::ViewEnded).
    Refused {
        /// What was asked for.
        request: Request,
        /// Why it cannot be done, in words.
        why: String,
    },
    /// A view is over, and all of it has been delivered. The driver prepares the
    /// next one for [`Engine::install`], if this participant is in it.
    ViewEnded(Finish),
    /// The view has begun.
    ViewBegun(Arc<View>),
    /// The group has stopped; nothing is delivered any more.
    Stopped(OutReason),
}
