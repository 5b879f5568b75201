//! Source timestamps: the system clock, interpolated by the processor's tick counter.
//!
//! Reading the clock takes a quarter of the time of all else that a write does. So a thread
//! reads it only now and then, and adds the ticks that have passed since, for at most
//! [`LIFE_NS`]: a clock that is set or slewed is followed within that time. Each thread measures
//! the length of a tick against the clock. Without a usable counter, or while the measurement is
//! not plausible, every timestamp is read from the clock.
//!
//! ```text
//!   clock    |---------------|---------------|------     clock read: a mark
//!            mark  . . . .   mark  . .  .  . mark  .     between: mark + ticks since
//!            base                            base        far enough apart: length of a tick
//! ```
//!
//! Interpolation never makes the timestamps of a thread decrease; only a clock that is set back
//! does. The timestamps of two threads may differ by some hundred nanoseconds.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration as Span, SystemTime};

use spindle_dds_transport::ticks::Ticks;

/// Lifetime of a mark in nanoseconds: a clock that is slewed at the maximum rate (500 parts per
/// million) differs by 50 ns then.
const LIFE_NS: u64 = 100_000;
/// Minimum time between the two marks that measure the length of a tick: each mark has an error
/// of some tens of nanoseconds.
const BASE_NS: i64 = 10_000_000;
/// Maximum number of ticks that an undisturbed read of the clock takes. After a longer read, the
/// tick at which the clock was read is not known.
const MARK_TICKS: u64 = 600;
/// By how much an interpolated timestamp may be ahead of the clock.
const AHEAD_NS: i64 = 2_000;
/// Number of binary fraction digits of the length of a tick.
const FRACTION_BITS: u32 = 32;

/// The current time in nanoseconds since 1970. Makes no system call.
#[inline]
pub(crate) fn source_timestamp() -> i64 {
    thread_local! {
        static STAMPS: Stamps = const { Stamps::new() };
    }
    static TICKS: OnceLock<Option<Ticks>> = OnceLock::new();
    match *TICKS.get_or_init(Ticks::find) {
        Some(ticks) => STAMPS.with(|stamps| stamps.next(|| ticks.read(), clock)),
        None => clock(),
    }
}

/// Reads the system clock, in nanoseconds since 1970.
fn clock() -> i64 {
    // Without 128-bit arithmetic, because this may be called for each sample.
    let nanos = |span: Span| match span.as_secs() {
        seconds @ ..9_000_000_000 => {
            (seconds * 1_000_000_000 + u64::from(span.subsec_nanos())) as i64
        }
        _ => i64::MAX,
    };
    match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => nanos(since),
        Err(before) => -nanos(before.duration()),
    }
}

/// A value of the clock, and the tick at which it was read.
#[derive(Debug, Clone, Copy)]
struct Mark {
    ticks: u64,
    nanos: i64,
}

/// The timestamp source of a thread.
#[derive(Debug)]
struct Stamps {
    /// The last value of the clock.
    mark: Cell<Mark>,
    /// Lifetime of the mark in ticks; 0 while the length of a tick is not known.
    life_ticks: Cell<u64>,
    /// Length of a tick in nanoseconds, with [`FRACTION_BITS`]; 0 while it is not known.
    tick_ns: Cell<u64>,
    /// The timestamp that was returned last.
    last: Cell<i64>,
    /// The mark from which the length of a tick is measured.
    base: Cell<Option<Mark>>,
}

impl Stamps {
    const fn new() -> Self {
        Self {
            mark: Cell::new(Mark { ticks: 0, nanos: 0 }),
            life_ticks: Cell::new(0),
            tick_ns: Cell::new(0),
            last: Cell::new(i64::MIN),
            base: Cell::new(None),
        }
    }

