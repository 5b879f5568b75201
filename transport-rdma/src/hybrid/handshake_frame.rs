//! The frames of a handshake: their format.
//!
//! ```text
//!   0       4         5      6        8
//!   +-------+---------+------+--------+--- ... ---+
//!   | magic | version | kind | length |   body    |     little-endian
//!   +-------+---------+------+--------+--- ... ---+
//! ```

use super::address::ADDRESS_LEN_MAX;
use super::noise;
use super::options::EncryptionUse;
use super::refusal::{HandshakeRefusal, cut, readable};

const MAGIC: [u8; 4] = *b"SPNT";
/// Version of everything but the first eight bytes of a frame, and refusals.
pub(super) const VERSION: u8 = 4;

/// Magic, version, kind, length of what follows.
pub(super) const HEADER_LEN: usize = 8;

const HELLO: u8 = 1;
const REFUSED: u8 = 2;
const PROOF: u8 = 3;
const OFFER: u8 = 4;
const VERDICT: u8 = 5;
const KEY_EXCHANGE: u8 = 6;

pub(super) type Nonce = [u8; 32];
pub(super) type Proof = [u8; 32];

/// Length of a hello without its address.
const HELLO_LEN: usize = 4 + 16 + 1 + 32;

/// Most bytes after a header.
pub(super) const BODY_LEN_MAX: usize = HELLO_LEN + ADDRESS_LEN_MAX;

/// Longest offer, in bytes.
pub(super) const OFFER_LEN_MAX: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) domain: u32,
    pub(super) id: u128,
    /// Whether its station encrypts, if it has a secret.
    pub(super) encryption: Option<EncryptionUse>,
    pub(super) nonce: Nonce,
    pub(super) address: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    Hello(Hello),
    /// The connection is refused.
    Refused(HandshakeRefusal),
    Proof(Proof),
    /// A message of the key exchange.
    KeyExchange(noise::Message),
    /// What the other side needs to know of my queue pair; empty if there is none.
    Offer(Vec<u8>),
    /// Whether the queue pairs work and are used.
    Verdict(Verdict),
}

/// One side's verdict on RDMA; an error is the reason against it, empty if it has no device.
pub(super) type Verdict = Result<(), String>;

/// Why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameError {
    /// It is of this other version.
    Version(u8),
    ProtocolViolation,
    /// It is not the next encrypted frame of the connection, unchanged.
    NotOpened,
}

/// Number of bytes that follow a header.
pub(super) fn body_len(header: [u8; HEADER_LEN]) -> Result<usize, FrameError> {
    let [m0, m1, m2, m3, version, kind, low, high] = header;
    if [m0, m1, m2, m3] != MAGIC {
        return Err(FrameError::ProtocolViolation);
    }
    if version != VERSION && kind != REFUSED {
        return Err(FrameError::Version(version));
    }
    let len = usize::from(u16::from_le_bytes([low, high]));
    match len <= BODY_LEN_MAX {
        true => Ok(len),
        false => Err(FrameError::ProtocolViolation),
    }
}

impl Frame {
    pub(super) fn write(&self) -> Vec<u8> {
        let (kind, body) = match self {
            Self::Hello(hello) => (HELLO, hello.write()),
            Self::Refused(refusal) => (REFUSED, refusal.write()),
            Self::Proof(proof) => (PROOF, proof.to_vec()),
            Self::KeyExchange(message) => (KEY_EXCHANGE, message.to_vec()),
            Self::Offer(offer) => (OFFER, offer.clone()),
            Self::Verdict(Ok(())) => (VERDICT, vec![1]),
            Self::Verdict(Err(reason)) => (VERDICT, [&[0], cut(reason)].concat()),
        };
        let len = (body.len() as u16).to_le_bytes();
        [&MAGIC[..], &[VERSION, kind], &len, &body].concat()
    }

