//! A small file system in memory, which can be full.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file system of 1 MiB. It is gone when this is dropped.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    /// `None`, with a message, where it cannot be mounted: only root mounts.
    pub(crate) fn new(at: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        let mount = mount
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(at);
        let status = mount.stderr(Stdio::null()).status();
        let is_mounted = status.is_ok_and(|it| it.success());
        if !is_mounted {
            eprintln!("skipped: a file system can be mounted by root only");
        }
        is_mounted.then(|| Self(at.to_owned()))
    }

    /// Makes room.
    pub(crate) fn grow(&self) {
        self.remount("remount,size=16m");
    }

    /// Nothing can be written any more.
    pub(crate) fn make_read_only(&self) {
        self.remount("remount,ro");
    }

    fn remount(&self, options: &str) {
        let mut mount = Command::new("mount");
        let status = mount.args(["-o", options]).arg(&self.0).status();
        assert!(status.expect("mount runs").success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