    #[inline]
    fn next(&self, ticks: impl Fn() -> u64, clock: impl Fn() -> i64) -> i64 {
        let mark = self.mark.get();
        let passed = ticks().wrapping_sub(mark.ticks);
        let now = if passed < self.life_ticks.get() {
            mark.nanos + nanos_of(passed, self.tick_ns.get())
        } else {
            self.read_clock(ticks, clock)
        };
        let last = self.last.get();
        let now = match last.wrapping_sub(now) {
            1..=AHEAD_NS => last,
            _ => now,
        };
        self.last.set(now);
        now
    }

    /// Reads the clock, and makes a new mark if the read was undisturbed.
    #[cold]
    fn read_clock(&self, ticks: impl Fn() -> u64, clock: impl Fn() -> i64) -> i64 {
        let before = ticks();
        let nanos = clock();
        let took = ticks().wrapping_sub(before);
        if took > MARK_TICKS {
            // The read was interrupted: the next timestamp reads the clock again.
            self.life_ticks.set(0);
            return nanos;
        }
        let mark = Mark {
            ticks: before.wrapping_add(took / 2),
            nanos,
        };
        self.mark.set(mark);
        self.measure(mark);
        nanos
    }

    /// Measures the length of a tick with a new mark.
    fn measure(&self, mark: Mark) {
        let Some(base) = self.base.get() else {
            self.base.set(Some(mark));
            return;
        };
        let passed = mark.ticks.wrapping_sub(base.ticks);
        let nanos = mark.nanos.wrapping_sub(base.nanos);
        let predicted = nanos_of(passed, self.tick_ns.get());
        let is_known = self.tick_ns.get() != 0;
        let is_off = || predicted.abs_diff(nanos) > nanos as u64 / 1024 + AHEAD_NS as u64;
        if nanos < 0 || is_known && is_off() {
            // The clock was set, or the length of a tick has changed: measure anew.
            self.tick_ns.set(0);
            self.base.set(Some(mark));
        } else if nanos >= BASE_NS {
            let tick_ns = ((nanos as u128) << FRACTION_BITS) / u128::from(passed.max(1));
            self.tick_ns.set(u64::try_from(tick_ns).unwrap_or(0));
            self.base.set(Some(mark));
        }
        let life = (LIFE_NS << FRACTION_BITS).checked_div(self.tick_ns.get());
        self.life_ticks.set(life.unwrap_or(0));
    }
}

