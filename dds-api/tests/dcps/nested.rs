//! Samples of parts: what is told of their keys, and what is built half-way.

use spindle_dds::idl::{Representation, TopicType};
use spindle_dds::qos::{DataReaderQos, DataRepresentationId, DataWriterQos};
use spindle_dds::{DataReader, DataWriter, Error, InstanceState};

use crate::flight::{Leg, Route, RouteBuilder};
use crate::meeting::{
    Meeting, enable, keep_all_reader, reader_of, reliable_writer, take, writer_of,
};

fn leg(number: u16, name: &str) -> Leg {
    Leg {
        length: 1.5,
        number,
        name: name.to_owned(),
    }
}

fn route(number: u16) -> Route {
    Route {
        first: leg(number, "first"),
        others: [leg(number + 1, "second"), leg(number + 2, "third")],
        legs: vec![leg(7, "a leg"), leg(8, "")],
        spare: Some(0.5),
        ..Route::default()
    }
}

fn pair(
    meeting: &Meeting,
    representation: DataRepresentationId,
) -> (DataWriter<Route>, DataReader<Route>) {
    let participants: [_; 2] = std::array::from_fn(|_| {
        let builder = meeting.builder().property("spindle.ring.messages", "16");
        let builder = builder.property("spindle.ring.bytes", "4096");
        builder.create().expect("a participant")
    });
    let writer_qos = DataWriterQos {
        representation: representation.into(),
        ..reliable_writer()
    };
    let reader_qos = DataReaderQos {
        representation: representation.into(),
        ..keep_all_reader()
    };
    let writer = writer_of(&participants[0], "Route", writer_qos);
    let reader = reader_of(&participants[1], "Route", reader_qos);
    enable(&participants);
    (writer, reader)
}

const BOTH: [DataRepresentationId; 2] = [DataRepresentationId::Xcdr1, DataRepresentationId::Xcdr2];

/// A key alone is shorter than the least that a sample takes, and no less a key.
#[test]
fn keys_of_parts_are_disposed_of_and_unregistered() {
    for representation in BOTH {
        let meeting = Meeting::new();
        let (writer, reader) = pair(&meeting, representation);
        let (gone, kept) = (route(1), route(10));
        let handle = writer.register_instance(&gone).expect("enabled");
        writer.write(&gone).expect("sent");
        writer.write(&kept).expect("sent");
        let received = take(&reader, 2, |sample| sample.data().expect("data"));
        assert_eq!(received, [gone.clone(), kept.clone()]);
        // The key is all that counts.
        let key = Route {
            first: leg(1, ""),
            others: [leg(2, "other"), leg(3, "names")],
            ..Route::default()
        };
        writer.dispose(&key).expect("sent");
        let told = take(&reader, 1, |sample| *sample.info());
        assert_eq!(told[0].instance_state, InstanceState::NotAliveDisposed);
        assert_eq!(told[0].instance_handle, handle);
        writer.unregister_instance(&kept).expect("sent");
        let told = take(&reader, 1, |sample| *sample.info());
        assert_ne!(told[0].instance_handle, handle);
        assert!(!told[0].valid_data);
        let lost = reader.sample_lost_status().expect("alive");
        assert_eq!(lost.total_count, 0);
    }
}

/// The key alone, as others would read it.
#[test]
fn a_key_alone_can_be_read() {
    let value = route(5);
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut bytes = vec![0; value.key_size(representation)];
        value.encode_key(representation, &mut bytes).expect("fits");
        let id = Route::encapsulation(representation);
        let key = Route::decode_key(&bytes, id).expect("is a key");
        let numbers = |route: &Route| {
            let [second, third] = &route.others;
            [route.first.number, second.number, third.number]
        };
        assert_eq!(numbers(&key), numbers(&value));
        assert_eq!(key.key_hash(), value.key_hash());
        assert_eq!((key.legs.len(), key.spare), (0, None));
        for length in 0..bytes.len() {
            Route::decode_key(&bytes[..length], id).expect_err("is cut");
        }
    }
}

/// Long, and easily found again.
const SECRET: &str = "of a sample that was never sent";

#[test]
fn what_is_built_half_way_is_never_seen() {
    for representation in BOTH {
        let meeting = Meeting::new();
        let (writer, reader) = pair(&meeting, representation);
        let start = || {
            let mut builder = writer.loan_with(600).expect("room comes back");
            builder.set_length(3.0);
            let builder: RouteBuilder<_, _> = builder.first(&leg(1, SECRET)).expect("fits");
            builder
                .others(&[leg(2, SECRET), leg(3, SECRET)])
                .expect("fits")
        };
        // More than once around the ring, so that what was withdrawn lies below all that
        // is sent.
        for number in 0..40_u16 {
            // Dropped between two elements, inside of one, and by an error of the user's.
            drop(start());
            let failed = start().legs_with(|legs| {
                legs.push(&leg(1, SECRET))?;
                legs.push_with(|mut leg| {
                    leg.set_number(9);
                    drop(leg.name(SECRET)?);
                    Err(Error::Error("changed my mind".to_owned()))
                })
            });
            let error = failed.expect_err("the user's");
            assert_eq!(error, Error::Error("changed my mind".to_owned()));
            let sent = route(number);
            let builder = writer.loan_with(600).expect("room comes back");
            let built = builder
                .first(&sent.first)
                .and_then(|it| it.others(&sent.others))
                .and_then(|it| {
                    it.legs_with(|legs| {
                        // An element that fails leaves no trace, and the rest goes on.
                        let refused = legs.push_with(|leg| leg.name("with a \0 in it"));
                        assert!(refused.is_err());
                        sent.legs.iter().try_for_each(|leg| legs.push(leg))
                    })
                })
                .and_then(|it| it.spare(sent.spare))
                .and_then(|it| it.publish());
            built.expect("sent");
            take(&reader, 1, |sample| {
                let bytes = sample.bytes().expect("data");
                let secret = SECRET.as_bytes();
                assert!(bytes.windows(8).all(|part| part != &secret[..8]));
                assert_eq!(bytes, encoded(&sent, representation));
                assert_eq!(sample.data().expect("data"), sent);
            });
        }
        assert!(reader.take(1).is_err_and(|error| error.is_no_data()));
        assert_eq!(reader.sample_lost_status().expect("alive").total_count, 0);
    }
}

/// As `write` would have sent it.
fn encoded(sample: &Route, representation: DataRepresentationId) -> Vec<u8> {
    let representation = match representation {
        DataRepresentationId::Xcdr2 => Representation::Xcdr2,
        _ => Representation::Xcdr1,
    };
    let mut bytes = vec![0; sample.size(representation)];
    sample.encode(representation, &mut bytes).expect("fits");
    bytes
}
