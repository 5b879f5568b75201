//! The protocol between stations of one host: packets, little-endian.
//!
//! Packets come from another process: lengths are checked against the bytes that are there.
//! The first five bytes, and the whole of a refusal, are the same in all versions, so that
//! versions can recognize each other.

use crate::station::segment::SegmentKey;

const MAGIC: [u8; 4] = *b"SPST";
/// Version of everything but the first five bytes and refusals.
pub(super) const VERSION: u8 = 4;

/// Most rows in one packet: each takes a descriptor at the receiver, for a moment.
pub(super) const ROWS_MAX: usize = 16;

/// Most bytes of a message in one packet.
pub(super) const PART_LEN_MAX: usize = 32 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Packet<'a> {
    /// The first packet of both sides: my id, and the doorbell of my row by which I wake the
    /// receiver. With my doorbell row, event descriptor and lifeline.
    Hello { id: u128, doorbell: u16 },
    /// The connection is refused. `already`: because the two are connected or about to be.
    Refused { already: bool, reason: String },
    /// Part of a message.
    Part { last: bool, bytes: &'a [u8] },
    /// My rows of segments, one to [`ROWS_MAX`]. With their memory files.
    Rows(Vec<RowHead>),
    /// The sender cannot make its row of a segment, or use those of others.
    NoRow { key: SegmentKey, reason: String },
    /// The sender closes this connection on purpose.
    Bye,
}

/// What a station says of its row of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowHead {
    pub(super) key: SegmentKey,
    pub(super) rank: u16,
    pub(super) len: u64,
}

/// Why bytes are not a packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PacketError {
    /// It is of this other version.
    Version(u8),
    ProtocolViolation,
}

impl<'a> Packet<'a> {
    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = [&MAGIC[..], &[VERSION]].concat();
        match self {
            Self::Hello { id, doorbell } => {
                out.push(1);
                out.extend(id.to_le_bytes());
                out.extend(doorbell.to_le_bytes());
            }
            Self::Refused { already, reason } => {
                out.extend([2, u8::from(*already)]);
                out.extend(reason.as_bytes());
            }
            Self::Part { last, bytes } => {
                out.extend([3, u8::from(*last)]);
                out.extend(*bytes);
            }
            Self::Rows(rows) => {
                out.push(4);
                for RowHead { key, rank, len } in rows {
                    out.extend(key.epoch.to_le_bytes());
                    out.extend(key.index.to_le_bytes());
                    out.extend(rank.to_le_bytes());
                    out.extend(len.to_le_bytes());
                }
            }
            Self::Bye => out.push(5),
            Self::NoRow { key, reason } => {
                out.push(6);
                out.extend(key.epoch.to_le_bytes());
                out.extend(key.index.to_le_bytes());
                out.extend(reason.as_bytes());
            }
        }
        out
    }

    /// Reads a packet; it must take all of the bytes.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let rest = bytes
            .strip_prefix(&MAGIC)
            .ok_or(PacketError::ProtocolViolation)?;
        let (&version, rest) = rest.split_first().ok_or(PacketError::ProtocolViolation)?;
        let known = version == VERSION || rest.first() == Some(&2);
        if !known {
            return Err(PacketError::Version(version));
        }
        Self::read_body(rest).ok_or(PacketError::ProtocolViolation)
    }

    fn read_body(bytes: &'a [u8]) -> Option<Self> {
        let mut input = Input(bytes);
        let packet = match u8::from_le_bytes(input.take()?) {
            1 => Self::Hello {
                id: u128::from_le_bytes(input.take()?),
                doorbell: u16::from_le_bytes(input.take()?),
            },
            2 => Self::Refused {
                already: input.flag()?,
                reason: String::from_utf8_lossy(input.rest()).into_owned(),
            },
            3 => Self::Part {
                last: input.flag()?,
                bytes: input.rest(),
            },
            4 => Self::Rows(input.rows()?),
            5 => Self::Bye,
            6 => Self::NoRow {
                key: input.key()?,
                reason: String::from_utf8_lossy(input.rest()).into_owned(),
            },
            _ => return None,
        };
        input.0.is_empty().then_some(packet)
    }
}

/// The bytes that are left to read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn key(&mut self) -> Option<SegmentKey> {
        Some(SegmentKey {
            epoch: u64::from_le_bytes(self.take()?),
            index: u32::from_le_bytes(self.take()?),
        })
    }

    fn rows(&mut self) -> Option<Vec<RowHead>> {
        let mut rows = Vec::new();
        while rows.is_empty() || !self.0.is_empty() {
            rows.push(RowHead {
                key: self.key()?,
                rank: u16::from_le_bytes(self.take()?),
                len: u64::from_le_bytes(self.take()?),
            });
        }
        (rows.len() <= ROWS_MAX).then_some(rows)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.take()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(epoch: u64) -> RowHead {
        RowHead {
            key: SegmentKey { epoch, index: 7 },
            rank: 3,
            len: 1 << 33,
        }
    }

    fn packets() -> [Packet<'static>; 6] {
        let (epoch, index) = (1 << 40, 7);
        [
            Packet::Hello {
                id: 9,
                doorbell: 300,
            },
            Packet::Refused {
                already: true,
                reason: "no".into(),
            },
            Packet::Part {
                last: false,
                bytes: b"abc",
            },
            Packet::Rows(vec![row(1 << 40); 2]),
            Packet::Bye,
            Packet::NoRow {
                key: SegmentKey { epoch, index },
                reason: "no memory".into(),
            },
        ]
    }

    #[test]
    fn packets_are_read_as_they_were_written() {
        for packet in packets() {
            assert_eq!(Packet::read(&packet.write()), Ok(packet));
        }
    }

    #[test]
    fn invalid_packets_are_refused_without_panic() {
        for packet in packets() {
            let bytes = packet.write();
            for end in 0..bytes.len() {
                let read = Packet::read(&bytes[..end]);
                assert_ne!(read, Ok(packet.clone()), "{end}");
            }
            let mut kind = bytes.clone();
            kind[5] = 99;
            assert_eq!(Packet::read(&kind), Err(PacketError::ProtocolViolation));
        }
        for count in [0, ROWS_MAX + 1] {
            let rows = Packet::Rows(vec![row(1); count]).write();
            assert_eq!(Packet::read(&rows), Err(PacketError::ProtocolViolation));
        }
        let more = [&Packet::Bye.write()[..], &[0]].concat();
        assert_eq!(Packet::read(&more), Err(PacketError::ProtocolViolation));
    }

    #[test]
    fn only_refusals_are_read_in_any_version() {
        for packet in packets() {
            let mut bytes = packet.write();
            bytes[4] = 9;
            let refusal = matches!(packet, Packet::Refused { .. });
            let expected = match refusal {
                true => Ok(packet),
                false => Err(PacketError::Version(9)),
            };
            assert_eq!(Packet::read(&bytes), expected);
        }
    }
}
