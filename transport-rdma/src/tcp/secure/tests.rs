use snow::{Builder, TransportState};

use super::*;
use crate::hybrid::testing::open_tampered;
use crate::sim::Rng;

const KEY: [u8; KEY_LEN] = [7; KEY_LEN];

fn sealer(frames_per_key: u64) -> Sealer {
    Sealer::new(&KEY, frames_per_key)
}

fn opener(frames_per_key: u64) -> Opener {
    Opener::new(&KEY, frames_per_key)
}

/// Opens a stream in random pieces; returns the plaintexts, and the error if there is one.
fn open(
    opener: &mut Opener,
    stream: &[u8],
    rng: &mut Rng,
) -> (Vec<Vec<u8>>, Result<(), FrameError>) {
    let (mut plains, mut rest) = (Vec::new(), stream);
    while !rest.is_empty() {
        let most = [1, 3, 30, 300, 200_000][rng.below(5)].min(rest.len());
        let (piece, after) = rest.split_at(1 + rng.below(most));
        let opened = opener.open(&mut piece.to_vec(), |plain| {
            plains.push(plain.to_vec());
            true
        });
        if opened.is_err() {
            return (plains, opened);
        }
        rest = after;
    }
    (plains, Ok(()))
}

fn random_bytes(len: usize, rng: &mut Rng) -> Vec<u8> {
    (0..len).map(|_| rng.below(256) as u8).collect()
}

#[test]
fn frames_in_any_pieces_are_opened() {
    let rng = &mut Rng::new(1);
    for frames_per_key in [1, 3, FRAMES_PER_KEY] {
        let (mut sealer, mut opener) = (sealer(frames_per_key), opener(frames_per_key));
        for _ in 0..50 {
            let lens = [1, 8, 200, 5000, PLAIN_LEN_MAX];
            let plain = |_| random_bytes(lens[rng.below(lens.len())], rng);
            let plains: Vec<_> = (0..5).map(plain).collect();
            let mut stream = Vec::new();
            for plain in &plains {
                let frame = sealer.seal_copy(plain);
                assert_eq!(frame.len(), plain.len() + OVERHEAD);
                stream.extend(frame);
            }
            let (opened, outcome) = open(&mut opener, &stream, rng);
            assert_eq!(outcome, Ok(()));
            assert!(opened == plains);
            assert!(opener.is_between_frames());
        }
    }
}

/// What is sealed in a stage is what is sealed from a copy; a station without keys sends the stage as
/// it is, and one whose connection has ended sends nothing.
#[test]
fn stages_are_sealed_in_place() {
    let mut stage = [0; 100];
    let mut sealing = Sealing::Sealed(Box::new(sealer(9)));
    let (start, room) = sealing.stage(100).expect("open");
    assert_eq!((start, room), (PREFIX_LEN, 100 - OVERHEAD));
    assert_eq!(sealing.stage(1 << 20), Some((PREFIX_LEN, PLAIN_LEN_MAX)));
    stage[start..][..5].copy_from_slice(b"there");
    let end = sealing.seal(&mut stage, start + 5);
    assert_eq!(stage[..end], sealer(9).seal_copy(b"there"));
    assert_eq!(Sealing::Plain.stage(1 << 20), Some((0, 1 << 20)));
    assert_eq!(Sealing::Plain.seal(&mut stage, 5), 5);
    assert_eq!(stage[..end], sealer(9).seal_copy(b"there"));
    assert!(Sealing::Ended.stage(100).is_none());
}

#[test]
fn nothing_is_passed_on_after_a_refusal() {
    let mut sealer = sealer(9);
    let mut stream = [sealer.seal_copy(b"one"), sealer.seal_copy(b"two")].concat();
    let mut plains = Vec::new();
    let opened = opener(9).open(&mut stream, |plain| {
        plains.push(plain.to_vec());
        false
    });
    assert_eq!((opened, plains), (Ok(()), vec![b"one".to_vec()]));
}

#[test]
fn short_frames_are_refused() {
    for len in 0..=TAG_LEN as u16 {
        let mut bytes = [&len.to_le_bytes()[..], &[0; 40]].concat();
        let opened = opener(9).open(&mut bytes, |_| panic!("opened"));
        let len = usize::from(len);
        assert_eq!(opened, Err(FrameError::TooShort { len }));
    }
}

