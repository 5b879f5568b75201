//! The QoS of each kind of entity: which policies it has, and its defaults.
//!
//! Members have the names of the standard's IDL (DDS 1.4 §2.3.3, XTypes 1.3 annex
//! D). `origins` records where a file set them and is not part of the value. The
//! checks of a QoS (consistency, mutability, matching, support) are in `rules`, one
//! per file.

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
