//! Prefaulting of rows: their memory is allocated before it is used.
//!
//! The members that make the segments of a view wait for each other's heartbeat, so there is
//! a deadline. Memory that is not allocated by then is allocated by a background thread,
//! which ends with the row.

use std::sync::Arc;
use std::time::Instant;

use rustix::io::Errno;
use tracing::warn;

use crate::fabric::peers::Rank;
use crate::library_thread::LibraryThread;
use crate::memory::mapping::{Mapping, Populated};

/// Allocates a row's memory: as much as possible before `deadline`, the rest in the
/// background.
pub(super) fn prefault(row: &Arc<Mapping>, rank: Rank, deadline: Instant) {
    let mut populated = Populated::default();
    match row.populate(&mut populated, || Instant::now() < deadline) {
        Ok(true) => {}
        Ok(false) => go_on(Arc::clone(row), rank, populated),
        Err(errno) => refused(rank, errno),
    }
}

fn go_on(row: Arc<Mapping>, rank: Rank, mut populated: Populated) {
    let thread = LibraryThread::named("spindle-prefault");
    let rest = move || {
        // The row is in use as long as another reference exists.
        if let Err(errno) = row.populate(&mut populated, || Arc::strong_count(&row) > 1) {
            refused(rank, errno);
        }
    };
    if let Err(error) = thread.spawn(rest) {
        warn!(%rank, %error, "no thread to find the rest of a row's memory: its pages come when they are used");
    }
}

/// A failure is not fatal: pages are allocated at their first use.
fn refused(rank: Rank, errno: Errno) {
    warn!(%rank, %errno, "no memory for all of a row now: its pages come when they are used");
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::shm::memory::create_row;

    #[test]
    fn memory_that_misses_the_deadline_follows_later() {
        let len = 32 << 20;
        let (row, file) = create_row(len).expect("a row");
        let blocks = || rustix::fs::fstat(&file).expect("its size").st_blocks * 512;
        prefault(&row, Rank(0), Instant::now());
        let patience = Instant::now() + Duration::from_secs(60);
        while blocks() < len as i64 {
            assert!(Instant::now() < patience, "{} of {len} bytes", blocks());
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn prefaulting_of_an_unused_row_stops() {
        let (row, file) = create_row(32 << 20).expect("a row");
        let used = Arc::downgrade(&row);
        go_on(row, Rank(0), Populated::default());
        let patience = Instant::now() + Duration::from_secs(60);
        while used.strong_count() > 0 {
            assert!(Instant::now() < patience);
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(rustix::fs::fstat(&file).expect("its size").st_blocks, 0);
    }
}
