//! Names that other products add to DDS-XML, or use instead of it.
//!
//! A file written for one of them is read with a warning for each such element
//! instead of an error, so that the standard part of it can be used. The tables are
//! written from the products' public documentation and are not complete: where the schema or
//! namespace of the file says the product, all other names are taken for its own.

/// The product whose element this is, if the name is known to be one: by itself, or in `parent`.
pub(crate) fn of_element(parent: &str, name: &str) -> Option<&'static str> {
    let by_name = ELEMENTS.iter().find(|(_, names)| names.contains(&name));
    let in_parent = || {
        let mut places = MEMBERS.iter();
        let (.., product) =
            places.find(|(parents, of, _)| *of == name && parents.contains(&parent))?;
        Some(*product)
    };
    by_name.map(|(product, _)| *product).or_else(in_parent)
}

/// The product whose attribute this is, if the name is known to be one.
pub(crate) fn of_attribute(name: &str) -> Option<&'static str> {
    ATTRIBUTES
        .iter()
        .find(|(_, names)| names.contains(&name))
        .map(|(product, _)| *product)
}

/// The product that a namespace or the address of a schema is of, if it is a known one.
pub(crate) fn of_uri(uri: &str) -> Option<&'static str> {
    URIS.iter()
        .find(|(_, parts)| parts.iter().any(|part| uri.contains(part)))
        .map(|(product, _)| *product)
}

/// The product whose service or tool is configured by this root, or child of the root.
pub(crate) fn of_service(name: &str) -> Option<&'static str> {
    SERVICES
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
            "acknowledgment_kind",
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
            // Of types.
            "directive",
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
            "data_representation",
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

/// Names that the standard has elsewhere: the parents, the name, the product.
const MEMBERS: &[(&[&str], &str, &str)] = &[
    (
        &[
            "domain_participant_qos",
            "domainparticipant_qos",
            "participant_qos",
        ],
        "resource_limits",
        CONNEXT,
    ),
    (&["datareader_qos"], "transport_priority", CONNEXT),
];

const ATTRIBUTES: &[(&str, &[&str])] = &[
    (
        CONNEXT,
        &[
            "is_default_participant_factory_profile",
            "base_qos_profile",
            "version",
            "description",
            // Of types.
            "pointer",
            "bitField",
            "useVector",
            "resolveName",
            "visibility",
            "topLevel",
            "languageBinding",
            "allowedDataRepresentation",
            "typeId",
            // Of writers and readers.
            "multiplicity",
        ],
    ),
    (FAST_DDS, &["profile_name", "is_default_profile"]),
];

const URIS: &[(&str, &[&str])] = &[
    (CONNEXT, &["rti.com", "rti_dds_", "rti_routing_service"]),
    (FAST_DDS, &["eprosima.com", "fastRTPS_profiles", "fastdds"]),
    (OPENDDS, &["opendds.org"]),
    (CYCLONE, &["cdds.io", "cyclonedds"]),
    (OPENSPLICE, &["prismtech.com", "adlinktech.com"]),
];

/// Of the products' manuals: "Configuring ... Service", and the tools' own.
const SERVICES: &[(&str, &[&str])] = &[(
    CONNEXT,
    &[
        "routing_service",
        "recording_service",
        "replay_service",
        "converter",
        "persistence_service",
        "queuing_service",
        "database_integration_service",
        "web_integration_service",
        "cloud_discovery_service",
        "observability_collector_service",
        "system_designer",
        "recorder",
        "player",
        "plugin_library",
        "adapter_library",
        "processor_library",
        "distributed_logger",
        "service_plugin_library",
    ],
)];

const ROOTS: &[(&str, &[&str])] = &[
    (FAST_DDS, &["profiles"]),
    (CYCLONE, &["CycloneDDS", "CDDS"]),
    (OPENSPLICE, &["OpenSplice"]),
];
