//! What a station in the middle may make of encrypted frames: some are changed, left out, repeated,
//! exchanged, cut or inserted, and they arrive in pieces. Only what came before the first change is
//! opened.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_dds_transport::hybrid::testing::open_tampered;

fuzz_target!(|bytes: &[u8]| {
    let [frames, piece_len, bytes @ ..] = bytes else {
        return;
    };
    let (count, frames_per_key) = (1 + frames % 6, 1 + u64::from(frames >> 5));
    let plains = (1..=count).map(|at| vec![at; 1 + usize::from(at) * 37 % 100]);
    let plains: Vec<_> = plains.collect();
    let tamper = |frames: Vec<Vec<u8>>| {
        let mut stream = Vec::new();
        let mut steps = bytes;
        while let [step, place, rest @ ..] = steps {
            let frame = &frames[usize::from(*step) % frames.len()];
            let at = frame.len() * usize::from(*place) / 256;
            steps = rest;
            match step >> 6 {
                0 => stream.extend(frame),
                1 => stream.extend(&frame[..at]),
                2 => {
                    let mut changed = frame.clone();
                    changed[at] ^= steps.first().unwrap_or(&1);
                    stream.extend(changed);
                }
                _ => {
                    let noise = &steps[..usize::from(*place).min(steps.len())];
                    stream.extend(noise);
                    steps = &steps[noise.len()..];
                }
            }
        }
        stream
    };
    open_tampered(&plains, frames_per_key, tamper, usize::from(*piece_len));
});
