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
//! The participants of a domain form a group. A participant that is enabled joins the group, or
//! founds it. Writers and readers may be created and deleted at any time. A participant that
//! fails is expelled, and the others go on. [`properties`] lists what can be configured.
#![forbid(unsafe_code)]

mod builtin;
mod cache;
mod choice;
mod condition;
mod discovery;
mod driver;
mod dynamic;
mod endpoint;
mod entity;
mod error;
mod handle;
mod history;
mod instance_names;
mod joining;
mod keys;
mod lease;
mod listener;
pub mod log;
pub mod monitor;
mod names;
mod participant;
mod profiles;
pub mod properties;
pub mod psm;
mod publication;
mod representation;
mod sample_type;
mod stamps;
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
/// Types at run time: what is announced of them, and data of types that are not compiled in.
pub use spindle_dds_xtypes as xtypes;

pub use builtin::{
    ParticipantBuiltinTopicData, PublicationBuiltinTopicData, SubscriptionBuiltinTopicData,
};
pub use condition::{
    Condition, GuardCondition, InstanceStateMask, ReadCondition, SampleStateMask, StateMasks,
    StatusCondition, ViewStateMask, WaitSet,
};
pub use dynamic::{Dynamic, DynamicTopicBuilder};
pub use error::{Error, Result, ReturnCode};
pub use handle::{Guid, InstanceHandle};
pub use listener::{
    DataReaderListener, DataWriterListener, DomainParticipantListener, PublisherListener,
    SharedListener, SubscriberListener, TopicListener,
};
pub use participant::{
    AnyEntity, DomainParticipant, DomainParticipantFactory, ParticipantBuilder,
    ParticipantCounters, Peer,
};
pub use profiles::check_qos_profiles;
pub use publication::{
    AnyDataWriter, DataWriter, DataWriterBuilder, Loan, Publisher, PublisherBuilder, Receipt,
};
/// How samples go to another participant.
pub use spindle_dds_transport::{
    BATCH_CLASSES as RDMA_BATCH_CLASSES, CHAIN_CLASSES as RDMA_CHAIN_CLASSES, RdmaCounters,
    hybrid::PeerPath, tcp::StreamCalls,
};
pub use status::{
    HistoricalDataStatus, InconsistentTopicStatus, LivelinessChangedStatus, LivelinessLostStatus,
    MembershipStatus, OfferedDeadlineMissedStatus, OfferedIncompatibleQosStatus,
    PublicationMatchedStatus, QosPolicyCount, RejectedReason, RequestedDeadlineMissedStatus,
    RequestedIncompatibleQosStatus, SampleLostStatus, SampleRejectedStatus, StatusMask,
    StatusStream, SubscriptionMatchedStatus,
};
pub use subscription::{
    AnyDataReader, DataReader, DataReaderBuilder, InstanceState, Sample, SampleInfo, SampleState,
    SampleStream, Samples, SamplesIter, Subscriber, SubscriberBuilder, ViewState,
};
pub use topic::{AnyTopic, Topic, TopicBuilder};

/// The code of the guide compiles.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../docs/guide/qos-profiles.md")]
    struct QosProfiles;
    #[doc = include_str!("../../docs/guide/xml-applications.md")]
    struct XmlApplications;
    #[doc = include_str!("../../docs/guide/two-hosts.md")]
    struct TwoHosts;
}
