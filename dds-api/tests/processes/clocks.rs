//! Clocks that step, and clocks of other time namespaces, cost no member its group.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use crate::inside::is_root;
use crate::member::Member;

/// Heartbeat timeout in milliseconds: less than each step.
const LIMIT_MS: u32 = 10_000;
/// Longer than any step of a test takes.
const PATIENCE: Duration = Duration::from_secs(60);
const DAY_S: i64 = 86_400;

/// By how much the wall clock of this process is ahead, in seconds.
static AHEAD_S: AtomicI64 = AtomicI64::new(0);

/// Takes the place of the C library's in this program, the standard library included: the wall
/// clock of one process is stepped, not that of the machine.
// SAFETY: the same function as the C library's.
#[unsafe(no_mangle)]
extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> libc::c_int {
    // SAFETY: the caller has room for a time there, as the system call wants it.
    let done = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) } as libc::c_int;
    if done == 0 && clock == libc::CLOCK_REALTIME {
        // SAFETY: the kernel has just written it.
        unsafe { (*time).tv_sec += AHEAD_S.load(Ordering::Relaxed) };
    }
    done
}

/// Steps the wall clock of this process. Answers with the step that it sees.
pub(crate) fn step(seconds: i64) -> String {
    let now = || {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.expect("after 1970").as_secs() as i64
    };
    let before = now();
    AHEAD_S.fetch_add(seconds, Ordering::Relaxed);
    // To the minute.
    format!("{}", (now() - before + 30).div_euclid(60) * 60)
}

fn check_goes_on(publisher: &mut Member, others: &mut [&mut Member]) {
    assert_eq!(publisher.failure(), "");
    for other in others {
        assert_eq!(other.failure(), "");
        let received = other.count("received 1");
        other.wait_for_samples(1, received + 100);
    }
}

#[test]
fn wall_clocks_that_step_cost_no_member_its_group_and_no_sample() {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("domains");
    let [mut first, mut second, mut third] = Member::group(&directory, LIMIT_MS);
    first.ask("publish");
    for step in [DAY_S, -2 * DAY_S, 365 * DAY_S] {
        for member in [&mut first, &mut second] {
            assert_eq!(member.ask(&format!("step_clock {step}")), step.to_string());
        }
        check_goes_on(&mut first, &mut [&mut second, &mut third]);
    }
    // Clocks that differ by a year hinder no view.
    let mut fourth = Member::start(&directory, 4, LIMIT_MS);
    fourth.wait_for_members(4, PATIENCE);
    fourth.wait_for_samples(1, 100);
    assert_eq!(third.ask("leave"), "left");
    first.wait_for_members(3, PATIENCE);
    check_goes_on(&mut first, &mut [&mut second, &mut fourth]);
}

/// Containers that were restored have time namespaces of their own.
#[test]
fn members_of_different_time_namespaces_are_one_domain() {
    if !is_root() {
        return;
    }
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("domains");
    let start = |number, ahead_s: &str| {
        let mut starter = vec!["unshare", "--kill-child", "--time"];
        starter.extend(["--monotonic", ahead_s, "--boottime", ahead_s]);
        Member::start_by(&starter, &directory, number, LIMIT_MS)
    };
    let mut first = Member::start(&directory, 1, LIMIT_MS);
    first.ask("publish");
    let (mut second, mut third) = (start(2, "1000000"), start(3, "777"));
    for other in [&mut second, &mut third] {
        other.wait_for_members(3, PATIENCE);
        other.wait_for_samples(1, 100);
    }
    second.ask("publish");
    third.wait_for_samples(2, 100);
    second.kill();
    for other in [&mut first, &mut third] {
        other.wait_for_members(2, PATIENCE);
    }
    // The founder is gone, and the others let in a newcomer.
    assert_eq!(first.ask("leave"), "left");
    third.wait_for_members(1, PATIENCE);
    let mut fourth = Member::start(&directory, 4, LIMIT_MS);
    fourth.wait_for_members(2, PATIENCE);
    assert_eq!(third.failure(), "");
}
