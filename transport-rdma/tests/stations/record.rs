//! Decisions that must be unique, made by processes that race for them.

use std::path::Path;

use spindle_dds_transport::shm::{
    DecisionRefused, DomainRegistry, DomainState, EnterOutcome, MemberEntry, SetupError,
    ViewDecision,
};

use crate::child::{DOMAIN, Process, ask_all, now_ns};
use crate::directory;

/// A moment in the near future for which both processes wait actively.
fn moment() -> u64 {
    now_ns() + 200_000
}

fn enter(process: &mut Process) -> String {
    process.ask(&format!("enter {DOMAIN} 0"))
}

#[test]
fn one_of_two_simultaneous_entrants_founds_the_domain() {
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
fn one_of_two_decisions_wins() {
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
        let answers = ask_all(&mut both, |member| {
            format!("decide {from} {view} {member} {entries} {at}")
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
    // The remaining member decides alone, and is the domain until it leaves.
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

fn register(directory: &Path, id: u128) -> DomainRegistry {
    let me = MemberEntry::here(id, 1, b"here".to_vec()).expect("a process");
    DomainRegistry::open(DOMAIN, Some(directory), me).expect("a register")
}

#[test]
fn members_on_other_hosts_count_as_alive() {
    let directory = directory();
    let founder = register(directory.path(), 1);
    assert_eq!(founder.enter().expect("entered"), EnterOutcome::Founded);
    let away = MemberEntry {
        host: 2,
        pid: u32::MAX,
        ..MemberEntry::here(9, 1, vec![]).expect("a process")
    };
    let next = ViewDecision {
        view: 2,
        digest: 1,
        members: vec![
            MemberEntry::here(1, 1, vec![]).expect("a process"),
            away.clone(),
        ],
    };
    founder.decide(1, &next, true).expect("decided");
    drop(founder);
    let entered = register(directory.path(), 3).enter().expect("entered");
    assert_eq!(entered, EnterOutcome::Present(vec![away]));
}

#[test]
fn invalid_views_are_refused() {
    let directory = directory();
    let founder = register(directory.path(), 1);
    let me = MemberEntry::here(1, 1, vec![]).expect("a process");
    let next = |view, members| ViewDecision {
        view,
        digest: 1,
        members,
    };
    let gone = founder.decide(1, &next(2, vec![me.clone()]), true);
    assert!(
        matches!(gone, Err(DecisionRefused::Gone { .. })),
        "{gone:?}"
    );
    founder.enter().expect("entered");
    let far = MemberEntry {
        address: vec![0; 2000],
        ..me.clone()
    };
    for bad in [
        next(1, vec![me.clone()]),
        next(2, vec![]),
        next(2, vec![me.clone(); 257]),
        next(2, vec![far]),
    ] {
        let refused = founder.decide(1, &bad, true);
        assert!(
            matches!(refused, Err(DecisionRefused::NoView(_))),
            "{refused:?}"
        );
    }
    founder
        .decide(1, &next(2, vec![me]), true)
        .expect("a good one");
}

fn try_register(directory: &Path, id: u128) -> Result<DomainRegistry, SetupError> {
    let me = MemberEntry::here(id, 1, b"here".to_vec()).expect("a process");
    DomainRegistry::open(DOMAIN, Some(directory), me)
}

#[test]
fn a_record_of_a_later_version_or_of_another_program_is_never_taken_for_an_empty_domain() {
    for content in ["spindle-dds-domain 5\nwhatever\n", "something else"] {
        let directory = directory();
        let record = directory.path().join(format!("domain-{DOMAIN}.record"));
        std::fs::write(&record, content).expect("written");
        let error = try_register(directory.path(), 1).expect_err("unknown");
        assert!(
            error.to_string().contains("cannot be understood"),
            "{error}"
        );
        assert_eq!(std::fs::read(&record).expect("read"), content.as_bytes());
    }
}

#[test]
fn a_record_of_an_earlier_version_is_replaced_once_no_station_answers() {
    let directory = directory();
    let mut old = Process::start(directory.path(), 1);
    let record = directory.path().join(format!("domain-{DOMAIN}.record"));
    // A new file, as earlier versions wrote it.
    std::fs::remove_file(&record).expect("removed");
    std::fs::write(&record, "spindle-dds-domain 3\n1 2 3\n4 5\n").expect("written");
    let error = try_register(directory.path(), 2).expect_err("its station answers");
    let text = error.to_string();
    assert!(
        text.contains("version 3") && text.contains("running"),
        "{text}"
    );
    old.kill();
    let entered = register(directory.path(), 2).enter().expect("entered");
    assert_eq!(entered, EnterOutcome::Founded);
}

fn here(id: u128) -> MemberEntry {
    MemberEntry::here(id, 1, vec![]).expect("a process")
}

fn view(view: u64, members: &[u128]) -> ViewDecision {
    ViewDecision {
        view,
        digest: view * 10,
        members: members.iter().map(|id| here(*id)).collect(),
    }
}

fn present(register: &DomainRegistry) -> Vec<u128> {
    match register.living_members().expect("looked") {
        DomainState::Empty => Vec::new(),
        DomainState::Present(living) => living.iter().map(|entry| entry.id).collect(),
    }
}

#[test]
fn a_recorded_decision_may_be_repeated_late() {
    let directory = directory();
    let [first, second] = [1, 2].map(|id| register(directory.path(), id));
    assert_eq!(present(&first), []);
    first.enter().expect("entered");
    first.decide(1, &view(2, &[1, 2]), true).expect("decided");
    assert_eq!(present(&second), [1, 2]);
    // 1 leaves, and the domain continues to view 10.
    for next in 3..=10 {
        let decided = second.decide(next - 1, &view(next, &[2]), true);
        decided.expect("decided");
    }
    first
        .decide(2, &view(3, &[2]), true)
        .expect("recorded before; the member has left");
    let other = ViewDecision {
        digest: 31,
        ..view(3, &[2])
    };
    let refused = first.decide(2, &other, true).expect_err("another one");
    assert!(
        matches!(refused, DecisionRefused::NotMember { .. }),
        "{refused}"
    );
    second.decide(10, &view(11, &[2]), true).expect("decided");
    let forgotten = first.decide(2, &view(2, &[1, 2]), true);
    assert!(
        matches!(forgotten, Err(DecisionRefused::NoView(_))),
        "{forgotten:?}"
    );
    let forgotten = first.decide(1, &view(2, &[1, 2]), true);
    assert!(
        matches!(forgotten, Err(DecisionRefused::NotMember { .. })),
        "{forgotten:?}"
    );
}

#[test]
fn two_members_that_leave_together_both_succeed() {
    let directory = directory();
    let [first, second, third] = [1, 2, 3].map(|id| register(directory.path(), id));
    first.enter().expect("entered");
    first.decide(1, &view(2, &[1, 2]), true).expect("decided");
    // Both request to leave, and the one that stays for a view alone finishes it.
    second.decide(2, &view(3, &[2]), true).expect("decided");
    second.leave().expect("left");
    assert_eq!(present(&first), []);
    let late = first.decide(2, &view(3, &[2]), true);
    late.expect("has been made");
    // Also when others have founded the domain again.
    assert_eq!(third.enter().expect("entered"), EnterOutcome::Founded);
    let late = first.decide(2, &view(3, &[2]), true);
    late.expect("has been made");
    first.leave().expect("left");
    assert_eq!(present(&first), [3]);
    let expelled = first.decide(3, &view(4, &[1]), true);
    assert!(
        matches!(expelled, Err(DecisionRefused::NotMember { .. })),
        "{expelled:?}"
    );
}

#[test]
fn the_record_follows_what_a_majority_across_hosts_decides() {
    let directory = directory();
    let [first, second] = [1, 2].map(|id| register(directory.path(), id));
    // Views that began on another host.
    first.record(&view(5, &[1])).expect("noted");
    first.decide(5, &view(6, &[1, 2]), false).expect("noted");
    assert_eq!(present(&second), [1, 2]);
    second.record(&view(8, &[1, 2])).expect("a later one");
    first.record(&view(7, &[1, 2])).expect("overtaken");
    first.record(&view(9, &[2])).expect("1 has left");
    first
        .decide(8, &view(9, &[2]), false)
        .expect("noted already");
    assert_eq!(present(&first), [2], "it never goes back");
    for number in [7, 9] {
        let elsewhere = ViewDecision {
            digest: 1,
            ..view(number, &[1, 9])
        };
        let refused = first.record(&elsewhere).expect_err("another group");
        assert!(matches!(refused, SetupError::Elsewhere { .. }), "{refused}");
        let refused = first.decide(6, &elsewhere, false);
        assert!(
            matches!(refused, Err(DecisionRefused::Domain(_))),
            "{refused:?}"
        );
    }
    let leaves = ViewDecision {
        digest: 3,
        ..view(7, &[9])
    };
    first
        .decide(6, &leaves, false)
        .expect("a member that leaves is not affected");
    assert_eq!(present(&first), [2]);
    // No other member of this host's record is alive: it is of another group.
    drop(second);
    let mut gone = view(20, &[1]);
    gone.members.push(MemberEntry { host: 2, ..here(7) });
    first.record(&gone).expect("noted");
    first.record(&view(2, &[1, 3])).expect("another group");
    assert_eq!(present(&first), [1, 3]);
    let violation = first.record(&view(3, &[])).expect_err("no view");
    assert!(
        matches!(violation, SetupError::ProtocolViolation { .. }),
        "{violation}"
    );
}
