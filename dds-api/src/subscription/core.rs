//! What a reader holds beyond what every endpoint does.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use spindle_dds_qos::{
    DataReaderQos, DurabilityKind, PresentationAccessScope, ReliabilityKind, SubscriberQos,
};

use super::erased::{ReaderEvent, call};
use super::{AnyDataReader, SubscriberCore};
use crate::cache::Cache;
use crate::condition::{ReadConditions, StateMasks};
use crate::driver::{
    LocalEndpoint, LoggedAt, Payload, ReaderPort, StreamWakers, degree_of_delivery,
};
use crate::endpoint::{EndpointCore, Side};
use crate::entity::EntityBase;
use crate::error::{Error, Result};
use crate::handle::EntityKind;
use crate::listener::{DomainParticipantListener, SubscriberListener};
use crate::participant::{Defaults, Entities, ParticipantCore};
use crate::properties;
use crate::sample_type::SampleType;
use crate::status::{StatusFlags, StatusMask};
use crate::wire::Wire;

pub(crate) type ReaderCore = EndpointCore<ReaderSide>;

pub(crate) struct ReaderSide {
    pub(crate) port: Arc<ReaderPort<Wire>>,
    pub(crate) streams: Arc<StreamWakers>,
    pub(crate) conditions: ReadConditions,
}

impl fmt::Debug for ReaderSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderSide")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl ReaderSide {
    pub(super) fn new(
        (participant, sample_type): (&ParticipantCore, &SampleType),
        subscriber: &SubscriberCore,
        base: &EntityBase,
        qos: &DataReaderQos,
    ) -> Result<Self> {
        let config = properties::placed(&qos.property, &qos.origins, |it| {
            participant.config.reader_of(it)
        })?;
        let cache = cache_of(qos, &subscriber.qos());
        let status_flags = [
            base.status_flags().clone(),
            subscriber.base.status_flags().clone(),
        ];
        let streams = Arc::new(StreamWakers::new(participant.notifier().clone()));
        let group_status = participant.group_status.clone();
        let port = ReaderPort::new(
            (base.what(), is_durable(qos)),
            cache,
            config,
            (
                sample_type.rekey(),
                sample_type.known_keys(participant.keys()),
            ),
            status_flags,
            streams.clone(),
            group_status,
        );
        Ok(Self {
            port: Arc::new(port),
            streams,
            conditions: ReadConditions::default(),
        })
    }
}

fn cache_of(qos: &DataReaderQos, subscriber: &SubscriberQos) -> Cache<Payload<Wire>> {
    let presentation = &subscriber.presentation;
    let ordered =
        presentation.ordered_access && presentation.access_scope >= PresentationAccessScope::Topic;
    let mut cache = Cache::new(qos.history, qos.resource_limits, ordered);
    cache.set_holds_back(qos.reliability.kind == ReliabilityKind::Reliable);
    cache
}

/// Whether the reader gets what was written before it is matched.
pub(super) fn is_durable(qos: &DataReaderQos) -> bool {
    qos.durability.kind != DurabilityKind::Volatile
}

impl Side for ReaderSide {
    const ENDPOINT: &'static str = "reader";
    const ENDPOINT_KIND: EntityKind = EntityKind::Reader;
    const FACTORY: &'static str = "subscriber";
    const FACTORY_KIND: EntityKind = EntityKind::Subscriber;

    type EndpointQos = DataReaderQos;
    type FactoryQos = SubscriberQos;
    type FactoryListener = dyn SubscriberListener;
    type AnyEndpoint = AnyDataReader;
    type Event = ReaderEvent;

    fn default_factory_qos(defaults: &Defaults) -> Option<SubscriberQos> {
        defaults.subscriber.clone()
    }

    fn factories(entities: &mut Entities) -> &mut Vec<Arc<SubscriberCore>> {
        &mut entities.subscribers
    }

    fn own(reader: Arc<ReaderCore>) -> LocalEndpoint {
        LocalEndpoint::Reader(reader)
    }

    fn call_factory_listener(
        listener: &mut (dyn SubscriberListener + 'static),
        reader: &AnyDataReader,
        event: &ReaderEvent,
    ) {
        call!(listener, reader, event);
    }

    fn call_participant_listener(
        listener: &mut dyn DomainParticipantListener,
        reader: &AnyDataReader,
        event: &ReaderEvent,
    ) {
        call!(listener, reader, event);
    }

    fn check_deletable(reader: &ReaderCore) -> Result<()> {
        reader.check_no_loans()?;
        if reader.status_flags().observers().are_waiting() {
            return Err(Error::PreconditionNotMet(format!(
                "a thread waits for a condition of {}; wake it first",
                reader.base.what()
            )));
        }
        Ok(())
    }

    fn check_contains_nothing(reader: &ReaderCore) -> Result<()> {
        match reader.side.conditions.count() {
            0 => Ok(()),
            conditions => Err(Error::PreconditionNotMet(format!(
                "{} has {conditions} conditions; drop them, or call its \
                 delete_contained_entities, first",
                reader.base.what()
            ))),
        }
    }

    fn stop(reader: &ReaderCore, _since: Instant) {
        reader.side.port.close();
        // Its streams end. Not by the waking thread, which may never have seen this reader.
        reader.side.streams.wake(&mut Vec::new());
    }
}

impl ReaderCore {
    pub(crate) fn status_flags(&self) -> &Arc<StatusFlags> {
        self.base.status_flags()
    }

    /// The reader is about to be announced: if it is not enabled yet, what it holds follows the QoS
    /// that it has now.
    pub(crate) fn settle(&self) {
        if !self.base.is_enabled()
            && let Some(subscriber) = self.factory.upgrade()
        {
            let cache = cache_of(&self.qos(), &subscriber.qos());
            self.side.port.replace_cache(cache, is_durable(&self.qos()));
            self.await_logs();
        }
    }

    /// A PERSISTENT reader may show what logs have on disk only.
    fn await_logs(&self) {
        let participant = self.participant.upgrade();
        let deliver = participant.map(|it| it.config.log.deliver);
        let is_persistent = self.qos().durability.kind == DurabilityKind::Persistent;
        let degree = deliver.filter(|_| is_persistent);
        let logged = degree.and_then(degree_of_delivery).map(|degree| {
            let logs = self.topic.logs.clone();
            Arc::new(move |position| logs.at(degree, position)) as LoggedAt
        });
        self.side.port.show_logged(logged);
    }

    pub(crate) fn has_samples(&self, masks: &StateMasks) -> bool {
        // An inherited reader: a read says so.
        let is_over = self.base.is_deleted() || self.base.is_inherited();
        is_over || self.base.is_enabled() && self.side.port.has(masks)
    }

    /// Steps the engine once for a read that has found nothing. Returns whether there was something
    /// to do.
    pub(crate) fn step_once(&self) -> bool {
        self.status_flags()
            .data_waiter()
            .is_some_and(|data_waiter| data_waiter.step_once())
    }

    /// Clears the statuses that announce data.
    pub(crate) fn clear_data_available(&self) {
        self.status_flags().clear(StatusMask::DATA_AVAILABLE);
        self.side
            .port
            .subscriber()
            .clear(StatusMask::DATA_ON_READERS);
    }

    /// # Errors
    /// PRECONDITION_NOT_MET while collections of samples have not been returned.
    pub(crate) fn check_no_loans(&self) -> Result<()> {
        match self.side.port.loans() {
            0 => Ok(()),
            loans => Err(Error::PreconditionNotMet(format!(
                "{} has {loans} collections of samples out; drop them first",
                self.base.what()
            ))),
        }
    }
}
