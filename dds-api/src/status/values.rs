//! What the statuses say (DDS 1.4 §2.2.4.1). `*_change` fields count since the
//! status was last read, or last given to a listener.

use spindle_dds_qos::PolicyId;

use crate::handle::InstanceHandle;

/// INCONSISTENT_TOPIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InconsistentTopicStatus {
    /// Topics of this name with another type that were found.
    pub total_count: i32,
    /// Of these, since last read.
    pub total_count_change: i32,
}

/// SAMPLE_LOST.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleLostStatus {
    /// Samples that were lost: their bytes made no sense.
    pub total_count: i32,
    /// Of these, since last read.
    pub total_count_change: i32,
}

/// Which limit a sample was refused by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RejectedReason {
    /// None was refused.
    #[default]
    NotRejected,
    /// `max_instances`.
    ByInstancesLimit,
    /// `max_samples`.
    BySamplesLimit,
    /// `max_samples_per_instance`.
    BySamplesPerInstanceLimit,
}

/// SAMPLE_REJECTED.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleRejectedStatus {
    /// Samples that were refused.
    pub total_count: i32,
    /// Of these, since last read.
    pub total_count_change: i32,
    /// Why the last one was.
    pub last_reason: RejectedReason,
    /// Which instance it was of.
    pub last_instance_handle: InstanceHandle,
}

/// LIVELINESS_LOST.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LivelinessLostStatus {
    /// Times the writer's lease ended.
    pub total_count: i32,
    /// Of these, since last read.
    pub total_count_change: i32,
}

/// LIVELINESS_CHANGED. A writer is alive from its match on. One that is deleted, or
/// leaves with its participant, is counted no more; one whose participant fails is not
/// alive from then on, and as it is expelled for good, it stays so. Both take effect
/// where it is unmatched: at one place in the order of samples, the same at all readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LivelinessChangedStatus {
    /// Matched writers, which are alive.
    pub alive_count: i32,
    /// Writers that were matched when their participant failed.
    pub not_alive_count: i32,
    /// Change of the former since last read.
    pub alive_count_change: i32,
    /// Change of the latter since last read.
    pub not_alive_count_change: i32,
    /// The writer that came or went last.
    pub last_publication_handle: InstanceHandle,
}

/// OFFERED_DEADLINE_MISSED.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfferedDeadlineMissedStatus {
    /// Deadlines missed.
    pub total_count: i32,
    /// Of these, since last read.
    pub total_count_change: i32,
    /// The instance that missed last.
    pub last_instance_handle: InstanceHandle,
}

/// REQUESTED_DEADLINE_MISSED.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestedDeadlineMissedStatus {
    /// Deadlines missed.
    pub total_count: i32,
    /// Of these, since last read.
    pub total_count_change: i32,
    /// The instance that missed last.
    pub last_instance_handle: InstanceHandle,
}

/// How often a policy kept endpoints apart (`QosPolicyCount`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QosPolicyCount {
    /// Which policy.
    pub policy: PolicyId,
    /// How often.
    pub count: i32,
}

/// OFFERED_INCOMPATIBLE_QOS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OfferedIncompatibleQosStatus {
    /// Readers that ask for more than this writer offers.
    pub total_count: i32,
    /// Of these, since last read.
    pub total_count_change: i32,
    /// A policy by which the last of them differs.
    pub last_policy: Option<PolicyId>,
    /// How often each policy was the cause.
    pub policies: Vec<QosPolicyCount>,
}

/// REQUESTED_INCOMPATIBLE_QOS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestedIncompatibleQosStatus {
    /// Writers that offer less than this reader asks for.
    pub total_count: i32,
    /// Of these, since last read.
    pub total_count_change: i32,
    /// A policy by which the last of them differs.
    pub last_policy: Option<PolicyId>,
    /// How often each policy was the cause.
    pub policies: Vec<QosPolicyCount>,
}

/// PUBLICATION_MATCHED.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PublicationMatchedStatus {
    /// Readers that were ever matched.
    pub total_count: i32,
    /// Of these, since last read.
    pub total_count_change: i32,
    /// Readers that are matched now.
    pub current_count: i32,
    /// Change since last read.
    pub current_count_change: i32,
    /// The reader that came or went last.
    pub last_subscription_handle: InstanceHandle,
}

/// SUBSCRIPTION_MATCHED.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SubscriptionMatchedStatus {
    /// Writers that were ever matched.
    pub total_count: i32,
    /// Of these, since last read.
    pub total_count_change: i32,
    /// Writers that are matched now.
    pub current_count: i32,
    /// Change since last read.
    pub current_count_change: i32,
    /// The writer that came or went last.
    pub last_publication_handle: InstanceHandle,
}
