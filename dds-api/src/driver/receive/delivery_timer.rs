//! Latencies of samples up to their delivery here: measured only while a monitor looks.
//!
//! It costs a reading of the clock for each delivery, so it stops some time after the last request.

use crate::monitor::Latencies;
use crate::stamps::source_timestamp;

/// Measures the time from the source timestamps of samples to their delivery.
#[derive(Debug, Default)]
pub(crate) struct DeliveryTimer {
    /// When it stops, in ns since the Unix epoch; 0 while it is stopped.
    runs_until: i64,
    own: Latencies,
    others: Latencies,
}

/// Longer than from one look of a monitor to the next.
const RUNS_FOR_NS: i64 = 10_000_000_000;

impl DeliveryTimer {
    pub(crate) fn is_running(&self) -> bool {
        self.runs_until != 0
    }

    /// Runs for a while from now on.
    pub(crate) fn run(&mut self) {
        self.runs_until = source_timestamp().saturating_add(RUNS_FOR_NS);
    }

    /// A sample with this source timestamp, in ns since the Unix epoch, is delivered.
    pub(crate) fn record(&mut self, is_own: bool, timestamp: i64) {
        self.record_at(is_own, timestamp, source_timestamp());
    }

    fn record_at(&mut self, is_own: bool, timestamp: i64, now: i64) {
        if now >= self.runs_until {
            self.runs_until = 0;
            return;
        }
        let latencies = match is_own {
            true => &mut self.own,
            false => &mut self.others,
        };
        // Clocks of two hosts may differ, and applications may give any timestamp.
        latencies.record(u64::try_from(now.saturating_sub(timestamp)).unwrap_or(0));
    }

    /// Of the samples of own writers, and of those of others.
    pub(crate) fn latencies(&self) -> [&Latencies; 2] {
        [&self.own, &self.others]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_for_a_while_after_it_was_asked() {
        let mut watch = DeliveryTimer::default();
        assert!(!watch.is_running());
        watch.run();
        assert!(watch.is_running());
        let end = watch.runs_until;
        watch.record_at(true, end - 2000, end - 1000);
        watch.record_at(false, end, end - 1000);
        let counts = |watch: &DeliveryTimer| watch.latencies().map(Latencies::count);
        assert_eq!(counts(&watch), [1, 1]);
        watch.record_at(true, end - 2000, end);
        assert!(!watch.is_running());
        assert_eq!(counts(&watch), [1, 1]);
    }
}
