//! Counters of an engine: the path of a message has these instead of logs.

use crossbeam_utils::CachePadded;
use serde::{Deserialize, Serialize};

use crate::sync::{AtomicU64, Ordering};

/// Buckets of a batch histogram.
pub const BATCH_BUCKETS: usize = 64;

/// Sizes of batches. Sizes below 16 are exact, larger ones fall into four
/// buckets an octave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct BatchHistogram {
    counts: [u64; BATCH_BUCKETS],
}

impl Default for BatchHistogram {
    fn default() -> Self {
        Self {
            counts: [0; BATCH_BUCKETS],
        }
    }
}

/// From pairs like those of [`BatchHistogram::buckets`], of any sizes.
impl From<Vec<(u64, u64)>> for BatchHistogram {
    fn from(pairs: Vec<(u64, u64)>) -> Self {
        let mut histogram = Self::default();
        for (size, batches) in pairs {
            let count = &mut histogram.counts[Self::bucket(size)];
            *count = count.saturating_add(batches);
        }
        histogram
    }
}

impl From<BatchHistogram> for Vec<(u64, u64)> {
    fn from(histogram: BatchHistogram) -> Self {
        histogram.buckets().collect()
    }
}

impl BatchHistogram {
    #[inline]
    fn bucket(size: u64) -> usize {
        if size < 16 {
            return size as usize;
        }
        let octave = 63 - size.leading_zeros() as usize;
        let quarter = (size >> (octave - 2) & 3) as usize;
        (16 + (octave - 4) * 4 + quarter).min(BATCH_BUCKETS - 1)
    }

    /// Smallest size that falls into `bucket`.
    fn floor(bucket: usize) -> u64 {
        if bucket < 16 {
            return bucket as u64;
        }
        let (octave, quarter) = ((bucket - 16) / 4 + 4, (bucket - 16) % 4);
        (4 + quarter as u64) << (octave - 2)
    }

    /// Number of batches.
    pub fn batches(&self) -> u64 {
        let counts = self.counts.iter();
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Batches since an earlier snapshot.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut counts = self.counts;
        for (count, before) in counts.iter_mut().zip(&earlier.counts) {
            *count = count.saturating_sub(*before);
        }
        Self { counts }
    }

    /// The size at quantile `q` (0 to 1): the lower end of its bucket; 0 without batches.
    pub fn quantile(&self, q: f64) -> u64 {
        let rank = (q.clamp(0.0, 1.0) * self.batches().saturating_sub(1) as f64) as u64;
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            below = count.saturating_add(below);
            if below > rank {
                return Self::floor(bucket);
            }
        }
        0
    }

    /// Pairs of (smallest size of the bucket, batches), empty buckets left out.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(bucket, count)| (Self::floor(bucket), *count))
    }
}

/// Pushes, counted once per receiver. Pushes over shared memory, which send nothing, count too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Pushes times their receivers.
    pub pushes: u64,
    /// Bytes in these pushes.
    pub bytes: u64,
}

/// A snapshot of an engine's counters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Messages published, nulls not counted.
    pub sent: u64,
    /// Bytes of their payload.
    pub sent_bytes: u64,
    /// Nulls published.
    pub nulls: u64,
    /// Messages received, own ones and nulls not counted.
    pub received: u64,
    /// Messages delivered, own ones included.
    pub delivered: u64,
    /// Bytes of their payload.
    pub delivered_bytes: u64,
    /// Calls of [`Sink::batch_end`](crate::Sink::batch_end).
    pub upcalls: u64,
    /// Pushes of payload, headers and guards.
    pub data: Traffic,
    /// Pushes of acknowledgements: received and released counts.
    pub acks: Traffic,
    /// Pushes of digests.
    pub digests: Traffic,
    /// Pushes of the view protocol, heartbeats included.
    #[serde(default)]
    pub control: Traffic,
    /// Views that this participant has begun.
    #[serde(default)]
    pub views: u64,
    /// Subgroup epochs that have begun here.
    #[serde(default)]
    pub epochs: u64,
    /// Steps that found something to do.
    pub steps: u64,
    /// Steps that found nothing.
    pub idle_steps: u64,
    /// Claims that found no room.
    pub claims_without_room: u64,
    /// Messages per publication.
    pub send_batches: BatchHistogram,
    /// Messages per receive batch, over all senders of a subgroup.
    pub receive_batches: BatchHistogram,
    /// Messages per delivery batch.
    pub delivery_batches: BatchHistogram,
}

/// [`Traffic`] as the engine counts it.
#[derive(Debug)]
pub(crate) struct LiveTraffic {
    pushes: AtomicU64,
    bytes: AtomicU64,
}

