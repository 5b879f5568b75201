//! Writers (DDS 1.4 §2.2.2.4.2).

use std::marker::PhantomData;
use std::sync::Arc;

use spindle_dds_core::Kind;
use spindle_dds_idl_runtime::TopicType;
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
use crate::status::{OfferedIncompatibleQosStatus, PublicationMatchedStatus};
use crate::time::Deadline;

/// Writes samples of a topic.
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

    /// Room for a sample of at most so many bytes.
    #[inline]
    pub(crate) fn slot(&self, max_bytes: usize, timestamp: Option<i64>) -> Result<Loan<T>> {
        Loan::new(&self.core, max_bytes, timestamp)
    }

    /// Samples that this BEST_EFFORT writer dropped because there was no room, in its
    /// ring or within its RESOURCE_LIMITS. Readers count them as SAMPLE_LOST when the
    /// next sample comes through.
    pub fn dropped_samples(&self) -> u64 {
        self.core.dropped()
    }

    /// Blocks until the participants of all matched readers have received what
    /// was written so far. At once for BEST_EFFORT.
    ///
    /// # Errors
    /// TIMEOUT, NOT_ENABLED, ALREADY_DELETED; ERROR when the group failed.
    pub fn wait_for_acknowledgments(&self, timeout: impl Into<Duration>) -> Result<()> {
        self.core
            .wait_for_acknowledgments(Deadline::after(timeout.into()))
    }

    /// Blocks until one sample has been received like that.
    ///
    /// # Errors
    /// As for [`wait_for_acknowledgments`](Self::wait_for_acknowledgments);
    /// BAD_PARAMETER for a receipt of another writer.
    pub fn wait_for(&self, receipt: &Receipt, timeout: impl Into<Duration>) -> Result<()> {
        self.core.wait_for(receipt, Deadline::after(timeout.into()))
    }

    /// Readers that it is matched with (`get_publication_matched_status`).
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn publication_matched_status(&self) -> Result<PublicationMatchedStatus> {
        self.core.base.alive()?;
        Ok(self.core.matched_status())
    }

    /// Readers that ask for more than it offers.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn offered_incompatible_qos_status(&self) -> Result<OfferedIncompatibleQosStatus> {
        self.core.base.alive()?;
        Ok(self.core.incompatible_status())
    }

    /// Handles of the readers that it is matched with now.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn matched_subscriptions(&self) -> Result<Vec<InstanceHandle>> {
        self.core.base.ready()?;
        Ok(self.core.statuses().readers.clone())
    }

    /// What is known of a reader that it is matched with
    /// (`get_matched_subscription_data`).
    ///
    /// # Errors
    /// BAD_PARAMETER when it is not; NOT_ENABLED, ALREADY_DELETED.
    pub fn matched_subscription_data(
        &self,
        reader: InstanceHandle,
    ) -> Result<SubscriptionBuiltinTopicData> {
        self.core.base.ready()?;
        self.core.reader_data(reader)
    }
}

impl<T: TopicType> DataWriter<T> {
    /// Starts a sample in place: the builder that was generated for `T`, over
    /// the memory where readers will find the sample. Ended by its `publish`.
    /// A RELIABLE writer waits for room, in its ring and within max_samples of its
    /// RESOURCE_LIMITS, at most `max_blocking_time`. A loan counts as a sample.
    ///
    /// Of which instance the sample is turns out when it is published: where instances or
    /// their samples are limited, `publish` waits in the same way, and may fail with
    /// TIMEOUT or OUT_OF_RESOURCES; the loan is withdrawn then.
    ///
    /// # Errors
    /// BAD_PARAMETER for a type without a bound (see [`loan_with`](Self::loan_with));
    /// TIMEOUT without room; OUT_OF_RESOURCES when it never fits; NOT_ENABLED,
    /// ALREADY_DELETED; ERROR when the group failed.
    pub fn loan(&self) -> Result<T::Builder<Loan<T>>> {
        let Some(max) = T::max_size(self.core.side.representation) else {
            return Err(Error::BadParameter(format!(
                "samples of {} have no bound; use loan_with(max_bytes)",
                T::TYPE_NAME
            )));
        };
        self.loan_with(max)
    }

    /// As [`loan`](Self::loan), with room for `max_bytes`; what the sample does
    /// not use goes back when it is published, unless that is less than a line of 64 bytes.
    ///
    /// # Errors
    /// As for [`loan`](Self::loan).
    #[inline(always)]
    pub fn loan_with(&self, max_bytes: usize) -> Result<T::Builder<Loan<T>>> {
        self.loan_of(max_bytes, None)
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
        self.loan_of(max_bytes, Some(timestamp))
    }

    #[inline(always)]
    fn loan_of(&self, max_bytes: usize, timestamp: Option<i64>) -> Result<T::Builder<Loan<T>>> {
        let loan = self.slot(max_bytes, timestamp)?;
        Ok(T::build(loan, self.core.side.representation)?)
    }

    /// Writes a copy of a sample.
    ///
    /// # Errors
    /// BAD_PARAMETER when it breaks a bound of its type; TIMEOUT when a
    /// RELIABLE writer finds no room, in its ring and within its RESOURCE_LIMITS,
    /// within `max_blocking_time`; OUT_OF_RESOURCES when it never fits, or would be
    /// of one instance more than max_instances; NOT_ENABLED, ALREADY_DELETED; ERROR
    /// when the group failed.
    pub fn write(&self, sample: &T) -> Result<Receipt> {
        self.write_w_timestamp(sample, source_timestamp())
    }

    /// As [`write`](Self::write), with a source timestamp in nanoseconds since 1970.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn write_w_timestamp(&self, sample: &T, timestamp: i64) -> Result<Receipt> {
        let representation = self.core.side.representation;
        self.core.write(
            sample.size(representation),
            |bytes| Ok(sample.encode(representation, bytes)?),
            Kind::Data,
            sample.key_hash(),
            timestamp,
        )
    }

    /// The handle of the instance that a sample, or its key alone, belongs to.
    /// Writing registers instances by itself.
    ///
    /// # Errors
    /// OUT_OF_RESOURCES for one instance more than max_instances of its
    /// RESOURCE_LIMITS; NOT_ENABLED, ALREADY_DELETED.
    pub fn register_instance(&self, key: &T) -> Result<InstanceHandle> {
        let key = key.key_hash();
        self.core.register(key)?;
        Ok(InstanceHandle::of_instance(key))
    }

    /// Gives an instance up, and disposes of it too if
    /// `autodispose_unregistered_instances` says so. Of `key` only the key counts.
    /// RESOURCE_LIMITS do not hold it up: it gives back what they limit, and takes
    /// room in the ring alone.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn unregister_instance(&self, key: &T) -> Result<Receipt> {
        self.unregister_instance_w_timestamp(key, source_timestamp())
    }

    /// As [`unregister_instance`](Self::unregister_instance), with a source timestamp.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn unregister_instance_w_timestamp(&self, key: &T, timestamp: i64) -> Result<Receipt> {
        let kind = if self.core.autodisposes() {
            Kind::DisposeUnregister
        } else {
            Kind::Unregister
        };
        self.write_key(key, kind, timestamp)
    }

    /// Disposes of an instance. Of `key` only the key counts.
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
        self.write_key(key, Kind::Dispose, timestamp)
    }

    fn write_key(&self, key: &T, kind: Kind, timestamp: i64) -> Result<Receipt> {
        let representation = self.core.side.representation;
        self.core.write(
            key.key_size(representation),
            |bytes| Ok(key.encode_key(representation, bytes)?),
            kind,
            key.key_hash(),
            timestamp,
        )
    }
}
