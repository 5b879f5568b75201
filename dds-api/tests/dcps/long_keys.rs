//! Keys, not digests of them, tell instances apart: two keys of 64 bytes that have one MD5.

use spindle_dds::idl::TopicType as _;
use spindle_dds::psm;
use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, History, ResourceLimits, WriterDataLifecycle,
};
use spindle_dds::{
    DataReader, Duration, Error, InstanceHandle, InstanceState, RejectedReason, ReturnCode,
    StateMasks,
};

use crate::flight::Beacon;
use crate::meeting::{
    Meeting, enable, keep_all_reader, reader_of, reliable_writer, take, until, writer_of,
};

const A: &str = "4dc968ff0ee35c209572d4777b721587d36fa7b21bdc56b74a3dc0783e7b9518\
                 afbfa200a8284bf36e8e4b55b35f427593d849676da0d1555d8360fb5f07fea2";
const B: &str = "4dc968ff0ee35c209572d4777b721587d36fa7b21bdc56b74a3dc0783e7b9518\
                 afbfa202a8284bf36e8e4b55b35f427593d849676da0d1d55d8360fb5f07fea2";

fn beacon(id: &str, number: i32) -> Beacon {
    let byte = |at: usize| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).expect("a number");
    Beacon {
        id: std::array::from_fn(byte),
        number,
    }
}

fn a(number: i32) -> Beacon {
    beacon(A, number)
}

fn b(number: i32) -> Beacon {
    beacon(B, number)
}

/// A key of its own.
fn other(key: u32) -> Beacon {
    let mut other = a(0);
    other.id[..4].copy_from_slice(&key.to_be_bytes());
    other
}

fn keeps_instances() -> DataWriterQos {
    DataWriterQos {
        writer_data_lifecycle: WriterDataLifecycle {
            autodispose_unregistered_instances: false,
        },
        ..reliable_writer()
    }
}

type Seen = (InstanceHandle, InstanceState, Option<i32>);

fn next(reader: &DataReader<Beacon>, count: usize) -> Vec<Seen> {
    take(reader, count, |sample| {
        let info = sample.info();
        let number = sample.data().ok().map(|data| data.number);
        (info.instance_handle, info.instance_state, number)
    })
}

#[test]
fn two_keys_with_one_digest_are_two_instances() {
    use InstanceState::{Alive, NotAliveDisposed, NotAliveNoWriters};
    assert_eq!(a(0).key_hash(), b(0).key_hash(), "one digest");
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer_of::<Beacon>(&participants[0], "Beacons", keeps_instances());
    let last = DataReaderQos {
        history: History::keep_last(1),
        ..keep_all_reader()
    };
    // The one that writes has a reader, too, and the other has two.
    let here = reader_of::<Beacon>(&participants[0], "Beacons", keep_all_reader());
    let there = reader_of::<Beacon>(&participants[1], "Beacons", keep_all_reader());
    let newest = reader_of::<Beacon>(&participants[1], "Beacons", last);
    enable(&participants);
    let write = |sample: Beacon| {
        writer.write(&sample).expect("room");
        let acknowledged = writer.wait_for_acknowledgments(Duration::INFINITE);
        acknowledged.expect("received");
    };
    write(a(1));
    until("it is there", || {
        there.read(1).is_ok() && here.read(1).is_ok()
    });
    assert_eq!(there.lookup_instance(&b(0)), Ok(None), "only the other is");
    write(b(2));
    write(a(3));
    write(b(4));
    let numbers = |seen: &[Seen]| seen.iter().map(|it| it.2).collect::<Vec<_>>();
    let handles = [&here, &there].map(|reader| {
        until("all are there", || {
            reader.read(9).is_ok_and(|all| all.len() == 4)
        });
        let handles = [a(0), b(0)].map(|key| {
            let handle = reader.lookup_instance(&key).expect("enabled");
            handle.expect("it is known")
        });
        assert_ne!(handles[0], handles[1]);
        let of = |handle| {
            let samples = reader.read_instance(9, handle, StateMasks::ANY);
            let samples = samples.expect("they are there");
            let numbers = samples.iter().map(|it| it.data().expect("data").number);
            numbers.collect::<Vec<_>>()
        };
        assert_eq!(handles.map(of), [vec![1, 3], vec![2, 4]]);
        let next = reader.read_next_instance(9, InstanceHandle::NIL, StateMasks::ANY);
        assert_eq!(next.expect("they are there").len(), 2, "one instance");
        handles
    });
    // In one participant, a key has one handle.
    let registered = [a(0), b(0)].map(|key| writer.register_instance(&key).expect("enabled"));
    assert_eq!(registered, handles[0]);
    until("all are there", || {
        newest.read(9).is_ok_and(|all| all.len() == 2)
    });
    assert_eq!(numbers(&next(&newest, 2)), [Some(3), Some(4)]);
    assert_eq!(numbers(&next(&there, 4)), [1, 2, 3, 4].map(Some));
    writer.dispose(&a(0)).expect("room");
    writer.unregister_instance(&b(0)).expect("room");
    write(a(5));
    let [first, second] = handles[1];
    assert_eq!(
        next(&there, 3),
        [
            (first, Alive, None),
            (second, NotAliveNoWriters, None),
            (first, Alive, Some(5))
        ]
    );
    writer.dispose(&a(0)).expect("room");
    write(b(6));
    assert_eq!(
        next(&there, 2),
        [(first, NotAliveDisposed, None), (second, Alive, Some(6))]
    );
}

