//! The handshake of two stations on a new connection.
//!
//! ```text
//!   caller                                   called
//!     | -- hello: domain, id, nonce, address -> |  checks the domain, and that both or
//!     | <- hello ------------------------------ |  none of the two have a secret
//!     | -- proof -----------------------------> |  checks it: the caller has the secret
//!     | <- proof, offer ----------------------- |  of a queue pair; empty if it has none
//!     | -- offer -----------------------------> |  of its own; or its verdict at once
//!     |       [ both try the queue pairs ]      |
//!     | -- verdict: RDMA, or why not ---------> |
//!     | <- verdict ---------------------------- |
//!     |          records in both directions     |
//! ```
//! A proof is an HMAC-SHA256 under the domain's secret over both hellos and the role of its
//! maker. The nonces are drawn for each connection, so an overheard proof proves nothing
//! later, and neither side can be made to prove for the other. Without a secret the key is
//! empty.
//!
//! Offers follow the proofs. If both verdicts are positive, pushes go over the queue pairs
//! from then on, else over streams; `path_selection` drives this part.
//!
//! A side that does not accept a frame sends a refusal with the reason, and closes. A frame
//! is read to its last byte and no further: what follows the last verdict belongs to the
//! stream.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::address::{ADDRESS_LEN_MAX, Address};
use super::refusal::{HandshakeRefusal, RefusalKind, cut};
use crate::shm::error::SetupError;

const MAGIC: [u8; 4] = *b"SPNT";
/// Version of everything but the first eight bytes of a frame, and refusals.
pub(super) const VERSION: u8 = 3;

/// Magic, version, kind, length of what follows.
pub(super) const HEADER_LEN: usize = 8;

const HELLO: u8 = 1;
const REFUSED: u8 = 2;
const PROOF: u8 = 3;
const OFFER: u8 = 4;
const VERDICT: u8 = 5;

type Nonce = [u8; 32];
type Proof = [u8; 32];

/// Length of a hello without its address.
const HELLO_LEN: usize = 4 + 16 + 1 + 32;

/// Most bytes after a header.
const BODY_LEN_MAX: usize = HELLO_LEN + ADDRESS_LEN_MAX;

/// Longest offer, in bytes.
pub(super) const OFFER_LEN_MAX: usize = 128;

/// What this station says of itself in handshakes.
pub(super) struct LocalIdentity {
    pub(super) domain: u32,
    pub(super) id: u128,
    pub(super) host: u128,
    /// The encoded address.
    pub(super) address: Vec<u8>,
    pub(super) secret: Option<Vec<u8>>,
}

/// Omits the secret.
impl core::fmt::Debug for LocalIdentity {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LocalIdentity")
            .field("domain", &self.domain)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) domain: u32,
    pub(super) id: u128,
    pub(super) has_secret: bool,
    nonce: Nonce,
    address: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    Hello(Hello),
    /// The connection is refused.
    Refused(HandshakeRefusal),
    Proof(Proof),
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
            OFFER if body.len() <= OFFER_LEN_MAX => Some(Self::Offer(body.to_vec())),
            VERDICT => match body.split_first()? {
                (1, []) => Some(Self::Verdict(Ok(()))),
                (0, reason) => {
                    let reason = String::from_utf8_lossy(reason).into_owned();
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
        out.push(u8::from(self.has_secret));
        out.extend(self.nonce);
        out.extend(&self.address);
        out
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (domain, rest) = bytes.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (&has_secret, rest) = rest.split_first()?;
        let (nonce, address) = rest.split_first_chunk()?;
        (has_secret <= 1).then(|| Self {
            domain: u32::from_le_bytes(*domain),
            id: u128::from_le_bytes(*id),
            has_secret: has_secret == 1,
            nonce: *nonce,
            address: address.to_vec(),
        })
    }
}

/// The side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Caller,
    Called,
}

impl Role {
    fn other(self) -> Self {
        match self {
            Self::Caller => Self::Called,
            Self::Called => Self::Caller,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Caller => "the caller",
            Self::Called => "the one called",
        }
    }
}

/// One side's state of a handshake.
#[derive(Debug)]
pub(super) struct Handshake {
    role: Role,
    /// My hello, encoded.
    mine: Vec<u8>,
    /// The other side's hello as it was received, and its address.
    theirs: Option<(Vec<u8>, Address)>,
}

