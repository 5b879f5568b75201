//! Figures in a form that can be printed, and sent from process to process.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use spindle_dds::{ParticipantCounters, StreamCalls};

/// A distribution of batch sizes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Batches {
    pub(super) batches: u64,
    pub(super) p50: u64,
    pub(super) p99: u64,
    pub(super) max: u64,
    /// For each bucket, its smallest size and the number of batches in it.
    pub(super) buckets: Vec<(u64, u64)>,
}

/// Counters of a participant's engine and fabric.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) nulls: u64,
    pub(super) received: u64,
    pub(super) delivered: u64,
    pub(super) upcalls: u64,
    pub(super) claims_without_room: u64,
    /// Steps of the engine that made progress, and those that did not.
    pub(super) steps: u64,
    pub(super) idle_steps: u64,
    /// Announcements that it sleeps.
    pub(super) sleeps: u64,
    pub(super) wake_ups: u64,
    pub(super) wakes_without_work: u64,
    /// Wake-ups sent to sleeping participants.
    pub(super) peer_wakes: u64,
    /// System calls for them, in shared memory.
    pub(super) wake_calls: u64,
    pub(super) pushes: u64,
    /// Pushed bytes of payload, headers and guards.
    pub(super) data_bytes_pushed: u64,
    /// Pushed bytes of acknowledgements.
    pub(super) ack_bytes_pushed: u64,
    /// System calls of streams to other hosts.
    pub(super) streams: StreamCalls,
    pub(super) send_batch: Batches,
    pub(super) receive_batch: Batches,
    pub(super) delivery_batch: Batches,
}

impl From<&ParticipantCounters> for Counts {
    fn from(counters: &ParticipantCounters) -> Self {
        let (engine, fabric) = (&counters.engine, &counters.fabric);
        macro_rules! batches {
            ($histogram:expr) => {
                Batches {
                    batches: $histogram.batches(),
                    p50: $histogram.quantile(0.5),
                    p99: $histogram.quantile(0.99),
                    max: $histogram.quantile(1.0),
                    buckets: $histogram.buckets().collect(),
                }
            };
        }
        Self {
            sent: engine.sent,
            sent_bytes: engine.sent_bytes,
            nulls: engine.nulls,
            received: engine.received,
            delivered: engine.delivered,
            upcalls: engine.upcalls,
            claims_without_room: engine.claims_without_room,
            steps: engine.steps,
            idle_steps: engine.idle_steps,
            sleeps: fabric.sleeps,
            wake_ups: counters.wake_ups,
            wakes_without_work: counters.wakes_without_work,
            peer_wakes: fabric.peer_wakes,
            wake_calls: fabric.wake_calls,
            pushes: fabric.pushes + fabric.word_pushes,
            data_bytes_pushed: engine.data.bytes,
            ack_bytes_pushed: engine.acks.bytes,
            streams: counters.streams,
            send_batch: batches!(engine.send_batches),
            receive_batch: batches!(engine.receive_batches),
            delivery_batch: batches!(engine.delivery_batches),
        }
    }
}

/// A histogram as a worker sends it: pairs of nanoseconds and counts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Latencies(Vec<(u64, u64)>);

impl From<&Histogram<u64>> for Latencies {
    fn from(histogram: &Histogram<u64>) -> Self {
        let values = histogram.iter_recorded();
        Self(
            values
                .map(|value| (value.value_iterated_to(), value.count_at_value()))
                .collect(),
        )
    }
}

impl Latencies {
    pub(super) fn add_to(&self, histogram: &mut Histogram<u64>) {
        for (value, count) in &self.0 {
            histogram.saturating_record_n(*value, *count);
        }
    }
}

/// Quantiles of a distribution of times, in nanoseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Quantiles {
    pub(super) min: u64,
    pub(super) p50: u64,
    pub(super) p90: u64,
    pub(super) p99: u64,
    pub(super) p999: u64,
    pub(super) max: u64,
}

impl From<&Histogram<u64>> for Quantiles {
    fn from(histogram: &Histogram<u64>) -> Self {
        Self {
            min: histogram.min(),
            p50: histogram.value_at_quantile(0.5),
            p90: histogram.value_at_quantile(0.9),
            p99: histogram.value_at_quantile(0.99),
            p999: histogram.value_at_quantile(0.999),
            max: histogram.max(),
        }
    }
}

/// A histogram for times from a nanosecond to a minute, with three digits.
pub(super) fn histogram() -> Result<Histogram<u64>, hdrhistogram::CreationError> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3)
}

/// The histograms of several workers as one.
pub(super) fn merged<'a>(
    parts: impl IntoIterator<Item = &'a Latencies>,
) -> Result<Histogram<u64>, hdrhistogram::CreationError> {
    let mut whole = histogram()?;
    for part in parts {
        part.add_to(&mut whole);
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_survives_json() {
        let mut histogram = histogram().expect("bounds");
        for value in [10, 10, 2_000, 3_000_000] {
            histogram.record(value).expect("in bounds");
        }
        let sent = Latencies::from(&histogram);
        let line = serde_json::to_string(&sent).expect("JSON");
        let received: Latencies = serde_json::from_str(&line).expect("JSON");
        let whole = merged([&received, &received]).expect("bounds");
        assert_eq!((whole.len(), whole.min()), (8, 10));
        assert_eq!(whole.value_at_quantile(0.5), 10);
    }
}
