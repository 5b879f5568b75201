//! The domain directory and the files of one domain in it: opening, finding and asking.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::error::SetupError;
use super::file_lock::ProcessLock;
use super::process;
use super::record_file::RecordFile;
use super::socket::{self, Deadline};
use super::station_name::{SUFFIX, StationName};
use super::view_record::MemberEntry;
use crate::fork::OwnerProcess;
use crate::retry::{self, Classified, ErrorClass};

/// Open files of one domain. The directory may have another one at its path by now.
#[derive(Debug)]
pub(super) struct DomainFiles {
    pub(super) domain: u32,
    directory: OwnedFd,
    /// `None` while this is dropped.
    record: Option<RecordFile>,
    /// Device and inode of the record.
    identity: (u64, u64),
    /// A forked child has a copy of this value.
    owner: OwnerProcess,
}

/// The path of a file, short enough for a socket address however long the directory's path
/// is. Valid as long as this lives.
pub(super) struct FilePath {
    pub(super) path: PathBuf,
    _files: Arc<DomainFiles>,
}

impl DomainFiles {
    /// Opens the directory and the record. With `create`, what is not there is created.
    pub(super) fn open(path: &Path, domain: u32, create: bool) -> Result<Self, SetupError> {
        let directory = open_directory(path, create)?;
        let mut flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if create {
            flags |= OFlags::CREATE;
        }
        let name = name(domain, "record");
        let mode = Mode::RUSR | Mode::WUSR;
        let record = rustix::fs::openat(&directory, &name, flags, mode)
            .map_err(|errno| SetupError::record(path, &name, "opened for writing", errno))?;
        let stat = rustix::fs::fstat(&record).map_err(SetupError::system("looking at a record"))?;
        Ok(Self {
            domain,
            directory,
            record: Some(RecordFile::new(record)),
            identity: (stat.st_dev, stat.st_ino),
            owner: OwnerProcess::this(),
        })
    }

    pub(super) fn record(&self) -> &RecordFile {
        self.record.as_ref().expect("open until it is dropped")
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Whether newcomers that open the directory at this path find this record.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        let found = rustix::fs::lstat(path.join(name(self.domain, "record")));
        found.is_ok_and(|stat| (stat.st_dev, stat.st_ino) == self.identity)
    }

    /// Identifies this host: see [`host_id`](super::host_id).
    pub(super) fn new_host_id(&self, boot: u128) -> Result<u128, SetupError> {
        let stat = rustix::fs::fstat(&self.directory)
            .map_err(SetupError::system("looking at a directory"))?;
        let digest = Sha256::new()
            .chain_update(boot.to_le_bytes())
            .chain_update(stat.st_dev.to_le_bytes())
            .chain_update(stat.st_ino.to_le_bytes())
            .finalize();
        let (first, _) = digest.split_first_chunk().expect("32 bytes");
        Ok(u128::from_le_bytes(*first))
    }

    pub(super) fn file_path(self: &Arc<Self>, what: &str) -> FilePath {
        FilePath {
            path: self.path_of(what),
            _files: Arc::clone(self),
        }
    }

    fn path_of(&self, what: &str) -> PathBuf {
        let directory = self.directory.as_fd().as_raw_fd();
        format!("/proc/self/fd/{directory}/{}", name(self.domain, what)).into()
    }

