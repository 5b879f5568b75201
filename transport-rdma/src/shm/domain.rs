//! A domain on this host: its files, shared by all participants of the process, and the lock
//! that serializes decisions about it.
//!
//! # When writing fails
//!
//! A participant opens the record once and keeps it open, and its room is allocated before the
//! participant enters. So what fails afterwards is the file system itself, and a write is tried
//! ten times before it counts as failed. What a failure costs:
//!
//! - **A newcomer** that cannot open the record, or get room in it, is refused. It has told
//!   nothing to any member.
//! - **A decision** with all members on one host is a compare-and-set of the record: what is
//!   not written is not decided, and a member that went on without it could be one of two that
//!   decide differently. So the member that cannot write leaves, with the reason; the others
//!   take it for failed, and the next leader finds the same proposal and writes it.
//! - **Bringing the record up to date** with what is decided already (by this host's leader,
//!   or by a majority of hosts) is no decision. The other members of this host write the same,
//!   and the next view writes all of it again. A failure is a warning. Only a newcomer's first
//!   view must be recorded: newcomers after it must find a member of this host.
//! - **Leaving** takes a name out of the record. If that fails, the record names a process that
//!   ends, and liveness is asked for, not read.
//!
//! # When files are removed
//!
//! The members hold the same open file, which works as before without a name: they decide,
//! leave and expel as ever. Newcomers need the name. A member that finds another file, or none,
//! at the path, when it takes the lock or by looking every few seconds, writes the record anew
//! there, *holding the old file's lock*, and only then marks the old file as moved; members
//! that find that mark go on in the new file. So two members do not write it anew, and no
//! decision is made in both files. If the path has a record of other living members, the two
//! groups stay apart, and this is logged. A newcomer that has created a new file looks for the
//! members' second sign ([`presence`](super::presence)) before it believes that there are none.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::default_directory::default_domain_directory;
use super::domain_files::{DomainFiles, FilePath, name};
use super::error::SetupError;
use super::file_lock::{FileLock, TRY_AGAIN_AFTER};
use super::locked_record::{Damage, Locked};
use super::presence;
use super::process;
use super::record_file::{Content, Head, VERSION};
use super::socket::Deadline;
use super::view_record::MemberEntry;
use crate::fork::OwnerProcess;
use crate::sleep::eventfd::signal_eventfd;

/// How long to wait for the lock, which is held only for moments unless its holder is
/// stopped.
pub(super) const LOCK_WITHIN: Duration = Duration::from_secs(5);

/// Time between two looks whether the domain's files are still there.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(3);

/// How long a newcomer waits until the members have written a removed record anew.
const WRITTEN_ANEW_WITHIN: Duration = Duration::from_secs(10);

/// Pause between two looks for that.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// A domain that is open in this process.
struct OpenDomain {
    owner: OwnerProcess,
    path: PathBuf,
    id: u32,
    domain: Weak<Domain>,
}

/// The open domains of this process: its participants share descriptors, and what one of
/// them notices about the files.
static OPEN: Mutex<Vec<OpenDomain>> = Mutex::new(Vec::new());

/// The files of one domain in the domain directory.
#[derive(Debug)]
pub(super) struct Domain {
    pub(super) id: u32,
    path: PathBuf,
    host: u128,
    files: Mutex<Arc<DomainFiles>>,
    shown: Mutex<Shown>,
    stations: Mutex<Vec<Weak<StationSocket>>>,
    pub(super) damage: Damage,
}

/// The socket of a station of this process, which makes it anew when it is removed.
#[derive(Debug)]
pub(super) struct StationSocket {
    /// The name of its file within the domain.
    pub(super) file: String,
    /// Wakes its I/O thread.
    pub(super) kick: OwnedFd,
    /// The file was found missing.
    pub(super) is_missing: AtomicBool,
}

/// The sign that members live here.
#[derive(Debug, Default)]
struct Shown {
    members: BTreeSet<u128>,
    socket: Option<OwnedFd>,
}

