//! Participants that files of DDS-XML describe: their entities, names, QoS and types.

use spindle_dds::qos::{HistoryKind, ReliabilityKind};
use spindle_dds::xtypes::{DynamicData, Value};
use spindle_dds::{
    DataReader, DataWriter, DomainParticipant, DomainParticipantFactory, Dynamic, Error,
    InstanceState, ReturnCode, psm,
};

use crate::flight::State;
use crate::meeting::{Meeting, until};

/// A type of the program in the words of XML, and one that only the file has.
const TYPES: &str = r#"
  <types>
    <module name="flight">
      <struct name="State" extensibility="final">
        <member name="icao" type="uint32" key="true"/><member name="altitude" type="int32"/>
        <member name="number" type="uint32"/><member name="feed" type="uint16"/>
        <member name="callsign" type="string" stringMaxLength="8"/>
      </struct>
    </module>
    <module name="plant">
      <enum name="Unit"><enumerator name="BAR"/><enumerator name="KELVIN"/></enum>
      <struct name="Reading">
        <member name="sensor" type="string" key="true"/>
        <member name="value" type="float64"/>
        <member name="unit" type="nonBasic" nonBasicTypeName="Unit"/>
        <member name="history" type="int32" sequenceMaxLength="4"/>
      </struct>
    </module>
  </types>"#;

const DOMAIN: &str = r#"
  <domain_library name="D">
    <domain name="Plant" domain_id="4">
      <register_type name="Reading" type_ref="plant::Reading"/>
      <topic name="Pressure" register_type_ref="Reading">
        <topic_name>plant/pressure</topic_name>
      </topic>
    </domain>
  </domain_library>"#;

fn text(participants: &str) -> String {
    format!("<dds>{TYPES}{DOMAIN}{participants}</dds>")
}

fn both_sides() -> String {
    text(
        r#"<domain_participant_library name="P">
             <domain_participant name="Gauge" domain_ref="D::Plant">
               <publisher name="Out">
                 <publisher_qos><presentation><access_scope>TOPIC_PRESENTATION_QOS</access_scope>
                   <ordered_access>true</ordered_access></presentation></publisher_qos>
                 <data_writer name="Writer" topic_ref="Pressure">
                   <datawriter_qos><history><kind>KEEP_ALL_HISTORY_QOS</kind></history></datawriter_qos>
                 </data_writer>
               </publisher>
             </domain_participant>
             <domain_participant name="Display" domain_ref="D::Plant">
               <data_reader name="Reader" topic_ref="Pressure">
                 <datareader_qos>
                   <reliability><kind>RELIABLE_RELIABILITY_QOS</kind></reliability>
                   <history><kind>KEEP_ALL_HISTORY_QOS</kind></history>
                 </datareader_qos>
               </data_reader>
             </domain_participant>
           </domain_participant_library>"#,
    )
}

fn create(meeting: &Meeting, name: &str, text: &str) -> Result<DomainParticipant, Error> {
    DomainParticipantFactory::instance()
        .create_participant_from_config(name)
        .qos_profiles_str(text)?
        .property("spindle.directory", &meeting.directory())
        .create()
}

fn reading(writer: &DataWriter<Dynamic>, sensor: &str, value: f64) -> DynamicData {
    let mut data = writer.dynamic_type().default_data().expect("small");
    data.set("sensor", sensor.into()).expect("a member");
    data.set("value", value.into()).expect("a member");
    data.set("unit", Value::Enum(1)).expect("a member");
    let history = Value::List(vec![1.into(), 2.into()]);
    data.set("history", history).expect("a member");
    data
}

/// The values of the samples that come, until there are so many, with the state of their instance.
fn take(reader: &DataReader<Dynamic>, count: usize) -> Vec<(String, InstanceState)> {
    let mut taken = Vec::new();
    until("samples", || {
        if let Ok(samples) = reader.take(100) {
            taken.extend(samples.iter().map(|sample| {
                let data = match sample.info().valid_data {
                    true => reader.data_of(sample).expect("valid").to_string(),
                    false => String::new(),
                };
                (data, sample.info().instance_state)
            }));
        }
        taken.len() >= count
    });
    taken
}

