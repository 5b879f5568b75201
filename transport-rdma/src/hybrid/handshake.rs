//! What two stations say to each other on a connection before anything else.
//!
//! ```text
//!   caller                                   called
//!     | -- hello: domain, id, nonce, address -> |  of the same domain, and with
//!     | <- hello ------------------------------ |  a secret as well, or without
//!     | -- proof -----------------------------> |  has the secret; is to be a peer
//!     | <- proof, offer ----------------------- |  of a queue pair, or none
//!     | -- offer -----------------------------> |  of its own; or its verdict at once
//!     |       [ both try the queue pairs ]      |
//!     | -- verdict: by RDMA, or why not ------> |
//!     | <- verdict ---------------------------- |
//!     |          records in both directions     |
//! ```
//! A proof is an HMAC-SHA256 under the domain's secret over both hellos and the role
//! of who makes it. The nonces are drawn for each connection, so what was once
//! overheard proves nothing later, and no side can be made to prove for the other.
//! Without a secret it goes the same way under an empty key.
//!
//! Offers are for those who have proved themselves. If both say yes, what they push goes
//! over their queue pairs from then on, else by stream; `way` leads through it.
//!
//! Whoever does not like what it hears says why, and closes. A frame is read to its
//! last byte and no further: what follows the last verdict is the stream's.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::address::{ADDRESS_LEN_MAX, Address};
use crate::shm::SetupError;

const MAGIC: [u8; 4] = *b"SPNT";
/// Of all but the first eight bytes of a frame, and refusals.
pub(super) const VERSION: u8 = 2;

/// Magic, version, kind, length of what follows.
pub(super) const HEADER_LEN: usize = 8;

const HELLO: u8 = 1;
const REFUSED: u8 = 2;
const PROOF: u8 = 3;
const OFFER: u8 = 4;
const VERDICT: u8 = 5;

type Nonce = [u8; 32];
type Proof = [u8; 32];

/// A hello without its address.
const HELLO_LEN: usize = 4 + 16 + 1 + 32;

/// Most bytes after a header.
const BODY_LEN_MAX: usize = HELLO_LEN + ADDRESS_LEN_MAX;

/// Longest offer.
pub(super) const OFFER_LEN_MAX: usize = 128;

/// Longest reason.
const REASON_LEN_MAX: usize = 500;

/// Who I am to those I speak to.
pub(super) struct Me {
    pub(super) domain: u32,
    pub(super) id: u128,
    pub(super) host: u128,
    /// Written down.
    pub(super) address: Vec<u8>,
    pub(super) secret: Option<Vec<u8>>,
}

/// Without the secret.
impl core::fmt::Debug for Me {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Me")
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
    /// No. If `already`, because the two are connected or about to be, or because a
    /// queue pair was tried in vain: it is worth another call.
    Refused {
        already: bool,
        reason: String,
    },
    Proof(Proof),
    /// What the other has to know of my queue pair; empty, if I have none.
    Offer(Vec<u8>),
    /// Whether the queue pairs work, and are used; if not, why, or nothing if there are none.
    Verdict(Verdict),
}

/// What one says of the way by RDMA; if it is not gone, why.
pub(super) type Verdict = Result<(), String>;

/// Why bytes are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoFrame {
    /// Of another version.
    Version(u8),
    Nonsense,
}

/// How many bytes follow a header.
pub(super) fn body_len(header: [u8; HEADER_LEN]) -> Result<usize, NoFrame> {
    let [m0, m1, m2, m3, version, kind, low, high] = header;
    if [m0, m1, m2, m3] != MAGIC {
        return Err(NoFrame::Nonsense);
    }
    if version != VERSION && kind != REFUSED {
        return Err(NoFrame::Version(version));
    }
    let len = usize::from(u16::from_le_bytes([low, high]));
    match len <= BODY_LEN_MAX {
        true => Ok(len),
        false => Err(NoFrame::Nonsense),
    }
}

impl Frame {
    pub(super) fn write(&self) -> Vec<u8> {
        let (kind, body) = match self {
            Self::Hello(hello) => (HELLO, hello.write()),
            Self::Refused { already, reason } => {
                (REFUSED, [&[u8::from(*already)], cut(reason)].concat())
            }
            Self::Proof(proof) => (PROOF, proof.to_vec()),
            Self::Offer(offer) => (OFFER, offer.clone()),
            Self::Verdict(Ok(())) => (VERDICT, vec![1]),
            Self::Verdict(Err(reason)) => (VERDICT, [&[0], cut(reason)].concat()),
        };
        let len = (body.len() as u16).to_le_bytes();
        [&MAGIC[..], &[VERSION, kind], &len, &body].concat()
    }

