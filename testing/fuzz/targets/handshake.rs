//! What a stranger may say to a station before it has proved itself, and what a station in the
//! middle may make of the frames of two others: hellos, addresses, proofs, the key exchange, and the
//! frames behind it. Nothing is accepted behind what was changed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_dds_transport::hybrid::EncryptionUse;
use spindle_dds_transport::hybrid::testing::{FRAMES, read_frame, shake_hands};

fuzz_target!(|bytes: &[u8]| {
    read_frame(bytes);
    let [choice, which, place, bytes @ ..] = bytes else {
        return;
    };
    let uses = [
        EncryptionUse::Auto,
        EncryptionUse::Off,
        EncryptionUse::Required,
    ];
    let encryption = [choice & 3, choice >> 2 & 3].map(|at| uses[usize::from(at) % uses.len()]);
    // Some without a secret, some with one that the other accepts beside its own.
    let secrets = match choice >> 4 & 3 {
        0 => [None, None],
        1 => [Some(&b"accepted"[..]), Some(&b"open"[..])],
        _ => [Some(&b"open"[..]); 2],
    };
    let which = usize::from(*which) % FRAMES;
    let mut is_changed = false;
    let accepted = shake_hands(secrets, encryption, |number, frame| {
        if number != which {
            return frame;
        }
        let changed = change(&frame, choice >> 6, *place, bytes);
        is_changed = changed != frame;
        changed
    });
    let is_encrypted = !encryption.contains(&EncryptionUse::Off);
    // Without a secret anything may be accepted; without encryption, anything behind the proofs.
    if is_changed && secrets[0].is_some() && (is_encrypted || which < 4) {
        assert!(
            accepted <= which.max(2),
            "{accepted} frames, changed {which}"
        );
    }
});

/// Another frame, or some bytes of it others, or its beginning, or its beginning and others.
fn change(frame: &[u8], how: u8, place: u8, bytes: &[u8]) -> Vec<u8> {
    let at = frame.len() * usize::from(place) / 256;
    match how {
        0 => bytes.to_vec(),
        1 => {
            let mut changed = frame.to_vec();
            let others = changed[at..].iter_mut().zip(bytes);
            others.for_each(|(byte, other)| *byte ^= other);
            changed
        }
        2 => [&frame[..at], bytes].concat(),
        _ => [bytes, &frame[at..]].concat(),
    }
}
