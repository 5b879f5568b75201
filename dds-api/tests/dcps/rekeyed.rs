//! Instances of a reader whose key may be longer than the writer's: of the writer's type the
//! key hash is the key, of the reader's a digest of it (XTypes 1.3 §7.6.8.4).

use spindle_dds::InstanceState::NotAliveDisposed;
use spindle_dds::qos::{DataReaderQos, DataRepresentationId, DataWriterQos};
use spindle_dds::{DataReader, InstanceHandle, InstanceState};

use crate::meeting::{
    Meeting, PATIENCE, enable, keep_all_reader, reader_of, reliable_writer, take, writer_of,
};
use crate::{newer, older};

fn short(sign: &str) -> older::Sign {
    older::Sign { sign: sign.into() }
}

fn long(sign: &str) -> newer::Sign {
    newer::Sign { sign: sign.into() }
}

/// Of the next samples the key, where there is one, the instance and its state.
fn next(
    reader: &DataReader<newer::Sign>,
    count: usize,
) -> Vec<(Option<String>, InstanceHandle, InstanceState)> {
    take(reader, count, |sample| {
        let info = sample.info();
        let sign = sample.data().ok().map(|data| data.sign);
        (sign, info.instance_handle, info.instance_state)
    })
}

#[test]
fn a_key_is_one_instance_for_all_writers() {
    // One reader is given samples straight, several in a batch.
    for (encoding, readers) in [
        (DataRepresentationId::Xcdr1, 1),
        (DataRepresentationId::Xcdr2, 1),
        (DataRepresentationId::Xcdr2, 2),
    ] {
        let meeting = Meeting::new();
        let participants: [_; 2] = meeting.participants();
        let qos = DataWriterQos {
            representation: encoding.into(),
            ..reliable_writer()
        };
        let old = writer_of::<older::Sign>(&participants[0], "Signs", qos.clone());
        let new = writer_of::<newer::Sign>(&participants[1], "Signs", qos);
        let qos = DataReaderQos {
            representation: encoding.into(),
            ..keep_all_reader()
        };
        let reader = || reader_of::<newer::Sign>(&participants[1], "Signs", qos.clone());
        let readers: Vec<_> = (0..readers).map(|_| reader()).collect();
        enable(&participants);
        let matched = old.publication_matched_status().expect("alive");
        assert_eq!(matched.current_count, readers.len() as i32);
        for sign in ["EDDF", "LFPG", "EDDF"] {
            old.write(&short(sign)).expect("sent");
        }
        old.wait_for_acknowledgments(PATIENCE).expect("received");
        for sign in ["EDDF", "a sign of more than 16 bytes"] {
            new.write(&long(sign)).expect("sent");
        }
        let handles = readers.iter().map(|reader| {
            let came = next(reader, 5);
            let signs: Vec<_> = came.iter().filter_map(|it| it.0.as_deref()).collect();
            assert_eq!(signs[..4], ["EDDF", "LFPG", "EDDF", "EDDF"]);
            let known = came.iter().zip(&signs).map(|((_, handle, _), sign)| {
                // The handle is made of the reader's key hash, for each writer.
                let found = reader.lookup_instance(&long(sign)).expect("enabled");
                assert_eq!(found, Some(*handle), "{sign} in {encoding:?}");
                *handle
            });
            known.collect::<Vec<_>>()
        });
        let handles: Vec<_> = handles.collect();
        old.dispose(&short("EDDF")).expect("sent");
        old.unregister_instance(&short("LFPG")).expect("sent");
        for (reader, handles) in readers.iter().zip(handles) {
            let [frankfurt, paris] = [handles[0], handles[1]];
            assert_ne!(frankfurt, paris);
            let ended = [frankfurt, paris].map(|handle| (None, handle, NotAliveDisposed));
            assert_eq!(next(reader, 2), ended, "{encoding:?}");
        }
    }
}
