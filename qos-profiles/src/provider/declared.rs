//! Participants that files declare, with all that they inherit and refer to.

use spindle_dds_xtypes::DynamicType;
use thiserror::Error;

use crate::diagnostic::did_you_mean;
use crate::entity::{
    DataReaderQos, DataWriterQos, DomainParticipantQos, PublisherQos, SubscriberQos, TopicQos,
};
use crate::location::Location;

/// A `domain_participant` of a file (DDS-XML 1.0 §7.3.5): what a program creates by its name.
#[derive(Debug, Clone)]
pub struct DeclaredParticipant {
    /// Its name in the library.
    pub name: String,
    /// The id of its domain; 0 if the files say none.
    pub domain_id: u32,
    /// Its QoS; `None` if the files have none for it.
    pub qos: Option<DomainParticipantQos>,
    /// Its topics, those of its domain included.
    pub topics: Vec<DeclaredTopic>,
    /// Its publishers.
    pub publishers: Vec<DeclaredPublisher>,
    /// Its subscribers.
    pub subscribers: Vec<DeclaredSubscriber>,
    /// Where it stands.
    pub location: Location,
}

/// A `topic` of a file.
#[derive(Debug, Clone)]
pub struct DeclaredTopic {
    /// Its name in the file, by which writers and readers refer to it.
    pub name: String,
    /// Its name in the domain.
    pub topic_name: String,
    /// The name under which its type is registered.
    pub registered_type: String,
    /// The name of its type.
    pub type_name: String,
    /// Its type; `None` if no file describes it.
    pub ty: Option<DynamicType>,
    /// Its QoS; `None` if the files have none for it.
    pub qos: Option<TopicQos>,
    /// Where it stands.
    pub location: Location,
}

/// A `publisher` of a file.
#[derive(Debug, Clone)]
pub struct DeclaredPublisher {
    /// Its name; empty for that of writers that stand in no publisher.
    pub name: String,
    /// Its QoS; `None` if the files have none for it.
    pub qos: Option<PublisherQos>,
    /// Its writers.
    pub writers: Vec<DeclaredWriter>,
    /// Where it stands.
    pub location: Location,
}

/// A `subscriber` of a file.
#[derive(Debug, Clone)]
pub struct DeclaredSubscriber {
    /// Its name; empty for that of readers that stand in no subscriber.
    pub name: String,
    /// Its QoS; `None` if the files have none for it.
    pub qos: Option<SubscriberQos>,
    /// Its readers.
    pub readers: Vec<DeclaredReader>,
    /// Where it stands.
    pub location: Location,
}

/// A `data_writer` of a file.
#[derive(Debug, Clone)]
pub struct DeclaredWriter {
    /// Its name.
    pub name: String,
    /// The name of its topic in the file.
    pub topic: String,
    /// Its QoS; `None` if the files have none for it.
    pub qos: Option<DataWriterQos>,
    /// Where it stands.
    pub location: Location,
}

/// A `data_reader` of a file.
#[derive(Debug, Clone)]
pub struct DeclaredReader {
    /// Its name.
    pub name: String,
    /// The name of its topic in the file.
    pub topic: String,
    /// Its QoS; `None` if the files have none for it.
    pub qos: Option<DataReaderQos>,
    /// An element that is not supported, and without which it would be another reader.
    pub refused: Option<String>,
    /// Where it stands.
    pub location: Location,
}

/// No loaded file has a participant of this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "no participant of a file is named '{name}'{}",
    suggestion(name, known)
)]
pub struct UnknownParticipant {
    /// The name that was looked for.
    pub name: String,
    /// The names of all participants, in the order of the files.
    pub known: Vec<String>,
}

fn suggestion(name: &str, known: &[String]) -> String {
    match did_you_mean(name, known.iter().map(String::as_str)) {
        hint if !hint.is_empty() => hint,
        _ if known.is_empty() => "; the files have no participants".to_owned(),
        _ => format!("; there are {}", known.join(", ")),
    }
}
