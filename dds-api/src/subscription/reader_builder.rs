//! Creation of readers.

use std::fmt;

use spindle_dds_qos::DataReaderQos;

use super::core::{ReaderCore, ReaderSide};
use super::erased::TypedListener;
use super::{DataReader, Subscriber};
use crate::choice::{ListenerChoice, QosChoice, builder_setters, shared_listener_setter};
use crate::endpoint::ErasedListener;
use crate::error::Result;
use crate::listener::DataReaderListener;
use crate::topic::Topic;

/// Makes a [`DataReader`].
#[must_use = "a builder does nothing until `create`"]
pub struct DataReaderBuilder<'a, T> {
    subscriber: &'a Subscriber,
    topic: &'a Topic<T>,
    qos: QosChoice<DataReaderQos>,
    name: Option<String>,
    listener: ListenerChoice<dyn ErasedListener<ReaderSide>>,
}

impl<T> fmt::Debug for DataReaderBuilder<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataReaderBuilder")
            .field("topic", &self.topic)
            .finish_non_exhaustive()
    }
}

impl<'a, T: 'static> DataReaderBuilder<'a, T> {
    pub(crate) fn new(subscriber: &'a Subscriber, topic: &'a Topic<T>) -> Self {
        Self {
            subscriber,
            topic,
            qos: QosChoice::Default,
            name: None,
            listener: None,
        }
    }

    /// Names the reader (ENTITY_NAME), for people and for look-ups. Several may have one name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    pub(crate) fn with(mut self, qos: QosChoice<DataReaderQos>) -> Self {
        self.qos = qos;
        self
    }

    builder_setters!(
        DataReaderQos,
        DataReaderListener<T>,
        "With the QoS that the profile `Library::Profile` has for readers of the topic.",
        TypedListener::erase
    );

    shared_listener_setter!(DataReaderListener<T>, TypedListener::erase);

    /// Creates the reader.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET when the topic is of another participant; OUT_OF_RESOURCES
    /// when its QoS is too long to be announced; ERROR when other participants have the
    /// topic in another subgroup; INCONSISTENT_POLICY; UNSUPPORTED; BAD_PARAMETER for an
    /// unknown profile or property, or a name that is empty, longer than 256 bytes or has a NUL.
    pub fn create(self) -> Result<DataReader<T>> {
        let Subscriber { core, participant } = self.subscriber;
        let sample_type = &self.topic.core.sample_type;
        let side = |base: &_, qos: &_| ReaderSide::new((participant, sample_type), core, base, qos);
        let qos = (self.qos, self.name);
        let core = ReaderCore::create(core, participant, self.topic, qos, self.listener, side)?;
        Ok(DataReader::new(core, participant.clone()))
    }
}
