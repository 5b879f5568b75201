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

mod conditions;

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
fn contacts_that_answer_and_some_that_do_not() {
    let answers = |contact: &str, path, encrypted| ContactCheck {
        contact: contact.to_owned(),
        path: Some(path),
        encrypted,
        problem: None,
    };
    let silent = |contact: &str, text: &str, cause| ContactCheck {
        contact: contact.to_owned(),
        path: None,
        encrypted: false,
        problem: Some(ContactProblem {
            text: text.to_owned(),
            cause,
        }),
    };
    let call = ProblemCause::Call;
    let contacts = vec![
        answers("here:7400", ContactPath::Shm, false),
        answers("10.0.0.2:7400", ContactPath::Tcp, true),
        answers("10.0.0.6:7400", ContactPath::Tcp, false),
        answers("10.0.0.5:7400", ContactPath::Rdma, false),
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
