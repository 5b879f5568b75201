//! The directory of a run, which holds the `spindle.directory` of each host.
//!
//! It is removed when the run ends. A run that a signal has ended leaves its directory, which the
//! next run of the same user removes: a live run holds a lock on its own.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use spindle_dds_children::private_directory;
use tempfile::TempDir;

/// A directory that no other user can enter. Dropping it removes it.
#[derive(Debug)]
pub(super) struct RunDirectory {
    directory: TempDir,
    /// Locked.
    _lock: File,
}

impl RunDirectory {
    /// Makes one, and removes those that earlier runs have left.
    pub(super) fn new() -> io::Result<Self> {
        remove_left(&std::env::temp_dir());
        let own = format!("{PREFIX}{}-", std::process::id());
        let directory = private_directory(&own)?;
        let lock = File::open(directory.path())?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(Self {
            directory,
            _lock: lock,
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes the directories of runs that have ended. What cannot be removed stays.
fn remove_left(below: &Path) {
    let Ok(entries) = below.read_dir() else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if is_left(&path) {
            // Another run may be removing it too.
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

fn is_left(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    let run = name.as_deref().and_then(|name| name.strip_prefix(PREFIX));
    let process = run.and_then(|run| run.split_once('-'));
    let Some(process) = process.and_then(|(process, _)| process.parse::<u32>().ok()) else {
        return false;
    };
    // It may not have its lock yet.
    if Path::new("/proc").join(process.to_string()).exists() {
        return false;
    }
    let user = rustix::process::geteuid().as_raw();
    let is_own = path
        .symlink_metadata()
        .is_ok_and(|it| it.is_dir() && it.uid() == user);
    // Where processes have ids of their own, as in a container, the lock tells.
    let is_free = |file: File| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    is_own && File::open(path).is_ok_and(is_free)
}

const PREFIX: &str = "spindle-perf-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_is_removed_and_what_lives_is_not() {
        let below = private_directory("left-").expect("a directory");
        let make = |name: &str| {
            let path = below.path().join(name);
            std::fs::create_dir_all(path.join("host-0")).expect("a directory");
            path
        };
        // No process has this id: it is above the limit of the kernel.
        let ended = make("spindle-perf-4194305-a");
        let locked = make("spindle-perf-4194305-b");
        let lock = File::open(&locked).expect("a directory");
        flock(&lock, FlockOperation::LockExclusive).expect("a lock");
        let lives = make(&format!("spindle-perf-{}-c", std::process::id()));
        let other = make("spindle-other-4194305-d");
        remove_left(below.path());
        let is_there = [&ended, &locked, &lives, &other].map(|path| path.exists());
        assert_eq!(is_there, [false, true, true, true]);
    }

    #[test]
    fn it_is_there_until_it_is_dropped() {
        let directory = RunDirectory::new().expect("a directory");
        let path = directory.path().to_owned();
        assert!(path.is_dir() && !is_left(&path));
        drop(directory);
        assert!(!path.exists());
    }
}