impl Domain {
    /// Opens it. The directory is created if needed and must belong to this user alone. Waits
    /// up to 5 s for the lock; and up to 10 s until living members have written a removed
    /// record anew.
    pub(super) fn open(id: u32, directory: Option<&Path>) -> Result<Arc<Self>, SetupError> {
        let path = directory.map_or_else(default_domain_directory, Path::to_path_buf);
        let path = std::path::absolute(path).map_err(SetupError::system("finding a directory"))?;
        let is_same = |it: &OpenDomain| !it.owner.is_inherited() && it.path == path && it.id == id;
        // Never blocks for long: in a forked child it may be locked for ever.
        let shared = lock_shortly(&OPEN).and_then(|open| {
            let mut same = open.iter().filter(|it| is_same(it));
            same.find_map(|it| it.domain.upgrade())
        });
        if let Some(domain) = shared {
            domain.look();
            return Ok(domain);
        }
        let domain = Arc::new(Self::open_files(id, path.clone())?);
        if let Some(mut open) = lock_shortly(&OPEN) {
            open.retain(|it| !it.owner.is_inherited() && it.domain.strong_count() > 0);
            let domain = Arc::downgrade(&domain);
            open.push(OpenDomain {
                owner: OwnerProcess::this(),
                path,
                id,
                domain,
            });
        }
        Ok(domain)
    }

    fn open_files(id: u32, path: PathBuf) -> Result<Self, SetupError> {
        let lock_until = Deadline::after(LOCK_WITHIN);
        let wait_until = Instant::now() + WRITTEN_ANEW_WITHIN;
        loop {
            let files = Arc::new(DomainFiles::open(&path, id, true)?);
            let lock = FileLock::wait(&files, &path, lock_until)?;
            if !files.is_at(&path) {
                // Removed meanwhile.
                drop(lock);
                if lock_until.is_over() {
                    return Err(gone(&path, id));
                }
                continue;
            }
            match begin(&files, &path)? {
                Begun::Host(host) => {
                    drop(lock);
                    return Ok(Self {
                        id,
                        path,
                        host,
                        files: Mutex::new(files),
                        shown: Mutex::default(),
                        stations: Mutex::default(),
                        damage: Damage::default(),
                    });
                }
                Begun::Lives(pid) => {
                    drop(lock);
                    if Instant::now() >= wait_until {
                        return Err(refuse(
                            &path,
                            format!(
                                "has lost its record of domain {id}, whose members live (process \
                                 {pid}), and they have not written it anew"
                            ),
                        ));
                    }
                    thread::sleep(LOOK_AGAIN_AFTER);
                }
            }
        }
    }

    /// See [`host_id`].
    pub(super) fn host_id(&self) -> u128 {
        self.host
    }

    /// The directory's path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The name of one of its files in the directory.
    pub(super) fn file_name(&self, what: &str) -> String {
        name(self.id, what)
    }

    pub(super) fn files(&self) -> Arc<DomainFiles> {
        let files = self.files.lock();
        Arc::clone(&files.unwrap_or_else(PoisonError::into_inner))
    }

    /// Locks the record. The lock is held for a short time only, but its holder can be
    /// stopped meanwhile. Follows the record if it was moved, and writes it anew if it was
    /// removed.
    pub(super) fn lock(self: &Arc<Self>, deadline: Deadline) -> Result<Locked, SetupError> {
        loop {
            let files = self.files();
            let lock = FileLock::wait(&files, &self.path, deadline)?;
            let mut locked = Locked::new(self, lock)?;
            if locked.is_moved() {
                drop(locked);
                // Without the lock: files are opened, and closed again.
                if !self.follow(&files) {
                    if deadline.is_over() {
                        return Err(gone(&self.path, self.id));
                    }
                    thread::sleep(TRY_AGAIN_AFTER);
                }
            } else if files.is_at(&self.path) || !locked.restore() {
                self.check_stations();
                return Ok(locked);
            }
        }
    }

