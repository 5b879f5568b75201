//! Machines that are made up, and what is said of them.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use spindle_dds_transport::hybrid::CallFailureCause;

use super::contacts::{ContactCheck, ContactPath, ContactProblem, ProblemCause};
use super::domain::Domain;
use super::findings::{Finding, Found, Level};
use super::machine::{HugePages, Limit, Limits, Machine, Threads};
use super::members::{MemberProcess, Members, OtherDirectory};
use super::mounts::GroupLimit;
use super::needs::{Scale, ScaleFrom};
use super::options::Requirement;
use super::place::{Hazard, Place, Refused, Room};
use super::rdma::Rdma;
use super::report::{Report, fabrics};

const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// A kernel's files, as a machine with two devices has them.
const FILES: &[(&str, &str)] = &[
    ("proc/sys/kernel/osrelease", "6.1.0-56-amd64\n"),
    ("proc/loadavg", "1.50 0.80 0.40 2/150 4711\n"),
    ("proc/sys/kernel/threads-max", "63000\n"),
    ("proc/sys/kernel/pid_max", "32768\n"),
    ("proc/sys/vm/max_map_count", "65530\n"),
    (
        "proc/self/status",
        "Name:\tspindle\nCpus_allowed_list:\t0-3,8\nCapEff:\t0000000000000000\n",
    ),
    (
        "proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n\
         Max file size             unlimited            unlimited            bytes     \n\
         Max processes             15000                15000                processes \n\
         Max open files            1024                 524288               files     \n\
         Max locked memory         8388608              8388608              bytes     \n",
    ),
    (
        "proc/meminfo",
        "MemTotal: 4000000 kB\nMemAvailable: 2048000 kB\nHugePages_Total: 4\nHugePages_Free: 3\n",
    ),
    ("proc/self/cgroup", "0::/a.slice/b\n"),
    (
        "proc/self/mountinfo",
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
    ),
    ("sys/fs/cgroup/a.slice/b/memory.max", "1073741824\n"),
    ("sys/fs/cgroup/a.slice/b/memory.current", "104857600\n"),
    ("sys/fs/cgroup/a.slice/pids.max", "2000\n"),
    ("sys/fs/cgroup/a.slice/pids.current", "120\n"),
    (
        "sys/kernel/mm/transparent_hugepage/shmem_enabled",
        "always within_size advise [never] deny force\n",
    ),
    (
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "tsc\n",
    ),
    ("usr/lib/x86_64-linux-gnu/libibverbs.so.1", ""),
    ("etc/libibverbs.d/mlx5.driver", "driver mlx5\n"),
    ("dev/infiniband/uverbs0", ""),
    ("dev/infiniband/rdma_cm", ""),
    ("sys/class/net/eth1/mtu", "9000\n"),
];

/// A port: its directory, state and link layer, and the tables' GIDs.
fn port(root: &Path, device: &str, state: &str, layer: &str, gids: &[(&str, &str)]) {
    let port = format!("sys/class/infiniband/{device}/ports/1");
    put(root, &format!("{port}/state"), state);
    put(root, &format!("{port}/link_layer"), layer);
    put(root, &format!("{port}/rate"), "100 Gb/sec (4X EDR)\n");
    for (index, (gid, kind)) in gids.iter().enumerate() {
        put(root, &format!("{port}/gids/{index}"), gid);
        put(root, &format!("{port}/gid_attrs/types/{index}"), kind);
        put(root, &format!("{port}/gid_attrs/ndevs/{index}"), "eth1\n");
    }
}

fn put(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    std::fs::write(path, text).expect("written");
}

/// With RDMA built in, and what the test's own machine would give left out.
fn machine(root: &Path) -> Machine {
    let mut machine = Machine::read(root);
    machine.rdma.built = true;
    machine.shm_free_bytes = Some(1 << 30);
    machine.shm_bytes = Some(1 << 30);
    machine
}

fn made_up() -> (tempfile::TempDir, Machine) {
    let root = tempfile::tempdir().expect("a directory");
    for (name, text) in FILES {
        put(root.path(), name, text);
    }
    let down = [("fe80:0000:0000:0000:0000:00ff:fe77:0001", "IB/RoCE v1")];
    port(root.path(), "mlx5_0", "1: DOWN\n", "Ethernet\n", &down);
    let gids = [
        ("fe80:0000:0000:0000:0000:00ff:fe77:0002", "IB/RoCE v1\n"),
        ("fe80:0000:0000:0000:0000:00ff:fe77:0002", "RoCE v2\n"),
        ("0000:0000:0000:0000:0000:ffff:0a4d:0001", "RoCE v2\n"),
        ("0000:0000:0000:0000:0000:ffff:0a4d:0002", "RoCE v2\n"),
        ("0000:0000:0000:0000:0000:0000:0000:0000", ""),
    ];
    port(root.path(), "mlx5_1", "4: ACTIVE\n", "Ethernet\n", &gids);
    let machine = machine(root.path());
    (root, machine)
}

