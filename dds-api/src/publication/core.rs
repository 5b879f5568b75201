//! What a writer holds, shared by all handles to it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use spindle_dds_core::{Committed, DeliveryClass, SubgroupHandle};
use spindle_dds_idl_runtime::{Encapsulation, Representation};
use spindle_dds_qos::{DataWriterQos, Duration, PolicyId};

use super::PublisherCore;
use super::draft::Drafts;
use super::erased::ErasedWriterListener;
use super::limits::Limits;
use super::receipt::Receipt;
use crate::builtin::SubscriptionBuiltinTopicData;
use crate::discovery::Entry;
use crate::driver::{LocalEndpoints, Port};
use crate::entity::EntityBase;
use crate::error::{Error, Result};
use crate::handle::InstanceHandle;
use crate::listener::ListenerSlot;
use crate::participant::ParticipantCore;
use crate::properties::RingSize;
use crate::status::{
    IncompatibleCounts, MatchCounts, OfferedIncompatibleQosStatus, PublicationMatchedStatus,
    StatusMask,
};
use crate::time::Deadline;
use crate::topic::TopicCore;
use crate::wire::Wire;

pub(crate) struct WriterCore {
    pub(crate) base: EntityBase,
    pub(crate) topic: Arc<TopicCore>,
    pub(crate) publisher: Weak<PublisherCore>,
    pub(crate) participant: Weak<ParticipantCore>,
    local_endpoints: Arc<LocalEndpoints>,
    pub(crate) settings: WriterSettings,
    pub(crate) qos: Mutex<DataWriterQos>,
    pub(crate) listener: ListenerSlot<dyn ErasedWriterListener>,
    pub(crate) statuses: Mutex<WriterStatuses>,
    port: OnceLock<Port>,
    /// What its samples are built in.
    pub(super) drafts: Drafts,
    /// `None`: none.
    pub(super) limits: Option<Limits>,
    /// Samples that found no room.
    pub(super) dropped: AtomicU64,
    /// Of these, those that no reader can know of yet.
    pub(super) untold: AtomicU64,
}

/// What does not change once a writer is created.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriterSettings {
    /// Its number within the participant.
    pub(crate) number: u32,
    pub(crate) ring: DeliveryClass,
    pub(crate) ring_size: RingSize,
    pub(crate) representation: Representation,
    pub(crate) encapsulation: Encapsulation,
    pub(crate) max_blocking_time: Duration,
}

/// Statuses of a writer.
#[derive(Debug, Default)]
pub(crate) struct WriterStatuses {
    pub(crate) matched: MatchCounts,
    pub(crate) incompatible: IncompatibleCounts,
    /// Readers that are matched now.
    pub(crate) readers: Vec<InstanceHandle>,
    /// Readers that ask for more than it offers.
    refused: Vec<InstanceHandle>,
}

impl fmt::Debug for WriterCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterCore")
            .field("base", &self.base)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl WriterCore {
    pub(crate) fn new(
        base: EntityBase,
        topic: Arc<TopicCore>,
        publisher: &Arc<PublisherCore>,
        participant: &ParticipantCore,
        settings: WriterSettings,
        qos: DataWriterQos,
    ) -> Self {
        topic.endpoints.fetch_add(1, Ordering::AcqRel);
        let in_flight_max = settings.ring_size.messages.next_power_of_two();
        let limits = Limits::of(qos.resource_limits, in_flight_max);
        Self {
            base,
            topic,
            publisher: Arc::downgrade(publisher),
            participant: participant.weak(),
            local_endpoints: participant.local_endpoints.clone(),
            settings,
            qos: Mutex::new(qos),
            listener: ListenerSlot::default(),
            statuses: Mutex::default(),
            port: OnceLock::new(),
            drafts: Drafts::new(),
            limits,
            dropped: AtomicU64::new(0),
            untold: AtomicU64::new(0),
        }
    }

    pub(crate) fn qos(&self) -> MutexGuard<'_, DataWriterQos> {
        self.qos.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn statuses(&self) -> MutexGuard<'_, WriterStatuses> {
        self.statuses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its participant is in a group: from now on it can write.
    pub(crate) fn connect(&self, port: Port) {
        let _ = self.port.set(port);
        self.base.set_enabled();
    }

    /// The group does not take it: whoever writes is told why.
    pub(crate) fn refuse(&self, why: String) {
        if let Some(port) = self.port.get() {
            port.refuse(why);
        }
    }

    /// A view has begun in which this is the lane of its subgroup.
    pub(crate) fn set_lane(&self, lane: Arc<SubgroupHandle<Wire>>) {
        if let Some(port) = self.port.get() {
            port.set_lane(lane);
            self.drafts.lane_begun();
        }
    }

    #[inline]
    pub(super) fn port(&self) -> Result<&Port> {
        self.base.ready()?;
        let disabled = || Error::NotEnabled(format!("{} is disabled", self.base.what()));
        self.port.get().ok_or_else(disabled)
    }

    pub(super) fn receipt(&self, committed: Option<Committed>) -> Receipt {
        Receipt {
            committed,
            writer: self.base.guid(),
        }
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn wait_for_acknowledgments(&self, deadline: Deadline) -> Result<()> {
        let port = self.port()?;
        match port.last_committed() {
            Some(last) if self.settings.ring == DeliveryClass::Ordered => {
                port.wait_stable(&last, deadline)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn wait_for(&self, receipt: &Receipt, deadline: Deadline) -> Result<()> {
        let port = self.port()?;
        if receipt.writer != self.base.guid() {
            let what = self.base.what();
            return Err(Error::BadParameter(format!(
                "the receipt is of a sample that another writer wrote, not {what}"
            )));
        }
        match &receipt.committed {
            Some(committed) if committed.ring == DeliveryClass::Ordered => {
                port.wait_stable(committed, deadline)
            }
            _ => Ok(()),
        }
    }

    /// A view has begun in which it meets these readers, and is refused by those.
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

    /// What is known of a reader that it is matched with.
    pub(crate) fn reader_data(
        &self,
        reader: InstanceHandle,
    ) -> Result<SubscriptionBuiltinTopicData> {
        let matched = self.statuses().readers.contains(&reader);
        let entry = self.local_endpoints.entry(reader).filter(|_| matched);
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

    pub(crate) fn deletable(&self) -> Result<()> {
        match self.drafts.loans() {
            0 => Ok(()),
            loans => Err(Error::PreconditionNotMet(format!(
                "{} has {loans} loans that are neither published nor dropped",
                self.base.what()
            ))),
        }
    }

    pub(crate) fn delete(&self) {
        if !self.base.delete() {
            return;
        }
        self.topic.endpoints.fetch_sub(1, Ordering::AcqRel);
        // Its readers lose it here; its instances go as WRITER_DATA_LIFECYCLE says.
        if let Some(port) = self.port.get() {
            port.writer_deleted(self.settings.number, self.autodisposes());
            port.close();
        }
        self.drafts.end();
        self.local_endpoints.remove(self.settings.number);
    }

    /// Whether instances are disposed of when they are unregistered.
    pub(crate) fn autodisposes(&self) -> bool {
        self.qos()
            .writer_data_lifecycle
            .autodispose_unregistered_instances
    }
}
