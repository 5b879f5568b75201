//! The statuses of a writer.

use std::sync::{MutexGuard, PoisonError};

use spindle_dds_qos::PolicyId;

use super::core::WriterCore;
use crate::builtin::SubscriptionBuiltinTopicData;
use crate::discovery::Entry;
use crate::error::{Error, Result};
use crate::handle::InstanceHandle;
use crate::status::{
    IncompatibleCounts, LivelinessLostStatus, MatchCounts, OfferedIncompatibleQosStatus,
    PublicationMatchedStatus, StatusMask, TotalCount,
};

#[derive(Debug, Default)]
pub(crate) struct WriterStatuses {
    matched: MatchCounts,
    incompatible: IncompatibleCounts,
    /// Times that its participant has lost its group.
    liveliness_lost: TotalCount,
    /// Readers that are matched now.
    pub(super) readers: Vec<InstanceHandle>,
    /// Readers that request more than the writer offers.
    refused: Vec<InstanceHandle>,
}

impl WriterCore {
    pub(super) fn statuses(&self) -> MutexGuard<'_, WriterStatuses> {
        let statuses = self.side.statuses.lock();
        statuses.unwrap_or_else(PoisonError::into_inner)
    }

    /// A view has begun, in which these readers match, and those request more than is offered.
    pub(crate) fn meet(
        &self,
        readers: Vec<InstanceHandle>,
        refused: Vec<(InstanceHandle, Vec<PolicyId>)>,
    ) {
        let mut raised = StatusMask::NONE;
        let mut statuses = self.statuses();
        let WriterStatuses {
            matched,
            incompatible,
            readers: before,
            refused: refused_before,
            ..
        } = &mut *statuses;
        for gone in before.iter().filter(|reader| !readers.contains(reader)) {
            matched.unmatched(*gone);
            raised |= StatusMask::PUBLICATION_MATCHED;
        }
        for new in readers.iter().filter(|reader| !before.contains(reader)) {
            matched.matched(*new);
            raised |= StatusMask::PUBLICATION_MATCHED;
        }
        for (reader, policies) in &refused {
            if !refused_before.contains(reader) {
                incompatible.add(policies.iter().copied());
                raised |= StatusMask::OFFERED_INCOMPATIBLE_QOS;
            }
        }
        *before = readers;
        *refused_before = refused.into_iter().map(|(reader, _)| reader).collect();
        drop(statuses);
        if !raised.is_empty() {
            self.base.status_flags().raise(raised);
        }
    }

    /// The group has failed: the readers of other participants are gone, and to them the writer is
    /// not alive.
    pub(crate) fn group_failed(&self) {
        let own = self.base.guid().participant();
        let is_own = |reader: &InstanceHandle| {
            let reader = reader.guid();
            reader.is_some_and(|reader| reader.participant() == own)
        };
        let (mut readers, mut refused) = {
            let statuses = self.statuses();
            (statuses.readers.clone(), statuses.refused.clone())
        };
        readers.retain(is_own);
        refused.retain(is_own);
        let refused = refused.into_iter().map(|reader| (reader, Vec::new()));
        self.meet(readers, refused.collect());
        self.statuses().liveliness_lost.add(1);
        let lost = StatusMask::LIVELINESS_LOST;
        self.base.status_flags().raise(lost);
    }

    pub(crate) fn liveliness_lost_status(&self) -> LivelinessLostStatus {
        self.base.status_flags().clear(StatusMask::LIVELINESS_LOST);
        let (total_count, total_count_change) = self.statuses().liveliness_lost.read();
        LivelinessLostStatus {
            total_count,
            total_count_change,
        }
    }

    /// The announcement of a matched reader.
    pub(crate) fn reader_data(
        &self,
        reader: InstanceHandle,
    ) -> Result<SubscriptionBuiltinTopicData> {
        let matched = self.statuses().readers.contains(&reader);
        let entry = self.announced(reader).filter(|_| matched);
        match entry.as_deref() {
            Some(Entry::Reader(entry)) => Ok(entry.into()),
            _ => Err(Error::BadParameter(format!(
                "{reader:?} is no reader that {} is matched with",
                self.base.what()
            ))),
        }
    }

    pub(crate) fn matched_status(&self) -> PublicationMatchedStatus {
        self.base
            .status_flags()
            .clear(StatusMask::PUBLICATION_MATCHED);
        let matched = &mut self.statuses().matched;
        let (total_count, total_count_change) = matched.ever.read();
        let (current_count, current_count_change) = matched.now.read();
        PublicationMatchedStatus {
            total_count,
            total_count_change,
            current_count,
            current_count_change,
            last_subscription_handle: matched.last,
        }
    }

    pub(crate) fn incompatible_status(&self) -> OfferedIncompatibleQosStatus {
        self.base
            .status_flags()
            .clear(StatusMask::OFFERED_INCOMPATIBLE_QOS);
        let incompatible = &mut self.statuses().incompatible;
        let (total_count, total_count_change) = incompatible.count.read();
        OfferedIncompatibleQosStatus {
            total_count,
            total_count_change,
            last_policy: incompatible.last,
            policies: incompatible.policies.clone(),
        }
    }
}
