//! Waiting costs nothing, and nobody oversleeps.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use futures_core::Stream;

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

/// The smallest executor.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::park();
    }
}

#[test]
fn a_stream_wakes_its_task_and_ends_with_the_participant() {
    const SAMPLES: u32 = 1_000;
    let meeting = Meeting::of(2);
    let participants: [_; 2] = meeting.participants();
    let writer = writer(&participants[0], "State");
    let reader = reader(&participants[1], "State");
    enable(&participants);
    let reading = thread::spawn(move || {
        let mut stream = reader.stream(64);
        let mut numbers = Vec::new();
        loop {
            let next = poll_fn(|context| Pin::new(&mut stream).poll_next(context));
            let Some(samples) = block_on(next) else {
                return numbers;
            };
            for sample in &samples.expect("the group lives") {
                if sample.info().valid_data {
                    numbers.push(sample.view().expect("data").number());
                }
            }
            if numbers.len() == SAMPLES as usize {
                participants[1].close().expect("it leaves");
            }
        }
    });
    for number in 0..SAMPLES {
        writer.write(&state(1, number)).expect("sent");
        if number % 100 == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
    let numbers = reading.join().expect("it ends");
    assert_eq!(numbers, (0..SAMPLES).collect::<Vec<_>>());
}
