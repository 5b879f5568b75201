//! Bad input: one clear error each.

use std::io::Write as _;

use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, Deadline, Durability, DurabilityKind, History, Ownership,
    OwnershipKind, Partition, Presentation, PresentationAccessScope, Property, PublisherQos,
    Reliability, SubscriberQos,
};
use spindle_dds::{
    DomainParticipant, Duration, Error, InstanceHandle, Result, ReturnCode, StateMasks,
};

use crate::flight::{Other, State};
use crate::meeting::{Meeting, enable, keep_all_reader, reader, reliable_writer, state, writer};

fn check<T: std::fmt::Debug>(result: Result<T>, code: ReturnCode, says: &str) {
    assert_eq!(ReturnCode::of(&result), code, "{result:?}");
    let text = result.expect_err("an error").to_string();
    assert!(text.contains(says), "{text:?} says nothing of {says:?}");
}

#[test]
fn participants() {
    let build = || DomainParticipant::builder(0).disabled();
    let bad = ReturnCode::BadParameter;
    check(
        DomainParticipant::builder(4711).disabled().create(),
        bad,
        "4711",
    );
    check(
        build().property("spindle.group.size", "2").create(),
        bad,
        "spindle.group.size",
    );
    check(
        build().property("spindle.failure.limit_ms", "0").create(),
        bad,
        "from 30",
    );
    check(
        build().profile("Flight::Display").create(),
        bad,
        "Flight::Display",
    );
    check(
        build().qos_profiles("/nowhere/flight.xml"),
        bad,
        "/nowhere/flight.xml",
    );
}

#[test]
fn names_of_participants() {
    let create = |name: &str| DomainParticipant::builder(0).disabled().name(name).create();
    let bad = ReturnCode::BadParameter;
    check(create(""), bad, "the name of a participant is empty");
    check(create("a\0"), bad, "has a NUL, at byte 1");
    check(
        create(&"x".repeat(257)),
        bad,
        "has 257 bytes, more than 256",
    );
    assert_eq!(create(&"x".repeat(256)).expect("a name").name().len(), 256);
}

#[test]
fn names_of_topics() {
    let participant = DomainParticipant::builder(0).disabled().create();
    let participant = participant.expect("needs no domain");
    let create = |name: &str| participant.topic::<State>(name).create();
    let bad = ReturnCode::BadParameter;
    check(create(""), bad, "the name of a topic is empty");
    check(create("a\0b"), bad, "has a NUL, at byte 1: \"a\\0b\"");
    check(create("\0"), bad, "has a NUL, at byte 0");
    check(
        create(&"x".repeat(300)),
        bad,
        "has 300 bytes, more than 256",
    );
    check(create(&"\u{e9}".repeat(129)), bad, "has 258 bytes");
    for name in ["x", "rt/chatter", "a b", "\u{e9}", &*"x".repeat(256)] {
        assert_eq!(create(name).expect("a name").name(), name);
    }
}

