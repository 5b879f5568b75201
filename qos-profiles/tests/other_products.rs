//! Files that were written for other products: what of them is read, and what is said of the rest.

use spindle_dds_qos::{
    DataReaderQos, DurabilityKind, Duration, History, HistoryKind, Length, LoadError,
    OwnershipKind, QosLoader, QosProvider, ReliabilityKind, Severity,
};

/// A file of RTI Connext, by its schema, with this inside `<dds>`.
fn connext(inside: &str) -> String {
    format!(
        "<dds xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' \
         xsi:noNamespaceSchemaLocation='http://community.rti.com/schema/7.3.0/rti_dds_qos_profiles.xsd'>\
         \n{inside}\n</dds>"
    )
}

/// A profile `L::P` with this inside.
fn profile(inside: &str) -> String {
    format!("<qos_library name='L'><qos_profile name='P'>{inside}</qos_profile></qos_library>")
}

fn load(text: &str) -> QosProvider {
    QosProvider::from_str(text, "t.xml").unwrap_or_else(|error| panic!("{error}"))
}

/// The text loads with these remarks, one a line.
fn check(text: &str, remarks: &[&str]) -> QosProvider {
    let provider = load(text);
    let said: Vec<String> = provider
        .warnings()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(said, remarks);
    provider
}

/// The text does not load, for this reason.
fn refused(text: &str, reason: &str) {
    let error = QosProvider::from_str(text, "t.xml").expect_err(reason);
    assert!(error.to_string().contains(reason), "{error}");
}

#[test]
fn built_in_profiles_are_found_by_name() {
    use DurabilityKind::{Persistent, Transient, TransientLocal, Volatile};
    use HistoryKind::{KeepAll, KeepLast};
    use ReliabilityKind::{BestEffort, Reliable};
    let provider = load(&profile(""));
    for (name, reliability, history, durability) in [
        ("Generic.StrictReliable", Reliable, KeepAll, Volatile),
        ("Generic.KeepLastReliable", Reliable, KeepLast, Volatile),
        ("Generic.BestEffort", BestEffort, KeepLast, Volatile),
        (
            "Generic.StrictReliable.LargeData.FastFlow",
            Reliable,
            KeepAll,
            Volatile,
        ),
        (
            "Generic.KeepLastReliable.TransientLocal",
            Reliable,
            KeepLast,
            TransientLocal,
        ),
        (
            "Generic.KeepLastReliable.Transient",
            Reliable,
            KeepLast,
            Transient,
        ),
        (
            "Generic.KeepLastReliable.Persistent",
            Reliable,
            KeepLast,
            Persistent,
        ),
        ("Pattern.Streaming", BestEffort, KeepLast, Volatile),
        ("Pattern.ReliableStreaming", Reliable, KeepLast, Volatile),
        ("Pattern.AlarmEvent", Reliable, KeepAll, Volatile),
        ("Pattern.LastValueCache", Reliable, KeepLast, TransientLocal),
        ("Pattern.RPC", Reliable, KeepAll, Volatile),
    ] {
        for library in ["BuiltinQosLib", "BuiltinQosLibExp"] {
            let profile = provider.profile(&format!("{library}::{name}")).unwrap();
            let writer = profile.datawriter_qos("T");
            assert_eq!(writer.reliability.kind, reliability, "{name}");
            assert_eq!(writer.history.kind, history, "{name}");
            assert_eq!(writer.durability.kind, durability, "{name}");
            let reader = profile.datareader_qos("T");
            assert_eq!(reader.reliability.kind, reliability, "{name}");
            assert_eq!(reader.history.kind, history, "{name}");
            assert_eq!(reader.durability.kind, durability, "{name}");
        }
    }
    // They are not among the profiles of the files, and not found without their library.
    assert_eq!(provider.profile_names(), ["L::P"]);
    assert!(provider.profile("Generic.StrictReliable").is_err());
}

