//! Participants that were built with different versions of a type (XTypes 1.3 §7.6.3.4).

use std::fmt::Debug;
use std::io::Write as _;
use std::sync::mpsc::{self, Sender};

use spindle_dds::idl::TopicType;
use spindle_dds::qos::{
    DataReaderQos, DataRepresentation, DataRepresentationId, DataWriterQos,
    TypeConsistencyEnforcement, TypeConsistencyKind,
};
use spindle_dds::{
    AnyTopic, DataReader, DataWriter, DomainParticipant, Error, InconsistentTopicStatus,
    InstanceHandle, StatusMask, Topic, TopicListener, WaitSet,
};

use crate::meeting::{Meeting, PATIENCE, enable, keep_all_reader, reliable_writer};
use crate::{newer, older};

const ENCODINGS: [DataRepresentationId; 2] =
    [DataRepresentationId::Xcdr1, DataRepresentationId::Xcdr2];

/// A participant's topic, with a writer and a reader.
pub(crate) struct Side<T> {
    pub(crate) topic: Topic<T>,
    pub(crate) writer: DataWriter<T>,
    pub(crate) reader: DataReader<T>,
}

pub(crate) fn side<T: TopicType>(
    participant: &DomainParticipant,
    encoding: DataRepresentationId,
    policy: TypeConsistencyEnforcement,
) -> Side<T> {
    let representation = DataRepresentation::from(encoding);
    let topic = participant.topic::<T>("Topic").create().expect("a topic");
    let publisher = participant.publisher().create().expect("a publisher");
    let writer = publisher.writer(&topic).qos(DataWriterQos {
        representation: representation.clone(),
        ..reliable_writer()
    });
    let subscriber = participant.subscriber().create().expect("a subscriber");
    let reader = subscriber.reader(&topic).qos(DataReaderQos {
        representation,
        type_consistency: policy,
        ..keep_all_reader()
    });
    Side {
        writer: writer.create().expect("a writer"),
        reader: reader.create().expect("a reader"),
        topic,
    }
}

