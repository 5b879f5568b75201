//! What a participant tells of itself.

use serde::{Deserialize, Serialize};
use spindle_dds_core::Figures;
use spindle_dds_transport::FabricCounters;
use spindle_dds_transport::hybrid::PeerPath;

use crate::error::{Error, Result};

/// Rises with every change of what stands in here.
pub const VERSION: u32 = 1;

/// How a participant stands. What is counted is counted since it was enabled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParticipantFigures {
    /// [`VERSION`] of who tells it.
    pub version: u32,
    /// Its process.
    pub pid: u32,
    /// Its name in the group: 32 hexadecimal digits.
    pub member: String,
    /// When this was gathered, in nanoseconds since it was enabled.
    pub taken_at_ns: u64,
    /// Number of the view that began last; 0 before the first.
    pub view: u64,
    /// The members of that view by rank: the first leads.
    pub members: Vec<MemberFigures>,
    /// What its engine has done, and how its epochs stand.
    pub engine: Figures,
    /// What the fabric has done, over all its epochs.
    pub fabric: FabricCounters,
    /// Times that the polling thread woke up.
    pub wake_ups: u64,
    /// The topics of its writers and readers, by name.
    pub topics: Vec<TopicFigures>,
    /// Waiting of its writers for room, by subgroup; those where none has waited are left out.
    pub waits: Vec<WaitFigures>,
    /// Of its own samples: from their source timestamps to when they have been received by
    /// all (or, BEST_EFFORT, sent) and are delivered here. Only while somebody looks.
    pub latency_own: Latencies,
    /// The same of the samples of others. From other hosts it is as right as the clocks are.
    pub latency_others: Latencies,
}

/// A member of the group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberFigures {
    /// Its name in the group: 32 hexadecimal digits.
    pub member: String,
    /// Its process, on its host.
    pub pid: u32,
    /// Its host: 32 hexadecimal digits.
    pub host: String,
    /// How samples go there; `None` of who tells it itself.
    pub way: Option<PeerPath>,
}

/// A topic at one participant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicFigures {
    /// Its name.
    pub topic: String,
    /// Its subgroup.
    pub subgroup: u32,
    /// Writers that are there.
    pub writers: u32,
    /// Readers that are there.
    pub readers: u32,
    /// Samples, and changes of instances, that they have published.
    pub sent: u64,
    /// Bytes of their payload.
    pub sent_bytes: u64,
    /// The same that has arrived, over all readers.
    pub received: u64,
    /// Bytes of their payload.
    pub received_bytes: u64,
    /// Readers that take nothing more before the application takes from them.
    pub full_readers: u32,
}

/// Waiting of writers for room in one subgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitFigures {
    /// Which.
    pub subgroup: u32,
    /// How often a writer had to wait.
    pub times: u64,
    /// Nanoseconds, over all threads, of those that wait now as well.
    pub ns: u64,
    /// Threads that wait now.
    pub waiting: u64,
}

/// A distribution of times: four buckets to each power of two of nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct Latencies {
    counts: Box<[u64]>,
}

/// Four for each octave from 2^2 on; what is below has one each.
const BUCKETS: usize = 4 + 62 * 4;

impl Default for Latencies {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS].into(),
        }
    }
}

/// Pairs of (nanoseconds, samples).
impl From<Vec<(u64, u64)>> for Latencies {
    fn from(pairs: Vec<(u64, u64)>) -> Self {
        let mut latencies = Self::default();
        for (ns, samples) in pairs {
            let count = &mut latencies.counts[Self::bucket(ns)];
            *count = count.saturating_add(samples);
        }
        latencies
    }
}

impl From<Latencies> for Vec<(u64, u64)> {
    fn from(latencies: Latencies) -> Self {
        let counts = latencies.counts.iter().enumerate();
        let filled = counts.filter(|(_, count)| **count > 0);
        filled
            .map(|(bucket, count)| (Latencies::floor(bucket), *count))
            .collect()
    }
}

impl Latencies {
    fn bucket(ns: u64) -> usize {
        if ns < 4 {
            return ns as usize;
        }
        let octave = ns.ilog2() as usize;
        4 + (octave - 2) * 4 + (ns >> (octave - 2) & 3) as usize
    }

