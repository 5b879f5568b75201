//! Waiting until threads have ended.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Waits at most `patience` until the threads have ended: a listener may wait for the calling
/// thread, which is not waited for.
pub(crate) fn join(threads: Vec<JoinHandle<()>>, patience: Duration) {
    let me = thread::current().id();
    let since = Instant::now();
    let others = threads.into_iter().filter(|it| it.thread().id() != me);
    for thread in others {
        while !thread.is_finished() && since.elapsed() < patience {
            thread::sleep(Duration::from_micros(200));
        }
        if thread.is_finished() {
            let _ = thread.join();
        }
    }
}
