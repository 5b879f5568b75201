//! Keys of instances by their handles, and of samples without data.

use std::fmt::Debug;

use spindle_dds::idl::{KeyHash, TopicType};
use spindle_dds::psm;
use spindle_dds::qos::{DataWriterQos, WriterDataLifecycle};
use spindle_dds::{
    DataReader, DataWriter, Error, InstanceHandle, InstanceState, Result, ReturnCode, SampleInfo,
};

use crate::flight::{Beacon, Leg, Mark, Route, State};
use crate::meeting::{
    Meeting, enable, keep_all_reader, reader, reader_of, reliable_writer, state, take, take_some,
    until, writer, writer_of,
};
use crate::membership::killed_child;
use crate::newer::{Plan, Sign};

fn lifecycle(autodispose: bool) -> DataWriterQos {
    DataWriterQos {
        writer_data_lifecycle: WriterDataLifecycle {
            autodispose_unregistered_instances: autodispose,
        },
        ..reliable_writer()
    }
}

/// A value of each kind of key, and its key alone.
macro_rules! each_kind_of_key {
    ($check:ident($($argument:expr),*)) => {{
        let key = state(0xa1b2_c3d4, 0);
        $check(&State { number: 3, altitude: 9, ..key.clone() }, &key, $($argument),*);
        // An instance whose key hash is all zero.
        $check(&state(0, 1), &state(0, 0), $($argument),*);
        let key = Mark { id: *b"exactly sixteen!", ..Mark::default() };
        $check(&Mark { number: 3, ..key.clone() }, &key, $($argument),*);
        let key = Beacon { id: std::array::from_fn(|at| at as u8), number: 0 };
        $check(&Beacon { number: 3, ..key.clone() }, &key, $($argument),*);
        let key = Sign { sign: "a sign of more than 16 bytes".into() };
        $check(&key.clone(), &key, $($argument),*);
        // Shorter than a key hash, of a type whose keys may be longer.
        let key = Sign { sign: "EDDF".into() };
        $check(&key.clone(), &key, $($argument),*);
        let leg = |number, length, name: &str| Leg { number, length, name: name.into() };
        let key = Route {
            first: leg(1, 0.0, ""),
            others: [leg(2, 0.0, ""), leg(3, 0.0, "")],
            ..Route::default()
        };
        let route = Route {
            length: 7.0,
            first: leg(1, 1.0, "first"),
            others: [leg(2, 2.0, "second"), leg(3, 3.0, "third")],
            legs: vec![leg(4, 4.0, "more")],
            spare: Some(1.5),
        };
        $check(&route, &key, $($argument),*);
        // The key is neither the first member, nor does it have its id by position.
        let key = Plan { icao: 0x0102_0304, ..Plan::default() };
        let plan = Plan { route: "EDDF LFPG".into(), clearance: Some(4), fuel: 2.0, ..key.clone() };
        $check(&plan, &key, $($argument),*);
    }};
}

type Told<T> = (SampleInfo, Result<T>);

fn told<T: TopicType>(reader: &DataReader<T>) -> Told<T> {
    let mut told = take(reader, 1, |sample| {
        assert_eq!(sample.data().is_ok(), sample.info().valid_data);
        (*sample.info(), sample.key())
    });
    told.remove(0)
}

fn is_bad<T: Debug>(result: Result<T>) -> bool {
    matches!(result, Err(Error::BadParameter(_)))
}

