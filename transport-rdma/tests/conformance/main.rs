//! One suite for all backends: each clause of the `Fabric` contract is a function over a
//! [`harness::Harness`], run over the simulator (many seeds) and over stations (threads, both
//! doorbells): all members on one host, each on its own host, and a mixture. A new backend
//! implements [`harness::Segments`] and adds a module to `suite`.
//!
//! The mutants of the simulator (`testing/mutants/fabric`) break one clause each, and have to
//! fail the test of that clause.

mod data;
mod failure;
mod harness;
mod news;
mod segments;
mod sleeping;
mod stations;

use harness::{Outcome, SimGroup};
use spindle_dds_transport::shm::DoorbellChoice;
use spindle_dds_transport::sim::{Rng, SimOptions};
use stations::StationGroup;

/// Members of a group of stations; simulated groups have 3 to 5.
const MEMBERS: usize = 3;
const ROW_LEN: usize = 1024;

/// Runs one clause over one seed of the simulator.
fn over_seed(
    clause: impl Fn(&SimGroup) -> Outcome,
    seed: u64,
    options: impl Fn(&mut Rng) -> SimOptions,
) -> Outcome {
    let options = options(&mut Rng::new(seed));
    clause(&SimGroup::new(
        seed,
        3 + seed as usize % 3,
        ROW_LEN,
        options,
    ))
}

fn over_sim(clause: impl Fn(&SimGroup) -> Outcome) {
    for seed in 0..200 {
        if let Err(violation) = over_seed(&clause, seed, SimOptions::swarm) {
            panic!("seed {seed}: {violation}");
        }
    }
}

fn over_stations(
    clause: impl Fn(&StationGroup) -> Outcome,
    hosts: &[usize],
    doorbells: &[DoorbellChoice],
) {
    let repeats = if hosts.len() > MEMBERS { 1 } else { 3 };
    for repeat in 0..repeats {
        if let Err(violation) = clause(&StationGroup::new(hosts, ROW_LEN, doorbells)) {
            panic!("repeat {repeat}: {violation}");
        }
    }
}

/// Once: only the bytes of the streams are others.
fn over_encrypted(clause: impl Fn(&StationGroup) -> Outcome, hosts: &[usize]) {
    use DoorbellChoice::{Auto, Event};
    if let Err(violation) = clause(&StationGroup::encrypted(hosts, ROW_LEN, &[Auto, Event])) {
        panic!("{violation}");
    }
}

/// Once: packets take time, and most clauses repeat themselves.
fn over_rdma(clause: impl Fn(&StationGroup) -> Outcome, hosts: &[usize]) {
    use DoorbellChoice::{Auto, Event};
    if let Err(violation) = clause(&StationGroup::over_rdma(hosts, ROW_LEN, &[Auto, Event])) {
        panic!("{violation}");
    }
}

/// The hosts of the members: all on one, each on its own, two on each, and so on.
const ONE: &[usize] = &[0; MEMBERS];
const APART: &[usize] = &[0, 1, 2];
const TWO: &[usize] = &[0, 1, 0, 1];
const TWO_AND_MORE: &[usize] = &[0, 1, 0, 2];