    /// Goes on in the file that another member has put in the place of this one.
    fn follow(&self, from: &Arc<DomainFiles>) -> bool {
        let Ok(next) = DomainFiles::open(&self.path, self.id, false) else {
            return false;
        };
        let same_host = |host| host == self.host;
        let head = next.record().head();
        if next.is_same(from) || !matches!(head, Ok(Head::Present { host, .. }) if same_host(host))
        {
            return false;
        }
        let replaced = {
            let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            match Arc::ptr_eq(&files, from) {
                true => core::mem::replace(&mut *files, Arc::new(next)),
                // Another thread was faster.
                false => Arc::new(next),
            }
        };
        drop(replaced);
        true
    }

    /// The text of the record, without the lock: it may be that before a change under way. `None`
    /// if there is none, or it was removed.
    pub(super) fn current_text(&self) -> Option<String> {
        let files = self.files();
        match files.record().read() {
            Ok(Content::Text(text)) if files.is_at(&self.path) => Some(text),
            _ => None,
        }
    }

    /// Whether the record that newcomers find has room for a text of `len` bytes.
    pub(super) fn has_room(&self, len: usize) -> bool {
        let files = self.files();
        files.is_at(&self.path) && files.record().has_room(len)
    }

    /// Goes on in other files, under the lock of those that are returned: they are closed when it
    /// is released.
    pub(super) fn replace_files(&self, next: Arc<DomainFiles>) -> Arc<DomainFiles> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        core::mem::replace(&mut *files, next)
    }

    /// Looks whether the record is still there, and writes it anew if it is not. Does not
    /// wait for the lock: it is looked again later.
    pub(super) fn look(self: &Arc<Self>) {
        if !self.files().is_at(&self.path) {
            // An error was logged, or is met by what needs the lock.
            let _ = self.lock(Deadline::after(Duration::from_millis(50)));
        }
    }

    /// From now on, the socket is looked for whenever the record is locked, or has a view.
    pub(super) fn watch(&self, socket: &Arc<StationSocket>) {
        let mut stations = self.stations.lock().unwrap_or_else(PoisonError::into_inner);
        stations.retain(|it| it.strong_count() > 0);
        stations.push(Arc::downgrade(socket));
    }

    /// Wakes the stations whose sockets are missing: a newcomer calls all members of its first
    /// view, each of which looks when it locks the record, or finds that view recorded.
    pub(super) fn check_stations(&self) {
        let stations = self.stations.lock().unwrap_or_else(PoisonError::into_inner);
        for station in stations.iter().filter_map(Weak::upgrade) {
            if !self.has_at_path(&station.file) {
                station.is_missing.store(true, Ordering::Release);
                // A full event descriptor is readable already.
                let _ = signal_eventfd(&station.kick);
            }
        }
    }

    /// Whether the process of a member of this host is alive: see [`DomainFiles::lives`].
    pub(super) fn lives(&self, member: &MemberEntry) -> bool {
        self.files().lives(member, |file| self.is_own(file))
    }

    /// Whether this is the socket of a station of this process.
    pub(super) fn is_own(&self, file: &str) -> bool {
        let stations = self.stations.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stations = stations.iter().filter_map(Weak::upgrade);
        stations.any(|it| it.file == file)
    }

    /// Whether a file of this domain is known not to exist: not if the directory was removed.
    pub(super) fn lacks(&self, what: &str) -> bool {
        let files = self.files();
        files.is_at(&self.path) && files.lacks(what)
    }

    /// The path of one of the domain's files.
    pub(super) fn file_path(&self, what: &str) -> FilePath {
        self.files().file_path(what)
    }

    /// Whether newcomers find a file of this domain: not if it is certain that they do not.
    pub(super) fn has_at_path(&self, what: &str) -> bool {
        let found = rustix::fs::lstat(self.path.join(name(self.id, what)));
        found.err() != Some(Errno::NOENT)
    }

    /// Shows that this member lives, beside the files.
    pub(super) fn show(&self, member: u128) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.members.insert(member);
        if shown.socket.is_none() {
            match presence::show(&self.path, self.id) {
                Ok(socket) => shown.socket = Some(socket),
                // Needed only where the directory is removed.
                Err(error) => tracing::warn!(domain = self.id, %error, "a member is not shown"),
            }
        }
    }

    /// Ends [`show`](Self::show) of this member.
    pub(super) fn hide(&self, member: u128) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.members.remove(&member);
        if shown.members.is_empty() {
            shown.socket = None;
        }
    }
}

