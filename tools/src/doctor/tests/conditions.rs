//! Conditions that stop a participant, and what is said of them.

use super::*;

#[test]
fn limits_are_compared_with_what_the_domain_needs() {
    // Each limit is half of what is needed for this size, and enough for a small one.
    let large = scale(50, 200);
    type Spoil = fn(&mut Machine, Scale);
    let cases: [(&str, Spoil); 6] = [
        ("open-files", |it, size| {
            it.limits.open_files = Limit(Some(size.open_files() / 2))
        }),
        ("user-threads", |it, size| {
            let most = size.missing() * size.threads() / 2;
            it.limits.user_threads = Limit(Some(it.threads.of_user + most));
        }),
        ("group-threads", |it, size| {
            it.threads.group = Some(GroupLimit {
                group: "/sys/fs/cgroup/x".into(),
                limit: 100 + size.missing() * size.threads() / 2,
                used: 100,
            });
        }),
        ("machine-threads", |it, size| {
            it.threads.of_machine_max = Some(900 + size.missing() * size.threads() / 2);
        }),
        ("mappings", |it, size| {
            it.mappings_max = Some(size.mappings() / 2)
        }),
        ("memory", |it, size| {
            it.memory_group = Some(GroupLimit {
                group: "/sys/fs/cgroup/x".into(),
                limit: size.missing() * size.row_bytes(8 << 20) / 2,
                used: 0,
            });
        }),
    ];
    for (check, spoil) in cases {
        let of = |scale: Scale| {
            finding(check, |it| {
                spoil(&mut it.machine, large);
                it.scale = scale;
            })
        };
        let level = match check {
            // Rings that do not get full need less.
            "memory" => Level::Warning,
            _ => Level::Error,
        };
        let bad = of(large);
        assert_eq!(bad.level, level, "{bad:?}");
        assert!(bad.what.contains("50 peers and 200 topics"), "{bad:?}");
        assert!(
            bad.advice.is_some() && bad.figures.contains_key("needed"),
            "{bad:?}"
        );
        assert_eq!(of(scale(1, 1)).level, Level::Ok, "{check}");
        // An assumed size is no error.
        let assumed = of(Scale {
            from: ScaleFrom::Assumption,
            ..large
        });
        assert_eq!(assumed.level, Level::Warning, "{assumed:?}");
    }
    // A user that may exceed its limit.
    let exempt = finding("user-threads", |it| {
        it.machine.limits.user_threads = Limit(Some(1));
        it.machine.limits.may_start_any = true;
        it.scale = large;
    });
    assert_eq!(exempt.level, Level::Ok);
}

#[test]
fn pinned_memory_matters_where_rdma_is_used() {
    let of = |limit: u64| {
        let (_root, mut machine) = made_up();
        machine.limits.memlock_bytes = Limit(Some(limit));
        finding("pinned-memory", |it| {
            it.machine = machine;
            it.scale = scale(5, 20);
        })
    };
    let needed = scale(5, 20).row_bytes(8 << 20);
    assert_eq!(of(needed).level, Level::Ok);
    let bad = of(needed - 1);
    assert_eq!(bad.level, Level::Error, "{bad:?}");
}

#[test]
fn a_size_is_that_of_the_running_domain_unless_it_is_given() {
    let running = Scale::new(None, None, (4, 7));
    assert_eq!((running.peers, running.topics), (4, 7));
    assert_eq!((running.from, running.missing()), (ScaleFrom::Domain, 1));
    let given = Scale::new(Some(11), None, (4, 7));
    assert_eq!((given.peers, given.topics, given.missing()), (11, 7, 8));
    assert_eq!(given.from, ScaleFrom::Options);
    let assumed = Scale::new(None, None, (0, 0));
    assert!(!assumed.is_known() && assumed.missing() == assumed.peers + 1);
}

#[test]
fn a_directory_without_room_is_told_before_a_newcomer_is_refused() {
    let of = |free_bytes: u64, free_files: Option<u64>| {
        finding("directory-space", |it| {
            it.scale = scale(30, 5);
            it.place.room = Some(Room {
                free_bytes,
                bytes: 1 << 20,
                free_files,
            });
        })
    };
    let needed = scale(30, 5).record_bytes();
    assert_eq!(of(needed - 1, None).level, Level::Error);
    assert_eq!(of(needed, None).level, Level::Warning);
    assert_eq!(of(4 * needed, None).level, Level::Ok);
    assert_eq!(of(1 << 30, Some(31)).level, Level::Error, "no files");
}

