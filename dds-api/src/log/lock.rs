//! One process at a time writes the logs of a domain below a `spindle.log.directory`.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The file that is locked.
const FILE: &str = "lock";

/// Another process may look for a moment whether the directory is in use.
const TRIES: usize = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// The logs of a domain below a `spindle.log.directory` are this process's to write, until this is
/// dropped.
#[derive(Debug)]
pub struct LogLock {
    _file: File,
    directory: PathBuf,
}

impl LogLock {
    /// `directory`: see [`LogPlace::domain_directory`](super::LogPlace::domain_directory). `None`: another
    /// process has it.
    ///
    /// # Errors
    /// The file cannot be made or locked.
    pub fn acquire(directory: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true);
        let file = file.open(directory.join(FILE))?;
        for left in (0..TRIES).rev() {
            match file.try_lock() {
                Ok(()) => {
                    return Ok(Some(Self {
                        _file: file,
                        directory: directory.to_owned(),
                    }));
                }
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if left > 0 => thread::sleep(BETWEEN_TRIES),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        Ok(None)
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether a process has it. Changes nothing.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn is_held(directory: &Path) -> io::Result<bool> {
        let file = match File::open(directory.join(FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_a_directory() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path();
        assert!(!LogLock::is_held(directory).unwrap());
        let lock = LogLock::acquire(directory).unwrap();
        assert!(lock.is_some());
        assert!(LogLock::is_held(directory).unwrap());
        assert!(LogLock::acquire(directory).unwrap().is_none());
        drop(lock);
        assert!(!LogLock::is_held(directory).unwrap());
        assert!(LogLock::acquire(directory).unwrap().is_some());
    }
}
