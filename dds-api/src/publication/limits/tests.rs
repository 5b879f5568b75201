use super::*;

const A: KeyHash = KeyHash([1; 16]);
const B: KeyHash = KeyHash([2; 16]);
const C: KeyHash = KeyHash([3; 16]);

fn limits(samples: Length, instances: Length, of_instance: Length) -> Limits {
    let limits = ResourceLimits {
        max_samples: samples,
        max_instances: instances,
        max_samples_per_instance: of_instance,
    };
    Limits::of(limits, 8, Keeps::Nothing).expect("something is limited")
}

fn at(index: u64) -> SendPosition {
    SendPosition {
        returns: 1,
        epoch: 3,
        index,
    }
}

/// Nothing in flight, nothing registered: nothing is remembered.
fn check_empty(limits: &Limits) {
    let state = limits.state();
    assert_eq!((state.samples, state.alive), (0, 0), "{state:?}");
    assert!(
        state.instances.is_empty() && state.in_flight.is_empty(),
        "{state:?}"
    );
}

#[test]
fn no_limits_are_none() {
    assert!(Limits::of(ResourceLimits::default(), 8, Keeps::All).is_none());
}

#[test]
fn samples_are_counted_until_they_are_released() {
    let limits = limits(2.into(), Length::Unlimited, Length::Unlimited);
    limits.admit(Some(A), at(0)).expect("one");
    limits.admit(None, at(0)).expect("two");
    assert_eq!(limits.admit(Some(B), at(0)), Err(Full::Samples));
    limits.name(B, at(0)).expect("instances are not limited");
    limits.withdraw(Some(B));
    limits.admit(Some(B), at(0)).expect("one was withdrawn");
    // In another order than their indexes.
    limits.committed(MessageKind::Data, A, at(7));
    limits.committed(MessageKind::Data, B, at(5));
    assert_eq!(limits.admit(Some(A), at(5)), Err(Full::Samples));
    limits.admit(Some(A), at(6)).expect("5 is released");
    assert_eq!(limits.admit(Some(A), at(7)), Err(Full::Samples));
    limits.withdraw(Some(A));
    limits.admit(None, at(8)).expect("all are released");
    limits.withdraw(None);
    check_empty(&limits);
}

#[test]
fn what_was_sent_in_an_epoch_that_ended_is_released() {
    let limits = limits(2.into(), Length::Unlimited, Length::Unlimited);
    for index in [100, 101] {
        limits.admit(Some(A), at(0)).expect("two");
        limits.committed(MessageKind::Data, A, at(index));
    }
    assert_eq!(limits.admit(Some(A), at(100)), Err(Full::Samples));
    let next = |index| SendPosition {
        returns: 1,
        epoch: 4,
        index,
    };
    limits.admit(Some(A), next(0)).expect("all are released");
    limits.committed(MessageKind::Data, A, next(0));
    limits.admit(Some(A), next(0)).expect("two again");
    assert_eq!(limits.admit(Some(A), next(0)), Err(Full::Samples));
    limits.committed(MessageKind::Data, A, next(1));
    limits.admit(None, next(2)).expect("released");
    limits.withdraw(None);
    check_empty(&limits);
}

#[test]
fn what_was_sent_before_the_group_was_lost_is_released() {
    let limits = limits(1.into(), Length::Unlimited, Length::Unlimited);
    limits.admit(Some(A), at(0)).expect("one");
    limits.committed(MessageKind::Data, A, at(100));
    assert_eq!(limits.admit(Some(A), at(100)), Err(Full::Samples));
    // The views of another group are numbered from 1.
    let back = SendPosition {
        returns: 2,
        epoch: 1,
        index: 0,
    };
    limits.admit(Some(A), back).expect("released");
    limits.withdraw(Some(A));
    check_empty(&limits);
}

#[test]
fn samples_of_an_instance_are_counted_by_themselves() {
    let limits = limits(Length::Unlimited, Length::Unlimited, 1.into());
    limits.admit(Some(A), at(0)).expect("one");
    assert_eq!(limits.admit(Some(A), at(0)), Err(Full::SamplesOfInstance));
    limits.admit(None, at(0)).expect("not known of which");
    assert_eq!(limits.name(A, at(0)), Err(Full::SamplesOfInstance));
    limits.committed(MessageKind::Data, A, at(3));
    assert_eq!(limits.name(A, at(3)), Err(Full::SamplesOfInstance));
    limits.name(A, at(4)).expect("released");
    limits.committed(MessageKind::Data, A, at(4));
    limits.admit(Some(B), at(5)).expect("another");
    limits.withdraw(Some(B));
    check_empty(&limits);
}

#[test]
fn instances_are_those_that_are_not_unregistered() {
    let limits = limits(Length::Unlimited, 2.into(), Length::Unlimited);
    limits.register(A).expect("one");
    limits.register(A).expect("the same");
    limits.admit(Some(B), at(0)).expect("two");
    assert_eq!(limits.register(C), Err(Full::Instances));
    assert_eq!(limits.admit(Some(C), at(0)), Err(Full::Instances));
    limits.withdraw(Some(B));
    limits.admit(Some(C), at(0)).expect("B was never written");
    limits.committed(MessageKind::Data, C, at(0));
    limits.admit(Some(A), at(0)).expect("it is registered");
    limits.committed(MessageKind::Data, A, at(1));
    assert_eq!(limits.register(B), Err(Full::Instances));
    limits.unregister(MessageKind::Unregister, A);
    limits.unregister(MessageKind::Unregister, B);
    limits.register(B).expect("one was unregistered");
    limits.unregister(MessageKind::Unregister, B);
    limits.unregister(MessageKind::Unregister, C);
    check_empty(&limits);
}