#[test]
fn participants_of_a_file_publish_and_read_what_only_the_file_describes() {
    let meeting = Meeting::new();
    let gauge = create(&meeting, "P::Gauge", &both_sides()).expect("the file describes it");
    let display = create(&meeting, "P::Display", &both_sides()).expect("the file describes it");
    assert_eq!((gauge.name(), gauge.domain_id()), ("Gauge", 4));
    let factory = DomainParticipantFactory::instance();
    assert!(factory.lookup_participant_by_name("Display").is_some());
    assert!(factory.lookup_participant_by_name("Nothing").is_none());

    let writer = gauge.lookup_datawriter_by_name("Out::Writer");
    let writer = writer.expect("alive").expect("created");
    assert_eq!(writer.entity_name(), "Writer");
    assert!(writer.downcast::<State>().is_none());
    let writer = writer.downcast::<Dynamic>().expect("a type of the file");
    assert_eq!(writer.topic().name(), "plant/pressure");
    assert_eq!(writer.topic().type_name(), "plant::Reading");
    let qos = writer.qos().expect("alive");
    assert_eq!(qos.history.kind, HistoryKind::KeepAll);
    let publisher = gauge.lookup_publisher_by_name("Out").expect("alive");
    let publisher = publisher.expect("created");
    assert!(publisher.qos().expect("alive").presentation.ordered_access);

    let reader = display.lookup_datareader_by_name("Reader");
    let reader = reader.expect("alive").expect("created");
    let reader = reader.downcast::<Dynamic>().expect("a type of the file");
    let qos = reader.qos().expect("alive");
    assert_eq!(qos.reliability.kind, ReliabilityKind::Reliable);
    until("a match", || {
        !writer.matched_subscriptions().expect("enabled").is_empty()
    });

    let sample = reading(&writer, "a sensor with a long name", 0.5);
    writer.write(&sample).expect("there is room");
    writer.dispose(&sample).expect("there is room");
    let other = reading(&writer, "another sensor, another instance", 2.5);
    writer.write(&other).expect("there is room");
    let taken = take(&reader, 3);
    let first = &taken[0].0;
    let expected = "{sensor: \"a sensor with a long name\", value: 0.5, unit: KELVIN, \
                    history: [1, 2]}";
    assert_eq!(first, expected);
    let disposed = (String::new(), InstanceState::NotAliveDisposed);
    assert_eq!(taken[1], disposed);
    assert!(taken[2].0.contains("another sensor"));
    assert_eq!(taken[2].1, InstanceState::Alive);
    gauge.close().expect("a member");
    display.close().expect("a member");
}

/// Another type's data is refused; that of an equal type is taken.
#[test]
fn data_of_another_type_is_refused() {
    let meeting = Meeting::new();
    let gauge = create(&meeting, "P::Gauge", &both_sides()).expect("the file describes it");
    let writer = gauge.lookup_datawriter_by_name("Out::Writer");
    let writer = writer.expect("alive").expect("created");
    let writer = writer.downcast::<Dynamic>().expect("a type of the file");
    let other = spindle_dds::qos::QosProvider::from_str(&text(""), "t.xml").expect("it is read");
    let state = other.topic_type("flight::State").expect("described");
    let state = state.default_data().expect("small");
    let error = writer.write(&state).expect_err("another type");
    let expected = "bad parameter: the sample is of type flight::State, the topic of type \
                    plant::Reading";
    assert_eq!(error.to_string(), expected);
    let equal = other.topic_type("plant::Reading").expect("described");
    let equal = equal.default_data().expect("small");
    writer.write(&equal).expect("there is room");
    gauge.close().expect("a member");
}

