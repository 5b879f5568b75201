//! A domain's record under its lock: what a member may do with it, and writing it anew where it
//! was removed (see [`domain`](super::domain)).

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

use rustix::io::Errno;

use super::domain::{Domain, refuse};
use super::domain_files::DomainFiles;
use super::error::SetupError;
use super::file_lock::{FileLock, SecondLock};
use super::process;
use super::record_file::Content;
use super::view_record::{MemberEntry, ViewRecord};

/// How many looks in a row find a new record locked by another process before that is told.
const BUSY_TOLD_AFTER: u32 = 20;

/// The locked record; unlocked when this is dropped.
#[derive(Debug)]
pub(super) struct Locked {
    lock: FileLock,
    /// What the record said when it was locked.
    content: Content,
    /// Files in whose place others were put, or that were looked at: closed after `lock` is
    /// dropped.
    replaced: Vec<Arc<DomainFiles>>,
    domain: Arc<Domain>,
}

impl Locked {
    /// Reads the record, whose lock this thread has.
    pub(super) fn new(domain: &Arc<Domain>, lock: FileLock) -> Result<Self, SetupError> {
        let content = lock.files().record().read();
        let content = content.map_err(|error| {
            SetupError::record(domain.path(), &domain.file_name("record"), "read", error)
        })?;
        Ok(Self {
            lock,
            content,
            replaced: Vec::new(),
            domain: Arc::clone(domain),
        })
    }

    /// Whether the record is in another file now.
    pub(super) fn is_moved(&self) -> bool {
        self.content == Content::Moved
    }

    /// The text of the record when it was locked, if it exists.
    pub(super) fn read(&self) -> Result<Option<&str>, SetupError> {
        match &self.content {
            Content::Nothing => Ok(None),
            Content::Text(text) => Ok(Some(text)),
            Content::Moved | Content::Damaged => Err(self.invalid_record()),
        }
    }

    /// The error for a record that was not written by this version, or not by this product:
    /// it is never taken for an empty domain.
    pub(super) fn invalid_record(&self) -> SetupError {
        let name = self.domain.file_name("record");
        let advice = "remove it when nothing of that domain runs";
        let problem = format!("holds a {name} that cannot be understood: {advice}");
        refuse(self.domain.path(), problem)
    }

    /// Writes the record. After an error it is what it was before.
    pub(super) fn write(&self, text: &str) -> Result<(), SetupError> {
        let record = self.lock.files().record();
        record.write(text).map_err(self.failed("written"))
    }

    /// Allocates room for a text of `len` bytes.
    pub(super) fn reserve(&self, len: usize) -> Result<(), SetupError> {
        let room = self.lock.files().record().reserve(len);
        room.map_err(self.failed("given room"))
    }

    /// Removes the sockets of processes that have ended.
    pub(super) fn sweep_stations(&self) -> Result<(), SetupError> {
        self.lock.files().sweep_stations()
    }

    /// Whether the process of a member of this host is alive: see [`DomainFiles::lives`].
    pub(super) fn lives(&self, member: &MemberEntry) -> bool {
        let files = self.lock.files();
        files.lives(member, |file| self.domain.is_own(file))
    }

    /// The files that are locked.
    pub(super) fn files(&self) -> &Arc<DomainFiles> {
        self.lock.files()
    }

