//! The listener traits. Every callback has an empty default.

use std::sync::PoisonError;

use super::SharedListener;
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

/// A trait whose callbacks have empty defaults. A listener that is shared is a listener.
macro_rules! listener {
    (
        $(#[$doc:meta])*
        $listener:ident $(<$parameter:ident>)? {
            $(
                $(#[$callback_doc:meta])*
                $name:ident($entity:ident: $of:ty $(, $status:ident: $value:ty)?);
            )+
        }
    ) => {
        $(#[$doc])*
        pub trait $listener $(<$parameter>)?: Send {
            $(
                $(#[$callback_doc])*
                fn $name(&mut self, $entity: &$of $(, $status: &$value)?) {
                    let _ = $entity;
                    $( let _ = $status; )?
                }
            )+
        }

        impl<$($parameter,)? L> $listener $(<$parameter>)? for SharedListener<L>
        where
            L: $listener $(<$parameter>)? + ?Sized,
        {
            $(
                fn $name(&mut self, $entity: &$of $(, $status: &$value)?) {
                    let mut listener = self.lock().unwrap_or_else(PoisonError::into_inner);
                    listener.$name($entity $(, $status)?);
                }
            )+
        }
    };
}

listener! {
    /// Called for one topic.
    TopicListener {
        /// Another topic of this name with another type was found.
        on_inconsistent_topic(topic: AnyTopic, status: InconsistentTopicStatus);
    }
}

listener! {
    /// Called for one writer.
    DataWriterListener<T> {
        /// The writer did not keep its DEADLINE.
        on_offered_deadline_missed(writer: DataWriter<T>, status: OfferedDeadlineMissedStatus);
        /// A reader asks for more than the writer offers.
        on_offered_incompatible_qos(writer: DataWriter<T>, status: OfferedIncompatibleQosStatus);
        /// The writer's lease ended.
        on_liveliness_lost(writer: DataWriter<T>, status: LivelinessLostStatus);
        /// A reader came or went.
        on_publication_matched(writer: DataWriter<T>, status: PublicationMatchedStatus);
    }
}

listener! {
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
    DataReaderListener<T> {
        /// Samples are available. Called once for any number of samples: take until there are no
        /// more.
        on_data_available(reader: DataReader<T>);
        /// A DEADLINE was missed.
        on_requested_deadline_missed(reader: DataReader<T>, status: RequestedDeadlineMissedStatus);
        /// A writer offers less than the reader asks for.
        on_requested_incompatible_qos(reader: DataReader<T>, status: RequestedIncompatibleQosStatus);
        /// A sample was refused for lack of room.
        on_sample_rejected(reader: DataReader<T>, status: SampleRejectedStatus);
        /// The liveliness of a writer changed.
        on_liveliness_changed(reader: DataReader<T>, status: LivelinessChangedStatus);
        /// A writer came or went.
        on_subscription_matched(reader: DataReader<T>, status: SubscriptionMatchedStatus);
        /// Samples were lost: a BEST_EFFORT writer dropped them, or their bytes were invalid.
        on_sample_lost(reader: DataReader<T>, status: SampleLostStatus);
    }
}

listener! {
    /// Called for the writers of a publisher that have no listener of their own for a status.
    PublisherListener {
        /// A writer did not keep its DEADLINE.
        on_offered_deadline_missed(writer: AnyDataWriter, status: OfferedDeadlineMissedStatus);
        /// A reader asks for more than a writer offers.
        on_offered_incompatible_qos(writer: AnyDataWriter, status: OfferedIncompatibleQosStatus);
        /// A writer's lease ended.
        on_liveliness_lost(writer: AnyDataWriter, status: LivelinessLostStatus);
        /// A reader came or went.
        on_publication_matched(writer: AnyDataWriter, status: PublicationMatchedStatus);
    }
}

listener! {
    /// Called for the readers of a subscriber that have no listener of their own for a status.
    SubscriberListener {
        /// A reader of the subscriber has samples. Called instead of `on_data_available`.
        on_data_on_readers(subscriber: Subscriber);
        /// Samples are available.
        on_data_available(reader: AnyDataReader);
        /// A DEADLINE was missed.
        on_requested_deadline_missed(reader: AnyDataReader, status: RequestedDeadlineMissedStatus);
        /// A writer offers less than a reader asks for.
        on_requested_incompatible_qos(reader: AnyDataReader, status: RequestedIncompatibleQosStatus);
        /// A sample was refused for lack of room.
        on_sample_rejected(reader: AnyDataReader, status: SampleRejectedStatus);
        /// The liveliness of a writer changed.
        on_liveliness_changed(reader: AnyDataReader, status: LivelinessChangedStatus);
        /// A writer came or went.
        on_subscription_matched(reader: AnyDataReader, status: SubscriptionMatchedStatus);
        /// Samples were lost: a BEST_EFFORT writer dropped them, or their bytes were invalid.
        on_sample_lost(reader: AnyDataReader, status: SampleLostStatus);
    }
}

listener! {
    /// Called for the entities of a participant that have no listener for a status.
    DomainParticipantListener {
        /// The group has failed: no more samples are delivered. An extension of Spindle.
        on_failed(participant: DomainParticipant, reason: str);
        /// The participant has lost its group, and will come back by itself (property
        /// `spindle.rejoin`), or it is back. An extension of Spindle.
        on_membership_changed(participant: DomainParticipant, status: MembershipStatus);
        /// A reader of a subscriber has samples. Called instead of `on_data_available`.
        on_data_on_readers(subscriber: Subscriber);
        /// Samples are available.
        on_data_available(reader: AnyDataReader);
        /// Another topic of the same name with another type was found.
        on_inconsistent_topic(topic: AnyTopic, status: InconsistentTopicStatus);
        /// A writer did not keep its DEADLINE.
        on_offered_deadline_missed(writer: AnyDataWriter, status: OfferedDeadlineMissedStatus);
        /// A reader asks for more than a writer offers.
        on_offered_incompatible_qos(writer: AnyDataWriter, status: OfferedIncompatibleQosStatus);
        /// A writer's lease ended.
        on_liveliness_lost(writer: AnyDataWriter, status: LivelinessLostStatus);
        /// A reader came or went.
        on_publication_matched(writer: AnyDataWriter, status: PublicationMatchedStatus);
        /// A DEADLINE was missed.
        on_requested_deadline_missed(reader: AnyDataReader, status: RequestedDeadlineMissedStatus);
        /// A writer offers less than a reader asks for.
        on_requested_incompatible_qos(reader: AnyDataReader, status: RequestedIncompatibleQosStatus);
        /// A sample was refused for lack of room.
        on_sample_rejected(reader: AnyDataReader, status: SampleRejectedStatus);
        /// The liveliness of a writer changed.
        on_liveliness_changed(reader: AnyDataReader, status: LivelinessChangedStatus);
        /// A writer came or went.
        on_subscription_matched(reader: AnyDataReader, status: SubscriptionMatchedStatus);
        /// Samples were lost: a BEST_EFFORT writer dropped them, or their bytes were invalid.
        on_sample_lost(reader: AnyDataReader, status: SampleLostStatus);
    }
}