/// A type that the program registers comes before the description, which has to fit.
#[test]
fn a_registered_type_is_used_where_it_fits_the_description() {
    let meeting = Meeting::new();
    let factory = DomainParticipantFactory::instance();
    let participants = |name: &str, type_ref: &str| {
        text(&format!(
            r#"<domain_participant_library name="P">
                 <domain_participant name="{name}">
                   <register_type name="{name}Type" type_ref="{type_ref}"/>
                   <topic name="State" register_type_ref="{name}Type"/>
                   <data_writer name="Writer" topic_ref="State"/>
                 </domain_participant>
               </domain_participant_library>"#
        ))
    };
    factory.register_type::<State>("FitsType");
    let fits = create(&meeting, "P::Fits", &participants("Fits", "flight::State"));
    let fits = fits.expect("the description fits");
    let writer = fits.lookup_datawriter_by_name("Writer").expect("alive");
    assert!(writer.expect("created").downcast::<State>().is_some());
    fits.close().expect("a member");

    // No file has the type, but the program has.
    factory.register_type::<State>("BareType");
    let bare = create(&meeting, "P::Bare", &participants("Bare", "nowhere::State"));
    let bare = bare.expect("the program has registered it");
    let writer = bare.lookup_datawriter_by_name("Writer").expect("alive");
    let writer = writer.expect("created").downcast::<State>();
    let writer = writer.expect("the type of the program");
    writer.write(&State::default()).expect("there is room");
    bare.close().expect("a member");

    let error = create(
        &meeting,
        "P::Other",
        &participants("Other", "nowhere::Other"),
    );
    let error = error.expect_err("neither has the type");
    assert_eq!(error.return_code(), ReturnCode::BadParameter);
    assert!(
        error
            .to_string()
            .contains("has registered no type OtherType or nowhere::Other")
    );

    factory.register_type::<State>("WrongType");
    let error = create(
        &meeting,
        "P::Wrong",
        &participants("Wrong", "plant::Reading"),
    );
    let error = error.expect_err("it does not fit");
    let text = error.to_string();
    assert!(text.contains("does not fit the description"), "{text}");
    assert!(text.contains("text["), "the line of the file: {text}");
}

#[test]
fn what_cannot_be_created_leaves_nothing_behind() {
    let meeting = Meeting::new();
    let error = create(&meeting, "P::Guage", &both_sides()).expect_err("misspelt");
    assert!(
        error.to_string().contains("did you mean 'P::Gauge'?"),
        "{error}"
    );

    let filtered = both_sides().replace(
        "<datareader_qos>",
        "<content_filter name='f'><expression>value &gt; 1</expression></content_filter>
         <datareader_qos>",
    );
    let filtered = filtered.replace("name=\"Display\"", "name=\"Filtered\"");
    let error = create(&meeting, "P::Filtered", &filtered).expect_err("filters are not built");
    assert_eq!(error.return_code(), ReturnCode::Unsupported, "{error}");
    let factory = DomainParticipantFactory::instance();
    assert!(factory.lookup_participant_by_name("Filtered").is_none());
}

/// In the words of the platform specific model, by files of the factory.
#[test]
fn a_participant_in_the_words_of_the_model() {
    let factory = psm::DomainParticipantFactory::get_instance();
    assert!(
        factory
            .create_participant_from_config("Nowhere::Nothing")
            .is_none()
    );
}

#[test]
fn entities_have_the_names_that_programs_give_them() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let topic = participant
        .topic::<State>("State")
        .create()
        .expect("a topic");
    let publisher = participant.publisher().name("Out").create();
    let publisher = publisher.expect("a publisher");
    let writer = publisher.writer(&topic).name("Fast").create();
    let writer = writer.expect("a writer");
    let nameless = publisher.writer(&topic).create().expect("a writer");
    assert_eq!(
        (publisher.entity_name(), writer.entity_name()),
        ("Out", "Fast")
    );
    assert_eq!(nameless.entity_name(), "");
    let found = participant.lookup_datawriter_by_name("Out::Fast");
    let found = found.expect("alive").expect("named");
    assert_eq!(found.instance_handle(), writer.instance_handle());
    let subscriber = participant.subscriber().create().expect("a subscriber");
    let reader = subscriber.reader(&topic).name("Slow").create();
    let reader = reader.expect("a reader");
    let found = participant.lookup_datareader_by_name("Slow");
    let found = found.expect("alive").expect("named");
    assert_eq!(found.instance_handle(), reader.instance_handle());
    assert!(
        participant
            .lookup_datareader_by_name("Fast")
            .expect("alive")
            .is_none()
    );
    let error = publisher
        .writer(&topic)
        .name("")
        .create()
        .expect_err("no name");
    assert_eq!(error.return_code(), ReturnCode::BadParameter);
    publisher.delete_datawriter(&writer).expect("without loans");
    let found = participant.lookup_datawriter_by_name("Out::Fast");
    assert!(found.expect("alive").is_none());
}
