//! Policies set member by member; element names are the IDL's member names.

use crate::diagnostic::{Report, quote};
use crate::length::Length;
use crate::policy::{
    DataRepresentation, Deadline, DestinationOrder, Durability, DurabilityService, EntityFactory,
    GroupData, History, LatencyBudget, Lifespan, Liveliness, Ownership, OwnershipStrength,
    Partition, Presentation, ReaderDataLifecycle, Reliability, ResourceLimits, TimeBasedFilter,
    TopicData, TransportPriority, TypeConsistencyEnforcement, UserData, WriterDataLifecycle,
};
use crate::xml::members::{attributes, for_each};
use crate::xml::tree::Element;
use crate::xml::value::Value;

/// A policy that an element can change.
pub(crate) trait ReadPolicy {
    /// Sets the members that `element` has and leaves the others.
    fn read(&mut self, element: &Element, report: &mut Report);

    /// The members with their values, as they are written in a file.
    fn members(&self) -> Vec<(String, String)>;
}

macro_rules! policy {
    ($policy:ty: $($member:ident),+) => {
        impl ReadPolicy for $policy {
            fn read(&mut self, element: &Element, report: &mut Report) {
                attributes(element, &[], report);
                let known = &[$(stringify!($member)),+];
                for_each(element, known, false, report, |member, report| {
                    $(
                        if member.name == stringify!($member) {
                            self.$member.set(member, report);
                        }
                    )+
                });
            }

            fn members(&self) -> Vec<(String, String)> {
                vec![$((stringify!($member).to_owned(), self.$member.show())),+]
            }
        }
    };
}

policy!(UserData: value);
policy!(TopicData: value);
policy!(GroupData: value);
policy!(Durability: kind);
policy!(DurabilityService:
    service_cleanup_delay, history_kind, history_depth, max_samples, max_instances,
    max_samples_per_instance);
policy!(Presentation: access_scope, coherent_access, ordered_access);
policy!(Deadline: period);
policy!(LatencyBudget: duration);
policy!(Lifespan: duration);
policy!(TimeBasedFilter: minimum_separation);
policy!(Ownership: kind);
policy!(OwnershipStrength: value);
policy!(Liveliness: kind, lease_duration);
policy!(Partition: name);
policy!(Reliability: kind, max_blocking_time);
policy!(TransportPriority: value);
policy!(DestinationOrder: kind);
policy!(History: kind, depth);
policy!(EntityFactory: autoenable_created_entities);
policy!(WriterDataLifecycle: autodispose_unregistered_instances);
policy!(ReaderDataLifecycle: autopurge_nowriter_samples_delay, autopurge_disposed_samples_delay);
policy!(DataRepresentation: value);
policy!(TypeConsistencyEnforcement:
    kind, ignore_sequence_bounds, ignore_string_bounds, ignore_member_names,
    prevent_type_widening, force_type_validation);

/// The schema of DDS-XML allows two members more than DDS 1.4 has; they are hints.
impl ReadPolicy for ResourceLimits {
    fn read(&mut self, element: &Element, report: &mut Report) {
        attributes(element, &[], report);
        let known = &[
            "max_samples",
            "max_instances",
            "max_samples_per_instance",
            "initial_samples",
            "initial_instances",
        ];
        for_each(
            element,
            known,
            false,
            report,
            |member, report| match member.name.as_str() {
                "max_samples" => self.max_samples.set(member, report),
                "max_instances" => self.max_instances.set(member, report),
                "max_samples_per_instance" => self.max_samples_per_instance.set(member, report),
                hint => {
                    Length::default().set(member, report);
                    let message = format!("{} is a hint that is not used", quote(hint));
                    report.warning(member.at, message);
                }
            },
        );
    }

    fn members(&self) -> Vec<(String, String)> {
        let members = [
            ("max_samples", self.max_samples),
            ("max_instances", self.max_instances),
            ("max_samples_per_instance", self.max_samples_per_instance),
        ];
        members
            .map(|(name, limit)| (name.to_owned(), limit.show()))
            .into()
    }
}
