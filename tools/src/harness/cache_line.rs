//! The time that a cache line takes from one processor to another.
//!
//! All data between processes moves this way, so this time bounds any middleware on the machine.
//! In a virtual machine it changes while the machine runs, when the host moves its processors.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::spread::Spread;

/// Nanoseconds that a line takes one way between the first two processors of this process: a
/// median, measured in about 20 ms. `None` if there is one processor, or the processors are too
/// busy.
pub fn line_ns() -> Option<f64> {
    let (here, there) = two_processors()?;
    let line = Line::default();
    let over = AtomicBool::new(false);
    let chunks = thread::scope(|scope| {
        let answers = thread::Builder::new().spawn_scoped(scope, || {
            if pin(there) {
                line.answer(&over);
            }
        });
        // New threads inherit the affinity of a thread, so the calling thread is not pinned.
        let asks = thread::Builder::new().spawn_scoped(scope, || match pin(here) {
            true => line.ask(Instant::now() + PATIENCE),
            false => Vec::new(),
        });
        let chunks = asks.ok().and_then(|asks| asks.join().ok());
        over.store(true, Ordering::Relaxed);
        drop(answers);
        chunks
    })?;
    Some(Spread::of(chunks)?.median)
}

/// [`line_ns`] just before a run, and just after it.
pub type Around = (f64, f64);

/// Whether a cache line took nearly the same time around all of these runs. Otherwise some ran
/// on processors closer together than others, and the runs cannot be compared.
pub fn are_alike(around: impl Iterator<Item = Around>) -> bool {
    let times: Vec<f64> = around.flat_map(|(before, after)| [before, after]).collect();
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    times.iter().all(|time| *time <= least * ALIKE)
}

/// A word alone in its cache line and the line that is prefetched with it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line(AtomicU64);

impl Line {
    /// Sends the line back and forth until `until`. Returns the nanoseconds of one way for each
    /// chunk of round trips.
    fn ask(&self, until: Instant) -> Vec<f64> {
        let mut chunks = Vec::new();
        let mut next = 1;
        let mut begun = Instant::now();
        loop {
            self.0.store(next, Ordering::Release);
            // The answer to a number is the next one.
            let mut spins = 0_u32;
            while self.0.load(Ordering::Acquire) != next + 1 {
                spin_loop();
                spins += 1;
                if spins.is_multiple_of(SPINS) && Instant::now() > until {
                    return chunks;
                }
            }
            next += 2;
            if (next / 2) % CHUNK == 0 {
                let now = Instant::now();
                chunks.push((now - begun).as_nanos() as f64 / (2 * CHUNK) as f64);
                if now > until || chunks.len() == CHUNKS {
                    return chunks;
                }
                begun = Instant::now();
            }
        }
    }

    fn answer(&self, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            let asked = self.0.load(Ordering::Acquire);
            match asked % 2 {
                1 => self.0.store(asked + 1, Ordering::Release),
                _ => spin_loop(),
            }
        }
    }
}

fn two_processors() -> Option<(usize, usize)> {
    let allowed = sched_getaffinity(None).ok()?;
    let mut allowed = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    Some((allowed.next()?, allowed.next()?))
}

/// Pins the calling thread to one processor. True on success.
fn pin(cpu: usize) -> bool {
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only).is_ok()
}

/// Greatest ratio of two times that are nearly the same.
const ALIKE: f64 = 1.5;
/// Round trips that are timed together.
const CHUNK: u64 = 200;
const CHUNKS: usize = 100;
/// Spins between two reads of the clock.
const SPINS: u32 = 1 << 10;
const PATIENCE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_some_time_between_two_processors() {
        match (two_processors(), line_ns()) {
            (None, found) => assert_eq!(found, None),
            // On a busy machine it may not get there in time.
            (Some((here, there)), found) => {
                assert_ne!(here, there);
                // Only a line that does not move takes less than a nanosecond.
                assert!(found.is_none_or(|ns| ns > 1.0), "{found:?}");
            }
        }
    }
}
