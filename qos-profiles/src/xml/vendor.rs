//! Names that other products add to DDS-XML, or use instead of it.
//!
//! A file written for one of them is read with a warning for each such element
//! instead of an error, so that the standard part of it can be used. The table is
//! written from the products' public documentation and is not complete.

/// The product whose element this is, if the name is known to be one.
pub(crate) fn of_element(name: &str) -> Option<&'static str> {
    ELEMENTS
        .iter()
        .find(|(_, names)| names.contains(&name))
        .map(|(product, _)| *product)
}

/// The product whose attribute this is, if the name is known to be one.
pub(crate) fn of_attribute(name: &str) -> Option<&'static str> {
    ATTRIBUTES
        .iter()
        .find(|(_, names)| names.contains(&name))
        .map(|(product, _)| *product)
}

/// The product whose configuration has this root element, and no DDS-XML in it.
pub(crate) fn of_root(name: &str) -> Option<&'static str> {
    ROOTS
        .iter()
        .find(|(_, names)| names.contains(&name))
        .map(|(product, _)| *product)
}

const CONNEXT: &str = "RTI Connext";
const FAST_DDS: &str = "Fast DDS";
const OPENDDS: &str = "OpenDDS";
const CYCLONE: &str = "Cyclone DDS";
const OPENSPLICE: &str = "OpenSplice";

const ELEMENTS: &[(&str, &[&str])] = &[
    (
        CONNEXT,
        &[
            // Of profiles and libraries.
            "participant_factory_qos",
            "wait_set_qos",
            "configuration_variables",
            // Of participants.
            "transport_builtin",
            "transport_unicast",
            "transport_multicast",
            "transport_multicast_mapping",
            "default_unicast",
            "discovery",
            "discovery_config",
            "event",
            "receiver_pool",
            "database",
            "participant_name",
            "multicast_mapping",
            "wire_protocol",
            "logging",
            "profile",
            "monitoring",
            "trust_algorithms",
            "system_resource_limits",
            // Of publishers, subscribers, writers and readers.
            "asynchronous_publisher",
            "exclusive_area",
            "publisher_name",
            "subscriber_name",
            "publication_name",
            "subscription_name",
            "publish_mode",
            "protocol",
            "writer_resource_limits",
            "reader_resource_limits",
            "multi_channel",
            "availability",
            "batch",
            "service",
            "type_support",
            "transport_selection",
            "unicast",
            "multicast",
            "encapsulation",
            "topic_query_dispatch",
            "data_tags",
            "transfer_mode",
            "user_object",
            // Of policies.
            "acknowledgment_mode",
            "instance_state_consistency_kind",
            "direct_communication",
            "writer_depth",
            "storage_settings",
            "refilter",
            "instance_hash_buckets",
            "drop_incomplete_coherent_set",
            "autopurge_unregistered_instances_delay",
            "autopurge_disposed_instances_delay",
            "autopurge_nowriter_instances_delay",
            "assertions_per_lease_duration",
            "scope",
            "source_timestamp_tolerance",
            "ignore_enum_literal_names",
            "compression_settings",
        ],
    ),
    (
        FAST_DDS,
        &[
            "profiles",
            "participant",
            "data_writer",
            "data_reader",
            "publisher",
            "subscriber",
            "transport_descriptors",
            "library_settings",
            "log",
            "disablePositiveAcks",
            "disable_positive_acks",
            "disable_heartbeat_piggyback",
            "data_sharing",
            "publishMode",
            "historyQos",
            "resourceLimitsQos",
            "historyMemoryPolicy",
            "propertiesPolicy",
            "extra_samples",
            "announcement_period",
        ],
    ),
    (OPENDDS, &["config_template", "dcps_config"]),
    (
        CYCLONE,
        &[
            "entity_name",
            "ignore_local",
            "ignorelocal",
            "psmx_instances",
            "writer_batching",
            "locator_mask",
        ],
    ),
    (
        OPENSPLICE,
        &[
            "share",
            "reader_lifespan",
            "subscription_keys",
            "invalid_sample_visibility",
            "synchronous",
            "autounregister_instance_delay",
            "autosuspend_period",
            "autopurge_suspended_samples_delay",
            "autopurge_dispose_all",
            "enable_invalid_samples",
            "watchdog_scheduling",
            "listener_scheduling",
        ],
    ),
];

const ATTRIBUTES: &[(&str, &[&str])] = &[
    (
        CONNEXT,
        &[
            "is_default_qos",
            "is_default_participant_factory_profile",
            "base_qos_profile",
            "version",
            "description",
        ],
    ),
    (FAST_DDS, &["profile_name", "is_default_profile"]),
];

const ROOTS: &[(&str, &[&str])] = &[
    (FAST_DDS, &["profiles"]),
    (CYCLONE, &["CycloneDDS", "CDDS"]),
    (OPENSPLICE, &["OpenSplice"]),
];
