//! What a log says of itself: its head and its superblock.
//!
//! ```text
//!   0  magic, 8 bytes   8  version   12  length of what follows   16  postcard   CRC32C of all before
//! ```
//!
//! Each is replaced as a whole: a new file is written, synced and renamed, and the directory synced.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::super::history::HistoryLimits;
use super::super::roster::{LogId, Roster};
use super::error::LogError;
use super::topic_log::LastRecord;

/// Name of the superblock's file.
pub(super) const SUPERBLOCK: &str = "superblock";
/// Name of the head's file.
pub(super) const HEAD: &str = "head";
/// Ends the name of a file that is not finished.
pub(super) const UNFINISHED: &str = ".new";

/// Length of the longest superblock or head that is read.
const LEN_MAX: u64 = 64 << 20;
const SUPERBLOCK_MAGIC: [u8; 8] = *b"SPDLSUPR";
const HEAD_MAGIC: [u8; 8] = *b"SPDLHEAD";
const VERSION: u32 = 1;
const PREFIX_LEN: usize = 16;

/// The topic of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogHead {
    /// Domain.
    pub domain: u32,
    /// Name of the topic.
    pub topic: String,
    /// Name of its type.
    pub type_name: String,
    /// Its type, in a form of the layer above; empty: it cannot be described.
    ///
    /// `spindle-dds` keeps what an endpoint announces of its type, with the complete TypeObjects in place of
    /// the minimal ones (XTypes 1.3 §7.3.4, in little endian XCDR2). No objects if they take too much:
    ///
    /// ```text
    ///   flags, 1 byte (1: key hashes are digests) | length of TypeInformation, u32 little endian
    ///   TypeInformation without lists of dependents | TypeObjects of the type and of what it depends on
    /// ```
    pub type_information: Vec<u8>,
    /// What readers that come later get: DURABILITY_SERVICE.
    pub limits: HistoryLimits,
}

/// What a log knows of the group of logs that it is in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LogState {
    /// Its identity.
    pub id: LogId,
    /// What its records descend from; 0: it has none.
    pub lineage: u128,
    /// The newest roster that all of its logs have recorded.
    pub confirmed: Option<Roster>,
    /// Newer rosters, of which that is not known.
    pub proposed: Vec<Roster>,
}

/// What stands in the superblock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Superblock {
    pub(super) state: LogState,
    pub(super) start: Start,
    /// Position below which compaction has removed records that later ones below it superseded.
    pub(super) settled: u64,
    /// The log is being truncated to this position.
    pub(super) truncating: Option<u64>,
    /// Position below which all was synced when this was written, and is not to be truncated.
    pub(super) synced: u64,
}

/// Where the segments that are there begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Start {
    /// Number of the first segment: as many were removed before it.
    pub(super) segment: u64,
    /// The last record before it.
    pub(super) last: LastRecord,
    /// Records before it.
    pub(super) records: u64,
}

impl Superblock {
    /// The log is empty.
    pub(super) fn begin_anew(&mut self) {
        self.start = Start::default();
        self.settled = 0;
        self.synced = 0;
    }

    pub(super) fn bytes(&self) -> Result<Vec<u8>, LogError> {
        frame(SUPERBLOCK, SUPERBLOCK_MAGIC, self)
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, LogError> {
        unframe(SUPERBLOCK, SUPERBLOCK_MAGIC, bytes)
    }
}

#[derive(Serialize, Deserialize)]
struct HeadBody {
    domain: u32,
    topic: String,
    type_name: String,
    type_information: Vec<u8>,
    depth: Option<u32>,
    samples: Option<u64>,
    instances: Option<u64>,
    samples_per_instance: Option<u64>,
    cleanup_delay_ns: Option<u64>,
}

impl LogHead {
    pub(super) fn bytes(&self) -> Result<Vec<u8>, LogError> {
        let body = HeadBody {
            domain: self.domain,
            topic: self.topic.clone(),
            type_name: self.type_name.clone(),
            type_information: self.type_information.clone(),
            depth: self.limits.depth,
            samples: self.limits.samples,
            instances: self.limits.instances,
            samples_per_instance: self.limits.samples_per_instance,
            cleanup_delay_ns: self.limits.cleanup_delay_ns,
        };
        frame(HEAD, HEAD_MAGIC, &body)
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, LogError> {
        let body: HeadBody = unframe(HEAD, HEAD_MAGIC, bytes)?;
        Ok(Self {
            domain: body.domain,
            topic: body.topic,
            type_name: body.type_name,
            type_information: body.type_information,
            limits: HistoryLimits {
                depth: body.depth,
                samples: body.samples,
                instances: body.instances,
                samples_per_instance: body.samples_per_instance,
                cleanup_delay_ns: body.cleanup_delay_ns,
            },
        })
    }
}

/// Whether a file is too long to be read whole.
pub(super) fn check_len(file: &str, len: u64) -> Result<usize, LogError> {
    match usize::try_from(len) {
        Ok(whole) if len <= LEN_MAX => Ok(whole),
        _ => Err(LogError::damaged(file, LEN_MAX, "it is too long")),
    }
}

fn frame(file: &'static str, magic: [u8; 8], body: &impl Serialize) -> Result<Vec<u8>, LogError> {
    let too_long = LogError::TooLong { what: file };
    let Ok(body) = postcard::to_allocvec(body) else {
        return Err(too_long);
    };
    if body.len() as u64 > LEN_MAX - 64 {
        return Err(too_long);
    }
    let mut bytes = Vec::with_capacity(PREFIX_LEN + body.len() + 4);
    bytes.extend_from_slice(&magic);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&body);
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    Ok(bytes)
}

fn unframe<T: DeserializeOwned>(file: &str, magic: [u8; 8], bytes: &[u8]) -> Result<T, LogError> {
    let damaged = |offset: usize, what: &str| LogError::damaged(file, offset as u64, what);
    let Some((framed, crc)) = bytes.split_last_chunk::<4>() else {
        return Err(damaged(0, "it is too short"));
    };
    let Some((prefix, body)) = framed.split_first_chunk::<PREFIX_LEN>() else {
        return Err(damaged(0, "it is too short"));
    };
    if prefix[..8] != magic {
        return Err(damaged(0, "it does not begin as such a file does"));
    }
    let word = |at: usize| {
        prefix[at..]
            .first_chunk()
            .copied()
            .map_or(0, u32::from_le_bytes)
    };
    if word(8) != VERSION {
        let what = format!("version {} is not known, {VERSION} is", word(8));
        return Err(LogError::damaged(file, 8, what));
    }
    if word(12) as usize != body.len() {
        return Err(damaged(12, "its length is not the one it says"));
    }
    if u32::from_le_bytes(*crc) != crc32c::crc32c(framed) {
        return Err(damaged(PREFIX_LEN, "its CRC does not match"));
    }
    match postcard::take_from_bytes(body) {
        Ok((body, [])) => Ok(body),
        _ => Err(damaged(PREFIX_LEN, "its contents cannot be read")),
    }
}
