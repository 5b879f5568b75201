//! All exercises of one generated topic type.

use std::fmt::Debug;

use spindle_dds_xtypes::DynamicType;

use crate::exercise::Exercise;
use crate::memory::most_held;
use crate::random::Random;
use crate::{Encapsulation, REPRESENTATIONS, Representation, dynamic, encode, sample};

/// Longest prefix of a sample in which every byte is altered, and which is truncated at every byte.
const ALTERED_BYTES_MAX: usize = 300;

/// Memory in bytes that reading may take beyond that of the elements found: errors, and
/// vectors that start with room for four.
const MEMORY_BASE: usize = 4096;

/// Most sizes of too small memory that are tried.
const CAPACITIES_MAX: usize = 4096;

/// Exercises a topic type with this many values; the first is its default.
pub fn every_way<T: Exercise>(values: u64)
where
    for<'a> T::View<'a>: Debug,
{
    let ty = T::DESCRIPTION.map(|_| dynamic::dynamic::<T>());
    for seed in 0..values {
        let value = value::<T>(seed);
        sample::round_trip_shown(&value, T::is_shown);
        for representation in REPRESENTATIONS {
            built(&value, representation, seed);
        }
        if let Some(ty) = &ty {
            dynamic::round_trip(ty, &value);
        }
    }
}

/// Alters the bytes of this many values; the first is the default. Memory is checked only if
/// [`Counting`](crate::memory::Counting) is the allocator.
pub fn every_alteration<T: Exercise>(values: u64)
where
    for<'a> T::View<'a>: Debug,
{
    let ty = T::DESCRIPTION.map(|_| dynamic::dynamic::<T>());
    for seed in 0..values {
        let value = value::<T>(seed);
        for representation in REPRESENTATIONS {
            altered(ty.as_ref(), &value, representation, seed);
        }
    }
}

fn value<T: Exercise>(seed: u64) -> T {
    match seed {
        0 => T::default(),
        _ => T::any(&mut Random::of_numbers(seed)),
    }
}

/// Checks that a builder writes the bytes of the encoder, for any old contents of the memory;
/// with members of mutable structures in another order, they decode to the same value.
fn built<T: Exercise>(value: &T, representation: Representation, seed: u64) {
    let expected = encode(value, representation);
    for garbage in [0x00, 0xaa, 0xff] {
        let slot = vec![garbage; expected.len() + 5];
        let builder = T::build(slot, representation).expect("fits");
        let built = value.build_all(builder, &mut Random::new(seed + u64::from(garbage)));
        let (bytes, key) = built.expect("fits");
        assert_eq!(bytes, expected, "{representation:?}: {value:?}");
        assert_eq!(key, value.key_hash());
    }
    // Padding depends on the order of members.
    let slot = vec![0xaa; 3 * expected.len() + 64];
    let builder = T::build(slot, representation).expect("fits");
    let built = value.build_all(builder, &mut Random::shuffling(seed));
    let (bytes, key) = built.expect("fits");
    assert_eq!(key, value.key_hash());
    let read = T::decode(&bytes, T::encapsulation(representation));
    assert_eq!(read.as_ref(), Ok(value), "{representation:?}");
    let step = 1 + expected.len() / CAPACITIES_MAX;
    for capacity in (0..expected.len()).step_by(step) {
        let built = T::build(vec![0xaa; capacity], representation)
            .and_then(|builder| value.build_all(builder, &mut Random::new(seed)));
        built.expect_err("does not fit");
    }
}

/// Truncates the bytes of a value at every length, and alters each of them. The result is an
/// error, or a value on which all readers agree; never a panic, nor more memory than the
/// possible elements take.
fn altered<T: Exercise>(
    ty: Option<&DynamicType>,
    value: &T,
    representation: Representation,
    seed: u64,
) where
    for<'a> T::View<'a>: Debug,
{
    let id = T::encapsulation(representation);
    let bytes = encode(value, representation);
    let check = |bytes: &[u8]| {
        frugal::<T>(bytes, id);
        sample::agree_shown::<T>(bytes, id, T::is_shown);
        if let Some(ty) = ty {
            dynamic::agree::<T>(ty, bytes, id, T::DEFAULTS);
        }
    };
    let considered = bytes.len().min(ALTERED_BYTES_MAX);
    for length in 0..considered {
        check(&bytes[..length]);
    }
    let mut random = Random::new(seed);
    for index in 0..considered {
        for byte in [!bytes[index], random.next() as u8] {
            let mut altered = bytes.clone();
            altered[index] = byte;
            check(&altered);
        }
    }
    for _ in 0..100 {
        check(&random.alter(&bytes));
    }
}

/// Checks the memory of reading. An encoded element of a sequence takes at least one byte, or
/// four if only its delimiter is present; a growing vector exists twice.
fn frugal<T: Exercise>(bytes: &[u8], id: Encapsulation) {
    let (read, held) = most_held(|| T::decode(bytes, id));
    let most = MEMORY_BASE + T::ELEMENT_BYTES_MAX * (bytes.len() + 1);
    assert!(
        held <= most,
        "{}: {held} bytes of memory for {} bytes, at most {most}: {read:?}",
        T::TYPE_NAME,
        bytes.len()
    );
}
