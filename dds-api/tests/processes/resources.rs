//! A resource of the system that ends costs no healthy member its group: threads, descriptors,
//! memory. A join that needs it is refused with OUT_OF_RESOURCES and the true reason.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use spindle_dds::DomainParticipant;
use spindle_dds_test_types::flight::State;

use crate::inside::is_root;
use crate::member::Member;

/// Heartbeat timeout in milliseconds: what is prepared may take twice that.
const LIMIT_MS: u32 = 2_000;
/// Longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// No user of the machine: limits for a user count what that user has.
const USER: u32 = 47_110;
/// More descriptors than a member has open.
const DESCRIPTORS: u64 = 100;
/// The length of a small ring, and of one that does not fit into `SPARE_BYTES`.
const SMALL: &str = "spindle.ring.bytes=65536";
const LARGE: &str = "spindle.ring.bytes=134217728";
/// What a member that lacks memory may still get, so that its allocator need not fail.
const SPARE_BYTES: u64 = 48 << 20;

/// Another participant of this process, with a writer. Properties are `name=value`.
pub(crate) fn join(directory: &str, properties: &[&str]) -> spindle_dds::Result<DomainParticipant> {
    let mut builder = DomainParticipant::builder(0).property("spindle.directory", directory);
    for property in properties {
        let (name, value) = property.split_once('=').expect("a property");
        builder = builder.property(name, value);
    }
    let participant = builder.disabled().create()?;
    let topic = participant.topic::<State>("State").create()?;
    let publisher = participant.publisher().create()?;
    publisher.writer(&topic).create()?;
    participant.enable()?;
    Ok(participant)
}

/// Files that are open to use up descriptors.
static FILES: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// Opens files until there are no descriptors left.
pub(crate) fn use_up_descriptors() -> String {
    let mut files = FILES.lock().expect("not poisoned");
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    "used up".to_owned()
}

pub(crate) fn free_descriptors() -> String {
    FILES.lock().expect("not poisoned").clear();
    "freed".to_owned()
}

/// Limits what this process gets of a resource, up to what it may have at most.
pub(crate) fn limit(resource: &str, limit: u64) {
    let resource = match resource {
        "file size" => Resource::Fsize,
        "threads" => Resource::Nproc,
        "descriptors" => Resource::Nofile,
        "address space" => Resource::As,
        "locked memory" => Resource::Memlock,
        other => panic!("what is {other}?"),
    };
    let maximum = getrlimit(resource).maximum;
    let current = Some(limit.min(maximum.unwrap_or(u64::MAX)));
    let current = current.filter(|limit| *limit != u64::MAX);
    setrlimit(resource, Rlimit { current, maximum }).expect("limited");
}

/// Two members, of which the first publishes, and a process that is in no group of theirs.
struct Group {
    _parent: tempfile::TempDir,
    directory: PathBuf,
    members: [Member; 2],
    joiner: Member,
}

impl Group {
    fn new(start: impl Fn(&Path, u32) -> Member) -> Self {
        let parent = tempfile::tempdir().expect("a directory");
        // Another user may make the directories.
        if is_root() {
            chown(parent.path(), Some(USER), None).expect("given away");
        }
        let directory = parent.path().join("domains");
        let mut members = [1, 2].map(|number| start(&directory, number));
        for member in &mut members {
            member.wait_for_members(2, PATIENCE);
        }
        members[0].ask("publish");
        let joiner = start(&parent.path().join("elsewhere"), 3);
        Self {
            _parent: parent,
            directory,
            members,
            joiner,
        }
    }

    fn of_this_user() -> Self {
        Self::new(|directory, number| Member::start(directory, number, LIMIT_MS))
    }

    fn join(&mut self, properties: &str) -> String {
        let line = format!("join {} {properties}", self.directory.display());
        self.joiner.ask(&line)
    }

