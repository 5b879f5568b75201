//! The recorded vectors.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    missing_debug_implementations
)]

pub mod random;

use spindle_dds_xtypes::object::{IdentifiedObject, TypeObjects};

pub struct Vector {
    pub name: String,
    pub information: Vec<u8>,
    /// Identifiers with minimal objects.
    pub minimal: Vec<u8>,
    /// Identifiers with complete objects.
    pub complete: Vec<u8>,
    /// Whether components are hashed by the standard.
    pub standard: bool,
}

impl Vector {
    pub fn objects(&self) -> Vec<IdentifiedObject> {
        let both = [&self.minimal, &self.complete];
        let objects = both.map(|bytes| TypeObjects::from_bytes(bytes).expect("objects").0);
        objects.concat()
    }
}

pub fn vectors() -> Vec<Vector> {
    parse(include_str!("../vectors/types.txt"), false)
}

pub fn recursive() -> Vec<Vector> {
    parse(include_str!("../vectors/recursive.txt"), true)
}

fn parse(text: &str, standard: bool) -> Vec<Vector> {
    let lines: Vec<&str> = text.lines().collect();
    let vectors = lines.chunks_exact(3).map(|lines| {
        let mapping = bytes(lines[2]);
        let (minimal, rest) = sequence(&mapping);
        let (complete, _) = sequence(rest);
        Vector {
            name: lines[0].to_owned(),
            information: bytes(lines[1]),
            minimal: minimal.to_vec(),
            complete: complete.to_vec(),
            standard,
        }
    });
    vectors.collect()
}

/// A sequence with its delimiter, and the bytes after it and the padding.
fn sequence(bytes: &[u8]) -> (&[u8], &[u8]) {
    let length = u32::from_le_bytes(bytes[..4].try_into().expect("four")) as usize + 4;
    (&bytes[..length], &bytes[length.next_multiple_of(4)..])
}

pub fn bytes(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len() / 2).map(|at| &hex[2 * at..2 * at + 2]);
    digits
        .map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal"))
        .collect()
}
