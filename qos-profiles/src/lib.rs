//! Being written.
#![forbid(unsafe_code)]

mod diagnostic;
mod duration;
mod entity;
mod fnmatch;
mod label;
mod length;
mod location;
mod policy;
mod policy_id;
mod provider;
mod rules;
mod xml;

pub use diagnostic::{Diagnostic, Severity};
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
pub use provider::{LoadError, QosProfile, QosProvider, UnknownProfile};
pub use rules::{ImmutablePolicy, Incompatibility, Inconsistent, UnsupportedPolicy, incompatible};