#[test]
fn limits_count_two_keys_with_one_digest_as_two() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let limits = |instances: u32| ResourceLimits {
        max_instances: instances.into(),
        ..ResourceLimits::default()
    };
    let writer = |instances| {
        let qos = DataWriterQos {
            resource_limits: limits(instances),
            ..keeps_instances()
        };
        writer_of::<Beacon>(&participants[0], "Beacons", qos)
    };
    let (one, two) = (writer(1), writer(2));
    let narrow = DataReaderQos {
        resource_limits: limits(1),
        ..keep_all_reader()
    };
    let narrow = reader_of::<Beacon>(&participants[1], "Beacons", narrow);
    let heard = reader_of::<Beacon>(&participants[1], "Beacons", keep_all_reader());
    enable(&participants);
    let refused = |result: spindle_dds::Result<()>| {
        let error = result.expect_err("one too many");
        assert!(matches!(error, Error::OutOfResources(_)), "{error}");
    };
    one.write(&a(1)).expect("room");
    refused(one.write(&b(0)).map(|_| ()));
    refused(one.register_instance(&b(0)).map(|_| ()));
    let mut loan = one.loan().expect("room");
    loan.set_id(&b(0).id).set_number(0);
    refused(loan.publish().map(|_| ()));
    one.unregister_instance(&a(0)).expect("room");
    one.register_instance(&b(0)).expect("there is room now");
    refused(one.write(&a(0)).map(|_| ()));
    let handles = [a(0), b(0)].map(|key| two.register_instance(&key).expect("two are allowed"));
    assert_ne!(handles[0], handles[1]);
    refused(two.write(&other(1)).map(|_| ()));
    two.write(&b(2)).expect("it is registered");
    let numbers: Vec<_> = take(&heard, 3, |sample| sample.data().ok().map(|it| it.number));
    assert_eq!(numbers, [Some(1), None, Some(2)]);
    // It waits until the samples of the other instance are taken.
    until("it is rejected", || {
        let status = narrow.sample_rejected_status().expect("alive");
        status.total_count == 1 && status.last_reason == RejectedReason::ByInstancesLimit
    });
    let instance = heard.lookup_instance(&b(0)).expect("enabled");
    let rejected = narrow.sample_rejected_status().expect("alive");
    assert_eq!(Some(rejected.last_instance_handle), instance);
}

#[test]
fn a_handle_is_that_of_its_key_and_not_of_another_with_the_digest() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let writer = writer_of::<Beacon>(&participant, "Beacons", reliable_writer());
    enable(std::slice::from_ref(&participant));
    let [of_a, of_b] = [a(0), b(0)].map(|key| writer.register_instance(&key).expect("enabled"));
    let writer = psm::DataWriter(writer);
    assert_eq!(writer.write(&a(1), of_a), ReturnCode::Ok);
    assert_eq!(writer.write(&b(1), of_b), ReturnCode::Ok);
    assert_eq!(writer.write(&b(1), of_a), ReturnCode::PreconditionNotMet);
    assert_eq!(writer.dispose(&a(1), of_b), ReturnCode::PreconditionNotMet);
}

#[test]
fn two_keys_with_one_digest_are_told_when_their_instances_end() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer_of::<Beacon>(&participants[0], "Beacons", keeps_instances());
    let heard = reader_of::<Beacon>(&participants[1], "Beacons", keep_all_reader());
    enable(&participants);
    for key in [a(0), b(0)] {
        writer.write(&key).expect("room");
        writer.dispose(&key).expect("room");
    }
    // Of two such keys that are only written, a writer may notice the first alone.
    for key in [b(0), a(0)] {
        writer.unregister_instance(&key).expect("it was written");
    }
    let keys = take(&heard, 4, |sample| {
        let handle = sample.info().instance_handle;
        (sample.key(), heard.key_value(handle).ok())
    });
    let expected = [a(0), a(0), b(0), b(0)].map(|key| (Ok(key.clone()), Some(key)));
    let known = keys.iter().zip(&expected);
    for ((of_sample, of_handle), (key, by_handle)) in known {
        assert_eq!(of_sample, key);
        // Nothing is left of an instance whose last sample is taken.
        assert!(of_handle.is_none() || of_handle == by_handle);
    }
    let kept = [a(0), b(0)].map(|key| writer.register_instance(&key).expect("enabled"));
    let of_handles = kept.map(|handle| writer.key_value(handle));
    assert_eq!(of_handles, [Ok(a(0)), Ok(b(0))]);
}

#[test]
fn keys_that_come_and_go_keep_their_samples_apart() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let qos = DataWriterQos {
        resource_limits: ResourceLimits {
            max_instances: 3.into(),
            ..ResourceLimits::default()
        },
        ..reliable_writer()
    };
    let writer = writer_of::<Beacon>(&participants[0], "Beacons", qos);
    let heard = reader_of::<Beacon>(&participants[1], "Beacons", keep_all_reader());
    enable(&participants);
    let mut kept = None;
    for key in 0..1000 {
        if key % 100 == 50 {
            // One of the two stays meanwhile, the other comes anew.
            writer.write(&a(0)).expect("room");
            writer.write(&b(0)).expect("room");
            let seen = next(&heard, 2);
            assert_ne!(seen[0].0, seen[1].0);
            let first = *kept.get_or_insert(seen[0].0);
            assert_eq!(seen[0].0, first, "it is known all the time");
            writer.unregister_instance(&b(0)).expect("room");
            assert_eq!(next(&heard, 1)[0].0, seen[1].0);
        }
        writer.write(&other(key)).expect("room");
        writer.unregister_instance(&other(key)).expect("room");
        let seen = next(&heard, 2);
        assert_eq!(seen[0].0, seen[1].0);
        assert_eq!(seen[1].1, InstanceState::NotAliveDisposed);
    }
}