#[test]
fn a_value_of_a_built_in_profile_names_it() {
    let text = "<dds><qos_library name='L'>\
                <qos_profile name='P' base_name='BuiltinQosLibExp::Generic.StrictReliable'/>\
                <qos_profile name='Q' base_name='BuiltinQosLib::Generic.KeepLastReliable.Persistent'>\
                <datawriter_qos><history><depth>3</depth></history></datawriter_qos>\
                </qos_profile></qos_library></dds>";
    let provider = check(text, &[]);
    let writer = provider.profile("P").unwrap().datawriter_qos("T");
    assert_eq!(writer.history.kind, HistoryKind::KeepAll);
    let writer = provider.profile("Q").unwrap().datawriter_qos("T");
    assert_eq!(writer.history, History::keep_last(3));
    assert_eq!(writer.unsupported(), []);
    let mut best_effort = writer;
    best_effort.reliability.kind = ReliabilityKind::BestEffort;
    let error = best_effort.check_consistency().unwrap_err().to_string();
    assert!(
        error.contains("(set at built-in profile BuiltinQosLib::"),
        "{error}"
    );
}

#[test]
fn a_file_may_have_a_profile_of_a_built_in_name() {
    let text = "<dds><qos_library name='BuiltinQosLib'><qos_profile name='Generic.Common'>\
                <datareader_qos><history><depth>9</depth></history></datareader_qos>\
                </qos_profile></qos_library><qos_library name='L'>\
                <qos_profile name='P' base_name='BuiltinQosLib::Generic.Common'/></qos_library></dds>";
    let provider = check(text, &[]);
    for name in ["L::P", "BuiltinQosLib::Generic.Common"] {
        let depth = provider
            .profile(name)
            .unwrap()
            .datareader_qos("T")
            .history
            .depth;
        assert_eq!(depth, 9, "{name}");
    }
}

#[test]
fn a_function_of_another_product_is_not_lost_in_silence() {
    let base = |name: &str| {
        format!("<qos_library name='L'><qos_profile name='P' base_name='{name}'/></qos_library>")
    };
    check(
        &connext(&base("BuiltinQosLib::Generic.Security")),
        &[
            "t.xml:2:23: warning: 'BuiltinQosLib::Generic.Security': the security plugins of RTI \
             Connext that it enables do not run here: nothing is protected by it",
        ],
    );
    check(
        &connext(&base("BuiltinQosLib::Pattern.PeriodicData")),
        &[
            "t.xml:2:23: warning: 'BuiltinQosLib::Pattern.PeriodicData': the DEADLINE that RTI \
             Connext sets in it is not taken over; set the period that you need",
        ],
    );
    refused(
        &connext(&base("BuiltinQosLib::Generic.StrictReliabel")),
        "did you mean 'BuiltinQosLib::Generic.StrictReliable'?",
    );
}

#[test]
fn bases_in_a_list_are_applied_in_order() {
    let text = profile("").replace(
        "</qos_library>",
        "<qos_snippet name='Exclusive'><datawriter_qos><ownership>\
         <kind>EXCLUSIVE_OWNERSHIP_QOS</kind></ownership></datawriter_qos></qos_snippet>\
         <datawriter_qos name='Deep'><history><depth>7</depth></history></datawriter_qos>\
         <qos_profile name='All' base_name='BuiltinQosLib::Generic.BestEffort'>\
           <base_name>\
             <element>BuiltinQosLib::Generic.StrictReliable</element>\
             <element>BuiltinQosSnippetLib::QosPolicy.History.KeepLast_1</element>\
             <element>Exclusive</element>\
           </base_name>\
           <datawriter_qos>\
             <base_name><element>Deep</element></base_name>\
             <lifespan><duration><sec>1</sec></duration></lifespan>\
           </datawriter_qos>\
         </qos_profile></qos_library>",
    );
    let provider = check(&format!("<dds>{text}</dds>"), &[]);
    let profile = provider.profile("All").unwrap();
    let writer = profile.datawriter_qos("T");
    assert_eq!(writer.reliability.kind, ReliabilityKind::Reliable);
    assert_eq!(writer.history, History::keep_last(7));
    assert_eq!(writer.ownership.kind, OwnershipKind::Exclusive);
    assert_eq!(writer.lifespan.duration, Duration::from_secs(1));
    let reader = profile.datareader_qos("T");
    assert_eq!(reader.reliability.kind, ReliabilityKind::Reliable);
    assert_eq!(reader.history, History::keep_last(1));

    let list = |name: &str| {
        format!(
            "<dds>{}</dds>",
            self::profile(&format!("<base_name><element>{name}</element></base_name>"))
        )
    };
    refused(
        &list("Nonesuch"),
        "base_name 'Nonesuch' is no known profile or snippet",
    );
    refused(&list(""), "'element' is empty");
    refused(&list("P"), "inheritance goes in a circle: L::P -> L::P");
}

