//! Which endpoints find each other, and what those are told that do not.

use spindle_dds::StatusMask;
use spindle_dds::qos::{
    DataReaderQos, DataRepresentationId, LatencyBudget, PolicyId, Reliability, ReliabilityKind,
    SubscriberQos,
};

use crate::flight::{Other, State};
use crate::meeting::{
    Meeting, enable, keep_all_reader, reader, reliable_writer, wait_until, writer, writer_with,
};

#[test]
fn equal_topics_and_types_match_everywhere() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writers = [0, 1].map(|at| writer(&participants[at], "State"));
    let readers = [0, 1].map(|at| reader(&participants[at], "State"));
    let elsewhere = reader(&participants[1], "Elsewhere");
    enable(&participants);
    for writer in &writers {
        let status = writer.publication_matched_status().expect("alive");
        assert_eq!((status.total_count, status.total_count_change), (2, 2));
        assert_eq!((status.current_count, status.current_count_change), (2, 2));
        let again = writer.publication_matched_status().expect("alive");
        assert_eq!((again.total_count, again.total_count_change), (2, 0));
        let matched = writer.matched_subscriptions().expect("enabled");
        assert!(
            readers
                .iter()
                .all(|reader| matched.contains(&reader.instance_handle()))
        );
    }
    for reader in &readers {
        assert_eq!(
            reader
                .subscription_matched_status()
                .expect("alive")
                .current_count,
            2
        );
        let matched = reader.matched_publications().expect("enabled");
        assert!(
            writers
                .iter()
                .all(|writer| matched.contains(&writer.instance_handle()))
        );
    }
    assert_eq!(
        elsewhere
            .subscription_matched_status()
            .expect("alive")
            .total_count,
        0
    );
}

#[test]
fn too_little_offered_is_told_to_both_with_the_policy() {
    let best_effort = |mut qos: spindle_dds::qos::DataWriterQos| {
        qos.reliability = Reliability::best_effort();
        qos
    };
    let slow = |mut qos: spindle_dds::qos::DataWriterQos| {
        qos.latency_budget = LatencyBudget::from(spindle_dds::Duration::from_secs(1));
        qos
    };
    let xcdr2 = |mut qos: spindle_dds::qos::DataWriterQos| {
        qos.representation = DataRepresentationId::Xcdr2.into();
        qos
    };
    type Change = fn(spindle_dds::qos::DataWriterQos) -> spindle_dds::qos::DataWriterQos;
    let cases: [(PolicyId, Change); 3] = [
        (PolicyId::Reliability, best_effort),
        (PolicyId::LatencyBudget, slow),
        (PolicyId::DataRepresentation, xcdr2),
    ];
    for (policy, change) in cases {
        let meeting = Meeting::new();
        let participants: [_; 2] = meeting.participants();
        let writer = writer_with(&participants[0], "State", change(reliable_writer()));
        let reader = reader(&participants[1], "State");
        enable(&participants);
        let offered = writer.offered_incompatible_qos_status().expect("alive");
        assert_eq!(
            (offered.total_count, offered.last_policy),
            (1, Some(policy))
        );
        let requested = reader.requested_incompatible_qos_status().expect("alive");
        assert_eq!(
            (requested.total_count, requested.last_policy),
            (1, Some(policy))
        );
        assert_eq!(requested.policies[0].count, 1);
        assert_eq!(
            writer
                .publication_matched_status()
                .expect("alive")
                .total_count,
            0
        );
        assert_eq!(
            reader
                .subscription_matched_status()
                .expect("alive")
                .total_count,
            0
        );
        let changes = writer.status_changes().expect("alive");
        assert!(
            !changes.contains(StatusMask::OFFERED_INCOMPATIBLE_QOS),
            "it was read"
        );
    }
}

#[test]
fn order_has_to_be_offered() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let reader = reader(&participant, "State");
    let publisher = participant.publisher().create().expect("a publisher");
    let writer = publisher
        .writer(&reader.topic())
        .create()
        .expect("a writer");
    enable(std::slice::from_ref(&participant));
    let offered = writer.offered_incompatible_qos_status().expect("alive");
    assert_eq!(offered.last_policy, Some(PolicyId::Presentation));
}

#[test]
fn one_name_with_two_types_is_inconsistent() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer(&participants[0], "State");
    let topic = participants[1]
        .topic::<Other>("State")
        .create()
        .expect("a topic");
    let subscriber = participants[1]
        .subscriber()
        .qos(SubscriberQos::default())
        .create();
    let reader = subscriber
        .expect("a subscriber")
        .reader(&topic)
        .create()
        .expect("a reader");
    enable(&participants);
    assert_eq!(
        topic
            .inconsistent_topic_status()
            .expect("alive")
            .total_count,
        1
    );
    assert_eq!(
        writer
            .topic()
            .inconsistent_topic_status()
            .expect("alive")
            .total_count,
        1
    );
    assert_eq!(
        reader
            .subscription_matched_status()
            .expect("alive")
            .total_count,
        0
    );
}

#[test]
fn a_deleted_writer_is_unmatched_at_its_position() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer(&participants[0], "State");
    let reader = reader(&participants[1], "State");
    enable(&participants);
    writer.write(&crate::meeting::state(1, 1)).expect("sent");
    let publisher = writer.publisher().expect("alive");
    publisher
        .delete_datawriter(&writer)
        .expect("it has no loans");
    wait_until(reader.status_condition().expect("alive"), || {
        reader
            .subscription_matched_status()
            .expect("alive")
            .current_count
            == 0
    });
    let samples = reader.take(10).expect("the sample and the news");
    let valid: Vec<bool> = samples
        .iter()
        .map(|sample| sample.info().valid_data)
        .collect();
    assert_eq!(valid, [true, false]);
}

#[test]
fn defaults_match_as_the_standard_has_it() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let topic = participant
        .topic::<State>("State")
        .create()
        .expect("a topic");
    let publisher = participant.publisher().create().expect("a publisher");
    let writer = publisher.writer(&topic).create().expect("a writer");
    let subscriber = participant.subscriber().create().expect("a subscriber");
    let reader = subscriber.reader(&topic).create().expect("a reader");
    let qos: DataReaderQos = reader.qos().expect("alive");
    assert_eq!(qos.reliability.kind, ReliabilityKind::BestEffort);
    assert_ne!(qos, keep_all_reader());
    enable(std::slice::from_ref(&participant));
    assert_eq!(
        writer
            .publication_matched_status()
            .expect("alive")
            .current_count,
        1
    );
}
