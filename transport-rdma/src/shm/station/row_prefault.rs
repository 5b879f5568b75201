//! Memory for rows before it is used.
//!
//! Whoever makes the segments of a view has until a deadline: the others have begun it, and
//! wait for its heartbeat. Memory that the kernel has not found by then is found beside the
//! view, by a thread that ends with it.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use rustix::io::Errno;
use tracing::warn;

use crate::mapping::{Mapping, Populated};
use crate::peers::Rank;

/// Has a row have all its memory: as much as it can get until `deadline` when this returns, the
/// rest soon after.
pub(super) fn prefault(row: &Arc<Mapping>, rank: Rank, deadline: Instant) {
    let mut populated = Populated::default();
    match row.populate(&mut populated, || Instant::now() < deadline) {
        Ok(true) => {}
        Ok(false) => go_on(Arc::clone(row), rank, populated),
        Err(errno) => refused(rank, errno),
    }
}

fn go_on(row: Arc<Mapping>, rank: Rank, mut populated: Populated) {
    let thread = thread::Builder::new().name("spindle-prefault".into());
    let rest = move || {
        // Nobody else has it any more when its segment is gone.
        if let Err(errno) = row.populate(&mut populated, || Arc::strong_count(&row) > 1) {
            refused(rank, errno);
        }
    };
    if let Err(error) = thread.spawn(rest) {
        warn!(%rank, %error, "no thread to find the rest of a row's memory: its pages come when they are used");
    }
}

/// The row can be used nonetheless, or the first use finds out.
fn refused(rank: Rank, errno: Errno) {
    warn!(%rank, %errno, "no memory for all of a row now: its pages come when they are used");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::shm::memory::create_row;

    #[test]
    fn what_is_not_there_in_time_comes_behind() {
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
    fn nobody_finds_memory_for_a_row_that_is_gone() {
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