#[test]
fn the_default_profile_is_the_last_that_is_marked() {
    let text = "<dds><qos_library name='L'>\
                <qos_profile name='A' is_default_qos='true'/>\
                <qos_profile name='B' is_default_qos='1'/>\
                <qos_profile name='C' is_default_qos='false'/></qos_library></dds>";
    let remarks = [
        "t.xml:1:28: warning: 'L::A' is not the default: 'L::B' is, the last one that \
         is_default_qos marks",
    ];
    let provider = check(text, &remarks);
    assert_eq!(provider.default_profile().unwrap().name(), "L::B");
    assert!(load(&profile("")).default_profile().is_none());
    refused(
        "<dds><qos_library name='L'><qos_profile name='A' is_default_qos='yes'/></qos_library></dds>",
        "attribute is_default_qos is 'yes'; it must be true or false",
    );
}

#[test]
fn qos_of_entities_is_found_by_name() {
    let text = "<dds><qos_library name='L'>\
                <datawriter_qos name='W'><history><depth>4</depth></history></datawriter_qos>\
                <domain_participant_qos name='D'><property><value><element><name>a</name>\
                <value>b</value></element></value></property></domain_participant_qos>\
                <qos_profile name='P'>\
                <datareader_qos name='R' topic_filter='X'><history><depth>5</depth></history></datareader_qos>\
                </qos_profile></qos_library></dds>";
    let provider = check(text, &[]);
    assert_eq!(
        provider.datawriter_qos("L::W", "T").unwrap().history.depth,
        4
    );
    assert_eq!(
        provider
            .datareader_qos("L::P::R", "T")
            .unwrap()
            .history
            .depth,
        5
    );
    assert_eq!(
        provider.datareader_qos("L::P", "T").unwrap().history.depth,
        1
    );
    assert_eq!(
        provider.datareader_qos("L::P", "X").unwrap().history.depth,
        5
    );
    let participant = provider.participant_qos("L::D").unwrap();
    assert_eq!(participant.property.get("a"), Some("b"));
    // QoS of another kind of entity is none.
    let unknown = provider.datareader_qos("L::W", "T").unwrap_err();
    assert_eq!(unknown.known, ["L::P", "L::P::R"]);
    assert!(provider.publisher_qos("L::W").is_err());
    assert!(provider.subscriber_qos("L::P").is_ok());
    assert!(provider.topic_qos("L::Q", "T").is_err());
}

#[test]
fn variables_are_replaced_in_all_texts() {
    let text = "<dds>\n<configuration_variables><value>\
                <element><name>DEPTH</name><value>6</value></element>\
                <element><name>BASE</name><value>B</value></element>\
                </value></configuration_variables>\
                <qos_library name='L'><qos_profile name='B'/>\
                <qos_profile name='P$(SUFFIX)' base_name='$(BASE)'><datareader_qos>\
                <history><kind>$(KIND)_HISTORY_QOS</kind><depth>$(DEPTH)</depth></history>\
                <property><value><element><name>a</name><value>x$(SUFFIX)$(no name)$</value>\
                </element></value></property></datareader_qos></qos_profile></qos_library></dds>";
    let loader = QosLoader::new()
        .text("t.xml", text)
        .variable("SUFFIX", "9")
        .variable("KIND", "KEEP_LAST");
    let provider = loader.load().unwrap();
    assert_eq!(provider.warnings(), []);
    let reader = provider.profile("L::P9").unwrap().datareader_qos("T");
    assert_eq!(reader.history, History::keep_last(6));
    assert_eq!(reader.property.get("a"), Some("x9$(no name)$"));
    // What is set comes before the default.
    let provider = loader.clone().variable("DEPTH", "8").load().unwrap();
    let reader = provider.profile("L::P9").unwrap().datareader_qos("T");
    assert_eq!(reader.history, History::keep_last(8));
    // So does the environment, which cargo sets for tests.
    let text = text.replace("DEPTH", "CARGO_PKG_VERSION_MAJOR");
    let loader = loader.text("env.xml", text.replace("'L'", "'M'"));
    let provider = loader.load();
    let in_environment = std::env::var("CARGO_PKG_VERSION_MAJOR");
    let depth = provider.map(|it| {
        it.profile("M::P9")
            .unwrap()
            .datareader_qos("T")
            .history
            .depth
    });
    assert_eq!(depth.ok().map(|it| it.to_string()), in_environment.ok());
}

