//! The record of a domain: who forms or has its group on this host.
//!
//! One file a domain in a directory of the user's own, read and replaced only
//! under a lock. All decisions that must happen once (who founds, when a group
//! exists) are a look and a change under that lock.
//!
//! ```text
//!            founder writes it          all are there        all have mapped
//!   (none) ------------------> Gathering ------------> Full ----------------> Formed
//!      ^                           |                     |                       |
//!      +---------------------------+---------------------+-----------------------+
//!        the founder is dead, or somebody gives up       all have left or are dead
//! ```

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::error::JoinError;

/// Longest record that is read: far above that of the largest group.
const RECORD_LEN_MAX: u64 = 64 * 1024;

const HEADER: &str = "spindle-dds-domain 1";

/// How far a group has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The founder waits for members.
    Gathering,
    /// All are there, and exchange their rows.
    Full,
    /// All have mapped all rows.
    Formed,
}

/// A member in the record. The start time tells a process from a later one
/// with the same id; the nonce tells two members in one process apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) nonce: u64,
    pub(super) pid: u32,
    pub(super) start: u64,
}

impl Entry {
    /// A member of this process.
    pub(super) fn here(nonce: u64) -> Result<Self, JoinError> {
        Self::of(nonce, std::process::id())
            .ok_or_else(|| io::Error::other("no start time in /proc/self/stat"))
            .map_err(JoinError::system("looking at the own process"))
    }

    /// A member of a living process.
    pub(super) fn of(nonce: u64, pid: u32) -> Option<Self> {
        let start = start_time(pid)?;
        Some(Self { nonce, pid, start })
    }

    fn is_alive(&self) -> bool {
        start_time(self.pid) == Some(self.start)
    }
}

/// When a process started, in clock ticks since boot; `None` once it has ended,
/// even if nobody has waited for it yet.
fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, so count from the last bracket: state is the
    // 3rd field of proc_pid_stat(5), the start time the 22nd.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// What is written down about a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) stage: Stage,
    pub(super) size: usize,
    /// Nonce of the group.
    pub(super) group: u64,
    /// The pid namespace in which the members' ids mean something.
    pub(super) namespace: u64,
    /// The founder first.
    pub(super) members: Vec<Entry>,
}

impl Record {
    pub(super) fn founder(&self) -> &Entry {
        &self.members[0]
    }

    /// Whether it still means anything: a formed group while a member lives,
    /// one that is being formed while its founder does.
    fn is_alive(&self) -> bool {
        match self.stage {
            Stage::Formed => self.members.iter().any(Entry::is_alive),
            Stage::Gathering | Stage::Full => self.founder().is_alive(),
        }
    }

    /// Process ids of the living members.
    pub(super) fn living(&self) -> Vec<u32> {
        let living = self.members.iter().filter(|member| member.is_alive());
        living.map(|member| member.pid).collect()
    }

    fn write(&self) -> String {
        let stage = match self.stage {
            Stage::Gathering => "gathering",
            Stage::Full => "full",
            Stage::Formed => "formed",
        };
        let mut text = format!(
            "{HEADER}\n{stage} {} {:016x} {}\n",
            self.size, self.group, self.namespace
        );
        for Entry { nonce, pid, start } in &self.members {
            text += &format!("{nonce:016x} {pid} {start}\n");
        }
        text
    }

    fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next() != Some(HEADER) {
            return None;
        }
        let mut fields = lines.next()?.split(' ');
        let stage = match fields.next()? {
            "gathering" => Stage::Gathering,
            "full" => Stage::Full,
            "formed" => Stage::Formed,
            _ => return None,
        };
        let size = fields.next()?.parse().ok()?;
        let group = u64::from_str_radix(fields.next()?, 16).ok()?;
        let namespace = fields.next()?.parse().ok()?;
        let members = lines.map(|line| {
            let mut fields = line.split(' ');
            let nonce = u64::from_str_radix(fields.next()?, 16).ok()?;
            let pid = fields.next()?.parse().ok()?;
            let start = fields.next()?.parse().ok()?;
            Some(Entry { nonce, pid, start })
        });
        let members: Vec<_> = members.collect::<Option<_>>()?;
        (!members.is_empty()).then_some(Self {
            stage,
            size,
            group,
            namespace,
            members,
        })
    }
}

/// The pid namespace of this process.
pub(super) fn namespace() -> Result<u64, JoinError> {
    let stat = rustix::fs::stat("/proc/self/ns/pid");
    Ok(stat
        .map_err(JoinError::system("looking at /proc/self/ns/pid"))?
        .st_ino)
}

