//! A bound on the lines of the log that strangers cause: a few in full, then a number a minute.

use std::time::{Duration, Instant};

/// Lines in full in each period.
const LINES_MAX: u32 = 5;

const PERIOD: Duration = Duration::from_secs(60);

/// Counts lines of one kind. It begins a period with the first line, and with the first one
/// after a period.
#[derive(Debug, Default)]
pub(super) struct LogLimit {
    began: Option<Instant>,
    written: u32,
    withheld: u64,
}

impl LogLimit {
    /// Whether the next line is written; else it is counted.
    pub(super) fn admits(&mut self, now: Instant) -> bool {
        if self.began.is_none() {
            self.began = Some(now);
        }
        match self.written < LINES_MAX {
            true => self.written += 1,
            false => self.withheld += 1,
        }
        self.withheld == 0
    }

    /// When to call [`end_period`](Self::end_period).
    pub(super) fn due(&self) -> Option<Instant> {
        self.began.map(|began| began + PERIOD)
    }

    /// Ends the period if it is over; returns the number of lines withheld in it, if there are
    /// any.
    pub(super) fn end_period(&mut self, now: Instant) -> Option<u64> {
        if self.due()? > now {
            return None;
        }
        let ended = core::mem::take(self);
        (ended.withheld > 0).then_some(ended.withheld)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_lines_are_written_and_the_others_counted() {
        let (mut limit, start) = (LogLimit::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!((limit.due(), limit.end_period(start)), (None, None));
        for _ in 0..LINES_MAX {
            assert!(limit.admits(start));
        }
        for seconds in 0..7 {
            assert!(!limit.admits(at(seconds)));
        }
        assert_eq!(limit.due(), Some(at(60)));
        assert_eq!(limit.end_period(at(59)), None);
        assert_eq!(limit.end_period(at(60)), Some(7));
        // No line is due any more, and the next period begins with the next line.
        assert_eq!(limit.due(), None);
        assert!(limit.admits(at(100)));
        assert_eq!(limit.end_period(at(160)), None);
        assert_eq!(limit.due(), None);
    }
}
