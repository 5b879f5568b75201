//! Entities: made, found, changed, deleted.

use spindle_dds::qos::{DataWriterQos, History, Length, ResourceLimits, TopicQos};
use spindle_dds::{DataReader, DataWriter, DomainParticipantFactory, Duration, Error, ReturnCode};

use crate::flight::{Blob, Other, State};
use crate::meeting::{Meeting, enable, keep_all_reader, reader, state, writer};

#[test]
fn what_was_made_is_found() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let (writer, reader) = (writer(&participant, "State"), reader(&participant, "State"));
    let topic = participant
        .lookup_topic("State")
        .expect("alive")
        .expect("it is there");
    assert_eq!(topic.type_name(), "flight::State");
    assert!(topic.downcast::<Other>().is_none());
    assert!(
        participant
            .lookup_topic("Elsewhere")
            .expect("alive")
            .is_none()
    );
    let publisher = writer.publisher().expect("alive");
    let found: Option<DataWriter<State>> = publisher.lookup_datawriter("State").expect("alive");
    assert_eq!(
        found.map(|found| found.instance_handle()),
        Some(writer.instance_handle())
    );
    let subscriber = reader.subscriber().expect("alive");
    let found: Option<DataReader<Blob>> = subscriber.lookup_datareader("State").expect("alive");
    assert!(found.is_none(), "it is of another type");
    for handle in [
        writer.instance_handle(),
        reader.instance_handle(),
        topic.instance_handle(),
    ] {
        assert!(participant.contains_entity(handle));
        assert!(!meeting.participant().contains_entity(handle));
    }
    let factory = DomainParticipantFactory::instance();
    let lonely = Meeting::new();
    assert!(factory.lookup_participant(200).is_none());
    let other = spindle_dds::DomainParticipant::builder(200)
        .property("spindle.directory", &lonely.directory())
        .disabled()
        .create()
        .expect("a participant");
    assert_eq!(factory.lookup_participant(200), Some(other));
    assert!(
        factory.lookup_participant(200).is_none(),
        "its last handle is gone"
    );
}

#[test]
fn deletion_is_checked() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let (writer, reader) = (writer(&participant, "State"), reader(&participant, "State"));
    let (publisher, subscriber) = (writer.publisher().unwrap(), reader.subscriber().unwrap());
    let topic = writer.topic();
    let stranger = meeting.participant();
    enable(std::slice::from_ref(&participant));
    writer.write(&state(1, 1)).expect("sent");
    let loan = writer.loan().expect("room");
    let samples = crate::meeting::take_some(&reader, 1);

    let refused = |result: spindle_dds::Result<()>| {
        assert_eq!(
            ReturnCode::of(&result),
            ReturnCode::PreconditionNotMet,
            "{result:?}"
        );
    };
    refused(DomainParticipantFactory::instance().delete_participant(&participant));
    refused(participant.delete_publisher(&publisher));
    refused(participant.delete_subscriber(&subscriber));
    refused(participant.delete_topic(&topic));
    refused(stranger.delete_topic(&topic));
    refused(publisher.delete_datawriter(&writer));
    refused(subscriber.delete_datareader(&reader));

    drop((loan, samples));
    publisher
        .delete_datawriter(&writer)
        .expect("no loan is out");
    subscriber
        .delete_datareader(&reader)
        .expect("no loan is out");
    participant
        .delete_publisher(&publisher)
        .expect("it is empty");
    participant
        .delete_subscriber(&subscriber)
        .expect("it is empty");
    participant.delete_topic(&topic).expect("it is not used");

    let gone = |code| assert_eq!(code, ReturnCode::AlreadyDeleted);
    gone(ReturnCode::of(&writer.write(&state(1, 1))));
    gone(ReturnCode::of(&writer.loan()));
    gone(ReturnCode::of(&reader.take(1)));
    gone(ReturnCode::of(&reader.status_condition()));
    gone(ReturnCode::of(&publisher.qos()));
    gone(ReturnCode::of(&publisher.delete_datawriter(&writer)));
    gone(ReturnCode::of(&topic.qos()));
    DomainParticipantFactory::instance()
        .delete_participant(&participant)
        .expect("it is empty");
    gone(ReturnCode::of(&participant.close()));
    gone(ReturnCode::of(
        &participant.topic::<State>("State").create(),
    ));
}

