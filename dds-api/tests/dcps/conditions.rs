//! Conditions that hold by what others do.

use std::thread;

use spindle_dds::{
    Error, SampleStateMask, StateMasks, StatusMask, ViewStateMask, WaitSet, testing,
};

use crate::meeting::{Meeting, PATIENCE, enable, reader, state, until, wait_in, writer};

#[test]
fn reading_makes_conditions_hold_for_others() {
    let read = StateMasks {
        sample: SampleStateMask::READ,
        ..StateMasks::ANY
    };
    let looked_at = StateMasks {
        view: ViewStateMask::NOT_NEW,
        ..StateMasks::ANY
    };
    for (masks, takes) in [(read, false), (looked_at, true)] {
        let meeting = Meeting::new();
        let participant = meeting.participant();
        let writer = writer(&participant, "State");
        let reader = reader(&participant, "State");
        enable(std::slice::from_ref(&participant));
        for number in [1, 2] {
            writer.write(&state(1, number)).expect("sent");
        }
        let received = writer.wait_for_acknowledgments(PATIENCE);
        received.expect("received");
        let condition = reader.read_condition(masks).expect("alive");
        let waits = WaitSet::new();
        waits.attach(&condition);
        thread::scope(|scope| {
            let waiting = wait_in(scope, &waits, PATIENCE);
            // Both samples are in the cache by now.
            until("it waits", || testing::is_waiting(&waits));
            let one = if takes {
                reader.take(1)
            } else {
                reader.read(1)
            };
            assert_eq!(one.expect("two are there").len(), 1);
            let held = waiting.join().expect("it ends");
            assert_eq!(held, Ok(vec![(&condition).into()]));
        });
    }
}

#[test]
fn a_wait_set_is_for_one_thread() {
    let (waits, guard) = (WaitSet::new(), spindle_dds::GuardCondition::new());
    waits.attach(&guard);
    thread::scope(|scope| {
        let waiting = wait_in(scope, &waits, PATIENCE);
        let refused = waits.wait(PATIENCE);
        assert!(
            matches!(refused, Err(Error::PreconditionNotMet(_))),
            "{refused:?}"
        );
        guard.set_trigger_value(true);
        assert_eq!(waiting.join().expect("it ends"), Ok(vec![(&guard).into()]));
    });
    assert_eq!(waits.wait(PATIENCE), Ok(vec![guard.into()]), "it is free");
}

/// Reading a status takes the reader's lock. Samples that arrive meanwhile are not left in the
/// queue.
#[test]
fn looking_at_statuses_leaves_nothing_behind() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let writer = writer(&participant, "State");
    let reader = reader(&participant, "State");
    enable(std::slice::from_ref(&participant));
    let condition = reader.status_condition().expect("alive");
    condition.set_enabled_statuses(StatusMask::DATA_AVAILABLE);
    let over = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                reader.subscription_matched_status().expect("alive");
            }
        });
        for number in 0..3_000 {
            writer.write(&state(1, number)).expect("sent");
            let waits = WaitSet::new();
            waits.attach(&condition);
            let told = waits.wait(spindle_dds::Duration::from_secs(5));
            over.store(told.is_err(), std::sync::atomic::Ordering::Relaxed);
            told.expect("data is announced while statuses are read");
            reader.take(1).expect("it is there");
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