fn follow_an_instance<T>(sample: &T, key: &T, other_participant: bool)
where
    T: TopicType + Clone + PartialEq + Debug,
{
    use InstanceState::{Alive, NotAliveDisposed, NotAliveNoWriters};
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer_of::<T>(&participants[0], "Keys", lifecycle(false));
    let at = &participants[usize::from(other_participant)];
    let reader = reader_of::<T>(at, "Keys", keep_all_reader());
    // It takes nothing.
    let behind = reader_of::<T>(at, "Keys", keep_all_reader());
    enable(&participants);
    let entity = writer.instance_handle();
    let nobodys = InstanceHandle::of_instance(KeyHash([0xee; 16]));
    for handle in [entity, nobodys, InstanceHandle::NIL] {
        assert!(is_bad(reader.key_value(handle)));
        assert!(is_bad(writer.key_value(handle)));
    }
    assert_eq!(reader.lookup_instance(sample), Ok(None));

    // An instance that is first heard of by its disposal.
    writer.dispose(sample).expect("sent");
    let (info, of_sample) = told(&reader);
    assert_eq!(
        (info.instance_state, info.valid_data),
        (NotAliveDisposed, false)
    );
    let handle = info.instance_handle;
    let is_known = |reader: &DataReader<T>| {
        assert_eq!(reader.key_value(handle).as_ref(), Ok(key));
        assert_eq!(reader.lookup_instance(sample), Ok(Some(handle)));
    };
    assert_eq!(of_sample.as_ref(), Ok(key));
    is_known(&reader);

    writer.write(sample).expect("sent");
    let (info, of_sample) = told(&reader);
    assert_eq!((info.instance_state, info.valid_data), (Alive, true));
    assert_eq!(
        (info.instance_handle, of_sample.as_ref()),
        (handle, Ok(key))
    );
    // All its samples are taken, and it has a writer.
    is_known(&reader);

    writer.unregister_instance(key).expect("sent");
    until("it has no writers", || {
        let read = reader.read(1);
        read.is_ok_and(|all| all.get(0).is_some_and(|it| !it.info().valid_data))
    });
    is_known(&reader);
    let (info, of_sample) = told(&reader);
    assert_eq!(
        (info.instance_state, info.valid_data),
        (NotAliveNoWriters, false)
    );
    assert_eq!(
        (info.instance_handle, of_sample.as_ref()),
        (handle, Ok(key))
    );
    // Nothing is left of it; another reader still has it.
    assert!(is_bad(reader.key_value(handle)));
    assert_eq!(reader.lookup_instance(sample), Ok(None));
    until("the other reader has it, too", || {
        let read = behind.read(9);
        read.is_ok_and(|all| all.len() == 2)
    });
    is_known(&behind);
    let keys = take(&behind, 2, |sample| sample.key());
    assert_eq!(keys, [Ok(key.clone()), Ok(key.clone())]);
    assert!(is_bad(behind.key_value(handle)));
}

#[test]
fn a_reader_has_the_key_of_each_instance_that_it_knows() {
    each_kind_of_key!(follow_an_instance(true));
}

#[test]
fn so_has_one_in_the_participant_of_the_writer() {
    each_kind_of_key!(follow_an_instance(false));
}

#[test]
fn a_writer_that_is_deleted_leaves_keys() {
    for (autodispose, state_after) in [
        (true, InstanceState::NotAliveDisposed),
        (false, InstanceState::NotAliveNoWriters),
    ] {
        let meeting = Meeting::new();
        let participants: [_; 2] = meeting.participants();
        let goes = writer_of::<Sign>(&participants[0], "Signs", lifecycle(autodispose));
        let reader = reader_of::<Sign>(&participants[1], "Signs", keep_all_reader());
        enable(&participants);
        let signs = ["one of more than 16 bytes", "another of more than 16 bytes"];
        let signs = signs.map(|sign| Sign { sign: sign.into() });
        for sign in &signs {
            goes.write(sign).expect("sent");
            assert_eq!(told(&reader).1.as_ref(), Ok(sign));
        }
        let publisher = goes.publisher().expect("alive");
        publisher.delete_datawriter(&goes).expect("no loans");
        let mut gone = take(&reader, 2, |sample| {
            let info = sample.info();
            assert_eq!((info.instance_state, info.valid_data), (state_after, false));
            sample.key().expect("its key").sign
        });
        gone.sort();
        let mut all = signs.map(|sign| sign.sign);
        all.sort();
        assert_eq!(gone, all);
    }
}

#[test]
fn a_writer_that_crashes_leaves_keys() {
    let meeting = Meeting::new();
    let participants: [_; 1] = meeting.participants();
    let reader = reader(&participants[0], "State");
    enable(&participants);
    let mut child = killed_child(&meeting);
    drop(take_some(&reader, 1));
    child.kill().expect("it lives");
    child.wait().expect("it ended");
    loop {
        let (info, key) = told(&reader);
        assert_eq!(key, Ok(state(9, 0)));
        if !info.valid_data {
            assert_eq!(info.instance_state, InstanceState::NotAliveNoWriters);
            break;
        }
    }
}

