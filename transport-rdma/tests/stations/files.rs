//! The domain's files: removed while members run, on a full file system, not writable.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use spindle_dds_transport::shm::{DomainRegistry, HostOptions, MemberEntry, Station};

use crate::child::{DOMAIN, Process, ask_all};
use crate::directory;
use crate::inside::in_own_mounts;

/// Two members in view 2, and their entries.
fn two_members(directory: &Path) -> (Vec<Process>, String) {
    let mut both = Process::connected(directory, 2);
    let entries = ask_all(&mut both, |_| "entry".into()).join(",");
    assert_eq!(enter(&mut both[0]), "founded");
    assert_eq!(enter(&mut both[1]), "present [1]");
    assert_eq!(both[0].ask(&format!("decide 1 2 5 {entries} 0")), "decided");
    (both, entries)
}

fn enter(process: &mut Process) -> String {
    process.ask(&format!("enter {DOMAIN} 0"))
}

/// Removes a directory, in which members make files anew meanwhile.
fn remove_whole(directory: impl AsRef<Path>) {
    while let Err(error) = std::fs::remove_dir_all(directory.as_ref()) {
        assert_eq!(error.kind(), ErrorKind::DirectoryNotEmpty, "{error}");
    }
}

fn file(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("domain-{DOMAIN}.{name}"))
}

/// Sockets of stations.
fn sockets(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_socket = |path: &PathBuf| path.extension().is_some_and(|it| it == "station");
    paths.filter(is_socket).collect()
}

