//! The QoS of each kind of entity: which policies it has, and its defaults.
//!
//! Members bear the names of the standard's IDL (DDS 1.4 §2.3.3, XTypes 1.3 annex
//! D). `origins` remembers where a file set them and is no part of the value. What
//! may be asked of a QoS (consistency, changes, matching, what is built) is in
//! `rules`, one question a file.

mod data_reader;
mod data_writer;
mod domain_participant;
mod groups;
mod topic;

pub use data_reader::DataReaderQos;
pub use data_writer::DataWriterQos;
pub use domain_participant::{DomainParticipantFactoryQos, DomainParticipantQos};
pub use groups::{PublisherQos, SubscriberQos};
pub use topic::TopicQos;
