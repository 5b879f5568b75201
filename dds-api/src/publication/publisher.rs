//! Publishers (DDS 1.4 §2.2.2.4.1).

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spindle_dds_idl_runtime::TopicType;
use spindle_dds_qos::{DataWriterQos, Duration, PublisherQos, TopicQos};

use super::core::WriterCore;
use super::{DataWriter, DataWriterBuilder};
use crate::choice::{QosChoice, check_qos, default_qos};
use crate::entity::{EntityBase, entity_operations};
use crate::error::{Error, Result};
use crate::handle::{EntityKind, InstanceHandle};
use crate::listener::{ListenerSlot, PublisherListener};
use crate::participant::{DomainParticipant, ParticipantCore};
use crate::status::StatusMask;
use crate::topic::Topic;

pub(crate) struct PublisherCore {
    pub(crate) base: EntityBase,
    qos: Mutex<PublisherQos>,
    /// `None`: none was set.
    default_writer: Mutex<Option<DataWriterQos>>,
    pub(crate) listener: Arc<ListenerSlot<dyn PublisherListener>>,
    writers: Mutex<Vec<Arc<WriterCore>>>,
}

impl fmt::Debug for PublisherCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublisherCore")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

impl PublisherCore {
    pub(crate) fn qos(&self) -> MutexGuard<'_, PublisherQos> {
        self.qos.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn default_writer(&self) -> MutexGuard<'_, Option<DataWriterQos>> {
        self.default_writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn writers(&self) -> MutexGuard<'_, Vec<Arc<WriterCore>>> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn contains(&self, handle: InstanceHandle) -> bool {
        self.base.handle() == handle
            || self
                .writers()
                .iter()
                .any(|writer| writer.base.handle() == handle)
    }

    /// Adds a writer, unless the publisher is deleted by now.
    pub(crate) fn add(&self, writer: Arc<WriterCore>) -> Result<()> {
        let mut writers = self.writers();
        self.base.alive()?;
        writers.push(writer);
        Ok(())
    }

    /// Deletes it if it has no writers.
    pub(crate) fn delete_empty(&self) -> Result<()> {
        let writers = self.writers();
        if !writers.is_empty() {
            return Err(Error::PreconditionNotMet(format!(
                "{} has {} writers; delete them first",
                self.base.what(),
                writers.len()
            )));
        }
        self.base.delete();
        Ok(())
    }

    pub(crate) fn delete_all(&self) {
        // First: nothing is added from now on.
        self.base.delete();
        let writers = std::mem::take(&mut *self.writers());
        writers.iter().for_each(|writer| writer.delete());
    }

    /// Deletes all writers, or, if one cannot be deleted, none.
    fn delete_writers(&self) -> Result<()> {
        let mut writers = self.writers();
        writers.iter().try_for_each(|writer| writer.deletable())?;
        let deleted = std::mem::take(&mut *writers);
        // Telling the readers may take a while.
        drop(writers);
        deleted.iter().for_each(|writer| writer.delete());
        Ok(())
    }
}

/// Makes writers, and holds the QoS that they share.
#[derive(Clone)]
pub struct Publisher {
    pub(crate) core: Arc<PublisherCore>,
    pub(crate) participant: Arc<ParticipantCore>,
}

entity_operations!(Publisher);

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}

impl Publisher {
    /// Starts a writer of a topic.
    pub fn writer<'a, T: TopicType>(&'a self, topic: &'a Topic<T>) -> DataWriterBuilder<'a, T> {
        DataWriterBuilder::new(self, topic)
    }

    /// The participant that it belongs to.
    pub fn participant(&self) -> DomainParticipant {
        DomainParticipant::of(self.participant.clone())
    }

