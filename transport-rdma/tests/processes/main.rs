//! Groups of real processes on one host: how they come together, and what is
//! left when one of them is killed.

mod child;

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use child::{DOMAIN, Process, options};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketType};
use spindle_dds_transport::shm::{Cancel, JoinError, JoinOptions, join};
use spindle_dds_transport::{Fabric, Park, Want};
use tempfile::TempDir;

fn directory() -> TempDir {
    let mine = std::fs::Permissions::from_mode(0o700);
    tempfile::Builder::new()
        .permissions(mine)
        .tempdir()
        .expect("a directory")
}

/// Starts a group and takes it to where all have built, by rank.
fn group(directory: &Path, size: usize) -> Vec<Process> {
    let mut members = Process::start_many(size, directory, size);
    let joined: Vec<_> = members.iter_mut().map(Process::hear).collect();
    let mut ranked: Vec<_> = joined
        .iter()
        .map(|answer| rank(answer))
        .zip(members)
        .collect();
    ranked.sort_by_key(|&(rank, _)| rank);
    let mut members: Vec<_> = ranked.into_iter().map(|(_, member)| member).collect();
    members.iter_mut().for_each(|member| member.tell("build"));
    for member in &mut members {
        assert_eq!(member.hear(), "built");
    }
    members
}

fn rank(answer: &str) -> usize {
    let rank = answer
        .strip_prefix("joined ")
        .and_then(|rest| rest.split(' ').next());
    rank.unwrap_or_else(|| panic!("{answer}"))
        .parse()
        .expect("a rank")
}

#[test]
fn members_agree_on_who_they_are_and_share_their_rows() {
    let directory = directory();
    let mut members = Process::start_many(3, directory.path(), 3);
    let joined: Vec<_> = members.iter_mut().map(Process::hear).collect();
    let tails: Vec<_> = joined
        .iter()
        .map(|answer| answer.splitn(3, ' ').nth(2))
        .collect();
    assert!(tails.iter().all(|tail| *tail == tails[0]), "{joined:?}");
    let mut ranks: Vec<_> = joined.iter().map(|answer| rank(answer)).collect();
    for (member, rank) in members.iter().zip(&ranks) {
        let announced = joined[0]
            .rsplit(' ')
            .next()
            .and_then(|all| all.split(',').nth(*rank));
        assert_eq!(announced, Some(member.pid().to_string().as_str()));
    }
    members.iter_mut().for_each(|member| member.tell("build"));
    for member in &mut members {
        assert_eq!(member.hear(), "built");
    }
    for from in 0..3 {
        assert_eq!(members[from].ask(&format!("push {}", from + 10)), "pushed");
        for member in &mut members {
            let seen = member.ask(&format!("read {}", ranks[from]));
            assert_eq!(seen, (from + 10).to_string());
        }
    }
    ranks.sort_unstable();
    assert_eq!(ranks, [0, 1, 2]);
}

#[test]
fn a_push_wakes_a_process_that_sleeps_without_limit() {
    let directory = directory();
    let mut members = group(directory.path(), 2);
    for value in 1..20 {
        assert_eq!(members[1].ask(&format!("await 0 {value}")), "waiting");
        assert_eq!(members[0].ask(&format!("push {value}")), "pushed");
        assert_eq!(members[1].hear(), "seen");
    }
}

#[test]
fn a_killed_process_is_mourned_by_sleepers_and_its_row_stays() {
    let directory = directory();
    let mut members = group(directory.path(), 3);
    assert_eq!(members[1].ask("push 77"), "pushed");
    for survivor in [0, 2] {
        assert_eq!(members[survivor].ask("mourn"), "waiting");
    }
    members[1].kill();
    for survivor in [0, 2] {
        assert_eq!(members[survivor].hear(), "1: its process ended");
        assert_eq!(members[survivor].ask("read 1"), "77");
    }
}

