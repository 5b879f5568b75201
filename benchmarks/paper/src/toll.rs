//! The cost of a thread that only sleeps for other threads: its timer and its wake-ups take
//! processor time, in a virtual machine much of it.

use std::hint::black_box;
use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::set_current_timer_slack;
use spindle_dds_tools::harness::spread::Spread;

const ROUNDS: usize = 7;
const SPAN: Duration = Duration::from_millis(60);

/// The share of their rate that counting threads, one per processor, keep beside a thread that
/// repeatedly sleeps for `pause`. Takes a second.
pub(crate) fn kept_beside_a_sleeper(pause: Duration) -> io::Result<Option<Spread>> {
    let round = |_| {
        let alone = count();
        Ok(beside_a_sleeper(pause, count)? / alone)
    };
    let rounds: io::Result<Vec<f64>> = (0..ROUNDS).map(round).collect();
    Ok(Spread::of(rounds?))
}

fn beside_a_sleeper<R>(pause: Duration, work: impl FnOnce() -> R) -> io::Result<R> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            // So that the kernel does not combine its wake-ups with others.
            set_current_timer_slack(NonZeroU64::new(1))?;
            while !is_over.load(Ordering::Relaxed) {
                thread::sleep(pause);
            }
            io::Result::Ok(())
        });
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        match sleeper.join() {
            Ok(slept) => slept.map(|()| done),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Steps per second of one thread per processor, in total.
fn count() -> f64 {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let is_over = AtomicBool::new(false);
    let begin = Instant::now();
    let counted: u64 = thread::scope(|scope| {
        let counts = || (1_u64..).find(|_| counts_on(&is_over)).unwrap_or_default();
        let counters: Vec<_> = (0..threads).map(|_| scope.spawn(counts)).collect();
        thread::sleep(SPAN);
        is_over.store(true, Ordering::Relaxed);
        counters.into_iter().filter_map(|it| it.join().ok()).sum()
    });
    counted as f64 / begin.elapsed().as_secs_f64()
}

/// Some work. Returns true when the time is over.
fn counts_on(is_over: &AtomicBool) -> bool {
    (0..100).for_each(|step| {
        black_box(step);
    });
    is_over.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_count_keep_some_of_their_rate() {
        let kept = kept_beside_a_sleeper(Duration::from_millis(1));
        let kept = kept.expect("a thread").expect("rounds");
        assert!(kept.min > 0.0, "{kept:?}");
    }
}