/// Another implementation of Noise reads and writes these frames, and changes keys at the same
/// places.
#[test]
fn frames_are_transport_messages_of_noise() {
    let [mut caller, called] = noise();
    let (of_caller, of_called) = caller.dangerously_get_raw_split();
    let mut mine = SecureChannel::new(&of_caller, &of_called, 3);
    let mut theirs = called.into_transport_mode().expect("finished");
    for at in 1..=10_u8 {
        let plain = vec![at; usize::from(at) * 100];
        let frame = mine.sealer.seal_copy(&plain);
        let mut opened = vec![0; 2000];
        let len = theirs.read_message(&frame[PREFIX_LEN..], &mut opened);
        assert_eq!(opened[..len.expect("opened")], plain);
        let len = theirs.write_message(&plain, &mut opened).expect("sealed");
        let opened = mine.opener.open_one(&mut opened[..len]);
        assert_eq!(opened, Ok(&plain[..]));
        if at.is_multiple_of(3) {
            TransportState::rekey_incoming(&mut theirs);
            TransportState::rekey_outgoing(&mut theirs);
        }
    }
}

/// Both sides of a finished handshake.
fn noise() -> [snow::HandshakeState; 2] {
    let builder = || {
        let pattern = "Noise_NNpsk0_25519_AESGCM_SHA256"
            .parse()
            .expect("a pattern");
        Builder::new(pattern).psk(0, &[3; 32]).expect("a key")
    };
    let mut caller = builder().build_initiator().expect("a caller");
    let mut called = builder().build_responder().expect("a called side");
    let mut message = [0; 100];
    let len = caller.write_message(&[], &mut message).expect("written");
    called.read_message(&message[..len], &mut []).expect("read");
    let len = called.write_message(&[], &mut message).expect("written");
    caller.read_message(&message[..len], &mut []).expect("read");
    [caller, called]
}

/// Another stream than this one, as a station in the middle may make it of whole frames.
fn tamper(mut frames: Vec<Vec<u8>>, rng: &mut Rng) -> Vec<u8> {
    let at = rng.below(frames.len());
    match rng.below(8) {
        0 => {
            let frame = frames[at].clone();
            frames.insert(at + rng.below(frames.len() - at), frame);
        }
        1 if at > 0 => frames.swap(at, rng.below(at)),
        2 if at + 1 < frames.len() => drop(frames.remove(at)),
        3 => {
            let len = frames[at].len();
            frames[at].truncate(rng.below(len));
        }
        4 => {
            let len = 1 + rng.below(100);
            let noise = random_bytes(len, rng);
            frames.insert(at, noise);
        }
        5 => {
            let by = [1, 256][rng.below(2)];
            let len = u16::from_le_bytes([frames[at][0], frames[at][1]]);
            frames[at][..2].copy_from_slice(&len.wrapping_add(by).to_le_bytes());
        }
        _ => {
            let byte = rng.below(frames[at].len());
            frames[at][byte] ^= 1 << rng.below(8);
        }
    }
    frames.concat()
}

/// Frames are changed, cut off, repeated, left out, exchanged or inserted: what is opened is
/// what was sealed, up to the first difference, and nothing behind it. Set the variable for more.
#[test]
fn nothing_that_was_tampered_with_is_opened() {
    let rounds = std::env::var("SPINDLE_TEST_FRAMES").ok();
    let rounds: u32 = rounds.map_or(20_000, |it| it.parse().expect("a number"));
    let rng = &mut Rng::new(4);
    let mut errors = 0;
    for _ in 0..rounds {
        let mut plains = Vec::new();
        for _ in 0..1 + rng.below(5) {
            let len = 1 + rng.below(100);
            plains.push(random_bytes(len, rng));
        }
        let piece_len = [1, 5, 40, 1000][rng.below(4)];
        let is_open = open_tampered(&plains, 2, |frames| tamper(frames, rng), piece_len);
        errors += u32::from(!is_open);
    }
    // The others wait for the rest of a frame.
    assert!(errors > rounds / 2, "{errors} of {rounds}");
}
