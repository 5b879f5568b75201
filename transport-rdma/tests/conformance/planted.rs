//! The suite notices: each bug planted in the simulator fails a clause.

use spindle_dds_transport::sim::{PlantedBug, Rng, SimOptions};

use crate::harness::SimGroup;
use crate::{clause, over_seed};

/// The clause that must fail within 300 seeds, without spurious rings, which
/// could hide a lost doorbell.
fn check(bug: PlantedBug, name: &str) {
    let clause = clause::<SimGroup>(name).expect("a clause");
    let options = |rng: &mut Rng| SimOptions {
        spurious_wakes: 0.0,
        ..SimOptions::swarm(rng).plant(bug)
    };
    let caught = (0..300).find_map(|seed| over_seed(clause, seed, options).err());
    assert!(caught.is_some(), "{bug:?} passes {name}");
}

#[test]
fn each_planted_bug_fails_its_clause() {
    for bug in PlantedBug::ALL {
        check(
            bug,
            match bug {
                PlantedBug::LostPush => "f6_no_push_to_the_living_is_lost",
                PlantedBug::LateWord | PlantedBug::MergedPush => {
                    "f1b_a_guard_vouches_for_what_was_pushed_before_it"
                }
                PlantedBug::Overtaking => "f2_words_take_effect_in_call_order",
                PlantedBug::OvertakingSegments => "f2_order_holds_across_segments",
                PlantedBug::TornWord => "f4_words_never_tear",
                PlantedBug::StoresOutOfOrder => "f5_stores_that_show_early_show_in_order",
                PlantedBug::FenceLeaks => "f6_nothing_of_a_fenced_peer_is_seen",
                PlantedBug::FenceDeafens => "no_wake_up_is_lost_after_a_fence",
                PlantedBug::FenceKeepsAwake => "who_has_fenced_sleeps_until_rung",
                PlantedBug::FenceTooWide => "f6_a_fence_leaves_other_segments_alone",
                PlantedBug::UnopenedLost => "f6_a_late_opener_sees_all_that_was_pushed",
                PlantedBug::OldFailuresUntold => "f6_each_control_segment_reports_a_death",
                PlantedBug::FailureTwice => "f6_a_death_is_told_once_to_each",
                PlantedBug::RingWithoutFence
                | PlantedBug::SleepNotAnnounced
                | PlantedBug::EpochNotAnswered => "no_wake_up_is_lost_when_a_token_goes_round",
                PlantedBug::AcksRingAll => "acknowledgements_ring_only_who_wants_them",
            },
        );
    }
}