/// Blocks until so many samples with data are taken.
pub(crate) fn take<T: TopicType + Debug>(
    reader: &DataReader<T>,
    count: usize,
) -> Vec<(T, InstanceHandle)>
where
    for<'a> T::View<'a>: Debug,
{
    let mut all = Vec::new();
    while all.len() < count {
        let samples = match reader.take(count - all.len()) {
            Ok(samples) => samples,
            Err(Error::NoData(_)) => {
                let waits = WaitSet::new();
                let condition = reader.read_condition(Default::default()).expect("alive");
                waits.attach(&condition);
                waits.wait(PATIENCE).expect("something comes");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        for sample in &samples {
            let data = sample.data().expect("data");
            let view = sample.view().expect("the same, where it lies");
            let owned = T::view_to_owned(&view).expect("valid");
            assert_eq!(format!("{owned:?}"), format!("{data:?}"));
            assert_eq!(format!("{view:?}"), format!("{data:?}"));
            all.push((data, sample.info().instance_handle));
        }
    }
    all
}

/// Writers of both versions, and readers of both: each reads what both write, in one order.
fn both_ways<O, N>(written: (&O, &N), read: ([&O; 2], [&N; 2]))
where
    O: TopicType + Debug + PartialEq,
    N: TopicType + Debug + PartialEq,
    for<'a> O::View<'a>: Debug,
    for<'a> N::View<'a>: Debug,
{
    for encoding in ENCODINGS {
        let meeting = Meeting::new();
        let participants: [_; 2] = meeting.participants();
        let default = TypeConsistencyEnforcement::default();
        let old: Side<O> = side(&participants[0], encoding, default);
        let new: Side<N> = side(&participants[1], encoding, default);
        enable(&participants);
        old.writer.write(written.0).expect("sent");
        old.writer
            .wait_for_acknowledgments(PATIENCE)
            .expect("received");
        new.writer.write(written.1).expect("sent");
        let by_old = take(&old.reader, 2);
        let by_new = take(&new.reader, 2);
        for (at, ((old, _), (new, _))) in by_old.iter().zip(&by_new).enumerate() {
            assert_eq!((old, new), (read.0[at], read.1[at]), "{encoding:?}");
        }
        // Instances are those of the key, whose ever version it was.
        let handles = [by_old[0].1, by_old[1].1, by_new[0].1, by_new[1].1];
        assert!(handles.iter().all(|it| *it == handles[0]), "{handles:?}");
        if O::HAS_KEY {
            let known = new.reader.lookup_instance(written.1).expect("enabled");
            assert_eq!(known, Some(handles[0]));
            let known = old.reader.lookup_instance(written.0).expect("enabled");
            assert_eq!(known, Some(handles[0]));
        }
        for (topic, matched) in [
            (old.topic.as_any(), old.writer.publication_matched_status()),
            (new.topic.as_any(), new.writer.publication_matched_status()),
        ] {
            assert_eq!(matched.expect("alive").current_count, 2);
            let name = topic.name();
            let changes = topic.status_changes().expect("alive");
            assert!(!changes.contains(StatusMask::INCONSISTENT_TOPIC), "{name}");
        }
    }
}

#[test]
fn an_appendable_type_grows() {
    let old = older::Track {
        icao: 1,
        altitude: 10,
    };
    let new = newer::Track {
        icao: 1,
        altitude: 20,
        callsign: "D-ABCD".to_owned(),
        feed: 3,
    };
    let grown = newer::Track {
        altitude: 10,
        icao: 1,
        ..newer::Track::default()
    };
    assert_eq!((grown.callsign.as_str(), grown.feed), ("", 7));
    let cut = older::Track {
        altitude: 20,
        ..old.clone()
    };
    both_ways((&old, &new), ([&old, &cut], [&grown, &new]));
}

#[test]
fn an_appendable_type_that_lies_as_in_memory_grows() {
    let old = older::Pair {
        first: 1,
        second: 2,
    };
    let new = newer::Pair {
        first: 4,
        second: 5,
        third: 6,
    };
    let grown = newer::Pair {
        first: 1,
        second: 2,
        third: 3,
    };
    let cut = older::Pair {
        first: 4,
        second: 5,
    };
    both_ways((&old, &new), ([&old, &cut], [&grown, &new]));
}

#[test]
fn members_of_a_mutable_type_come_and_go() {
    let old = older::Plan {
        icao: 1,
        route: "EDDF EGLL".to_owned(),
    };
    let new = newer::Plan {
        fuel: 20.5,
        route: "LFPG".to_owned(),
        clearance: None,
        icao: 1,
    };
    let grown = newer::Plan {
        fuel: 1.5,
        route: old.route.clone(),
        ..new.clone()
    };
    let cut = older::Plan {
        icao: 1,
        route: new.route.clone(),
    };
    both_ways((&old, &new), ([&old, &cut], [&grown, &new]));
}

/// What has to be understood and is not known makes the sample unreadable (XTypes 1.3
/// §7.2.4.4.8), whether it is looked at or decoded.
#[test]
fn what_must_be_understood_and_is_not_loses_the_sample() {
    for encoding in ENCODINGS {
        let meeting = Meeting::new();
        let participants: [_; 2] = meeting.participants();
        let default = TypeConsistencyEnforcement::default();
        let old: Side<older::Plan> = side(&participants[0], encoding, default);
        let new: Side<newer::Plan> = side(&participants[1], encoding, default);
        enable(&participants);
        for (icao, clearance) in [(1, None), (2, Some(9)), (3, None)] {
            let plan = newer::Plan {
                icao,
                clearance,
                ..newer::Plan::default()
            };
            new.writer.write(&plan).expect("sent");
        }
        let read = take(&old.reader, 2);
        let icaos: Vec<u32> = read.iter().map(|(plan, _)| plan.icao).collect();
        assert_eq!(icaos, [1, 3], "{encoding:?}");
        let lost = old.reader.sample_lost_status().expect("alive");
        assert_eq!(lost.total_count, 1, "{encoding:?}");
        let read = take(&new.reader, 3);
        assert_eq!(read[1].0.clearance, Some(9));
    }
}

/// How many others a reader of `R` is matched with, and the other's writer, and what their
/// topics say: of one participant that writes `W`, and one that reads `R`.
fn matches<W: TopicType, R: TopicType>(
    change: impl Fn(&mut TypeConsistencyEnforcement),
) -> [i32; 4] {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let written = participants[0]
        .topic::<W>("Topic")
        .create()
        .expect("a topic");
    let publisher = participants[0].publisher().create().expect("a publisher");
    let writer = publisher.writer(&written).create().expect("a writer");
    let heard = participants[1]
        .topic::<R>("Topic")
        .create()
        .expect("a topic");
    let mut qos = DataReaderQos::default();
    change(&mut qos.type_consistency);
    let subscriber = participants[1].subscriber().create().expect("a subscriber");
    let reader = subscriber.reader(&heard).qos(qos).create();
    let reader = reader.expect("a reader");
    enable(&participants);
    let inconsistent =
        |status: spindle_dds::Result<InconsistentTopicStatus>| status.expect("alive").total_count;
    [
        reader
            .subscription_matched_status()
            .expect("alive")
            .current_count,
        writer
            .publication_matched_status()
            .expect("alive")
            .current_count,
        inconsistent(written.inconsistent_topic_status()),
        inconsistent(heard.inconsistent_topic_status()),
    ]
}

const MATCHED: [i32; 4] = [1, 1, 0, 0];
const INCONSISTENT: [i32; 4] = [0, 0, 1, 1];

#[test]
fn a_reader_may_insist_on_its_own_type() {
    let strict = |policy: &mut TypeConsistencyEnforcement| {
        policy.kind = TypeConsistencyKind::DisallowTypeCoercion;
    };
    assert_eq!(matches::<older::Track, newer::Track>(|_| {}), MATCHED);
    assert_eq!(matches::<older::Track, newer::Track>(strict), INCONSISTENT);
    assert_eq!(matches::<newer::Track, older::Track>(strict), INCONSISTENT);
    assert_eq!(matches::<newer::Track, newer::Track>(strict), MATCHED);
}

#[test]
fn a_reader_may_look_at_bounds() {
    let text = |policy: &mut TypeConsistencyEnforcement| policy.ignore_string_bounds = false;
    let bytes = |policy: &mut TypeConsistencyEnforcement| policy.ignore_sequence_bounds = false;
    assert_eq!(matches::<newer::Text, older::Text>(|_| {}), MATCHED);
    assert_eq!(matches::<newer::Text, older::Text>(bytes), MATCHED);
    assert_eq!(matches::<newer::Text, older::Text>(text), INCONSISTENT);
    assert_eq!(matches::<older::Text, newer::Text>(text), MATCHED);
    assert_eq!(matches::<newer::Bytes, older::Bytes>(|_| {}), MATCHED);
    assert_eq!(matches::<newer::Bytes, older::Bytes>(text), MATCHED);
    assert_eq!(matches::<newer::Bytes, older::Bytes>(bytes), INCONSISTENT);
    assert_eq!(matches::<older::Bytes, newer::Bytes>(bytes), MATCHED);
}

#[test]
fn a_reader_may_ignore_member_names_and_prevent_type_widening() {
    let any_name = |policy: &mut TypeConsistencyEnforcement| policy.ignore_member_names = true;
    assert_eq!(matches::<older::Speed, newer::Speed>(|_| {}), INCONSISTENT);
    assert_eq!(matches::<older::Speed, newer::Speed>(any_name), MATCHED);
    let no_wider = |policy: &mut TypeConsistencyEnforcement| policy.prevent_type_widening = true;
    assert_eq!(
        matches::<older::Track, newer::Track>(no_wider),
        INCONSISTENT
    );
    assert_eq!(matches::<newer::Track, older::Track>(no_wider), MATCHED);
}

/// A type without a description matches by its name, unless validation is forced.
#[test]
fn what_is_not_described_matches_by_its_name_unless_validation_is_forced() {
    let forced = |policy: &mut TypeConsistencyEnforcement| policy.force_type_validation = true;
    assert!(older::Price::DESCRIPTION.is_none());
    assert_eq!(matches::<older::Price, older::Price>(|_| {}), MATCHED);
    assert_eq!(matches::<older::Price, older::Price>(forced), INCONSISTENT);
    assert_eq!(matches::<older::Price, newer::Price>(|_| {}), INCONSISTENT);
    assert_eq!(matches::<older::Price, older::Speed>(|_| {}), INCONSISTENT);
    assert_eq!(matches::<older::Track, newer::Track>(forced), MATCHED);
}

/// Whatever is ignored of other members: a key that the reader cannot have is no instance of
/// its (XTypes 1.3 §7.2.4.4.8).
#[test]
fn a_reader_takes_every_key_that_the_writer_may_have() {
    assert_eq!(matches::<older::Sign, newer::Sign>(|_| {}), MATCHED);
    assert_eq!(matches::<newer::Sign, older::Sign>(|_| {}), INCONSISTENT);
    assert_eq!(matches::<newer::Sign, newer::Sign>(|_| {}), MATCHED);
}

struct Told(Sender<(String, i32)>);

impl TopicListener for Told {
    fn on_inconsistent_topic(&mut self, topic: &AnyTopic, status: &InconsistentTopicStatus) {
        let _ = self.0.send((topic.name().to_owned(), status.total_count));
    }
}

#[test]
fn listeners_are_told_of_an_inconsistent_topic_on_both_sides() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let (sender, told) = mpsc::channel();
    let mask = StatusMask::INCONSISTENT_TOPIC;
    let written = participants[0].topic::<older::Speed>("Topic");
    let written = written.listener(mask, Told(sender.clone())).create();
    let heard = participants[1].topic::<newer::Speed>("Topic");
    let heard = heard.listener(mask, Told(sender)).create();
    let publisher = participants[0].publisher().create().expect("a publisher");
    let writer = publisher.writer(&written.expect("a topic")).create();
    let subscriber = participants[1].subscriber().create().expect("a subscriber");
    let reader = subscriber.reader(&heard.expect("a topic")).create();
    enable(&participants);
    for _ in 0..2 {
        let call = told.recv_timeout(std::time::Duration::from_secs(60));
        assert_eq!(call, Ok(("Topic".to_owned(), 1)));
    }
    drop((writer, reader));
}

/// What is known of an endpoint has what XTypes adds to it.
#[test]
fn the_data_of_endpoints_has_their_types() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let policy = TypeConsistencyEnforcement {
        ignore_member_names: true,
        ..Default::default()
    };
    let default = TypeConsistencyEnforcement::default();
    let old: Side<older::Track> = side(&participants[0], ENCODINGS[1], default);
    let new: Side<newer::Track> = side(&participants[1], ENCODINGS[1], policy);
    enable(&participants);
    let data = old
        .writer
        .matched_subscription_data(new.reader.instance_handle());
    let data = data.expect("matched");
    assert_eq!(data.type_consistency, policy);
    assert_eq!(data.representation.value, [ENCODINGS[1]]);
    assert_eq!(data.type_name, "newer::Track");
    let description = newer::Track::DESCRIPTION.expect("described");
    let said = spindle_dds::xtypes::object::TypeInformation::from_bytes(description.information);
    assert_eq!(data.type_information, said.ok());
    let data = new
        .reader
        .matched_publication_data(old.writer.instance_handle());
    let data = data.expect("matched");
    assert_eq!(data.type_name, "older::Track");
    assert!(data.type_information.is_some());
}

