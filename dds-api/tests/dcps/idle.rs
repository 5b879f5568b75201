//! Waiting costs nothing, and nobody oversleeps.

use std::thread;
use std::time::Duration;

use crate::meeting::{Meeting, enable, reader, state, take, writer};

#[test]
fn who_has_nothing_to_do_sleeps() {
    for doorbell in ["auto", "event"] {
        for wait in ["balanced", "spin", "block"] {
            let meeting = Meeting::of(3);
            let participants = [0, 1, 2].map(|_| {
                let builder = meeting.builder().property("spindle.doorbell", doorbell);
                builder
                    .property("spindle.wait", wait)
                    .create()
                    .expect("a participant")
            });
            let writers = [0, 1, 2].map(|at| writer(&participants[at], "State"));
            let readers = [0, 1, 2].map(|at| reader(&participants[at], "State"));
            enable(&participants);
            for round in 0..5 {
                let one = writers[round % 3].write(&state(1, round as u32));
                one.expect("sent");
                for reader in &readers {
                    let numbers = take(reader, 1, |sample| sample.data().expect("data").number);
                    assert_eq!(numbers, [round as u32]);
                }
            }
            let steps = || {
                participants.each_ref().map(|participant| {
                    let counters = participant.counters().expect("enabled").engine;
                    counters.steps + counters.idle_steps
                })
            };
            // They come to rest: whoever polled by a timer never would.
            let rests = (0..100).any(|_| {
                let before = steps();
                thread::sleep(Duration::from_millis(200));
                steps() == before
            });
            assert!(rests, "{doorbell}, {wait}: somebody steps all the time");
            writers[0].write(&state(1, 99)).expect("sent");
            for reader in &readers {
                let numbers = take(reader, 1, |sample| sample.data().expect("data").number);
                assert_eq!(numbers, [99], "{doorbell}, {wait}");
            }
        }
    }
}
