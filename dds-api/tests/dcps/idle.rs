//! Idle participants cost nothing and are woken in time; memory is prefaulted if asked for.

use std::thread;
use std::time::Duration;

use crate::meeting::{Meeting, enable, reader, state, take, writer};

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
