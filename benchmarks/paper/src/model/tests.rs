//! The model: its arithmetic, and the trends that the paper states. All times are virtual, so each
//! run has the same result.

use spindle_dds_core::EngineConfig;

use super::constants::{COSTS, DISK, SYNC, WRITE, append_ns, keep_ns};
use super::world::run_with;
use super::{Delay, Delayed, Experiment, Level, Lock, Measured, Senders, Slots, run};

const BASELINE: EngineConfig = EngineConfig::BASELINE;
const SPINDLE: EngineConfig = EngineConfig::SPINDLE;

fn baseline(members: usize) -> Experiment {
    Experiment {
        messages: 300,
        ..Experiment::new(members, BASELINE, Slots::Fixed, Lock::OverPosts)
    }
}

fn spindle(members: usize) -> Experiment {
    Experiment {
        messages: 2000,
        ..Experiment::new(members, SPINDLE, Slots::Rings, Lock::Free)
    }
}

fn measured(experiment: &Experiment) -> Measured {
    run(experiment).unwrap_or_else(|broken| panic!("{broken}: {experiment:?}"))
}

#[test]
fn the_same_run_has_the_same_figures() {
    for experiment in [baseline(5), spindle(5)] {
        assert_eq!(measured(&experiment), measured(&experiment));
    }
}

/// One message from one member to another, step by step.
#[test]
fn a_message_takes_what_its_parts_take() {
    let experiment = Experiment {
        senders: Senders::One,
        messages: 1,
        ..spindle(2)
    };
    let found = measured(&experiment);
    // Payload, headers and guard; the received count; the release of the member that delivers
    // first. The run is over when the other one has delivered.
    assert_eq!(found.requests * 2.0, (3 + 1 + 1) as f64);
    assert_eq!(found.writes, found.requests, "each has one peer");
    assert_eq!(found.wire_bytes * 2.0, (10_240 + 64 + 8 + 16 + 32) as f64);
    let way = 3 * COSTS.post_first_ns + COSTS.latency(8);
    let back = COSTS.post_first_ns + COSTS.latency(16);
    let least = (way + back) as f64 / 1000.0;
    assert!(
        (least..least + 5.0).contains(&found.latency_mean_us),
        "{} and not {least} and some reads",
        found.latency_mean_us
    );
}

#[test]
fn one_sender_is_as_fast_as_its_link() {
    for members in [3, 6] {
        let found = measured(&Experiment {
            senders: Senders::One,
            ..spindle(members)
        });
        let link = 12.5 / (members - 1) as f64;
        assert!(
            (0.8 * link..link).contains(&found.gb_per_s),
            "{members} members: {} GB/s of {link}",
            found.gb_per_s
        );
    }
}

/// The network's rate limits a single sender.
#[test]
fn a_slower_network_is_noticed() {
    let slow = crate::network::Costs {
        wire_ps: COSTS.wire_ps * 4,
        ..COSTS
    };
    let experiment = Experiment {
        senders: Senders::One,
        ..spindle(4)
    };
    let slowed = run_with(&experiment, &slow).expect("a run").gb_per_s;
    let ratio = measured(&experiment).gb_per_s / slowed;
    assert!((3.5..4.5).contains(&ratio), "{ratio}");
}

/// §IV-A.1: 18.2 M to 1.1 M at 16 senders.
#[test]
fn batches_save_requests() {
    let each =
        |experiment: &Experiment| measured(experiment).requests / f64::from(experiment.messages);
    let (before, after) = (each(&baseline(8)), each(&spindle(8)));
    assert!(after * 10.0 < before, "{after} of {before} a message");
}

/// §IV-A, figure 5: batching improves throughput and latency.
#[test]
fn batching_improves_throughput_and_latency() {
    let batching = EngineConfig {
        send_batching: true,
        receive_batching: true,
        delivery_batching: true,
        ..BASELINE
    };
    let batching = Experiment {
        config: batching,
        ..baseline(8)
    };
    let (before, after) = (measured(&baseline(8)), measured(&batching));
    assert!(after.gb_per_s > 3.0 * before.gb_per_s);
    assert!(after.latency_mean_us < before.latency_mean_us / 3.0);
}

/// §IV-A.3: an inactive subgroup costs the baseline 18 % on average.
#[test]
fn inactive_subgroups_cost_the_baseline_most() {
    let loss = |experiment: Experiment| {
        let with = Experiment {
            subgroups: 10,
            ..experiment
        };
        1.0 - measured(&with).gb_per_s / measured(&experiment).gb_per_s
    };
    let (before, after) = (loss(baseline(6)), loss(spindle(6)));
    assert!(before > 0.4, "{before}");
    assert!(after < before * 0.8, "{after} of {before}");
}

