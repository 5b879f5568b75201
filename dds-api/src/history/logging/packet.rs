//! The packets by which logs get records of each other: kinds 17 to 20 of the packets between members.

use spindle_dds_core::TopicKey;
use spindle_dds_core::storage::LogPacket;

/// What the log of a topic tells another one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LogMessage {
    pub(crate) topic: TopicKey,
    pub(crate) packet: LogPacket,
}

/// The kinds of these packets.
pub(crate) const KINDS: std::ops::RangeInclusive<u8> = 17..=20;

impl LogMessage {
    /// Appends the kind and what follows it.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(match &self.packet {
            LogPacket::Ask { .. } => 17,
            LogPacket::Part { .. } => 18,
            LogPacket::Mismatch { .. } => 19,
            LogPacket::Refused => 20,
        });
        out.extend(self.topic.0.to_le_bytes());
        match &self.packet {
            LogPacket::Ask {
                lineage,
                after,
                chain,
                bytes_max,
            } => {
                out.extend(lineage.to_le_bytes());
                out.extend(after.to_le_bytes());
                out.extend(chain.to_le_bytes());
                out.extend(bytes_max.to_le_bytes());
            }
            LogPacket::Part {
                after,
                records,
                complete,
                is_end,
                removals,
            } => {
                out.extend(after.to_le_bytes());
                out.extend(complete.to_le_bytes());
                out.extend(removals.to_le_bytes());
                out.push(u8::from(*is_end));
                out.extend(records);
            }
            LogPacket::Mismatch { after } => out.extend(after.to_le_bytes()),
            LogPacket::Refused => {}
        }
    }

    /// Reads what follows the kind. `None` if it makes no sense.
    pub(crate) fn read(kind: u8, mut rest: &[u8]) -> Option<Self> {
        let rest = &mut rest;
        let topic = TopicKey(u128::from_le_bytes(take(rest)?));
        let packet = match kind {
            17 => LogPacket::Ask {
                lineage: u128::from_le_bytes(take(rest)?),
                after: u64::from_le_bytes(take(rest)?),
                chain: u32::from_le_bytes(take(rest)?),
                bytes_max: u32::from_le_bytes(take(rest)?),
            },
            18 => LogPacket::Part {
                after: u64::from_le_bytes(take(rest)?),
                complete: u64::from_le_bytes(take(rest)?),
                removals: u64::from_le_bytes(take(rest)?),
                is_end: match take(rest)? {
                    [0] => false,
                    [1] => true,
                    _ => return None,
                },
                records: std::mem::take(rest).to_vec(),
            },
            19 => LogPacket::Mismatch {
                after: u64::from_le_bytes(take(rest)?),
            },
            20 => LogPacket::Refused,
            _ => return None,
        };
        rest.is_empty().then_some(Self { topic, packet })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_as_they_were_written() {
        let packets = [
            LogPacket::Ask {
                lineage: u128::MAX,
                after: 7,
                chain: 8,
                bytes_max: 9,
            },
            LogPacket::Part {
                after: 1,
                records: vec![1, 2, 3],
                complete: u64::MAX,
                is_end: true,
                removals: 6,
            },
            LogPacket::Mismatch { after: 3 },
            LogPacket::Refused,
        ];
        for packet in packets {
            let message = LogMessage {
                topic: TopicKey(5),
                packet,
            };
            let mut bytes = Vec::new();
            message.write(&mut bytes);
            assert!(KINDS.contains(&bytes[0]));
            for len in 1..bytes.len() {
                let cut = LogMessage::read(bytes[0], &bytes[1..len]);
                assert!(cut.is_none_or(|cut| cut != message), "{len}");
            }
            assert_eq!(LogMessage::read(bytes[0], &bytes[1..]), Some(message));
        }
    }
}
