//! Messages over a queue pair: in the order of the writes, each in one work request.

use super::sys::Remote;
use crate::segment::SegmentKey;

/// Room for one, in bytes.
pub(super) const MESSAGE_LEN_MAX: usize = 64;

/// Length of each, in bytes.
const LEN: usize = 40;

const HELLO: u32 = u32::from_le_bytes(*b"helo");
const OPEN: u32 = u32::from_le_bytes(*b"open");
const OVER: u32 = u32::from_le_bytes(*b"over");

/// A peer's copy of my row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) to: Remote,
    pub(super) len: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// The first: this direction works.
    Hello,
    /// I have made this segment: your row's copy is there.
    Open { key: SegmentKey, place: Place },
    /// I push nothing there any more, and do not wait for me.
    Over { key: SegmentKey },
}

impl Message {
    pub(super) fn encode(&self) -> [u8; LEN] {
        let none = SegmentKey { epoch: 0, index: 0 };
        let nowhere = Place {
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

    /// `None` if it is none.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LEN] = bytes.try_into().ok()?;
        let short = |at: usize| bytes[at..].first_chunk().copied().map(u32::from_le_bytes);
        let long = |at: usize| bytes[at..].first_chunk().copied().map(u64::from_le_bytes);
        let key = SegmentKey {
            epoch: long(8)?,
            index: short(4)?,
        };
        let place = Place {
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
        // What is not used is zero.
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
        let place = Place {
            to: Remote {
                address: 0x7f00_0000_1000,
                key: 0xdead_beef,
            },
            len: 4096,
        };
        let all = [
            Message::Hello,
            Message::Open { key, place },
            Message::Over { key },
        ];
        for message in all {
            assert_eq!(Message::decode(&message.encode()), Some(message));
        }
        let mut hello = Message::Hello.encode();
        hello[8] = 1;
        assert_eq!(Message::decode(&hello), None, "no key");
        let mut open = all[1].encode();
        open[16] = 1;
        assert_eq!(Message::decode(&open), None, "unaligned");
    }

    #[test]
    fn nonsense_is_no_message() {
        let rng = &mut Rng::new(2);
        for _ in 0..1000 {
            let bytes: Vec<u8> = (0..rng.below(80)).map(|_| rng.below(256) as u8).collect();
            assert_eq!(Message::decode(&bytes), None);
        }
    }
}
