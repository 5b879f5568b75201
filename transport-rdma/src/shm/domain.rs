//! A domain's files on this host, and the lock that serializes decisions about it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::error::SetupError;
use super::process;
use super::socket::Deadline;

/// Most bytes of a record that are read: more than the largest group with the longest
/// addresses has.
const RECORD_LEN_MAX: u64 = 1 << 20;

/// Pause between two attempts to get the lock.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(1);

/// Held by the thread of this process that has the lock of some domain.
static HERE: Mutex<()> = Mutex::new(());

/// The files of one domain in the domain directory.
#[derive(Debug)]
pub(super) struct Domain {
    pub(super) id: u32,
    path: PathBuf,
    directory: OwnedFd,
}

impl Domain {
    /// Opens it. The directory is created if needed and must belong to this user alone.
    pub(super) fn open(id: u32, directory: Option<&Path>) -> Result<Self, SetupError> {
        let (path, fd) = open_directory(directory)?;
        Ok(Self {
            id,
            path,
            directory: fd,
        })
    }

    /// See [`host_id`].
    pub(super) fn host_id(&self) -> Result<u128, SetupError> {
        identify(&self.directory)
    }

    /// Locks the record. The lock is held for a short time only, but its holder can be
    /// stopped meanwhile.
    pub(super) fn lock(self: &Arc<Self>, deadline: Deadline) -> Result<Locked, SetupError> {
        loop {
            if let Some(locked) = self.try_lock()? {
                return Ok(locked);
            }
            if deadline.is_over() {
                return Err(self.refuse("cannot be locked: another process holds it".to_owned()));
            }
            thread::sleep(TRY_AGAIN_AFTER);
        }
    }

    /// Uses the kernel's process-owned locks (`fcntl`). A lock of an open file (`flock`)
    /// would be inherited by a forked child and kept for as long as that lives. But
    /// process-owned locks do not exclude threads of one process, and closing any
    /// descriptor of the file releases them; so `HERE` is locked before the file is opened.
    fn try_lock(self: &Arc<Self>) -> Result<Option<Locked>, SetupError> {
        let here = match HERE.try_lock() {
            Ok(here) => here,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        let file = self.open_file("lock", OFlags::RDWR | OFlags::CREATE)?;
        match rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Locked {
                domain: Arc::clone(self),
                _file: file,
                _here: here,
            })),
            Err(Errno::AGAIN | Errno::ACCESS | Errno::INTR) => Ok(None),
            Err(errno) => Err(self.refuse(format!("cannot be locked: {errno}"))),
        }
    }

    fn refuse(&self, problem: String) -> SetupError {
        SetupError::Directory {
            path: self.path.clone(),
            problem,
        }
    }

    fn name(&self, what: &str) -> String {
        format!("domain-{}.{what}", self.id)
    }

    fn open_file(&self, what: &str, flags: OFlags) -> Result<OwnedFd, SetupError> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::openat(&self.directory, self.name(what), flags, mode)
            .map_err(|errno| self.refuse(format!("holds no usable {}: {errno}", self.name(what))))
    }

    pub(super) fn remove(&self, what: &str) {
        let removed = rustix::fs::unlinkat(&self.directory, self.name(what), AtFlags::empty());
        debug_assert!(matches!(removed, Ok(()) | Err(Errno::NOENT)), "{removed:?}");
    }

    /// The path of one of the domain's files, short enough for a socket address however
    /// long the directory's path is.
    pub(super) fn file_path(&self, what: &str) -> PathBuf {
        let directory = self.directory.as_fd().as_raw_fd();
        format!("/proc/self/fd/{directory}/{}", self.name(what)).into()
    }

    /// Whether a file of this domain is known not to exist.
    pub(super) fn lacks(&self, what: &str) -> bool {
        let found = rustix::fs::statat(&self.directory, self.name(what), AtFlags::empty());
        found.is_err_and(|errno| errno == Errno::NOENT)
    }

    /// Removes the files `domain-ID.NAME<suffix>` of this domain for which `is_waste(NAME)`.
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
}

