//! Members in different pid namespaces that share a directory, as containers do.

use crate::child::{DOMAIN, Process, ask_all};
use crate::directory;
use crate::inside::{NEW_PIDS, is_root};

fn enter(process: &mut Process) -> String {
    process.ask(&format!("enter {DOMAIN} 0"))
}

/// Until the kernel has ended all of a killed namespace.
fn enter_once_founded(process: &mut Process, meanwhile: &str) {
    loop {
        match &*enter(process) {
            "founded" => return,
            answer => assert_eq!(answer, meanwhile),
        }
    }
}

#[test]
fn a_domain_whose_pid_namespace_was_killed_is_founded_anew() {
    if !is_root() {
        return;
    }
    let directory = directory();
    let mut first = Process::start_by(&NEW_PIDS, directory.path(), 1);
    assert_eq!(enter(&mut first), "founded");
    first.kill();
    // Another container, then the host.
    let mut second = Process::start_by(&NEW_PIDS, directory.path(), 2);
    enter_once_founded(&mut second, "present [1]");
    second.kill();
    let mut third = Process::start(directory.path(), 3);
    enter_once_founded(&mut third, "present [2]");
    let names = std::fs::read_dir(directory.path()).expect("a directory");
    let names = names.map(|entry| entry.expect("an entry").file_name());
    let stations = names.filter(|name| name.to_string_lossy().ends_with(".station"));
    assert_eq!(stations.count(), 1, "those of the dead are cleared away");
}

#[test]
fn members_of_different_pid_namespaces_find_and_watch_each_other() {
    if !is_root() {
        return;
    }
    let directory = directory();
    let mut all = vec![
        Process::start_by(&NEW_PIDS, directory.path(), 1),
        Process::start_by(&NEW_PIDS, directory.path(), 2),
        Process::start(directory.path(), 3),
    ];
    assert_eq!(enter(&mut all[0]), "founded");
    assert_eq!(enter(&mut all[1]), "present [1]");
    assert_eq!(enter(&mut all[2]), "present [1]");
    for (from, to) in [(1, 0), (2, 0), (2, 1)] {
        let connect = format!("connect {}", all[to].address);
        assert_eq!(all[from].ask(&connect), format!("connected {}", to + 1));
    }
    let made = ask_all(&mut all, |_| "make 1 1,2,3".into());
    assert_eq!(made, ["made, without {}"; 3]);
    assert_eq!(all[1].ask("push 1 77"), "pushed");
    for survivor in [0, 2] {
        assert_eq!(all[survivor].ask("read 1 1"), "77");
        assert_eq!(all[survivor].ask("mourn 1"), "waiting");
    }
    all[1].kill();
    for survivor in [0, 2] {
        assert_eq!(all[survivor].hear(), "1: its process ended");
    }
    let entries = [all[0].ask("entry"), all[2].ask("entry")].join(",");
    assert_eq!(all[0].ask(&format!("decide 1 2 5 {entries} 0")), "decided");
    assert_eq!(enter(&mut all[2]), "present [1, 3]");
    assert_eq!(all[2].ask("leave"), "left");
    assert_eq!(enter(&mut all[2]), "present [1]");
}
