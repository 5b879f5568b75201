//! What must hold for every topic type, as functions that the tests of this package call: values
//! survive each encoding; views, builders and dynamic types agree with the owned form; altered
//! bytes never cause a panic, nor more memory than their length justifies.
//!
//! [`sample`] and [`dynamic`] exercise generated code as it is, with values that [`random`]
//! makes. Builders and the fields of views need code for each type, which the build script writes
//! from the model of the IDL; [`exercise`] has what that code consists of. [`fixtures`] are the types
//! that tests with a purpose of their own are written for.
//!
//! A check panics and says what is wrong.

pub mod big_endian;
pub mod dynamic;
pub mod every_way;
pub mod exercise;
pub mod fixtures;
pub mod memory;
pub mod random;
pub mod sample;

pub use spindle_dds_idl_runtime::{
    ByteOrder, CdrError, Encapsulation, KeyHash, Representation, TopicType,
};

/// Both representations.
pub const REPRESENTATIONS: [Representation; 2] = [Representation::Xcdr1, Representation::Xcdr2];

/// The bytes of a sample; checks that `size` and `encode` agree.
pub fn encode<T: TopicType>(value: &T, representation: Representation) -> Vec<u8> {
    let mut out = vec![0xaa; value.size(representation)];
    let used = value
        .encode(representation, &mut out)
        .expect("a random value is valid");
    assert_eq!(used, out.len(), "size and encode agree");
    out
}

/// Recorded samples of other implementations in `text` under a name, with their encapsulation
/// ids. A line has name, id and body without encapsulation header, the latter two in
/// hexadecimal.
pub fn recorded(text: &str, name: &str) -> Vec<(Encapsulation, Vec<u8>)> {
    let found = text.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let id = (words.next()? == name).then(|| words.next())??;
        let body = words.next()?.as_bytes().chunks(2).map(|digits| {
            let digits = str::from_utf8(digits).expect("is ASCII");
            u8::from_str_radix(digits, 16).expect("is hexadecimal")
        });
        let id = u16::from_str_radix(id, 16).expect("is hexadecimal");
        Some((Encapsulation(id), body.collect()))
    });
    found.collect()
}

/// Bytes as readable text, eight per line.
pub fn hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(8).map(|line| {
        line.iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<Vec<_>>()
            .join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The bytes of a sample, of its key alone, and its hash, as readable text.
pub fn layout<T: TopicType>(value: &T) -> String {
    let samples = REPRESENTATIONS.map(|representation| {
        let mut key = vec![0; value.key_size(representation)];
        value.encode_key(representation, &mut key).expect("fits");
        format!(
            "{representation:?}, id {:#06x}\n{}\nkey only\n{}\n",
            T::encapsulation(representation).0,
            hex(&encode(value, representation)),
            hex(&key)
        )
    });
    format!(
        "{}\nhash\n{}\n",
        samples.join("\n"),
        hex(&value.key_hash().0)
    )
}
