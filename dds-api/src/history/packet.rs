//! The packets by which history is asked for and sent: kinds 12 to 16 of the packets between members.

use std::collections::BTreeMap;

use spindle_dds_core::storage::Cursor;

/// Names a transfer: a reader, and the view in which it matches the writers whose history it gets. For
/// what a participant begins to keep of a topic, the endpoint by which it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TransferName {
    /// GUID of the endpoint.
    pub(crate) endpoint: [u8; 16],
    pub(crate) view: u64,
}

/// A packet about one transfer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HistoryPacket {
    pub(crate) name: TransferName,
    pub(crate) content: HistoryContent,
}

/// GUIDs of writers, with a sequence number each.
pub(crate) type Sequences = Vec<([u8; 16], u64)>;

/// What a packet about a transfer says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HistoryContent {
    /// The joiner asks for what it does not have: records after a place, and, of these writers, after a
    /// sequence number. It grants so many parts.
    Ask {
        parts: u8,
        from: Option<Cursor>,
        after: BTreeMap<[u8; 16], u64>,
    },
    /// The joiner grants another part; or none, and only says that it goes on.
    More { grants: bool },
    /// Records, one behind the other.
    Part(Vec<u8>),
    /// All is sent. Of each writer, the last sequence number before the boundary.
    End(Sequences),
    /// The donor has nothing under this name.
    Unknown,
}

/// The kinds of these packets.
pub(crate) const KINDS: std::ops::RangeInclusive<u8> = 12..=16;

impl HistoryPacket {
    /// Appends the kind and what follows it.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.content.kind());
        out.extend(self.name.endpoint);
        out.extend(self.name.view.to_le_bytes());
        match &self.content {
            HistoryContent::Ask { parts, from, after } => {
                out.push(*parts);
                out.push(u8::from(from.is_some()));
                if let Some(cursor) = from {
                    out.extend(cursor.position.to_le_bytes());
                    out.extend(cursor.writer);
                    out.extend(cursor.sequence.to_le_bytes());
                }
                write_sequences(out, after.iter().map(|(writer, last)| (*writer, *last)));
            }
            HistoryContent::More { grants } => out.push(u8::from(*grants)),
            HistoryContent::Part(records) => out.extend(records),
            HistoryContent::End(lasts) => write_sequences(out, lasts.iter().copied()),
            HistoryContent::Unknown => {}
        }
    }

    /// Reads what follows the kind. `None` if it makes no sense.
    pub(crate) fn read(kind: u8, mut rest: &[u8]) -> Option<Self> {
        let name = TransferName {
            endpoint: take(&mut rest)?,
            view: u64::from_le_bytes(take(&mut rest)?),
        };
        let content = match kind {
            12 => read_ask(&mut rest)?,
            13 => HistoryContent::More {
                grants: take_bool(&mut rest)?,
            },
            14 => HistoryContent::Part(std::mem::take(&mut rest).to_vec()),
            15 => HistoryContent::End(read_sequences(&mut rest)?),
            16 => HistoryContent::Unknown,
            _ => return None,
        };
        rest.is_empty().then_some(Self { name, content })
    }
}

impl HistoryContent {
    fn kind(&self) -> u8 {
        match self {
            Self::Ask { .. } => 12,
            Self::More { .. } => 13,
            Self::Part(_) => 14,
            Self::End(_) => 15,
            Self::Unknown => 16,
        }
    }
}

fn read_ask(rest: &mut &[u8]) -> Option<HistoryContent> {
    let [parts] = take(rest)?;
    let from = match take_bool(rest)? {
        false => None,
        true => Some(Cursor {
            position: u64::from_le_bytes(take(rest)?),
            writer: take(rest)?,
            sequence: u64::from_le_bytes(take(rest)?),
        }),
    };
    let sequences = read_sequences(rest)?;
    let count = sequences.len();
    let after: BTreeMap<_, _> = sequences.into_iter().collect();
    let is_distinct = after.len() == count;
    is_distinct.then_some(HistoryContent::Ask { parts, from, after })
}

fn write_sequences(out: &mut Vec<u8>, sequences: impl Iterator<Item = ([u8; 16], u64)>) {
    let at = out.len();
    out.extend([0; 4]);
    let mut count: u32 = 0;
    for (writer, last) in sequences {
        out.extend(writer);
        out.extend(last.to_le_bytes());
        count += 1;
    }
    out[at..at + 4].copy_from_slice(&count.to_le_bytes());
}

fn read_sequences(rest: &mut &[u8]) -> Option<Sequences> {
    let count = u32::from_le_bytes(take(rest)?);
    // So much is there, so as much may be allocated.
    let is_there = u64::from(count) * 24 <= rest.len() as u64;
    let one = |rest: &mut &[u8]| Some((take(rest)?, u64::from_le_bytes(take(rest)?)));
    is_there.then(|| (0..count).map(|_| one(rest)).collect())?
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

fn take_bool(rest: &mut &[u8]) -> Option<bool> {
    match take(rest)? {
        [0] => Some(false),
        [1] => Some(true),
        _ => None,
    }
}
