//! Creation of writers.

use std::fmt;

use spindle_dds_qos::DataWriterQos;

use super::core::{WriterCore, WriterSide};
use super::erased::TypedListener;
use super::{DataWriter, Publisher};
use crate::choice::{ListenerChoice, QosChoice, builder_setters, shared_listener_setter};
use crate::endpoint::ErasedListener;
use crate::error::Result;
use crate::listener::DataWriterListener;
use crate::topic::Topic;

/// Makes a [`DataWriter`].
#[must_use = "a builder does nothing until `create`"]
pub struct DataWriterBuilder<'a, T> {
    publisher: &'a Publisher,
    topic: &'a Topic<T>,
    qos: QosChoice<DataWriterQos>,
    name: Option<String>,
    listener: ListenerChoice<dyn ErasedListener<WriterSide>>,
}

impl<T> fmt::Debug for DataWriterBuilder<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataWriterBuilder")
            .field("topic", &self.topic)
            .finish_non_exhaustive()
    }
}

impl<'a, T: 'static> DataWriterBuilder<'a, T> {
    pub(crate) fn new(publisher: &'a Publisher, topic: &'a Topic<T>) -> Self {
        Self {
            publisher,
            topic,
            qos: QosChoice::Default,
            name: None,
            listener: None,
        }
    }

    /// Names the writer (ENTITY_NAME), for people and for look-ups. Several may have one name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    pub(crate) fn with(mut self, qos: QosChoice<DataWriterQos>) -> Self {
        self.qos = qos;
        self
    }

    builder_setters!(
        DataWriterQos,
        DataWriterListener<T>,
        "With the QoS that the profile `Library::Profile` has for writers of the topic.",
        TypedListener::erase
    );

    shared_listener_setter!(DataWriterListener<T>, TypedListener::erase);

    /// Creates the writer.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET when the topic is of another participant; OUT_OF_RESOURCES
    /// when its QoS is too long to be announced; ERROR when other participants have the
    /// topic in another subgroup; INCONSISTENT_POLICY; UNSUPPORTED; BAD_PARAMETER for an
    /// unknown profile or property, or a name that is empty, longer than 256 bytes or has a NUL.
    pub fn create(self) -> Result<DataWriter<T>> {
        let Publisher { core, participant } = self.publisher;
        let sample_type = &self.topic.core.sample_type;
        let side = |_: &_, qos: &_| WriterSide::new(participant, sample_type, qos);
        let qos = (self.qos, self.name);
        let core = WriterCore::create(core, participant, self.topic, qos, self.listener, side)?;
        Ok(DataWriter::new(core, participant.clone()))
    }
}
