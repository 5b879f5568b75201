//! Writers (DDS 1.4 §2.2.2.4.2).

use std::marker::PhantomData;
use std::sync::Arc;

use spindle_dds_core::MessageKind;
use spindle_dds_idl_runtime::{KeyHash, TopicType};
use spindle_dds_qos::{DataWriterQos, Duration};

use super::core::WriterCore;
use super::erased::TypedListener;
use super::loan::Loan;
use super::{Publisher, Receipt};
use crate::builtin::SubscriptionBuiltinTopicData;
use crate::endpoint::endpoint_operations;
use crate::error::{Error, Result};
use crate::handle::InstanceHandle;
use crate::listener::DataWriterListener;
use crate::participant::ParticipantCore;
use crate::stamps::source_timestamp;
use crate::status::{
    LivelinessLostStatus, OfferedDeadlineMissedStatus, OfferedIncompatibleQosStatus,
    PublicationMatchedStatus,
};
use crate::time::Deadline;

/// Writes samples of a topic: a copy of a value with [`write`](Self::write), or one that is
/// built in the memory of the ring with [`loan`](Self::loan).
///
/// ```
/// use spindle_dds::{DomainParticipant, Duration};
/// # use spindle_dds_test_types::flight::State;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().join("domains").display().to_string();
/// # let participant = DomainParticipant::builder(0);
/// # let participant = participant.property("spindle.directory", &directory).create()?;
/// # let topic = participant.topic::<State>("State").create()?;
///
/// let publisher = participant.publisher().create()?;
/// let writer = publisher.writer(&topic).create()?;
/// writer.write(&State { icao: 7, number: 1, ..State::default() })?;
///
/// let mut sample = writer.loan()?;
/// sample.set_icao(7).set_number(2);
/// let receipt = sample.callsign("DLH4AB")?.publish()?;
/// writer.wait_for(&receipt, Duration::from_secs(10))?;
/// # Ok(())
/// # }
/// ```
pub struct DataWriter<T> {
    pub(crate) core: Arc<WriterCore>,
    pub(crate) participant: Arc<ParticipantCore>,
    marker: PhantomData<fn() -> T>,
}

/// A writer of any type, as listeners of publishers and participants see it.
#[derive(Clone)]
pub struct AnyDataWriter {
    pub(crate) core: Arc<WriterCore>,
    pub(crate) participant: Arc<ParticipantCore>,
}

endpoint_operations!(
    DataWriter,
    AnyDataWriter,
    WriterCore,
    DataWriterQos,
    DataWriterListener,
    TypedListener::erase
);

