//! Where the participants of a run wait for each other.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::thread;
use std::time::Duration;

use super::job::Job;

/// Waits until all participants, but for the outsider, have called this with the same name.
pub(super) fn wait(job: &Job, name: &str) -> io::Result<()> {
    let all = job.participants - u32::from(job.outsider.is_some());
    let directory = job.directory.with_file_name(format!("wait-{name}"));
    DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(&directory)?;
    File::create(directory.join(job.role.to_string()))?;
    while directory.read_dir()?.count() < all as usize {
        thread::sleep(LOOK_AGAIN_AFTER);
    }
    Ok(())
}

const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(2);
