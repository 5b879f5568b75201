//! Counting resources while nothing comes or goes.
//!
//! The changer announces a rest by a sample of `Start`; each of the others counts, and answers
//! by a sample of `Counted`.

use std::io;
use std::time::{Duration, Instant};

use spindle_dds::{DataReader, DataWriter};

use super::device_resources::DeviceResources;
use crate::Failure;
use crate::churn::{COUNTED, Entities, START, SharedWatch, Watch, with};
use crate::exchange::Probe;
use crate::resources::Resources;
use crate::workers::participant::send;

/// How often all count; the sample of this number says that all may leave.
pub(super) const RESTS: u64 = 2;

/// The rests of a process that is told of them.
pub(super) struct Rests {
    told: SharedWatch,
    start: DataReader<Probe>,
    counted: DataWriter<Probe>,
    /// By which its samples are known.
    writer_number: u32,
    /// What it held, at each rest so far.
    held: Vec<Resources>,
}

impl Rests {
    /// For a participant that is not enabled yet.
    pub(super) fn new(entities: &Entities, writer_number: u32) -> Result<Self, Failure> {
        let told = Watch::from_first();
        Ok(Self {
            start: entities.reader(START, &told)?,
            told,
            counted: entities.writer(COUNTED)?,
            writer_number,
            held: Vec::new(),
        })
    }

    /// Counts if a rest was announced. Once all may leave, returns what was held at both rests:
    /// a process that left earlier would take what the others count.
    pub(super) fn poll(&mut self) -> Result<Option<[Resources; 2]>, Failure> {
        let told = with(&self.told, |told| {
            told.take_all(&self.start)?;
            told.check().map(|()| told.samples().0)
        })?;
        let number = self.held.len() as u64;
        if number < RESTS && told > number {
            let held = count(self.held.first(), SETTLE_WITHIN, Resources::now)?;
            self.held.push(held);
            send(&self.counted, self.writer_number, number, 0, 0)?;
        }
        match told > RESTS {
            true => Ok(self.held[..].try_into().ok()),
            false => Ok(None),
        }
    }
}

/// Counts at a rest. At the first one, waits for a count that stays the same for a while,
/// because what is on its way out still goes, and a view that begins registers its memory anew.
/// At the second one, waits until there is no more than `before`, and returns the smallest count
/// if that does not happen `within` a time.
pub(super) fn count<T: Countable>(
    before: Option<&T>,
    within: Duration,
    now: impl Fn() -> io::Result<T>,
) -> Result<T, Failure> {
    let Some(before) = before else {
        return count_settled(SETTLED_COUNTS, COUNT_EVERY, now);
    };
    let start = Instant::now();
    let mut least = now()?;
    while least.exceeds(before) && start.elapsed() <= within {
        std::thread::sleep(COUNT_EVERY);
        least = now()?.min(&least);
    }
    Ok(least)
}

/// The first count that is the same so many times in a row; the last one after
/// [`SETTLE_WITHIN`].
fn count_settled<T: Countable>(
    times: u32,
    pause: Duration,
    now: impl Fn() -> io::Result<T>,
) -> Result<T, Failure> {
    let start = Instant::now();
    let (mut last, mut same) = (now()?, 1);
    while same < times && start.elapsed() <= SETTLE_WITHIN {
        std::thread::sleep(pause);
        let held = now()?;
        same = if held == last { same + 1 } else { 1 };
        last = held;
    }
    Ok(last)
}

/// What can be counted.
pub(super) trait Countable: PartialEq {
    /// The smaller count of both, for each kind.
    fn min(&self, other: &Self) -> Self;
    /// Whether there is more than `before` of any kind.
    fn exceeds(&self, before: &Self) -> bool;
}

impl Countable for Resources {
    fn min(&self, other: &Self) -> Self {
        self.min(other)
    }

    fn exceeds(&self, before: &Self) -> bool {
        !self.excess_over(before).is_empty()
    }
}

impl Countable for DeviceResources {
    fn min(&self, other: &Self) -> Self {
        self.min(other)
    }

    fn exceeds(&self, before: &Self) -> bool {
        !self.excess_over(before).is_empty()
    }
}

const COUNT_EVERY: Duration = Duration::from_millis(200);
/// Two seconds.
const SETTLED_COUNTS: u32 = 11;
/// What is temporary has gone after this time.
pub(super) const SETTLE_WITHIN: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A view that begins has nothing registered for a moment, which must not be taken for what
    /// is held.
    #[test]
    fn a_count_of_a_moment_does_not_settle() {
        let check = |counts: &[u64], expected: u64| {
            let at = Cell::new(0);
            let now = || {
                let pinned_kib = counts[at.get()];
                at.set((at.get() + 1).min(counts.len() - 1));
                Ok(Resources {
                    pinned_kib,
                    ..Resources::default()
                })
            };
            let held = count_settled(3, Duration::ZERO, now).expect("a count");
            assert_eq!(held.pinned_kib, expected, "{counts:?}");
        };
        check(&[980], 980);
        check(&[980, 44, 980], 980);
        check(&[44, 44, 980], 980);
        check(&[980, 1_916, 1_916, 980], 980);
    }
}
