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
use crate::error::Result;
use crate::handle::InstanceHandle;
use crate::listener::DataReaderListener;
use crate::participant::ParticipantCore;
use crate::status::{
    LivelinessChangedStatus, RequestedIncompatibleQosStatus, SampleLostStatus,
    SampleRejectedStatus, SubscriptionMatchedStatus,
};

/// Reads samples of a topic.
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

    /// A condition that holds while there are samples in these states
    /// (`create_readcondition`). It lives as long as somebody has it.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn read_condition(&self, masks: StateMasks) -> Result<ReadCondition> {
        self.core.base.alive()?;
        Ok(ReadCondition::new(self.core.clone(), masks))
    }

    /// Writers that it is matched with (`get_subscription_matched_status`).
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn subscription_matched_status(&self) -> Result<SubscriptionMatchedStatus> {
        self.core.base.alive()?;
        Ok(self.core.matched_status())
    }

    /// Which of its writers are alive (`get_liveliness_changed_status`).
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn liveliness_changed_status(&self) -> Result<LivelinessChangedStatus> {
        self.core.base.alive()?;
        Ok(self.core.liveliness_status())
    }

    /// Writers that offer less than it asks for.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn requested_incompatible_qos_status(&self) -> Result<RequestedIncompatibleQosStatus> {
        self.core.base.alive()?;
        Ok(self.core.incompatible_status())
    }

    /// Samples whose bytes made no sense.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn sample_lost_status(&self) -> Result<SampleLostStatus> {
        self.core.base.alive()?;
        Ok(self.core.lost_status())
    }

    /// Samples that a limit refused.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn sample_rejected_status(&self) -> Result<SampleRejectedStatus> {
        self.core.base.alive()?;
        Ok(self.core.rejected_status())
    }

    /// Handles of the writers that it is matched with now.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn matched_publications(&self) -> Result<Vec<InstanceHandle>> {
        self.core.base.ready()?;
        Ok(self
            .core
            .side
            .inlet
            .with_statuses(|statuses| statuses.writers.clone()))
    }

    /// What is known of a writer that it is matched with
    /// (`get_matched_publication_data`).
    ///
    /// # Errors
    /// BAD_PARAMETER when it is not, or when the domain has lost it and the reader has not
    /// come to that place of the order yet; NOT_ENABLED, ALREADY_DELETED.
    pub fn matched_publication_data(
        &self,
        writer: InstanceHandle,
    ) -> Result<PublicationBuiltinTopicData> {
        self.core.base.ready()?;
        self.core.writer_data(writer)
    }
}

impl<T: TopicType> DataReader<T> {
    /// The samples as they come, for any executor: each item is what one
    /// [`take`](Self::take) of at most `max` samples gives.
    pub fn stream(&self, max: usize) -> SampleStream<T> {
        SampleStream::new(self.clone(), max)
    }

    /// The handle of the instance that a sample, or its key alone, belongs to;
    /// `None` when the reader does not know it.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn lookup_instance(&self, key: &T) -> Result<Option<InstanceHandle>> {
        self.core.base.ready()?;
        let key = key.key_hash();
        let known = self.core.side.inlet.knows(key);
        Ok(known.then(|| InstanceHandle::of_instance(key)))
    }
}
