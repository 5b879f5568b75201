//! Whether the policies of one entity go together.

use thiserror::Error;

use crate::entity::{
    DataReaderQos, DataWriterQos, DomainParticipantFactoryQos, DomainParticipantQos, PublisherQos,
    SubscriberQos, TopicQos,
};
use crate::length::Length;
use crate::location::{Location, Origins};
use crate::policy::{
    Deadline, Durability, DurabilityKind, DurabilityService, History, HistoryKind, Reliability,
    ReliabilityKind, ResourceLimits, TimeBasedFilter,
};
use crate::policy_id::PolicyId;
use crate::rules::in_file;

/// Policies of one entity that contradict themselves or each other: the standard's
/// INCONSISTENT_POLICY.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{policy} is inconsistent: {what}{}", in_file(.location))]
pub struct Inconsistent {
    /// The policy to look at first.
    pub policy: PolicyId,
    /// What is wrong and what would be right.
    pub what: String,
    /// Where the policy was set, if a file set it.
    pub location: Option<Location>,
}

macro_rules! check_consistency {
    ($($entity:ty),+) => { $(
        impl $entity {
            /// Checks that the policies go together; the first contradiction is
            /// the error (INCONSISTENT_POLICY).
            pub fn check_consistency(&self) -> Result<(), Inconsistent> {
                self.inconsistencies().into_iter().next().map_or(Ok(()), Err)
            }
        }
    )+ };
}

check_consistency!(
    DomainParticipantFactoryQos,
    DomainParticipantQos,
    TopicQos,
    PublisherQos,
    SubscriberQos,
    DataWriterQos,
    DataReaderQos
);

macro_rules! nothing_to_contradict {
    ($($entity:ty),+) => { $(
        impl $entity {
            /// All contradictions; there are none among these policies.
            pub fn inconsistencies(&self) -> Vec<Inconsistent> {
                Vec::new()
            }
        }
    )+ };
}

nothing_to_contradict!(
    DomainParticipantFactoryQos,
    DomainParticipantQos,
    PublisherQos,
    SubscriberQos
);

impl TopicQos {
    /// All contradictions: HISTORY and RESOURCE_LIMITS (DDS 1.4 §2.2.3.18,
    /// §2.2.3.19), and the same within DURABILITY_SERVICE.
    pub fn inconsistencies(&self) -> Vec<Inconsistent> {
        let mut found = Found::new(&self.origins);
        found.storage(&self.history, &self.resource_limits);
        found.service(&self.durability_service);
        found.list
    }
}

impl DataWriterQos {
    /// All contradictions: HISTORY and RESOURCE_LIMITS (DDS 1.4 §2.2.3.18,
    /// §2.2.3.19), the same within DURABILITY_SERVICE, and DURABILITY and RELIABILITY.
    pub fn inconsistencies(&self) -> Vec<Inconsistent> {
        let mut found = Found::new(&self.origins);
        found.storage(&self.history, &self.resource_limits);
        found.service(&self.durability_service);
        found.logs(&self.durability, &self.reliability);
        found.list
    }
}

impl DataReaderQos {
    /// All contradictions: HISTORY and RESOURCE_LIMITS (DDS 1.4 §2.2.3.18,
    /// §2.2.3.19), DEADLINE and TIME_BASED_FILTER (§2.2.3.7, §2.2.3.12).
    pub fn inconsistencies(&self) -> Vec<Inconsistent> {
        let mut found = Found::new(&self.origins);
        found.storage(&self.history, &self.resource_limits);
        found.pace(&self.deadline, &self.time_based_filter);
        found.list
    }
}

/// The contradictions found so far in one entity QoS.
struct Found<'a> {
    origins: &'a Origins,
    list: Vec<Inconsistent>,
}

impl<'a> Found<'a> {
    fn new(origins: &'a Origins) -> Self {
        Self {
            origins,
            list: Vec::new(),
        }
    }

