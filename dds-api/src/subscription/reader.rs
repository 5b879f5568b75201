//! Readers (DDS 1.4 §2.2.2.5.3).

use std::marker::PhantomData;
use std::sync::Arc;

use spindle_dds_idl_runtime::TopicType;
use spindle_dds_qos::DataReaderQos;

use super::core::ReaderCore;
use super::erased::TypedListener;
use super::{SampleStream, Subscriber};
use crate::builtin::PublicationBuiltinTopicData;
use crate::condition::{ReadCondition, StateMasks};
use crate::endpoint::endpoint_operations;
use crate::error::{Error, Result};
use crate::handle::InstanceHandle;
use crate::keys::{key_of, name_of};
use crate::listener::DataReaderListener;
use crate::participant::ParticipantCore;
use crate::status::{
    LivelinessChangedStatus, RequestedDeadlineMissedStatus, RequestedIncompatibleQosStatus,
    SampleLostStatus, SampleRejectedStatus, SubscriptionMatchedStatus,
};

/// Reads samples of a topic.
///
/// ```
/// use spindle_dds::{DomainParticipant, Duration, StateMasks, WaitSet};
/// # use spindle_dds_test_types::flight::State;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().join("domains").display().to_string();
/// # let participant = DomainParticipant::builder(0);
/// # let participant = participant.property("spindle.directory", &directory).create()?;
/// # let topic = participant.topic::<State>("State").create()?;
/// # let writer = participant.publisher().create()?.writer(&topic).create()?;
///
/// let subscriber = participant.subscriber().create()?;
/// let reader = subscriber.reader(&topic).create()?;
/// # let available = reader.read_condition(StateMasks::ANY)?;
/// # let wait_set = WaitSet::new();
/// # wait_set.attach(&available);
/// # while writer.matched_subscriptions()?.is_empty() {
/// #     std::thread::yield_now();
/// # }
/// # writer.write(&State { icao: 7, number: 1, ..State::default() })?;
/// # wait_set.wait(Duration::from_secs(60))?;
/// for sample in &reader.take(100)? {
///     if sample.info().valid_data {
///         let state = sample.view()?;
///         assert_eq!((state.icao(), state.number()), (7, 1));
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct DataReader<T> {
    pub(crate) core: Arc<ReaderCore>,
    pub(crate) participant: Arc<ParticipantCore>,
    marker: PhantomData<fn() -> T>,
}

/// A reader of any type, as listeners of subscribers and participants see it.
#[derive(Clone)]
pub struct AnyDataReader {
    pub(crate) core: Arc<ReaderCore>,
    pub(crate) participant: Arc<ParticipantCore>,
}

endpoint_operations!(
    DataReader,
    AnyDataReader,
    ReaderCore,
    DataReaderQos,
    DataReaderListener,
    TypedListener::erase
);

