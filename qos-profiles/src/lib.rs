//! Being written.
#![forbid(unsafe_code)]

mod duration;
mod entity;
mod fnmatch;
mod label;
mod length;
mod location;
mod policy;
mod policy_id;
mod rules;

pub use duration::{Duration, InvalidDuration};
pub use entity::{
    DataReaderQos, DataWriterQos, DomainParticipantFactoryQos, DomainParticipantQos, PublisherQos,
    SubscriberQos, TopicQos,
};
pub use fnmatch::fnmatch;
pub use length::Length;
pub use location::{Location, Origins};
pub use policy::*;
pub use policy_id::PolicyId;
pub use rules::{ImmutablePolicy, Incompatibility, Inconsistent, UnsupportedPolicy, incompatible};
