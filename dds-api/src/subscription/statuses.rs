//! The statuses of a reader.

use super::core::ReaderCore;
use crate::builtin::PublicationBuiltinTopicData;
use crate::discovery::Entry;
use crate::driver::ReaderStatuses;
use crate::error::{Error, Result};
use crate::handle::InstanceHandle;
use crate::status::{
    LivelinessChangedStatus, RequestedIncompatibleQosStatus, SampleLostStatus,
    SampleRejectedStatus, StatusMask, SubscriptionMatchedStatus,
};

impl ReaderCore {
    /// The announcement of a matched writer.
    pub(crate) fn writer_data(
        &self,
        writer: InstanceHandle,
    ) -> Result<PublicationBuiltinTopicData> {
        let is_matched = |statuses: &mut ReaderStatuses| statuses.writers.contains(&writer);
        let matched = self.side.port.with_statuses(is_matched);
        let entry = self.announced(writer).filter(|_| matched);
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
        self.side.port.with_statuses(|statuses| {
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
        let read = |statuses: &mut ReaderStatuses| statuses.liveliness.read();
        self.side.port.with_statuses(read)
    }

    pub(crate) fn incompatible_status(&self) -> RequestedIncompatibleQosStatus {
        self.status_flags()
            .clear(StatusMask::REQUESTED_INCOMPATIBLE_QOS);
        self.side.port.with_statuses(|statuses| {
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
        self.side.port.with_statuses(|statuses| {
            let (total_count, total_count_change) = statuses.lost.read();
            SampleLostStatus {
                total_count,
                total_count_change,
            }
        })
    }

    pub(crate) fn rejected_status(&self) -> SampleRejectedStatus {
        self.status_flags().clear(StatusMask::SAMPLE_REJECTED);
        self.side.port.with_statuses(|statuses| {
            let (total_count, total_count_change) = statuses.rejected.read();
            SampleRejectedStatus {
                total_count,
                total_count_change,
                last_reason: statuses.last_rejected.0,
                last_instance_handle: statuses.last_rejected.1,
            }
        })
    }
}
