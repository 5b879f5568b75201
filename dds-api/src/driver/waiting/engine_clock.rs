//! The engine's time.

use std::hint;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use spindle_dds_transport::ticks::Ticks;

/// Ticks for which the time may stand still: some microseconds. The engine's timeouts are
/// milliseconds.
const STILL_TICKS: u64 = 10_000;

/// How long [`Clock::linger`] takes: about as long as it takes to send a few messages.
const LINGER: Duration = Duration::from_nanos(700);
/// The same in ticks, of which there are two to four in a nanosecond mostly.
const LINGER_TICKS: u64 = 2000;

/// Nanoseconds since it was made, exact to some microseconds. Threads that poll read it at each
/// look: it reads the system's clock only every `STILL_TICKS` of the processor's counter, if there
/// is one. It never goes back for one thread; two threads differ by those microseconds at most.
#[derive(Debug)]
pub(crate) struct Clock {
    since: Instant,
    ticks: Option<Ticks>,
    /// Ticks when the system's clock was read last, and the nanoseconds that it gave.
    asked_at: AtomicU64,
    said: AtomicU64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            since: Instant::now(),
            ticks: Ticks::find(),
            asked_at: AtomicU64::new(0),
            said: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        let Some(ticks) = self.ticks else {
            return self.ask();
        };
        let ticks = ticks.read();
        // Acquire: pairs with the release below, so `said` is of then or later.
        let passed = ticks.wrapping_sub(self.asked_at.load(Ordering::Acquire));
        if passed < STILL_TICKS {
            return self.said.load(Ordering::Relaxed);
        }
        let now = self.ask();
        // Several threads may read the clock: the latest time counts.
        let now = self.said.fetch_max(now, Ordering::Relaxed).max(now);
        self.asked_at.store(ticks, Ordering::Release);
        now
    }

    /// Spins for less than a microsecond, however long a pause instruction takes, and touches no
    /// memory.
    pub(crate) fn linger(&self) {
        match self.ticks {
            Some(ticks) => {
                let begun = ticks.read();
                while ticks.read().wrapping_sub(begun) < LINGER_TICKS {
                    hint::spin_loop();
                }
            }
            None => {
                let begun = Instant::now();
                while begun.elapsed() < LINGER {
                    hint::spin_loop();
                }
            }
        }
    }

    fn ask(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_up_with_the_clock_and_does_not_go_back() {
        let (clock, begun) = (Clock::new(), Instant::now());
        let mut before = 0;
        while begun.elapsed() < Duration::from_millis(5) {
            let least = begun.elapsed();
            let now = clock.now();
            assert!(now >= before, "{before}, then {now}");
            // However fast it counts, it does so 100 million times a second at least.
            let late = least.saturating_sub(Duration::from_nanos(now));
            assert!(late < Duration::from_micros(100), "{late:?}");
            before = now;
        }
    }

    #[test]
    fn it_lingers_by_ticks_and_without_them() {
        let with = Clock::new();
        let without = Clock {
            ticks: None,
            ..Clock::new()
        };
        for clock in [with, without] {
            let begun = Instant::now();
            (0..100).for_each(|_| clock.linger());
            // Counters count four billion times a second at most.
            assert!(begun.elapsed() >= Duration::from_micros(50), "{clock:?}");
        }
    }

    #[test]
    fn it_is_right_after_a_sleep() {
        let (clock, slept) = (Clock::new(), Duration::from_millis(3));
        let before = clock.now();
        std::thread::sleep(slept);
        let passed = Duration::from_nanos(clock.now() - before);
        assert!(passed >= slept - Duration::from_micros(100), "{passed:?}");
    }
}
