//! Domains, participants and applications: inheritance, references, QoS.

use spindle_dds_qos::{DeclaredParticipant, QosProvider, ReliabilityKind};

const TEXT: &str = r#"<dds>
  <types>
    <module name="flight">
      <struct name="State"><member name="id" type="int32" key="true"/></struct>
    </module>
  </types>
  <qos_library name="Q">
    <qos_profile name="P">
      <datawriter_qos topic_filter="Fast*"><history><depth>3</depth></history></datawriter_qos>
      <datawriter_qos><history><depth>9</depth></history></datawriter_qos>
      <domain_participant_qos><property><value>
        <element><name>of</name><value>profile</value></element>
      </value></property></domain_participant_qos>
    </qos_profile>
  </qos_library>
  <domain_library name="D">
    <domain name="Base" domain_id="7">
      <register_type name="StateType" type_ref="flight::State"/>
      <register_type name="Compiled"/>
      <topic name="State" register_type_ref="StateType">
        <topic_qos><history><depth>4</depth></history></topic_qos>
      </topic>
      <topic name="Other" register_type_ref="Compiled"/>
    </domain>
    <domain name="Derived" base_name="Base">
      <topic name="Quick" register_type_ref="StateType">
        <topic_name>FastState</topic_name>
        <datareader_qos><reliability><kind>RELIABLE_RELIABILITY_QOS</kind></reliability></datareader_qos>
      </topic>
    </domain>
  </domain_library>
  <domain_participant_library name="L">
    <domain_participant name="Sensor" domain_ref="D::Derived">
      <domain_participant_qos base_name="Q::P"/>
      <publisher name="Pub">
        <data_writer name="Slow" topic_ref="State"><datawriter_qos base_name="Q::P"/></data_writer>
        <data_writer name="Fast" topic_ref="Quick"><datawriter_qos base_name="Q::P"/></data_writer>
        <data_writer name="Plain" topic_ref="State"/>
      </publisher>
      <data_reader name="Direct" topic_ref="Quick"/>
    </domain_participant>
    <domain_participant name="Radar" base_name="Sensor" domain_id="8">
      <topic name="State" register_type_ref="StateType"/>
      <domain_participant_qos><property><value>
        <element><name>own</name><value>radar</value></element>
      </value></property></domain_participant_qos>
      <publisher name="Pub">
        <data_writer name="Fast" topic_ref="State"/>
      </publisher>
    </domain_participant>
    <domain_participant name="Empty"/>
  </domain_participant_library>
  <application_library name="A">
    <application name="App">
      <domain_participant name="Radar" base_name="L::Radar"/>
    </application>
  </application_library>
</dds>"#;

fn provider() -> QosProvider {
    QosProvider::from_str(TEXT, "t.xml").expect("without errors")
}

fn participant(name: &str) -> DeclaredParticipant {
    provider().participant(name).expect("declared")
}

#[test]
fn a_participant_has_what_its_domain_has() {
    let sensor = participant("L::Sensor");
    assert_eq!((sensor.name.as_str(), sensor.domain_id), ("Sensor", 7));
    let topics = sensor.topics.iter();
    let topics: Vec<_> = topics
        .map(|it| {
            (
                it.name.as_str(),
                it.topic_name.as_str(),
                it.type_name.as_str(),
            )
        })
        .collect();
    let expected = [
        ("State", "State", "flight::State"),
        ("Other", "Other", "Compiled"),
        ("Quick", "FastState", "flight::State"),
    ];
    assert_eq!(topics, expected);
    assert_eq!(sensor.topics[0].registered_type, "StateType");
    assert_eq!(
        sensor.topics[0].qos.as_ref().expect("inline").history.depth,
        4
    );
    assert!(sensor.topics[0].ty.is_some() && sensor.topics[1].ty.is_none());
    let property = |name: &str| {
        let qos = sensor.qos.as_ref().expect("inline");
        qos.property.get(name).map(str::to_owned)
    };
    assert_eq!(property("of").as_deref(), Some("profile"));
}

#[test]
fn qos_is_that_of_the_topic_by_its_name_in_the_domain() {
    let sensor = participant("Sensor");
    let depth = |at: usize| {
        let writer = &sensor.publishers[0].writers[at];
        writer.qos.as_ref().map(|qos| qos.history.depth)
    };
    assert_eq!([depth(0), depth(1), depth(2)], [Some(9), Some(3), None]);
    let direct = &sensor.subscribers[0];
    assert_eq!((direct.name.as_str(), direct.readers.len()), ("", 1));
    let qos = direct.readers[0].qos.as_ref().expect("that of its topic");
    assert_eq!(qos.reliability.kind, ReliabilityKind::Reliable);
}

#[test]
fn a_participant_inherits_and_replaces_by_name() {
    for name in ["L::Radar", "A::App::Radar"] {
        let radar = participant(name);
        assert_eq!((radar.name.as_str(), radar.domain_id), ("Radar", 8));
        let writers = radar.publishers[0].writers.iter();
        let writers: Vec<_> = writers
            .map(|it| (it.name.as_str(), it.topic.as_str()))
            .collect();
        let expected = [("Slow", "State"), ("Plain", "State"), ("Fast", "State")];
        assert_eq!(writers, expected);
        let state = radar.topics.iter().find(|it| it.name == "State");
        assert!(state.expect("inherited").qos.is_none(), "replaced");
        let properties = &radar.qos.as_ref().expect("inline").property;
        assert_eq!(properties.get("of"), Some("profile"));
        assert_eq!(properties.get("own"), Some("radar"));
    }
    assert_eq!(participant("L::Empty").domain_id, 0);
}

#[test]
fn names_that_are_not_known_are_told_with_those_that_are() {
    let error = provider()
        .participant("L::Sensr")
        .expect_err("not declared");
    let expected = "no participant of a file is named 'L::Sensr'; did you mean 'L::Sensor'?";
    assert_eq!(error.to_string(), expected);
    // Two libraries have one.
    assert!(provider().participant("Radar").is_err());
    let warnings = provider().warnings().to_vec();
    assert_eq!(
        warnings[0].to_string(),
        "t.xml:19:7: warning: no file describes the type 'Compiled': the program has to register \
         a compiled type for it"
    );
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

#[test]
fn policies_in_the_elements_of_entities_are_checked() {
    let text = TEXT.replace(
        "<data_writer name=\"Plain\" topic_ref=\"State\"/>",
        "<data_writer name=\"Plain\" topic_ref=\"State\"><datawriter_qos>
           <history><depth>5</depth></history>
           <resource_limits><max_samples_per_instance>2</max_samples_per_instance></resource_limits>
         </datawriter_qos></data_writer>",
    );
    let provider = QosProvider::from_str(&text, "t.xml").expect("without errors");
    let remarks = provider.check();
    let found = remarks
        .iter()
        .any(|it| it.message.contains("is inconsistent"));
    assert!(found, "{remarks:?}");
}