    fn failed(&self, what: &'static str) -> impl FnOnce(std::io::Error) -> SetupError + use<'_> {
        let name = self.domain.file_name("record");
        move |error| SetupError::record(self.domain.path(), &name, what, error)
    }

    /// Writes the record anew at its path. True if it is in another file now.
    pub(super) fn restore(&mut self) -> bool {
        let domain = Arc::clone(&self.domain);
        let (id, path) = (domain.id, domain.path().display());
        let restored = self.try_restore();
        if domain.damage.is_to_tell(&restored)
            && let Err(problem) = &restored
        {
            tracing::warn!(
                domain = id,
                %path,
                %problem,
                "the record of a domain was removed: members go on, and newcomers do not find them"
            );
        }
        let Ok(Some((next, is_written))) = restored else {
            return false;
        };
        if is_written {
            tracing::warn!(
                domain = id,
                %path,
                "the record of a domain was removed while members ran: it is written anew"
            );
        }
        self.replaced.push(domain.replace_files(next));
        true
    }

    /// The file to go on in, if there is another one, and whether the record was written to it.
    fn try_restore(&mut self) -> Result<Option<(Arc<DomainFiles>, bool)>, Unrestored> {
        let domain = Arc::clone(&self.domain);
        let text = self.read().map_err(|error| error.to_string())?;
        let text = text.map(str::to_owned);
        let next = DomainFiles::open(domain.path(), domain.id, true);
        let next = Arc::new(next.map_err(|error| error.to_string())?);
        // Closed after the lock is released, whatever happens.
        self.replaced.push(Arc::clone(&next));
        if next.is_same(self.lock.files()) {
            return Ok(None);
        }
        let _second = SecondLock::attempt(&next).map_err(Unrestored::Busy)?;
        let found = next.record().read().map_err(|error| error.to_string())?;
        if let Content::Text(other) = &found
            && lives(&next, &domain, other)
        {
            return match text
                .as_deref()
                .is_some_and(|text| lives(self.lock.files(), &domain, text))
            {
                true => Err("other members are recorded there: two groups of one domain"
                    .to_owned()
                    .into()),
                // The members of this record have ended: it is the other one that counts.
                false => Ok(Some((Arc::clone(&next), false))),
            };
        }
        let record = next.record();
        let boot = process::boot().map_err(|error| error.to_string())?;
        let write = || {
            record.reserve(text.as_ref().map_or(0, String::len))?;
            record.begin(boot, domain.host_id())?;
            if let Some(text) = &text {
                record.write(text)?;
            }
            self.lock.files().record().mark_moved()
        };
        if let Err(error) = write() {
            // No newcomer may find members there that go on elsewhere.
            let _ = record.clear();
            return Err(error.to_string().into());
        }
        Ok(Some((Arc::clone(&next), text.is_some())))
    }
}

/// Why a record that was removed is not written anew.
#[derive(Debug)]
enum Unrestored {
    /// Another process holds the lock of the new file at this moment.
    Busy(Errno),
    Failed(String),
}

/// Whether it was told that a record cannot be written anew.
#[derive(Debug, Default)]
pub(super) struct Damage {
    is_told: AtomicBool,
    /// How many looks in a row have found the new record locked by another process.
    times_busy: AtomicU32,
}

impl Damage {
    /// Notes what came of a look. True once for a damage that lasts; a newcomer locks the new
    /// record for moments, and asks to look again.
    fn is_to_tell<T>(&self, outcome: &Result<T, Unrestored>) -> bool {
        let is_passing = match outcome {
            Ok(_) => {
                self.is_told.store(false, Ordering::Relaxed);
                self.times_busy.store(0, Ordering::Relaxed);
                return false;
            }
            Err(Unrestored::Busy(_)) => {
                let before = self.times_busy.load(Ordering::Relaxed);
                self.times_busy
                    .store(before.saturating_add(1), Ordering::Relaxed);
                before < BUSY_TOLD_AFTER
            }
            Err(Unrestored::Failed(_)) => false,
        };
        !is_passing && !self.is_told.swap(true, Ordering::Relaxed)
    }
}

impl From<String> for Unrestored {
    fn from(problem: String) -> Self {
        Self::Failed(problem)
    }
}

impl fmt::Display for Unrestored {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(errno) => {
                write!(
                    formatter,
                    "another process keeps the new one locked: {errno}"
                )
            }
            Self::Failed(problem) => formatter.write_str(problem),
        }
    }
}

/// Whether a record in these files names a member of this host that is alive.
fn lives(files: &DomainFiles, domain: &Domain, text: &str) -> bool {
    let Ok(boot) = process::boot() else {
        return true;
    };
    // What is not understood may be of living members.
    ViewRecord::read(text).is_none_or(|record| {
        let lives = |member: &MemberEntry| files.lives(member, |file| domain.is_own(file));
        record.lives_here_besides(0, boot, lives)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_is_locked_for_moments_is_no_damage() {
        let damage = Damage::default();
        let busy = || Err::<(), _>(Unrestored::Busy(Errno::AGAIN));
        let look = |outcome| damage.is_to_tell(&outcome);
        for _ in 0..BUSY_TOLD_AFTER {
            assert!(!look(busy()));
        }
        assert!(look(busy()), "another process keeps it");
        assert!(!look(busy()), "told once");
        assert!(!look(Ok(())));
        assert!(!look(busy()));
        let failed = || Err(Unrestored::Failed("the disk is full".to_owned()));
        assert!(look(failed()));
        assert!(!look(failed()));
        assert!(!look(busy()));
    }
}