impl Handshake {
    /// Starts a handshake, with a new nonce.
    pub(super) fn new(me: &LocalIdentity, role: Role) -> Result<Self, SetupError> {
        let mut nonce = Nonce::default();
        let flags = rustix::rand::GetRandomFlags::empty();
        rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut nonce, flags))
            .map_err(SetupError::system("drawing a random number"))?;
        let hello = Hello {
            domain: me.domain,
            id: me.id,
            has_secret: me.secret.is_some(),
            nonce,
            address: me.address.clone(),
        };
        Ok(Self {
            role,
            mine: Frame::Hello(hello).write(),
            theirs: None,
        })
    }

    /// My hello, encoded.
    pub(super) fn hello(&self) -> &[u8] {
        &self.mine
    }

    /// The other side's address, once its hello was received.
    pub(super) fn other(&self) -> Option<&Address> {
        self.theirs.as_ref().map(|(_, address)| address)
    }

    /// Checks the other side's hello, and keeps its frame. An error is sent to the other side.
    pub(super) fn receive_hello(
        &mut self,
        me: &LocalIdentity,
        hello: &Hello,
        frame: Vec<u8>,
    ) -> Result<(), HandshakeRefusal> {
        let (us, them) = (self.role.name(), self.role.other().name());
        let refuse = |kind, reason: String| Err(HandshakeRefusal::new(kind, reason));
        if self.theirs.is_some() {
            return refuse(RefusalKind::Other, format!("{them} said hello twice"));
        }
        if hello.domain != me.domain {
            let (ours, theirs) = (me.domain, hello.domain);
            let reason = format!("{them} is of domain {theirs}, {us} of {ours}");
            return refuse(RefusalKind::Domain, reason);
        }
        if hello.has_secret != me.secret.is_some() {
            let (theirs, ours) = match hello.has_secret {
                true => ("a secret", "none"),
                false => ("no secret", "one"),
            };
            let reason = format!("{them} has {theirs}, {us} has {ours}");
            return refuse(RefusalKind::Secret, reason);
        }
        let address = Address::read(&hello.address).filter(|address| address.id == hello.id);
        let no_address = || format!("{them} has no address");
        let address =
            address.ok_or_else(|| HandshakeRefusal::new(RefusalKind::Other, no_address()))?;
        self.theirs = Some((frame, address));
        Ok(())
    }

    /// The MAC over both hellos under the secret.
    fn mac(&self, me: &LocalIdentity, role: Role) -> Hmac<Sha256> {
        let theirs = self.theirs.as_ref().map_or(&[][..], |(frame, _)| frame);
        let (caller, called) = match self.role {
            Role::Caller => (&self.mine[..], theirs),
            Role::Called => (theirs, &self.mine[..]),
        };
        let key = me.secret.as_deref().unwrap_or_default();
        let mac = Hmac::<Sha256>::new_from_slice(key).expect("any key will do");
        mac.chain_update(b"spindle-dds handshake 1")
            .chain_update([role as u8])
            // Each hello begins with a header that has its length.
            .chain_update(caller)
            .chain_update(called)
    }

    /// My proof, encoded. The other side's hello must have been received.
    pub(super) fn proof(&self, me: &LocalIdentity) -> Vec<u8> {
        let proof = self.mac(me, self.role).finalize();
        Frame::Proof(proof.into_bytes().into()).write()
    }

    /// Checks the other side's proof in constant time. An error is sent to the other side.
    pub(super) fn check(&self, me: &LocalIdentity, proof: &Proof) -> Result<(), HandshakeRefusal> {
        let them = self.role.other();
        let checked = self.mac(me, them).verify_slice(proof);
        let (kind, what) = match me.secret {
            Some(_) => (RefusalKind::Secret, "has another secret"),
            None => (RefusalKind::Other, "answers to another hello"),
        };
        let wrong = |_| HandshakeRefusal::new(kind, format!("{} {what}", them.name()));
        checked.map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me(domain: u32, id: u128, secret: Option<&str>) -> LocalIdentity {
        let address = Address {
            host: 1,
            id,
            on_host: Vec::new(),
            sockets: Vec::new(),
        };
        LocalIdentity {
            domain,
            id,
            host: 1,
            address: address.write(),
            secret: secret.map(|secret| secret.as_bytes().to_vec()),
        }
    }

    fn hello_of(handshake: &Handshake) -> Hello {
        match Frame::read(handshake.hello()) {
            Some(Frame::Hello(hello)) => hello,
            other => panic!("{other:?}"),
        }
    }

    fn proof_of(bytes: &[u8]) -> Proof {
        match Frame::read(bytes) {
            Some(Frame::Proof(proof)) => proof,
            other => panic!("{other:?}"),
        }
    }

    /// Runs the handshake of a caller and a called station.
    fn meet(caller: &LocalIdentity, called: &LocalIdentity) -> Result<(), HandshakeRefusal> {
        let mut calls = Handshake::new(caller, Role::Caller).expect("a nonce");
        let mut hears = Handshake::new(called, Role::Called).expect("a nonce");
        hears.receive_hello(called, &hello_of(&calls), calls.hello().to_vec())?;
        calls.receive_hello(caller, &hello_of(&hears), hears.hello().to_vec())?;
        hears.check(called, &proof_of(&calls.proof(caller)))?;
        calls.check(caller, &proof_of(&hears.proof(called)))?;
        // A reflected proof is not accepted.
        let reflected = proof_of(&calls.proof(caller));
        assert!(calls.check(caller, &reflected).is_err());
        Ok(())
    }

    #[test]
    fn only_stations_of_one_domain_and_secret_accept_each_other() {
        assert_eq!(meet(&me(3, 1, None), &me(3, 2, None)), Ok(()));
        let (right, wrong) = (Some("open"), Some("shut"));
        assert_eq!(meet(&me(3, 1, right), &me(3, 2, right)), Ok(()));
        let refused = |caller: LocalIdentity, called: LocalIdentity, words: &str| {
            let refusal = meet(&caller, &called).expect_err("refused");
            assert_eq!(refusal.reason, words);
            let kind = match () {
                () if caller.secret != called.secret => RefusalKind::Secret,
                () if caller.domain != called.domain => RefusalKind::Domain,
                () => RefusalKind::Other,
            };
            assert_eq!(refusal.kind, kind);
        };
        let words = "the caller is of domain 3, the one called of 4";
        refused(me(3, 1, None), me(4, 2, None), words);
        let words = "the caller has another secret";
        refused(me(3, 1, wrong), me(3, 2, right), words);
        let words = "the caller has no secret, the one called has one";
        refused(me(3, 1, None), me(3, 2, right), words);
        let words = "the caller has a secret, the one called has none";
        refused(me(3, 1, right), me(3, 2, None), words);
        let liar = LocalIdentity {
            address: me(3, 7, None).address,
            ..me(3, 1, None)
        };
        refused(liar, me(3, 2, None), "the caller has no address");
    }

    #[test]
    fn an_overheard_proof_proves_nothing() {
        let (caller, called) = (me(0, 1, Some("open")), me(0, 2, Some("open")));
        let calls = Handshake::new(&caller, Role::Caller).expect("a nonce");
        let answers = || {
            let mut handshake = Handshake::new(&called, Role::Called).expect("a nonce");
            let hello = calls.hello().to_vec();
            handshake
                .receive_hello(&called, &hello_of(&calls), hello)
                .expect("heard");
            handshake
        };
        let (first, again) = (answers(), answers());
        let mut calls = Handshake {
            theirs: None,
            mine: calls.mine.clone(),
            ..calls
        };
        let hello = first.hello().to_vec();
        calls
            .receive_hello(&caller, &hello_of(&first), hello)
            .expect("heard");
        let proof = proof_of(&calls.proof(&caller));
        assert_eq!(first.check(&called, &proof), Ok(()));
        let replayed = again.check(&called, &proof).expect_err("refused");
        assert_eq!(replayed.reason, "the caller has another secret");
    }

    fn frames() -> [Frame; 6] {
        let handshake = Handshake::new(&me(9, 8, Some("x")), Role::Caller).expect("a nonce");
        [
            Frame::Hello(hello_of(&handshake)),
            Frame::Refused(HandshakeRefusal::new(RefusalKind::Already, "für nichts")),
            Frame::Proof([7; 32]),
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