/// One domain's corner of the directory.
#[derive(Debug)]
pub(super) struct Domain {
    pub(super) id: u32,
    path: PathBuf,
    directory: OwnedFd,
}

impl Domain {
    /// Opens the directory, made if need be; it must be this user's alone.
    pub(super) fn open(id: u32, directory: Option<&Path>) -> Result<Self, JoinError> {
        let path = directory.map_or_else(default_directory, Path::to_path_buf);
        let refuse = |problem: String| JoinError::Directory {
            path: path.clone(),
            problem,
        };
        match rustix::fs::mkdir(&path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(refuse(format!("cannot be made: {errno}"))),
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let fd = rustix::fs::open(&path, flags, Mode::empty())
            .map_err(|errno| refuse(format!("cannot be opened as a directory: {errno}")))?;
        let stat = rustix::fs::fstat(&fd).map_err(JoinError::system("looking at a directory"))?;
        let user = rustix::process::geteuid().as_raw();
        if stat.st_uid != user {
            let owner = stat.st_uid;
            return Err(refuse(format!(
                "belongs to user {owner}, not to user {user}"
            )));
        }
        let mode = stat.st_mode & 0o777;
        if mode & 0o077 != 0 {
            return Err(refuse(format!(
                "has mode {mode:03o}; others must have no access: chmod 700"
            )));
        }
        Ok(Self {
            id,
            path,
            directory: fd,
        })
    }

    /// Locks the record; waits for whoever has it, which is never long.
    pub(super) fn lock(self: &Arc<Self>) -> Result<Locked, JoinError> {
        let lock = self.open_file("lock", OFlags::RDWR | OFlags::CREATE)?;
        rustix::io::retry_on_intr(|| rustix::fs::flock(&lock, FlockOperation::LockExclusive))
            .map_err(|errno| self.refuse(format!("cannot be locked: {errno}")))?;
        Ok(Locked {
            domain: Arc::clone(self),
            _lock: lock,
        })
    }

    fn refuse(&self, problem: String) -> JoinError {
        JoinError::Directory {
            path: self.path.clone(),
            problem,
        }
    }

    fn name(&self, what: &str) -> String {
        format!("domain-{}.{what}", self.id)
    }

    fn open_file(&self, what: &str, flags: OFlags) -> Result<OwnedFd, JoinError> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::openat(&self.directory, self.name(what), flags, mode)
            .map_err(|errno| self.refuse(format!("holds no usable {}: {errno}", self.name(what))))
    }

    fn remove(&self, what: &str) {
        let removed = rustix::fs::unlinkat(&self.directory, self.name(what), AtFlags::empty());
        debug_assert!(matches!(removed, Ok(()) | Err(Errno::NOENT)), "{removed:?}");
    }

    /// Where a group's founder listens: short enough for a socket address
    /// however long the directory's path is.
    pub(super) fn socket_path(&self, group: u64) -> PathBuf {
        let directory = self.directory.as_fd().as_raw_fd();
        format!(
            "/proc/self/fd/{directory}/{}",
            self.name(&socket_name(group))
        )
        .into()
    }

    pub(super) fn remove_socket(&self, group: u64) {
        self.remove(&socket_name(group));
    }
}

fn socket_name(group: u64) -> String {
    format!("{group:016x}.socket")
}

/// `$SPINDLE_DDS_DIR`, or the user's runtime directory, or shared memory.
fn default_directory() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = variable("SPINDLE_DDS_DIR") {
        return path.into();
    }
    if let Some(path) = variable("XDG_RUNTIME_DIR") {
        return Path::new(&path).join("spindle-dds");
    }
    format!(
        "/dev/shm/spindle-dds-{}",
        rustix::process::geteuid().as_raw()
    )
    .into()
}

/// The record, for as long as this lives.
#[derive(Debug)]
pub(super) struct Locked {
    domain: Arc<Domain>,
    /// The kernel lets go when it is closed, or the process ends.
    _lock: OwnedFd,
}

impl Locked {
    /// The record if it still means anything; remains are cleared away.
    pub(super) fn load(&self) -> Result<Option<Record>, JoinError> {
        let name = self.domain.name("record");
        let file = rustix::fs::openat(
            &self.domain.directory,
            &name,
            OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            Mode::empty(),
        );
        let file = match file {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(self.domain.refuse(format!("holds an odd {name}: {errno}"))),
        };
        let mut text = String::new();
        let read = file.take(RECORD_LEN_MAX).read_to_string(&mut text);
        let record = read.ok().and_then(|_| Record::read(&text));
        let Some(record) = record else {
            let advice = "remove it when nothing of that domain runs";
            return Err(self
                .domain
                .refuse(format!("holds a {name} that makes no sense: {advice}")));
        };
        if record.namespace != namespace()? {
            let advice = "join from there, or use another directory";
            return Err(self.domain.refuse(format!(
                "holds a {name} of processes in another pid namespace: {advice}"
            )));
        }
        if !record.is_alive() {
            self.clear(&record);
            return Ok(None);
        }
        Ok(Some(record))
    }

