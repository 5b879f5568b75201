//! Profiles read from files: inheritance, filters, names, examples of the OMG.

use std::path::PathBuf;

use spindle_dds_qos::{
    DataRepresentationId, DataWriterQos, Duration, History, Length, LoadError, OwnershipKind,
    PolicyId, PresentationAccessScope, QosProvider, Reliability, ReliabilityKind,
};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

fn fleet() -> QosProvider {
    QosProvider::from_files([data("fleet.xml"), data("fleet_variants.xml")])
        .expect("the fleet is read")
}

#[test]
fn the_first_matching_filter_wins() {
    let critical = fleet().profile("Fleet::Critical").unwrap();
    assert_eq!(
        critical.datawriter_qos("Tracks").history,
        History::keep_last(8)
    );
    let other = critical.datawriter_qos("Other").history;
    assert_eq!(
        other,
        History {
            depth: 3,
            ..History::keep_all()
        }
    );
}

#[test]
fn a_child_overrides_its_base_member_by_member() {
    let critical = fleet().profile("Fleet::Critical").unwrap();
    let writer = critical.datawriter_qos("Tracks");
    assert_eq!(
        writer.reliability,
        Reliability::reliable(Duration::from_secs(2))
    );
    assert_eq!(writer.resource_limits.max_samples, Length::Limited(100));
    assert_eq!(
        writer.resource_limits.max_samples_per_instance,
        Length::Limited(10)
    );
    let properties: Vec<(&str, &str, bool)> = writer
        .property
        .iter()
        .map(|p| (p.name.as_str(), p.value.as_str(), p.propagate))
        .collect();
    assert_eq!(
        properties,
        [
            ("spindle.rate", "2", false),
            ("spindle.lane", "a", false),
            ("spindle.pin", "4", true)
        ]
    );

    let reader = critical.datareader_qos("Tracks");
    assert_eq!(reader.reliability.kind, ReliabilityKind::Reliable);
    assert_eq!(reader.history, History::keep_last(5));
    assert_eq!(reader.user_data.value, [0xde, 0xad, 0xbe, 0xef]);
    assert_eq!(reader.representation.value, [DataRepresentationId::Xcdr2]);
}

#[test]
fn what_a_profile_lacks_comes_from_its_base_or_the_defaults() {
    let critical = fleet().profile("Fleet::Critical").unwrap();
    let participant = critical.participant_qos();
    assert!(!participant.entity_factory.autoenable_created_entities);
    assert_eq!(
        participant.property.get("spindle.domain_record"),
        Some("/run/fleet")
    );
    let publisher = critical.publisher_qos();
    assert_eq!(
        publisher.presentation.access_scope,
        PresentationAccessScope::Topic
    );
    assert!(publisher.presentation.ordered_access);
    assert_eq!(
        critical.subscriber_qos().partition.name,
        ["north", "south.*"]
    );
    assert_eq!(
        critical.topic_qos("T").latency_budget.duration,
        Duration::from_nanos(500)
    );
    assert_eq!(
        critical.topic_qos("T").reliability,
        Reliability::best_effort()
    );

    let empty = QosProvider::from_str(
        "<dds><qos_library name='L'><qos_profile name='P'/></qos_library></dds>",
        "empty.xml",
    );
    let empty = empty.unwrap().profile("L::P").unwrap();
    assert_eq!(empty.datawriter_qos("T"), DataWriterQos::default());
}

#[test]
fn bases_and_snippets_of_other_files_and_libraries() {
    let provider = fleet();
    let patient = provider
        .profile("Variants::Patient")
        .unwrap()
        .datawriter_qos("Tracks");
    assert_eq!(
        patient.reliability,
        Reliability::reliable(Duration::INFINITE)
    );
    assert_eq!(patient.history, History::keep_last(8));

    let radar = provider.profile("Radar").unwrap();
    let writer = radar.datawriter_qos("Plots");
    assert_eq!(writer.reliability, Reliability::best_effort());
    assert_eq!(writer.transport_priority.value, 7);
    assert_eq!(
        writer.history,
        History::keep_last(1),
        "its own base takes the profile's place"
    );
    assert_eq!(
        radar.datareader_qos("Plots").reliability.kind,
        ReliabilityKind::Reliable
    );

    let bare = provider
        .profile("Variants::Bare")
        .unwrap()
        .datawriter_qos("T");
    assert_eq!(bare.property.len(), 1);
    assert_eq!(bare.resource_limits.max_samples, Length::Unlimited);
    assert_eq!(
        bare.resource_limits.max_samples_per_instance,
        Length::Limited(10)
    );
}

