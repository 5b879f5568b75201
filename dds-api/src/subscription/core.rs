//! What a reader holds, shared by all handles to it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use spindle_dds_qos::DataReaderQos;

use super::SubscriberCore;
use super::erased::ErasedReaderListener;
use crate::builtin::PublicationBuiltinTopicData;
use crate::condition::StateMasks;
use crate::discovery::Entry;
use crate::driver::{LocalEndpoints, ReaderPort, ReaderStatuses, StreamWakers};
use crate::entity::EntityBase;
use crate::error::{Error, Result};
use crate::handle::InstanceHandle;
use crate::listener::ListenerSlot;
use crate::participant::ParticipantCore;
use crate::status::{
    LivelinessChangedStatus, RequestedIncompatibleQosStatus, SampleLostStatus,
    SampleRejectedStatus, StatusFlags, StatusMask, SubscriptionMatchedStatus,
};
use crate::topic::TopicCore;
use crate::wire::Wire;

pub(crate) struct ReaderCore {
    pub(crate) base: EntityBase,
    pub(crate) topic: Arc<TopicCore>,
    pub(crate) subscriber: Weak<SubscriberCore>,
    pub(crate) participant: Weak<ParticipantCore>,
    local_endpoints: Arc<LocalEndpoints>,
    /// Its number within the participant.
    number: u32,
    pub(crate) qos: Mutex<DataReaderQos>,
    pub(crate) listener: ListenerSlot<dyn ErasedReaderListener>,
    pub(crate) port: Arc<ReaderPort<Wire>>,
    pub(crate) streams: Arc<StreamWakers>,
    /// `notify_datareaders` was called: skip `on_data_on_readers` once.
    pub(crate) notified: AtomicBool,
}

impl fmt::Debug for ReaderCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderCore")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

impl ReaderCore {
    pub(crate) fn new(
        base: EntityBase,
        topic: Arc<TopicCore>,
        subscriber: &Arc<SubscriberCore>,
        participant: &ParticipantCore,
        number: u32,
        qos: DataReaderQos,
        port: Arc<ReaderPort<Wire>>,
    ) -> Self {
        topic.endpoints.fetch_add(1, Ordering::AcqRel);
        Self {
            base,
            topic,
            subscriber: Arc::downgrade(subscriber),
            participant: participant.weak(),
            local_endpoints: participant.local_endpoints.clone(),
            number,
            qos: Mutex::new(qos),
            listener: ListenerSlot::default(),
            streams: port.streams().clone(),
            port,
            notified: AtomicBool::new(false),
        }
    }

    pub(crate) fn status_flags(&self) -> &Arc<StatusFlags> {
        self.base.status_flags()
    }

    pub(crate) fn qos(&self) -> MutexGuard<'_, DataReaderQos> {
        self.qos.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_samples(&self, masks: &StateMasks) -> bool {
        self.base.is_deleted() || self.base.is_enabled() && self.port.has(masks)
    }

    /// Has the engine step for who has found nothing. Whether anything has come.
    pub(crate) fn glance(&self) -> bool {
        self.status_flags()
            .data_waiter()
            .is_some_and(|data_waiter| data_waiter.glance())
    }

    /// Statuses that tell of data have been dealt with.
    pub(crate) fn clear_data_available(&self) {
        self.status_flags().clear(StatusMask::DATA_AVAILABLE);
        self.port.subscriber().clear(StatusMask::DATA_ON_READERS);
    }

    /// What is known of a writer that it is matched with.
    pub(crate) fn writer_data(
        &self,
        writer: InstanceHandle,
    ) -> Result<PublicationBuiltinTopicData> {
        let is_matched = |statuses: &mut ReaderStatuses| statuses.writers.contains(&writer);
        let matched = self.port.with_statuses(is_matched);
        let entry = self.local_endpoints.entry(writer).filter(|_| matched);
        match entry.as_deref() {
            Some(Entry::Writer(entry)) => Ok(entry.into()),
            _ => Err(Error::BadParameter(format!(
                "{writer:?} is no writer that {} is matched with, or it is gone",
                self.base.what()
            ))),
        }
    }

    pub(crate) fn matched_status(&self) -> SubscriptionMatchedStatus {
        self.status_flags().clear(StatusMask::SUBSCRIPTION_MATCHED);
        self.port.with_statuses(|statuses| {
            let (total_count, total_count_change) = statuses.matched.ever.read();
            let (current_count, current_count_change) = statuses.matched.now.read();
            SubscriptionMatchedStatus {
                total_count,
                total_count_change,
                current_count,
                current_count_change,
                last_publication_handle: statuses.matched.last,
            }
        })
    }

    pub(crate) fn liveliness_status(&self) -> LivelinessChangedStatus {
        self.status_flags().clear(StatusMask::LIVELINESS_CHANGED);
        self.port.with_statuses(|statuses| {
            let (alive_count, alive_count_change) = statuses.liveliness.alive.read();
            let (not_alive_count, not_alive_count_change) = statuses.liveliness.not_alive.read();
            LivelinessChangedStatus {
                alive_count,
                not_alive_count,
                alive_count_change,
                not_alive_count_change,
                last_publication_handle: statuses.liveliness.last,
            }
        })
    }

    pub(crate) fn incompatible_status(&self) -> RequestedIncompatibleQosStatus {
        self.status_flags()
            .clear(StatusMask::REQUESTED_INCOMPATIBLE_QOS);
        self.port.with_statuses(|statuses| {
            let (total_count, total_count_change) = statuses.incompatible.count.read();
            RequestedIncompatibleQosStatus {
                total_count,
                total_count_change,
                last_policy: statuses.incompatible.last,
                policies: statuses.incompatible.policies.clone(),
            }
        })
    }

    pub(crate) fn lost_status(&self) -> SampleLostStatus {
        self.status_flags().clear(StatusMask::SAMPLE_LOST);
        self.port.with_statuses(|statuses| {
            let (total_count, total_count_change) = statuses.lost.read();
            SampleLostStatus {
                total_count,
                total_count_change,
            }
        })
    }

    pub(crate) fn rejected_status(&self) -> SampleRejectedStatus {
        self.status_flags().clear(StatusMask::SAMPLE_REJECTED);
        self.port.with_statuses(|statuses| {
            let (total_count, total_count_change) = statuses.rejected.read();
            SampleRejectedStatus {
                total_count,
                total_count_change,
                last_reason: statuses.last_rejected.0,
                last_instance_handle: statuses.last_rejected.1,
            }
        })
    }

    /// Whether nothing of it is in use: samples, or conditions.
    pub(crate) fn deletable(&self) -> Result<()> {
        self.has_no_loans()?;
        if self.status_flags().observers().are_waiting() {
            return Err(Error::PreconditionNotMet(format!(
                "a thread waits for a condition of {}; wake it first",
                self.base.what()
            )));
        }
        Ok(())
    }

    pub(crate) fn has_no_loans(&self) -> Result<()> {
        match self.port.loans() {
            0 => Ok(()),
            loans => Err(Error::PreconditionNotMet(format!(
                "{} has {loans} collections of samples out; drop them first",
                self.base.what()
            ))),
        }
    }

    pub(crate) fn delete(&self) {
        if self.base.delete() {
            self.topic.endpoints.fetch_sub(1, Ordering::AcqRel);
            self.port.close();
            // StreamWakers find out that it is over.
            self.streams.notify();
            self.local_endpoints.remove(self.number);
        }
    }
}