#[test]
fn a_living_group_keeps_others_out_and_a_dead_one_does_not() {
    let directory = directory();
    let mut members = group(directory.path(), 2);
    let error = join(&options(directory.path(), 2), b"").expect_err("there is a group");
    let mut pids: Vec<_> = members.iter().map(Process::pid).collect();
    match &error {
        JoinError::GroupExists { domain, members } => {
            assert_eq!((*domain, members), (DOMAIN, &pids));
        }
        other => panic!("{other}"),
    }
    assert!(!error.to_string().contains('\n') && error.to_string().contains("domain 7"));
    // One has left, one was killed; nobody has cleaned up after it.
    assert_eq!(members[0].ask("leave"), "left");
    let error = join(&options(directory.path(), 2), b"").expect_err("half a group");
    pids.remove(0);
    assert!(matches!(&error, JoinError::GroupExists { members, .. } if *members == pids));
    members[1].kill();
    drop(group(directory.path(), 2));
    let left = join(&options(directory.path(), 1), b"").expect("all are dead");
    drop(left);
}

#[test]
fn of_many_that_start_at_once_exactly_one_group_comes_out() {
    for _ in 0..5 {
        let directory = directory();
        let mut members = Process::start_many(5, directory.path(), 2);
        let answers: Vec<_> = members.iter_mut().map(Process::hear).collect();
        let joined: Vec<_> = answers
            .iter()
            .filter(|text| text.starts_with("joined"))
            .collect();
        assert_eq!(joined.len(), 2, "{answers:?}");
        let group = |answer: &str| answer.split(' ').nth(2).map(str::to_owned);
        assert_eq!(group(joined[0]), group(joined[1]));
        let refused = answers
            .iter()
            .filter(|text| text.contains("already has a running group"));
        assert_eq!(refused.count(), 3, "{answers:?}");
    }
}

#[test]
fn another_group_size_is_refused_with_both() {
    let directory = directory();
    let mut founder = Process::start(directory.path(), 2);
    wait_for_socket(directory.path());
    let error = join(&options(directory.path(), 3), b"").expect_err("two sizes");
    assert!(
        matches!(
            error,
            JoinError::SizeMismatch {
                ours: 3,
                theirs: 2,
                ..
            }
        ),
        "{error}"
    );
    let mut second = Process::start(directory.path(), 2);
    assert!(founder.hear().starts_with("joined 0"));
    assert!(second.hear().starts_with("joined 1"));
}

/// The socket that a founder listens on, once it is there.
fn wait_for_socket(directory: &Path) -> std::path::PathBuf {
    loop {
        let entries = std::fs::read_dir(directory).expect("a directory");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        if let Some(path) = paths
            .into_iter()
            .find(|path| path.extension() == Some("socket".as_ref()))
        {
            return path;
        }
        thread::yield_now();
    }
}

#[test]
fn when_the_founder_is_killed_early_the_others_start_over() {
    let directory = directory();
    let mut founder = Process::start(directory.path(), 4);
    wait_for_socket(directory.path());
    let mut others = Process::start_many(2, directory.path(), 4);
    founder.kill();
    others.extend(Process::start_many(2, directory.path(), 4));
    let answers: Vec<_> = others.iter_mut().map(Process::hear).collect();
    let mut ranks: Vec<_> = answers.iter().map(|answer| rank(answer)).collect();
    ranks.sort_unstable();
    assert_eq!(ranks, [0, 1, 2, 3]);
}

#[test]
fn when_anybody_is_killed_before_the_group_is_built_the_rest_get_an_error() {
    for victim in 0..3 {
        let directory = directory();
        let members = Process::start_many(3, directory.path(), 3);
        let mut ranked: Vec<_> = members
            .into_iter()
            .map(|mut member| (rank(&member.hear()), member))
            .collect();
        ranked.sort_by_key(|&(rank, _)| rank);
        ranked[victim].1.kill();
        for (_, member) in ranked.iter_mut().filter(|(rank, _)| *rank != victim) {
            let answer = member.ask("build");
            assert!(answer.starts_with("error"), "{answer}");
        }
        // Nothing of it is left.
        drop(join(&options(directory.path(), 1), b"").expect("a free domain"));
    }
}

/// Two members, one of them short of something, build: true if both have a
/// group, false if both know that there is none.
fn builds_short_of(what: &str, starved: usize) -> bool {
    let directory = directory();
    let mut members = Process::start_many(2, directory.path(), 2);
    let joined: Vec<_> = members.iter_mut().map(Process::hear).collect();
    if rank(&joined[0]) == 1 {
        members.reverse();
    }
    members[starved].tell(&format!("starve {what}"));
    members.iter_mut().for_each(|member| member.tell("build"));
    let answers = [members[0].hear(), members[1].hear()];
    if answers == ["built", "built"] {
        return true;
    }
    let refused = answers.iter().all(|answer| answer.starts_with("error"));
    assert!(refused, "{what} at {starved}: {answers:?}");
    let reason = &answers[1 - starved];
    let named = reason.contains(&members[starved].pid().to_string());
    assert!(named, "{what} at {starved}: {reason}");
    drop(members);
    drop(join(&options(directory.path(), 1), b"").expect("a free domain"));
    false
}