impl<T> DataWriter<T> {
    /// Its publisher.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn publisher(&self) -> Result<Publisher> {
        Ok(Publisher {
            core: self.core.factory()?,
            participant: self.participant.clone(),
        })
    }

    /// The number of samples that this writer has accepted and not sent. A BEST_EFFORT writer drops
    /// samples if there is no room in its ring or within its RESOURCE_LIMITS; a RELIABLE one replaces
    /// samples that wait for that by newer ones of their instance (HISTORY KEEP_LAST). Readers count
    /// them in SAMPLE_LOST when they receive the writer's next sample.
    pub fn dropped_samples(&self) -> u64 {
        self.core.dropped()
    }

    /// Blocks until all matched RELIABLE readers have accepted what this writer has written before the
    /// call (DDS 1.4 §2.2.2.4.2.15), except what was replaced before it was sent. Returns at once for a
    /// BEST_EFFORT writer, and where no RELIABLE reader matches.
    ///
    /// A reader without RESOURCE_LIMITS has accepted a sample when its participant, and all others, have
    /// received it; it cannot refuse it any more. One with RESOURCE_LIMITS has when the sample has left
    /// the writer's ring: it is in the reader's cache or taken, and does not wait there for the reader
    /// to take others. A reader that is unmatched, or whose participant ends, is not waited for any
    /// more.
    ///
    /// # Errors
    /// TIMEOUT, with the processes that are waited for; NOT_ENABLED, ALREADY_DELETED; ERROR when the
    /// group failed.
    pub fn wait_for_acknowledgments(&self, timeout: impl Into<Duration>) -> Result<()> {
        self.core
            .wait_for_acknowledgments(Deadline::after(timeout.into()))
    }

    /// Blocks until all matched RELIABLE readers have accepted one sample, as
    /// [`wait_for_acknowledgments`](Self::wait_for_acknowledgments) does for all. One that was replaced
    /// before it was sent is not waited for.
    ///
    /// # Errors
    /// As for [`wait_for_acknowledgments`](Self::wait_for_acknowledgments);
    /// BAD_PARAMETER for a receipt of another writer.
    pub fn wait_for(&self, receipt: &Receipt, timeout: impl Into<Duration>) -> Result<()> {
        self.core.wait_for(receipt, Deadline::after(timeout.into()))
    }

    /// Counts the matched readers (`get_publication_matched_status`).
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn publication_matched_status(&self) -> Result<PublicationMatchedStatus> {
        self.core.base.alive()?;
        Ok(self.core.matched_status())
    }

    /// Counts how often the writer was not alive for its readers (`get_liveliness_lost_status`):
    /// each time that its participant has lost its group.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn liveliness_lost_status(&self) -> Result<LivelinessLostStatus> {
        self.core.base.alive()?;
        Ok(self.core.liveliness_lost_status())
    }

    /// Counts the DEADLINEs that the writer has missed (`get_offered_deadline_missed_status`). A
    /// finite DEADLINE is not supported: none is missed.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn offered_deadline_missed_status(&self) -> Result<OfferedDeadlineMissedStatus> {
        self.core.base.alive()?;
        Ok(OfferedDeadlineMissedStatus::default())
    }

    /// Says that the writer is alive. With LIVELINESS AUTOMATIC, the one that is supported, this
    /// has no effect: the participant says so all the time.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn assert_liveliness(&self) -> Result<()> {
        self.core.base.ready()
    }

    /// Counts the readers that request more than the writer offers
    /// (`get_offered_incompatible_qos_status`).
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn offered_incompatible_qos_status(&self) -> Result<OfferedIncompatibleQosStatus> {
        self.core.base.alive()?;
        Ok(self.core.incompatible_status())
    }

    /// The handles of the matched readers.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn matched_subscriptions(&self) -> Result<Vec<InstanceHandle>> {
        self.core.base.ready()?;
        Ok(self.core.statuses().readers.clone())
    }

    /// The announced data of a matched reader (`get_matched_subscription_data`).
    ///
    /// # Errors
    /// BAD_PARAMETER when the reader is not matched; NOT_ENABLED, ALREADY_DELETED.
    pub fn matched_subscription_data(
        &self,
        reader: InstanceHandle,
    ) -> Result<SubscriptionBuiltinTopicData> {
        self.core.base.ready()?;
        self.core.reader_data(reader)
    }
}

impl<T: TopicType> DataWriter<T> {
    /// Starts a sample in place: returns the builder that was generated for `T`, over the
    /// memory of the ring from which it is sent. The builder's `publish` ends the loan.
    /// A RELIABLE writer that keeps all waits at most `max_blocking_time` for readers to make room in
    /// its ring, and within max_samples of its RESOURCE_LIMITS. One that keeps the last gets private
    /// memory instead, which is copied when it is sent; so do both while the group is changing. A loan
    /// counts as a sample.
    ///
    /// The instance of the sample is known only when it is published: where instances or
    /// their samples are limited, and where the writer's history is full, `publish` waits in the same
    /// way, and may fail with TIMEOUT or OUT_OF_RESOURCES, which withdraws the loan.
    ///
    /// # Errors
    /// BAD_PARAMETER for a type without a bound (see [`loan_with`](Self::loan_with));
    /// TIMEOUT without room; OUT_OF_RESOURCES when it never fits; NOT_ENABLED,
    /// ALREADY_DELETED; ERROR when the group failed.
    pub fn loan(&self) -> Result<T::Builder<Loan<T>>> {
        self.loan_with(self.max_size()?)
    }

    /// Bytes of the largest sample.
    pub(super) fn max_size(&self) -> Result<usize> {
        T::max_size(self.core.side.representation()).ok_or_else(|| {
            Error::BadParameter(format!(
                "samples of {} have no bound; use loan_with(max_bytes)",
                T::TYPE_NAME
            ))
        })
    }

    /// As [`loan`](Self::loan), with room for `max_bytes`. Room that the sample does not use is
    /// given back when it is published, unless it is less than 64 bytes.
    ///
    /// # Errors
    /// As for [`loan`](Self::loan).
    #[inline(always)]
    pub fn loan_with(&self, max_bytes: usize) -> Result<T::Builder<Loan<T>>> {
        let loan = Loan::reserve(&self.core, max_bytes, None)?;
        Ok(T::build(loan, self.core.side.representation())?)
    }

    /// As [`loan_with`](Self::loan_with), with a source timestamp in
    /// nanoseconds since 1970.
    ///
    /// # Errors
    /// As for [`loan`](Self::loan).
    pub fn loan_w_timestamp(
        &self,
        max_bytes: usize,
        timestamp: i64,
    ) -> Result<T::Builder<Loan<T>>> {
        let loan = Loan::reserve(&self.core, max_bytes, Some(timestamp))?;
        Ok(T::build(loan, self.core.side.representation())?)
    }

