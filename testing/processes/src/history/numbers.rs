//! Whether a reader has all samples of each writer, once each, in order.

use std::collections::BTreeMap;

/// The number of the next sample of each writer. The first is 0: writers keep all.
#[derive(Debug, Default)]
pub(super) struct Numbers(BTreeMap<u32, u64>);

/// A sample that is not the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Jump {
    writer: u32,
    found: u64,
    expected: u64,
}

impl Numbers {
    /// Takes the next sample of a writer.
    pub(super) fn take(&mut self, writer: u32, number: u64) -> Result<(), Jump> {
        let next = self.0.entry(writer).or_default();
        if number != *next {
            return Err(Jump {
                writer,
                found: number,
                expected: *next,
            });
        }
        *next += 1;
        Ok(())
    }

    /// Whether it has so many samples of each writer. More than that are an error of the caller.
    pub(super) fn has(&self, samples: &BTreeMap<u32, u64>) -> bool {
        let taken = |writer| self.0.get(writer).copied().unwrap_or(0);
        samples
            .iter()
            .all(|(writer, count)| taken(writer) >= *count)
    }
}

impl Jump {
    /// Samples between that one and the one before it.
    pub(super) fn lost(self) -> u64 {
        self.found.saturating_sub(self.expected)
    }

    /// Samples from that one on that came before.
    pub(super) fn twice(self) -> u64 {
        self.expected.saturating_sub(self.found)
    }

    pub(super) fn describe(self, has_history: bool) -> String {
        let Self {
            writer,
            found,
            expected,
        } = self;
        let when = if has_history { "live" } else { "in history" };
        format!("sample {found} of writer {writer} came {when}, and {expected} is next")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_too_few_or_too_many_is_found() {
        let mut numbers = Numbers::default();
        for number in 0..3 {
            assert_eq!(numbers.take(7, number), Ok(()));
        }
        assert_eq!(numbers.take(8, 0), Ok(()));
        let jump = |numbers: &mut Numbers, number| numbers.take(7, number).unwrap_err();
        let ahead = jump(&mut numbers, 5);
        assert_eq!((ahead.lost(), ahead.twice()), (2, 0));
        let again = jump(&mut numbers, 1);
        assert_eq!((again.lost(), again.twice()), (0, 2));
        let text = "sample 1 of writer 7 came in history, and 3 is next";
        assert_eq!(again.describe(false), text);
        // The first sample is due as well.
        assert_eq!(numbers.take(9, 4).unwrap_err().lost(), 4);
        assert!(numbers.has(&BTreeMap::from([(7, 3), (8, 1)])));
        assert!(!numbers.has(&BTreeMap::from([(7, 4)])));
        assert!(!numbers.has(&BTreeMap::from([(10, 1)])));
    }
}