    /// The frame whose header's [`body_len`] is that of the rest.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (header, body) = bytes.split_first_chunk::<HEADER_LEN>()?;
        match header[5] {
            HELLO => Hello::read(body).map(Self::Hello),
            REFUSED => {
                let (already, reason) = body.split_first()?;
                Some(Self::Refused {
                    already: *already != 0,
                    reason: String::from_utf8_lossy(reason).into_owned(),
                })
            }
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

/// As much of a reason as is sent, in whole letters.
fn cut(reason: &str) -> &[u8] {
    let mut end = reason.len().min(REASON_LEN_MAX);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    &reason.as_bytes()[..end]
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

/// What one has done of the two on a connection.
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

/// One connection's exchange, as one side of it sees it.
#[derive(Debug)]
pub(super) struct Talk {
    role: Role,
    /// My hello, as it is sent.
    mine: Vec<u8>,
    /// The other's, as it came, and from where.
    theirs: Option<(Vec<u8>, Address)>,
}

impl Talk {
    /// With a nonce of its own.
    pub(super) fn new(me: &Me, role: Role) -> Result<Self, SetupError> {
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

    /// What I say first.
    pub(super) fn hello(&self) -> &[u8] {
        &self.mine
    }

    /// Where the other is, once it has said so.
    pub(super) fn other(&self) -> Option<&Address> {
        self.theirs.as_ref().map(|(_, address)| address)
    }

    /// The other's hello, with the frame it came in. The error is for the other.
    pub(super) fn hear(&mut self, me: &Me, hello: &Hello, frame: Vec<u8>) -> Result<(), String> {
        let (us, them) = (self.role.name(), self.role.other().name());
        if self.theirs.is_some() {
            return Err(format!("{them} said hello twice"));
        }
        if hello.domain != me.domain {
            let (ours, theirs) = (me.domain, hello.domain);
            return Err(format!("{them} is of domain {theirs}, {us} of {ours}"));
        }
        match (hello.has_secret, me.secret.is_some()) {
            (true, false) => return Err(format!("{them} has a secret, {us} has none")),
            (false, true) => return Err(format!("{them} has no secret, {us} has one")),
            _ => {}
        }
        let address = Address::read(&hello.address).filter(|address| address.id == hello.id);
        let address = address.ok_or_else(|| format!("{them} has no address"))?;
        self.theirs = Some((frame, address));
        Ok(())
    }

    /// What was said so far, under the secret.
    fn mac(&self, me: &Me, role: Role) -> Hmac<Sha256> {
        let theirs = self.theirs.as_ref().map_or(&[][..], |(frame, _)| frame);
        let (caller, called) = match self.role {
            Role::Caller => (&self.mine[..], theirs),
            Role::Called => (theirs, &self.mine[..]),
        };
        let key = me.secret.as_deref().unwrap_or_default();
        let mac = Hmac::<Sha256>::new_from_slice(key).expect("any key will do");
        mac.chain_update(b"spindle-dds handshake 1")
            .chain_update([role as u8])
            // Their headers have their lengths.
            .chain_update(caller)
            .chain_update(called)
    }

    /// My proof, as it is sent. The other's hello has come.
    pub(super) fn proof(&self, me: &Me) -> Vec<u8> {
        let proof = self.mac(me, self.role).finalize();
        Frame::Proof(proof.into_bytes().into()).write()
    }

    /// The other's proof, compared in constant time. The error is for the other.
    pub(super) fn check(&self, me: &Me, proof: &Proof) -> Result<(), String> {
        let them = self.role.other();
        let checked = self.mac(me, them).verify_slice(proof);
        let wrong = |_| match me.secret {
            Some(_) => format!("{} has another secret", them.name()),
            None => format!("{} answers to another hello", them.name()),
        };
        checked.map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hybrid::HybridError;

    fn me(domain: u32, id: u128, secret: Option<&str>) -> Me {
        let address = Address {
            host: 1,
            id,
            on_host: Vec::new(),
            sockets: Vec::new(),
        };
        Me {
            domain,
            id,
            host: 1,
            address: address.write(),
            secret: secret.map(|secret| secret.as_bytes().to_vec()),
        }
    }

    fn hello_of(talk: &Talk) -> Hello {
        match Frame::read(talk.hello()) {
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

    /// What the one called says to a caller, and it to that.
    fn meet(caller: &Me, called: &Me) -> Result<(), String> {
        let mut calls = Talk::new(caller, Role::Caller).expect("a nonce");
        let mut hears = Talk::new(called, Role::Called).expect("a nonce");
        hears.hear(called, &hello_of(&calls), calls.hello().to_vec())?;
        calls.hear(caller, &hello_of(&hears), hears.hello().to_vec())?;
        hears.check(called, &proof_of(&calls.proof(caller)))?;
        calls.check(caller, &proof_of(&hears.proof(called)))?;
        // What proves one proves not the other.
        let reflected = proof_of(&calls.proof(caller));
        assert!(calls.check(caller, &reflected).is_err());
        Ok(())
    }

    #[test]
    fn those_of_one_domain_and_secret_meet_and_no_others() {
        assert_eq!(meet(&me(3, 1, None), &me(3, 2, None)), Ok(()));
        let (right, wrong) = (Some("open"), Some("shut"));
        assert_eq!(meet(&me(3, 1, right), &me(3, 2, right)), Ok(()));
        let refused = |caller: Me, called: Me, words: &str| {
            let reason = meet(&caller, &called).expect_err("refused");
            assert_eq!(reason, words);
            let contact = ([127, 0, 0, 1], 7400).into();
            let error = HybridError::Refused { contact, reason };
            assert_eq!(error.is_for_secret(), caller.secret != called.secret);
        };
        let words = "the caller is of domain 3, the one called of 4";
        refused(me(3, 1, None), me(4, 2, None), words);
        let words = "the caller has another secret";
        refused(me(3, 1, wrong), me(3, 2, right), words);
        let words = "the caller has no secret, the one called has one";
        refused(me(3, 1, None), me(3, 2, right), words);
        let words = "the caller has a secret, the one called has none";
        refused(me(3, 1, right), me(3, 2, None), words);
        let liar = Me {
            address: me(3, 7, None).address,
            ..me(3, 1, None)
        };
        refused(liar, me(3, 2, None), "the caller has no address");
    }

    #[test]
    fn what_was_overheard_proves_nothing() {
        let (caller, called) = (me(0, 1, Some("open")), me(0, 2, Some("open")));
        let calls = Talk::new(&caller, Role::Caller).expect("a nonce");
        let answers = || {
            let mut talk = Talk::new(&called, Role::Called).expect("a nonce");
            let hello = calls.hello().to_vec();
            talk.hear(&called, &hello_of(&calls), hello).expect("heard");
            talk
        };
        let (first, again) = (answers(), answers());
        let mut calls = Talk {
            theirs: None,
            mine: calls.mine.clone(),
            ..calls
        };
        let hello = first.hello().to_vec();
        calls
            .hear(&caller, &hello_of(&first), hello)
            .expect("heard");
        let proof = proof_of(&calls.proof(&caller));
        assert_eq!(first.check(&called, &proof), Ok(()));
        let replayed = again.check(&called, &proof).expect_err("refused");
        assert_eq!(replayed, "the caller has another secret");
    }

    fn frames() -> [Frame; 6] {
        let talk = Talk::new(&me(9, 8, Some("x")), Role::Caller).expect("a nonce");
        let (already, reason) = (true, "für nichts".to_owned());
        [
            Frame::Hello(hello_of(&talk)),
            Frame::Refused { already, reason },
            Frame::Proof([7; 32]),
            Frame::Offer(vec![9; OFFER_LEN_MAX]),
            Frame::Verdict(Ok(())),
            Frame::Verdict(Err("kein Weg über UDP".to_owned())),
        ]
    }

    #[test]
    fn frames_read_as_they_were_written_and_nothing_else_does() {
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
            let refusal = matches!(frame, Frame::Refused { .. });
            let expected = match refusal {
                true => Ok(bytes.len() - HEADER_LEN),
                false => Err(NoFrame::Version(9)),
            };
            assert_eq!(body_len(later), expected);
            for at in 0..4 {
                let mut other = header;
                other[at] ^= 1;
                assert_eq!(body_len(other), Err(NoFrame::Nonsense));
            }
            let mut long = header;
            long[6..].copy_from_slice(&u16::MAX.to_le_bytes());
            assert_eq!(body_len(long), Err(NoFrame::Nonsense));
        }
    }

    #[test]
    fn offers_are_bounded_and_verdicts_clear() {
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

    #[test]
    fn long_reasons_are_cut_between_letters() {
        let reason = "ü".repeat(REASON_LEN_MAX);
        let already = false;
        let bytes = Frame::Refused { already, reason }.write();
        let Some(Frame::Refused { reason, .. }) = Frame::read(&bytes) else {
            panic!("{bytes:?}");
        };
        assert_eq!(reason, "ü".repeat(REASON_LEN_MAX / 2));
    }
}