    /// Writes a copy of a sample. It blocks only where a RELIABLE writer that keeps all finds no room in
    /// its ring or within its RESOURCE_LIMITS, or where too much waits in the history of a RELIABLE
    /// writer, and for `max_blocking_time` at most. Otherwise a sample of a RELIABLE writer that
    /// cannot be sent now waits in the history: see [`Receipt::had_to_wait`].
    ///
    /// # Errors
    /// BAD_PARAMETER when it breaks a bound of its type; TIMEOUT, with what is in the way;
    /// OUT_OF_RESOURCES when it never fits, or would exceed max_instances; NOT_ENABLED,
    /// ALREADY_DELETED; ERROR when the group failed, or was lost for now and the writer is
    /// BEST_EFFORT.
    pub fn write(&self, sample: &T) -> Result<Receipt> {
        self.write_w_timestamp(sample, source_timestamp())
    }

    /// As [`write`](Self::write), with a source timestamp in nanoseconds since 1970.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn write_w_timestamp(&self, sample: &T, timestamp: i64) -> Result<Receipt> {
        let representation = self.core.side.representation();
        self.core.write(
            sample.size(representation),
            |bytes| Ok(sample.encode(representation, bytes)?),
            MessageKind::Data,
            sample.key_hash(),
            timestamp,
        )
    }

    /// Registers the instance of `key`, of which only the key members count, and returns its
    /// handle. Writing and disposing register instances, too. What is registered is remembered
    /// until it is unregistered.
    ///
    /// # Errors
    /// OUT_OF_RESOURCES when it would exceed max_instances of RESOURCE_LIMITS; NOT_ENABLED,
    /// ALREADY_DELETED; ERROR when the group failed.
    pub fn register_instance(&self, key: &T) -> Result<InstanceHandle> {
        let Some(keys) = &self.core.side.keys else {
            let key = key.key_hash();
            self.core.register(key)?;
            self.core.side.registered.register(key);
            return Ok(InstanceHandle::of_instance(key));
        };
        self.core.port()?.check()?;
        let name = keys.register(key);
        match self.core.register(name) {
            Ok(()) => {
                self.core.side.registered.register(name);
                Ok(InstanceHandle::of_instance(name))
            }
            Err(error) => {
                keys.unregister(name);
                Err(error)
            }
        }
    }

    /// Unregisters the instance of `key`, of which only the key members count, and disposes of
    /// it if `autodispose_unregistered_instances` says so. RESOURCE_LIMITS do not apply: it
    /// needs room in the ring only.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET when the writer has neither registered nor written the instance, or
    /// has unregistered it; as for [`write`](Self::write).
    pub fn unregister_instance(&self, key: &T) -> Result<Receipt> {
        self.unregister_instance_w_timestamp(key, source_timestamp())
    }

    /// As [`unregister_instance`](Self::unregister_instance), with a source timestamp.
    ///
    /// # Errors
    /// As for [`unregister_instance`](Self::unregister_instance).
    pub fn unregister_instance_w_timestamp(&self, key: &T, timestamp: i64) -> Result<Receipt> {
        let name = self.check_registered(key)?;
        let receipt = self.write_key(key, self.unregistration(), timestamp)?;
        self.unregistered(name);
        Ok(receipt)
    }

    /// The kind of message that unregisters an instance.
    pub(super) fn unregistration(&self) -> MessageKind {
        match self.core.autodisposes() {
            true => MessageKind::DisposeUnregister,
            false => MessageKind::Unregister,
        }
    }

    /// The instance with this name is unregistered, if it has one.
    pub(super) fn unregistered(&self, name: Option<KeyHash>) {
        if let Some(name) = name {
            self.core.unregister(name);
        }
    }

    /// Disposes of the instance of `key`, of which only the key members count. It need not be an
    /// instance that this writer has written.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn dispose(&self, key: &T) -> Result<Receipt> {
        self.dispose_w_timestamp(key, source_timestamp())
    }

    /// As [`dispose`](Self::dispose), with a source timestamp.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn dispose_w_timestamp(&self, key: &T, timestamp: i64) -> Result<Receipt> {
        self.write_key(key, MessageKind::Dispose, timestamp)
    }

    fn write_key(&self, key: &T, kind: MessageKind, timestamp: i64) -> Result<Receipt> {
        let representation = self.core.side.representation();
        self.core.write(
            key.key_size(representation),
            |bytes| Ok(key.encode_key(representation, bytes)?),
            kind,
            key.key_hash(),
            timestamp,
        )
    }
}