#[test]
fn an_error_is_shown_as_it_is_displayed() {
    let error = DomainParticipant::builder(233)
        .create()
        .expect_err("too high");
    assert_eq!(
        format!("{error:?}"),
        "bad parameter: domain id 233 is above 232"
    );
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn profiles_in_a_text() {
    let library =
        |profiles: &str| format!("<dds><qos_library name='L'>{profiles}</qos_library></dds>");
    let first = library(
        "<qos_profile name='Base'><datareader_qos><history><kind>KEEP_ALL_HISTORY_QOS</kind>\
         </history></datareader_qos></qos_profile>",
    );
    let second = library("\n<qos_profile name='All' base_name='L::Base'/>");
    let build = || DomainParticipant::builder(0).disabled();
    // Texts and files are read as one.
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(second.as_bytes()).expect("written");
    let with_file = build()
        .qos_profiles_str(&first)
        .unwrap()
        .qos_profiles(file.path());
    let with_text = build()
        .qos_profiles_str(&first)
        .unwrap()
        .qos_profiles_str(&second);
    for builder in [with_file, with_text] {
        let participant = builder.unwrap().profile("L::All").create();
        let participant = participant.expect("a participant");
        let topic = participant.topic::<State>("State").create();
        let subscriber = participant.subscriber().create().expect("a subscriber");
        let reader = subscriber.reader(&topic.expect("a topic")).create();
        let qos = reader.expect("a reader").qos().expect("alive");
        assert_eq!(qos.history, History::keep_all());
    }
    // What is wrong, and where: by the number of the text.
    let bad = ReturnCode::BadParameter;
    check(build().qos_profiles_str(&second), bad, "]:2:");
    check(
        build()
            .qos_profiles_str(&first)
            .unwrap()
            .qos_profiles_str("<dds>\n<x/></dds>"),
        bad,
        "]:2:1",
    );
    check(
        build().profile("L::All").create(),
        bad,
        "no QoS profile is named 'L::All'; there are no profiles",
    );
    check(
        build().qos_profiles("nowhere.xml"),
        bad,
        "nowhere.xml: No such file",
    );
}

#[test]
fn profiles() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let text = r#"<dds><qos_library name="Flight"><qos_profile name="Display">
      <domain_participant_qos><property><value><element>
        <name>spindle.ring.messages</name><value>64</value>
      </element></value></property></domain_participant_qos>
      <datawriter_qos><durability>
        <kind>TRANSIENT_DURABILITY_QOS</kind>
      </durability><ownership>
        <kind>EXCLUSIVE_OWNERSHIP_QOS</kind>
      </ownership></datawriter_qos>
      <datareader_qos><history><kind>KEEP_ALL_HISTORY_QOS</kind></history></datareader_qos>
    </qos_profile></qos_library></dds>"#;
    file.write_all(text.as_bytes()).expect("written");
    let build = || {
        DomainParticipant::builder(0)
            .disabled()
            .qos_profiles(file.path())
    };
    check(
        build().unwrap().profile("Flight::Dispaly").create(),
        ReturnCode::BadParameter,
        "Dispaly",
    );
    let participant = build()
        .unwrap()
        .profile("Flight::Display")
        .create()
        .expect("a participant");
    let qos = participant.qos().expect("alive");
    assert_eq!(qos.property.get("spindle.ring.messages"), Some("64"));
    let other = build()
        .unwrap()
        .profile("Flight::Display")
        .property("spindle.ring.messages", "128");
    let other = other.create().expect("a participant").qos().expect("alive");
    assert_eq!(
        other.property.get("spindle.ring.messages"),
        Some("128"),
        "it overrides the file's"
    );
    let topic = participant
        .topic::<State>("State")
        .create()
        .expect("a topic");
    let subscriber = participant.subscriber().create().expect("a subscriber");
    let reader = subscriber.reader(&topic).create().expect("a reader");
    assert_eq!(reader.qos().expect("alive").history, History::keep_all());
    // The policy, and the line that asks for it.
    let publisher = participant.publisher().create().expect("a publisher");
    let refused = publisher.writer(&topic).create();
    let line = format!("{}:7:", file.path().display());
    check(refused, ReturnCode::Unsupported, &line);
    check(
        publisher.writer(&topic).create(),
        ReturnCode::Unsupported,
        "OWNERSHIP",
    );
    check(
        publisher.writer(&topic).profile("No::Such").create(),
        ReturnCode::BadParameter,
        "No::Such",
    );
    publisher
        .writer(&topic)
        .qos(reliable_writer())
        .create()
        .expect("this one is built");
}

#[test]
fn endpoints() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let stranger = meeting.participant();
    let bad = ReturnCode::BadParameter;
    check(participant.topic::<State>("").create(), bad, "name");
    let topic = participant
        .topic::<State>("State")
        .create()
        .expect("a topic");
    let twice = participant.topic::<Other>("State").create();
    check(twice, ReturnCode::PreconditionNotMet, "flight::State");
    let publisher = participant.publisher().create().expect("a publisher");
    let foreign = stranger.topic::<State>("State").create().expect("a topic");
    let refused = publisher.writer(&foreign).create();
    check(
        refused,
        ReturnCode::PreconditionNotMet,
        "another participant",
    );

    let mut qos = reliable_writer();
    qos.history = History::keep_last(0);
    check(
        publisher.writer(&topic).qos(qos).create(),
        ReturnCode::InconsistentPolicy,
        "HISTORY",
    );
    let mut qos = reliable_writer();
    qos.property.set("spindle.reader.storage", "ring");
    check(
        publisher.writer(&topic).qos(qos).create(),
        bad,
        "spindle.reader.storage",
    );
    let mut qos = reliable_writer();
    qos.durability = Durability::from(DurabilityKind::Persistent);
    qos.reliability = Reliability::best_effort();
    check(
        publisher.writer(&topic).qos(qos).create(),
        ReturnCode::InconsistentPolicy,
        "RELIABILITY",
    );
    let mut qos = reliable_writer();
    qos.deadline = Deadline::from(Duration::from_secs(1));
    check(
        publisher.writer(&topic).qos(qos).create(),
        ReturnCode::Unsupported,
        "DEADLINE",
    );

    let subscriber = participant.subscriber().create().expect("a subscriber");
    let mut qos = keep_all_reader();
    qos.ownership = Ownership::from(OwnershipKind::Exclusive);
    check(
        subscriber.reader(&topic).qos(qos).create(),
        ReturnCode::Unsupported,
        "OWNERSHIP",
    );
    let mut qos = keep_all_reader();
    qos.property.set("spindle.reader.storage", "disk");
    check(subscriber.reader(&topic).qos(qos).create(), bad, "\"disk\"");

    let group = SubscriberQos {
        presentation: Presentation {
            access_scope: PresentationAccessScope::Group,
            ..Presentation::default()
        },
        ..SubscriberQos::default()
    };
    let refused = participant.subscriber().qos(group).create();
    check(refused, ReturnCode::Unsupported, "PRESENTATION");
    let elsewhere = PublisherQos {
        partition: Partition::new(["north"]),
        ..PublisherQos::default()
    };
    let refused = participant.publisher().qos(elsewhere).create();
    check(refused, ReturnCode::Unsupported, "PARTITION");
}

