//! Idle participants cost nothing and are woken in time; memory is prefaulted if asked for.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use spindle_dds::{DataReader, DomainParticipant, StateMasks, WaitSet, testing};

use crate::flight::State;
use crate::meeting::{Meeting, PATIENCE, enable, reader, state, take, until, writer};

#[test]
fn idle_participants_sleep() {
    for doorbell in ["auto", "event"] {
        for wait in ["balanced", "spin", "block"] {
            let meeting = Meeting::new();
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
            // They come to rest: one that polls by a timer never would.
            let rests = (0..100).any(|_| {
                let before = steps();
                thread::sleep(Duration::from_millis(200));
                steps() == before
            });
            assert!(
                rests,
                "{doorbell}, {wait}: a participant steps all the time"
            );
            writers[0].write(&state(1, 99)).expect("sent");
            for reader in &readers {
                let numbers = take(reader, 1, |sample| sample.data().expect("data").number);
                assert_eq!(numbers, [99], "{doorbell}, {wait}");
            }
        }
    }
}

/// It wakes for its heartbeats, and has nothing to wait for then.
#[test]
fn an_idle_participant_steps_a_few_times_for_each_heartbeat() {
    let meeting = Meeting::new();
    // Alone, so that it may be late.
    let builder = meeting
        .builder()
        .property("spindle.failure.limit_ms", "60")
        .property("spindle.wait", "balanced");
    let participant = [builder.create().expect("a participant")];
    let _writer = writer(&participant[0], "State");
    enable(&participant);
    let counts = || {
        let counters = participant[0].counters().expect("enabled");
        let engine = counters.engine;
        (counters.wake_ups, engine.steps + engine.idle_steps)
    };
    // Its subgroup is idle by then.
    until("it wakes", || counts().0 > 20);
    let before = counts();
    until("it wakes", || counts().0 > before.0 + 50);
    let after = counts();
    let (wake_ups, steps) = (after.0 - before.0, after.1 - before.1);
    assert!(
        steps <= 4 * wake_ups,
        "{steps} steps in {wake_ups} wake-ups"
    );
}

/// Takes samples as they come, until number `last`, which it notes each time.
fn receive(reader: &DataReader<State>, waits: &WaitSet, last: &AtomicU32, taken: &AtomicU32) {
    while taken.load(Ordering::Relaxed) < last.load(Ordering::Relaxed) {
        waits.wait(PATIENCE).expect("a sample");
        let samples = reader.take(10).expect("there");
        for sample in &samples {
            let number = sample.data().expect("data").number;
            taken.store(number, Ordering::Relaxed);
        }
    }
}

/// Their threads wait in WaitSets, and have gone to sleep when the next sample is sent.
#[test]
fn readers_that_wait_are_woken_together() {
    const READERS: usize = 8;
    /// Samples that found nearly all of them asleep.
    const ENOUGH: u32 = 50;
    const SAMPLES_MAX: u32 = 5_000;
    let meeting = Meeting::new();
    let participants: [DomainParticipant; 1 + READERS] = meeting.participants();
    let sender = &participants[0];
    let writer = writer(sender, "State");
    let others = participants[1..].iter();
    let readers: Vec<_> = others.map(|it| reader(it, "State")).collect();
    enable(&participants);
    let any = |reader: &DataReader<State>| reader.read_condition(StateMasks::ANY);
    let conditions: Vec<_> = readers.iter().map(|it| any(it).expect("alive")).collect();
    let wait_sets = conditions.iter().map(|condition| {
        let waits = WaitSet::new();
        waits.attach(condition);
        waits
    });
    let wait_sets: Vec<_> = wait_sets.collect();
    let taken = [(); READERS].map(|()| AtomicU32::new(0));
    let counters = || sender.counters().expect("enabled").fabric;
    let sleeps_of = |it: &DomainParticipant| it.counters().expect("enabled").fabric.sleeps;
    let sleeps = || participants[1..].iter().map(sleeps_of).collect::<Vec<_>>();
    let mut slept = vec![0; READERS];
    let mut enough = 0;
    let [mut woken, mut calls] = [0, 0];
    let last = AtomicU32::new(SAMPLES_MAX);
    thread::scope(|scope| {
        for (at, reader) in readers.iter().enumerate() {
            let (waits, taken) = (&wait_sets[at], &taken[at]);
            let last = &last;
            scope.spawn(move || receive(reader, waits, last, taken));
        }
        for number in 1..=SAMPLES_MAX {
            if enough == ENOUGH {
                last.store(number, Ordering::Relaxed);
            }
            until("they wait", || wait_sets.iter().all(testing::is_waiting));
            // However long a loaded machine takes until each has announced its sleep.
            until("they sleep", || {
                sleeps().iter().zip(&slept).all(|(now, then)| now > then)
            });
            thread::sleep(Duration::from_millis(2));
            slept = sleeps();
            let before = counters();
            writer.write(&state(1, number)).expect("sent");
            let has_taken = |taken: &AtomicU32| taken.load(Ordering::Relaxed) == number;
            until("all have it", || taken.iter().all(has_taken));
            let after = counters();
            // On a loaded machine some are awake again by then.
            let of_this = after.peer_wakes - before.peer_wakes;
            if of_this + 2 >= READERS as u64 {
                enough += 1;
                woken += of_this;
                calls += after.wake_calls - before.wake_calls;
            }
            if last.load(Ordering::Relaxed) == number {
                break;
            }
        }
    });
    assert!(enough >= ENOUGH, "they hardly ever sleep");
    assert!(calls * 2 < woken, "{calls} calls for {woken} wake-ups");
}

/// Bytes of the mapped rows that are as long as `lens`, and of those that have memory.
fn mapped(lens: std::ops::Range<u64>) -> (u64, u64) {
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("the maps of this process");
    let bytes = |map: &str, what: &str| {
        let line = map.lines().find_map(|line| line.strip_prefix(what));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        number.expect(what) * 1024
    };
    let rows = maps
        .split("VmFlags:")
        .filter(|map| map.contains("spindle-dds-row"));
    let rows = rows.map(|map| (bytes(map, "Size:"), bytes(map, "Rss:")));
    let rows = rows.filter(|(len, _)| lens.contains(len));
    rows.fold((0, 0), |sum, (len, there)| (sum.0 + len, sum.1 + there))
}

#[test]
fn rings_have_their_memory_from_the_start_if_asked_for() {
    // Rings that no other test of this process has.
    for (prefault, bytes) in [("true", 2_u64 << 20), ("false", 4 << 20)] {
        let meeting = Meeting::new();
        let participants = [0, 1].map(|_| {
            let builder = meeting.builder().property("spindle.prefault", prefault);
            let builder = builder.property("spindle.ring.bytes", &bytes.to_string());
            builder.create().expect("a participant")
        });
        let writer = writer(&participants[0], "State");
        let reader = reader(&participants[1], "State");
        enable(&participants);
        writer.write(&state(1, 1)).expect("sent");
        let numbers = take(&reader, 1, |sample| sample.data().expect("data").number);
        assert_eq!(numbers, [1]);
        let (long, there) = mapped(bytes..bytes * 3 / 2);
        assert!(long >= 2 * bytes, "mapped by its writer and by its reader");
        match prefault {
            "true" => assert_eq!(there, long),
            _ => assert!(there < long / 4, "{there} of {long} bytes"),
        }
    }
}