/// A machine on which nothing is amiss, and that has no RDMA.
fn plain() -> Machine {
    Machine {
        kernel: "6.12.1".to_owned(),
        cores: Some(8),
        load: Some(0.5),
        memory_available_bytes: Some(16 << 30),
        memory_group: None,
        huge_pages: HugePages {
            shared_memory: Some("within_size".to_owned()),
            ..HugePages::default()
        },
        shm_free_bytes: Some(8 << 30),
        shm_bytes: Some(8 << 30),
        limits: Limits {
            memlock_bytes: Limit(Some(8 << 20)),
            open_files: Limit(Some(1 << 20)),
            open_files_hard: Limit(Some(1 << 20)),
            file_size_bytes: Limit(None),
            user_threads: Limit(Some(60_000)),
            may_pin_any: false,
            may_start_any: false,
        },
        threads: Threads {
            of_user: 200,
            of_machine: Some(900),
            of_machine_max: Some(32_768),
            group: None,
        },
        mappings_max: Some(65_530),
        clock: Some("tsc".to_owned()),
        rdma: Rdma {
            built: true,
            library: true,
            providers: vec!["rxe".to_owned()],
            device_files: 1,
            devices: Vec::new(),
        },
    }
}

fn place() -> Place {
    Place {
        directory: "/dev/shm/spindle-dds-0".into(),
        mount: None,
        room: Some(Room {
            free_bytes: 1 << 30,
            bytes: 8 << 30,
            free_files: Some(100_000),
        }),
        refused: None,
        hazards: Vec::new(),
    }
}

/// A domain of this size is planned.
fn scale(peers: u64, topics: u64) -> Scale {
    Scale::new(Some(peers), Some(topics), (0, 0))
}

/// All that is found, of which each test alters something.
struct Facts {
    machine: Machine,
    domain: Domain,
    place: Place,
    members: Members,
    scale: Scale,
    contacts: Vec<ContactCheck>,
}

fn facts() -> Facts {
    Facts {
        machine: plain(),
        domain: Domain::NoMembers,
        place: place(),
        members: Members::default(),
        scale: Scale::new(None, None, (0, 0)),
        contacts: Vec::new(),
    }
}

impl Facts {
    fn report(self, require: &[Requirement]) -> Report {
        let rdma = self.machine.rdma.choice(&self.machine.limits, ANY);
        let (trial, contacts) = (Ok(()), Ok(self.contacts));
        let found = Found {
            machine: &self.machine,
            rdma: &rdma,
            trial: &trial,
            domain: &self.domain,
            place: &self.place,
            members: &self.members,
            scale: self.scale,
            contacts: &contacts,
            require,
        };
        let findings = found.findings();
        Report {
            fit: findings.iter().all(|finding| finding.level != Level::Error),
            fabrics: fabrics(&rdma),
            findings,
            machine: self.machine,
            domain: self.domain,
            place: self.place,
            members: self.members,
            scale: self.scale,
            contacts: contacts.expect("as given"),
        }
    }
}

/// What a check says of altered facts.
fn findings(check: &str, alter: impl FnOnce(&mut Facts)) -> Vec<Finding> {
    let mut facts = facts();
    alter(&mut facts);
    let findings = facts.report(&[]).findings.into_iter();
    findings.filter(|finding| finding.check == check).collect()
}

/// The same of a check that says one thing.
fn finding(check: &str, alter: impl FnOnce(&mut Facts)) -> Finding {
    let mut findings = findings(check, alter);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    findings.remove(0)
}

fn report(machine: Machine, contacts: Vec<ContactCheck>, require: &[Requirement]) -> Report {
    let facts = Facts {
        machine,
        contacts,
        ..facts()
    };
    facts.report(require)
}

#[test]
fn a_machine_without_rdma() {
    insta::assert_snapshot!(report(plain(), Vec::new(), &[]));
}

#[test]
fn rdma_that_is_required_and_not_there() {
    let report = report(plain(), Vec::new(), &[Requirement::Rdma]);
    assert!(!report.fit);
    insta::assert_snapshot!(report);
}

#[test]
fn a_machine_with_two_devices_and_little_memory_to_pin() {
    let (_root, machine) = made_up();
    insta::assert_snapshot!(report(machine, Vec::new(), &[]));
}

