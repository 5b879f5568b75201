//! The lock that serializes what is done with a domain's record.

use core::sync::atomic::{AtomicU32, Ordering};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::domain_files::{DomainFiles, name};
use super::error::SetupError;
use super::socket::Deadline;
use crate::fork::OwnerProcess;
use crate::retry;

/// Pause between two attempts to get the lock.
pub(super) const TRY_AGAIN_AFTER: Duration = Duration::from_millis(1);

/// The number of the process of which a thread has the [`ProcessLock`]; 0: none. In a child of
/// `fork`, it may be that of the parent, whose threads are not there.
static HOLDER: AtomicU32 = AtomicU32::new(0);

/// Held by the one thread of this process that has the lock of some domain, or closes a record.
#[derive(Debug)]
pub(super) struct ProcessLock(());

impl ProcessLock {
    pub(super) fn wait() -> Self {
        loop {
            match Self::try_take() {
                Some(taken) => return taken,
                None => thread::sleep(TRY_AGAIN_AFTER),
            }
        }
    }

    fn try_take() -> Option<Self> {
        let me = OwnerProcess::this().number();
        let holder = HOLDER.load(Ordering::Relaxed);
        // Acquire: pairs with the release of the thread that had it before.
        let (taken, missed) = (Ordering::Acquire, Ordering::Relaxed);
        let took = holder != me && HOLDER.compare_exchange(holder, me, taken, missed).is_ok();
        // Only a lock that was taken may be made: its drop frees it.
        took.then(|| Self(()))
    }
}

impl Drop for ProcessLock {
    fn drop(&mut self) {
        HOLDER.store(0, Ordering::Release);
    }
}

/// The lock of a domain's record.
///
/// It is a process-owned lock (`fcntl`). A lock of an open file (`flock`) would be inherited
/// by a forked child and kept for as long as that lives. But process-owned locks do not
/// exclude threads of one process, and closing any descriptor of the file releases them; so
/// the [`ProcessLock`] is taken first, and records are closed under it only.
#[derive(Debug)]
pub(super) struct FileLock {
    files: Arc<DomainFiles>,
    /// `None` while this is dropped.
    here: Option<ProcessLock>,
}

impl FileLock {
    pub(super) fn wait(
        files: &Arc<DomainFiles>,
        path: &Path,
        deadline: Deadline,
    ) -> Result<Self, SetupError> {
        loop {
            let problem = match Self::attempt(files) {
                Ok(lock) => return Ok(lock),
                Err(problem) => problem,
            };
            if deadline.is_over() {
                let file = name(files.domain, "record");
                return Err(SetupError::record(path, &file, "locked", problem));
            }
            thread::sleep(TRY_AGAIN_AFTER);
        }
    }

    pub(super) fn files(&self) -> &Arc<DomainFiles> {
        &self.files
    }

    fn attempt(files: &Arc<DomainFiles>) -> std::io::Result<Self> {
        let busy = || std::io::Error::other("another process or thread holds the lock");
        let here = ProcessLock::try_take().ok_or_else(busy)?;
        match try_lock(files) {
            Ok(()) => Ok(Self {
                files: Arc::clone(files),
                here: Some(here),
            }),
            Err(Errno::AGAIN | Errno::ACCESS) => Err(busy()),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        unlock(&self.files);
        // Before the files, which may be closed now.
        self.here = None;
    }
}

/// The lock of another record, taken while this thread has a [`FileLock`].
pub(super) struct SecondLock<'a>(&'a DomainFiles);

impl<'a> SecondLock<'a> {
    pub(super) fn attempt(files: &'a DomainFiles) -> Result<Self, Errno> {
        try_lock(files).map(|()| Self(files))
    }
}

impl Drop for SecondLock<'_> {
    fn drop(&mut self) {
        unlock(self.0);
    }
}

fn try_lock(files: &DomainFiles) -> Result<(), Errno> {
    let operation = FlockOperation::NonBlockingLockExclusive;
    rustix::fs::fcntl_lock(files.record().fd(), operation)
}

fn unlock(files: &DomainFiles) {
    let operation = FlockOperation::NonBlockingUnlock;
    let unlock = || rustix::fs::fcntl_lock(files.record().fd(), operation);
    // Other processes wait for it.
    if let Err(errno) = retry::repeat_always(unlock) {
        let domain = files.domain;
        tracing::error!(domain, %errno, "the record of a domain stays locked by this process");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork;

    fn files() -> (tempfile::TempDir, Arc<DomainFiles>) {
        let parent = tempfile::tempdir().unwrap();
        let files = DomainFiles::open(&parent.path().join("domains"), 7, true).unwrap();
        (parent, Arc::new(files))
    }

    fn lock(files: &Arc<DomainFiles>, within: Duration) -> Result<FileLock, SetupError> {
        FileLock::wait(files, Path::new("/domains"), Deadline::after(within))
    }

    /// Far beyond what anything takes.
    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn a_descriptor_that_a_forked_child_keeps_holds_no_lock() {
        let (_parent, files) = files();
        let locked = lock(&files, PATIENCE).unwrap();
        let childs = rustix::io::dup(files.record().fd()).unwrap();
        drop(locked);
        lock(&files, PATIENCE).expect("free");
        drop(childs);
    }

    #[test]
    fn a_child_does_not_wait_for_a_thread_of_its_parent() {
        let (_parent, files) = files();
        let locked = lock(&files, PATIENCE).unwrap();
        let status = fork::in_a_child(|| (0..2).all(|_| ProcessLock::try_take().is_some()));
        drop(locked);
        assert_eq!(status, 0);
    }

    #[test]
    fn one_thread_at_a_time_has_the_lock() {
        let (_parent, files) = files();
        let inside = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let locked = lock(&files, PATIENCE).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(locked);
                    }
                });
            }
        });
    }

    /// Closing any descriptor of a file releases the process's locks on it.
    #[test]
    fn files_that_are_closed_release_no_lock_of_another_thread() {
        let (parent, files) = files();
        let again = DomainFiles::open(&parent.path().join("domains"), 7, true).unwrap();
        let locked = lock(&files, PATIENCE).unwrap();
        let closing = thread::spawn(move || drop(again));
        thread::sleep(Duration::from_millis(20));
        assert!(!closing.is_finished(), "it waits for the lock");
        drop(locked);
        closing.join().unwrap();
    }
}