/// Converts ticks to nanoseconds. (The result wraps only beyond the lifetime of a mark.)
#[inline]
fn nanos_of(ticks: u64, tick_ns: u64) -> i64 {
    ((u128::from(ticks) * u128::from(tick_ns)) >> FRACTION_BITS) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulated tick counter and clock.
    struct World {
        ticks: Cell<u64>,
        nanos: Cell<f64>,
        /// Length of a tick in nanoseconds of the clock.
        tick_ns: Cell<f64>,
        /// Ticks that one read of the clock takes.
        read_ticks: Cell<u64>,
        /// How often the clock was read.
        reads: Cell<u64>,
        stamps: Stamps,
    }

    impl World {
        fn new() -> Self {
            Self {
                ticks: Cell::new(u64::MAX - 5_000_000),
                nanos: Cell::new(1e15),
                tick_ns: Cell::new(0.4),
                read_ticks: Cell::new(60),
                reads: Cell::new(0),
                stamps: Stamps::new(),
            }
        }

        fn pass(&self, ticks: u64) {
            self.ticks.set(self.ticks.get().wrapping_add(ticks));
            self.nanos
                .set(self.nanos.get() + ticks as f64 * self.tick_ns.get());
        }

        fn clock(&self) -> i64 {
            self.reads.set(self.reads.get() + 1);
            self.pass(self.read_ticks.get() / 2);
            let nanos = self.nanos.get() as i64;
            self.pass(self.read_ticks.get() / 2);
            nanos
        }

        /// A timestamp, and by how many nanoseconds it is ahead of the clock.
        fn next(&self) -> (i64, i64) {
            let stamp = self.stamps.next(|| self.ticks.get(), || self.clock());
            (stamp, stamp - self.nanos.get() as i64)
        }

        /// Takes a timestamp every `every` ticks. Returns the maximum error in nanoseconds, and
        /// whether a timestamp decreased.
        fn run(&self, stamps: u64, every: u64) -> (i64, bool) {
            let (mut off, mut went_back, mut last) = (0, false, i64::MIN);
            for _ in 0..stamps {
                self.pass(every);
                let (stamp, ahead) = self.next();
                off = off.max(ahead.abs());
                went_back |= stamp < last;
                last = stamp;
            }
            (off, went_back)
        }
    }

    #[test]
    fn once_the_length_of_a_tick_is_known_the_clock_is_rarely_read() {
        let world = World::new();
        // 11 ms.
        let (off, went_back) = world.run(55_000, 500);
        assert!(off < 30 && !went_back, "off by {off} ns");
        world.reads.set(0);
        // 5,000,000 timestamps in one second: 10,000 reads.
        let (off, went_back) = world.run(5_000_000, 500);
        assert!(off < 30 && !went_back, "off by {off} ns");
        assert!((9_000..=10_001).contains(&world.reads.get()));
    }

    #[test]
    fn rare_timestamps_are_read_from_the_clock() {
        let world = World::new();
        let (off, _) = world.run(1_000, 500_000);
        assert!(off < 30, "off by {off} ns");
        assert_eq!(world.reads.get(), 1_000);
    }

    #[test]
    fn a_slewed_clock_is_followed_without_decreasing_timestamps() {
        let world = World::new();
        world.run(55_000, 500);
        for tick_ns in [0.4002, 0.3998] {
            world.tick_ns.set(tick_ns);
            let (off, went_back) = world.run(500_000, 500);
            assert!(off < 150 && !went_back, "off by {off} ns");
        }
    }

    #[test]
    fn a_set_clock_is_followed_within_the_lifetime_of_a_mark() {
        let world = World::new();
        world.run(55_000, 500);
        for by in [5e6, -3e9, 1e12, 4e3] {
            world.nanos.set(world.nanos.get() + by);
            // Beyond the lifetime of the mark, 100 us.
            world.run(500, 500);
            let (off, _) = world.run(100_000, 500);
            assert!(off < 100, "off by {off} ns");
        }
    }

    #[test]
    fn the_length_of_a_tick_may_change_and_the_counter_may_jump() {
        let world = World::new();
        world.run(55_000, 500);
        world.tick_ns.set(0.8);
        world.run(500, 500);
        let (off, _) = world.run(100_000, 500);
        assert!(off < 100, "off by {off} ns");
        for jump in [u64::MAX - 1_000_000_000, 1 << 40] {
            world.ticks.set(world.ticks.get().wrapping_add(jump));
            let (off, _) = world.run(100_000, 500);
            assert!(off < 100, "off by {off} ns");
        }
    }

    #[test]
    fn slow_reads_of_the_clock_make_no_marks() {
        let world = World::new();
        world.read_ticks.set(5_000);
        let (off, _) = world.run(100_000, 500);
        assert!(off <= 1_000, "off by {off} ns");
        assert_eq!(world.reads.get(), 100_000);
    }

    #[test]
    fn a_clock_set_during_the_measurement_of_a_tick_is_followed() {
        let world = World::new();
        world.run(10_000, 500);
        world.nanos.set(world.nanos.get() + 4e6);
        world.run(60_000, 500);
        let (off, _) = world.run(100_000, 500);
        assert!(off < 100, "off by {off} ns");
    }

    #[test]
    fn timestamps_equal_the_clock_within_a_mark() {
        let ends = std::time::Instant::now() + Span::from_millis(50);
        while std::time::Instant::now() < ends {
            let (before, stamp, after) = (clock(), source_timestamp(), clock());
            let near = before - 100_000..=after + 100_000;
            assert!(near.contains(&stamp), "{before}, {stamp}, {after}");
        }
    }
}
