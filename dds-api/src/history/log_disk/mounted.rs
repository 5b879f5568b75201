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

    /// With other options, as `size=16m` or `ro`.
    pub(crate) fn remount(&self, options: &str) {
        let mut mount = Command::new("mount");
        let mount = mount.arg("-o").arg(format!("remount,{options}"));
        let status = mount.arg(&self.0).status();
        assert!(status.expect("mount runs").success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
