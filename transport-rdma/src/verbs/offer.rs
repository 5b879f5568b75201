//! What a station tells another of its queue pair, over the stream.

use super::sys::{LinkLayer, Remote};

/// Length of an offer, in bytes.
const LEN: usize = 48;

/// Queue pairs and packets have numbers of 24 bits.
const NUMBERS: u32 = 1 << 24;

/// One side of a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) queue_pair: u32,
    pub(super) first_packet: u32,
    pub(super) gid: [u8; 16],
    pub(super) lid: u16,
    pub(super) link_layer: LinkLayer,
    /// Path MTU, in bytes.
    pub(super) mtu: u32,
    /// Where the peer writes its sleep word.
    pub(super) line: Remote,
}

impl Offer {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LEN);
        bytes.extend(self.queue_pair.to_le_bytes());
        bytes.extend(self.first_packet.to_le_bytes());
        bytes.extend(self.gid);
        bytes.extend(self.line.address.to_le_bytes());
        bytes.extend(self.line.key.to_le_bytes());
        bytes.extend(self.mtu.to_le_bytes());
        bytes.extend(self.lid.to_le_bytes());
        bytes.extend(match self.link_layer {
            LinkLayer::InfiniBand => *b"ib",
            LinkLayer::Ethernet => *b"et",
        });
        bytes.extend([0; 4]);
        bytes
    }

    /// `None` if the bytes are not an offer.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LEN] = bytes.try_into().ok()?;
        let word = |at: usize| bytes[at..].first_chunk().copied().map(u32::from_le_bytes);
        let offer = Self {
            queue_pair: word(0)?,
            first_packet: word(4)?,
            gid: *bytes[8..].first_chunk()?,
            line: Remote {
                address: u64::from_le_bytes(*bytes[24..].first_chunk()?),
                key: word(32)?,
            },
            mtu: word(36)?,
            lid: u16::from_le_bytes(*bytes[40..].first_chunk()?),
            link_layer: match &bytes[42..44] {
                b"ib" => LinkLayer::InfiniBand,
                b"et" => LinkLayer::Ethernet,
                _ => return None,
            },
        };
        let mtu = offer.mtu.is_power_of_two() && (256..=4096).contains(&offer.mtu);
        let numbers = offer.queue_pair < NUMBERS && offer.first_packet < NUMBERS;
        let rest = bytes[44..] == [0; 4];
        (mtu && numbers && rest && offer.line.address.is_multiple_of(8)).then_some(offer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Rng;

    fn offer() -> Offer {
        Offer {
            queue_pair: 17,
            first_packet: 0x00ab_cdef,
            gid: core::array::from_fn(|at| at as u8),
            lid: 3,
            link_layer: LinkLayer::Ethernet,
            mtu: 1024,
            line: Remote {
                address: 0x7f00_0000_1000,
                key: 0xdead_beef,
            },
        }
    }

    #[test]
    fn an_offer_is_read_as_it_was_written() {
        let bytes = offer().encode();
        assert_eq!(bytes.len(), LEN);
        assert_eq!(Offer::decode(&bytes), Some(offer()));
    }

    #[test]
    fn random_bytes_are_not_an_offer() {
        let bytes = offer().encode();
        assert_eq!(Offer::decode(&bytes[1..]), None);
        assert_eq!(Offer::decode(&[&bytes[..], &[0]].concat()), None);
        for (at, byte) in [(3, 1), (7, 1), (36, 1), (38, 1), (42, 0), (24, 1), (47, 1)] {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            assert_eq!(Offer::decode(&bytes), None, "byte {at}");
        }
        let rng = &mut Rng::new(1);
        for _ in 0..1000 {
            let mut bytes: Vec<u8> = (0..LEN).map(|_| rng.below(256) as u8).collect();
            assert_eq!(Offer::decode(&bytes), None);
            bytes.truncate(rng.below(LEN));
            assert_eq!(Offer::decode(&bytes), None);
        }
    }
}
