//! Source timestamps: the time of the system's clock, told by the processor's counter.
//!
//! Asking the clock takes as long as a quarter of what else a sample costs its writer. So a
//! thread asks it now and then, and counts on from what it said, for [`LIFE_NS`] at most: who
//! sets the clock, or slews it, is followed that soon. What a tick is worth the thread finds
//! out by and by, from the clock alone. Where there is no counter to go by, or anything is
//! odd about it, each timestamp is the clock's.
//!
//! ```text
//!   clock    |---------------|---------------|------     asked: a mark
//!            mark  . . . .   mark  . .  .  . mark  .     between: counted on from the mark
//!            base                            base        far enough apart: worth of a tick
//! ```
//!
//! A thread's timestamps do not go back for being counted, only where the clock does. Those of
//! two threads may be some hundred nanoseconds off from each other.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration as Span, SystemTime};

use spindle_dds_transport::ticks::Ticks;

/// How long it is counted on from a mark: a clock that is slewed at its most (500 parts in a
/// million) is off by 50 ns then.
const LIFE_NS: u64 = 100_000;
/// From how far apart the worth of a tick is taken: the marks are off by some tens of
/// nanoseconds.
const BASE_NS: i64 = 10_000_000;
/// Ticks that reading the clock takes at most, if nothing comes between: more, and it is not
/// known when it was read.
const MARK_TICKS: u64 = 600;
/// By how much a timestamp may be ahead of the clock, for having been counted.
const AHEAD_NS: i64 = 2_000;
/// Of the worth of a tick: binary places behind the point.
const PLACES: u32 = 32;

/// Now, in nanoseconds since 1970. No system call.
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