impl<T> DataReader<T> {
    /// Its subscriber.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn subscriber(&self) -> Result<Subscriber> {
        Ok(Subscriber {
            core: self.core.factory()?,
            participant: self.participant.clone(),
        })
    }

    /// A condition that holds while the reader has samples in these states
    /// (`create_readcondition`). It lives as long as a clone of it, or until it is deleted; while it
    /// does, the reader cannot be deleted alone.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn read_condition(&self, masks: StateMasks) -> Result<ReadCondition> {
        self.core.base.alive()?;
        Ok(ReadCondition::new(self.core.clone(), masks))
    }

    /// Deletes a condition of this reader (`delete_readcondition`), whatever clones of it there
    /// are: it holds no more.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET when it is of another reader, or deleted already; ALREADY_DELETED.
    pub fn delete_read_condition(&self, condition: &ReadCondition) -> Result<()> {
        self.core.base.alive()?;
        if !condition.is_of(&self.core) {
            let text = "the condition belongs to another reader, or was deleted";
            return Err(Error::PreconditionNotMet(text.to_owned()));
        }
        condition.delete();
        Ok(())
    }

    /// Deletes all conditions of this reader.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn delete_contained_entities(&self) -> Result<()> {
        self.core.base.alive()?;
        self.core.side.conditions.delete_all();
        Ok(())
    }

    /// Counts the DEADLINEs that writers have missed (`get_requested_deadline_missed_status`). A
    /// finite DEADLINE is not supported: none is missed.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn requested_deadline_missed_status(&self) -> Result<RequestedDeadlineMissedStatus> {
        self.core.base.alive()?;
        Ok(RequestedDeadlineMissedStatus::default())
    }

    /// Counts the matched writers (`get_subscription_matched_status`).
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn subscription_matched_status(&self) -> Result<SubscriptionMatchedStatus> {
        self.core.base.alive()?;
        Ok(self.core.matched_status())
    }

    /// Counts the matched writers by liveliness (`get_liveliness_changed_status`).
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn liveliness_changed_status(&self) -> Result<LivelinessChangedStatus> {
        self.core.base.alive()?;
        Ok(self.core.liveliness_status())
    }

    /// Counts the writers that offer less than the reader requests
    /// (`get_requested_incompatible_qos_status`).
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn requested_incompatible_qos_status(&self) -> Result<RequestedIncompatibleQosStatus> {
        self.core.base.alive()?;
        Ok(self.core.incompatible_status())
    }

    /// How many samples the reader lost: those that a BEST_EFFORT writer dropped for want of
    /// room, which show as gaps between its samples, and those whose bytes were invalid.
    /// Samples before the first one that the reader gets of a writer do not count.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn sample_lost_status(&self) -> Result<SampleLostStatus> {
        self.core.base.alive()?;
        Ok(self.core.lost_status())
    }

    /// Counts the samples that RESOURCE_LIMITS rejected; those of a RELIABLE reader come when a take
    /// has made room (DDS 1.4 §2.2.4.1).
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn sample_rejected_status(&self) -> Result<SampleRejectedStatus> {
        self.core.base.alive()?;
        Ok(self.core.rejected_status())
    }

    /// The handles of the matched writers.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn matched_publications(&self) -> Result<Vec<InstanceHandle>> {
        self.core.base.ready()?;
        Ok(self
            .core
            .side
            .port
            .with_statuses(|statuses| statuses.writers.clone()))
    }

    /// The announced data of a matched writer (`get_matched_publication_data`).
    ///
    /// # Errors
    /// BAD_PARAMETER when the writer is not matched, or when the domain has lost it and the
    /// reader has not reached that position of the order yet; NOT_ENABLED, ALREADY_DELETED.
    pub fn matched_publication_data(
        &self,
        writer: InstanceHandle,
    ) -> Result<PublicationBuiltinTopicData> {
        self.core.base.ready()?;
        self.core.writer_data(writer)
    }
}

impl<T: TopicType> DataReader<T> {
    /// The samples as a stream, for any executor: each item is the result of a
    /// [`take`](Self::take) of at most `max` samples.
    pub fn stream(&self, max: usize) -> SampleStream<T> {
        SampleStream::new(self.clone(), max)
    }

    /// The handle of the instance of `key`, of which only the key members count; `None` if
    /// the reader does not know the instance.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn lookup_instance(&self, key: &T) -> Result<Option<InstanceHandle>> {
        self.core.base.ready()?;
        let port = &self.core.side.port;
        let known = name_of(port.keys(), key).filter(|name| port.knows(*name));
        Ok(known.map(InstanceHandle::of_instance))
    }

    /// The key of an instance that the reader knows, whatever its state, as a value whose other
    /// members have their defaults (`get_key_value`). A reader knows an instance while it has a
    /// writer, or samples of it that were not taken; see also [`Sample::key`](crate::Sample::key).
    ///
    /// # Errors
    /// BAD_PARAMETER for a handle that names no such instance; NOT_ENABLED, ALREADY_DELETED.
    pub fn key_value(&self, instance: InstanceHandle) -> Result<T> {
        let name = self.known(instance)?;
        key_of(self.core.side.port.keys(), name)?.ok_or_else(|| {
            Error::BadParameter(format!("{instance:?} names no instance whose key is known"))
        })
    }
}