#[test]
fn qos_can_change_where_the_standard_lets_it() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let (writer, reader) = (writer(&participant, "State"), reader(&participant, "State"));
    let mut qos = writer.qos().expect("alive");
    qos.latency_budget = Duration::from_millis(5).into();
    writer
        .set_qos(qos.clone())
        .expect("LATENCY_BUDGET may change");
    assert_eq!(writer.qos(), Ok(qos.clone()));
    qos.history = History::keep_last(7);
    writer.set_qos(qos.clone()).expect("it is disabled yet");
    let mut changed = qos.clone();
    changed.property.set("spindle.ring.messages", "4");
    let refused = writer.set_qos(changed);
    assert_eq!(ReturnCode::of(&refused), ReturnCode::ImmutablePolicy);
    let mut limited = reader.qos().expect("alive");
    limited.resource_limits.max_samples = Length::Limited(0);
    let refused = reader.set_qos(limited);
    assert_eq!(
        ReturnCode::of(&refused),
        ReturnCode::InconsistentPolicy,
        "{refused:?}"
    );
    let topic = writer.topic();
    let later = TopicQos {
        history: History::keep_all(),
        ..TopicQos::default()
    };
    topic.set_qos(later.clone()).expect("it is disabled yet");
    enable(std::slice::from_ref(&participant));
    qos.history = History::keep_last(8);
    let refused = writer.set_qos(qos.clone());
    assert_eq!(
        ReturnCode::of(&refused),
        ReturnCode::ImmutablePolicy,
        "{refused:?}"
    );
    qos.history = History::keep_last(7);
    qos.latency_budget = Duration::from_millis(6).into();
    let refused = writer.set_qos(qos.clone());
    assert_eq!(
        ReturnCode::of(&refused),
        ReturnCode::Unsupported,
        "it would not be announced: {refused:?}"
    );
    qos.latency_budget = Duration::from_millis(5).into();
    writer.set_qos(qos).expect("nothing changes");
    let refused = topic.set_qos(TopicQos::default());
    assert_eq!(
        ReturnCode::of(&refused),
        ReturnCode::ImmutablePolicy,
        "{refused:?}"
    );
    let mut qos = DataWriterQos::default();
    writer
        .publisher()
        .unwrap()
        .copy_from_topic_qos(&mut qos, &later);
    assert_eq!(qos.history, History::keep_all());
}

#[test]
fn defaults_are_those_of_the_factories() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let publisher = participant.publisher().create().expect("a publisher");
    let qos = DataWriterQos {
        history: History::keep_last(3),
        ..DataWriterQos::default()
    };
    publisher
        .set_default_datawriter_qos(qos.clone())
        .expect("it makes sense");
    let topic = participant
        .topic::<State>("State")
        .create()
        .expect("a topic");
    let writer = publisher.writer(&topic).create().expect("a writer");
    assert_eq!(writer.qos(), Ok(qos));
    let bad = DataWriterQos {
        history: History::keep_last(3),
        resource_limits: ResourceLimits {
            max_samples_per_instance: Length::Limited(1),
            ..ResourceLimits::default()
        },
        ..DataWriterQos::default()
    };
    let refused = publisher.set_default_datawriter_qos(bad);
    assert_eq!(ReturnCode::of(&refused), ReturnCode::InconsistentPolicy);
}

#[test]
fn enabling_twice_is_once_and_endpoints_come_at_any_time() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let reader = reader(&participant, "State");
    assert!(matches!(reader.take(1), Err(Error::NotEnabled(_))));
    assert!(matches!(participant.counters(), Err(Error::NotEnabled(_))));
    participant.enable().expect("it is let in");
    participant.enable().expect("it is enabled");
    assert!(reader.is_enabled());
    let subscriber = reader.subscriber().expect("alive");
    let topic = reader.topic();
    let late = subscriber.reader(&topic).qos(keep_all_reader()).create();
    assert!(late.expect("it can come late").is_enabled());
    let writer = participant.publisher().create().expect("a publisher");
    assert_eq!(writer.wait_for_acknowledgments(Duration::ZERO), Ok(()));
}
