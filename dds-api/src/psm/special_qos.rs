//! The special values that stand for a QoS. Operations know them by their addresses, as in the
//! standard's other platform specific models: a copy of one is a QoS like any other.

use std::sync::LazyLock;

use spindle_dds_qos::{
    DataReaderQos, DataWriterQos, DomainParticipantQos, PublisherQos, SubscriberQos, TopicQos,
};

macro_rules! special {
    ($($(#[$doc:meta])* $name:ident: $qos:ident;)+) => { $(
        $(#[$doc])*
        pub static $name: LazyLock<$qos> = LazyLock::new($qos::default);
    )+ };
}

special! {
    /// The default QoS of participants; in `set_default_participant_qos`, that before any was set.
    PARTICIPANT_QOS_DEFAULT: DomainParticipantQos;
    /// The default QoS of topics; in `set_default_topic_qos`, that before any was set.
    TOPIC_QOS_DEFAULT: TopicQos;
    /// The default QoS of publishers; in `set_default_publisher_qos`, that before any was set.
    PUBLISHER_QOS_DEFAULT: PublisherQos;
    /// The default QoS of subscribers; in `set_default_subscriber_qos`, that before any was set.
    SUBSCRIBER_QOS_DEFAULT: SubscriberQos;
    /// The default QoS of writers; in `set_default_datawriter_qos`, that before any was set.
    DATAWRITER_QOS_DEFAULT: DataWriterQos;
    /// The default QoS of readers; in `set_default_datareader_qos`, that before any was set.
    DATAREADER_QOS_DEFAULT: DataReaderQos;
    /// The default QoS of writers, with the policies of the topic in it (DDS 1.4 §2.2.2.4.1.5).
    DATAWRITER_QOS_USE_TOPIC_QOS: DataWriterQos;
    /// The default QoS of readers, with the policies of the topic in it (DDS 1.4 §2.2.2.5.2.5).
    DATAREADER_QOS_USE_TOPIC_QOS: DataReaderQos;
}

/// Whether `qos` is this special value.
pub(super) fn is_special<Q>(qos: &Q, special: &LazyLock<Q>) -> bool {
    std::ptr::eq(qos, &raw const **special)
}

/// The QoS that is meant; `None` for the default.
pub(super) fn given<'a, Q>(qos: Option<&'a Q>, default: &LazyLock<Q>) -> Option<&'a Q> {
    qos.filter(|qos| !is_special(*qos, default))
}
