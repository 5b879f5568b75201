//! Which listener is told of a change of status.

use super::{EndpointCore, FactoryCore, Side};
use crate::participant::ParticipantCore;
use crate::status::StatusMask;

/// The listener of an endpoint, without its topic type.
pub(crate) trait ErasedListener<S: Side>: Send {
    fn call(&mut self, endpoint: &S::AnyEndpoint, event: &S::Event);
}

impl<S: Side> EndpointCore<S> {
    /// Calls the most specific listener whose mask has `status`: the endpoint's, the
    /// factory's, the participant's. `event` reads the status, and so resets its changes: it
    /// is evaluated only for the listener that is called.
    pub(crate) fn tell(
        &self,
        endpoint: &S::AnyEndpoint,
        (factory, participant): (&FactoryCore<S>, &ParticipantCore),
        status: StatusMask,
        event: impl Fn() -> S::Event,
    ) {
        let _told = self
            .listener
            .call(status, |listener| listener.call(endpoint, &event()))
            || factory.listener.call(status, |listener| {
                S::call_factory_listener(listener, endpoint, &event());
            })
            || participant.listener.call(status, |listener| {
                S::call_participant_listener(listener, endpoint, &event());
            });
    }
}