#[test]
fn a_variable_without_value_is_an_error_where_it_is_read() {
    let depth =
        "<datareader_qos><history>\n<depth>$(SPINDLE_TEST_NONE)</depth></history></datareader_qos>";
    let error = QosProvider::from_str(&connext(&profile(depth)), "t.xml").unwrap_err();
    assert_eq!(
        error.to_string(),
        "t.xml:3:1: error: variable 'SPINDLE_TEST_NONE' is not set, and has no default in this \
         file's 'configuration_variables'"
    );
    let property = "<domain_participant_qos><property><value><element><name>a</name>\
                    <value>$(SPINDLE_TEST_NONE)</value></element></value></property></domain_participant_qos>";
    refused(
        &connext(&profile(property)),
        "'SPINDLE_TEST_NONE' is not set",
    );
    refused(
        &connext("<qos_library name='$(SPINDLE_TEST_NONE)'/>"),
        "'SPINDLE_TEST_NONE' is not set",
    );
    let passed_over = "<domain_participant_qos><discovery><initial_peers><element>\
                       $(SPINDLE_TEST_NONE)</element></initial_peers></discovery></domain_participant_qos>";
    check(
        &connext(&profile(passed_over)),
        &["t.xml:2:69: warning: 'discovery' is of RTI Connext, not of DDS-XML; it is ignored"],
    );
}

#[test]
fn defaults_of_variables_that_are_malformed_are_errors() {
    let check = |item: &str, reason: &str| {
        let variables =
            format!("<configuration_variables><value>{item}</value></configuration_variables>");
        refused(&format!("<dds>{variables}</dds>"), reason);
    };
    check("<elemnt/>", "did you mean 'element'?");
    check(
        "<element><name>A</name></element>",
        "t.xml:1:38: error: a variable has a 'name' and a 'value'",
    );
    check(
        "<element><name>A B</name><value>1</value></element>",
        "'A B' is no name of a variable",
    );
    check(
        "<element><name>A</name><value>$(B)</value></element>",
        "the default of 'A' is '$(B)'; it must not have variables in it",
    );
}

#[test]
fn a_topic_filter_is_for_entities_of_a_topic() {
    for kind in ["domain_participant_qos", "publisher_qos", "subscriber_qos"] {
        let text = profile(&format!("<{kind} topic_filter='X'/>"));
        let reason = format!("'{kind}' has no attribute 'topic_filter'");
        refused(&format!("<dds>{text}</dds>"), &reason);
    }
}

#[test]
fn variables_cannot_make_a_file_grow_without_end() {
    let loader = QosLoader::new().variable("BIG", "x".repeat(100_000));
    let names = "<element>$(BIG)</element>".repeat(100);
    let partition =
        format!("<subscriber_qos><partition><name>{names}</name></partition></subscriber_qos>");
    let error = loader
        .text("t.xml", connext(&profile(&partition)))
        .load()
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("variables make the file larger than"),
        "{error}"
    );
}