/// Opens the directory, which is created if needed and must belong to this user alone.
fn open_directory(directory: Option<&Path>) -> Result<(PathBuf, OwnedFd), SetupError> {
    let path = directory.map_or_else(default_domain_directory, Path::to_path_buf);
    let refuse = |problem: String| SetupError::Directory {
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
    let stat = rustix::fs::fstat(&fd).map_err(SetupError::system("looking at a directory"))?;
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
    Ok((path, fd))
}

/// Identifies this host: a digest of its boot id, the pid namespace and the domain
/// directory. Members that do not share all three cannot reach each other by shared memory,
/// so they count as members of different hosts, even on one machine. `directory` is that of
/// [`HostOptions`](super::HostOptions); it is created if needed.
pub fn host_id(directory: Option<&Path>) -> Result<u128, SetupError> {
    identify(&open_directory(directory)?.1)
}

fn identify(directory: &OwnedFd) -> Result<u128, SetupError> {
    let stat =
        rustix::fs::fstat(directory).map_err(SetupError::system("looking at a directory"))?;
    let digest = Sha256::new()
        .chain_update(process::boot()?.to_le_bytes())
        .chain_update(process::namespace()?.to_le_bytes())
        .chain_update(stat.st_dev.to_le_bytes())
        .chain_update(stat.st_ino.to_le_bytes())
        .finalize();
    let (first, _) = digest.split_first_chunk().expect("32 bytes");
    Ok(u128::from_le_bytes(*first))
}

/// The default directory in which domains are recorded: `$SPINDLE_DDS_DIR`, else
/// `spindle-dds` in the user's runtime directory, else a directory of the user's in shared
/// memory. Creates nothing.
pub fn default_domain_directory() -> PathBuf {
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

/// The locked record; unlocked when this is dropped.
#[derive(Debug)]
pub(super) struct Locked {
    domain: Arc<Domain>,
    /// Closing it releases the kernel's lock. Dropped before `_here`.
    _file: OwnedFd,
    _here: MutexGuard<'static, ()>,
}

impl Locked {
    /// The text of the record, if it exists.
    pub(super) fn read(&self) -> Result<Option<String>, SetupError> {
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
            Err(errno) => {
                return Err(self
                    .domain
                    .refuse(format!("holds an unusable {name}: {errno}")));
            }
        };
        let mut text = String::new();
        match file.take(RECORD_LEN_MAX).read_to_string(&mut text) {
            Ok(_) => Ok(Some(text)),
            Err(_) => Err(self.invalid_record()),
        }
    }

    /// The error for a record that was not written by this version, or not by this product:
    /// it is never taken for an empty domain.
    pub(super) fn invalid_record(&self) -> SetupError {
        let name = self.domain.name("record");
        let advice = "remove it when nothing of that domain runs";
        self.domain.refuse(format!(
            "holds a {name} that cannot be understood: {advice}"
        ))
    }

    /// Process ids are valid only in the namespace in which they were recorded.
    pub(super) fn check_namespace(&self, found: u64) -> Result<(), SetupError> {
        if found == process::namespace()? {
            return Ok(());
        }
        let name = self.domain.name("record");
        let advice = "join from there, or use another directory";
        Err(self.domain.refuse(format!(
            "holds a {name} of processes in another pid namespace: {advice}"
        )))
    }

    /// Replaces the record atomically.
    pub(super) fn replace(&self, text: &str) -> Result<(), SetupError> {
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
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn domain() -> (tempfile::TempDir, Arc<Domain>) {
        let parent = tempfile::tempdir().unwrap();
        let domain = Domain::open(7, Some(&parent.path().join("domains"))).unwrap();
        (parent, Arc::new(domain))
    }

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(20))
    }

    #[test]
    fn a_descriptor_that_a_forked_child_keeps_holds_no_lock() {
        let (_parent, domain) = domain();
        let locked = domain.lock(soon()).unwrap();
        let childs = rustix::io::dup(&locked._file).unwrap();
        drop(locked);
        let again = domain.lock(Deadline::after(Duration::ZERO));
        assert!(again.is_ok(), "{again:?}");
        drop(childs);
    }

    #[test]
    fn one_thread_at_a_time_has_the_lock() {
        let (_parent, domain) = domain();
        let inside = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let locked = domain.lock(soon()).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(locked);
                    }
                });
            }
        });
    }
}