impl LiveTraffic {
    fn new() -> Self {
        Self {
            pushes: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Counts one push of `len` bytes to each of `peers` receivers.
    pub(crate) fn add(&self, peers: usize, len: usize) {
        self.add_all(peers, peers * len);
    }

    /// Counts pushes that carry `bytes` together.
    #[inline]
    pub(crate) fn add_all(&self, pushes: usize, bytes: usize) {
        bump(&self.pushes, pushes as u64);
        bump(&self.bytes, bytes as u64);
    }

    fn snapshot(&self) -> Traffic {
        Traffic {
            pushes: self.pushes.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}

/// [`Counters`] as the engine counts them. The thread that steps is the only writer, except of
/// the last field; any thread reads.
#[derive(Debug)]
pub(crate) struct LiveCounters {
    pub(crate) sent: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) nulls: AtomicU64,
    pub(crate) received: AtomicU64,
    pub(crate) delivered: AtomicU64,
    pub(crate) delivered_bytes: AtomicU64,
    pub(crate) upcalls: AtomicU64,
    pub(crate) data: LiveTraffic,
    pub(crate) acks: LiveTraffic,
    pub(crate) digests: LiveTraffic,
    pub(crate) control: LiveTraffic,
    pub(crate) views: AtomicU64,
    pub(crate) epochs: AtomicU64,
    pub(crate) steps: AtomicU64,
    pub(crate) idle_steps: AtomicU64,
    pub(crate) send_batches: LiveHistogram,
    pub(crate) receive_batches: LiveHistogram,
    pub(crate) delivery_batches: LiveHistogram,
    /// Written by all threads that claim: on a cache line of its own.
    pub(crate) claims_without_room: CachePadded<AtomicU64>,
}

/// [`BatchHistogram`] as the engine counts it.
#[derive(Debug)]
pub(crate) struct LiveHistogram(Box<[AtomicU64; BATCH_BUCKETS]>);

impl LiveHistogram {
    fn new() -> Self {
        Self(Box::new(std::array::from_fn(|_| AtomicU64::new(0))))
    }

    #[inline]
    pub(crate) fn record(&self, size: u64) {
        bump(&self.0[BatchHistogram::bucket(size)], 1);
    }

    fn snapshot(&self) -> BatchHistogram {
        let mut counts = [0; BATCH_BUCKETS];
        for (count, live) in counts.iter_mut().zip(&*self.0) {
            *count = live.load(Ordering::Relaxed);
        }
        BatchHistogram { counts }
    }
}

/// Adds to a counter that only the caller writes.
#[inline]
pub(crate) fn bump(counter: &AtomicU64, by: u64) {
    counter.store(
        counter.load(Ordering::Relaxed).wrapping_add(by),
        Ordering::Relaxed,
    );
}

impl LiveCounters {
    pub(crate) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            sent: zero(),
            sent_bytes: zero(),
            nulls: zero(),
            received: zero(),
            delivered: zero(),
            delivered_bytes: zero(),
            upcalls: zero(),
            data: LiveTraffic::new(),
            acks: LiveTraffic::new(),
            digests: LiveTraffic::new(),
            control: LiveTraffic::new(),
            views: zero(),
            epochs: zero(),
            steps: zero(),
            idle_steps: zero(),
            claims_without_room: CachePadded::new(zero()),
            send_batches: LiveHistogram::new(),
            receive_batches: LiveHistogram::new(),
            delivery_batches: LiveHistogram::new(),
        }
    }

    pub(crate) fn snapshot(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            sent: read(&self.sent),
            sent_bytes: read(&self.sent_bytes),
            nulls: read(&self.nulls),
            received: read(&self.received),
            delivered: read(&self.delivered),
            delivered_bytes: read(&self.delivered_bytes),
            upcalls: read(&self.upcalls),
            data: self.data.snapshot(),
            acks: self.acks.snapshot(),
            digests: self.digests.snapshot(),
            control: self.control.snapshot(),
            views: read(&self.views),
            epochs: read(&self.epochs),
            steps: read(&self.steps),
            idle_steps: read(&self.idle_steps),
            claims_without_room: read(&self.claims_without_room),
            send_batches: self.send_batches.snapshot(),
            receive_batches: self.receive_batches.snapshot(),
            delivery_batches: self.delivery_batches.snapshot(),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn buckets_and_quantiles() {
        for size in 0..100_000 {
            let bucket = BatchHistogram::bucket(size);
            assert!(BatchHistogram::floor(bucket) <= size);
            assert!(bucket + 1 == BATCH_BUCKETS || size < BatchHistogram::floor(bucket + 1));
        }
        let live = LiveHistogram::new();
        (1..=9).for_each(|size| live.record(size));
        live.record(1000);
        let histogram = live.snapshot();
        assert_eq!(histogram.batches(), 10);
        assert_eq!(histogram.quantile(0.5), 5);
        assert_eq!(histogram.quantile(1.0), 896);
        live.record(7);
        let more = live.snapshot().since(&histogram);
        assert_eq!(more.buckets().collect::<Vec<_>>(), [(7, 1)]);
        let pairs = Vec::from(histogram.clone());
        assert_eq!(BatchHistogram::from(pairs), histogram);
        let wild = BatchHistogram::from(vec![(u64::MAX, u64::MAX), (0, u64::MAX)]);
        assert_eq!(wild.batches(), u64::MAX);
        assert_eq!(wild.quantile(0.0), 0);
    }
}
