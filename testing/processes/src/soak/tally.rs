//! What one reader gets: each sample of a writer once, in order, and no gap but for an outage.

use std::collections::BTreeMap;

/// What came of each writer of a topic.
#[derive(Debug, Default)]
pub(super) struct Tally {
    writers: BTreeMap<u32, OfWriter>,
    /// Samples between those that came.
    pub(super) missing: u64,
}

#[derive(Debug, Default)]
struct OfWriter {
    last: u64,
    gaps: u32,
}

impl Tally {
    /// A sample has come, to a participant that has lost its group so often. Fails if it was there
    /// before, or if samples before it are missing for no reason.
    pub(super) fn add(&mut self, writer: u32, number: u64, outages: u32) -> Result<(), String> {
        let Some(known) = self.writers.get_mut(&writer) else {
            let first = OfWriter {
                last: number,
                gaps: 0,
            };
            self.writers.insert(writer, first);
            return Ok(());
        };
        let last = std::mem::replace(&mut known.last, number);
        if number <= last {
            return Err(format!(
                "sample {number} of writer {writer} came again after {last}"
            ));
        }
        if number > last + 1 {
            self.missing += number - last - 1;
            known.gaps += 1;
            if known.gaps > outages {
                return Err(format!(
                    "after sample {last} of writer {writer} came {number}, with {outages} outages \
                     in all"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_needs_an_outage_and_nothing_comes_twice() {
        let mut tally = Tally::default();
        let mut check = |writer: u32, number: u64, outages: u32, expected: bool| {
            let found = tally.add(writer, number, outages);
            assert_eq!(found.is_ok(), expected, "{found:?}");
        };
        check(1, 5, 0, true);
        check(1, 6, 0, true);
        check(2, 1, 0, true);
        check(1, 8, 0, false);
        check(2, 4, 1, true);
        check(2, 6, 1, false);
        check(2, 6, 1, false);
        check(2, 5, 1, false);
        assert_eq!(tally.missing, 4);
    }
}