#[test]
fn policies_remember_where_they_were_set() {
    let provider = fleet();
    let writer = provider
        .profile("Variants::Patient")
        .unwrap()
        .datawriter_qos("Tracks");
    let line = |policy| {
        let location = writer.origins.get(policy)?;
        let file = location.file.rsplit('/').next()?;
        Some(format!("{file}:{}:{}", location.line, location.column))
    };
    assert_eq!(line(PolicyId::History).as_deref(), Some("fleet.xml:7:9"));
    assert_eq!(
        line(PolicyId::ResourceLimits).as_deref(),
        Some("fleet.xml:55:9")
    );
    assert_eq!(
        line(PolicyId::Reliability).as_deref(),
        Some("fleet_variants.xml:5:9")
    );
    assert_eq!(line(PolicyId::Lifespan), None);

    let refused = provider
        .profile("Radar")
        .unwrap()
        .subscriber_qos()
        .unsupported();
    let refused = refused[0].to_string();
    assert!(refused.ends_with("fleet.xml:43:9)"), "{refused}");
}

#[test]
fn an_unknown_profile_names_the_known_ones() {
    let provider = fleet();
    let unknown = provider.profile("Fleet::Critcal").unwrap_err();
    insta::assert_snapshot!(unknown, @"no QoS profile is named 'Fleet::Critcal'; did you mean 'Fleet::Critical'?");
    let unknown = provider.profile("Nonesuch").unwrap_err();
    assert_eq!(
        unknown.known,
        [
            "Fleet::Critical",
            "Fleet::Base",
            "Variants::Patient",
            "Variants::Radar",
            "Variants::Bare"
        ]
    );
}

#[test]
fn a_file_that_is_not_there() {
    let error = QosProvider::from_file(data("nonesuch.xml")).unwrap_err();
    assert!(matches!(error, LoadError::Unreadable { .. }), "{error}");
}

#[test]
fn the_omg_qos_example_is_read() {
    let example = data("omg/dds-xml_qos_example.xml");
    let provider = QosProvider::from_files([example, data("omg_missing_names.xml")]).unwrap();
    assert_eq!(provider.warnings(), []);
    let custom = provider
        .profile("DDSDefaultQoSLibrary::MyCustomProfile")
        .unwrap();
    let reader = custom.datareader_qos("T");
    assert_eq!(
        reader.reliability.kind,
        ReliabilityKind::Reliable,
        "by its last snippet"
    );
    assert_eq!(reader.deadline.period, Duration::INFINITE);
    let participant = custom.participant_qos();
    assert_eq!(participant.property.get("MyPName1"), Some("MyPValue1"));
    assert_eq!(
        participant.property.get("MyPName2"),
        Some("file://MyPValue1")
    );
    assert_eq!(participant.unsupported()[0].policy, PolicyId::Partition);
    let exclusive = provider
        .profile("CustomProfile")
        .unwrap()
        .datawriter_qos("T");
    assert_eq!(exclusive.ownership.kind, OwnershipKind::Exclusive);
    assert_eq!(exclusive.property.get("Hello"), Some("World"));
}

#[test]
fn the_earlier_schema_is_read() {
    let provider = QosProvider::from_file(data("earlier_schema.xml")).unwrap();
    assert_eq!(provider.profile_names(), ["Old"]);
    let old = provider.profile("Old").unwrap();
    assert_eq!(old.participant_qos().user_data.value, [0x10, 0x20, 3]);
    assert_eq!(old.datawriter_qos("T").durability_service.history_depth, 10);
    assert_eq!(old.datareader_qos("T").representation.value.len(), 2);
}
