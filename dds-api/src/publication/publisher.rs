//! Publishers (DDS 1.4 §2.2.2.4.1).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use spindle_dds_qos::{DataWriterQos, Duration, PublisherQos, TopicQos};

use super::core::{WriterCore, WriterSide};
use super::{DataWriter, DataWriterBuilder};
use crate::endpoint::{FactoryCore, factory_builder, factory_operations};
use crate::error::{Error, Result};
use crate::listener::PublisherListener;
use crate::participant::ParticipantCore;
use crate::time::Deadline;
use crate::topic::Topic;

pub(crate) type PublisherCore = FactoryCore<WriterSide>;

/// Makes writers, and holds the QoS that they share.
#[derive(Clone)]
pub struct Publisher {
    pub(crate) core: Arc<PublisherCore>,
    pub(crate) participant: Arc<ParticipantCore>,
}

factory_operations!(
    Publisher,
    PublisherQos,
    PublisherListener,
    "Changes its QoS."
);

impl Publisher {
    /// Starts a writer of a topic.
    pub fn writer<'a, T: 'static>(&'a self, topic: &'a Topic<T>) -> DataWriterBuilder<'a, T> {
        DataWriterBuilder::new(self, topic)
    }

    /// The QoS of writers that are created without one: the default that was set; else
    /// what the participant's profile has for writers of a topic that none of its filters
    /// names; else the standard's.
    pub fn default_datawriter_qos(&self) -> DataWriterQos {
        self.core.endpoint_qos(&self.participant)
    }

    /// Sets the QoS of writers that are created without one. It takes precedence over the
    /// participant's profile.
    ///
    /// # Errors
    /// INCONSISTENT_POLICY, UNSUPPORTED.
    pub fn set_default_datawriter_qos(&self, qos: DataWriterQos) -> Result<()> {
        self.core.set_default_endpoint_qos(qos)
    }

    /// Undoes [`set_default_datawriter_qos`](Self::set_default_datawriter_qos).
    ///
    /// # Errors
    /// ALREADY_DELETED in a child of `fork`.
    pub fn reset_default_datawriter_qos(&self) -> Result<()> {
        self.core.reset_default_endpoint_qos()
    }

    /// Copies the policies that a topic shares with writers.
    pub fn copy_from_topic_qos(&self, writer: &mut DataWriterQos, topic: &TopicQos) {
        writer.copy_from_topic_qos(topic);
    }

    /// A writer of the topic of this name, if it is of type `T`.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn lookup_datawriter<T: 'static>(&self, topic: &str) -> Result<Option<DataWriter<T>>> {
        let found = self.core.lookup::<T>(topic)?;
        Ok(found.map(|core| DataWriter::new(core, self.participant.clone())))
    }

    /// Deletes a writer: its readers lose it, and the instances that it had registered are
    /// unregistered, or disposed of if `autodispose_unregistered_instances` says so: if it is
    /// RELIABLE, at the same position of the order everywhere; if it is BEST_EFFORT, after its last
    /// sample, as its samples have no place in the order. Waits shortly for room to announce this;
    /// where samples wait in the history of a RELIABLE writer, it first waits until they are sent: at
    /// most 1 s, or with KEEP_ALL at most max_blocking_time, if that is between 1 s and 30 s.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET when it has loans that are not published, or belongs to
    /// another publisher; ALREADY_DELETED.
    pub fn delete_datawriter<T>(&self, writer: &DataWriter<T>) -> Result<()> {
        self.core.delete_endpoint(&writer.core)
    }

    /// Deletes all writers, or, if one cannot be deleted, none.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET when a writer has loans that are not published;
    /// ALREADY_DELETED.
    pub fn delete_contained_entities(&self) -> Result<()> {
        self.core.delete_endpoints()
    }

    /// Says that several writes follow, until [`resume_publications`](Self::resume_publications).
    /// The standard lets a service use this hint or not: samples are sent as they are written,
    /// because those that come while others are sent go together anyway.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn suspend_publications(&self) -> Result<()> {
        self.core.base.ready()?;
        self.core.suspensions.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Ends what [`suspend_publications`](Self::suspend_publications) began.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET without a call of that before; NOT_ENABLED, ALREADY_DELETED.
    pub fn resume_publications(&self) -> Result<()> {
        self.core.base.ready()?;
        let order = Ordering::Relaxed;
        let resume = |count: u32| count.checked_sub(1);
        let resumed = self.core.suspensions.fetch_update(order, order, resume);
        let not_suspended = |_| {
            let text = "publications are not suspended; call suspend_publications first";
            Error::PreconditionNotMet(text.to_owned())
        };
        resumed.map(drop).map_err(not_suspended)
    }

    /// Blocks until the matched RELIABLE readers have accepted what all its RELIABLE writers have written
    /// before the call (§2.2.2.4.1.12): see
    /// [`DataWriter::wait_for_acknowledgments`](super::DataWriter::wait_for_acknowledgments).
    ///
    /// # Errors
    /// TIMEOUT, NOT_ENABLED, ALREADY_DELETED; ERROR when the group failed.
    pub fn wait_for_acknowledgments(&self, timeout: impl Into<Duration>) -> Result<()> {
        self.core.base.ready()?;
        let deadline = Deadline::after(timeout.into());
        let writers = self.core.endpoints().clone();
        WriterCore::wait_for_all(&writers, deadline)
    }
}

factory_builder!(
    PublisherBuilder,
    Publisher,
    PublisherQos,
    PublisherListener,
    "With the QoS that the profile `Library::Profile` has for publishers."
);