#[test]
fn endpoints_that_cannot_be_announced_are_refused_before_enabling_too() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let topic = participant.topic::<State>("State").create();
    let topic = topic.expect("a topic");
    let long = Property {
        name: "application.note".to_owned(),
        value: "x".repeat(20_000),
        propagate: true,
    };
    let (mut writer_qos, mut reader_qos) = (DataWriterQos::default(), DataReaderQos::default());
    writer_qos.property.insert(long.clone());
    reader_qos.property.insert(long);
    let too_long = |participant: &DomainParticipant| {
        let publisher = participant.publisher().create().expect("a publisher");
        let writer = publisher.writer(&topic).qos(writer_qos.clone()).create();
        check(writer, ReturnCode::OutOfResources, "can be announced");
        let subscriber = participant.subscriber().create().expect("a subscriber");
        let reader = subscriber.reader(&topic).qos(reader_qos.clone()).create();
        check(reader, ReturnCode::OutOfResources, "can be announced");
    };
    too_long(&participant);
    participant.enable().expect("nothing of them is left");
    too_long(&participant);
}

#[test]
fn operations_before_enabling() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let (writer, reader) = (writer(&participant, "State"), reader(&participant, "State"));
    let code = ReturnCode::NotEnabled;
    check(writer.write(&state(1, 1)), code, "enable()");
    check(writer.loan(), code, "State");
    check(writer.dispose(&state(1, 1)), code, "State");
    check(writer.register_instance(&state(1, 1)), code, "State");
    check(
        writer.wait_for_acknowledgments(Duration::ZERO),
        code,
        "State",
    );
    check(writer.matched_subscriptions(), code, "State");
    check(reader.take(1), code, "State");
    check(reader.read_next_sample(), code, "State");
    check(reader.matched_publications(), code, "State");
    check(
        reader.subscriber().unwrap().datareaders(StateMasks::ANY),
        code,
        "subscriber",
    );
    // What a disabled entity has all the same.
    assert!(writer.qos().is_ok() && reader.status_condition().is_ok());
    assert!(
        writer
            .set_listener(spindle_dds::StatusMask::NONE, None)
            .is_ok()
    );
}

#[test]
fn reading() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let (first, second) = (reader(&participant, "State"), reader(&participant, "State"));
    enable(std::slice::from_ref(&participant));
    check(first.take(1), ReturnCode::NoData, "no sample");
    check(first.take(0), ReturnCode::BadParameter, "0");
    let unknown = InstanceHandle::NIL;
    check(
        first.read_instance(1, unknown, StateMasks::ANY),
        ReturnCode::BadParameter,
        "NIL",
    );
    let entity = first.instance_handle();
    check(
        first.take_next_instance(1, entity, StateMasks::ANY),
        ReturnCode::BadParameter,
        "names",
    );
    let foreign = second.read_condition(StateMasks::ANY).expect("alive");
    check(
        first.take_w_condition(1, &foreign),
        ReturnCode::PreconditionNotMet,
        "another reader",
    );
    assert_eq!(first.lookup_instance(&state(1, 1)), Ok(None));
    let error: Error = first.take(1).expect_err("nothing");
    assert!(error.is_no_data() && !error.is_timeout());
}