    /// Whether a file of this domain is known not to exist.
    pub(super) fn lacks(&self, what: &str) -> bool {
        let name = name(self.domain, what);
        let found = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW);
        found.is_err_and(|errno| errno == Errno::NOENT)
    }

    /// Removes a file. What remains of it does no harm.
    pub(super) fn remove(&self, what: &str) {
        let name = name(self.domain, what);
        let remove = || rustix::fs::unlinkat(&self.directory, &name, AtFlags::empty());
        match retry::repeat(remove) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => tracing::warn!(name, %errno, "a file is not removed"),
        }
    }

    /// The sockets of stations of this domain, and the names of the files.
    pub(super) fn stations(&self) -> Result<Vec<(StationName, String)>, SetupError> {
        let prefix = name(self.domain, "");
        let path = format!("/proc/self/fd/{}", self.directory.as_fd().as_raw_fd());
        let names = || {
            let entries = std::fs::read_dir(&path)?;
            entries.map(|entry| Ok(entry?.file_name())).collect()
        };
        let names: Vec<_> = retry::repeat_always(names)
            .map_err(SetupError::system::<std::io::Error>("listing a directory"))?;
        let stations = names.into_iter().filter_map(|name| {
            let name = name.into_string().ok()?;
            let what = name.strip_prefix(&prefix)?;
            let station = StationName::read(what.strip_suffix(SUFFIX)?)?;
            Some((station, what.to_owned()))
        });
        Ok(stations.collect())
    }

    /// Removes the sockets of processes that have ended.
    pub(super) fn sweep_stations(&self) -> Result<(), SetupError> {
        let here = process::visible_namespace()?;
        for (station, what) in self.stations()? {
            if !station.lives(here).unwrap_or_else(|| self.answers(&what)) {
                self.remove(&what);
            }
        }
        Ok(())
    }

    /// Whether a station of this domain is alive.
    pub(super) fn has_living_station(&self) -> Result<bool, SetupError> {
        let here = process::visible_namespace()?;
        let mut stations = self.stations()?.into_iter();
        Ok(stations.any(|(name, what)| name.lives(here).unwrap_or_else(|| self.answers(&what))))
    }

    /// Whether the process of a member of this host is alive. Processes that cannot be looked at,
    /// as those of other pid namespaces, are asked by their stations' sockets. `is_own` tells the sockets of this
    /// process.
    pub(super) fn lives(&self, member: &MemberEntry, is_own: impl Fn(&str) -> bool) -> bool {
        let Some(name) = StationName::in_address(&member.address, member.id) else {
            let lives = process::state_of(member.pid).has_started_at(member.start);
            // What cannot be looked at may live.
            return lives.unwrap_or(true);
        };
        let Ok(here) = process::visible_namespace() else {
            return true;
        };
        let file = name.file();
        match name.lives(here) {
            // A process of a namespace that has ended may have had the pid, the start time (to
            // 10 ms) and the namespace's number of this one.
            Some(true) if name.pid == std::process::id() => is_own(&file) || !self.refuses(&file),
            Some(lives) => lives,
            None => self.answers(&file),
        }
    }

    /// Whether it is certain that a socket has no station any more.
    fn refuses(&self, what: &str) -> bool {
        let connected = socket::connect(&self.path_of(what));
        connected.is_err_and(|errno| errno == Errno::CONNREFUSED)
    }

    /// Asks a station whether its process is alive: by connecting, which the kernel answers
    /// also for a process that is stopped.
    fn answers(&self, what: &str) -> bool {
        match socket::connect(&self.path_of(what)) {
            // A forked child may hold the socket of a process that has ended.
            Ok(connection) => match retry::repeat(|| socket::peer_pidfd(&connection)) {
                Ok(Some(pidfd)) => {
                    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
                    let now = Deadline::after(core::time::Duration::ZERO);
                    !socket::wait(&mut fds, now).unwrap_or(false)
                }
                Ok(None) => false,
                // The kernel does not tell (before 6.5).
                Err(_) => true,
            },
            Err(Errno::CONNREFUSED | Errno::NOENT) => false,
            // Its backlog is full, or this process cannot ask.
            Err(_) => true,
        }
    }
}

impl Drop for DomainFiles {
    /// Closing a file releases the locks of this process on it, so that waits until no thread
    /// of this process has the lock. A forked child has no lock to lose.
    fn drop(&mut self) {
        let _here = (!self.owner.is_inherited()).then(ProcessLock::wait);
        self.record = None;
    }
}

/// The name of a domain's file.
pub(super) fn name(domain: u32, what: &str) -> String {
    format!("domain-{domain}.{what}")
}

/// Opens the directory, which must belong to this user alone.
fn open_directory(path: &Path, create: bool) -> Result<OwnedFd, SetupError> {
    let refuse = |problem: String| SetupError::Directory {
        path: path.to_owned(),
        problem,
    };
    let failed = |what, errno: Errno| match errno.class() {
        ErrorClass::OutOfResources => SetupError::record(path, "", what, errno),
        _ => refuse(format!("cannot be {what}: {errno}")),
    };
    if create {
        match rustix::fs::mkdir(path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed("made", errno)),
        }
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let fd = rustix::fs::open(path, flags, Mode::empty())
        .map_err(|errno| failed("opened as a directory", errno))?;
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
    Ok(fd)
}
