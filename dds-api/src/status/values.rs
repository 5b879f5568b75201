//! The values of the statuses (DDS 1.4 §2.2.4.1). `*_change` fields count since the status was
//! last read, or passed to a listener.

use std::time::SystemTime;

use spindle_dds_qos::PolicyId;

use crate::handle::InstanceHandle;

/// INCONSISTENT_TOPIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InconsistentTopicStatus {
    /// Topics of this name with an inconsistent type that were discovered.
    pub total_count: i32,
    /// Of these, since last read.
    pub total_count_change: i32,
}

/// SAMPLE_LOST. A sample is lost when a BEST_EFFORT writer drops it for want of room, or while the
/// participant of the reader or the writer has lost its group: readers learn that from the writer's
/// next sample. It is also lost when its bytes are not a valid sample of the reader's type, and when
/// a RELIABLE reader has max_instances that are alive and none to give up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleLostStatus {
    /// Samples that were lost.
    pub total_count: i32,
    /// Of these, since last read.
    pub total_count_change: i32,
}

/// Whether a participant is a member of its group, and when it was not. An extension of Spindle.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MembershipStatus {
    /// Whether it is a member now.
    pub is_member: bool,
    /// How often it has lost its group.
    pub total_count: i32,
    /// Of these, since last read.
    pub total_count_change: i32,
    /// Why it lost its group the last time, or why it has not come back yet.
    pub last_reason: Option<String>,
    /// When it lost its group the last time, by the system's clock.
    pub out_since: Option<SystemTime>,
    /// When it came back from that; `None` while it is out.
    pub back_since: Option<SystemTime>,
    /// Samples of its RELIABLE writers that the group had not delivered when it was lost, and that
    /// the HISTORY of their writers did not keep.
    pub samples_gone: u64,
}

/// The historical data of a reader whose DURABILITY is TRANSIENT_LOCAL or TRANSIENT: samples that were
/// written before it was matched with their writers. Counts are of the transfer that is awaited, or else of
/// the last one. An extension of Spindle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HistoricalDataStatus {
    /// Whether historical data is to come. What writers write meanwhile is shown after it.
    pub is_awaiting: bool,
    /// Samples and other messages that have come from participants that keep them.
    pub samples: u64,
    /// Their bytes, with 64 for each of them beside its payload.
    pub bytes: u64,
    /// Participants that more is to come from.
    pub donors: usize,
    /// Participants, or topics, of whose history no keeper was left before all of it had come.
    pub lost_sources: usize,
}

/// The limit by which a sample was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RejectedReason {
    /// None was rejected.
    #[default]
    NotRejected,
    /// `max_instances`.
    ByInstancesLimit,
    /// `max_samples`.
    BySamplesLimit,
    /// `max_samples_per_instance`.
    BySamplesPerInstanceLimit,
}

/// SAMPLE_REJECTED: RESOURCE_LIMITS left no room for a sample, or for the disposal of an instance
/// that is not known. At a RELIABLE reader it waits, is counted once, and comes when a take has made
/// room. Where no take can, as max_instances are alive, it is dropped, and counted in
/// SAMPLE_LOST, too. A BEST_EFFORT reader drops what it rejects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleRejectedStatus {
    /// Samples that were rejected.
    pub total_count: i32,
    /// Of these, since last read.
    pub total_count_change: i32,
    /// Why the last one was rejected.
    pub last_reason: RejectedReason,
    /// The instance of that one.
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

/// LIVELINESS_CHANGED. A writer is alive from its match on. A writer that is deleted, or leaves
/// with its participant, is counted no more. A writer whose participant fails is not alive: it is
/// unmatched at the same position in the order of samples, which is the same at all readers. So
/// it is counted as not alive in the next status that is read or passed to a listener, and in none
/// after that, unless it has come back before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LivelinessChangedStatus {
    /// Matched writers, which are alive.
    pub alive_count: i32,
    /// Writers that were matched when their participant failed, since the status was last read.
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

/// How often a policy was incompatible (`QosPolicyCount`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QosPolicyCount {
    /// The policy.
    pub policy: PolicyId,
    /// How often it was incompatible.
    pub count: i32,
}

/// OFFERED_INCOMPATIBLE_QOS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OfferedIncompatibleQosStatus {
    /// Readers that ask for more than this writer offers.
    pub total_count: i32,
    /// Of these, since last read.
    pub total_count_change: i32,
    /// A policy that is incompatible with the last of them.
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
    /// A policy that is incompatible with the last of them.
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
