//! The listener traits. Every callback has an empty default.

use crate::participant::DomainParticipant;
use crate::publication::{AnyDataWriter, DataWriter};
use crate::status::{
    InconsistentTopicStatus, LivelinessChangedStatus, LivelinessLostStatus,
    OfferedDeadlineMissedStatus, OfferedIncompatibleQosStatus, PublicationMatchedStatus,
    RequestedDeadlineMissedStatus, RequestedIncompatibleQosStatus, SampleLostStatus,
    SampleRejectedStatus, SubscriptionMatchedStatus,
};
use crate::subscription::{AnyDataReader, DataReader, Subscriber};
use crate::topic::AnyTopic;

macro_rules! callbacks {
    ($($(#[$doc:meta])* $name:ident($entity:ty, $status:ty);)+) => { $(
        $(#[$doc])*
        fn $name(&mut self, entity: &$entity, status: &$status) {
            let _ = (entity, status);
        }
    )+ };
}

/// Of one topic.
pub trait TopicListener: Send {
    callbacks! {
        /// Another topic of this name with another type was found.
        on_inconsistent_topic(AnyTopic, InconsistentTopicStatus);
    }
}

/// Of one writer.
pub trait DataWriterListener<T>: Send {
    callbacks! {
        /// The writer did not keep its DEADLINE.
        on_offered_deadline_missed(DataWriter<T>, OfferedDeadlineMissedStatus);
        /// A reader asks for more than the writer offers.
        on_offered_incompatible_qos(DataWriter<T>, OfferedIncompatibleQosStatus);
        /// The writer's lease ended.
        on_liveliness_lost(DataWriter<T>, LivelinessLostStatus);
        /// A reader came or went.
        on_publication_matched(DataWriter<T>, PublicationMatchedStatus);
    }
}

/// Of one reader.
pub trait DataReaderListener<T>: Send {
    /// There is something to read. Called once for any number of samples:
    /// take until there are no more.
    fn on_data_available(&mut self, reader: &DataReader<T>) {
        let _ = reader;
    }

    callbacks! {
        /// A DEADLINE was missed.
        on_requested_deadline_missed(DataReader<T>, RequestedDeadlineMissedStatus);
        /// A writer offers less than the reader asks for.
        on_requested_incompatible_qos(DataReader<T>, RequestedIncompatibleQosStatus);
        /// A sample was refused for lack of room.
        on_sample_rejected(DataReader<T>, SampleRejectedStatus);
        /// The liveliness of a writer changed.
        on_liveliness_changed(DataReader<T>, LivelinessChangedStatus);
        /// A writer came or went.
        on_subscription_matched(DataReader<T>, SubscriptionMatchedStatus);
        /// A sample was lost.
        on_sample_lost(DataReader<T>, SampleLostStatus);
    }
}

/// Of a publisher: of those of its writers that have no listener for a status.
pub trait PublisherListener: Send {
    callbacks! {
        /// A writer did not keep its DEADLINE.
        on_offered_deadline_missed(AnyDataWriter, OfferedDeadlineMissedStatus);
        /// A reader asks for more than a writer offers.
        on_offered_incompatible_qos(AnyDataWriter, OfferedIncompatibleQosStatus);
        /// A writer's lease ended.
        on_liveliness_lost(AnyDataWriter, LivelinessLostStatus);
        /// A reader came or went.
        on_publication_matched(AnyDataWriter, PublicationMatchedStatus);
    }
}

/// Of a subscriber: of those of its readers that have no listener for a status.
pub trait SubscriberListener: Send {
    /// Some reader of the subscriber has data; comes before, and instead of,
    /// `on_data_available`.
    fn on_data_on_readers(&mut self, subscriber: &Subscriber) {
        let _ = subscriber;
    }

    /// There is something to read.
    fn on_data_available(&mut self, reader: &AnyDataReader) {
        let _ = reader;
    }

    callbacks! {
        /// A DEADLINE was missed.
        on_requested_deadline_missed(AnyDataReader, RequestedDeadlineMissedStatus);
        /// A writer offers less than a reader asks for.
        on_requested_incompatible_qos(AnyDataReader, RequestedIncompatibleQosStatus);
        /// A sample was refused for lack of room.
        on_sample_rejected(AnyDataReader, SampleRejectedStatus);
        /// The liveliness of a writer changed.
        on_liveliness_changed(AnyDataReader, LivelinessChangedStatus);
        /// A writer came or went.
        on_subscription_matched(AnyDataReader, SubscriptionMatchedStatus);
        /// A sample was lost.
        on_sample_lost(AnyDataReader, SampleLostStatus);
    }
}

/// Of a participant: of all in it that has no listener for a status.
pub trait DomainParticipantListener: Send {
    /// The group has failed: nothing is delivered any more. Not of the standard.
    fn on_failed(&mut self, participant: &DomainParticipant, reason: &str) {
        let _ = (participant, reason);
    }

    /// Some reader of a subscriber has data.
    fn on_data_on_readers(&mut self, subscriber: &Subscriber) {
        let _ = subscriber;
    }

    /// There is something to read.
    fn on_data_available(&mut self, reader: &AnyDataReader) {
        let _ = reader;
    }

    callbacks! {
        /// Another topic of the same name with another type was found.
        on_inconsistent_topic(AnyTopic, InconsistentTopicStatus);
        /// A writer did not keep its DEADLINE.
        on_offered_deadline_missed(AnyDataWriter, OfferedDeadlineMissedStatus);
        /// A reader asks for more than a writer offers.
        on_offered_incompatible_qos(AnyDataWriter, OfferedIncompatibleQosStatus);
        /// A writer's lease ended.
        on_liveliness_lost(AnyDataWriter, LivelinessLostStatus);
        /// A reader came or went.
        on_publication_matched(AnyDataWriter, PublicationMatchedStatus);
        /// A DEADLINE was missed.
        on_requested_deadline_missed(AnyDataReader, RequestedDeadlineMissedStatus);
        /// A writer offers less than a reader asks for.
        on_requested_incompatible_qos(AnyDataReader, RequestedIncompatibleQosStatus);
        /// A sample was refused for lack of room.
        on_sample_rejected(AnyDataReader, SampleRejectedStatus);
        /// The liveliness of a writer changed.
        on_liveliness_changed(AnyDataReader, LivelinessChangedStatus);
        /// A writer came or went.
        on_subscription_matched(AnyDataReader, SubscriptionMatchedStatus);
        /// A sample was lost.
        on_sample_lost(AnyDataReader, SampleLostStatus);
    }
}
