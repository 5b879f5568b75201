//! Lives with logs over the real engine: what is acknowledged outlasts members, and whole groups.

use std::thread;

use spindle_dds_sim::{LifeReport, Scenario, live};

/// Lives of these seeds on two threads.
fn lives(seeds: u64) -> Vec<LifeReport> {
    let half = |first: u64| {
        let seeds = (first..seeds).step_by(2);
        let lives = seeds.map(|seed| live(&Scenario::Logged.draw(seed)));
        lives.collect::<Result<Vec<_>, _>>()
    };
    let halves = thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        [half(0), other.join().expect("the other half has run")]
    });
    let halves = halves.map(|it| it.unwrap_or_else(|violation| panic!("{violation}")));
    halves.into_iter().flatten().collect()
}

#[test]
fn what_is_acknowledged_outlasts_total_restarts() {
    let (mut openings, mut acknowledged) = (0, 0);
    for report in lives(40) {
        openings += report.logged.0;
        acknowledged += report.logged.1;
    }
    assert!(
        openings > 200 && acknowledged > 600,
        "{openings}, {acknowledged}"
    );
}

/// The word of a member is above the last record: the epoch begins there, and a record behind it is not on
/// the disk yet.
#[test]
fn a_word_says_nothing_of_positions_without_a_record() {
    let lived = live(&Scenario::Logged.draw(1982));
    lived.unwrap_or_else(|violation| panic!("{violation}"));
}

/// A logger that hears late of its expulsion lets go of its disk when all others are at rest: the end waits
/// for the participant that opens the log again.
#[test]
fn the_end_waits_for_the_log_of_a_member_that_heard_late_of_its_expulsion() {
    let lived = live(&Scenario::Logged.draw(17_964));
    lived.unwrap_or_else(|violation| panic!("{violation}"));
}
