//! What all participants share: the directory in which they meet, and the processors.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use spindle_dds_children::private_directory;
use tempfile::TempDir;

/// A directory, on a file system of its own where this process may mount one.
#[derive(Debug)]
pub(super) struct Directory {
    directory: TempDir,
    is_mounted: bool,
}

impl Directory {
    pub(super) fn make() -> io::Result<Self> {
        let directory = private_directory("soak-")?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=16m,mode=700", "tmpfs"]);
        let mounted = mount.arg(directory.path()).output();
        Ok(Self {
            is_mounted: mounted.is_ok_and(|it| it.status.success()),
            directory,
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Whether it can be filled without harm to others.
    pub(super) fn can_be_filled(&self) -> bool {
        self.is_mounted
    }

    /// Writes until nothing fits any more. [`empty`](Self::empty) ends that.
    pub(super) fn fill(&self) -> io::Result<()> {
        let mut file = File::create(self.filler())?;
        let bytes = [0; 4096];
        loop {
            match file.write_all(&bytes) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn empty(&self) -> io::Result<()> {
        std::fs::remove_file(self.filler())
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.is_mounted {
            let _ = Command::new("umount")
                .arg("--lazy")
                .arg(self.path())
                .output();
        }
    }
}

/// Threads that are always busy, two for each processor, until it is dropped.
#[derive(Debug)]
pub(super) struct Hog {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Hog {
    pub(super) fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let thread = |_| {
            let is_over = is_over.clone();
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        Self {
            threads: (0..2 * processors).map(thread).collect(),
            is_over,
        }
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
