//! Plain writers: what the same bytes, with as many syncs, take without any middleware.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::Instant;

use super::run_directory::RunDirectory;

/// What one file gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) bytes: u64,
    /// Calls of `fdatasync`, at even intervals and after the last byte.
    pub(super) syncs: u64,
}

/// Writes all files at once, each with a thread, in a new directory beside those of the runs. Returns the
/// seconds until all are on disk.
pub(super) fn write(loads: &[Load]) -> io::Result<f64> {
    let directory = RunDirectory::new()?;
    let begun = Instant::now();
    thread::scope(|scope| {
        let threads = loads.iter().enumerate().map(|(number, load)| {
            let path = directory.path().join(format!("plain-{number}"));
            scope.spawn(move || write_one(&path, *load))
        });
        let threads: Vec<_> = threads.collect();
        threads
            .into_iter()
            .try_for_each(|thread| match thread.join() {
                Ok(written) => written,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })?;
    Ok(begun.elapsed().as_secs_f64())
}

fn write_one(path: &Path, load: Load) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    let piece = vec![0x5a; usize::try_from(load.bytes).map_or(WRITE_LEN, |it| it.min(WRITE_LEN))];
    let syncs = load.syncs.max(1);
    let mut written = 0;
    for sync in 1..=syncs {
        let until = u128::from(load.bytes) * u128::from(sync) / u128::from(syncs);
        let until = u64::try_from(until).unwrap_or(load.bytes);
        while written < until {
            let len = (until - written).min(piece.len() as u64);
            file.write_all(&piece[..len as usize])?;
            written += len;
        }
        file.sync_data()?;
    }
    Ok(())
}

/// Bytes of one write at most: as many as a log appends at a time.
const WRITE_LEN: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let check = |bytes, syncs| {
            let path = directory.path().join(format!("{bytes}-{syncs}"));
            write_one(&path, Load { bytes, syncs }).expect("written");
            assert_eq!(path.metadata().expect("a file").len(), bytes);
        };
        check(0, 0);
        check(1, 3);
        check(1000, 7);
        check((2 << 20) + 1, 1);
    }
}