fn wait_for(what: impl Fn() -> bool) {
    while !what() {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whatever is removed, a newcomer finds the members, and is reached by them.
fn check_removal(remove: impl Fn(&Path)) {
    let directory = directory();
    let (mut both, entries) = two_members(directory.path());
    remove(directory.path());
    let mut third = Process::start(directory.path(), 3);
    assert_eq!(enter(&mut third), "present [1, 2]");
    wait_for(|| sockets(directory.path()).len() == 3);
    for (at, id) in [(0, 1), (1, 2)] {
        let connect = format!("connect {}", both[at].address);
        assert_eq!(third.ask(&connect), format!("connected {id}"));
    }
    // All decide in one record.
    let all = format!("{entries},{}", third.ask("entry"));
    assert_eq!(both[0].ask(&format!("decide 2 3 6 {all} 0")), "decided");
    let late = both[1].ask(&format!("decide 2 3 7 {all} 0"));
    assert!(late.contains("is at view 3"), "{late}");
    assert_eq!(third.ask(&format!("decide 3 4 8 {all} 0")), "decided");
    assert_eq!(both[1].ask("leave"), "left");
    let mut fourth = Process::start(directory.path(), 4);
    assert_eq!(enter(&mut fourth), "present [1, 3]");
}

#[test]
fn a_newcomer_finds_members_whose_directory_was_removed() {
    check_removal(|directory| remove_whole(directory));
}

#[test]
fn a_newcomer_finds_members_whose_directory_was_renamed() {
    check_removal(|directory| {
        let other = directory.with_extension("other");
        std::fs::rename(directory, &other).expect("renamed");
        remove_whole(other);
    });
}

#[test]
fn a_newcomer_finds_members_whose_record_was_removed() {
    check_removal(|directory| std::fs::remove_file(file(directory, "record")).expect("removed"));
}

#[test]
fn a_newcomer_finds_members_whose_sockets_were_removed() {
    check_removal(|directory| {
        for socket in sockets(directory) {
            std::fs::remove_file(socket).expect("removed");
        }
    });
}

/// Members that look at the same moment write one record.
#[test]
fn members_agree_where_a_removed_record_is_written_anew() {
    for round in 0..20 {
        let directory = directory();
        let (mut both, entries) = two_members(directory.path());
        for view in 3..6 {
            match round % 2 {
                0 => remove_whole(directory.path()),
                _ => std::fs::remove_file(file(directory.path(), "record")).expect("removed"),
            }
            let from = view - 1;
            let answers = ask_all(&mut both, |member| {
                format!("decide {from} {view} {member} {entries} 0")
            });
            let won = answers.iter().filter(|answer| *answer == "decided").count();
            assert_eq!(won, 1, "{answers:?}");
        }
    }
}

#[test]
fn members_whose_directory_cannot_be_made_anew_decide_and_leave_without_it() {
    let directory = directory();
    let (mut both, entries) = two_members(directory.path());
    remove_whole(directory.path());
    std::fs::write(directory.path(), "in its place").expect("written");
    assert_eq!(both[0].ask(&format!("decide 2 3 6 {entries} 0")), "decided");
    let late = both[1].ask(&format!("decide 2 3 7 {entries} 0"));
    assert!(late.contains("is at view 3"), "{late}");
    both[1].kill();
    let first = entries.split(',').next().expect("an entry");
    assert_eq!(both[0].ask(&format!("decide 3 4 8 {first} 0")), "decided");
    assert_eq!(both[0].ask("leave"), "left");
    std::fs::remove_file(directory.path()).expect("removed");
    // All are gone: the domain is founded.
    assert_eq!(enter(&mut Process::start(directory.path(), 3)), "founded");
}

/// The other members of the host write what one cannot.
#[test]
fn a_member_that_cannot_write_the_record_decides_nothing_and_another_does() {
    let directory = directory();
    let (mut both, entries) = two_members(directory.path());
    both[0].forbid_writing();
    let refused = both[0].ask(&format!("decide 2 3 6 {entries} 0"));
    let path = file(directory.path(), "record");
    let text = format!("{} cannot be written: File too large", path.display());
    assert!(refused.starts_with(&text), "{refused}");
    assert_eq!(both[1].ask(&format!("decide 2 3 7 {entries} 0")), "decided");
    // That it leaves is not written, and asked for instead.
    assert_eq!(both[0].ask("leave"), "left");
    both[0].kill();
    let mut third = Process::start(directory.path(), 3);
    assert_eq!(enter(&mut third), "present [2]");
}

fn run(program: &str, arguments: &[&str]) -> bool {
    let done = Command::new(program).args(arguments).status();
    done.expect("it runs").success()
}

/// A small file system in memory, in this mount namespace.
fn small_file_system(options: &str) -> PathBuf {
    let at = PathBuf::from("/mnt");
    let options = format!("mode=700,{options}");
    let mounted = run("mount", &["-t", "tmpfs", "-o", &options, "tmpfs", "/mnt"]);
    assert!(mounted, "root mounts");
    at
}

/// Until nothing is left.
fn fill(directory: &Path) {
    let mut file = std::fs::File::create(directory.join("fill")).expect("created");
    while file.write_all(&[1; 512]).is_ok() {}
}

/// It takes more than a page of a record.
fn long_entry(id: u128) -> MemberEntry {
    MemberEntry::here(id, 1, vec![7; 2100]).expect("a process")
}

#[test]
fn on_a_full_file_system_members_go_on_and_newcomers_are_refused() {
    if !in_own_mounts("files::on_a_full_file_system_members_go_on_and_newcomers_are_refused") {
        return;
    }
    let directory = small_file_system("size=64k");
    let (mut both, entries) = two_members(&directory);
    fill(&directory);
    for view in 3..40 {
        let decide = format!("decide {} {view} 6 {entries} 0", view - 1);
        assert_eq!(both[view % 2].ask(&decide), "decided");
    }
    // There is room for small newcomers; but not for these.
    let small = MemberEntry::here(3, 1, vec![]).expect("a process");
    let small = DomainRegistry::open(DOMAIN, Some(&directory), small).expect("room");
    let refused = DomainRegistry::open(DOMAIN, Some(&directory), long_entry(4));
    let unprepared = small.make_room(&[long_entry(4)]);
    for refused in [
        refused.expect_err("no room"),
        unprepared.expect_err("no room"),
    ] {
        assert!(refused.is_out_of_resources(), "{refused}");
        let text = refused.to_string();
        let path = file(&directory, "record");
        assert!(text.contains(path.to_str().expect("UTF-8")), "{text}");
        assert!(text.contains("No space left on device"), "{text}");
    }
    assert_eq!(
        both[1].ask(&format!("decide 39 40 6 {entries} 0")),
        "decided"
    );
    assert_eq!(both[0].ask("leave"), "left");
    assert_eq!(enter(&mut Process::start(&directory, 4)), "present [2]");
    // With space, the same newcomer is let in.
    std::fs::remove_file(directory.join("fill")).expect("removed");
    small.make_room(&[long_entry(4)]).expect("room");
    DomainRegistry::open(DOMAIN, Some(&directory), long_entry(4)).expect("room");
}

#[test]
fn without_inodes_members_go_on_and_newcomers_are_refused() {
    if !in_own_mounts("files::without_inodes_members_go_on_and_newcomers_are_refused") {
        return;
    }
    let directory = small_file_system("size=64k,nr_inodes=12");
    let (mut both, entries) = two_members(&directory);
    let mut files = 0;
    while std::fs::File::create(directory.join(format!("file-{files}"))).is_ok() {
        files += 1;
    }
    let mut options = HostOptions::new(DOMAIN, 3);
    options.directory = Some(directory.clone());
    let refused = Station::open(&options).expect_err("no inode for its socket");
    assert!(refused.is_out_of_resources(), "{refused}");
    assert!(
        refused.to_string().contains("No space left on device"),
        "{refused}"
    );
    assert_eq!(both[0].ask(&format!("decide 2 3 6 {entries} 0")), "decided");
}

#[test]
fn a_file_system_is_not_made_read_only_under_its_members_or_they_go_on() {
    if !in_own_mounts("files::a_file_system_is_not_made_read_only_under_its_members_or_they_go_on")
    {
        return;
    }
    let directory = small_file_system("size=64k");
    let (mut both, entries) = two_members(&directory);
    let remounted = run("mount", &["-o", "remount,ro", "/mnt"]);
    assert!(
        !remounted,
        "the kernel refuses: the record is open for writing"
    );
    assert_eq!(both[0].ask(&format!("decide 2 3 6 {entries} 0")), "decided");
    both.iter_mut().for_each(Process::kill);
    assert!(run("mount", &["-o", "remount,ro", "/mnt"]));
    let me = MemberEntry::here(3, 1, vec![]).expect("a process");
    let refused = DomainRegistry::open(DOMAIN, Some(&directory), me);
    let refused = refused.expect_err("not for writing");
    assert!(refused.is_out_of_resources(), "{refused}");
    assert!(
        refused.to_string().contains("Read-only file system"),
        "{refused}"
    );
}

#[test]
fn a_directory_that_others_may_enter_is_refused() {
    let directory = directory();
    let open = std::fs::Permissions::from_mode(0o750);
    std::fs::set_permissions(directory.path(), open).expect("changed");
    let me = MemberEntry::here(3, 1, vec![]).expect("a process");
    let refused = DomainRegistry::open(DOMAIN, Some(directory.path()), me);
    let text = refused.expect_err("not private").to_string();
    assert!(text.contains("has mode 750"), "{text}");
}