/// The policy of a reader may stand in a profile, like any other.
#[test]
fn a_profile_says_how_far_types_may_differ() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let text = r#"<dds><qos_library name="Flight"><qos_profile name="Strict">
      <datareader_qos><type_consistency>
        <kind>DISALLOW_TYPE_COERCION</kind>
      </type_consistency></datareader_qos>
    </qos_profile></qos_library></dds>"#;
    file.write_all(text.as_bytes()).expect("written");
    let meeting = Meeting::new();
    let builder = meeting
        .builder()
        .qos_profiles(file.path())
        .expect("it is right");
    let strict = builder.create().expect("a participant");
    let participants = [strict, meeting.participant()];
    let written: Side<newer::Track> = side(&participants[1], ENCODINGS[0], Default::default());
    let topic = participants[0].topic::<older::Track>("Topic").create();
    let topic = topic.expect("a topic");
    let subscriber = participants[0].subscriber().create().expect("a subscriber");
    let readers = [true, false].map(|strict| {
        let reader = subscriber.reader(&topic);
        let reader = match strict {
            true => reader.profile("Flight::Strict"),
            false => reader,
        };
        reader.create().expect("a reader")
    });
    enable(&participants);
    let matched = readers.each_ref().map(|reader| {
        let status = reader.subscription_matched_status().expect("alive");
        status.current_count
    });
    assert_eq!(matched, [0, 1]);
    // The other's own reader, and the one that does not mind.
    let status = written.writer.publication_matched_status().expect("alive");
    assert_eq!(status.current_count, 2);
}
