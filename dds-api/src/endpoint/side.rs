//! The two sides of a topic.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use spindle_dds_qos::{
    DataReaderQos, DataRepresentation, DataWriterQos, DurabilityKind, DurabilityService,
    LatencyBudget, Liveliness, Properties,
};

use super::{EndpointCore, FactoryCore};
use crate::choice::ProfileQos;
use crate::driver::LocalEndpoint;
use crate::error::Result;
use crate::handle::EntityKind;
use crate::listener::DomainParticipantListener;
use crate::participant::{Defaults, Entities};

/// The writing or the reading side of a topic: what an endpoint of this side holds beyond
/// [`EndpointCore`], and how the entities of this side are called.
pub(crate) trait Side: fmt::Debug + Send + Sync + Sized + 'static {
    /// "writer" or "reader", for messages.
    const ENDPOINT: &'static str;
    const ENDPOINT_KIND: EntityKind;
    /// "publisher" or "subscriber", for messages.
    const FACTORY: &'static str;
    const FACTORY_KIND: EntityKind;

    type EndpointQos: EndpointQos;
    type FactoryQos: ProfileQos + fmt::Debug + Send;
    type FactoryListener: ?Sized + Send;
    /// The public handle of an endpoint whose type is not known.
    type AnyEndpoint;
    /// A change of status that a listener is told of.
    type Event;

    fn default_factory_qos(defaults: &Defaults) -> Option<Self::FactoryQos>;
    fn factories(entities: &mut Entities) -> &mut Vec<Arc<FactoryCore<Self>>>;
    fn own(endpoint: Arc<EndpointCore<Self>>) -> LocalEndpoint;

    fn call_factory_listener(
        listener: &mut Self::FactoryListener,
        endpoint: &Self::AnyEndpoint,
        event: &Self::Event,
    );
    fn call_participant_listener(
        listener: &mut dyn DomainParticipantListener,
        endpoint: &Self::AnyEndpoint,
        event: &Self::Event,
    );

    /// # Errors
    /// PRECONDITION_NOT_MET while the application has loans or waits for a condition.
    fn check_deletable(endpoint: &EndpointCore<Self>) -> Result<()>;

    /// # Errors
    /// PRECONDITION_NOT_MET while it contains what has to be deleted first.
    fn check_contains_nothing(endpoint: &EndpointCore<Self>) -> Result<()>;

    /// Stops the endpoint, which has just been marked as deleted, by a deletion that began at `since`.
    fn stop(endpoint: &EndpointCore<Self>, since: Instant);
}

/// The policies that writers and readers share, as far as their creation looks at them.
pub(crate) trait EndpointQos: ProfileQos + fmt::Debug + Send {
    fn representation(&mut self) -> &mut DataRepresentation;
    fn liveliness(&self) -> &Liveliness;
    fn latency_budget(&self) -> &LatencyBudget;
    fn property(&self) -> &Properties;
    /// Whether history is kept, or got.
    fn is_durable(&self) -> bool;
    /// Whether samples are logged.
    fn is_persistent(&self) -> bool;
    /// What a writer asks to be kept for readers that come later.
    fn durability_service(&self) -> Option<DurabilityService>;
}

macro_rules! endpoint_qos {
    ($($qos:ty: $service:expr),+) => { $(
        impl EndpointQos for $qos {
            fn representation(&mut self) -> &mut DataRepresentation {
                &mut self.representation
            }

            fn liveliness(&self) -> &Liveliness {
                &self.liveliness
            }

            fn latency_budget(&self) -> &LatencyBudget {
                &self.latency_budget
            }

            fn property(&self) -> &Properties {
                &self.property
            }

            fn is_durable(&self) -> bool {
                self.durability.kind >= DurabilityKind::TransientLocal
            }

            fn is_persistent(&self) -> bool {
                self.durability.kind == DurabilityKind::Persistent
            }

            fn durability_service(&self) -> Option<DurabilityService> {
                $service(self)
            }
        }
    )+ };
}

endpoint_qos!(
    DataWriterQos: |qos: &Self| Some(qos.durability_service.clone()),
    DataReaderQos: |_: &Self| None
);