#[test]
fn a_machine_with_all_it_takes() {
    let (_root, mut machine) = made_up();
    machine.limits.may_pin_any = true;
    let report = report(machine, Vec::new(), &[Requirement::Rdma]);
    assert!(report.fit);
    insta::assert_snapshot!(report);
}

#[test]
fn a_machine_as_bad_as_can_be() {
    let machine = Machine {
        kernel: "4.19.0".to_owned(),
        cores: Some(1),
        load: Some(9.0),
        memory_available_bytes: Some(100 << 20),
        memory_group: Some(GroupLimit {
            group: "/sys/fs/cgroup/small".into(),
            limit: 64 << 20,
            used: 60 << 20,
        }),
        shm_free_bytes: Some(0),
        mappings_max: Some(300),
        threads: Threads {
            of_user: 200,
            of_machine: Some(900),
            of_machine_max: Some(950),
            group: None,
        },
        clock: Some("hpet".to_owned()),
        limits: Limits {
            open_files: Limit(Some(64)),
            user_threads: Limit(Some(210)),
            ..plain().limits
        },
        ..plain()
    };
    let report = report(machine, Vec::new(), &[]);
    assert!(!report.fit);
    insta::assert_snapshot!(report);
}

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

#[test]
fn contacts_that_answer_and_some_that_do_not() {
    let answers = |contact: &str, path| ContactCheck {
        contact: contact.to_owned(),
        path: Some(path),
        problem: None,
    };
    let silent = |contact: &str, text: &str, cause| ContactCheck {
        contact: contact.to_owned(),
        path: None,
        problem: Some(ContactProblem {
            text: text.to_owned(),
            cause,
        }),
    };
    let call = ProblemCause::Call;
    let contacts = vec![
        answers("here:7400", ContactPath::Shm),
        answers("10.0.0.2:7400", ContactPath::Tcp),
        answers("10.0.0.5:7400", ContactPath::Rdma),
        silent(
            "10.0.0.3:7400",
            "refuses: the caller has another secret",
            call(CallFailureCause::Secret),
        ),
        silent(
            "10.0.0.4:7400",
            "it did not answer in time",
            call(CallFailureCause::Other),
        ),
        silent(
            "nowhere:7400",
            "cannot be resolved: unknown",
            ProblemCause::Unresolved,
        ),
    ];
    let lenient = report(plain(), contacts.clone(), &[]);
    assert!(lenient.fit);
    let strict = report(plain(), contacts, &[Requirement::Contacts]);
    assert!(!strict.fit);
    let said = strict.to_string();
    let lines = said.lines().skip_while(|line| !line.contains("contact"));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn the_gid_is_that_of_the_address_that_is_listened_at() {
    let (_root, mut machine) = made_up();
    machine.limits.memlock_bytes = Limit(None);
    let choose = |listen: &str| {
        let listen = listen.parse().expect("an address");
        let choice = machine.rdma.choice(&machine.limits, listen);
        choice.map(|choice| (choice.device, choice.gid_index))
    };
    let chosen = |index| Ok(("mlx5_1".to_owned(), index));
    assert_eq!(choose("10.77.0.2"), chosen(3));
    assert_eq!(choose("10.77.0.1"), chosen(2));
    assert_eq!(choose("0.0.0.0"), chosen(2));
    assert_eq!(choose("fd00::1"), chosen(2));
}

#[test]
fn each_thing_that_rdma_lacks_is_named() {
    let check = |spoil: fn(&mut Machine), wanted: &str| {
        let (_root, mut machine) = made_up();
        machine.limits.may_pin_any = true;
        spoil(&mut machine);
        let obstacle = machine.rdma.choice(&machine.limits, ANY);
        let obstacle = obstacle.expect_err("no choice");
        assert!(obstacle.what.contains(wanted), "{obstacle:?}");
    };
    check(|it| it.rdma.built = false, "built without");
    check(|it| it.rdma.devices.clear(), "no RDMA device");
    check(|it| it.rdma.library = false, "libibverbs");
    check(|it| it.rdma.providers.clear(), "drivers");
    check(|it| it.rdma.device_files = 0, "uverbs");
    check(|it| drop(it.rdma.devices.pop()), "no port of mlx5_0");
    check(|it| it.limits.may_pin_any = false, "8388608 bytes");
    check(|it| it.rdma.devices[1].ports[0].gids.clear(), "no GID");
}

#[test]
fn of_an_empty_tree_nothing_is_known_and_all_is_said() {
    let root = tempfile::tempdir().expect("a directory");
    let machine = machine(root.path());
    assert_eq!(machine.kernel_version(), None);
    assert_eq!(machine.cores, None);
    let said = report(machine, Vec::new(), &[]).to_string();
    assert!(said.contains("unknown"), "{said}");
}