    /// Writes it down, all or nothing.
    pub(super) fn save(&self, record: &Record) -> Result<(), JoinError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let mut file = File::from(self.domain.open_file("new", flags)?);
        let directory = &self.domain.directory;
        file.write_all(record.write().as_bytes())
            .and_then(|()| {
                let (new, name) = (self.domain.name("new"), self.domain.name("record"));
                Ok(rustix::fs::renameat(directory, new, directory, name)?)
            })
            .map_err(|error| self.domain.refuse(format!("cannot be written to: {error}")))
    }

    pub(super) fn clear(&self, record: &Record) {
        self.domain.remove_socket(record.group);
        self.domain.remove("record");
    }
}

/// This member's place in the record; given up when dropped.
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) domain: Arc<Domain>,
    pub(super) group: u64,
    pub(super) nonce: u64,
    left: AtomicBool,
    /// A child of a fork has a copy of this, and no say.
    process: u32,
}

impl Membership {
    pub(super) fn new(domain: Arc<Domain>, group: u64, nonce: u64) -> Self {
        Self {
            domain,
            group,
            nonce,
            left: AtomicBool::new(false),
            process: std::process::id(),
        }
    }

    /// The record of this group, if it is still the domain's.
    pub(super) fn load(&self, locked: &Locked) -> Result<Option<Record>, JoinError> {
        let record = locked.load()?;
        Ok(record.filter(|record| record.group == self.group))
    }

    /// From Full to Formed, if nobody has given up.
    pub(super) fn commit(&self) -> Result<bool, JoinError> {
        let locked = self.domain.lock()?;
        let Some(mut record) = self.load(&locked)? else {
            return Ok(false);
        };
        record.stage = Stage::Formed;
        locked.save(&record)?;
        Ok(true)
    }

    /// Whether the group was formed after all. If not, it never will be.
    pub(super) fn formed_or_void(&self) -> Result<bool, JoinError> {
        let locked = self.domain.lock()?;
        let record = self.load(&locked)?;
        match record {
            Some(record) if record.stage == Stage::Formed => Ok(true),
            Some(record) => {
                locked.clear(&record);
                Ok(false)
            }
            None => Ok(false),
        }
    }

    /// Takes this member out; a group that was not formed ends with that.
    pub(super) fn leave(&self) {
        if self.process != std::process::id() || self.left.swap(true, Ordering::AcqRel) {
            return;
        }
        let given_back = self.domain.lock().and_then(|locked| {
            let Some(mut record) = self.load(&locked)? else {
                return Ok(());
            };
            record.members.retain(|member| member.nonce != self.nonce);
            if record.stage == Stage::Formed && !record.members.is_empty() {
                locked.save(&record)
            } else {
                locked.clear(&record);
                Ok(())
            }
        });
        if let Err(error) = given_back {
            // The record names a process that ends some day: cleared then.
            tracing::warn!(domain = self.domain.id, %error, "leaving a domain");
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(stage: Stage) -> Record {
        let here = Entry::here(7).expect("a process");
        let gone = Entry {
            start: here.start + 1,
            ..here.clone()
        };
        Record {
            stage,
            size: 3,
            group: u64::MAX,
            namespace: 1,
            members: vec![here, gone],
        }
    }

    #[test]
    fn a_record_reads_as_it_was_written() {
        for stage in [Stage::Gathering, Stage::Full, Stage::Formed] {
            let record = record(stage);
            assert_eq!(Record::read(&record.write()), Some(record));
        }
        for nonsense in ["", "x", HEADER, &format!("{HEADER}\nformed 1 2 3\n")] {
            assert_eq!(Record::read(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_process_is_told_from_a_later_one_with_its_id() {
        let mut record = record(Stage::Full);
        assert_eq!(record.living(), [std::process::id()]);
        assert!(record.is_alive());
        record.members.swap(0, 1);
        assert!(!record.is_alive(), "its founder is dead");
        record.stage = Stage::Formed;
        assert!(record.is_alive(), "one member lives");
    }
}