/// A member may run out of descriptors at any point of the building: then
/// nobody gets a group, and all are told whose fault it is.
#[test]
fn short_of_descriptors_all_build_or_nobody() {
    for starved in 0..2 {
        let enough =
            (0..16).find(|spare| builds_short_of(&format!("descriptors {spare}"), starved));
        assert!(matches!(enough, Some(2..)), "{enough:?}");
    }
}

/// The watching thread comes last of all that may fail.
#[test]
fn without_memory_for_a_thread_nobody_gets_a_group() {
    for starved in 0..2 {
        assert!(!builds_short_of("memory", starved));
    }
}

/// One of three is killed a little later each time, and a fourth comes: nobody
/// hangs, and whoever builds a group builds the same one as the others in it.
#[test]
fn killed_at_any_moment_nobody_hangs_and_no_two_groups_come_out() {
    for moment in 0..16 {
        let directory = directory();
        let start = || Process::start_patient(directory.path(), 3, 500);
        let mut members = [start(), start(), start()];
        thread::sleep(Duration::from_micros(500) * moment);
        members[moment as usize % 3].kill();
        let mut rest = Vec::from(members);
        drop(rest.remove(moment as usize % 3));
        rest.push(start());
        let joined: Vec<_> = rest.iter_mut().map(Process::hear).collect();
        for (member, _) in rest
            .iter_mut()
            .zip(&joined)
            .filter(|(_, j)| j.starts_with("joined"))
        {
            member.tell("build");
        }
        let mut groups = vec![];
        for (member, joined) in rest.iter_mut().zip(&joined) {
            if joined.starts_with("joined") && member.hear() == "built" {
                groups.push(joined.split(' ').nth(2));
            }
        }
        // Built by all three, or, if the dead one was counted in, by nobody.
        assert!(
            groups.iter().all(|group| *group == groups[0]),
            "{moment}: {joined:?}"
        );
        assert!(matches!(groups.len(), 0 | 3), "{moment}: {joined:?}");
    }
}

#[test]
fn strangers_do_not_hold_up_a_group() {
    let directory = directory();
    let mut founder = Process::start(directory.path(), 2);
    let path = wait_for_socket(directory.path());
    let connect = || -> OwnedFd {
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None);
        let socket = socket.expect("a socket");
        let address = SocketAddrUnix::new(&path).expect("an address");
        rustix::net::connect(&socket, &address).expect("connected");
        socket
    };
    let silent: Vec<_> = (0..100).map(|_| connect()).collect();
    let chatty = connect();
    for nonsense in [&b"SPJ1"[..], b"hello", &[0; 60_000]] {
        // It may have been thrown out by now.
        let _ = rustix::net::send(&chatty, nonsense, SendFlags::NOSIGNAL);
    }
    let mut second = Process::start(directory.path(), 2);
    assert!(founder.hear().starts_with("joined 0"));
    assert!(second.hear().starts_with("joined 1"));
    drop(silent);
}

#[test]
fn joining_alone_times_out_and_leaves_nothing() {
    let directory = directory();
    let options = JoinOptions {
        timeout: Some(Duration::from_millis(50)),
        ..options(directory.path(), 2)
    };
    let error = join(&options, b"").expect_err("alone");
    assert!(
        matches!(
            error,
            JoinError::Timeout {
                wanted: 2,
                come: Some(1),
                ..
            }
        ),
        "{error}"
    );
    let left: Vec<_> = std::fs::read_dir(directory.path())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(left, [format!("domain-{DOMAIN}.lock").as_str()]);
}

