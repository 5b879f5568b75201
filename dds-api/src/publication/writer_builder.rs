//! Making writers.

use std::fmt;
use std::sync::Arc;

use spindle_dds_core::DeliveryClass;
use spindle_dds_idl_runtime::{Representation, TopicType};
use spindle_dds_qos::{DataRepresentationId, DataWriterQos, ReliabilityKind};

use super::core::{WriterCore, WriterSettings};
use super::erased::Typed;
use super::{DataWriter, Publisher};
use crate::choice::{QosChoice, check_qos};
use crate::driver::LocalEndpoint;
use crate::error::{Error, Result};
use crate::handle::EntityKind;
use crate::lease::check_lease;
use crate::listener::DataWriterListener;
use crate::representation;
use crate::status::StatusMask;
use crate::topic::Topic;

/// Makes a [`DataWriter`].
#[must_use = "a builder does nothing until `create`"]
pub struct DataWriterBuilder<'a, T> {
    publisher: &'a Publisher,
    topic: &'a Topic<T>,
    qos: QosChoice<DataWriterQos>,
    listener: Option<(StatusMask, Box<dyn DataWriterListener<T>>)>,
}

impl<T> fmt::Debug for DataWriterBuilder<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataWriterBuilder")
            .field("topic", &self.topic)
            .finish_non_exhaustive()
    }
}

impl<'a, T: TopicType> DataWriterBuilder<'a, T> {
    pub(crate) fn new(publisher: &'a Publisher, topic: &'a Topic<T>) -> Self {
        Self {
            publisher,
            topic,
            qos: QosChoice::Default,
            listener: None,
        }
    }

    /// With this QoS.
    pub fn qos(mut self, qos: DataWriterQos) -> Self {
        self.qos = QosChoice::Given(Box::new(qos));
        self
    }

    /// With the QoS that the profile `Library::Profile` has for writers of the topic.
    pub fn profile(mut self, name: &str) -> Self {
        self.qos = QosChoice::Profile(name.to_owned());
        self
    }

    /// With a listener for these statuses.
    pub fn listener(
        mut self,
        mask: StatusMask,
        listener: impl DataWriterListener<T> + 'static,
    ) -> Self {
        self.listener = Some((mask, Box::new(listener)));
        self
    }

    /// Creates the writer.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET when the topic is of another participant; OUT_OF_RESOURCES
    /// when its QoS is too long to be announced; ERROR when the others have the topic in
    /// another subgroup; INCONSISTENT_POLICY; UNSUPPORTED; BAD_PARAMETER for an
    /// unknown profile or property.
    pub fn create(self) -> Result<DataWriter<T>> {
        let (publisher, participant) = (&self.publisher.core, &self.publisher.participant);
        publisher.base.alive()?;
        self.topic.core.base.alive()?;
        if !Arc::ptr_eq(participant, &self.topic.participant) {
            let text = "the topic belongs to another participant";
            return Err(Error::PreconditionNotMet(text.to_owned()));
        }
        let topic = &self.topic.core;
        let mut qos = self.qos.resolve(
            participant,
            |profile| profile.datawriter_qos(&topic.name),
            || publisher.default_writer().clone(),
        )?;
        check_qos!(qos);
        representation::settle::<T>(&mut qos.representation)?;
        check_lease(&qos.liveliness, participant.config.failure_limit)?;
        let ring_size = participant.config.ring_of(&qos.property)?;
        let representation = match qos.representation.written() {
            DataRepresentationId::Xcdr1 => Representation::Xcdr1,
            DataRepresentationId::Xcdr2 => Representation::Xcdr2,
            other @ DataRepresentationId::Xml => {
                return Err(Error::Unsupported(format!("{other} is not written")));
            }
        };
        let what = format!("the writer of topic {}", topic.name);
        let (base, number) = participant.new_base(EntityKind::Writer, what);
        let settings = WriterSettings {
            number,
            ring: match qos.reliability.kind {
                ReliabilityKind::Reliable => DeliveryClass::Ordered,
                ReliabilityKind::BestEffort => DeliveryClass::Unordered,
            },
            ring_size,
            representation,
            encapsulation: T::encapsulation(representation),
            max_blocking_time: qos.reliability.max_blocking_time,
        };
        let core = Arc::new(WriterCore::new(
            base,
            topic.clone(),
            publisher,
            participant,
            settings,
            qos,
        ));
        if let Some((mask, listener)) = self.listener {
            core.base.hears(mask);
            core.listener.set(mask, Some(Typed::erase(listener)));
        }
        participant
            .local_endpoints
            .add(number, LocalEndpoint::Writer(core.clone()))?;
        // Or the publisher is deleted by now.
        let added = publisher.add(core.clone());
        added.inspect_err(|_| core.delete())?;
        Ok(DataWriter::new(core, participant.clone()))
    }
}
