//! Decisions that must be single, by processes that race for them.

use std::path::Path;

use spindle_dds_transport::shm::{Decision, Entered, Entry, Refusal, Register};

use crate::child::{DOMAIN, Process, ask_all, now_ns};
use crate::directory;

/// A moment that both reach awake.
fn moment() -> u64 {
    now_ns() + 200_000
}

fn enter(process: &mut Process) -> String {
    process.ask(&format!("enter {DOMAIN} 0"))
}

#[test]
fn of_two_that_enter_at_once_one_founds() {
    let directory = directory();
    let mut both = [1, 2].map(|id| Process::start(directory.path(), id));
    for round in 0..200 {
        let at = moment();
        let mut answers = ask_all(&mut both, |_| format!("enter {round} {at}"));
        answers.sort();
        assert_eq!(answers[0], "founded", "{answers:?}");
        assert!(
            ["present [1]", "present [2]"].contains(&&*answers[1]),
            "{answers:?}"
        );
    }
}

#[test]
fn of_two_decisions_one_wins() {
    let directory = directory();
    let mut both = [1, 2].map(|id| Process::start(directory.path(), id));
    let entries = ask_all(&mut both, |_| "entry".into()).join(",");
    assert_eq!(enter(&mut both[0]), "founded");
    assert_eq!(enter(&mut both[1]), "present [1]");
    let first = format!("decide 1 2 5 {entries} 0");
    let refused = both[1].ask(&first);
    assert!(
        refused.contains("is at view 1") && refused.contains("is not in it"),
        "{refused}"
    );
    assert_eq!(both[0].ask(&first), "decided");
    assert_eq!(both[1].ask(&first), "decided", "done already");
    let mut winners = [0, 0];
    for view in 3..203 {
        let at = moment();
        let from = view - 1;
        let answers = ask_all(&mut both, |who| {
            format!("decide {from} {view} {who} {entries} {at}")
        });
        let won = answers.iter().position(|answer| answer == "decided");
        let won = won.expect("a winner");
        let lost = &answers[1 - won];
        let text = format!("is at view {view} with digest {won:016x}");
        assert!(lost.contains(&text), "{answers:?}");
        winners[won] += 1;
    }
    assert_eq!(winners[0] + winners[1], 200);
}

#[test]
fn a_domain_is_founded_anew_once_all_its_members_are_dead_or_have_left() {
    let directory = directory();
    let mut all: Vec<_> = (1..=3)
        .map(|id| Process::start(directory.path(), id))
        .collect();
    let entries: Vec<_> = all.iter_mut().map(|one| one.ask("entry")).collect();
    assert_eq!(enter(&mut all[0]), "founded");
    let both = entries[..2].join(",");
    assert_eq!(all[0].ask(&format!("decide 1 2 5 {both} 0")), "decided");
    assert_eq!(enter(&mut all[1]), "present [1, 2]");
    all[0].kill();
    assert_eq!(enter(&mut all[2]), "present [2]");
    // Who is left decides by itself, and is the domain until it leaves.
    assert_eq!(
        all[1].ask(&format!("decide 2 3 6 {} 0", entries[1])),
        "decided"
    );
    assert_eq!(enter(&mut all[2]), "present [2]");
    assert_eq!(all[1].ask("leave"), "left");
    assert_eq!(enter(&mut all[2]), "founded");
    all[2].kill();
    assert_eq!(enter(&mut all[1]), "founded");
    let sockets = std::fs::read_dir(directory.path()).expect("a directory");
    let names = sockets.map(|entry| entry.expect("an entry").file_name());
    let stations = names.filter(|name| name.to_string_lossy().ends_with(".station"));
    assert_eq!(stations.count(), 1, "those of the dead are cleared away");
}

fn register(directory: &Path, id: u128) -> Register {
    let me = Entry::here(id, 1, b"here".to_vec()).expect("a process");
    Register::open(DOMAIN, Some(directory), me).expect("a register")
}

#[test]
fn members_on_other_hosts_count_as_living() {
    let directory = directory();
    let founder = register(directory.path(), 1);
    assert_eq!(founder.enter().expect("entered"), Entered::Founded);
    let away = Entry {
        host: 2,
        pid: u32::MAX,
        ..Entry::here(9, 1, vec![]).expect("a process")
    };
    let next = Decision {
        view: 2,
        digest: 1,
        members: vec![Entry::here(1, 1, vec![]).expect("a process"), away.clone()],
    };
    founder.decide(1, &next).expect("decided");
    drop(founder);
    let entered = register(directory.path(), 3).enter().expect("entered");
    assert_eq!(entered, Entered::Present(vec![away]));
}

#[test]
fn decisions_that_are_no_views_are_refused() {
    let directory = directory();
    let founder = register(directory.path(), 1);
    let me = Entry::here(1, 1, vec![]).expect("a process");
    let next = |view, members| Decision {
        view,
        digest: 1,
        members,
    };
    let gone = founder.decide(1, &next(2, vec![me.clone()]));
    assert!(matches!(gone, Err(Refusal::Gone { .. })), "{gone:?}");
    founder.enter().expect("entered");
    let far = Entry {
        address: vec![0; 2000],
        ..me.clone()
    };
    for bad in [
        next(1, vec![me.clone()]),
        next(2, vec![]),
        next(2, vec![me.clone(); 257]),
        next(2, vec![far]),
    ] {
        let refused = founder.decide(1, &bad);
        assert!(matches!(refused, Err(Refusal::NoView(_))), "{refused:?}");
    }
    founder.decide(1, &next(2, vec![me])).expect("a good one");
}

#[test]
fn a_record_of_another_version_is_never_taken_for_an_empty_domain() {
    let directory = directory();
    let record = directory.path().join(format!("domain-{DOMAIN}.record"));
    std::fs::write(record, "spindle-dds-domain 3\nwhatever\n").expect("written");
    let error = register(directory.path(), 1).enter().expect_err("unknown");
    assert!(error.to_string().contains("makes no sense"), "{error}");
}