#[test]
fn a_join_that_is_called_off_ends_and_leaves_nothing() {
    let directory = directory();
    let cancel = Cancel::new().expect("a descriptor");
    let options = JoinOptions {
        cancel: Some(cancel.clone()),
        ..options(directory.path(), 2)
    };
    let record = directory.path().join(format!("domain-{DOMAIN}.record"));
    // While it waits for members, as the founder; then before it has begun.
    for _ in 0..2 {
        let error = thread::scope(|scope| {
            let joining = scope.spawn(|| join(&options, b""));
            while !record.exists() && !cancel.is_cancelled() {
                thread::yield_now();
            }
            cancel.cancel();
            joining.join().expect("it ends").expect_err("called off")
        });
        assert!(
            matches!(error, JoinError::Cancelled { domain: DOMAIN }),
            "{error}"
        );
        assert!(!record.exists(), "nobody is there");
    }
}

#[test]
fn a_directory_that_others_can_reach_is_refused() {
    let directory = directory();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).expect("mode set");
    let error = join(&options(directory.path(), 1), b"").expect_err("open to all");
    assert!(error.to_string().contains("mode 755"), "{error}");
    let file = directory.path().join("file");
    std::fs::write(&file, "").expect("written");
    let error = join(&options(&file, 1), b"").expect_err("no directory");
    assert!(matches!(error, JoinError::Directory { .. }), "{error}");
}

#[test]
fn a_record_that_makes_no_sense_is_never_taken_for_an_empty_domain() {
    let directory = directory();
    let record = directory.path().join(format!("domain-{DOMAIN}.record"));
    std::fs::write(record, "half a rec").expect("written");
    let error = join(&options(directory.path(), 1), b"").expect_err("nonsense");
    assert!(error.to_string().contains("makes no sense"), "{error}");
}

#[test]
fn sizes_and_announcements_out_of_bounds_are_refused() {
    let directory = directory();
    for size in [0, 257] {
        let error = join(&options(directory.path(), size), b"").expect_err("a size");
        assert!(matches!(error, JoinError::GroupSize { .. }), "{error}");
    }
    let error = join(&options(directory.path(), 1), &vec![0; 65_537]).expect_err("too long");
    assert!(
        matches!(error, JoinError::AnnouncementTooLong { .. }),
        "{error}"
    );
}

#[test]
fn members_may_be_threads_of_one_process_with_long_announcements() {
    let directory = directory();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|index| {
                let options = options(directory.path(), 4);
                scope.spawn(move || {
                    let announcement = vec![index as u8; 65_536];
                    let formation = join(&options, &announcement).expect("joined");
                    let mine = formation.me().index();
                    assert_eq!(formation.announcements()[mine], announcement);
                    formation.build(&[1 << 20, 4096, 4096, 0]).expect("built")
                })
            })
            .collect();
        for thread in threads {
            let fabric = thread.join().expect("no panic");
            assert_eq!(fabric.members(), 4);
            assert_eq!(fabric.row(spindle_dds_transport::Rank(0)).len(), 1 << 20);
        }
    });
}

#[test]
fn members_that_disagree_about_a_row_form_no_group() {
    let directory = directory();
    let build = |len: usize| {
        let formation = join(&options(directory.path(), 2), b"").expect("joined");
        formation.build(&[4096, len]).map(drop)
    };
    let errors = thread::scope(|scope| {
        [4096, 8192]
            .map(|len| scope.spawn(move || build(len)))
            .map(|thread| thread.join())
    });
    for error in errors {
        assert!(error.expect("no panic").is_err());
    }
    drop(join(&options(directory.path(), 1), b"").expect("a free domain"));
}

#[test]
fn remains_of_the_dead_are_cleared_away() {
    let directory = directory();
    for name in [
        "domain-7.0123456789abcdef.socket",
        "domain-77.0123456789abcdef.socket",
    ] {
        std::fs::write(directory.path().join(name), "").expect("written");
    }
    drop(
        join(&options(directory.path(), 1), b"")
            .expect("joined")
            .build(&[4096]),
    );
    let mut left: Vec<_> = std::fs::read_dir(directory.path())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["domain-7.lock", "domain-77.0123456789abcdef.socket"]);
}

#[test]
fn sleeping_takes_no_processor_time() {
    let directory = directory();
    let fabric = join(&options(directory.path(), 1), b"")
        .expect("joined")
        .build(&[4096]);
    let fabric = fabric.expect("built");
    let clock = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let before = clock();
    fabric.announce_sleep(Want::Data);
    let rung = fabric.park(Some(Duration::from_millis(300)));
    fabric.announce_awake();
    let used = clock() - before;
    assert!(!rung);
    assert!(used.tv_sec == 0 && used.tv_nsec < 100_000_000, "{used:?}");
}