#[test]
fn samples_in_flight_of_an_unregistered_instance_still_count() {
    let limits = limits(Length::Unlimited, 1.into(), 1.into());
    limits.admit(Some(A), at(0)).expect("one");
    limits.committed(MessageKind::Data, A, at(0));
    limits.unregister(MessageKind::Unregister, A);
    limits.admit(Some(B), at(0)).expect("A is unregistered");
    limits.withdraw(Some(B));
    assert_eq!(limits.admit(Some(A), at(0)), Err(Full::SamplesOfInstance));
    limits.admit(Some(A), at(1)).expect("released");
    limits.withdraw(Some(A));
    check_empty(&limits);
}

#[test]
fn samples_that_wait_count_and_their_instances_only_while_registered() {
    let limits = limits(2.into(), 1.into(), Length::Unlimited);
    limits.admit(Some(A), at(0)).expect("one");
    assert_eq!(limits.register(A), Ok(true));
    limits.kept(A);
    assert_eq!(limits.register(A), Ok(false));
    assert_eq!(limits.register(B), Err(Full::Instances));
    limits.unregister(MessageKind::Unregister, A);
    limits.admit(Some(B), at(0)).expect("A is unregistered");
    assert_eq!(limits.admit_waiting(B, at(0)), Err(Full::Samples));
    limits.withdraw(Some(B));
    limits.admit_waiting(A, at(0)).expect("two");
    assert_eq!(limits.admit(Some(B), at(0)), Err(Full::Samples));
    limits.committed_waiting(MessageKind::Data, A, at(0));
    limits.withdraw_waiting(A);
    limits.admit(None, at(1)).expect("one is released");
    limits.withdraw(None);
    check_empty(&limits);
}

#[test]
fn nothing_is_allocated_for_instances_that_come_and_go() {
    let limits = limits(4.into(), 4.into(), 2.into());
    let capacity = |limits: &Limits| {
        let state = limits.state();
        (state.instances.capacity(), state.in_flight.capacity())
    };
    let before = capacity(&limits);
    for index in 0..10_000_u64 {
        let key = KeyHash(u128::from(index).to_le_bytes());
        limits
            .admit(Some(key), at(index.saturating_sub(2)))
            .unwrap();
        limits.committed(MessageKind::Data, key, at(index));
        limits.unregister(MessageKind::Unregister, key);
    }
    assert_eq!(capacity(&limits), before);
}

fn keeps(samples: Length, keeps: Keeps) -> Limits {
    let limits = ResourceLimits {
        max_samples: samples,
        ..ResourceLimits::default()
    };
    Limits::of(limits, 8, keeps).expect("something is limited")
}

fn write(limits: &Limits, kind: MessageKind, key: KeyHash) -> Result<(), Full> {
    limits.admit(Some(key), at(1000))?;
    limits.committed(kind, key, at(0));
    Ok(())
}

#[test]
fn what_is_kept_counts_though_it_is_released() {
    let limits = keeps(2.into(), Keeps::All);
    for key in [A, B] {
        write(&limits, MessageKind::Data, key).expect("room");
    }
    let full = Err(Full::Samples);
    assert_eq!(write(&limits, MessageKind::Data, A), full);
    assert_eq!(limits.admit(None, at(1000)), full);
    // It stays without a writer; disposed of besides, it is removed.
    limits.unregister(MessageKind::Unregister, A);
    assert_eq!(write(&limits, MessageKind::Data, B), full);
    limits.unregister(MessageKind::DisposeUnregister, A);
    write(&limits, MessageKind::Data, B).expect("room");
    limits.unregister(MessageKind::DisposeUnregister, B);
    check_empty(&limits);
}

#[test]
fn a_sample_that_replaces_another_needs_no_room() {
    let limits = keeps(3.into(), Keeps::Last(2));
    for _ in 0..5 {
        write(&limits, MessageKind::Data, A).expect("it replaces one");
    }
    limits.admit(None, at(0)).expect("it may replace one");
    limits.name(A, at(0)).expect("it does");
    limits.committed(MessageKind::Data, A, at(0));
    write(&limits, MessageKind::Data, B).expect("room");
    assert_eq!(write(&limits, MessageKind::Data, B), Err(Full::Samples));
    limits.admit(None, at(0)).expect("it may replace one");
    assert_eq!(limits.name(C, at(0)), Err(Full::Samples));
    limits.withdraw(None);
    write(&limits, MessageKind::Dispose, A).expect("it replaces one until it is sent");
    limits.unregister(MessageKind::DisposeUnregister, A);
    write(&limits, MessageKind::Dispose, B).expect("room");
    limits.unregister(MessageKind::Unregister, B);
    check_empty(&limits);
}
