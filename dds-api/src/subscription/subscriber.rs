//! Subscribers (DDS 1.4 §2.2.2.5.2).

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spindle_dds_idl_runtime::TopicType;
use spindle_dds_qos::{DataReaderQos, SubscriberQos, TopicQos};

use super::core::ReaderCore;
use super::{AnyDataReader, DataReader, DataReaderBuilder};
use crate::choice::{QosChoice, check_qos, default_qos};
use crate::condition::StateMasks;
use crate::entity::{EntityBase, entity_operations};
use crate::error::{Error, Result};
use crate::handle::{EntityKind, InstanceHandle};
use crate::listener::{ListenerSlot, SubscriberListener};
use crate::participant::{DomainParticipant, ParticipantCore};
use crate::status::StatusMask;
use crate::topic::Topic;

pub(crate) struct SubscriberCore {
    pub(crate) base: EntityBase,
    qos: Mutex<SubscriberQos>,
    /// `None`: none was set.
    default_reader: Mutex<Option<DataReaderQos>>,
    pub(crate) listener: Arc<ListenerSlot<dyn SubscriberListener>>,
    readers: Mutex<Vec<Arc<ReaderCore>>>,
}

impl fmt::Debug for SubscriberCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriberCore")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

impl SubscriberCore {
    pub(crate) fn qos(&self) -> MutexGuard<'_, SubscriberQos> {
        self.qos.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn default_reader(&self) -> MutexGuard<'_, Option<DataReaderQos>> {
        self.default_reader
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn readers(&self) -> MutexGuard<'_, Vec<Arc<ReaderCore>>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn contains(&self, handle: InstanceHandle) -> bool {
        self.base.handle() == handle
            || self
                .readers()
                .iter()
                .any(|reader| reader.base.handle() == handle)
    }

    /// Adds a reader, unless the subscriber is deleted by now.
    pub(crate) fn add(&self, reader: Arc<ReaderCore>) -> Result<()> {
        let mut readers = self.readers();
        self.base.alive()?;
        readers.push(reader);
        Ok(())
    }

    /// Deletes it if it has no readers.
    pub(crate) fn delete_empty(&self) -> Result<()> {
        let readers = self.readers();
        if !readers.is_empty() {
            return Err(Error::PreconditionNotMet(format!(
                "{} has {} readers; delete them first",
                self.base.what(),
                readers.len()
            )));
        }
        self.base.delete();
        Ok(())
    }

    pub(crate) fn delete_all(&self) {
        // First: nothing is added from now on.
        self.base.delete();
        let readers = std::mem::take(&mut *self.readers());
        readers.iter().for_each(|reader| reader.delete());
    }

    /// Deletes all readers, or, if one cannot be deleted, none.
    fn delete_readers(&self) -> Result<()> {
        let mut readers = self.readers();
        readers.iter().try_for_each(|reader| reader.deletable())?;
        let deleted = std::mem::take(&mut *readers);
        // Writers are told, of other participants too: without this one's lock.
        drop(readers);
        deleted.iter().for_each(|reader| reader.delete());
        Ok(())
    }
}

/// Makes readers, and holds the QoS that they share.
#[derive(Clone)]
pub struct Subscriber {
    pub(crate) core: Arc<SubscriberCore>,
    pub(crate) participant: Arc<ParticipantCore>,
}

entity_operations!(Subscriber);

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}

impl Subscriber {
    /// Starts a reader of a topic.
    pub fn reader<'a, T: TopicType>(&'a self, topic: &'a Topic<T>) -> DataReaderBuilder<'a, T> {
        DataReaderBuilder::new(self, topic)
    }

    /// The participant that it belongs to.
    pub fn participant(&self) -> DomainParticipant {
        DomainParticipant::of(self.participant.clone())
    }

