//! What a writer holds, shared by all handles to it.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use spindle_dds_core::{Committed, Ring};
use spindle_dds_idl_runtime::{Encapsulation, Representation};
use spindle_dds_qos::{DataWriterQos, Duration};
use spindle_dds_transport::Rank;

use super::PublisherCore;
use super::erased::ErasedWriterListener;
use super::limits::Limits;
use super::receipt::Receipt;
use crate::driver::Port;
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
    pub(crate) settings: WriterSettings,
    pub(crate) qos: Mutex<DataWriterQos>,
    pub(crate) listener: ListenerSlot<dyn ErasedWriterListener>,
    pub(crate) statuses: Mutex<WriterStatuses>,
    port: OnceLock<Port<Wire>>,
    /// Loans that are neither published nor dropped.
    pub(crate) loans: AtomicUsize,
    /// `None`: none.
    pub(super) limits: Option<Limits>,
    /// Samples that found no room.
    pub(super) dropped: AtomicU64,
    /// Of these, those that no reader can know of yet.
    pub(super) untold: AtomicU64,
    /// Index of the message after the last one committed.
    pub(super) committed: AtomicU64,
    /// Memory for samples that will be dropped.
    pub(super) scratch: Mutex<Vec<Vec<u8>>>,
}

/// What does not change once a writer is created.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriterSettings {
    /// Its number within the participant.
    pub(crate) number: u32,
    pub(crate) ring: Ring,
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
    /// Readers that are matched now, with their members.
    pub(crate) readers: Vec<(Rank, InstanceHandle)>,
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
        participant: Weak<ParticipantCore>,
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
            participant,
            settings,
            qos: Mutex::new(qos),
            listener: ListenerSlot::default(),
            statuses: Mutex::default(),
            port: OnceLock::new(),
            loans: AtomicUsize::new(0),
            limits,
            dropped: AtomicU64::new(0),
            untold: AtomicU64::new(0),
            committed: AtomicU64::new(0),
            scratch: Mutex::default(),
        }
    }

    pub(crate) fn qos(&self) -> MutexGuard<'_, DataWriterQos> {
        self.qos.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn statuses(&self) -> MutexGuard<'_, WriterStatuses> {
        self.statuses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The group is formed: from now on it can write.
    pub(crate) fn connect(&self, port: Port<Wire>) {
        let _ = self.port.set(port);
        self.base.set_enabled();
        // Pairs with the fence in `delete`: one of the two sees the other.
        fence(Ordering::SeqCst);
        if self.base.is_deleted() {
            self.say_farewell();
        }
    }

    pub(super) fn port(&self) -> Result<&Port<Wire>> {
        self.base.ready()?;
        let what = self.base.what();
        self.port
            .get()
            .ok_or_else(|| Error::NotEnabled(format!("{what} is disabled")))
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
        match self.committed.load(Ordering::Acquire).checked_sub(1) {
            Some(index) if self.settings.ring == Ring::Ordered => port.wait_stable(index, deadline),
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
            Some(committed) if committed.ring == Ring::Ordered => {
                port.wait_stable(committed.index, deadline)
            }
            _ => Ok(()),
        }
    }

    /// A reader of this member is gone with it.
    pub(crate) fn member_left(&self, rank: Rank) {
        let mut statuses = self.statuses();
        let mut gone = false;
        while let Some(at) = statuses.readers.iter().position(|(of, _)| *of == rank) {
            let (_, reader) = statuses.readers.swap_remove(at);
            statuses.matched.unmatched(reader);
            gone = true;
        }
        drop(statuses);
        if gone {
            self.base.beacon().raise(StatusMask::PUBLICATION_MATCHED);
        }
    }

    /// A reader of this process was deleted.
    pub(crate) fn reader_deleted(&self, reader: InstanceHandle) {
        let mut statuses = self.statuses();
        let Some(at) = statuses.readers.iter().position(|(_, of)| *of == reader) else {
            return;
        };
        statuses.readers.swap_remove(at);
        statuses.matched.unmatched(reader);
        drop(statuses);
        self.base.beacon().raise(StatusMask::PUBLICATION_MATCHED);
    }

    pub(crate) fn matched_status(&self) -> PublicationMatchedStatus {
        self.base.beacon().clear(StatusMask::PUBLICATION_MATCHED);
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
            .beacon()
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
        match self.loans.load(Ordering::Acquire) {
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
        fence(Ordering::SeqCst);
        self.say_farewell();
    }

    /// Its readers lose it; its instances go as WRITER_DATA_LIFECYCLE says.
    fn say_farewell(&self) {
        let disposes = self.autodisposes();
        if let Some(port) = self.port.get() {
            port.writer_deleted(self.settings.number, disposes);
        }
    }

    /// Whether instances are disposed of when they are unregistered.
    pub(crate) fn autodisposes(&self) -> bool {
        self.qos()
            .writer_data_lifecycle
            .autodispose_unregistered_instances
    }
}
