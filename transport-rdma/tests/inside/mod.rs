//! Tests and processes in namespaces of their own, as root.

use std::os::unix::fs::MetadataExt;
use std::process::Command;

/// Set in a test that runs in namespaces of its own.
const INSIDE: &str = "SPINDLE_TEST_INSIDE";

/// Starts a program as the first process of a new pid namespace, which ends with the starter.
pub(crate) const NEW_PIDS: [&str; 5] =
    ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// False, with a message, where namespaces cannot be made.
pub(crate) fn is_root() -> bool {
    let root = std::fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
    if !root {
        eprintln!("skipped: only root makes namespaces");
    }
    root
}

/// Runs test `name` again in a mount namespace of its own and returns false; true if this is
/// that run.
pub(crate) fn in_own_mounts(name: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    if is_root() {
        let this = std::env::current_exe().expect("this program");
        let mut inside = Command::new("unshare");
        inside.arg("--mount").arg(this).env(INSIDE, "1");
        inside.args(["--exact", name, "--nocapture"]);
        let done = inside.status().expect("unshare (util-linux) runs");
        assert!(done.success(), "{name} in a mount namespace");
    }
    false
}
