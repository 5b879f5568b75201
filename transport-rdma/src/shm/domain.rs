//! A domain's files, the lock that makes decisions single, and a member's place.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::error::JoinError;
use super::process;
use super::record::{Record, Stage};
use super::socket::Deadline;

/// Longest record that is read: above that of the largest group with the longest
/// addresses.
const RECORD_LEN_MAX: u64 = 1 << 20;

/// Between two tries to get the lock.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(1);

/// How long giving up one's place may wait for the lock.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

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

    /// Locks the record. Nobody holds the lock for long, but a process can be
    /// stopped while it does.
    pub(super) fn lock(self: &Arc<Self>, deadline: Deadline<'_>) -> Result<Locked, JoinError> {
        let lock = self.open_file("lock", OFlags::RDWR | OFlags::CREATE)?;
        loop {
            match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::AGAIN | Errno::INTR) if !deadline.is_over() => {
                    thread::sleep(TRY_AGAIN_AFTER);
                }
                Err(errno) => return Err(self.refuse(format!("cannot be locked: {errno}"))),
            }
        }
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

    pub(super) fn remove(&self, what: &str) {
        let removed = rustix::fs::unlinkat(&self.directory, self.name(what), AtFlags::empty());
        debug_assert!(matches!(removed, Ok(()) | Err(Errno::NOENT)), "{removed:?}");
    }

    /// Where a group's founder listens.
    pub(super) fn socket_path(&self, group: u64) -> PathBuf {
        self.file_path(&socket_name(group))
    }

    /// The path of one of the domain's files: short enough for a socket address
    /// however long the directory's path is.
    pub(super) fn file_path(&self, what: &str) -> PathBuf {
        let directory = self.directory.as_fd().as_raw_fd();
        format!("/proc/self/fd/{directory}/{}", self.name(what)).into()
    }

    /// Removes the sockets of founders that died before they had a record.
    pub(super) fn sweep(&self) {
        self.sweep_files(".socket", |_| true);
    }

    /// Removes this domain's files with a suffix whose names, without it and
    /// the domain's, are to go.
    pub(super) fn sweep_files(&self, suffix: &str, is_waste: impl Fn(&str) -> bool) {
        let prefix = self.name("");
        let entries = std::fs::read_dir(&self.path)
            .into_iter()
            .flatten()
            .flatten();
        for name in entries.map(|entry| entry.file_name()) {
            let name = name.to_string_lossy();
            let Some(what) = name.strip_prefix(&prefix) else {
                continue;
            };
            if what.strip_suffix(suffix).is_some_and(&is_waste) {
                self.remove(what);
            }
        }
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
    /// The text of the record, if there is one.
    pub(super) fn read(&self) -> Result<Option<String>, JoinError> {
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
        match file.take(RECORD_LEN_MAX).read_to_string(&mut text) {
            Ok(_) => Ok(Some(text)),
            Err(_) => Err(self.makes_no_sense()),
        }
    }

    /// What is there was not written by this version, or not by us at all: it
    /// is never taken for an empty domain.
    pub(super) fn makes_no_sense(&self) -> JoinError {
        let name = self.domain.name("record");
        let advice = "remove it when nothing of that domain runs";
        self.domain
            .refuse(format!("holds a {name} that makes no sense: {advice}"))
    }

    /// Process ids mean something only in the namespace they come from.
    pub(super) fn check_namespace(&self, found: u64) -> Result<(), JoinError> {
        if found == process::namespace()? {
            return Ok(());
        }
        let name = self.domain.name("record");
        let advice = "join from there, or use another directory";
        Err(self.domain.refuse(format!(
            "holds a {name} of processes in another pid namespace: {advice}"
        )))
    }

    /// Puts a record in the place of the one there is, all or nothing.
    pub(super) fn replace(&self, text: &str) -> Result<(), JoinError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let mut file = File::from(self.domain.open_file("new", flags)?);
        let directory = &self.domain.directory;
        file.write_all(text.as_bytes())
            .and_then(|()| {
                let (new, name) = (self.domain.name("new"), self.domain.name("record"));
                Ok(rustix::fs::renameat(directory, new, directory, name)?)
            })
            .map_err(|error| self.domain.refuse(format!("cannot be written to: {error}")))
    }

    pub(super) fn remove(&self) {
        self.domain.remove("record");
    }

    /// The record if it still means anything; remains are cleared away.
    pub(super) fn load(&self) -> Result<Option<Record>, JoinError> {
        let Some(text) = self.read()? else {
            return Ok(None);
        };
        let record = Record::read(&text).ok_or_else(|| self.makes_no_sense())?;
        self.check_namespace(record.namespace)?;
        if !record.is_alive() {
            self.clear(&record);
            return Ok(None);
        }
        Ok(Some(record))
    }

    pub(super) fn save(&self, record: &Record) -> Result<(), JoinError> {
        self.replace(&record.write())
    }

    pub(super) fn clear(&self, record: &Record) {
        self.domain.remove_socket(record.group);
        self.remove();
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
    pub(super) fn commit(&self, deadline: Deadline<'_>) -> Result<bool, JoinError> {
        let locked = self.domain.lock(deadline)?;
        let Some(mut record) = self.load(&locked)? else {
            return Ok(false);
        };
        record.stage = Stage::Formed;
        locked.save(&record)?;
        Ok(true)
    }

    /// Whether the group was formed after all. If not, it never will be.
    pub(super) fn formed_or_void(&self) -> Result<bool, JoinError> {
        let locked = self.domain.lock(Deadline::after(Some(LEAVE_WITHIN)))?;
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
        if self.process != std::process::id() || self.left.swap(true, Ordering::Relaxed) {
            return;
        }
        let lock = self.domain.lock(Deadline::after(Some(LEAVE_WITHIN)));
        let given_back = lock.and_then(|locked| {
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