/// What was taken has its key, though its reader has forgotten the instance.
#[test]
fn a_sample_keeps_its_key() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer_of::<Sign>(&participants[0], "Signs", lifecycle(true));
    let reader = reader_of::<Sign>(&participants[1], "Signs", keep_all_reader());
    enable(&participants);
    let sign = |number: i32| Sign {
        sign: format!("a sign of more than 16 bytes, {number}"),
    };
    let come_and_go = |number| {
        writer.write(&sign(number)).expect("sent");
        assert_eq!(told(&reader).1, Ok(sign(number)));
        writer.unregister_instance(&sign(number)).expect("sent");
    };
    come_and_go(-1);
    let kept = take_some(&reader, 1);
    for number in 0..500 {
        come_and_go(number);
        assert_eq!(told(&reader).1, Ok(sign(number)));
    }
    let kept = kept.get(0).expect("one");
    assert!(!kept.info().valid_data);
    assert_eq!(kept.key(), Ok(sign(-1)));
    assert!(is_bad(reader.key_value(kept.info().instance_handle)));
}

fn register_an_instance<T>(sample: &T, key: &T)
where
    T: TopicType + Clone + PartialEq + Debug,
{
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let writer = writer_of::<T>(&participant, "Keys", reliable_writer());
    enable(std::slice::from_ref(&participant));
    let is_registered = |handle| {
        assert_eq!(writer.lookup_instance(sample), Ok(Some(handle)));
        assert_eq!(writer.key_value(handle).as_ref(), Ok(key));
    };
    let refuses = |writer: &DataWriter<T>| {
        assert_eq!(writer.lookup_instance(sample), Ok(None));
        let refused = writer.unregister_instance(sample);
        assert!(
            matches!(refused, Err(Error::PreconditionNotMet(_))),
            "{refused:?}"
        );
    };
    refuses(&writer);
    let handle = writer
        .register_instance_w_timestamp(key, 4711)
        .expect("enabled");
    is_registered(handle);
    assert_eq!(writer.register_instance(sample), Ok(handle));
    writer.unregister_instance(key).expect("once");
    refuses(&writer);
    assert!(is_bad(writer.key_value(handle)));
    // What is written or disposed of is registered by that; each time anew.
    for _ in 0..2 {
        writer.write(sample).expect("sent");
        writer.write(sample).expect("sent");
        is_registered(handle);
        writer.dispose(key).expect("sent");
        is_registered(handle);
        writer.unregister_instance(key).expect("once");
        refuses(&writer);
    }
    writer.dispose(sample).expect("sent");
    is_registered(handle);
    // Another writer of the participant has not registered it.
    let other = writer_of::<T>(&participant, "Keys", reliable_writer());
    until("it is enabled", || other.lookup_instance(sample).is_ok());
    refuses(&other);
    assert!(is_bad(other.key_value(handle)));
}

#[test]
fn a_writer_knows_what_it_has_registered() {
    each_kind_of_key!(register_an_instance());
}

#[test]
fn a_write_that_fails_registers_nothing() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let mut qos = reliable_writer();
    qos.resource_limits.max_instances = 1.into();
    let short = writer_of::<State>(&participant, "State", qos.clone());
    let long = writer_of::<Sign>(&participant, "Signs", qos);
    enable(std::slice::from_ref(&participant));
    short.write(&state(1, 0)).expect("sent");
    let refused = short.write(&state(2, 0));
    assert!(
        matches!(refused, Err(Error::OutOfResources(_))),
        "{refused:?}"
    );
    assert_eq!(short.lookup_instance(&state(2, 0)), Ok(None));
    let signs = ["first", "second"].map(|sign| Sign { sign: sign.into() });
    long.write(&signs[0]).expect("sent");
    let refused = long.write(&signs[1]);
    assert!(
        matches!(refused, Err(Error::OutOfResources(_))),
        "{refused:?}"
    );
    assert_eq!(long.lookup_instance(&signs[1]), Ok(None));
    long.unregister_instance(&signs[0])
        .expect("it is registered");
    long.write(&signs[1]).expect("there is room");
    assert_ne!(long.lookup_instance(&signs[1]), Ok(None));
}

