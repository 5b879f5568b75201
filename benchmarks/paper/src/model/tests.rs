//! The model: its arithmetic, and the trends that the paper states. All times are virtual, so each
//! run has the same result.

use spindle_dds_core::EngineConfig;

use super::constants::COSTS;
use super::world::run_with;
use super::{Delay, Delayed, Experiment, Lock, Measured, Senders, Slots, run};

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
