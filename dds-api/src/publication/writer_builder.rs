//! Creation of writers.

use std::fmt;

use spindle_dds_idl_runtime::TopicType;
use spindle_dds_qos::DataWriterQos;

use super::core::{WriterCore, WriterSide};
use super::erased::TypedListener;
use super::{DataWriter, Publisher};
use crate::choice::{ListenerChoice, QosChoice, builder_setters};
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
    listener: ListenerChoice<dyn ErasedListener<WriterSide>>,
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

    builder_setters!(
        DataWriterQos,
        DataWriterListener<T>,
        "With the QoS that the profile `Library::Profile` has for writers of the topic.",
        TypedListener::erase
    );

    /// Creates the writer.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET when the topic is of another participant; OUT_OF_RESOURCES
    /// when its QoS is too long to be announced; ERROR when other participants have the
    /// topic in another subgroup; INCONSISTENT_POLICY; UNSUPPORTED; BAD_PARAMETER for an
    /// unknown profile or property.
    pub fn create(self) -> Result<DataWriter<T>> {
        let Publisher { core, participant } = self.publisher;
        let side = |_: &_, qos: &_| WriterSide::new::<T>(participant, qos);
        let core =
            WriterCore::create(core, participant, self.topic, self.qos, self.listener, side)?;
        Ok(DataWriter::new(core, participant.clone()))
    }
}