#[test]
fn many_instances_stay_registered() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let writer = writer(&participant, "State");
    enable(std::slice::from_ref(&participant));
    for number in 0..3 {
        for icao in 0..2_000 {
            // Loans and copies alike.
            if icao % 2 == 0 {
                let mut loan = writer.loan().expect("room");
                loan.set_icao(icao).set_number(number);
                let _ = loan.callsign("").expect("fits").publish().expect("sent");
            } else {
                writer.write(&state(icao, number)).expect("sent");
            }
        }
        // In between, rounds end.
        writer.unregister_instance(&state(number, 0)).expect("once");
        writer.write(&state(number, 0)).expect("sent");
    }
    for icao in 0..2_000 {
        let handle = writer.lookup_instance(&state(icao, 0)).expect("enabled");
        let handle = handle.expect("it was written");
        assert_eq!(writer.key_value(handle), Ok(state(icao, 0)));
        writer.unregister_instance(&state(icao, 0)).expect("once");
        assert_eq!(writer.lookup_instance(&state(icao, 0)), Ok(None));
    }
}

#[test]
fn handles_in_the_words_of_the_standard() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer(&participants[0], "State");
    let reader = reader(&participants[1], "State");
    enable(&participants);
    let (writer, reader) = (psm::DataWriter(writer), psm::DataReader(reader));
    let (one, two) = (state(1, 0), state(2, 0));
    let nil = InstanceHandle::NIL;
    // Both have the value that a handle of theirs would have, but none has been given.
    let not_given = InstanceHandle::of_instance(one.key_hash());
    assert_eq!(writer.lookup_instance(&one), nil);
    let bad = ReturnCode::BadParameter;
    assert_eq!(writer.write(&one, not_given), bad);
    assert_eq!(writer.dispose(&one, not_given), bad);
    assert_eq!(writer.unregister_instance(&one, not_given), bad);
    let mut holder = state(7, 7);
    assert_eq!(writer.get_key_value(&mut holder, not_given), bad);
    assert_eq!(holder, state(7, 7), "it is as it was");
    let unmet = ReturnCode::PreconditionNotMet;
    assert_eq!(writer.unregister_instance(&one, nil), unmet);
    assert_eq!(writer.unregister_instance_w_timestamp(&one, nil, 5), unmet);

    let handles = [&one, &two].map(|key| writer.register_instance_w_timestamp(key, 4711));
    assert_eq!(writer.lookup_instance(&one), handles[0]);
    assert_eq!(writer.register_instance(&two), handles[1]);
    assert_eq!(writer.write(&one, handles[1]), unmet);
    assert_eq!(writer.dispose(&two, handles[0]), unmet);
    assert_eq!(writer.unregister_instance(&one, handles[1]), unmet);
    assert_eq!(writer.write_w_timestamp(&one, handles[1], 5), unmet);
    assert_eq!(writer.dispose_w_timestamp(&one, handles[1], 5), unmet);
    assert_eq!(writer.write(&state(1, 3), handles[0]), ReturnCode::Ok);
    assert_eq!(writer.dispose(&one, handles[0]), ReturnCode::Ok);
    assert_eq!(
        writer.get_key_value(&mut holder, handles[0]),
        ReturnCode::Ok
    );
    assert_eq!(holder, one);
    assert_eq!(told(&reader.0).1, Ok(one.clone()));
    until("it is disposed of", || reader.0.take(1).is_ok());
    assert_eq!(reader.lookup_instance(&one), handles[0]);
    assert_eq!(
        reader.get_key_value(&mut holder, handles[0]),
        ReturnCode::Ok
    );
    assert_eq!(
        reader.get_key_value(&mut holder, handles[1]),
        bad,
        "it was not written"
    );
    assert_eq!(reader.get_key_value(&mut holder, nil), bad);
    assert_eq!(writer.unregister_instance(&one, handles[0]), ReturnCode::Ok);
    assert_eq!(writer.unregister_instance(&one, handles[0]), bad);
    assert_eq!(writer.get_key_value(&mut holder, handles[0]), bad);
}
