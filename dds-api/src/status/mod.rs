//! Statuses: which there are, what they say, and where they are kept.

mod counts;
mod mask;
mod status_flags;
mod values;

pub(crate) use counts::{IncompatibleCounts, LivelinessCounts, MatchCounts, TotalCount};
pub use mask::StatusMask;
pub(crate) use status_flags::StatusFlags;
pub use values::{
    InconsistentTopicStatus, LivelinessChangedStatus, LivelinessLostStatus,
    OfferedDeadlineMissedStatus, OfferedIncompatibleQosStatus, PublicationMatchedStatus,
    QosPolicyCount, RejectedReason, RequestedDeadlineMissedStatus, RequestedIncompatibleQosStatus,
    SampleLostStatus, SampleRejectedStatus, SubscriptionMatchedStatus,
};