#[test]
fn constants_have_the_prefix_of_earlier_bindings_or_none() {
    let text = profile(
        "<datareader_qos>\
         <reliability><kind>DDS_RELIABLE_RELIABILITY_QOS</kind></reliability>\
         <resource_limits><max_samples>-1</max_samples><max_instances>DDS_LENGTH_UNLIMITED</max_instances>\
         <initial_samples>DDS_LENGTH_UNLIMITED</initial_samples></resource_limits>\
         <latency_budget><duration><sec>DURATION_ZERO_SEC</sec><nanosec>DURATION_ZERO_NSEC</nanosec>\
         </duration></latency_budget>\
         <deadline><period><sec>DURATION_AUTO_SEC</sec></period></deadline>\
         </datareader_qos>\
         <datawriter_qos><writer_data_lifecycle><autodispose_unregistered_instances>DDS_BOOLEAN_FALSE\
         </autodispose_unregistered_instances></writer_data_lifecycle></datawriter_qos>",
    );
    let provider = load(&connext(&text));
    let said: Vec<&str> = provider
        .warnings()
        .iter()
        .map(|it| it.message.as_str())
        .collect();
    assert_eq!(
        said,
        [
            "'initial_samples' is a hint that is not used",
            "'sec' is 'DURATION_AUTO_SEC', which another product chooses by itself; it sets nothing here",
        ]
    );
    let profile = provider.profile("L::P").unwrap();
    let reader = profile.datareader_qos("T");
    assert_eq!(reader.reliability.kind, ReliabilityKind::Reliable);
    assert_eq!(reader.resource_limits.max_samples, Length::Unlimited);
    assert_eq!(reader.resource_limits.max_instances, Length::Unlimited);
    assert_eq!(reader.latency_budget.duration, Duration::ZERO);
    assert_eq!(reader.deadline.period, Duration::INFINITE);
    let lifecycle = profile.datawriter_qos("T").writer_data_lifecycle;
    assert!(!lifecycle.autodispose_unregistered_instances);
    let kind = "<datareader_qos><reliability><kind>DDS_RELAIBLE_RELIABILITY_QOS</kind></reliability></datareader_qos>";
    refused(
        &connext(&self::profile(kind)),
        "did you mean 'RELIABLE_RELIABILITY_QOS'?",
    );
}

#[test]
fn what_another_product_chooses_by_itself_sets_nothing() {
    let text = profile(
        "<datareader_qos><type_consistency><kind>AUTO_TYPE_COERCION</kind></type_consistency>\
         <representation><value><element>AUTO_DATA_REPRESENTATION</element></value></representation>\
         <resource_limits><max_samples>LENGTH_AUTO</max_samples></resource_limits></datareader_qos>",
    );
    let provider = load(&connext(&text));
    let said = provider.warnings().iter().map(ToString::to_string);
    assert!(
        said.clone()
            .all(|it| it.ends_with("; it sets nothing here"))
    );
    assert_eq!(said.count(), 3);
    let reader = provider.profile("L::P").unwrap().datareader_qos("T");
    assert_eq!(
        reader.type_consistency,
        DataReaderQos::default().type_consistency
    );
    assert_eq!(
        reader.representation,
        DataReaderQos::default().representation
    );
    assert_eq!(
        reader.resource_limits,
        DataReaderQos::default().resource_limits
    );
}

#[test]
fn members_of_other_products_are_passed_over_where_they_stand() {
    let inside = "<domain_participant_qos><resource_limits/></domain_participant_qos>\n\
                  <datareader_qos><transport_priority/></datareader_qos>\n\
                  <datawriter_qos><reliability><acknowledgment_kind>X</acknowledgment_kind></reliability></datawriter_qos>";
    let ignored = |line: u32, column: u32, name: &str| {
        format!(
            "t.xml:{line}:{column}: warning: '{name}' is of RTI Connext, not of DDS-XML; it is ignored"
        )
    };
    let remarks = [
        ignored(1, 74, "resource_limits"),
        ignored(2, 17, "transport_priority"),
        ignored(3, 30, "acknowledgment_kind"),
    ];
    let remarks: Vec<&str> = remarks.iter().map(String::as_str).collect();
    // Without any word of the product elsewhere in the file.
    check(&format!("<dds>{}</dds>", profile(inside)), &remarks);
    refused(
        "<dds><qos_library name='L'><qos_profile name='P'><publisher_qos><resource_limits/>\
         </publisher_qos></qos_profile></qos_library></dds>",
        "'publisher_qos' has no member 'resource_limits'",
    );
}