/// The system's clock, in nanoseconds since 1970.
fn clock() -> i64 {
    // Not as one number of 128 bits: this may be asked for each sample.
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

/// When the clock was asked, and what it said.
#[derive(Debug, Clone, Copy)]
struct Mark {
    ticks: u64,
    nanos: i64,
}

/// The timestamps of a thread.
#[derive(Debug)]
struct Stamps {
    mark: Cell<Mark>,
    /// Ticks that it is counted on from the mark: none while it is not known how.
    life: Cell<u64>,
    /// Nanoseconds of a tick, with so many [`PLACES`].
    worth: Cell<u64>,
    /// The last one that was given.
    last: Cell<i64>,
    /// From where the worth of a tick is measured.
    base: Cell<Option<Mark>>,
}

impl Stamps {
    const fn new() -> Self {
        Self {
            mark: Cell::new(Mark { ticks: 0, nanos: 0 }),
            life: Cell::new(0),
            worth: Cell::new(0),
            last: Cell::new(i64::MIN),
            base: Cell::new(None),
        }
    }

    #[inline]
    fn next(&self, ticks: impl Fn() -> u64, clock: impl Fn() -> i64) -> i64 {
        let mark = self.mark.get();
        let passed = ticks().wrapping_sub(mark.ticks);
        let now = if passed < self.life.get() {
            mark.nanos + nanos_of(passed, self.worth.get())
        } else {
            self.ask(ticks, clock)
        };
        let last = self.last.get();
        let now = match last.wrapping_sub(now) {
            1..=AHEAD_NS => last,
            _ => now,
        };
        self.last.set(now);
        now
    }

    /// Asks the clock, and counts on from there, if it is known how.
    #[cold]
    fn ask(&self, ticks: impl Fn() -> u64, clock: impl Fn() -> i64) -> i64 {
        let before = ticks();
        let nanos = clock();
        let took = ticks().wrapping_sub(before);
        if took > MARK_TICKS {
            // Something came between: the next one asks again.
            self.life.set(0);
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

    /// What a tick is worth, now that there is one mark more.
    fn measure(&self, mark: Mark) {
        let Some(base) = self.base.get() else {
            self.base.set(Some(mark));
            return;
        };
        let passed = mark.ticks.wrapping_sub(base.ticks);
        let nanos = mark.nanos.wrapping_sub(base.nanos);
        let said = nanos_of(passed, self.worth.get());
        let is_known = self.worth.get() != 0;
        let is_off = || said.abs_diff(nanos) > nanos as u64 / 1024 + AHEAD_NS as u64;
        if nanos < 0 || is_known && is_off() {
            // The clock was set, or a tick is not what it was: from the beginning.
            self.worth.set(0);
            self.base.set(Some(mark));
        } else if nanos >= BASE_NS {
            let worth = ((nanos as u128) << PLACES) / u128::from(passed.max(1));
            self.worth.set(u64::try_from(worth).unwrap_or(0));
            self.base.set(Some(mark));
        }
        let life = (LIFE_NS << PLACES).checked_div(self.worth.get());
        self.life.set(life.unwrap_or(0));
    }
}

/// What so many ticks are in nanoseconds. (Any number, of more ticks than are ever counted.)
#[inline]
fn nanos_of(ticks: u64, worth: u64) -> i64 {
    ((u128::from(ticks) * u128::from(worth)) >> PLACES) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A processor and a clock.
    struct World {
        ticks: Cell<u64>,
        nanos: Cell<f64>,
        /// Nanoseconds of a tick, by the clock.
        worth: Cell<f64>,
        /// Ticks that a look at the clock takes.
        look: Cell<u64>,
        asked: Cell<u64>,
        stamps: Stamps,
    }

    impl World {
        fn new() -> Self {
            Self {
                ticks: Cell::new(u64::MAX - 5_000_000),
                nanos: Cell::new(1e15),
                worth: Cell::new(0.4),
                look: Cell::new(60),
                asked: Cell::new(0),
                stamps: Stamps::new(),
            }
        }

        fn pass(&self, ticks: u64) {
            self.ticks.set(self.ticks.get().wrapping_add(ticks));
            self.nanos
                .set(self.nanos.get() + ticks as f64 * self.worth.get());
        }

        fn clock(&self) -> i64 {
            self.asked.set(self.asked.get() + 1);
            self.pass(self.look.get() / 2);
            let said = self.nanos.get() as i64;
            self.pass(self.look.get() / 2);
            said
        }

        /// A timestamp, and how far ahead of the clock it is.
        fn next(&self) -> (i64, i64) {
            let stamp = self.stamps.next(|| self.ticks.get(), || self.clock());
            (stamp, stamp - self.nanos.get() as i64)
        }

        /// One each so many ticks: how far off they were at most, and whether one went back.
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
    fn once_it_is_known_what_a_tick_is_worth_the_clock_is_asked_now_and_then() {
        let world = World::new();
        // 11 ms.
        let (off, went_back) = world.run(55_000, 500);
        assert!(off < 30 && !went_back, "off by {off} ns");
        world.asked.set(0);
        // One second, 5,000,000 of them: 10,000 looks.
        let (off, went_back) = world.run(5_000_000, 500);
        assert!(off < 30 && !went_back, "off by {off} ns");
        assert!((9_000..=10_001).contains(&world.asked.get()));
    }

    #[test]
    fn who_asks_seldom_is_told_by_the_clock() {
        let world = World::new();
        let (off, _) = world.run(1_000, 500_000);
        assert!(off < 30, "off by {off} ns");
        assert_eq!(world.asked.get(), 1_000);
    }

    #[test]
    fn a_clock_that_is_slewed_is_followed_and_none_goes_back_for_it() {
        let world = World::new();
        world.run(55_000, 500);
        for worth in [0.4002, 0.3998] {
            world.worth.set(worth);
            let (off, went_back) = world.run(500_000, 500);
            assert!(off < 150 && !went_back, "off by {off} ns");
        }
    }

    #[test]
    fn a_clock_that_is_set_is_followed_within_the_life_of_a_mark() {
        let world = World::new();
        world.run(55_000, 500);
        for by in [5e6, -3e9, 1e12, 4e3] {
            world.nanos.set(world.nanos.get() + by);
            // 100 us at most, and then at once.
            world.run(500, 500);
            let (off, _) = world.run(100_000, 500);
            assert!(off < 100, "off by {off} ns");
        }
    }

    #[test]
    fn what_a_tick_is_may_change_and_the_counter_jump() {
        let world = World::new();
        world.run(55_000, 500);
        world.worth.set(0.8);
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
    fn where_it_is_not_known_when_the_clock_was_read_it_is_asked_each_time() {
        let world = World::new();
        world.look.set(5_000);
        let (off, _) = world.run(100_000, 500);
        assert!(off <= 1_000, "off by {off} ns");
        assert_eq!(world.asked.get(), 100_000);
    }

    #[test]
    fn the_clock_was_set_while_the_worth_of_a_tick_was_measured() {
        let world = World::new();
        world.run(10_000, 500);
        world.nanos.set(world.nanos.get() + 4e6);
        world.run(60_000, 500);
        let (off, _) = world.run(100_000, 500);
        assert!(off < 100, "off by {off} ns");
    }

    #[test]
    fn timestamps_are_those_of_the_clock() {
        let ends = std::time::Instant::now() + Span::from_millis(50);
        while std::time::Instant::now() < ends {
            let (before, stamp, after) = (clock(), source_timestamp(), clock());
            let near = before - 100_000..=after + 100_000;
            assert!(near.contains(&stamp), "{before}, {stamp}, {after}");
        }
    }
}
