//! DATA_REPRESENTATION of types that say by `@data_representation` what they allow.

use spindle_dds::idl::{Encapsulation, Representation, TopicType};
use spindle_dds::qos::DataRepresentationId::{Xcdr1, Xcdr2};
use spindle_dds::qos::{DataReaderQos, DataRepresentationId, DataWriterQos, TopicQos};
use spindle_dds::{Error, Result};

use crate::flight::{Compact, State};
use crate::meeting::{
    Meeting, enable, keep_all_reader, reader_of, reliable_writer, take, writer_of,
};

#[test]
fn what_a_type_allows_is_what_is_written() {
    assert_eq!(Compact::REPRESENTATIONS, [Representation::Xcdr2]);
    assert_eq!(
        State::REPRESENTATIONS,
        [Representation::Xcdr1, Representation::Xcdr2]
    );
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer_of::<Compact>(&participants[0], "Compact", reliable_writer());
    let reader = reader_of::<Compact>(&participants[1], "Compact", keep_all_reader());
    enable(&participants);
    let sent = Compact { icao: 7, at: 0.5 };
    writer.write(&sent).expect("sent");
    let received = take(&reader, 1, |sample| {
        (sample.info().encapsulation(), sample.data().expect("data"))
    });
    assert_eq!(received, [(Encapsulation::CDR2_LE, sent)]);
    // They say what they do, and may be told the default again.
    let listed = |value: Vec<DataRepresentationId>| assert_eq!(value, [Xcdr2]);
    listed(writer.qos().expect("alive").representation.value);
    listed(reader.qos().expect("alive").representation.value);
    writer.set_qos(reliable_writer()).expect("nothing changes");
    reader.set_qos(keep_all_reader()).expect("nothing changes");
    listed(writer.qos().expect("alive").representation.value);
    listed(reader.qos().expect("alive").representation.value);
}

#[track_caller]
fn refused<T>(result: Result<T>) {
    let error = result.err().expect("it is refused");
    assert!(matches!(error, Error::InconsistentPolicy(_)), "{error}");
    assert_eq!(
        error.to_string(),
        "inconsistent policy: DATA_REPRESENTATION lists XCDR_DATA_REPRESENTATION; by its \
         @data_representation the type flight::Compact allows XCDR2_DATA_REPRESENTATION"
    );
}

#[test]
fn what_a_type_does_not_allow_is_refused() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let with = |value: &[DataRepresentationId]| spindle_dds::qos::DataRepresentation {
        value: value.to_vec(),
    };
    let topic_qos = TopicQos {
        representation: with(&[Xcdr1]),
        ..TopicQos::default()
    };
    let topic = || participant.topic::<Compact>("Compact");
    refused(topic().qos(topic_qos.clone()).create());
    let topic = topic().create().expect("a topic");
    refused(topic.set_qos(topic_qos));
    let publisher = participant.publisher().create().expect("a publisher");
    let subscriber = participant.subscriber().create().expect("a subscriber");
    for listed in [vec![Xcdr1], vec![Xcdr1, Xcdr2], vec![Xcdr2, Xcdr1]] {
        let writer_qos = DataWriterQos {
            representation: with(&listed),
            ..DataWriterQos::default()
        };
        let reader_qos = DataReaderQos {
            representation: with(&listed),
            ..DataReaderQos::default()
        };
        refused(publisher.writer(&topic).qos(writer_qos).create());
        refused(subscriber.reader(&topic).qos(reader_qos).create());
    }
    let reader_qos = DataReaderQos {
        representation: with(&[Xcdr2]),
        ..DataReaderQos::default()
    };
    let reader = subscriber.reader(&topic).qos(reader_qos).create();
    let reader = reader.expect("it is allowed");
    refused(reader.set_qos(DataReaderQos {
        representation: with(&[Xcdr1]),
        ..DataReaderQos::default()
    }));
    let writer = publisher.writer(&topic).create().expect("a writer");
    refused(writer.set_qos(DataWriterQos {
        representation: with(&[Xcdr1]),
        ..DataWriterQos::default()
    }));
}
