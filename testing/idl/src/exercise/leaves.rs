//! Numbers, text and bytes.

use spindle_dds_idl_runtime::shape::{
    ByteArray, ByteSequence, Limited, PrimitiveArray, PrimitiveSequence, Ranged, Shape, Text,
    WideText,
};
use spindle_dds_idl_runtime::{Fixed, LongDouble, Primitive, SeqView, WideView};

use super::ExerciseShape;
use crate::random::Random;

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl ExerciseShape for $ty {
            fn any(random: &mut Random) -> Self {
                match random.below(8) {
                    0 => Self::MIN,
                    1 => Self::MAX,
                    2 => random.below(8) as Self,
                    _ => random.next() as Self,
                }
            }

            fn same(shown: Self, owned: &Self) -> bool {
                shown == *owned
            }
        }
    )*};
}

integers!(u8, i8, u16, i16, u32, i32, u64, i64);

macro_rules! floats {
    ($($ty:ty),*) => {$(
        impl ExerciseShape for $ty {
            fn any(random: &mut Random) -> Self {
                Self::from(random.float())
            }

            /// Of what is not a number too.
            fn same(shown: Self, owned: &Self) -> bool {
                shown.to_bits() == owned.to_bits()
            }
        }
    )*};
}

floats!(f64, LongDouble);

impl ExerciseShape for f32 {
    fn any(random: &mut Random) -> Self {
        random.float() as Self
    }

    /// Of what is not a number too.
    fn same(shown: Self, owned: &Self) -> bool {
        shown.to_bits() == owned.to_bits()
    }
}

impl ExerciseShape for bool {
    fn any(random: &mut Random) -> Self {
        random.coin()
    }

    fn same(shown: Self, owned: &Self) -> bool {
        shown == *owned
    }
}

impl<const D: u8, const S: u8> ExerciseShape for Fixed<D, S> {
    fn any(random: &mut Random) -> Self {
        Self::saturating(match random.below(4) {
            0 => i128::MIN,
            1 => i128::MAX,
            _ => i128::from(random.next().cast_signed() >> random.below(60)),
        })
    }

    fn same(shown: Self, owned: &Self) -> bool {
        shown == *owned
    }
}

impl<T, const MIN: i128, const MAX: i128> ExerciseShape for Ranged<T, MIN, MAX>
where
    T: Limited + PartialEq + for<'a> Shape<Owned = T, Borrowed = T, Shown<'a> = T> + ExerciseShape,
{
    fn any(random: &mut Random) -> T {
        let within = |value: &T| {
            let limit = value.to_limit();
            limit.is_some_and(|limit| (MIN..=MAX).contains(&limit))
        };
        match random.below(4) {
            0 if MIN != i128::MIN => T::from_limit(MIN),
            1 if MAX != i128::MAX => T::from_limit(MAX),
            _ => (0..20)
                .map(|_| T::any(random))
                .find(within)
                .unwrap_or_else(Self::initial),
        }
    }

    fn same(shown: T, owned: &T) -> bool {
        shown == *owned
    }
}

/// Characters of one to four bytes, one or two units.
const CHARACTERS: [char; 5] = ['a', 'Z', '\u{e9}', '\u{20ac}', '\u{1f6e9}'];

/// Text whose `length` is at most `bound`, sometimes exactly that.
fn text(random: &mut Random, bound: u32, length: impl Fn(char) -> usize) -> String {
    let bound = bound as usize;
    let wanted = match random.below(6) {
        0 if bound <= 300 => bound,
        1 => 40.min(bound),
        _ => random.below(6).min(bound),
    };
    let mut text = String::new();
    let mut left = wanted;
    while left > 0 {
        let one = CHARACTERS[random.below(CHARACTERS.len())];
        let one = if length(one) <= left { one } else { 'x' };
        left -= length(one);
        text.push(one);
    }
    text
}

impl<const N: u32> ExerciseShape for Text<N> {
    fn any(random: &mut Random) -> String {
        text(random, N, char::len_utf8)
    }

    fn same(shown: &str, owned: &String) -> bool {
        shown == owned
    }
}

impl<const N: u32> ExerciseShape for WideText<N> {
    fn any(random: &mut Random) -> String {
        text(random, N, char::len_utf16)
    }

    fn same(shown: WideView<'_>, owned: &String) -> bool {
        shown == **owned && shown.chars().eq(owned.chars())
    }
}

fn many<T: ExerciseShape>(random: &mut Random, bound: u32) -> Vec<T::Owned> {
    (0..random.count_to(bound))
        .map(|_| T::any(random))
        .collect()
}

/// By iterating and by index.
fn same_numbers<P>(shown: SeqView<'_, P>, owned: &[P]) -> bool
where
    P: Primitive + ExerciseShape<Owned = P> + for<'a> Shape<Shown<'a> = P>,
{
    let at = |index| {
        shown
            .get(index)
            .is_some_and(|one| P::same(one, &owned[index]))
    };
    shown.len() == owned.len()
        && shown
            .iter()
            .zip(owned)
            .all(|(one, other)| P::same(one, other))
        && (0..owned.len()).all(at)
        && shown.get(owned.len()).is_none()
}

impl<const N: u32> ExerciseShape for ByteSequence<N> {
    fn any(random: &mut Random) -> Vec<u8> {
        many::<u8>(random, N)
    }

    fn same(shown: &[u8], owned: &Vec<u8>) -> bool {
        shown == owned
    }
}

impl<const N: usize> ExerciseShape for ByteArray<N> {
    fn any(random: &mut Random) -> [u8; N] {
        std::array::from_fn(|_| u8::any(random))
    }

    fn same(shown: &[u8; N], owned: &[u8; N]) -> bool {
        shown == owned
    }
}

impl<P, const N: u32> ExerciseShape for PrimitiveSequence<P, N>
where
    P: Primitive + ExerciseShape<Owned = P> + for<'a> Shape<Shown<'a> = P>,
{
    fn any(random: &mut Random) -> Vec<P> {
        many::<P>(random, N)
    }

    fn same(shown: SeqView<'_, P>, owned: &Vec<P>) -> bool {
        same_numbers(shown, owned)
    }
}

impl<P, const N: usize> ExerciseShape for PrimitiveArray<P, N>
where
    P: Primitive + ExerciseShape<Owned = P> + for<'a> Shape<Shown<'a> = P>,
{
    fn any(random: &mut Random) -> [P; N] {
        std::array::from_fn(|_| P::any(random))
    }

    fn same(shown: SeqView<'_, P>, owned: &[P; N]) -> bool {
        same_numbers(shown, owned)
    }
}
