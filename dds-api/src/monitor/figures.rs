//! The figures that a participant reports.

use serde::{Deserialize, Serialize};
use spindle_dds_core::Figures;
use spindle_dds_qos::Incompatibility;
use spindle_dds_transport::hybrid::PeerPath;
use spindle_dds_transport::tcp::StreamCalls;
use spindle_dds_transport::{FabricCounters, StationTraffic};

use super::logs::TopicLogFigures;
use super::memory::MemoryFigures;
use crate::error::{Error, Result};

/// Version of the figures. It rises with every change of this file's types.
pub const VERSION: u32 = 9;

/// The state of a participant. Counters begin when it is enabled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParticipantFigures {
    /// [`VERSION`] of the participant.
    pub version: u32,
    /// Its process id.
    pub pid: u32,
    /// Its id in the group: 32 hexadecimal digits.
    pub member: String,
    /// When the figures were collected, in nanoseconds since it was enabled.
    pub taken_at_ns: u64,
    /// Number of the current view; 0 before the first.
    pub view: u64,
    /// The members of that view by rank: the first is the leader.
    pub members: Vec<MemberFigures>,
    /// The counters of its engine, and the state of its subgroups.
    pub engine: Figures,
    /// The counters of the fabric, over all subgroups.
    pub fabric: FabricCounters,
    /// What its station has sent to others of its host.
    #[serde(default)]
    pub station: StationTraffic,
    /// The system calls of its streams to other hosts, and their bytes.
    #[serde(default)]
    pub streams: StreamCalls,
    /// How often the polling thread woke up.
    pub wake_ups: u64,
    /// The topics of its writers and readers, by name.
    pub topics: Vec<TopicFigures>,
    /// History that its readers are getting.
    #[serde(default)]
    pub transfers: Vec<TransferFigures>,
    /// Its logs of PERSISTENT topics, by name.
    pub logs: Vec<TopicLogFigures>,
    /// How long its writers waited for room, by subgroup; subgroups without waits are omitted.
    pub waits: Vec<WaitFigures>,
    /// Its writers and readers that do not match one of their topic, of this or another participant.
    /// At most 256 entries.
    pub mismatches: Vec<MismatchFigures>,
    /// Pairs that do not match and that `mismatches` leaves out.
    pub unlisted_mismatches: u64,
    /// What its memory is used for, in the order of [`MemoryKind::ALL`]. These figures may be some
    /// seconds old where there are many rows: what they take is at most a fiftieth of a processor.
    ///
    /// [`MemoryKind::ALL`]: super::MemoryKind::ALL
    pub memory: Vec<MemoryFigures>,
    /// Latencies of its own samples: from the source timestamp until all members have received
    /// the sample (or, BEST_EFFORT, it was sent) and it is delivered here. Recorded only while
    /// a monitor asks.
    pub latency_own: Latencies,
    /// Latencies of the samples of other participants; between hosts as exact as the clocks.
    pub latency_others: Latencies,
}

/// A member of the group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberFigures {
    /// Its id in the group: 32 hexadecimal digits.
    pub member: String,
    /// The name of the participant.
    pub name: String,
    /// Its process id on its host.
    pub pid: u32,
    /// The id of its host: 32 hexadecimal digits.
    pub host: String,
    /// The path of samples to it; `None` for the reporting participant itself.
    #[serde(rename = "way")]
    pub path: Option<PeerPath>,
    /// Whether what goes to it over the network is encrypted. False on one host, and by RDMA.
    #[serde(default)]
    pub encrypted: bool,
}

/// A topic at one participant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicFigures {
    /// Its name.
    pub topic: String,
    /// Its subgroup.
    pub subgroup: u32,
    /// The number of its writers.
    pub writers: u32,
    /// The number of its readers.
    pub readers: u32,
    /// Samples, and changes of instance states, that the writers have published.
    pub sent: u64,
    /// Payload of these in bytes.
    pub sent_bytes: u64,
    /// Samples and changes that have arrived, summed over the readers.
    pub received: u64,
    /// Payload of these in bytes.
    pub received_bytes: u64,
    /// Readers that are full: they accept no sample before the application takes some.
    pub full_readers: u32,
    /// Samples and changes that wait in the histories of the writers (RELIABLE) to be sent.
    pub waiting: u64,
    /// What these take, in bytes.
    pub waiting_bytes: u64,
    /// Samples that are kept here for readers that come later (DURABILITY).
    #[serde(default)]
    pub kept: u64,
    /// Bytes of what is kept: 64 for each sample and change beside its payload.
    #[serde(default)]
    pub kept_bytes: u64,
}

/// History that a reader of the participant is getting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferFigures {
    /// The name of the topic.
    pub topic: String,
    /// The members that it comes from: 32 hexadecimal digits each. The participant itself is left out.
    pub donors: Vec<String>,
    /// Samples and changes that have come.
    pub samples: u64,
    /// Their bytes: 64 for each beside its payload.
    pub bytes: u64,
}

