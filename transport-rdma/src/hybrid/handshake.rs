//! The handshake of two stations on a new connection.
//!
//! ```text
//!   caller                                   called
//!     | -- hello: domain, id, nonce, address -> |  checks the domain, and whether the two agree
//!     | <- hello ------------------------------ |  on a secret and on encryption
//!     | -- key exchange, or proof ------------> |  checks it: the caller has the secret
//!     | <- the same, offer -------------------- |  of a queue pair; empty if it has none
//!     | -- offer -----------------------------> |  of its own; or its verdict at once
//!     |       [ both try the queue pairs ]      |
//!     | -- verdict: RDMA, or why not ---------> |
//!     | <- verdict ---------------------------- |
//!     |          records in both directions     |
//! ```
//! If both sides have a secret and neither has turned encryption off, they exchange keys (`noise`).
//! Behind the two messages of that exchange everything goes in encrypted frames
//! ([`secure`](crate::tcp::secure)): offers, verdicts, refusals and, later, records.
//!
//! Otherwise each side proves that it has the secret: an HMAC-SHA256 under the secret over both
//! hellos and the role of its maker. Without a secret the key is empty. The nonces are drawn for each
//! connection, so an overheard proof proves nothing later, and neither side can be made to prove
//! for the other.
//!
//! Keys and proofs both cover the hellos as they were received, so what they say about
//! encryption cannot be changed on the way to make two stations do without it.
//!
//! Offers follow. If both verdicts are positive, pushes go over the queue pairs
//! from then on, else over streams; `path_selection` drives this part.
//!
//! A side that does not accept a frame sends a refusal with the reason, and closes. A frame
//! is read to its last byte and no further: what follows the last verdict belongs to the
//! stream.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::address::{ADDRESS_LEN_MAX, Address};
use super::noise::{self, NoiseError, NoiseHandshake};
use super::options::EncryptionUse;
use super::refusal::{HandshakeRefusal, RefusalKind, cut};
use crate::shm::error::SetupError;
use crate::tcp::secure::{OVERHEAD, PREFIX_LEN, SecureChannel, sealed_len};

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

type Nonce = [u8; 32];
type Proof = [u8; 32];

/// Length of a hello without its address.
const HELLO_LEN: usize = 4 + 16 + 1 + 32;

/// Most bytes after a header.
const BODY_LEN_MAX: usize = HELLO_LEN + ADDRESS_LEN_MAX;

/// Longest offer, in bytes.
pub(super) const OFFER_LEN_MAX: usize = 128;

/// Longest encrypted frame of a handshake, in bytes.
const SEALED_LEN_MAX: usize = OVERHEAD + HEADER_LEN + BODY_LEN_MAX;

/// What this station says of itself in handshakes.
pub(super) struct LocalIdentity {
    pub(super) domain: u32,
    pub(super) id: u128,
    pub(super) host: u128,
    /// The encoded address.
    pub(super) address: Vec<u8>,
    pub(super) secret: Option<Vec<u8>>,
    /// Another secret that callers may have.
    pub(super) accepted_secret: Option<Vec<u8>>,
    pub(super) encryption: EncryptionUse,
}

impl LocalIdentity {
    /// Whether this station encrypts, if it has a secret.
    fn encryption(&self) -> Option<EncryptionUse> {
        self.secret.is_some().then_some(self.encryption)
    }

    /// The secrets by which the other side may prove itself: a called station uses that of its
    /// caller.
    fn secrets(&self, role: Role) -> impl Iterator<Item = &[u8]> {
        let accepted = self.accepted_secret.as_deref();
        let own = self.secret.as_deref().unwrap_or_default();
        core::iter::once(own).chain(accepted.filter(|_| role == Role::Called))
    }
}

/// Omits the secrets.
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
    /// Whether its station encrypts, if it has a secret.
    encryption: Option<EncryptionUse>,
    nonce: Nonce,
    address: Vec<u8>,
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

