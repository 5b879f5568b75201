//! The listener traits. Every callback has an empty default.

use crate::participant::DomainParticipant;
use crate::publication::{AnyDataWriter, DataWriter};
use crate::status::{
    InconsistentTopicStatus, LivelinessChangedStatus, LivelinessLostStatus, MembershipStatus,
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

/// Called for one topic.
pub trait TopicListener: Send {
    callbacks! {
        /// Another topic of this name with another type was found.
        on_inconsistent_topic(AnyTopic, InconsistentTopicStatus);
    }
}

/// Called for one writer.
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

/// Called for one reader.
///
/// ```
/// use std::sync::mpsc::{Sender, channel};
///
/// use spindle_dds::{DataReader, DataReaderListener, DomainParticipant, StatusMask};
/// # use spindle_dds_test_types::flight::State;
///
/// struct Forward(Sender<u32>);
///
/// impl DataReaderListener<State> for Forward {
///     fn on_data_available(&mut self, reader: &DataReader<State>) {
///         while let Ok(samples) = reader.take(100) {
///             for sample in &samples {
///                 if let Ok(state) = sample.view() {
///                     let _ = self.0.send(state.number());
///                 }
///             }
///         }
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().join("domains").display().to_string();
/// # let participant = DomainParticipant::builder(0);
/// # let participant = participant.property("spindle.directory", &directory).create()?;
/// # let topic = participant.topic::<State>("State").create()?;
/// # let writer = participant.publisher().create()?.writer(&topic).create()?;
/// # let subscriber = participant.subscriber().create()?;
/// let (sender, numbers) = channel();
/// let mask = StatusMask::DATA_AVAILABLE;
/// let reader = subscriber.reader(&topic).listener(mask, Forward(sender)).create()?;
/// # while writer.matched_subscriptions()?.is_empty() {
/// #     std::thread::yield_now();
/// # }
/// # writer.write(&State { icao: 7, number: 1, ..State::default() })?;
/// assert_eq!(numbers.recv()?, 1);
/// # Ok(())
/// # }
/// ```
pub trait DataReaderListener<T>: Send {
    /// Samples are available. Called once for any number of samples: take until there are no
    /// more.
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
        /// Samples were lost: a BEST_EFFORT writer dropped them, or their bytes were invalid.
        on_sample_lost(DataReader<T>, SampleLostStatus);
    }
}

/// Called for the writers of a publisher that have no listener of their own for a status.
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

/// Called for the readers of a subscriber that have no listener of their own for a status.
pub trait SubscriberListener: Send {
    /// A reader of the subscriber has samples. Called instead of `on_data_available`.
    fn on_data_on_readers(&mut self, subscriber: &Subscriber) {
        let _ = subscriber;
    }

    /// Samples are available.
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
        /// Samples were lost: a BEST_EFFORT writer dropped them, or their bytes were invalid.
        on_sample_lost(AnyDataReader, SampleLostStatus);
    }
}

/// Called for the entities of a participant that have no listener for a status.
pub trait DomainParticipantListener: Send {
    /// The group has failed: no more samples are delivered. An extension of Spindle.
    fn on_failed(&mut self, participant: &DomainParticipant, reason: &str) {
        let _ = (participant, reason);
    }

    /// The participant has lost its group, and will come back by itself (property
    /// `spindle.rejoin`), or it is back. An extension of Spindle.
    fn on_membership_changed(
        &mut self,
        participant: &DomainParticipant,
        status: &MembershipStatus,
    ) {
        let _ = (participant, status);
    }

    /// A reader of a subscriber has samples. Called instead of `on_data_available`.
    fn on_data_on_readers(&mut self, subscriber: &Subscriber) {
        let _ = subscriber;
    }

    /// Samples are available.
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
        /// Samples were lost: a BEST_EFFORT writer dropped them, or their bytes were invalid.
        on_sample_lost(AnyDataReader, SampleLostStatus);
    }
}