/// Writers of one participant and readers of one participant that are on one topic and do not match,
/// all for the same reason. The participants of both tell of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MismatchFigures {
    /// The name of the topic.
    pub topic: String,
    /// The member that writes: 32 hexadecimal digits.
    pub writer: String,
    /// The member that reads.
    pub reader: String,
    /// Pairs of a writer and a reader.
    pub pairs: u64,
    /// What the writers offer and the readers request, of the policies that keep them from matching.
    /// PARTITION if they have none in common.
    pub policies: Vec<Incompatibility>,
    /// Why the types do not match, if that is the reason.
    pub types: Option<String>,
}

/// Waiting of writers for room in one subgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitFigures {
    /// The subgroup.
    pub subgroup: u32,
    /// How often a writer had to wait.
    pub times: u64,
    /// Time waited in nanoseconds, over all threads, including current waits.
    pub ns: u64,
    /// Threads that are waiting.
    pub waiting: u64,
}

/// A histogram of times in nanoseconds, with four buckets for each power of two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct Latencies {
    counts: Box<[u64]>,
}

/// Four buckets for each octave from 2^2 on, and one for each smaller value.
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

    /// The lower bound of a bucket.
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

    /// The number of recorded times.
    pub fn count(&self) -> u64 {
        let counts = self.counts.iter();
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The times recorded since an earlier snapshot.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let pairs = self.counts.iter().zip(&earlier.counts);
        Self {
            counts: pairs.map(|(now, then)| now.saturating_sub(*then)).collect(),
        }
    }

    /// The quantile `q` (0 to 1) in nanoseconds: the lower bound of its bucket; `None` for an
    /// empty histogram.
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
    /// Reads the JSON of a participant.
    ///
    /// # Errors
    /// ERROR when it is invalid, or has another version.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let invalid =
            |error: serde_json::Error| Error::Error(format!("its figures are invalid: {error}"));
        let Version { version } = serde_json::from_slice(bytes).map_err(invalid)?;
        if version != VERSION {
            return Err(Error::Error(format!(
                "its figures have version {version}, but this program reads {VERSION}: use the \
                 tools of the version that it was built with"
            )));
        }
        serde_json::from_slice(bytes).map_err(invalid)
    }
}

#[cfg(test)]
mod tests {
    use spindle_dds_qos::PolicyId;

    use super::*;
    use crate::monitor::{LogCondition, MemoryKind};

    #[test]
    fn each_time_is_counted_in_its_bucket() {
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
                name: "radar".to_owned(),
                pid: 7,
                host: "01".to_owned(),
                path: None,
                encrypted: false,
            }],
            engine: Figures::default(),
            fabric: FabricCounters::default(),
            station: StationTraffic::default(),
            streams: StreamCalls::default(),
            wake_ups: 0,
            topics: vec![TopicFigures::default()],
            transfers: Vec::new(),
            logs: vec![TopicLogFigures {
                condition: LogCondition::Shut { present: 1, of: 3 },
                ..TopicLogFigures::default()
            }],
            waits: Vec::new(),
            mismatches: vec![MismatchFigures {
                policies: vec![Incompatibility {
                    policy: PolicyId::Deadline,
                    offered: "2 s".to_owned(),
                    requested: "1 s".to_owned(),
                }],
                pairs: 3,
                ..MismatchFigures::default()
            }],
            unlisted_mismatches: 0,
            memory: vec![MemoryFigures {
                kind: MemoryKind::PeerRows,
                bytes: 8192,
                resident_bytes: Some(4096),
            }],
            latency_own: vec![(10, 3)].into(),
            latency_others: Latencies::default(),
        }
    }

    #[test]
    fn figures_can_be_read_back_and_truncated_ones_are_errors() {
        let bytes = serde_json::to_vec(&example()).unwrap();
        assert_eq!(ParticipantFigures::read(&bytes).unwrap().pid, 7);
        for end in 0..bytes.len() {
            assert!(ParticipantFigures::read(&bytes[..end]).is_err(), "{end}");
        }
        let other = br#"{"version":10,"anything":true}"#;
        let error = ParticipantFigures::read(other).unwrap_err().to_string();
        assert!(error.contains("version 10"), "{error}");
    }

    /// Altered bytes are an error or other figures, and never panic.
    #[test]
    fn altered_figures_do_no_harm() {
        let bytes = serde_json::to_vec(&example()).unwrap();
        let mut read = 0;
        for at in 0..bytes.len() {
            for byte in [b'9', b'-', b'"', b'[', b'}', 0, 0xff] {
                let mut altered = bytes.clone();
                altered[at] = byte;
                read += u32::from(ParticipantFigures::read(&altered).is_ok());
            }
        }
        assert!(read > 0, "an altered number is read");
    }
}
