//! Every topic type of IDL of other projects: its default and random values through each
//! encoding, as a whole, as a view and as a key; each field of the view; and built in place, byte
//! for byte as the encoder writes it.
//!
//! `cargo test` takes a sample of the files; `.ci/corpus` takes all of them, in minutes.

#![forbid(unsafe_code)]

use std::fmt::Debug;

use serde::Deserialize;
use spindle_dds_idl_conformance::every_way::every_way as try_in_every_way;
use spindle_dds_idl_conformance::exercise::Exercise;
use spindle_dds_idl_conformance::random::Random;
use spindle_dds_idl_conformance::{CdrError, REPRESENTATIONS, TopicType};

include!(concat!(env!("OUT_DIR"), "/corpus_modules.rs"));

/// Random values per type, of which at least `VALID_MIN` must be within its bounds.
const TRIED: u64 = 40;
const VALID_MIN: usize = 3;

fn check<T: TopicType + Debug + Default + PartialEq + for<'d> Deserialize<'d>>() {
    let name = T::TYPE_NAME;
    round_trip(&T::default()).unwrap_or_else(|error| panic!("{name}: default: {error}"));
    let mut valid = 0;
    for seed in 0..TRIED {
        let mut random = match seed % 2 {
            0 => Random::of_numbers(seed),
            _ => Random::of_bits(seed),
        };
        let value: T = random.value();
        match round_trip(&value) {
            Ok(()) => valid += 1,
            Err(error) => assert!(is_of_value(&error), "{name}: {value:?}: {error}"),
        }
    }
    assert!(
        valid >= VALID_MIN,
        "{name}: {valid} of {TRIED} values are valid"
    );
}

/// Values within the bounds of the type: its default, and random ones.
const WITHIN: u64 = 3;

fn every_way<T: Exercise>()
where
    for<'a> T::View<'a>: Debug,
{
    try_in_every_way::<T>(WITHIN);
}

/// Whether an error means that a value is outside the bounds of its type.
fn is_of_value(error: &CdrError) -> bool {
    matches!(
        error,
        CdrError::BoundExceeded { .. }
            | CdrError::OutOfRange { .. }
            | CdrError::UnsignedOutOfRange { .. }
            | CdrError::FloatOutOfRange { .. }
            | CdrError::BitFieldExceeded { .. }
            | CdrError::UnknownBits { .. }
            | CdrError::WrongDiscriminator { .. }
    )
}

fn round_trip<T: TopicType + Debug + PartialEq>(value: &T) -> Result<(), CdrError> {
    for representation in REPRESENTATIONS {
        let id = T::encapsulation(representation);
        let mut bytes = vec![0xaa; value.size(representation)];
        let used = value.encode(representation, &mut bytes)?;
        assert_eq!(used, bytes.len(), "{}: size and encode agree", T::TYPE_NAME);
        assert_eq!(T::decode(&bytes, id).as_ref(), Ok(value), "{bytes:02x?}");
        let view = T::view(&bytes, id).expect("what can be decoded can be viewed");
        assert_eq!(T::view_to_owned(&view).as_ref(), Ok(value));
        assert_eq!(T::view_key_hash(&view), value.key_hash());
        if let Some(most) = T::max_size(representation) {
            assert!(
                used <= most,
                "{}: {used} bytes, at most {most}",
                T::TYPE_NAME
            );
        }
        let mut key = vec![0xaa; value.key_size(representation)];
        let used = value.encode_key(representation, &mut key)?;
        let read = T::decode_key(&key[..used], id).expect("a key that was written");
        assert_eq!(read.key_hash(), value.key_hash(), "{}", T::TYPE_NAME);
    }
    Ok(())
}

mod checks {
    use super::{check, every_way};

    include!(concat!(env!("OUT_DIR"), "/corpus_checks.rs"));
}