/// §IV-B: without nulls, a delayed sender slows down all others, and a silent one stops all
/// deliveries.
#[test]
fn nulls_keep_the_others_going() {
    let run_delayed = |null_sends, ns| {
        let config = EngineConfig {
            null_sends,
            ..SPINDLE
        };
        let senders = Delayed::One;
        run(&Experiment {
            config,
            delay: Some(Delay { senders, ns }),
            ..spindle(4)
        })
    };
    let with = run_delayed(true, Some(100_000)).expect("a run").gb_per_s;
    let without = run_delayed(false, Some(100_000)).expect("a run").gb_per_s;
    assert!(with > 10.0 * without, "{with} and {without}");
    assert!(run_delayed(true, None).is_ok());
    let stalled = run_delayed(false, None).expect_err("no null fills the gap");
    assert!(
        stalled.to_string().contains("no event follows"),
        "{stalled}"
    );
}

/// §III-D: a slow upcall delays everything else.
#[test]
fn slow_upcalls_bring_one_message_a_delay() {
    let found = measured(&Experiment {
        upcall_ns: 100_000,
        messages: 100,
        ..baseline(3)
    });
    assert!((8_000.0..10_000.0).contains(&found.messages_per_s));
}

fn at_level(level: Level, experiment: Experiment) -> Experiment {
    Experiment {
        senders: Senders::One,
        level,
        ..experiment
    }
}

/// §IV-F: each level costs what those before it do, and more.
#[test]
fn a_level_is_no_faster_than_the_one_before() {
    let levels = [
        Level::Unordered,
        Level::Atomic,
        Level::Volatile,
        Level::Logged,
    ];
    for experiment in [baseline(3), spindle(3)] {
        let rates = levels.map(|level| measured(&at_level(level, experiment)).gb_per_s);
        let falls = rates.windows(2).all(|pair| pair[1] <= pair[0] * 1.001);
        assert!(falls && rates[3] < rates[1], "{rates:?}");
    }
}

/// With room for one message, the next one waits for the copy: the slot is free no earlier. The
/// copy then delays each message; a larger window hides it.
#[test]
fn a_slot_is_free_after_the_copy() {
    let us = |level, window| {
        let experiment = Experiment {
            window,
            ..spindle(2)
        };
        1e6 / measured(&at_level(level, experiment)).messages_per_s
    };
    let one = us(Level::Volatile, 1) - us(Level::Atomic, 1);
    let copy = keep_ns(10_240) as f64 / 1000.0;
    assert!(
        (0.5 * copy..2.0 * copy).contains(&one),
        "{one} of {copy} µs"
    );
    let many = us(Level::Volatile, 100) - us(Level::Atomic, 100);
    assert!(many < 0.1 * copy, "{many} of {copy} µs");
}

/// A log thread that is behind writes and syncs many messages at once.
#[test]
fn a_log_syncs_what_has_gathered() {
    let found = measured(&at_level(Level::Logged, spindle(2)));
    let record = 10_240 + 96;
    let bytes = append_ns(record) + u64::from(record) * DISK.value / 1000;
    let least_us = bytes as f64 / 1000.0;
    let alone_us = (bytes + WRITE.value + SYNC.value) as f64 / 1000.0;
    let us = 1e6 / found.messages_per_s;
    assert!(
        (least_us..alone_us / 3.0).contains(&us),
        "{us} µs a message"
    );
}

/// In the paper's systems the polling thread copies and appends.
#[test]
fn the_baseline_keeps_in_its_polling_thread() {
    let us = |level| 1e6 / measured(&at_level(level, baseline(2))).messages_per_s;
    let [atomic, volatile, logged] = [Level::Atomic, Level::Volatile, Level::Logged].map(us);
    let check = |more: f64, ns: u64| {
        let expected = ns as f64 / 1000.0;
        assert!(more > 0.5 * expected, "{more} of {expected} µs");
    };
    check(volatile - atomic, keep_ns(10_240));
    check(logged - volatile, append_ns(10_240 + 64));
}

#[test]
fn what_cannot_be_run_is_refused() {
    let check = |change: &dyn Fn(&mut Experiment)| {
        let mut experiment = spindle(3);
        change(&mut experiment);
        assert!(run(&experiment).is_err(), "{experiment:?}");
    };
    check(&|experiment| experiment.members = 1);
    check(&|experiment| experiment.members = 17);
    check(&|experiment| experiment.messages = 0);
    check(&|experiment| experiment.messages = 20_001);
    check(&|experiment| experiment.active = 2);
    check(&|experiment| experiment.active = 0);
}