    /// The joiner is refused, with words of the true reason.
    fn check_refused(&mut self, properties: &str, words: &[&str]) {
        let refused = self.join(properties);
        let is_lack = refused.starts_with("out of resources: ");
        assert!(is_lack, "{refused}");
        for word in words {
            assert!(refused.contains(word), "no {word} in: {refused}");
        }
        self.check_goes_on();
    }

    /// The joiner is let in, and leaves again.
    fn check_joins(&mut self, properties: &str) {
        assert_eq!(self.join(properties), "joined");
        for member in &mut self.members {
            member.wait_for_members(3, PATIENCE);
        }
        assert_eq!(self.joiner.ask("quit"), "quit");
        for member in &mut self.members {
            member.wait_for_members(2, PATIENCE);
        }
        self.check_goes_on();
    }

    /// Samples still arrive, and no member is out.
    fn check_goes_on(&mut self) {
        let [first, second] = &mut self.members;
        assert_eq!((first.failure(), second.failure()), Default::default());
        let received = second.count("received 1");
        second.wait_for_samples(1, received + 100);
        assert_eq!(self.joiner.failure(), "");
    }
}

fn process(member: &Member) -> String {
    format!("process {}", member.pid().as_raw_nonzero())
}

#[test]
fn a_member_that_gets_no_thread_lets_others_in_and_a_newcomer_that_gets_none_is_refused() {
    if !is_root() {
        return;
    }
    let mut group = Group::new(|directory, number| {
        // Root has no limit of threads.
        Member::start_as(USER, directory, number, LIMIT_MS)
    });
    for member in &mut group.members {
        member.limit("threads", 1);
    }
    group.check_joins(SMALL);
    group.joiner.limit("threads", 1);
    group.check_refused(SMALL, &["thread", "Resource temporarily unavailable"]);
    group.joiner.unlimit("threads");
    group.check_joins(SMALL);
}

#[test]
fn a_newcomer_that_runs_out_of_descriptors_at_any_step_is_refused() {
    let mut group = Group::of_this_user();
    // At first nothing can be opened, in gaps between those it has neither.
    let opened = group.joiner.descriptors() as u64 - 2;
    let mut refused = 0;
    for spare in 0.. {
        group.joiner.limit("descriptors", opened + spare);
        let answer = group.join(SMALL);
        if answer == "joined" {
            break;
        }
        let is_lack = answer.starts_with("out of resources: ");
        assert!(is_lack, "{spare} to spare: {answer}");
        assert!(
            answer.contains("Too many open files"),
            "{spare} to spare: {answer}"
        );
        refused += 1;
    }
    assert!(refused > 10, "{refused} steps");
    assert_eq!(group.joiner.ask("quit"), "quit");
    group.joiner.unlimit("descriptors");
    group.check_joins(SMALL);
}

#[test]
fn a_member_that_has_no_descriptors_left_refuses_a_newcomer_and_stays() {
    let mut group = Group::of_this_user();
    // The one that leads the view, and the other one.
    for at in [0, 1] {
        let member = &mut group.members[at];
        member.limit("descriptors", DESCRIPTORS);
        assert_eq!(member.ask("use_up_descriptors"), "used up");
        let name = process(member);
        group.check_refused(SMALL, &[&name, "Too many open files"]);
        assert_eq!(group.members[at].ask("free_descriptors"), "freed");
        group.check_joins(SMALL);
    }
}

/// The members are asked by a newcomer again and again, until it gives up.
#[test]
fn a_newcomer_is_told_that_the_only_member_has_no_descriptors_left() {
    let mut group = Group::of_this_user();
    let [first, second] = &mut group.members;
    assert_eq!(second.ask("leave"), "left");
    first.wait_for_members(1, PATIENCE);
    first.limit("descriptors", DESCRIPTORS);
    assert_eq!(first.ask("use_up_descriptors"), "used up");
    let (name, hasty) = (
        process(first),
        format!("{SMALL} spindle.join.timeout_ms=1000"),
    );
    let refused = group.join(&hasty);
    for word in [&*name, "Too many open files"] {
        assert!(refused.contains(word), "no {word} in: {refused}");
    }
    let [first, _] = &mut group.members;
    assert_eq!(first.ask("free_descriptors"), "freed");
    assert_eq!(group.join(SMALL), "joined");
    assert_eq!(group.members[0].failure(), "");
}

