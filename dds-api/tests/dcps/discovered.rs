//! What is known of others.

use spindle_dds::psm;
use spindle_dds::{
    Error, InstanceHandle, ParticipantBuiltinTopicData, PublicationBuiltinTopicData, ReturnCode,
    SubscriptionBuiltinTopicData,
};

use crate::meeting::{
    Meeting, enable, keep_all_reader, reader, reliable_writer, wait_for_members, writer,
};

#[test]
fn participants_topics_and_matched_endpoints_can_be_listed() {
    let meeting = Meeting::new();
    let create = |name: &str| meeting.builder().name(name).create();
    let participants = [
        meeting.participant(),
        create("radar").expect("a participant"),
    ];
    let written = writer(&participants[0], "State");
    let heard = reader(&participants[1], "State");
    let elsewhere = reader(&participants[1], "Elsewhere");
    enable(&participants);
    let [here, there] = participants.each_ref();
    let others = here.discovered_participants().expect("enabled");
    assert_eq!(others, [there.instance_handle()]);
    let other = here.discovered_participant_data(others[0]).expect("there");
    assert_eq!(InstanceHandle::of_entity(other.key), others[0]);
    assert_eq!((&*other.participant_name, there.name()), ("radar", "radar"));
    // The other one was given no name.
    let seen = there.discovered_participant_data(here.instance_handle());
    let program = std::env::current_exe().expect("this program");
    let program = program.file_name().expect("a file").to_string_lossy();
    let expected = format!("{program}/{}", std::process::id());
    assert_eq!(seen.expect("there").participant_name, expected);

    let of_reader = written.matched_subscription_data(heard.instance_handle());
    let of_reader = of_reader.expect("matched");
    assert_eq!(
        InstanceHandle::of_entity(of_reader.key),
        heard.instance_handle()
    );
    assert_eq!(of_reader.participant_key, other.key);
    assert_eq!(of_reader.topic_name, "State");
    assert_eq!(of_reader.type_name, "flight::State");
    assert_eq!(of_reader.reliability, keep_all_reader().reliability);
    assert!(of_reader.presentation.ordered_access);
    let of_writer = heard.matched_publication_data(written.instance_handle());
    let of_writer = of_writer.expect("matched");
    assert_eq!(
        InstanceHandle::of_entity(of_writer.participant_key),
        here.instance_handle()
    );
    assert_eq!(of_writer.reliability, reliable_writer().reliability);

    // There is no other.
    let strangers = [
        here.discovered_participant_data(here.instance_handle())
            .err(),
        written
            .matched_subscription_data(elsewhere.instance_handle())
            .err(),
        heard.matched_publication_data(InstanceHandle::NIL).err(),
    ];
    for error in strangers {
        assert!(matches!(error, Some(Error::BadParameter(_))), "{error:?}");
    }
    there.close().expect("it leaves");
    wait_for_members(&participants[..1], 1);
    let error = here
        .discovered_participant_data(others[0])
        .expect_err("left");
    assert!(matches!(error, Error::BadParameter(_)), "{error}");
    let gone = written.matched_subscription_data(heard.instance_handle());
    assert!(matches!(gone, Err(Error::BadParameter(_))), "{gone:?}");
}

#[test]
fn the_same_in_the_words_of_the_standard() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let written = writer(&participants[0], "State");
    let heard = reader(&participants[1], "State");
    enable(&participants);
    let participant = psm::DomainParticipant(participants[0].clone());
    let mut handles = Vec::new();
    assert_eq!(
        participant.get_discovered_participants(&mut handles),
        ReturnCode::Ok
    );
    let mut data = ParticipantBuiltinTopicData::default();
    assert_eq!(
        participant.get_discovered_participant_data(&mut data, handles[0]),
        ReturnCode::Ok
    );
    assert_eq!(InstanceHandle::of_entity(data.key), handles[0]);
    let [writer, reader] = [written.instance_handle(), heard.instance_handle()];
    let mut data = SubscriptionBuiltinTopicData::default();
    let written = psm::DataWriter(written);
    assert_eq!(
        written.get_matched_subscription_data(&mut data, reader),
        ReturnCode::Ok
    );
    assert_eq!(data.topic_name, "State");
    let mut data = PublicationBuiltinTopicData::default();
    let heard = psm::DataReader(heard);
    assert_eq!(
        heard.get_matched_publication_data(&mut data, writer),
        ReturnCode::Ok
    );
    assert_eq!(data.topic_name, "State");
    assert_eq!(
        heard.get_matched_publication_data(&mut data, reader),
        ReturnCode::BadParameter
    );
}
