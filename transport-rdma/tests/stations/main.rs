//! Stations of real processes: connections, segments, deaths, invalid connections, and the
//! domain's record.

mod broadcast;
mod child;
mod connections;
mod deaths;
mod files;
#[path = "../fork/mod.rs"]
mod fork;
#[path = "../inside/mod.rs"]
mod inside;
mod namespaces;
mod record;
mod segments;
mod strangers;

use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

fn directory() -> TempDir {
    let mine = std::fs::Permissions::from_mode(0o700);
    tempfile::Builder::new()
        .permissions(mine)
        .tempdir()
        .expect("a directory")
}
