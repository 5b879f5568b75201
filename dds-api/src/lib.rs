//! Spindle DDS: an OMG DDS middleware whose topics are carried by atomic
//! multicast. Every reader of a topic sees the same samples in the same order.
//!
//! ```text
//!   DomainParticipant --- Topic<T>
//!     |-- Publisher  --- DataWriter<T>   loan() / write()
//!     `-- Subscriber --- DataReader<T>   take() / listener / WaitSet / stream()
//! ```
//!
//! Names, policies, defaults, statuses and return codes are those of DDS 1.4;
//! [`psm`] has the literal operations of its platform specific model. Types come
//! from IDL: `spindle-dds-idl` compiles it in a `build.rs`, [`include_idl!`]
//! brings it in.
//!
//! In this version a group is formed once: participants are created disabled,
//! their writers and readers are created, and `enable` meets the other
//! participants of the domain on this host. How many there are is the property
//! `spindle.group.size`; [`properties`] lists all properties.
#![forbid(unsafe_code)]

mod cache;
mod choice;
mod condition;
mod driver;
mod entity;
mod error;
mod formation;
mod handle;
mod listener;
mod participant;
mod profiles;
pub mod properties;
pub mod psm;
mod publication;
mod status;
mod subscription;
#[doc(hidden)]
pub mod testing;
mod time;
mod topic;
mod wire;

/// What generated code needs.
pub use spindle_dds_idl_runtime as idl;
pub use spindle_dds_idl_runtime::include_idl;
/// Policies, entity QoS, profiles.
pub use spindle_dds_qos as qos;
pub use spindle_dds_qos::Duration;

pub use condition::{
    Condition, GuardCondition, InstanceStateMask, ReadCondition, SampleStateMask, StateMasks,
    StatusCondition, ViewStateMask, WaitSet,
};
pub use error::{Error, Result, ReturnCode};
pub use handle::{Guid, InstanceHandle};
pub use listener::{
    DataReaderListener, DataWriterListener, DomainParticipantListener, PublisherListener,
    SubscriberListener, TopicListener,
};
pub use participant::{
    DomainParticipant, DomainParticipantFactory, ParticipantBuilder, ParticipantCounters,
};
pub use publication::{
    AnyDataWriter, DataWriter, DataWriterBuilder, Loan, Publisher, PublisherBuilder, Receipt,
};
pub use status::{
    InconsistentTopicStatus, LivelinessChangedStatus, LivelinessLostStatus,
    OfferedDeadlineMissedStatus, OfferedIncompatibleQosStatus, PublicationMatchedStatus,
    QosPolicyCount, RejectedReason, RequestedDeadlineMissedStatus, RequestedIncompatibleQosStatus,
    SampleLostStatus, SampleRejectedStatus, StatusMask, SubscriptionMatchedStatus,
};
pub use subscription::{
    AnyDataReader, DataReader, DataReaderBuilder, InstanceState, Sample, SampleInfo, SampleState,
    SampleStream, Samples, SamplesIter, Subscriber, SubscriberBuilder, ViewState,
};
pub use topic::{AnyTopic, Topic, TopicBuilder};