    /// Least time of a bucket.
    fn floor(bucket: usize) -> u64 {
        if bucket < 4 {
            return bucket as u64;
        }
        let (octave, quarter) = ((bucket - 4) / 4, (bucket - 4) % 4);
        (4 + quarter as u64) << octave
    }

    pub(crate) fn record(&mut self, ns: u64) {
        self.counts[Self::bucket(ns)] += 1;
    }

    /// How many times are in it.
    pub fn count(&self) -> u64 {
        let counts = self.counts.iter();
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// What has come since an earlier distribution.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let pairs = self.counts.iter().zip(&earlier.counts);
        Self {
            counts: pairs.map(|(now, then)| now.saturating_sub(*then)).collect(),
        }
    }

    /// The nanoseconds below which a part `q` (0 to 1) lies, to a quarter of a power of two;
    /// `None` when there are no times in it.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let rank = (q.clamp(0.0, 1.0) * self.count().saturating_sub(1) as f64) as u64;
        let mut below = 0_u64;
        for (bucket, count) in self.counts.iter().enumerate() {
            below = below.saturating_add(*count);
            if below > rank {
                return Some(Self::floor(bucket));
            }
        }
        None
    }
}

impl ParticipantFigures {
    /// Reads what a participant has told, in JSON.
    ///
    /// # Errors
    /// ERROR when it makes no sense, or is of another version.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let nonsense = |error: serde_json::Error| {
            Error::Error(format!("it told what makes no sense: {error}"))
        };
        let Version { version } = serde_json::from_slice(bytes).map_err(nonsense)?;
        if version != VERSION {
            return Err(Error::Error(format!(
                "it tells version {version} of its figures, and {VERSION} is understood here: use \
                 tools of the version that it was built with"
            )));
        }
        serde_json::from_slice(bytes).map_err(nonsense)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_their_buckets() {
        let mut before = 0;
        for bucket in 0..BUCKETS {
            let floor = Latencies::floor(bucket);
            assert_eq!(Latencies::bucket(floor), bucket);
            assert!(bucket == 0 || floor > before);
            before = floor;
        }
        assert_eq!(Latencies::bucket(u64::MAX), BUCKETS - 1);
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(0.5), None);
        (1..=100).for_each(|ns| latencies.record(ns * 1000));
        let earlier = latencies.clone();
        latencies.record(1_000_000);
        assert_eq!(latencies.quantile(0.5), Some(49_152));
        assert_eq!(latencies.since(&earlier).quantile(0.0), Some(917_504));
        let pairs = Vec::from(latencies.clone());
        assert_eq!(Latencies::from(pairs), latencies);
    }

    fn example() -> ParticipantFigures {
        ParticipantFigures {
            version: VERSION,
            pid: 7,
            member: "00".to_owned(),
            taken_at_ns: 1,
            view: 3,
            members: vec![MemberFigures {
                member: "00".to_owned(),
                pid: 7,
                host: "01".to_owned(),
                way: None,
            }],
            engine: Figures::default(),
            fabric: FabricCounters::default(),
            wake_ups: 0,
            topics: vec![TopicFigures::default()],
            waits: Vec::new(),
            latency_own: vec![(10, 3)].into(),
            latency_others: Latencies::default(),
        }
    }

    #[test]
    fn what_is_told_is_read() {
        let bytes = serde_json::to_vec(&example()).unwrap();
        assert_eq!(ParticipantFigures::read(&bytes).unwrap().pid, 7);
        for end in 0..bytes.len() {
            assert!(ParticipantFigures::read(&bytes[..end]).is_err(), "{end}");
        }
        let other = br#"{"version":9,"anything":true}"#;
        let error = ParticipantFigures::read(other).unwrap_err().to_string();
        assert!(error.contains("version 9"), "{error}");
    }

    /// Whatever stands there, it is an error or figures.
    #[test]
    fn what_is_altered_harms_nobody() {
        let bytes = serde_json::to_vec(&example()).unwrap();
        let mut read = 0;
        for at in 0..bytes.len() {
            for byte in [b'9', b'-', b'"', b'[', b'}', 0, 0xff] {
                let mut altered = bytes.clone();
                altered[at] = byte;
                read += u32::from(ParticipantFigures::read(&altered).is_ok());
            }
        }
        assert!(read > 0, "a number may be another one");
    }
}
