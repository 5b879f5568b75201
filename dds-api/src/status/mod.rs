//! Statuses: which there are, what they say, and where they are kept.

mod beacon;
mod counts;
mod mask;
mod values;

pub(crate) use beacon::Beacon;
pub(crate) use counts::{IncompatibleCounts, LivelinessCounts, MatchCounts, TotalCount};
pub use mask::StatusMask;
pub use values::{
    InconsistentTopicStatus, LivelinessChangedStatus, LivelinessLostStatus,
    OfferedDeadlineMissedStatus, OfferedIncompatibleQosStatus, PublicationMatchedStatus,
    QosPolicyCount, RejectedReason, RequestedDeadlineMissedStatus, RequestedIncompatibleQosStatus,
    SampleLostStatus, SampleRejectedStatus, SubscriptionMatchedStatus,
};