    /// Its QoS.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn qos(&self) -> Result<SubscriberQos> {
        self.core.base.alive()?;
        Ok(self.core.qos().clone())
    }

    /// Changes its QoS; readers keep the presentation they were created with.
    ///
    /// # Errors
    /// IMMUTABLE_POLICY once it is enabled, INCONSISTENT_POLICY, UNSUPPORTED.
    pub fn set_qos(&self, qos: SubscriberQos) -> Result<()> {
        self.core.base.alive()?;
        check_qos!(qos);
        let mut current = self.core.qos();
        if self.core.base.is_enabled() || !self.core.readers().is_empty() {
            current.check_mutable(&qos)?;
        }
        *current = qos;
        Ok(())
    }

    /// QoS of readers about which nothing is said: the default that was set; else
    /// what the participant's profile has for readers of a topic that no filter of it
    /// names; else the standard's.
    pub fn default_datareader_qos(&self) -> DataReaderQos {
        let set = self.core.default_reader().clone();
        let profiles = self.participant.profiles();
        default_qos(profiles, |profile| profile.datareader_qos(""), set)
    }

    /// Sets the QoS of readers about which nothing is said. From then on it comes before
    /// the participant's profile.
    ///
    /// # Errors
    /// INCONSISTENT_POLICY, UNSUPPORTED.
    pub fn set_default_datareader_qos(&self, qos: DataReaderQos) -> Result<()> {
        check_qos!(qos);
        *self.core.default_reader() = Some(qos);
        Ok(())
    }

    /// Takes over the policies that a topic shares with readers.
    pub fn copy_from_topic_qos(&self, reader: &mut DataReaderQos, topic: &TopicQos) {
        reader.copy_from_topic_qos(topic);
    }

    /// Puts a listener in, with the statuses that it is for.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn set_listener(
        &self,
        mask: StatusMask,
        listener: Option<Box<dyn SubscriberListener>>,
    ) -> Result<()> {
        self.core.base.alive()?;
        self.core.base.hears(mask);
        self.core.listener.set(mask, listener);
        Ok(())
    }

    /// A reader of the topic of this name, if it is of type `T`.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn lookup_datareader<T: TopicType>(&self, topic: &str) -> Result<Option<DataReader<T>>> {
        self.core.base.alive()?;
        let readers = self.core.readers();
        let found = readers
            .iter()
            .find(|reader| reader.topic.name == topic && reader.topic.is_of::<T>());
        Ok(found.map(|core| DataReader::new(core.clone(), self.participant.clone())))
    }

    /// The readers that have samples in these states.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn datareaders(&self, masks: StateMasks) -> Result<Vec<AnyDataReader>> {
        self.core.base.ready()?;
        let readers = self.core.readers();
        let having = readers.iter().filter(|reader| reader.has_samples(&masks));
        Ok(having
            .map(|core| AnyDataReader {
                core: core.clone(),
                participant: self.participant.clone(),
            })
            .collect())
    }

    /// Has `on_data_available` called for all readers with new data; to be used
    /// from `on_data_on_readers`.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn notify_datareaders(&self) -> Result<()> {
        self.core.base.ready()?;
        for reader in self.core.readers().iter() {
            let status = StatusMask::DATA_AVAILABLE;
            if reader.status_flags().changes().contains(status) {
                reader.notified.store(true, Ordering::Release);
                reader.status_flags().raise(status);
            }
        }
        Ok(())
    }

    /// Deletes a reader.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET when it has samples out, when a thread waits for one
    /// of its conditions, or when it is of another subscriber.
    pub fn delete_datareader<T>(&self, reader: &DataReader<T>) -> Result<()> {
        self.core.base.alive()?;
        reader.core.base.alive()?;
        let mut readers = self.core.readers();
        let Some(at) = readers
            .iter()
            .position(|core| Arc::ptr_eq(core, &reader.core))
        else {
            let text = "the reader belongs to another subscriber";
            return Err(Error::PreconditionNotMet(text.to_owned()));
        };
        reader.core.deletable()?;
        readers.remove(at);
        // Writers are told, of other participants too: without this one's lock.
        drop(readers);
        reader.core.delete();
        Ok(())
    }

    /// Deletes all readers, or, if one cannot be deleted, none.
    ///
    /// # Errors
    /// ALREADY_DELETED; PRECONDITION_NOT_MET when a reader has samples out, or a
    /// thread waits for one of its conditions.
    pub fn delete_contained_entities(&self) -> Result<()> {
        self.core.base.alive()?;
        self.core.delete_readers()
    }
}

/// Makes a [`Subscriber`].
#[must_use = "a builder does nothing until `create`"]
pub struct SubscriberBuilder<'a> {
    participant: &'a DomainParticipant,
    qos: QosChoice<SubscriberQos>,
    listener: Option<(StatusMask, Box<dyn SubscriberListener>)>,
}

impl fmt::Debug for SubscriberBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriberBuilder")
            .field("qos", &self.qos)
            .finish_non_exhaustive()
    }
}

impl<'a> SubscriberBuilder<'a> {
    pub(crate) fn new(participant: &'a DomainParticipant) -> Self {
        Self {
            participant,
            qos: QosChoice::Default,
            listener: None,
        }
    }

    /// With this QoS.
    pub fn qos(mut self, qos: SubscriberQos) -> Self {
        self.qos = QosChoice::Given(Box::new(qos));
        self
    }

    /// With the QoS that the profile `Library::Profile` has for subscribers.
    pub fn profile(mut self, name: &str) -> Self {
        self.qos = QosChoice::Profile(name.to_owned());
        self
    }

    /// With a listener for these statuses.
    pub fn listener(
        mut self,
        mask: StatusMask,
        listener: impl SubscriberListener + 'static,
    ) -> Self {
        self.listener = Some((mask, Box::new(listener)));
        self
    }

    /// Creates the subscriber.
    ///
    /// # Errors
    /// INCONSISTENT_POLICY, UNSUPPORTED, BAD_PARAMETER for an unknown profile.
    pub fn create(self) -> Result<Subscriber> {
        let participant = &self.participant.core;
        participant.base.alive()?;
        let qos = self.qos.resolve(
            participant,
            |profile| profile.subscriber_qos(),
            || participant.defaults().subscriber.clone(),
        )?;
        check_qos!(qos);
        let (base, _) = participant.new_base(EntityKind::Subscriber, "the subscriber".to_owned());
        let core = Arc::new(SubscriberCore {
            base,
            qos: Mutex::new(qos),
            default_reader: Mutex::default(),
            listener: Arc::default(),
            readers: Mutex::default(),
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
            entities.subscribers.push(core.clone());
        })?;
        Ok(Subscriber {
            core,
            participant: participant.clone(),
        })
    }
}
