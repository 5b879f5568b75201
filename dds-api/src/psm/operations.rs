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
    "Condition":
        present ["get_trigger_value"]
        open []
    "WaitSet":
        present ["wait" "attach_condition" "detach_condition" "get_conditions"]
        open []
    "GuardCondition":
        present ["set_trigger_value"]
        open []
    "StatusCondition":
        present ["get_enabled_statuses" "set_enabled_statuses" "get_entity"]
        open []
    "ReadCondition":
        present [
            "get_sample_state_mask" "get_view_state_mask" "get_instance_state_mask"
            "get_datareader"
        ]
        open []
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
            "get_discovered_participant_data" "find_topic" "get_listener" "assert_liveliness"
        ]
        open [
            "get_builtin_subscriber" "create_contentfilteredtopic" "delete_contentfilteredtopic"
            "create_multitopic" "delete_multitopic" "ignore_participant" "ignore_topic"
            "ignore_publication" "ignore_subscription" "get_discovered_topics"
            "get_discovered_topic_data"
        ]
    "TypeSupport":
        present ["register_type" "get_type_name"]
        open []
    "TopicDescription":
        present ["get_type_name" "get_name" "get_participant"]
        open []
    "Topic":
        present [
            "set_qos" "get_qos" "set_listener" "get_inconsistent_topic_status" "get_listener"
        ]
        open []
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
            "get_default_datawriter_qos" "copy_from_topic_qos" "get_listener"
            "suspend_publications" "resume_publications"
        ]
        open ["begin_coherent_changes" "end_coherent_changes"]
    "DataWriter":
        present [
            "register_instance" "register_instance_w_timestamp" "get_key_value"
            "lookup_instance" "unregister_instance" "unregister_instance_w_timestamp" "write"
            "write_w_timestamp" "dispose" "dispose_w_timestamp" "set_qos" "get_qos"
            "set_listener" "get_topic" "get_publisher" "wait_for_acknowledgments"
            "get_offered_incompatible_qos_status" "get_publication_matched_status"
            "get_matched_subscriptions" "get_matched_subscription_data" "get_listener"
            "get_liveliness_lost_status" "get_offered_deadline_missed_status"
            "assert_liveliness"
        ]
        open []
    "Subscriber":
        present [
            "create_datareader" "delete_datareader" "delete_contained_entities"
            "lookup_datareader" "get_datareaders" "notify_datareaders" "set_qos" "get_qos"
            "set_listener" "get_participant" "set_default_datareader_qos"
            "get_default_datareader_qos" "copy_from_topic_qos" "get_listener"
        ]
        open ["begin_access" "end_access"]
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
            "get_matched_publication_data" "get_key_value" "delete_readcondition" "delete_contained_entities"
            "get_listener" "get_requested_deadline_missed_status" "wait_for_historical_data"
        ]
        open ["create_querycondition"]
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

    /// How many operations are open. To be changed by hand, with docs/conformance.md.
    const OPEN_COUNT: usize = 26;

    #[test]
    fn no_operation_comes_or_goes_unnoticed() {
        assert_eq!(OPEN.len(), OPEN_COUNT);
    }

    const SOURCES: [&str; 7] = [
        include_str!("mod.rs"),
        include_str!("condition.rs"),
        include_str!("participant.rs"),
        include_str!("topic.rs"),
        include_str!("publication.rs"),
        include_str!("subscription.rs"),
        include_str!("operations.rs"),
    ];

    /// Interfaces that have no type of their own: those that have their operations.
    const BASES: &[(&str, &[&str])] = &[
        (
            "Condition",
            &["GuardCondition", "StatusCondition", "ReadCondition"],
        ),
        (
            "Entity",
            &[
                "DomainParticipant",
                "Topic",
                "Publisher",
                "Subscriber",
                "DataWriter",
                "DataReader",
            ],
        ),
        ("TopicDescription", &["Topic"]),
    ];

    /// The public functions of a type's inherent implementations, those that a macro makes
    /// included.
    fn functions_of(of: &str) -> BTreeSet<&'static str> {
        let mut functions = BTreeSet::new();
        for source in SOURCES {
            let mut blocks = Vec::new();
            for (at, _) in source.match_indices("\nimpl") {
                let block = &source[at + 1..];
                let end = block.find("\n}").unwrap_or(block.len());
                blocks.push(&block[..end]);
            }
            for block in blocks {
                let head = block.lines().next().unwrap_or_default();
                let name = head.trim_start_matches("impl").trim_end_matches('{').trim();
                let name = match name.starts_with('<') {
                    true => name.split_once("> ").map_or("", |(_, name)| name),
                    false => name,
                };
                if name.split('<').next() == Some(of) {
                    functions.extend(block.lines().filter_map(function));
                }
            }
            // `entity!(Topic<T>, ...)` has the operations of Entity.
            let invoked = [format!("\nentity!({of},"), format!("\nentity!({of}<T>,")];
            if invoked.iter().any(|text| source.contains(text)) {
                let made = SOURCES[0].split("macro_rules! entity").nth(1);
                let made = made.and_then(|it| it.split("\n}").next());
                functions.extend(made.into_iter().flat_map(str::lines).filter_map(function));
            }
        }
        functions
    }

    /// The name of the function that a line declares, or makes by a macro.
    fn function(line: &'static str) -> Option<&'static str> {
        let line = line.trim_start();
        let name = match line.strip_prefix("pub fn ") {
            Some(declared) => declared,
            None if line.ends_with(';') && !line.starts_with("self.") => line,
            None => return None,
        };
        let (name, _) = name.split_once(['(', '<'])?;
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        name.bytes().all(is_name).then_some(name)
    }

    #[test]
    fn what_is_present_is_there_by_its_name() {
        for (interface, name, _) in OPERATIONS.iter().filter(|(.., present)| *present) {
            let base = BASES.iter().find(|(base, _)| base == interface);
            let itself = std::slice::from_ref(interface);
            let of = base.map_or(itself, |(_, types)| types);
            for of in of {
                assert!(
                    functions_of(of).contains(name),
                    "{interface}::{name} of {of}"
                );
            }
        }
    }

    #[test]
    fn another_entitys_operation_does_not_vouch() {
        assert!(functions_of("DataWriter").contains("write"));
        assert!(functions_of("DataReader").contains("take_next_instance_w_condition"));
        assert!(functions_of("Topic").contains("get_statuscondition"));
        for (of, name) in [("Publisher", "write"), ("DataReader", "get_publisher")] {
            assert!(!functions_of(of).contains(name), "{name} of {of}");
        }
    }

    /// The table of operations in the documentation is this list.
    #[test]
    fn the_documentation_has_the_same_list() {
        let documented = include_str!("../../../docs/conformance.md");
        let mut interfaces: Vec<&str> = OPERATIONS.iter().map(|(of, ..)| *of).collect();
        interfaces.dedup();
        for interface in interfaces {
            let of = OPERATIONS.iter().filter(|(of, ..)| *of == interface);
            let (present, open): (Vec<_>, Vec<_>) = of.partition(|(.., present)| *present);
            let names: Vec<String> = open.iter().map(|(_, it, _)| format!("`{it}`")).collect();
            let names = match names.is_empty() {
                true => "-".to_owned(),
                false => names.join(", "),
            };
            let row = format!(
                "| {interface} | {} | {} | {names} |",
                present.len(),
                open.len()
            );
            assert!(
                documented.contains(&row),
                "docs/conformance.md lacks: {row}"
            );
        }
        let sum = format!("| all | {} | {} | |", PRESENT.len(), OPEN.len());
        assert!(
            documented.contains(&sum),
            "docs/conformance.md lacks: {sum}"
        );
    }
}
