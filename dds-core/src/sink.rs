//! The interface to the layer above: deliveries and events.

use std::sync::Arc;

use spindle_dds_transport::Fabric;

use crate::ids::SubgroupId;
use crate::membership::{Decision, Finish, OutReason, Preparation, Refusal, Request, View};
use crate::subgroup::MessageRun;
use crate::subgroup::held::Delivery;

/// Receives the messages and events of an engine, in order. Called by the thread that steps;
/// must not block, and must not call the engine.
pub trait Sink<F: Fabric> {
    /// Delivers the next message. Its bytes stay valid beyond the call only if it is held.
    fn deliver(&mut self, delivery: &Delivery<'_, F>);

    /// Offers the next messages of one sender together, for a sink that takes many at once more
    /// cheaply. Messages that it does not take are [`deliver`](Self::deliver)ed afterwards.
    fn deliver_run(&mut self, run: &mut MessageRun<'_, F>) {
        let _ = run;
    }

    /// Ends a batch of `deliver` calls, of one step or several: the moment to wake readers. No
    /// batch stays open across a step without progress, the end of a subgroup epoch, or
    /// [`EngineEvent::Stopped`].
    fn batch_end(&mut self);

    /// Reports an event of the group, in order with the deliveries of the subgroup it names.
    fn event(&mut self, event: EngineEvent);

    /// Whether topics of the subgroup are read here: only then its own
    /// messages are worth waking up for. Changes with a view at most.
    fn is_reading(&self, subgroup: SubgroupId) -> bool;

    /// Whether messages of the subgroup can be delivered. Asked at every step of an epoch that
    /// begins, until it is true; until all members are ready, senders find no room in their
    /// ordered rings. The thread that makes it true causes a step ([`Fabric::nudge`]).
    fn is_ready(&self, subgroup: SubgroupId) -> bool {
        let _ = subgroup;
        true
    }

    /// A member has told that it has persisted more of the subgroup, or this one has
    /// ([`SubgroupHandle::persisted`]). Called once for all that a pass over the subgroup finds.
    ///
    /// [`SubgroupHandle::persisted`]: crate::SubgroupHandle::persisted
    fn persisted(&mut self, subgroup: SubgroupId) {
        let _ = subgroup;
    }

    /// Whether what other members persist of the subgroup is worth waking up for, even while no thread
    /// waits for acknowledgements ([`AckWait`](crate::AckWait)). Asked before the thread that steps
    /// sleeps, or when the subgroup goes idle: a thread that makes it true causes a step of the subgroup
    /// ([`SubgroupHandle::nudge`](crate::SubgroupHandle::nudge)).
    fn awaits_persisted(&self, subgroup: SubgroupId) -> bool {
        let _ = subgroup;
        true
    }
}

/// An event of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineEvent {
    /// A subgroup epoch has ended, and all of it has been delivered. If the subgroup goes on,
    /// its next epoch begins at `end`.
    EpochEnded {
        /// The subgroup.
        subgroup: SubgroupId,
        /// Its epoch that has ended.
        epoch: u64,
        /// Position after the last one of the epoch's order.
        end: u64,
        /// Digest of the epoch's order: equal at all members that go on.
        digest: u64,
    },
    /// The driver prepares everything that this view needs, and answers by
    /// [`Engine::prepared`](crate::Engine::prepared). What it prepared before for the same view is
    /// not needed any more.
    Prepare(Preparation),
    /// What the driver has prepared is not needed any more: the view goes on.
    CallOff,
    /// Another member cannot prepare the view of [`Prepare`](Self::Prepare) with this number: the
    /// driver need not wait for it, nor answer.
    StopPreparing {
        /// [`Preparation::number`].
        number: u64,
    },
    /// The driver decides, in the domain's record on this host, whether the domain goes on with
    /// this view, and answers by [`Engine::decided`](crate::Engine::decided).
    Decide(Decision),
    /// A request of this participant is refused: no view will fulfil it, and nothing of it has
    /// changed. The view may go on.
    Refused {
        /// The request.
        request: Request,
        /// Why it cannot be fulfilled.
        refusal: Refusal,
    },
    /// A view has ended, and all of it has been delivered. The driver prepares the
    /// next one for [`Engine::install`](crate::Engine::install), if this participant is in it.
    ViewEnded(Finish),
    /// The view has begun.
    ViewBegun(Arc<View>),
    /// The group has stopped; nothing is delivered any more.
    Stopped(OutReason),
}