macro_rules! suite {
    (
        all: { $($module:ident::$clause:ident,)* }
        with_segments: { $($segments:ident::$further:ident,)* }
    ) => {
        mod sim {
            $(#[test] fn $clause() {
                super::over_sim(crate::$module::$clause);
            })*
            $(#[test] fn $further() {
                super::over_sim(crate::$segments::$further);
            })*
        }
        mod apart_futex {
            use super::DoorbellChoice::Auto;
            $(#[test] fn $clause() {
                super::over_stations(crate::$module::$clause, super::APART, &[Auto]);
            })*
            $(#[test] fn $further() {
                super::over_stations(crate::$segments::$further, super::APART, &[Auto]);
            })*
        }
        mod apart_event {
            use super::DoorbellChoice::Event;
            $(#[test] fn $clause() {
                super::over_stations(crate::$module::$clause, super::APART, &[Event]);
            })*
            $(#[test] fn $further() {
                super::over_stations(crate::$segments::$further, super::APART, &[Event]);
            })*
        }
        mod hosts_futex {
            use super::DoorbellChoice::Auto;
            $(#[test] fn $clause() {
                super::over_stations(crate::$module::$clause, super::TWO, &[Auto]);
            })*
            $(#[test] fn $further() {
                super::over_stations(crate::$segments::$further, super::TWO, &[Auto]);
            })*
        }
        mod hosts_event {
            use super::DoorbellChoice::Event;
            $(#[test] fn $clause() {
                super::over_stations(crate::$module::$clause, super::TWO, &[Event]);
            })*
            $(#[test] fn $further() {
                super::over_stations(crate::$segments::$further, super::TWO, &[Event]);
            })*
        }
        mod stations_futex {
            use super::DoorbellChoice::Auto;
            $(#[test] fn $clause() {
                super::over_stations(crate::$module::$clause, super::ONE, &[Auto]);
            })*
            $(#[test] fn $further() {
                super::over_stations(crate::$segments::$further, super::ONE, &[Auto]);
            })*
        }
        mod stations_event {
            use super::DoorbellChoice::Event;
            $(#[test] fn $clause() {
                super::over_stations(crate::$module::$clause, super::ONE, &[Event]);
            })*
            $(#[test] fn $further() {
                super::over_stations(crate::$segments::$further, super::ONE, &[Event]);
            })*
        }
        mod stations_mixed {
            use super::DoorbellChoice::{Auto, Event};
            $(#[test] fn $clause() {
                super::over_stations(crate::$module::$clause, super::ONE, &[Auto, Event]);
            })*
            $(#[test] fn $further() {
                super::over_stations(crate::$segments::$further, super::ONE, &[Auto, Event]);
            })*
        }
        mod encrypted {
            $(#[test] fn $clause() {
                super::over_encrypted(crate::$module::$clause, super::APART);
            })*
            $(#[test] fn $further() {
                super::over_encrypted(crate::$segments::$further, super::APART);
            })*
        }
        mod verbs {
            $(#[test] #[ignore = "needs RDMA devices: run it in testing/rdma-vm"] fn $clause() {
                super::over_rdma(crate::$module::$clause, super::APART);
            })*
            $(#[test] #[ignore = "needs RDMA devices: run it in testing/rdma-vm"] fn $further() {
                super::over_rdma(crate::$segments::$further, super::APART);
            })*
        }
        mod verbs_mixed {
            $(#[test] #[ignore = "needs RDMA devices: run it in testing/rdma-vm"] fn $clause() {
                super::over_rdma(crate::$module::$clause, super::TWO_AND_MORE);
            })*
            $(#[test] #[ignore = "needs RDMA devices: run it in testing/rdma-vm"] fn $further() {
                super::over_rdma(crate::$segments::$further, super::TWO_AND_MORE);
            })*
        }
    };
}

suite! {
    all: {
        data::rows_begin_zeroed,
        data::f1_a_pushed_range_arrives,
        data::f1b_a_guard_vouches_for_what_was_pushed_before_it,
        data::f2_words_take_effect_in_call_order,
        data::f2_a_range_takes_effect_before_later_pushes,
        data::f3_a_dead_peer_holds_up_no_other,
        data::f4_words_never_tear,
        data::f5_stores_visible_early_are_in_order,
        data::counters_count_pushes,
        failure::f6_a_death_is_reported_once_to_each,
        failure::f6_no_push_to_a_live_member_is_lost,
        failure::f6_nothing_of_a_fenced_peer_is_seen,
        failure::f7_rows_of_dead_members_stay_readable,
        sleeping::no_wake_up_is_lost_when_a_token_goes_round,
        sleeping::no_wake_up_is_lost_in_a_crowd,
        sleeping::no_nudge_is_lost,
        sleeping::no_nudge_under_the_lock_is_lost,
        sleeping::only_sleepers_are_woken,
        sleeping::a_sleeper_is_woken_for_what_its_interest_includes,
        sleeping::a_death_wakes_sleepers,
        sleeping::a_member_that_has_fenced_sleeps_until_woken,
        sleeping::no_wake_up_is_lost_after_a_fence,
        sleeping::sleeps_are_counted,
    }
    with_segments: {
        segments::f2_order_holds_across_segments,
        segments::f6_a_late_opener_sees_all_that_was_pushed,
        segments::f6_a_fence_leaves_other_segments_alone,
        segments::f6_each_control_segment_reports_a_death,
        segments::ranks_are_of_the_segment,
        segments::no_wake_up_is_lost_when_a_token_changes_segments,
        segments::sleep_is_shared_by_all_segments,
        news::nothing_is_missed_where_only_news_are_read,
        news::what_was_seen_is_no_news_any_more,
    }
}
