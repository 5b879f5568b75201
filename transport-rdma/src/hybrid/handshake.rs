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

use super::address::Address;
use super::handshake_frame::{
    BODY_LEN_MAX, Frame, FrameError, HEADER_LEN, Hello, Nonce, Proof, body_len,
};
use super::noise::{self, NoiseError, NoiseHandshake};
use super::options::EncryptionUse;
use super::refusal::{HandshakeRefusal, RefusalKind};
use super::secret::Secret;
use crate::shm::error::SetupError;
use crate::tcp::secure::{OVERHEAD, PREFIX_LEN, SecureChannel, sealed_len};

/// Longest encrypted frame of a handshake, in bytes.
const SEALED_LEN_MAX: usize = OVERHEAD + HEADER_LEN + BODY_LEN_MAX;

/// What this station says of itself in handshakes.
pub(super) struct LocalIdentity {
    pub(super) domain: u32,
    pub(super) id: u128,
    pub(super) host: u128,
    /// The encoded address.
    pub(super) address: Vec<u8>,
    pub(super) secret: Option<Secret>,
    /// Another secret that callers may have.
    pub(super) accepted_secret: Option<Secret>,
    pub(super) encryption: EncryptionUse,
}

impl LocalIdentity {
    /// Whether this station encrypts, if it has a secret.
    fn encryption(&self) -> Option<EncryptionUse> {
        self.secret.is_some().then_some(self.encryption)
    }

    /// The secrets by which the other side may prove itself, my own first: a called station uses
    /// that of its caller.
    fn secrets(&self, role: Role) -> impl Iterator<Item = &[u8]> {
        let own = self.secret.as_ref().map_or(&[][..], Secret::as_bytes);
        let accepted = self.accepted_secret.iter().map(Secret::as_bytes);
        core::iter::once(own).chain(accepted.filter(move |_| role == Role::Called))
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
    secret: Secret,
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
            let proof = self.mac(self.secret.as_bytes(), self.role).finalize();
            return Ok(Frame::Proof(proof.into_bytes().into()).write());
        }
        let mut noise = match self.noise.take() {
            Some(noise) => noise,
            None => NoiseHandshake::new(self.role, self.secret.as_bytes(), self.hellos())?,
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
        let mut secrets = me.secrets(self.role).enumerate();
        let is_right = |secret| self.mac(secret, them).verify_slice(proof).is_ok();
        let secret = secrets.find(|&(_, secret)| is_right(secret));
        self.has_proved(secret)
    }

    /// The called side: which of its secrets the caller has, if any.
    fn begin_keys(&mut self, me: &LocalIdentity, message: &noise::Message) -> bool {
        let begun = me.secrets(self.role).enumerate().find_map(|secret| {
            let mut noise = NoiseHandshake::new(self.role, secret.1, self.hellos()).ok()?;
            noise.read(message).then_some((secret, noise))
        });
        let (secret, noise) = begun.unzip();
        self.noise = noise;
        self.has_proved(secret)
    }

    /// `secret` is the other side's, and its place among those that may be used.
    fn has_proved(&mut self, secret: Option<(usize, &[u8])>) -> bool {
        let Some((at, secret)) = secret else {
            return false;
        };
        self.uses_accepted_secret = at > 0;
        self.secret = secret.into();
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
mod tests;