#[test]
fn in_the_dialect_of_a_product_all_other_names_are_its_own() {
    let inside = "<datawriter_qos of_a_newer_version='1'><of_a_newer_version/></datawriter_qos>";
    check(
        &connext(&profile(inside)),
        &[
            "t.xml:2:45: warning: attribute 'of_a_newer_version' is of RTI Connext, not of \
             DDS-XML; it is ignored",
            "t.xml:2:84: warning: 'of_a_newer_version' is of RTI Connext, not of DDS-XML; it is \
             ignored",
        ],
    );
    let text = profile(inside);
    refused(
        &format!("<dds>{text}</dds>"),
        "'datawriter_qos' has no member 'of_a_newer_version'",
    );
    refused(
        &format!("<dds xmlns='http://www.omg.org/spec/DDS-XML'>{text}</dds>"),
        "'datawriter_qos' has no member 'of_a_newer_version'",
    );
    // A name of the standard that is misspelt stays an error.
    refused(
        &connext(&profile("<datawriter_qos><relaibility/></datawriter_qos>")),
        "'datawriter_qos' has no member 'relaibility'; did you mean 'reliability'?",
    );
    // By the namespace of one element.
    let inside =
        "<datawriter_qos><f:x xmlns:f='http://www.eprosima.com'><y/></f:x></datawriter_qos>";
    let text = format!("<dds>{}</dds>", profile(inside));
    check(
        &text,
        &["t.xml:1:66: warning: 'x' is of Fast DDS, not of DDS-XML; it is ignored"],
    );
}

#[test]
fn services_are_passed_over() {
    check(
        "<routing_service name='r'/>",
        &[
            "t.xml:1:1: warning: 'routing_service' configures a service or tool of RTI Connext; \
             it is ignored",
        ],
    );
    let text = format!("<dds>\n<web_integration_service/>{}</dds>", profile(""));
    let provider = check(
        &text,
        &[
            "t.xml:2:1: warning: 'web_integration_service' configures a service or tool of RTI \
             Connext; it is ignored",
        ],
    );
    assert!(provider.profile("L::P").is_ok());
}

#[test]
fn other_encodings_are_read() {
    let text = |label: &str| {
        format!(
            "<?xml version='1.0' encoding='{label}'?><dds>{}</dds>",
            profile("")
        )
    };
    let utf_16 = text("UTF-16");
    let units = || std::iter::once(0xfeffu16).chain(utf_16.encode_utf16());
    let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
    let ascii = text("us-ascii").into_bytes();
    for bytes in [little, big, ascii] {
        let provider = QosProvider::from_sources([("t.xml", bytes)]).unwrap();
        assert!(provider.profile("L::P").is_ok());
    }
}

#[test]
fn errors_do_not_hide_remarks() {
    let text = format!(
        "<dds>{}</dds>",
        profile(
            "<datawriter_qos><ownership><kind>EXCLUSIVE_OWNERSHIP_QOS</kind></ownership></datawriter_qos>\n\
             <datareader_qos><histroy/></datareader_qos>"
        )
    )
    .replace("name='P'", "name='P' base_name='Nonesuch'");
    let loader = QosLoader::new().text("t.xml", text);
    assert!(matches!(loader.load(), Err(LoadError::Invalid { .. })));
    let remarks = loader.inspect().unwrap().check();
    let errors = remarks.iter().filter(|it| it.severity == Severity::Error);
    assert_eq!(errors.count(), 2, "{remarks:?}");
    assert!(
        remarks.iter().any(|it| it.unsupported.is_some()),
        "{remarks:?}"
    );
    // Inheritance in a circle does not stop it either.
    let text = "<dds><qos_library name='L'><qos_profile name='A' base_name='B'/>\
                <qos_profile name='B' base_name='A'><datawriter_qos><ownership_strength><value>3</value>\
                </ownership_strength></datawriter_qos></qos_profile></qos_library></dds>";
    let remarks = QosLoader::new()
        .text("t.xml", text)
        .inspect()
        .unwrap()
        .check();
    assert!(
        remarks.iter().any(|it| it.message.contains("circle")),
        "{remarks:?}"
    );
    assert!(
        remarks.iter().any(|it| it.unsupported.is_some()),
        "{remarks:?}"
    );
}
