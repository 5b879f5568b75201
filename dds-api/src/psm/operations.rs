//! Which operations of the standard exist.

macro_rules! operations {
    ($( $interface:literal: present [$($present:literal)*] open [$($open:literal)*] )+) => {
        /// Every operation of the standard: interface, name, whether it exists.
        pub const OPERATIONS: &[(&str, &str, bool)] = &[
            $( $( ($interface, $present, true), )* $( ($interface, $open, false), )* )+
        ];

        /// The operations that exist, as `Interface::operation`.
        pub const PRESENT: &[&str] = &[$( $( concat!($interface, "::", $present), )* )+];

        /// The operations that are not built yet, as `Interface::operation`.
        pub const OPEN: &[&str] = &[$( $( concat!($interface, "::", $open), )* )+];
    };
}

operations! {
    "Condition": present ["get_trigger_value"] open []
    "WaitSet":
        present ["wait" "attach_condition" "detach_condition" "get_conditions"]
        open []
    "GuardCondition": present ["set_trigger_value"] open []
    "StatusCondition":
        present ["get_enabled_statuses" "set_enabled_statuses" "get_entity"]
        open []
    "ReadCondition":
        present ["get_sample_state_mask" "get_view_state_mask" "get_instance_state_mask"]
        open ["get_datareader"]
    "QueryCondition":
        present []
        open ["get_query_expression" "get_query_parameters" "set_query_parameters"]
    "Entity":
        present ["enable" "get_statuscondition" "get_status_changes" "get_instance_handle"]
        open []
    "DomainParticipantFactory":
        present [
            "create_participant" "delete_participant" "lookup_participant"
            "set_default_participant_qos" "get_default_participant_qos" "set_qos" "get_qos"
        ]
        open []
    "DomainParticipant":
        present [
            "create_publisher" "delete_publisher" "create_subscriber" "delete_subscriber"
            "create_topic" "delete_topic" "lookup_topicdescription" "delete_contained_entities"
            "set_qos" "get_qos" "set_listener" "get_domain_id" "set_default_publisher_qos"
            "get_default_publisher_qos" "set_default_subscriber_qos"
            "get_default_subscriber_qos" "set_default_topic_qos" "get_default_topic_qos"
            "contains_entity" "get_current_time" "get_discovered_participants"
            "get_discovered_participant_data"
        ]
        open [
            "get_builtin_subscriber" "find_topic" "create_contentfilteredtopic"
            "delete_contentfilteredtopic" "create_multitopic" "delete_multitopic" "get_listener"
            "ignore_participant" "ignore_topic" "ignore_publication" "ignore_subscription"
            "assert_liveliness" "get_discovered_topics" "get_discovered_topic_data"
        ]
    "TypeSupport": present ["register_type" "get_type_name"] open []
    "TopicDescription": present ["get_type_name" "get_name" "get_participant"] open []
    "Topic":
        present ["set_qos" "get_qos" "set_listener" "get_inconsistent_topic_status"]
        open ["get_listener"]
    "ContentFilteredTopic":
        present []
        open [
            "get_filter_expression" "get_expression_parameters" "set_expression_parameters"
            "get_related_topic"
        ]
    "MultiTopic":
        present []
        open [
            "get_subscription_expression" "get_expression_parameters"
            "set_expression_parameters"
        ]
    "Publisher":
        present [
            "create_datawriter" "delete_datawriter" "lookup_datawriter"
            "delete_contained_entities" "set_qos" "get_qos" "set_listener"
            "wait_for_acknowledgments" "get_participant" "set_default_datawriter_qos"
            "get_default_datawriter_qos" "copy_from_topic_qos"
        ]
        open [
            "get_listener" "suspend_publications" "resume_publications"
            "begin_coherent_changes" "end_coherent_changes"
        ]
    "DataWriter":
        present [
            "register_instance" "register_instance_w_timestamp" "get_key_value"
            "lookup_instance" "unregister_instance" "unregister_instance_w_timestamp" "write"
            "write_w_timestamp" "dispose" "dispose_w_timestamp" "set_qos" "get_qos"
            "set_listener" "get_topic" "get_publisher" "wait_for_acknowledgments"
            "get_offered_incompatible_qos_status" "get_publication_matched_status"
            "get_matched_subscriptions" "get_matched_subscription_data"
        ]
        open [
            "get_listener"
            "get_liveliness_lost_status" "get_offered_deadline_missed_status"
            "assert_liveliness"
        ]
    "Subscriber":
        present [
            "create_datareader" "delete_datareader" "delete_contained_entities"
            "lookup_datareader" "get_datareaders" "notify_datareaders" "set_qos" "get_qos"
            "set_listener" "get_participant" "set_default_datareader_qos"
            "get_default_datareader_qos" "copy_from_topic_qos"
        ]
        open ["get_listener" "begin_access" "end_access"]
    "DataReader":
        present [
            "read" "take" "read_w_condition" "take_w_condition" "read_next_sample"
            "take_next_sample" "read_instance" "take_instance" "read_next_instance"
            "take_next_instance" "read_next_instance_w_condition"
            "take_next_instance_w_condition" "return_loan" "lookup_instance"
            "create_readcondition" "set_qos" "get_qos" "set_listener"
            "get_sample_rejected_status" "get_requested_incompatible_qos_status"
            "get_subscription_matched_status" "get_sample_lost_status" "get_topicdescription"
            "get_subscriber" "get_matched_publications" "get_liveliness_changed_status"
            "get_matched_publication_data" "get_key_value"
        ]
        open [
            "create_querycondition" "delete_readcondition"
            "delete_contained_entities" "get_listener"
            "get_requested_deadline_missed_status" "wait_for_historical_data"
        ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The interfaces and operations of DDS 1.4 §2.3.3, one a line.
    const STANDARD: &str = include_str!("operations.txt");

    #[test]
    fn every_operation_of_the_standard_is_present_or_open() {
        let standard: BTreeSet<&str> = STANDARD.lines().collect();
        let present: BTreeSet<&str> = PRESENT.iter().copied().collect();
        let open: BTreeSet<&str> = OPEN.iter().copied().collect();
        assert!(present.is_disjoint(&open));
        let ours: BTreeSet<&str> = present.union(&open).copied().collect();
        assert_eq!(ours, standard);
        assert_eq!(PRESENT.len() + OPEN.len(), OPERATIONS.len());
    }

    #[test]
    fn the_open_ones_only_get_fewer() {
        assert!(OPEN.len() <= 44, "{} are open", OPEN.len());
    }

    #[test]
    fn what_is_present_is_there_by_its_name() {
        let sources = [
            include_str!("mod.rs"),
            include_str!("condition.rs"),
            include_str!("participant.rs"),
            include_str!("topic.rs"),
            include_str!("publication.rs"),
            include_str!("subscription.rs"),
        ];
        for (interface, name, _) in OPERATIONS.iter().filter(|(.., present)| *present) {
            // Written out, generic, or a line of one of the macros.
            let declared = [
                format!("pub fn {name}("),
                format!("pub fn {name}<T"),
                format!(" {name}("),
            ];
            let found = sources
                .iter()
                .any(|source| declared.iter().any(|text| source.contains(text)));
            assert!(found, "{interface}::{name}");
        }
    }
}
