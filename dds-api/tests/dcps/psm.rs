//! The literal operations, from the factory to a sample and back.

use spindle_dds::psm::{self, DomainParticipantFactory, Received};
use spindle_dds::qos::{DataReaderQos, DomainParticipantFactoryQos, DomainParticipantQos};
use spindle_dds::{
    Condition, Duration, InstanceHandle, InstanceStateMask, ReturnCode, SampleStateMask,
    StatusMask, ViewStateMask,
};

use crate::flight::State;
use crate::meeting::{Meeting, keep_all_reader, state};

#[test]
fn a_program_in_the_words_of_the_standard() {
    let meeting = Meeting::new();
    let factory = DomainParticipantFactory::get_instance();
    let mut qos = DomainParticipantQos::default();
    qos.property.set("spindle.directory", meeting.directory());
    let mut factory_qos = DomainParticipantFactoryQos::default();
    factory_qos.entity_factory.autoenable_created_entities = false;
    assert_eq!(factory.set_qos(&factory_qos), ReturnCode::Ok);
    let participant = factory.create_participant(3, Some(&qos), None, StatusMask::NONE);
    assert_eq!(
        factory.set_qos(&DomainParticipantFactoryQos::default()),
        ReturnCode::Ok
    );
    let participant = participant.expect("a participant");
    assert_eq!(participant.get_domain_id(), 3);

    let support = psm::TypeSupport::<State>::new();
    assert_eq!(
        support.register_type(&participant, "Mine"),
        ReturnCode::Unsupported
    );
    assert_eq!(
        support.register_type(&participant, support.get_type_name()),
        ReturnCode::Ok
    );
    let none = StatusMask::NONE;
    let topic = participant.create_topic::<State>("State", "flight::State", None, None, none);
    let topic = topic.expect("a topic");
    let publisher = participant
        .create_publisher(None, None, none)
        .expect("a publisher");
    let subscriber = participant
        .create_subscriber(None, None, none)
        .expect("a subscriber");
    let writer = publisher
        .create_datawriter(&topic, None, None, none)
        .expect("a writer");
    let reader_qos: DataReaderQos = keep_all_reader();
    let reader = subscriber.create_datareader(&topic, Some(&reader_qos), None, none);
    let reader = reader.expect("a reader");
    assert_eq!(
        writer.write(&state(1, 1), InstanceHandle::NIL),
        ReturnCode::NotEnabled
    );
    assert_eq!(publisher.enable(), ReturnCode::PreconditionNotMet);
    assert_eq!(participant.enable(), ReturnCode::Ok);
    assert_eq!(publisher.enable(), ReturnCode::Ok);

    let handle = writer.register_instance(&state(1, 0));
    assert_eq!(writer.write(&state(1, 1), handle), ReturnCode::Ok);
    assert_eq!(
        writer.write(&state(2, 1), handle),
        ReturnCode::PreconditionNotMet
    );
    let entity = participant.get_instance_handle();
    assert_eq!(writer.write(&state(1, 1), entity), ReturnCode::BadParameter);

    let waits = psm::WaitSet::default();
    let any = (
        SampleStateMask::ANY,
        ViewStateMask::ANY,
        InstanceStateMask::ANY,
    );
    let condition = reader
        .create_readcondition(any.0, any.1, any.2)
        .expect("a condition");
    let attached: Condition = (&condition.0).into();
    assert_eq!(waits.attach_condition(&attached), ReturnCode::Ok);
    let mut active = Vec::new();
    assert_eq!(waits.wait(&mut active, Duration::INFINITE), ReturnCode::Ok);
    assert_eq!(active, [attached]);

    let mut received = Received::default();
    assert_eq!(
        reader.take(&mut received, -1, any.0, any.1, any.2),
        ReturnCode::Ok
    );
    let samples = received.0.as_ref().expect("on loan");
    assert_eq!(
        samples.get(0).map(|sample| sample.info().instance_handle),
        Some(handle)
    );
    assert_eq!(
        reader.take_next_sample(&mut received),
        ReturnCode::PreconditionNotMet
    );
    assert_eq!(
        subscriber.delete_datareader(&reader),
        ReturnCode::PreconditionNotMet
    );
    assert_eq!(reader.return_loan(&mut received), ReturnCode::Ok);
    assert_eq!(reader.take_next_sample(&mut received), ReturnCode::NoData);

    assert_eq!(
        factory.delete_participant(&participant),
        ReturnCode::PreconditionNotMet
    );
    assert_eq!(participant.delete_contained_entities(), ReturnCode::Ok);
    assert_eq!(
        writer.dispose(&state(1, 1), handle),
        ReturnCode::AlreadyDeleted
    );
    assert_eq!(factory.delete_participant(&participant), ReturnCode::Ok);
}
