//! Subscribers (DDS 1.4 §2.2.2.5.2).

use std::sync::Arc;

use spindle_dds_qos::{DataReaderQos, SubscriberQos, TopicQos};

use super::core::ReaderSide;
use super::{AnyDataReader, DataReader, DataReaderBuilder};
use crate::condition::StateMasks;
use crate::endpoint::{FactoryCore, factory_builder, factory_operations};
use crate::error::Result;
use crate::listener::SubscriberListener;
use crate::participant::ParticipantCore;
use crate::status::StatusMask;
use crate::topic::Topic;

pub(crate) type SubscriberCore = FactoryCore<ReaderSide>;

/// Makes readers, and holds the QoS that they share.
#[derive(Clone)]
pub struct Subscriber {
    pub(crate) core: Arc<SubscriberCore>,
    pub(crate) participant: Arc<ParticipantCore>,
}

factory_operations!(
    Subscriber,
    SubscriberQos,
    SubscriberListener,
    "Changes its QoS."
);

impl Subscriber {
    /// Starts a reader of a topic.
    pub fn reader<'a, T: 'static>(&'a self, topic: &'a Topic<T>) -> DataReaderBuilder<'a, T> {
        DataReaderBuilder::new(self, topic)
    }

    /// The QoS of readers that are created without one: the default that was set; else
    /// what the participant's profile has for readers of a topic that none of its filters
    /// names; else the standard's.
    pub fn default_datareader_qos(&self) -> DataReaderQos {
        self.core.endpoint_qos(&self.participant)
    }

    /// Sets the QoS of readers that are created without one. It takes precedence over the
    /// participant's profile.
    ///
    /// # Errors
    /// INCONSISTENT_POLICY, UNSUPPORTED.
    pub fn set_default_datareader_qos(&self, qos: DataReaderQos) -> Result<()> {
        self.core.set_default_endpoint_qos(qos)
    }

    /// Undoes [`set_default_datareader_qos`](Self::set_default_datareader_qos).
    ///
    /// # Errors
    /// ALREADY_DELETED in a child of `fork`.
    pub fn reset_default_datareader_qos(&self) -> Result<()> {
        self.core.reset_default_endpoint_qos()
    }

    /// Copies the policies that a topic shares with readers.
    pub fn copy_from_topic_qos(&self, reader: &mut DataReaderQos, topic: &TopicQos) {
        reader.copy_from_topic_qos(topic);
    }

    /// A reader of the topic of this name, if it is of type `T`.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn lookup_datareader<T: 'static>(&self, topic: &str) -> Result<Option<DataReader<T>>> {
        let found = self.core.lookup::<T>(topic)?;
        Ok(found.map(|core| DataReader::new(core, self.participant.clone())))
    }

    /// The readers that have samples in these states.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn datareaders(&self, masks: StateMasks) -> Result<Vec<AnyDataReader>> {
        self.core.base.ready()?;
        let readers = self.core.endpoints();
        let having = readers.iter().filter(|reader| reader.has_samples(&masks));
        Ok(having
            .map(|core| AnyDataReader {
                core: core.clone(),
                participant: self.participant.clone(),
            })
            .collect())
    }

    /// Calls `on_data_available` for all readers with new samples, on the dispatch thread; to be
    /// used in `on_data_on_readers`.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn notify_datareaders(&self) -> Result<()> {
        self.core.base.ready()?;
        for reader in self.core.endpoints().iter() {
            let status = StatusMask::DATA_AVAILABLE;
            if reader.status_flags().changes().contains(status) {
                reader.status_flags().call_for_data();
            }
        }
        Ok(())
    }

    /// Deletes a reader.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET while collections of its samples are not returned, while it has
    /// ReadConditions, while a thread waits for its StatusCondition, or when it belongs to another
    /// subscriber; ALREADY_DELETED.
    pub fn delete_datareader<T>(&self, reader: &DataReader<T>) -> Result<()> {
        self.core.delete_endpoint(&reader.core)
    }

    /// Deletes all readers with their conditions, or, if one cannot be deleted, none.
    ///
    /// # Errors
    /// ALREADY_DELETED; PRECONDITION_NOT_MET when a reader has samples out, or a
    /// thread waits for one of its conditions.
    pub fn delete_contained_entities(&self) -> Result<()> {
        self.core.delete_endpoints()
    }
}

factory_builder!(
    SubscriberBuilder,
    Subscriber,
    SubscriberQos,
    SubscriberListener,
    "With the QoS that the profile `Library::Profile` has for subscribers."
);
