//! Whether what a writer offers is enough for what a reader requests (RxO).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::entity::{DataReaderQos, DataWriterQos, PublisherQos, SubscriberQos};
use crate::policy_id::PolicyId;

/// One policy of a writer that falls short of a reader's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incompatibility {
    /// Which policy.
    pub policy: PolicyId,
    /// What the writer offers.
    pub offered: String,
    /// What the reader requests.
    pub requested: String,
}

impl fmt::Display for Incompatibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            policy,
            offered,
            requested,
        } = self;
        write!(f, "{policy}: offered {offered}, requested {requested}")
    }
}

/// The policies for which the offer falls short of the request, by ascending
/// policy identifier; empty when writer and reader match (DDS 1.4 §2.2.3, XTypes
/// 1.3 §7.6.3.1). PARTITION is no part of this, see
/// [`Partition::matches`](crate::Partition::matches).
pub fn incompatible(
    offered: &DataWriterQos,
    offered_pub: &PublisherQos,
    requested: &DataReaderQos,
    requested_sub: &SubscriberQos,
) -> Vec<Incompatibility> {
    let mut found = endpoint(offered, requested);
    found.extend(presentation(offered_pub, requested_sub));
    found.sort_by_key(|incompatibility| incompatibility.policy.id());
    found
}

fn endpoint(offered: &DataWriterQos, requested: &DataReaderQos) -> Vec<Incompatibility> {
    let (o, r) = (offered, requested);
    let written = o.representation.written();
    let liveliness = |liveliness: &crate::Liveliness| {
        format!(
            "{} with lease {}",
            liveliness.kind, liveliness.lease_duration
        )
    };
    let rules = [
        falls_short(
            PolicyId::Durability,
            o.durability.kind < r.durability.kind,
            o.durability.kind,
            r.durability.kind,
        ),
        falls_short(
            PolicyId::Deadline,
            o.deadline.period > r.deadline.period,
            o.deadline.period,
            r.deadline.period,
        ),
        falls_short(
            PolicyId::LatencyBudget,
            o.latency_budget.duration > r.latency_budget.duration,
            o.latency_budget.duration,
            r.latency_budget.duration,
        ),
        falls_short(
            PolicyId::Ownership,
            o.ownership.kind != r.ownership.kind,
            o.ownership.kind,
            r.ownership.kind,
        ),
        falls_short(
            PolicyId::Liveliness,
            o.liveliness.kind < r.liveliness.kind
                || o.liveliness.lease_duration > r.liveliness.lease_duration,
            liveliness(&o.liveliness),
            liveliness(&r.liveliness),
        ),
        falls_short(
            PolicyId::Reliability,
            o.reliability.kind < r.reliability.kind,
            o.reliability.kind,
            r.reliability.kind,
        ),
        falls_short(
            PolicyId::DestinationOrder,
            o.destination_order.kind < r.destination_order.kind,
            o.destination_order.kind,
            r.destination_order.kind,
        ),
        falls_short(
            PolicyId::DataRepresentation,
            !r.representation.accepts(written),
            written,
            joined(r.representation.effective()),
        ),
    ];
    rules.into_iter().flatten().collect()
}

fn presentation(offered: &PublisherQos, requested: &SubscriberQos) -> Option<Incompatibility> {
    let (o, r) = (offered.presentation, requested.presentation);
    let short = o.access_scope < r.access_scope
        || (r.coherent_access && !o.coherent_access)
        || (r.ordered_access && !o.ordered_access);
    let text = |presentation: crate::Presentation| {
        let crate::Presentation {
            access_scope,
            coherent_access,
            ordered_access,
        } = presentation;
        format!("{access_scope}, coherent {coherent_access}, ordered {ordered_access}")
    };
    falls_short(PolicyId::Presentation, short, text(o), text(r))
}

fn falls_short(
    policy: PolicyId,
    short: bool,
    offered: impl fmt::Display,
    requested: impl fmt::Display,
) -> Option<Incompatibility> {
    short.then(|| Incompatibility {
        policy,
        offered: offered.to_string(),
        requested: requested.to_string(),
    })
}

fn joined(ids: &[crate::DataRepresentationId]) -> String {
    ids.iter()
        .map(|id| id.label())
        .collect::<Vec<_>>()
        .join(" or ")
}