#[test]
fn what_becomes_of_the_directory_is_told() {
    let of = |hazard: Hazard| finding("directory-place", |it| it.place.hazards.push(hazard));
    let cleaner = Hazard::Cleaner {
        by: "/usr/lib/tmpfiles.d/tmp.conf".into(),
        age: "10d".to_owned(),
    };
    let hazards = [
        (Hazard::Logout, "last time"),
        (Hazard::RemoveIpc, "systemd-logind"),
        (cleaner, "10d"),
        (Hazard::PrivateTmp, "PrivateTmp"),
        (Hazard::Container("overlay at /".to_owned()), "overlay"),
    ];
    for (hazard, word) in hazards {
        let found = of(hazard);
        assert_eq!(found.level, Level::Warning);
        assert!(found.what.contains(word), "{found:?}");
    }
    assert_eq!(finding("directory-place", |_| {}).level, Level::Ok);
    let refused = |refused| finding("directory", |it| it.place.refused = Some(refused));
    assert!(refused(Refused::ReadOnly).what.contains("read-only"));
    assert_eq!(refused(Refused::NoPermission).level, Level::Error);
}

fn process(pid: u32) -> MemberProcess {
    MemberProcess {
        pid,
        name: "feed".to_owned(),
        other_namespaces: Vec::new(),
        open_files: Some(100),
        open_files_max: Limit(Some(1024)),
        mappings: Some(300),
        threads: Some(7),
    }
}

#[test]
fn a_member_with_little_left_is_named() {
    let of = |alter: fn(&mut MemberProcess)| {
        finding("member-limits", |it| {
            it.scale = Scale::new(None, None, (2, 10));
            it.members.processes = vec![process(7), process(8)];
            alter(&mut it.members.processes[1]);
        })
    };
    assert_eq!(of(|_| {}).level, Level::Ok);
    let files = of(|it| it.open_files_max = Limit(Some(101)));
    assert_eq!(files.level, Level::Error);
    assert!(
        files
            .what
            .contains("process 8 (feed) has 100 of 101 open files"),
        "{files:?}"
    );
    let mappings = of(|it| it.mappings = Some(65_530));
    assert!(
        mappings.what.contains("65530 of 65530 mappings"),
        "{mappings:?}"
    );
    assert_eq!(findings("member-limits", |_| {}), [], "no member runs");
}

#[test]
fn members_in_other_namespaces_are_told_with_what_they_lack() {
    let of = |kernel: &str, kinds: Vec<&'static str>| {
        finding("namespaces", |it| {
            it.machine.kernel = kernel.to_owned();
            it.members.processes = vec![process(7), process(8)];
            it.members.processes[1].other_namespaces = kinds;
        })
    };
    assert_eq!(of("6.12.1", vec![]).level, Level::Ok);
    assert_eq!(of("6.12.1", vec!["pid"]).level, Level::Ok);
    let old = of("6.1.0", vec!["pid"]);
    assert_eq!(old.level, Level::Warning);
    assert!(old.what.contains("older than 6.5"), "{old:?}");
    for kind in ["net", "mnt", "user"] {
        assert_eq!(of("6.12.1", vec![kind]).level, Level::Warning, "{kind}");
    }
    let hidden = finding("namespaces", |it| {
        it.machine.kernel = "6.1.0".to_owned();
        it.members.foreign = 3;
    });
    assert!(hidden.what.contains("3 processes"), "{hidden:?}");
}

#[test]
fn a_second_directory_of_the_domain_is_told() {
    let of = |path: &str, is_removed: bool| {
        let mut found = findings("second-directory", |it| {
            it.members.elsewhere = vec![OtherDirectory {
                path: path.into(),
                is_removed,
                pids: vec![7, 9],
            }];
        });
        let found = found.remove(0);
        assert_eq!(found.level, Level::Warning);
        found.what
    };
    assert!(of("/run/user/0/dds", false).contains("processes 7, 9 have this domain in /run/user"));
    assert!(of("/dev/shm/spindle-dds-0", true).contains("was removed"));
    // The directory at the same path in another mount namespace.
    assert!(of("/dev/shm/spindle-dds-0", false).contains("have this domain"));
}
