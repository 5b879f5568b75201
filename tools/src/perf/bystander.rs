//! A thread beside the participants that only sleeps: it shows what wake-ups alone cost them.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::clock;

/// What the sleeping thread did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Bystander {
    /// Length of each sleep.
    pub(super) pause_ns: u64,
    /// Number of wake-ups.
    pub(super) wake_ups: u64,
}

/// Does `work` while a thread of this process sleeps for `pause` again and again, if that is
/// given. The calling process is not a participant.
pub(crate) fn beside<R>(
    pause: Option<Duration>,
    work: impl FnOnce() -> R,
) -> io::Result<(R, Option<Bystander>)> {
    let Some(pause) = pause else {
        return Ok((work(), None));
    };
    let is_over = AtomicBool::new(false);
    let (done, wake_ups) = thread::scope(|scope| {
        let sleeper = scope.spawn(|| sleep_until(&is_over, pause));
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        match sleeper.join() {
            Ok(wake_ups) => (done, wake_ups),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    let bystander = Bystander {
        pause_ns: pause.as_nanos() as u64,
        wake_ups: wake_ups?,
    };
    Ok((done, Some(bystander)))
}

/// Sleeps until `is_over`; returns the number of wake-ups.
fn sleep_until(is_over: &AtomicBool, pause: Duration) -> io::Result<u64> {
    clock::minimise_timer_slack()?;
    let mut wake_ups = 0;
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(pause);
        wake_ups += 1;
    }
    Ok(wake_ups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_sleeps_as_long_as_the_work_takes() {
        let work = || thread::sleep(Duration::from_millis(20));
        let pause = Duration::from_millis(1);
        let begin = std::time::Instant::now();
        let ((), bystander) = beside(Some(pause), work).expect("a thread");
        let bystander = bystander.expect("it was there");
        assert_eq!(bystander.pause_ns, 1_000_000);
        // Each pause takes at least a millisecond.
        let wake_ups_max = begin.elapsed().as_millis() as u64;
        assert!(bystander.wake_ups <= wake_ups_max, "{bystander:?}");
        assert_eq!(beside(None, || 7).expect("no thread"), (7, None));
    }
}