    /// Adds a contradiction; it is placed at the first of `policies` that a file set.
    fn add(&mut self, policies: &[PolicyId], what: String) {
        let set = policies
            .iter()
            .find(|&&policy| self.origins.get(policy).is_some());
        let Some(&policy) = set.or_else(|| policies.first()) else {
            return;
        };
        let location = self.origins.get(policy).cloned();
        self.list.push(Inconsistent {
            policy,
            what,
            location,
        });
    }

    fn storage(&mut self, history: &History, limits: &ResourceLimits) {
        if let Some(what) = zero_depth(history) {
            self.add(&[PolicyId::History], what);
        }
        if let Some(what) = depth_above_limit(history, limits) {
            self.add(&[PolicyId::History, PolicyId::ResourceLimits], what);
        }
        for what in limits_apart(limits) {
            self.add(&[PolicyId::ResourceLimits], what);
        }
    }

    fn service(&mut self, service: &DurabilityService) {
        let (history, limits) = (service.history(), service.resource_limits());
        let found = zero_depth(&history)
            .into_iter()
            .chain(depth_above_limit(&history, &limits))
            .chain(limits_apart(&limits));
        for what in found {
            self.add(&[PolicyId::DurabilityService], what);
        }
    }

    fn logs(&mut self, durability: &Durability, reliability: &Reliability) {
        if durability.kind == DurabilityKind::Persistent
            && reliability.kind != ReliabilityKind::Reliable
        {
            self.add(
                &[PolicyId::Reliability, PolicyId::Durability],
                format!(
                    "samples of a writer with {} are logged in the order that all logs share, and \
                     those of a {} writer have none; it has to be {}",
                    durability.kind,
                    reliability.kind,
                    ReliabilityKind::Reliable
                ),
            );
        }
    }

    fn pace(&mut self, deadline: &Deadline, filter: &TimeBasedFilter) {
        let (period, separation) = (deadline.period, filter.minimum_separation);
        if period < separation {
            self.add(
                &[PolicyId::Deadline, PolicyId::TimeBasedFilter],
                format!(
                    "a deadline of {period} is missed by a filter that keeps samples \
                     {separation} apart; the period must not be shorter"
                ),
            );
        }
    }
}

fn zero_depth(history: &History) -> Option<String> {
    let zero = history.kind == HistoryKind::KeepLast && history.depth == 0;
    zero.then(|| "KEEP_LAST of depth 0 keeps nothing; the least depth is 1".to_owned())
}

/// The standard bounds the depth by max_samples_per_instance; where that is
/// unlimited, what bounds an instance is max_samples.
fn depth_above_limit(history: &History, limits: &ResourceLimits) -> Option<String> {
    let depth = Length::Limited(history.depth);
    let bounds = [
        ("max_samples_per_instance", limits.max_samples_per_instance),
        ("max_samples", limits.max_samples),
    ];
    // A limit of 0 is told by itself.
    let exceeded = |bound: Length| bound > Length::Limited(0) && depth > bound;
    let (name, bound) = bounds.iter().find(|(_, bound)| exceeded(*bound))?;
    (history.kind == HistoryKind::KeepLast).then(|| {
        format!("a depth of {depth} does not fit in {name} {bound}; it must not exceed it")
    })
}

fn limits_apart(limits: &ResourceLimits) -> Vec<String> {
    let members = [
        ("max_samples", limits.max_samples),
        ("max_instances", limits.max_instances),
        ("max_samples_per_instance", limits.max_samples_per_instance),
    ];
    let mut found: Vec<String> = members
        .iter()
        .filter(|(_, limit)| *limit == Length::Limited(0))
        .map(|(name, _)| format!("{name} 0 leaves no room; the least is 1"))
        .collect();
    // An unlimited max_samples_per_instance sets no bound of its own, so it stands
    // beside any max_samples, although -1 compares otherwise.
    let bound = limits.max_samples_per_instance;
    if bound != Length::Unlimited && limits.max_samples < bound {
        found.push(format!(
            "max_samples {} is below max_samples_per_instance {bound}; it must not be",
            limits.max_samples
        ));
    }
    found
}