    /// Reads a frame, whose length is that of its header and its [`body_len`].
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (header, body) = bytes.split_first_chunk::<HEADER_LEN>()?;
        match header[5] {
            HELLO => Hello::read(body).map(Self::Hello),
            REFUSED => HandshakeRefusal::read(body).map(Self::Refused),
            PROOF => Some(Self::Proof(body.try_into().ok()?)),
            KEY_EXCHANGE => Some(Self::KeyExchange(body.try_into().ok()?)),
            OFFER if body.len() <= OFFER_LEN_MAX => Some(Self::Offer(body.to_vec())),
            VERDICT => match body.split_first()? {
                (1, []) => Some(Self::Verdict(Ok(()))),
                (0, reason) => {
                    let reason = readable(reason);
                    Some(Self::Verdict(Err(reason)))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

impl Hello {
    fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HELLO_LEN + self.address.len());
        out.extend(self.domain.to_le_bytes());
        out.extend(self.id.to_le_bytes());
        out.push(encryption_code(self.encryption));
        out.extend(self.nonce);
        out.extend(&self.address);
        out
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (domain, rest) = bytes.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (&code, rest) = rest.split_first()?;
        let (nonce, address) = rest.split_first_chunk()?;
        Some(Self {
            domain: u32::from_le_bytes(*domain),
            id: u128::from_le_bytes(*id),
            encryption: *ENCRYPTION.get(usize::from(code))?,
            nonce: *nonce,
            address: address.to_vec(),
        })
    }
}

/// By code in a hello; `None` is a station without a secret.
const ENCRYPTION: [Option<EncryptionUse>; 4] = [
    None,
    Some(EncryptionUse::Off),
    Some(EncryptionUse::Auto),
    Some(EncryptionUse::Required),
];

pub(super) fn encryption_code(encryption: Option<EncryptionUse>) -> u8 {
    match encryption {
        None => 0,
        Some(EncryptionUse::Off) => 1,
        Some(EncryptionUse::Auto) => 2,
        Some(EncryptionUse::Required) => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::super::refusal::RefusalKind;
    use super::*;

    fn frames() -> [Frame; 7] {
        let hello = Hello {
            domain: 9,
            id: 8,
            encryption: Some(EncryptionUse::Auto),
            nonce: [7; 32],
            address: b"somewhere".to_vec(),
        };
        [
            Frame::Hello(hello),
            Frame::Refused(HandshakeRefusal::new(RefusalKind::Already, "für nichts")),
            Frame::Proof([7; 32]),
            Frame::KeyExchange([8; noise::MESSAGE_LEN]),
            Frame::Offer(vec![9; OFFER_LEN_MAX]),
            Frame::Verdict(Ok(())),
            Frame::Verdict(Err("kein Weg über UDP".to_owned())),
        ]
    }

    #[test]
    fn only_frames_are_read_as_frames() {
        for frame in frames() {
            let bytes = frame.write();
            let header = *bytes.first_chunk().expect("a header");
            assert_eq!(body_len(header), Ok(bytes.len() - HEADER_LEN));
            assert_eq!(Frame::read(&bytes), Some(frame.clone()));
            for end in 0..bytes.len() {
                assert_ne!(Frame::read(&bytes[..end]), Some(frame.clone()), "{end}");
            }
            let mut later = header;
            later[4] = 9;
            let refusal = matches!(frame, Frame::Refused(_));
            let expected = match refusal {
                true => Ok(bytes.len() - HEADER_LEN),
                false => Err(FrameError::Version(9)),
            };
            assert_eq!(body_len(later), expected);
            for at in 0..4 {
                let mut other = header;
                other[at] ^= 1;
                assert_eq!(body_len(other), Err(FrameError::ProtocolViolation));
            }
            let mut long = header;
            long[6..].copy_from_slice(&u16::MAX.to_le_bytes());
            assert_eq!(body_len(long), Err(FrameError::ProtocolViolation));
        }
    }

    #[test]
    fn offers_and_verdicts_are_checked() {
        let frame = |kind: u8, body: &[u8]| {
            let len = (body.len() as u16).to_le_bytes();
            Frame::read(&[&MAGIC[..], &[VERSION, kind], &len, body].concat())
        };
        assert_eq!(frame(OFFER, &[]), Some(Frame::Offer(Vec::new())));
        assert_eq!(frame(OFFER, &[1; OFFER_LEN_MAX + 1]), None);
        assert_eq!(
            frame(VERDICT, &[0]),
            Some(Frame::Verdict(Err(String::new())))
        );
        for verdict in [&[][..], &[2], &[1, b'x']] {
            assert_eq!(frame(VERDICT, verdict), None, "{verdict:?}");
        }
    }
}
