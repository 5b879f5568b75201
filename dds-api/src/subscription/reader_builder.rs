//! Making readers.

use std::fmt;
use std::sync::Arc;

use spindle_dds_idl_runtime::TopicType;
use spindle_dds_qos::{DataReaderQos, PresentationAccessScope, ReliabilityKind};

use super::core::ReaderCore;
use super::erased::Typed;
use super::{DataReader, Subscriber};
use crate::cache::Cache;
use crate::choice::{QosChoice, check_qos};
use crate::driver::{LocalEndpoint, ReaderPort, StreamWakers, rekey};
use crate::error::{Error, Result};
use crate::handle::EntityKind;
use crate::lease::check_lease;
use crate::listener::DataReaderListener;
use crate::representation;
use crate::status::StatusMask;
use crate::topic::Topic;

/// Makes a [`DataReader`].
#[must_use = "a builder does nothing until `create`"]
pub struct DataReaderBuilder<'a, T> {
    subscriber: &'a Subscriber,
    topic: &'a Topic<T>,
    qos: QosChoice<DataReaderQos>,
    listener: Option<(StatusMask, Box<dyn DataReaderListener<T>>)>,
}

impl<T> fmt::Debug for DataReaderBuilder<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataReaderBuilder")
            .field("topic", &self.topic)
            .finish_non_exhaustive()
    }
}

impl<'a, T: TopicType> DataReaderBuilder<'a, T> {
    pub(crate) fn new(subscriber: &'a Subscriber, topic: &'a Topic<T>) -> Self {
        Self {
            subscriber,
            topic,
            qos: QosChoice::Default,
            listener: None,
        }
    }

    /// With this QoS.
    pub fn qos(mut self, qos: DataReaderQos) -> Self {
        self.qos = QosChoice::Given(Box::new(qos));
        self
    }

    /// With the QoS that the profile `Library::Profile` has for readers of the topic.
    pub fn profile(mut self, name: &str) -> Self {
        self.qos = QosChoice::Profile(name.to_owned());
        self
    }

    /// With a listener for these statuses.
    pub fn listener(
        mut self,
        mask: StatusMask,
        listener: impl DataReaderListener<T> + 'static,
    ) -> Self {
        self.listener = Some((mask, Box::new(listener)));
        self
    }

    /// Creates the reader.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET when the topic is of another participant; OUT_OF_RESOURCES
    /// when its QoS is too long to be announced; ERROR when the others have the topic in
    /// another subgroup; INCONSISTENT_POLICY; UNSUPPORTED; BAD_PARAMETER for an
    /// unknown profile or property.
    pub fn create(self) -> Result<DataReader<T>> {
        let (subscriber, participant) = (&self.subscriber.core, &self.subscriber.participant);
        subscriber.base.alive()?;
        self.topic.core.base.alive()?;
        if !Arc::ptr_eq(participant, &self.topic.participant) {
            let text = "the topic belongs to another participant";
            return Err(Error::PreconditionNotMet(text.to_owned()));
        }
        let topic = &self.topic.core;
        let mut qos = self.qos.resolve(
            participant,
            |profile| profile.datareader_qos(&topic.name),
            || subscriber.default_reader().clone(),
        )?;
        check_qos!(qos);
        representation::settle::<T>(&mut qos.representation)?;
        check_lease(&qos.liveliness, participant.config.failure_limit)?;
        let config = participant.config.reader_of(&qos.property)?;
        let what = format!("the reader of topic {}", topic.name);
        let (base, number) = participant.new_base(EntityKind::Reader, what);
        let presentation = subscriber.qos().presentation;
        let ordered = presentation.ordered_access
            && presentation.access_scope >= PresentationAccessScope::Topic;
        let mut cache = Cache::new(qos.history, qos.resource_limits, ordered);
        cache.set_holds_back(qos.reliability.kind == ReliabilityKind::Reliable);
        let beacons = [
            base.status_flags().clone(),
            subscriber.base.status_flags().clone(),
        ];
        let streams = Arc::new(StreamWakers::new(participant.notifier().clone()));
        let group_status = participant.group_status.clone();
        let port = ReaderPort::new(cache, config, rekey::<T>, beacons, streams, group_status);
        let core = Arc::new(ReaderCore::new(
            base,
            topic.clone(),
            subscriber,
            participant,
            number,
            qos,
            Arc::new(port),
        ));
        if let Some((mask, listener)) = self.listener {
            core.base.hears(mask);
            core.listener.set(mask, Some(Typed::erase(listener)));
        }
        participant
            .local_endpoints
            .add(number, LocalEndpoint::Reader(core.clone()))?;
        // Or the subscriber is deleted by now.
        let added = subscriber.add(core.clone());
        added.inspect_err(|_| core.delete())?;
        Ok(DataReader::new(core, participant.clone()))
    }
}
