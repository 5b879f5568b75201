//! Enumerations, bitmasks and bitsets.

use spindle_dds_idl_runtime::shape::{
    Bitmask, Bitset, Enumerated, Enumeration, Flags, Packed, Shape as _,
};
use spindle_dds_idl_runtime::{ByteOrder, Primitive};

use super::ExerciseShape;
use crate::random::Random;

/// A generated enumeration with a list of its literals.
pub trait Literals: Enumeration + PartialEq {
    /// All literals.
    const ALL: &'static [Self];
}

/// The primitive of the low bits.
fn low<P: Primitive>(bits: u64) -> P {
    P::load(ByteOrder::Little, &bits.to_le_bytes()[..P::SIZE])
}

impl<T: Literals> ExerciseShape for Enumerated<T> {
    fn any(random: &mut Random) -> T {
        T::ALL[random.below(T::ALL.len())]
    }

    fn same(shown: T, owned: &T) -> bool {
        shown == *owned
    }
}

impl<M: Bitmask + PartialEq> ExerciseShape for Flags<M> {
    fn any(random: &mut Random) -> M {
        M::from_word(low(random.next() & M::VALID.into()))
    }

    fn same(shown: M, owned: &M) -> bool {
        shown == *owned
    }
}

impl<B: Bitset + PartialEq> ExerciseShape for Packed<B> {
    fn any(random: &mut Random) -> B {
        match random.below(4) {
            0 => Self::initial(),
            _ => B::from_word(low(random.next())),
        }
    }

    fn same(shown: B, owned: &B) -> bool {
        shown == *owned
    }
}