    /// Its QoS.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn qos(&self) -> Result<PublisherQos> {
        self.core.base.alive()?;
        Ok(self.core.qos().clone())
    }

    /// Changes its QoS.
    ///
    /// # Errors
    /// IMMUTABLE_POLICY once it is enabled, INCONSISTENT_POLICY, UNSUPPORTED.
    pub fn set_qos(&self, qos: PublisherQos) -> Result<()> {
        self.core.base.alive()?;
        check_qos!(qos);
        let mut current = self.core.qos();
        if self.core.base.is_enabled() {
            current.check_mutable(&qos)?;
        }
        *current = qos;
        Ok(())
    }

    /// QoS of writers about which nothing is said: the default that was set; else
    /// what the participant's profile has for writers of a topic that no filter of it
    /// names; else the standard's.
    pub fn default_datawriter_qos(&self) -> DataWriterQos {
        let set = self.core.default_writer().clone();
        let profiles = self.participant.profiles();
        default_qos(profiles, |profile| profile.datawriter_qos(""), set)
    }

    /// Sets the QoS of writers about which nothing is said. From then on it comes before
    /// the participant's profile.
    ///
    /// # Errors
    /// INCONSISTENT_POLICY, UNSUPPORTED.
    pub fn set_default_datawriter_qos(&self, qos: DataWriterQos) -> Result<()> {
        check_qos!(qos);
        *self.core.default_writer() = Some(qos);
        Ok(())
    }

    /// Takes over the policies that a topic shares with writers.
    pub fn copy_from_topic_qos(&self, writer: &mut DataWriterQos, topic: &TopicQos) {
        writer.copy_from_topic_qos(topic);
    }

    /// Puts a listener in, with the statuses that it is for.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn set_listener(
        &self,
        mask: StatusMask,
        listener: Option<Box<dyn PublisherListener>>,
    ) -> Result<()> {
        self.core.base.alive()?;
        self.core.base.hears(mask);
        self.core.listener.set(mask, listener);
        Ok(())
    }

    /// A writer of the topic of this name, if it is of type `T`.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn lookup_datawriter<T: TopicType>(&self, topic: &str) -> Result<Option<DataWriter<T>>> {
        self.core.base.alive()?;
        let writers = self.core.writers();
        let found = writers
            .iter()
            .find(|writer| writer.topic.name == topic && writer.topic.is_of::<T>());
        Ok(found.map(|core| DataWriter::new(core.clone(), self.participant.clone())))
    }

    /// Deletes a writer: its readers lose it, and what it had registered is
    /// unregistered, or disposed of if `autodispose_unregistered_instances` says so,
    /// at the same place of the order everywhere. Waits shortly for room to say so.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET when it has loans that are not published, or is of
    /// another publisher.
    pub fn delete_datawriter<T>(&self, writer: &DataWriter<T>) -> Result<()> {
        self.core.base.alive()?;
        writer.core.base.alive()?;
        let mut writers = self.core.writers();
        let Some(at) = writers
            .iter()
            .position(|core| Arc::ptr_eq(core, &writer.core))
        else {
            let text = "the writer belongs to another publisher";
            return Err(Error::PreconditionNotMet(text.to_owned()));
        };
        writer.core.deletable()?;
        writers.remove(at);
        // Telling the readers may take a while.
        drop(writers);
        writer.core.delete();
        Ok(())
    }

    /// Deletes all writers, or, if one cannot be deleted, none.
    ///
    /// # Errors
    /// ALREADY_DELETED; PRECONDITION_NOT_MET when a writer has loans that are not
    /// published.
    pub fn delete_contained_entities(&self) -> Result<()> {
        self.core.base.alive()?;
        self.core.delete_writers()
    }

    /// Blocks until every matched reader's participant has received what the
    /// RELIABLE writers have written.
    ///
    /// # Errors
    /// TIMEOUT, NOT_ENABLED, ALREADY_DELETED; ERROR when the group failed.
    pub fn wait_for_acknowledgments(&self, timeout: impl Into<Duration>) -> Result<()> {
        self.core.base.ready()?;
        let deadline = crate::time::Deadline::after(timeout.into());
        let writers = self.core.writers().clone();
        writers
            .iter()
            .try_for_each(|writer| writer.wait_for_acknowledgments(deadline))
    }
}

/// Makes a [`Publisher`].
#[must_use = "a builder does nothing until `create`"]
pub struct PublisherBuilder<'a> {
    participant: &'a DomainParticipant,
    qos: QosChoice<PublisherQos>,
    listener: Option<(StatusMask, Box<dyn PublisherListener>)>,
}

impl fmt::Debug for PublisherBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublisherBuilder")
            .field("qos", &self.qos)
            .finish_non_exhaustive()
    }
}

impl<'a> PublisherBuilder<'a> {
    pub(crate) fn new(participant: &'a DomainParticipant) -> Self {
        Self {
            participant,
            qos: QosChoice::Default,
            listener: None,
        }
    }

    /// With this QoS.
    pub fn qos(mut self, qos: PublisherQos) -> Self {
        self.qos = QosChoice::Given(Box::new(qos));
        self
    }

    /// With the QoS that the profile `Library::Profile` has for publishers.
    pub fn profile(mut self, name: &str) -> Self {
        self.qos = QosChoice::Profile(name.to_owned());
        self
    }

    /// With a listener for these statuses.
    pub fn listener(
        mut self,
        mask: StatusMask,
        listener: impl PublisherListener + 'static,
    ) -> Self {
        self.listener = Some((mask, Box::new(listener)));
        self
    }

    /// Creates the publisher.
    ///
    /// # Errors
    /// INCONSISTENT_POLICY, UNSUPPORTED, BAD_PARAMETER for an unknown profile.
    pub fn create(self) -> Result<Publisher> {
        let participant = &self.participant.core;
        participant.base.alive()?;
        let qos = self.qos.resolve(
            participant,
            |profile| profile.publisher_qos(),
            || participant.defaults().publisher.clone(),
        )?;
        check_qos!(qos);
        let (base, _) = participant.new_base(EntityKind::Publisher, "the publisher".to_owned());
        let core = Arc::new(PublisherCore {
            base,
            qos: Mutex::new(qos),
            default_writer: Mutex::default(),
            listener: Arc::default(),
            writers: Mutex::default(),
        });
        if let Some((mask, listener)) = self.listener {
            core.base.hears(mask);
            core.listener.set(mask, Some(listener));
        }
        let autoenables = participant.autoenables();
        participant.add(|entities| {
            if participant.base.is_enabled() && autoenables {
                core.base.set_enabled();
            }
            entities.publishers.push(core.clone());
        })?;
        Ok(Publisher {
            core,
            participant: participant.clone(),
        })
    }
}