fn encryption_code(encryption: Option<EncryptionUse>) -> u8 {
    match encryption {
        None => 0,
        Some(EncryptionUse::Off) => 1,
        Some(EncryptionUse::Auto) => 2,
        Some(EncryptionUse::Required) => 3,
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

/// How two stations make sure of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Assurance {
    /// By proofs; what follows them is not encrypted.
    Proofs,
    /// By keys that only stations with the secret have.
    Keys,
}

/// One side's state of a handshake.
#[derive(Debug)]
pub(super) struct Handshake {
    role: Role,
    /// My hello, encoded.
    mine: Vec<u8>,
    /// The other side's hello as it was received, and its address.
    theirs: Option<(Vec<u8>, Address)>,
    assurance: Assurance,
    /// The secret by which the other side has proved itself; before that, my own.
    secret: Vec<u8>,
    uses_accepted_secret: bool,
    noise: Option<NoiseHandshake>,
    /// Set from the end of the key exchange.
    channel: Option<Box<SecureChannel>>,
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
            encryption: me.encryption(),
            nonce,
            address: me.address.clone(),
        };
        Ok(Self {
            role,
            mine: Frame::Hello(hello).write(),
            theirs: None,
            assurance: Assurance::Proofs,
            secret: me.secret.clone().unwrap_or_default(),
            uses_accepted_secret: false,
            noise: None,
            channel: None,
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
        self.assurance = self.agree(me.encryption(), hello.encryption)?;
        let address = Address::read(&hello.address).filter(|address| address.id == hello.id);
        let no_address = || format!("{them} has no address");
        let address =
            address.ok_or_else(|| HandshakeRefusal::new(RefusalKind::Other, no_address()))?;
        self.theirs = Some((frame, address));
        Ok(())
    }

    /// What the two stations do, by what both hellos say. Both sides come to the same result.
    fn agree(
        &self,
        mine: Option<EncryptionUse>,
        theirs: Option<EncryptionUse>,
    ) -> Result<Assurance, HandshakeRefusal> {
        use EncryptionUse::{Auto, Off, Required};
        let (us, them) = (self.role.name(), self.role.other().name());
        let (kind, reason) = match (mine, theirs) {
            (None, None) => return Ok(Assurance::Proofs),
            (None, Some(_)) => {
                let reason = format!("{them} has a secret, {us} has none");
                (RefusalKind::Secret, reason)
            }
            (Some(_), None) => {
                let reason = format!("{them} has no secret, {us} has one");
                (RefusalKind::Secret, reason)
            }
            (Some(Off), Some(Required)) => {
                let reason = format!("{them} requires encryption, which {us} has turned off");
                (RefusalKind::Encryption, reason)
            }
            (Some(Required), Some(Off)) => {
                let reason = format!("{them} has turned encryption off, which {us} requires");
                (RefusalKind::Encryption, reason)
            }
            (Some(Off), Some(_)) | (Some(_), Some(Off)) => return Ok(Assurance::Proofs),
            (Some(Auto | Required), Some(Auto | Required)) => return Ok(Assurance::Keys),
        };
        Err(HandshakeRefusal::new(kind, reason))
    }

    /// Both hellos, encoded: the caller's, and that of the called side.
    fn hellos(&self) -> (&[u8], &[u8]) {
        let theirs = self.theirs.as_ref().map_or(&[][..], |(frame, _)| frame);
        match self.role {
            Role::Caller => (&self.mine[..], theirs),
            Role::Called => (theirs, &self.mine[..]),
        }
    }

    /// The MAC over both hellos under a secret.
    fn mac(&self, secret: &[u8], role: Role) -> Hmac<Sha256> {
        let (caller, called) = self.hellos();
        let mac = Hmac::<Sha256>::new_from_slice(secret).expect("any key will do");
        mac.chain_update(b"spindle-dds handshake 1")
            .chain_update([role as u8])
            // Each hello begins with a header that has its length.
            .chain_update(caller)
            .chain_update(called)
    }

    /// My part of the key exchange, or my proof, encoded. The other side's hello must have been
    /// received, and by the called side its proof. What is sent behind it is to be
    /// [sealed](Self::seal).
    pub(super) fn prove(&mut self) -> Result<Vec<u8>, NoiseError> {
        if self.assurance == Assurance::Proofs {
            let proof = self.mac(&self.secret, self.role).finalize();
            return Ok(Frame::Proof(proof.into_bytes().into()).write());
        }
        let mut noise = match self.noise.take() {
            Some(noise) => noise,
            None => NoiseHandshake::new(self.role, &self.secret, self.hellos())?,
        };
        let message = noise.write()?;
        match self.role {
            Role::Caller => self.noise = Some(noise),
            Role::Called => self.channel = noise.finish().map(Box::new),
        }
        Ok(Frame::KeyExchange(message).write())
    }

    /// Checks the other side's proof, or its part of the key exchange. An error is sent to the
    /// other side.
    pub(super) fn check(
        &mut self,
        me: &LocalIdentity,
        frame: &Frame,
    ) -> Result<(), HandshakeRefusal> {
        let them = self.role.other();
        let is_right = match (self.assurance, frame) {
            (Assurance::Proofs, Frame::Proof(proof)) => self.check_proof(me, proof),
            (Assurance::Keys, Frame::KeyExchange(message)) => match self.role {
                Role::Caller => self.finish_keys(message),
                Role::Called => self.begin_keys(me, message),
            },
            _ => return Err(HandshakeRefusal::out_of_place()),
        };
        let (kind, what) = match me.secret {
            Some(_) => (RefusalKind::Secret, "has another secret"),
            None => (RefusalKind::Other, "answers to another hello"),
        };
        let wrong = || HandshakeRefusal::new(kind, format!("{} {what}", them.name()));
        is_right.then_some(()).ok_or_else(wrong)
    }

    /// In constant time for each secret.
    fn check_proof(&mut self, me: &LocalIdentity, proof: &Proof) -> bool {
        let them = self.role.other();
        let mut secrets = me.secrets(self.role);
        let secret = secrets.find(|secret| self.mac(secret, them).verify_slice(proof).is_ok());
        self.has_proved(secret)
    }

    /// The called side: which of its secrets the caller has, if any.
    fn begin_keys(&mut self, me: &LocalIdentity, message: &noise::Message) -> bool {
        let begun = me.secrets(self.role).find_map(|secret| {
            let mut noise = NoiseHandshake::new(self.role, secret, self.hellos()).ok()?;
            noise.read(message).then_some((secret, noise))
        });
        let (secret, noise) = begun.unzip();
        self.noise = noise;
        self.has_proved(secret)
    }

    fn has_proved(&mut self, secret: Option<&[u8]>) -> bool {
        let Some(secret) = secret else {
            return false;
        };
        self.uses_accepted_secret = secret != self.secret;
        self.secret = secret.to_vec();
        true
    }

    /// The caller has the other side's message: both have the keys.
    fn finish_keys(&mut self, message: &noise::Message) -> bool {
        let noise = self.noise.take().and_then(|mut noise| {
            let is_right = noise.read(message);
            is_right.then_some(noise)
        });
        self.channel = noise.and_then(NoiseHandshake::finish).map(Box::new);
        self.channel.is_some()
    }

    /// Whether a caller has proved itself by the secret that is accepted beside this station's
    /// own.
    pub(super) fn uses_accepted_secret(&self) -> bool {
        self.uses_accepted_secret
    }

    /// What is sent for a frame.
    pub(super) fn seal(&mut self, frame: Vec<u8>) -> Vec<u8> {
        match &mut self.channel {
            Some(channel) => channel.sealer.seal_copy(&frame),
            None => frame,
        }
    }

    /// Number of bytes of the next frame that is received, as far as is known from its first
    /// bytes; more than there are as long as it is not whole.
    pub(super) fn received_len(&self, bytes: &[u8]) -> Result<usize, FrameError> {
        if self.channel.is_none() {
            return match bytes.first_chunk() {
                None => Ok(HEADER_LEN),
                Some(&header) => Ok(HEADER_LEN + body_len(header)?),
            };
        }
        let Some(&prefix) = bytes.first_chunk() else {
            return Ok(PREFIX_LEN);
        };
        let len = PREFIX_LEN + sealed_len(prefix).map_err(|_| FrameError::NotOpened)?;
        match len <= SEALED_LEN_MAX {
            true => Ok(len),
            false => Err(FrameError::NotOpened),
        }
    }

    /// The frame in whole bytes that were received.
    pub(super) fn open(&mut self, mut bytes: Vec<u8>) -> Result<Vec<u8>, FrameError> {
        let Some(channel) = &mut self.channel else {
            return Ok(bytes);
        };
        let opened = channel.opener.open_one(&mut bytes[PREFIX_LEN..]);
        let frame = opened.map_err(|_| FrameError::NotOpened)?;
        let header = frame.first_chunk().ok_or(FrameError::ProtocolViolation)?;
        match HEADER_LEN + body_len(*header)? == frame.len() {
            true => Ok(frame.to_vec()),
            false => Err(FrameError::ProtocolViolation),
        }
    }

    /// The keys, for the records behind the handshake; `None` if those are not encrypted.
    pub(super) fn take_channel(&mut self) -> Option<Box<SecureChannel>> {
        self.channel.take()
    }

    /// Whether the rest of the handshake, and the records behind it, are encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        self.channel.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::hybrid::testing::{FRAMES, shake_hands};
    use crate::sim::Rng;
    use EncryptionUse::{Auto, Off, Required};

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
            accepted_secret: None,
            encryption: Auto,
        }
    }

    fn accepting(accepted: &str, me: LocalIdentity) -> LocalIdentity {
        LocalIdentity {
            accepted_secret: Some(accepted.into()),
            ..me
        }
    }

    fn hello_of(handshake: &Handshake) -> Hello {
        match Frame::read(handshake.hello()) {
            Some(Frame::Hello(hello)) => hello,
            other => panic!("{other:?}"),
        }
    }

    fn start(me: &LocalIdentity, role: Role) -> Handshake {
        Handshake::new(me, role).expect("a nonce")
    }

    fn prove(handshake: &mut Handshake) -> Frame {
        let bytes = handshake.prove().expect("a proof");
        Frame::read(&bytes).expect("a frame")
    }

    /// Runs the handshake of a caller and a called station.
    fn meet(
        caller: &LocalIdentity,
        called: &LocalIdentity,
    ) -> Result<[Handshake; 2], HandshakeRefusal> {
        let mut calls = start(caller, Role::Caller);
        let mut hears = start(called, Role::Called);
        hears.receive_hello(called, &hello_of(&calls), calls.hello().to_vec())?;
        calls.receive_hello(caller, &hello_of(&hears), hears.hello().to_vec())?;
        let proof = prove(&mut calls);
        hears.check(called, &proof)?;
        // A reflected proof is not accepted.
        let mut reflected = start(caller, Role::Caller);
        (reflected.mine, reflected.theirs) = (calls.mine.clone(), calls.theirs.clone());
        reflected.assurance = calls.assurance;
        let own = prove(&mut reflected);
        assert!(reflected.check(caller, &own).is_err());
        calls.check(caller, &prove(&mut hears))?;
        assert_eq!(calls.is_encrypted(), hears.is_encrypted());
        Ok([calls, hears])
    }

    #[test]
    fn only_stations_of_one_domain_and_secret_accept_each_other() {
        let accepted = |caller: LocalIdentity, called: LocalIdentity, encrypted: bool| {
            let both = meet(&caller, &called).expect("accepted");
            assert!(both.iter().all(|it| it.is_encrypted() == encrypted));
        };
        let (right, wrong) = (Some("open"), Some("shut"));
        accepted(me(3, 1, None), me(3, 2, None), false);
        accepted(me(3, 1, right), me(3, 2, right), true);
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
        for encryption in [Auto, Off] {
            let called = LocalIdentity {
                encryption,
                ..me(3, 2, right)
            };
            refused(me(3, 1, wrong), called, words);
        }
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

    /// The table of docs/guide/security.md.
    #[test]
    fn two_stations_encrypt_unless_one_has_turned_it_off() {
        let with = |id, encryption| LocalIdentity {
            encryption,
            ..me(3, id, Some("open"))
        };
        for (caller, called, expected) in [
            (Auto, Auto, Ok(true)),
            (Auto, Off, Ok(false)),
            (Auto, Required, Ok(true)),
            (Off, Auto, Ok(false)),
            (Off, Off, Ok(false)),
            (
                Off,
                Required,
                Err("the caller has turned encryption off, which the one called requires"),
            ),
            (Required, Auto, Ok(true)),
            (
                Required,
                Off,
                Err("the caller requires encryption, which the one called has turned off"),
            ),
            (Required, Required, Ok(true)),
        ] {
            let met = meet(&with(1, caller), &with(2, called));
            let met = met.map(|[one, _]| one.is_encrypted()).map_err(|refusal| {
                assert_eq!(refusal.kind, RefusalKind::Encryption);
                refusal.reason
            });
            let expected = expected.map_err(str::to_owned);
            assert_eq!(met, expected, "{caller:?} calls {called:?}");
        }
    }

    /// The called side takes its caller's secret, if it accepts it; the caller only its own.
    #[test]
    fn a_called_station_accepts_a_second_secret() {
        let old = |id| accepting("new", me(3, id, Some("old")));
        let new = |id| accepting("old", me(3, id, Some("new")));
        for encryption in [Auto, Off] {
            let all = |me| LocalIdentity { encryption, ..me };
            let is_by_accepted = |caller: LocalIdentity, called: LocalIdentity| {
                let [_, called] = meet(&all(caller), &all(called)).expect("accepted");
                called.uses_accepted_secret()
            };
            assert!(is_by_accepted(old(1), new(2)));
            assert!(is_by_accepted(new(1), old(2)));
            assert!(!is_by_accepted(new(1), new(2)));
            assert!(!is_by_accepted(me(3, 1, Some("old")), old(2)));
            assert!(is_by_accepted(me(3, 1, Some("new")), old(2)));
            let refused = meet(&all(old(1)), &all(me(3, 2, Some("new"))));
            let reason = refused.expect_err("refused").reason;
            assert_eq!(reason, "the caller has another secret");
            let refused = meet(&all(me(3, 1, Some("third"))), &all(new(2)));
            assert!(refused.is_err());
        }
    }

    #[test]
    fn an_overheard_proof_proves_nothing() {
        for encryption in [Auto, Off] {
            let with = |id| LocalIdentity {
                encryption,
                ..me(0, id, Some("open"))
            };
            let (caller, called) = (with(1), with(2));
            let mut calls = start(&caller, Role::Caller);
            let answers = || {
                let mut handshake = start(&called, Role::Called);
                let hello = calls.hello().to_vec();
                handshake
                    .receive_hello(&called, &hello_of(&calls), hello)
                    .expect("heard");
                handshake
            };
            let (mut first, mut again) = (answers(), answers());
            let hello = first.hello().to_vec();
            calls
                .receive_hello(&caller, &hello_of(&first), hello)
                .expect("heard");
            let proof = prove(&mut calls);
            assert_eq!(first.check(&called, &proof), Ok(()));
            let replayed = again.check(&called, &proof).expect_err("refused");
            assert_eq!(replayed.reason, "the caller has another secret");
        }
    }

    /// What a station in the middle changes in a hello, to make the two do without encryption,
    /// shows in the proofs.
    #[test]
    fn encryption_cannot_be_turned_off_on_the_way() {
        let (caller, called) = (me(3, 1, Some("open")), me(3, 2, Some("open")));
        let as_off = |hello: &[u8]| {
            let mut changed = hello.to_vec();
            // Behind domain and id.
            changed[HEADER_LEN + 20] = encryption_code(Some(Off));
            match Frame::read(&changed) {
                Some(Frame::Hello(hello)) => (hello, changed),
                other => panic!("{other:?}"),
            }
        };
        let mut calls = start(&caller, Role::Caller);
        let mut hears = start(&called, Role::Called);
        let (hello, frame) = as_off(calls.hello());
        hears.receive_hello(&called, &hello, frame).expect("heard");
        let (hello, frame) = as_off(hears.hello());
        calls.receive_hello(&caller, &hello, frame).expect("heard");
        let proof = prove(&mut calls);
        assert!(matches!(proof, Frame::Proof(_)));
        let reason = hears.check(&called, &proof).expect_err("refused").reason;
        assert_eq!(reason, "the caller has another secret");
        assert!(calls.check(&caller, &prove(&mut hears)).is_err());
    }

    /// Frames behind the key exchange are sealed, and bounded.
    #[test]
    fn frames_behind_the_key_exchange_are_sealed() {
        let (caller, called) = (me(3, 1, Some("open")), me(3, 2, Some("open")));
        let [mut calls, mut hears] = meet(&caller, &called).expect("accepted");
        let verdict = Frame::Verdict(Err("none".to_owned()));
        let sealed = hears.seal(verdict.write());
        assert!(!sealed.windows(4).any(|part| part == b"none"));
        for len in 0..PREFIX_LEN {
            assert_eq!(calls.received_len(&sealed[..len]), Ok(PREFIX_LEN));
        }
        assert_eq!(calls.received_len(&sealed), Ok(sealed.len()));
        let opened = calls.open(sealed.clone()).expect("opened");
        assert_eq!(Frame::read(&opened), Some(verdict.clone()));
        assert_eq!(calls.open(sealed), Err(FrameError::NotOpened), "again");
        let long = [u8::MAX; PREFIX_LEN];
        assert_eq!(hears.received_len(&long), Err(FrameError::NotOpened));
        // A frame that is not encrypted any more.
        let plain = verdict.write();
        assert!(hears.received_len(&plain).is_err() || hears.open(plain).is_err());
        // Sealed by a peer, but no frame, or more than one.
        for nonsense in [b"short".to_vec(), [verdict.write(), vec![0]].concat()] {
            let [mut calls, mut hears] = meet(&caller, &called).expect("accepted");
            let sealed = calls.seal(nonsense);
            assert_eq!(hears.open(sealed), Err(FrameError::ProtocolViolation));
        }
    }

    /// A bit of a frame is changed, or bytes are cut off or added: that frame is refused, and of
    /// a hello the proof that follows. Set the variable for more.
    #[test]
    fn changed_handshakes_are_refused() {
        let rounds = std::env::var("SPINDLE_TEST_FRAMES").ok();
        // A handshake takes a thousand times as long as a frame.
        let rounds = rounds.map_or(500, |it| it.parse::<u32>().expect("a number") / 5);
        let rng = &mut Rng::new(5);
        let secrets = [Some(&b"open"[..]); 2];
        for (encryption, frames) in [(Auto, FRAMES), (Off, 4)] {
            let whole = shake_hands(secrets, [encryption; 2], |_, frame| frame);
            assert_eq!(whole, FRAMES);
            for round in 0..rounds {
                let which = rng.below(frames);
                let accepted =
                    shake_hands(secrets, [encryption; 2], |at, frame| match at == which {
                        true => change(frame, rng),
                        false => frame,
                    });
                assert!(accepted <= which.max(2), "round {round}: message {which}");
            }
        }
    }

    /// Another frame than this one.
    fn change(mut frame: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
        match rng.below(8) {
            0 => frame.truncate(rng.below(frame.len())),
            1 => frame.push(rng.below(256) as u8),
            _ => {
                let at = rng.below(frame.len());
                frame[at] ^= 1 << rng.below(8);
            }
        }
        frame
    }

    fn frames() -> [Frame; 7] {
        let handshake = Handshake::new(&me(9, 8, Some("x")), Role::Caller).expect("a nonce");
        [
            Frame::Hello(hello_of(&handshake)),
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
