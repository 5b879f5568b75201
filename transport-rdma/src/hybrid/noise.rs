//! The Noise handshake that gives a connection its keys, by the `snow` library:
//! `Noise_NNpsk0_25519_AESGCM_SHA256`.
//!
//! ```text
//!   caller                                  called
//!     | -- psk, e ---------------------------> |  opens it: the caller has the secret
//!     | <- e, ee ----------------------------- |
//!   opens it: the called side has the secret; both have the keys
//! ```
//! Both sides have the domain's secret and neither has a key of its own, hence the pattern NN. The
//! secret goes into the first message, so the called side computes nothing for strangers but
//! hashes. The prologue is both hellos as they went over the network, with the ids, addresses, nonces,
//! domain, version, and the use of encryption on either side: if one bit of them was
//! changed, nothing opens. So the keys belong to these two stations and this connection. The
//! ephemeral keys are forgotten: the secret, learnt later, does not open what was recorded.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use super::handshake::Role;
use crate::tcp::secure::{FRAMES_PER_KEY, SecureChannel};

const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";

/// Length of either message: a public key and a tag.
pub(super) const MESSAGE_LEN: usize = 48;

pub(super) type Message = [u8; MESSAGE_LEN];

/// One side's state of a Noise handshake.
#[derive(Debug)]
pub(super) struct NoiseHandshake {
    role: Role,
    state: Box<HandshakeState>,
}

/// The library failed, for lack of random numbers.
#[derive(Debug, thiserror::Error)]
#[error("no keys can be made: {0}")]
pub(super) struct NoiseError(#[from] snow::Error);

/// The key that both sides have before: made of the domain's secret, for this use only.
fn shared_key(secret: &[u8]) -> Zeroizing<[u8; 32]> {
    let mac = Hmac::<Sha256>::new_from_slice(secret).expect("any key will do");
    let mac = mac.chain_update(b"spindle-dds noise key 1");
    Zeroizing::new(mac.finalize().into_bytes().into())
}

impl NoiseHandshake {
    /// `hellos` are those of the caller and of the called side, encoded.
    pub(super) fn new(
        role: Role,
        secret: &[u8],
        (caller, called): (&[u8], &[u8]),
    ) -> Result<Self, NoiseError> {
        let key = shared_key(secret);
        // Each hello begins with a header that has its length.
        let prologue = [b"spindle-dds noise 1", caller, called].concat();
        let builder = Builder::new(PATTERN.parse()?).prologue(&prologue)?;
        let builder = builder.psk(0, &key)?;
        let state = match role {
            Role::Caller => builder.build_initiator(),
            Role::Called => builder.build_responder(),
        };
        Ok(Self {
            role,
            state: Box::new(state?),
        })
    }

    /// My message.
    pub(super) fn write(&mut self) -> Result<Message, NoiseError> {
        let mut message = [0; MESSAGE_LEN];
        let len = self.state.write_message(&[], &mut message)?;
        debug_assert_eq!(len, MESSAGE_LEN);
        Ok(message)
    }

    /// Reads the other side's message: whether it has the same secret, and the same hellos.
    pub(super) fn read(&mut self, message: &Message) -> bool {
        self.state.read_message(message, &mut []).is_ok()
    }

    /// The keys, once both messages were written and read; else `None`.
    pub(super) fn finish(mut self) -> Option<SecureChannel> {
        if !self.state.is_handshake_finished() {
            return None;
        }
        let (of_caller, of_called) = self.state.dangerously_get_raw_split();
        let (of_caller, of_called) = (Zeroizing::new(of_caller), Zeroizing::new(of_called));
        let (seals, opens) = match self.role {
            Role::Caller => (of_caller, of_called),
            Role::Called => (of_called, of_caller),
        };
        Some(SecureChannel::new(&seals, &opens, FRAMES_PER_KEY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::secure::{PREFIX_LEN, Sealer};

    const HELLOS: (&[u8], &[u8]) = (b"caller", b"called");

    fn start(role: Role, secret: &[u8], hellos: (&[u8], &[u8])) -> NoiseHandshake {
        NoiseHandshake::new(role, secret, hellos).expect("a handshake")
    }

    /// Runs both sides; whether each accepts the other's message.
    fn meet(caller: NoiseHandshake, called: NoiseHandshake) -> Option<[SecureChannel; 2]> {
        let (mut caller, mut called) = (caller, called);
        let first = caller.write().expect("written");
        if !called.read(&first) {
            return None;
        }
        let second = called.write().expect("written");
        assert!(caller.read(&second));
        Some([caller, called].map(|it| it.finish().expect("the keys")))
    }

    #[test]
    fn sides_with_the_same_secret_and_hellos_have_the_same_keys() {
        let both = || {
            let sides = [Role::Caller, Role::Called].map(|role| start(role, b"open", HELLOS));
            let [caller, called] = sides;
            meet(caller, called).expect("they meet")
        };
        let [mut caller, mut called] = both();
        let pass = |sealer: &mut Sealer, other: &mut SecureChannel| {
            let mut frame = sealer.seal_copy(b"there");
            let opened = other.opener.open_one(&mut frame[PREFIX_LEN..]);
            assert_eq!(opened, Ok(&b"there"[..]));
        };
        pass(&mut caller.sealer, &mut called);
        pass(&mut called.sealer, &mut caller);
        // The keys of another connection are others, and so are those of the other direction.
        let [mut again, _] = both();
        let frame = again.sealer.seal_copy(b"there");
        for opener in [&mut called.opener, &mut caller.opener] {
            let mut frame = frame.clone();
            assert!(opener.open_one(&mut frame[PREFIX_LEN..]).is_err());
        }
    }

    #[test]
    fn another_secret_or_hello_is_noticed() {
        let called = |secret: &[u8], hellos| start(Role::Called, secret, hellos);
        let caller = || start(Role::Caller, b"open", HELLOS);
        assert!(meet(caller(), called(b"shut", HELLOS)).is_none());
        assert!(meet(caller(), called(b"open", (b"caller", b"cALLED"))).is_none());
        assert!(meet(caller(), called(b"open", (b"cALLER", b"called"))).is_none());
        // Nothing is finished before the second message.
        let mut early = caller();
        early.write().expect("written");
        assert!(early.finish().is_none());
    }

    /// No bit of a message is without effect.
    #[test]
    fn changed_messages_are_refused() {
        let mut caller = start(Role::Caller, b"open", HELLOS);
        let mut called = start(Role::Called, b"open", HELLOS);
        let changed = |message: &Message| {
            let message = *message;
            (0..MESSAGE_LEN * 8).map(move |bit| {
                let mut changed = message;
                changed[bit / 8] ^= 1 << (bit % 8);
                changed
            })
        };
        let first = caller.write().expect("written");
        for message in changed(&first) {
            assert!(!start(Role::Called, b"open", HELLOS).read(&message));
        }
        assert!(called.read(&first));
        let second = called.write().expect("written");
        for message in changed(&second) {
            // The library's state is as before a message that it refuses.
            assert!(!caller.read(&message));
        }
        assert!(caller.read(&second));
    }
}
