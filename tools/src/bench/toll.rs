//! What a thread that only sleeps takes from others: its timer and its wake-ups are the
//! processors' time too, and in a virtual machine much of it.

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::spread::Spread;
use crate::perf::beside;

const ROUNDS: usize = 7;
const SPAN: Duration = Duration::from_millis(60);

/// The part of their rate that threads keep which only count, one for each processor, beside
/// one that sleeps for `pause` at a time. Takes a second.
pub(in crate::bench) fn kept_beside_a_sleeper(pause: Duration) -> io::Result<Option<Spread>> {
    let round = |_| {
        let (alone, _) = beside(None, count)?;
        let (with, _) = beside(Some(pause), count)?;
        Ok(with / alone)
    };
    let rounds: io::Result<Vec<f64>> = (0..ROUNDS).map(round).collect();
    Ok(Spread::of(rounds?))
}

/// How far threads count in a second, all together.
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

/// Some work. Whether it is over.
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