/// A property of a file that is wrong is told with its line, at a participant, a writer and a
/// reader.
#[test]
fn properties_of_files() {
    let property = |name: &str, value: &str| {
        format!(
            "<property><value>\n<element><name>{name}</name><value>{value}</value></element>\n\
             </value></property>"
        )
    };
    let text = |participant: &str, writer: &str, reader: &str| {
        format!(
            "<dds><qos_library name='L'><qos_profile name='P'>\
             <domain_participant_qos>{participant}</domain_participant_qos>\
             <datawriter_qos>{writer}</datawriter_qos><datareader_qos>{reader}</datareader_qos>\
             </qos_profile></qos_library></dds>"
        )
    };
    let build = |text: &str| {
        let builder = DomainParticipant::builder(0).disabled();
        builder.qos_profiles_str(text).unwrap().profile("L::P")
    };
    let bad = ReturnCode::BadParameter;
    let wrong = text(&property("spindle.fialure.limit_ms", "500"), "", "");
    check(
        build(&wrong).create(),
        bad,
        "did you mean 'spindle.failure.limit_ms'?",
    );
    check(build(&wrong).create(), bad, "]:2:1)");
    // What code sets in its place is not of the file.
    let builder = build(&text(&property("spindle.wait", "spin"), "", ""));
    let refused = builder.property("spindle.wait", "busy").create();
    let refused = refused.expect_err("no such value").to_string();
    assert!(!refused.contains("set at"), "{refused}");

    let wrong = text(
        "",
        &property("spindle.ring.messages", "1"),
        &property("spindle.reader.storage", "rings"),
    );
    let participant = build(&wrong).create().expect("a participant");
    let topic = participant
        .topic::<State>("State")
        .create()
        .expect("a topic");
    let publisher = participant.publisher().create().expect("a publisher");
    check(publisher.writer(&topic).create(), bad, "]:2:1)");
    let subscriber = participant.subscriber().create().expect("a subscriber");
    check(subscriber.reader(&topic).create(), bad, "]:4:1)");
}

/// Profiles of a text, the profile that it marks as the default, built-in profiles, and QoS of
/// entities by name.
#[test]
fn profiles_of_a_text() {
    let text = r#"<dds><qos_library name="L">
      <qos_profile name="P" is_default_qos="true" base_name="BuiltinQosLib::Generic.StrictReliable">
        <domain_participant_qos><property><value>
          <element><name>of</name><value>the default profile</value></element>
        </value></property></domain_participant_qos>
      </qos_profile>
      <datareader_qos name="Deep"><history><depth>9</depth></history></datareader_qos>
    </qos_library></dds>"#;
    let builder = DomainParticipant::builder(0).disabled();
    let participant = builder.qos_profiles_str(text).expect("it is right");
    let participant = participant.create().expect("a participant");
    let qos = participant.qos().expect("alive");
    assert_eq!(qos.property.get("of"), Some("the default profile"));
    let topic = participant
        .topic::<State>("State")
        .create()
        .expect("a topic");
    let publisher = participant.publisher().create().expect("a publisher");
    let writer = publisher.writer(&topic).create().expect("a writer");
    assert_eq!(writer.qos().expect("alive").history, History::keep_all());
    let subscriber = participant.subscriber().create().expect("a subscriber");
    let reader = |profile: &str| subscriber.reader(&topic).profile(profile).create();
    let history = |profile: &str| {
        let reader = reader(profile).expect("a reader");
        reader.qos().expect("alive").history
    };
    assert_eq!(history("L::P"), History::keep_all());
    assert_eq!(history("L::Deep"), History::keep_last(9));
    assert_eq!(
        history("BuiltinQosLib::Generic.KeepLastReliable"),
        History::keep_last(1)
    );
    let bad = ReturnCode::BadParameter;
    check(reader("L::Deap"), bad, "did you mean 'L::Deep'?");
    // QoS of readers is none of writers.
    check(
        publisher.writer(&topic).profile("L::Deep").create(),
        bad,
        "L::Deep",
    );

    // A text that is wrong is told with the line of the program, and that of the text.
    let builder = DomainParticipant::builder(0);
    let line = line!() + 1;
    let refused = builder.qos_profiles_str("<dds>\n<nonsense/></dds>");
    check(
        refused,
        bad,
        &format!("text[{}:{line}]:2:1: error", file!()),
    );
}