#[test]
fn a_member_that_has_no_memory_for_a_row_refuses_its_newcomer_and_stays() {
    let mut group = Group::of_this_user();
    for at in [0, 1] {
        let member = &mut group.members[at];
        let mapped = member.kb("VmSize") << 10;
        member.limit("address space", mapped + SPARE_BYTES);
        let name = process(member);
        group.check_refused(LARGE, &[&name, "Cannot allocate memory"]);
        // A smaller one fits.
        group.check_joins(SMALL);
        group.members[at].unlimit("address space");
        group.check_joins(LARGE);
    }
    let mapped = group.joiner.kb("VmSize") << 10;
    group.joiner.limit("address space", mapped + SPARE_BYTES);
    group.check_refused(LARGE, &["Cannot allocate memory"]);
    group.joiner.unlimit("address space");
    group.check_joins(LARGE);
}

#[test]
fn a_limit_of_locked_memory_hinders_no_join() {
    if !is_root() {
        return;
    }
    // Root has no limit of locked memory.
    let mut group =
        Group::new(|directory, number| Member::start_as(USER, directory, number, LIMIT_MS));
    for member in group.members.iter_mut().chain([&mut group.joiner]) {
        member.limit("locked memory", 0);
    }
    group.check_joins(SMALL);
    let prefaulted = format!("{LARGE} spindle.prefault=true");
    assert_eq!(group.join(&prefaulted), "joined");
    group.check_goes_on();
}

/// A control group with a limit of memory, which is removed when this is dropped.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// `None`, with a message, where control groups cannot be made.
    fn new(bytes: u64) -> Option<Self> {
        let name = format!("spindle-test-{}", std::process::id());
        // The second version has all controllers in one tree.
        let roots = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"];
        for (root, limit) in roots
            .into_iter()
            .zip(["memory.limit_in_bytes", "memory.max"])
        {
            let path = Path::new(root).join(&name);
            if fs::create_dir(&path).is_ok() {
                let made = Self(path);
                if fs::write(made.0.join(limit), bytes.to_string()).is_ok() {
                    return Some(made);
                }
            }
        }
        eprintln!("skipped: this machine lets no control group for memory be made");
        None
    }

    fn admit(&self, member: &Member) {
        let pid = member.pid().as_raw_nonzero().to_string();
        fs::write(self.0.join("cgroup.procs"), pid).expect("moved");
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // It may still have a process that ends.
        while fs::remove_dir(&self.0).is_err() && self.0.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn a_newcomer_that_its_control_group_kills_while_it_joins_costs_the_members_nothing() {
    if !is_root() {
        return;
    }
    let mut group = Group::of_this_user();
    let resident = group.joiner.memory_kb() << 10;
    let Some(limited) = MemoryGroup::new(resident + SPARE_BYTES) else {
        return;
    };
    limited.admit(&group.joiner);
    // Rows are touched while they are made.
    let directory = group.directory.display();
    let line = format!("join {directory} {LARGE} spindle.prefault=true");
    let answer = group.joiner.ask_in_danger(&line);
    assert_eq!(answer, None, "the kernel kills it");
    let [first, second] = &mut group.members;
    for member in [&mut *first, &mut *second] {
        member.wait_for_members(2, PATIENCE);
        assert_eq!(member.failure(), "");
    }
    let received = second.count("received 1");
    second.wait_for_samples(1, received + 100);
    let mut other = Member::start(&group.directory, 4, LIMIT_MS);
    other.wait_for_members(3, PATIENCE);
    drop(group);
    drop(limited);
}
