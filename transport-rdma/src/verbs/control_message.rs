//! Control messages over a queue pair: in order with the writes, one work request each.

use super::sys::Remote;
use crate::station::segment::SegmentKey;

/// Bytes of a receive buffer.
pub(super) const MESSAGE_LEN_MAX: usize = 64;

/// Length of a message, in bytes.
const LEN: usize = 40;

const HELLO: u32 = u32::from_le_bytes(*b"helo");
const OPEN: u32 = u32::from_le_bytes(*b"open");
const OVER: u32 = u32::from_le_bytes(*b"over");

/// A peer's copy of my row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RemoteRow {
    pub(super) to: Remote,
    pub(super) len: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlMessage {
    /// The first message: this direction works.
    Hello,
    /// The sender has opened this segment; its copy of the receiver's row is there.
    Open { key: SegmentKey, place: RemoteRow },
    /// The sender has ended this segment, and pushes nothing more in it.
    Over { key: SegmentKey },
}

impl ControlMessage {
    pub(super) fn encode(&self) -> [u8; LEN] {
        let none = SegmentKey { epoch: 0, index: 0 };
        let nowhere = RemoteRow {
            to: Remote { address: 0, key: 0 },
            len: 0,
        };
        let (kind, key, place) = match *self {
            Self::Hello => (HELLO, none, nowhere),
            Self::Open { key, place } => (OPEN, key, place),
            Self::Over { key } => (OVER, key, nowhere),
        };
        let mut bytes = [0; LEN];
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&key.index.to_le_bytes());
        bytes[8..16].copy_from_slice(&key.epoch.to_le_bytes());
        bytes[16..24].copy_from_slice(&place.to.address.to_le_bytes());
        bytes[24..32].copy_from_slice(&place.len.to_le_bytes());
        bytes[32..36].copy_from_slice(&place.to.key.to_le_bytes());
        bytes
    }

    /// `None` if the bytes are not a message.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LEN] = bytes.try_into().ok()?;
        let short = |at: usize| bytes[at..].first_chunk().copied().map(u32::from_le_bytes);
        let long = |at: usize| bytes[at..].first_chunk().copied().map(u64::from_le_bytes);
        let key = SegmentKey {
            epoch: long(8)?,
            index: short(4)?,
        };
        let place = RemoteRow {
            to: Remote {
                address: long(16)?,
                key: short(32)?,
            },
            len: long(24)?,
        };
        let message = match short(0)? {
            HELLO => Self::Hello,
            OPEN if place.to.address.is_multiple_of(8) => Self::Open { key, place },
            OVER => Self::Over { key },
            _ => return None,
        };
        // Unused bytes must be zero.
        (message.encode() == *bytes).then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Rng;

    const _: () = assert!(LEN <= MESSAGE_LEN_MAX && LEN.is_multiple_of(8));

    #[test]
    fn messages_are_read_as_they_were_written() {
        let key = SegmentKey {
            epoch: 1 << 40,
            index: 9,
        };
        let place = RemoteRow {
            to: Remote {
                address: 0x7f00_0000_1000,
                key: 0xdead_beef,
            },
            len: 4096,
        };
        let all = [
            ControlMessage::Hello,
            ControlMessage::Open { key, place },
            ControlMessage::Over { key },
        ];
        for message in all {
            assert_eq!(ControlMessage::decode(&message.encode()), Some(message));
        }
        let mut hello = ControlMessage::Hello.encode();
        hello[8] = 1;
        assert_eq!(ControlMessage::decode(&hello), None, "no key");
        let mut open = all[1].encode();
        open[16] = 1;
        assert_eq!(ControlMessage::decode(&open), None, "unaligned");
    }

    #[test]
    fn random_bytes_are_not_a_message() {
        let rng = &mut Rng::new(2);
        for _ in 0..1000 {
            let bytes: Vec<u8> = (0..rng.below(80)).map(|_| rng.below(256) as u8).collect();
            assert_eq!(ControlMessage::decode(&bytes), None);
        }
    }
}