/// What a newly opened record says.
enum Begun {
    /// The host id.
    Host(u128),
    /// The record is new, but this process shows that members live.
    Lives(u32),
}

/// Reads the head of a locked record, or begins it.
fn begin(files: &Arc<DomainFiles>, path: &Path) -> Result<Begun, SetupError> {
    let (record, domain) = (files.record(), files.domain);
    let file = name(domain, "record");
    let failed = |what| move |error| SetupError::record(path, &name(domain, "record"), what, error);
    let boot = process::boot()?;
    let mut head = record.head().map_err(failed("read"))?;
    let content = record.read().map_err(failed("read"))?;
    // Of an earlier version, or of no use any more: replaced once its members have ended.
    let replaced = match (head, &content) {
        (Head::OtherVersion(version), _) if version < VERSION => {
            Some(format!("of version {version} of the format"))
        }
        (Head::Present { .. }, Content::Damaged) => Some("that is damaged".to_owned()),
        (Head::Present { .. }, Content::Moved) => Some("that was moved elsewhere".to_owned()),
        _ => None,
    };
    if let Some(what) = replaced {
        if files.has_living_station()? {
            let problem = format!(
                "holds a {file} {what}, whose members are running: end them, or use another \
                 directory"
            );
            return Err(refuse(path, problem));
        }
        record.clear().map_err(failed("emptied"))?;
        head = Head::Blank;
    }
    match head {
        Head::Present { boot: then, host } if then == boot => Ok(Begun::Host(host)),
        Head::OtherVersion(_) | Head::Foreign => Err(refuse(
            path,
            format!(
                "holds a {file} that cannot be understood: remove it when nothing of that domain \
                 runs"
            ),
        )),
        Head::Blank | Head::Present { .. } => {
            if head == Head::Blank
                && let Some(pid) = presence::shown(path, domain)?
            {
                return Ok(Begun::Lives(pid));
            }
            let host = files.new_host_id(boot)?;
            record.reserve(0).map_err(failed("given room"))?;
            record.begin(boot, host).map_err(failed("written"))?;
            Ok(Begun::Host(host))
        }
    }
}

pub(super) fn refuse(path: &Path, problem: String) -> SetupError {
    let path = path.to_owned();
    SetupError::Directory { path, problem }
}

fn gone(path: &Path, id: u32) -> SetupError {
    refuse(path, format!("has lost its record of domain {id}"))
}

/// Locks a mutex unless it stays locked for a while.
fn lock_shortly<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    let since = Instant::now();
    while since.elapsed() < LOCK_WITHIN {
        match mutex.try_lock() {
            Ok(locked) => return Some(locked),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => thread::sleep(TRY_AGAIN_AFTER),
        }
    }
    None
}

/// Identifies this host for a domain: a digest of its boot id and of the domain directory, as
/// it was when the record was begun. Members that do not share both cannot reach each other by
/// shared memory, so they count as members of different hosts, even on one machine.
/// `directory` is that of [`HostOptions`](super::HostOptions); it is created if needed.
pub fn host_id(domain: u32, directory: Option<&Path>) -> Result<u128, SetupError> {
    Ok(Domain::open(domain, directory)?.host_id())
}
