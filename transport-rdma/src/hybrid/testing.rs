//! The parsers that bytes of stations reach which have not proved themselves, for tests and fuzz
//! targets. Not part of the public interface.

use super::address::Address;
use super::handshake::{Handshake, LocalIdentity, Role};
use super::handshake_frame::Frame;
use super::options::EncryptionUse;
use crate::tcp::secure::{FRAMES_PER_KEY, OVERHEAD, Opener, PREFIX_LEN, Sealer};

/// Frames of [`shake_hands`].
pub const FRAMES: usize = 7;

/// Two stations shake hands: their hellos, proofs or key exchange, an offer of no queue pair, and
/// verdicts; by turns, but for the offer, which follows the called side's proof.
///
/// `tamper` makes what it likes of each of the frames, which are numbered from 0. Returns how many
/// of them were accepted before one was refused, or is not whole.
///
/// # Panics
/// If a side that has refused has keys, or if the system has no random numbers.
pub fn shake_hands(
    secrets: [Option<&[u8]>; 2],
    encryption: [EncryptionUse; 2],
    mut tamper: impl FnMut(usize, Vec<u8>) -> Vec<u8>,
) -> usize {
    let roles = [Role::Caller, Role::Called];
    let mut sides = [0, 1].map(|at| Side::new(at, secrets[at], encryption[at], roles[at]));
    let sends = [0, 1, 0, 1, 1, 0, 1];
    for (number, from) in sends.into_iter().enumerate() {
        let Some(frame) = sides[from].send(number) else {
            return number;
        };
        let frame = tamper(number, frame);
        if sides[1 - from].receive(number, frame).is_none() {
            return number;
        }
        let [caller, called] = &sides;
        let have_keys = [caller, called].map(|it| it.handshake.is_encrypted());
        assert!(
            number > 2 || have_keys == [false; 2],
            "keys without a proof"
        );
    }
    sends.len()
}

struct Side {
    me: LocalIdentity,
    handshake: Handshake,
}

impl Side {
    fn new(at: usize, secret: Option<&[u8]>, encryption: EncryptionUse, role: Role) -> Self {
        let id = 1 + at as u128;
        let address = Address {
            host: id,
            id,
            on_host: b"here".to_vec(),
            sockets: vec![([10, 0, 0, 1], 7400).into()],
        };
        let me = LocalIdentity {
            domain: 3,
            id,
            host: id,
            address: address.write(),
            secret: secret.map(Into::into),
            accepted_secret: Some("accepted".into()),
            encryption,
        };
        let handshake = Handshake::new(&me, role).expect("a nonce");
        Self { me, handshake }
    }

    fn send(&mut self, number: usize) -> Option<Vec<u8>> {
        let none = || Err(String::new());
        match number {
            0 | 1 => Some(self.handshake.hello().to_vec()),
            2 | 3 => self.handshake.prove().ok(),
            4 => Some(self.handshake.seal(Frame::Offer(Vec::new()).write())),
            _ => Some(self.handshake.seal(Frame::Verdict(none()).write())),
        }
    }

    /// Handles the bytes of a frame as the handshake thread does.
    fn receive(&mut self, number: usize, bytes: Vec<u8>) -> Option<()> {
        let want = self.handshake.received_len(&bytes).ok()?;
        if self.handshake.received_len(bytes.get(..want)?).ok()? != bytes.len() {
            return None;
        }
        let bytes = self.handshake.open(bytes).ok()?;
        match (number, Frame::read(&bytes)?) {
            (0 | 1, Frame::Hello(hello)) => {
                self.handshake.receive_hello(&self.me, &hello, bytes).ok()
            }
            (2 | 3, frame) => self.handshake.check(&self.me, &frame).ok(),
            (4, Frame::Offer(_)) | (_, Frame::Verdict(_)) => Some(()),
            _ => None,
        }
    }
}

/// Seals `plains` as the frames of a stream, has `tamper` make what it likes of them, and opens
/// the result, in pieces of so many bytes.
///
/// # Panics
/// If more is opened than the frames that came before the first difference.
pub fn open_tampered(
    plains: &[Vec<u8>],
    frames_per_key: u64,
    tamper: impl FnOnce(Vec<Vec<u8>>) -> Vec<u8>,
    piece_len: usize,
) -> bool {
    let key = [7; 32];
    let mut sealer = Sealer::new(&key, frames_per_key);
    let frames: Vec<_> = plains.iter().map(|it| sealer.seal_copy(it)).collect();
    let whole = frames.concat();
    let ends: Vec<_> = frames
        .iter()
        .scan(0, |end, frame| {
            *end += frame.len();
            Some(*end)
        })
        .collect();
    let tampered = tamper(frames);
    let alike = whole.iter().zip(&tampered).take_while(|(a, b)| a == b);
    let alike = alike.count();
    let right = ends.iter().filter(|&&end| end <= alike).count();
    let (mut opener, mut opened) = (Opener::new(&key, frames_per_key), 0);
    let mut is_right = true;
    for piece in tampered.chunks(piece_len.max(1)) {
        let outcome = opener.open(&mut piece.to_vec(), |plain| {
            is_right &= plains.get(opened).is_some_and(|it| it == plain);
            opened += 1;
            true
        });
        if outcome.is_err() {
            assert!(is_right && opened == right, "{opened} of {right} frames");
            return false;
        }
    }
    assert!(is_right && opened == right, "{opened} of {right} frames");
    true
}

/// Reads bytes as a frame of a handshake, and as an address. What is read is written as it was.
///
/// # Panics
/// If it is not.
pub fn read_frame(bytes: &[u8]) {
    if let Some(frame) = Frame::read(bytes)
        && !matches!(frame, Frame::Refused(_) | Frame::Verdict(_))
    {
        let again = Frame::read(&frame.write());
        assert_eq!(again, Some(frame));
    }
    if let Some(address) = Address::read(bytes) {
        assert_eq!(address.write(), bytes);
    }
}

/// A frame of one length that is sealed and opened over and over, for measurements.
#[derive(Debug)]
pub struct EncryptedFrame {
    sealer: Sealer,
    opener: Opener,
    stage: Vec<u8>,
    buffer: Vec<u8>,
    len: usize,
}

impl EncryptedFrame {
    /// Frames of so many bytes of plaintext, at most 65519.
    pub fn new(len: usize) -> Self {
        let key = [7; 32];
        Self {
            sealer: Sealer::new(&key, FRAMES_PER_KEY),
            opener: Opener::new(&key, FRAMES_PER_KEY),
            stage: vec![1; len + OVERHEAD],
            buffer: vec![0; len + OVERHEAD],
            len,
        }
    }

    /// Seals a frame, copies it, and opens it.
    ///
    /// # Panics
    /// If it does not open.
    pub fn round(&mut self) {
        let frame = self.sealer.seal(&mut self.stage, self.len);
        debug_assert_eq!(frame, self.stage.len());
        self.copy();
        let opened = self.opener.open_one(&mut self.buffer[PREFIX_LEN..]);
        assert_eq!(opened.map(<[u8]>::len), Ok(self.len));
    }

    /// Copies a frame.
    pub fn copy(&mut self) {
        std::hint::black_box(&mut self.buffer).copy_from_slice(&self.stage);
    }
}
