//! Communication statuses (DDS 1.4 §2.2.4.1).

mod counts;
mod mask;
mod status_flags;
mod status_stream;
mod values;

pub(crate) use counts::{IncompatibleCounts, LivelinessCounts, MatchCounts, TotalCount};
pub use mask::StatusMask;
pub(crate) use status_flags::{NOTIFIED, StatusFlags};
pub use status_stream::StatusStream;
pub use values::{
    HistoricalDataStatus, InconsistentTopicStatus, LivelinessChangedStatus, LivelinessLostStatus,
    MembershipStatus, OfferedDeadlineMissedStatus, OfferedIncompatibleQosStatus,
    PublicationMatchedStatus, QosPolicyCount, RejectedReason, RequestedDeadlineMissedStatus,
    RequestedIncompatibleQosStatus, SampleLostStatus, SampleRejectedStatus,
    SubscriptionMatchedStatus,
};
