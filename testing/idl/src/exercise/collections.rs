//! Sequences, arrays and maps.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use spindle_dds_idl_runtime::shape::{Array, Delimited, Map, MapKey, Sequence, Shape};
use spindle_dds_idl_runtime::{CdrError, Entries, List, ListView, MapView};

use super::ExerciseShape;
use crate::random::Random;

/// Appends all values: together, or one by one in random ways.
///
/// # Errors
/// Those of the list.
pub fn each<T: ExerciseShape, E: From<CdrError>>(
    list: &mut List<'_, T, E>,
    values: &[T::Owned],
    random: &mut Random,
) -> Result<(), E> {
    match random.below(4) {
        0 => list.push_all(values),
        1 => values
            .iter()
            .try_for_each(|value| list.push(value.borrow())),
        _ => values
            .iter()
            .try_for_each(|value| T::push(list, value, random)),
    }
}

/// Appends all entries.
///
/// # Errors
/// Those of the map.
pub fn entries<K: MapKey, V: ExerciseShape, E: From<CdrError>>(
    entries: &mut Entries<'_, K, V, E>,
    values: &BTreeMap<K::Owned, V::Owned>,
    random: &mut Random,
) -> Result<(), E> {
    values
        .iter()
        .try_for_each(|(key, value)| V::insert(entries, key.borrow(), value, random))
}

fn same_list<T: ExerciseShape>(shown: ListView<'_, T>, owned: &[T::Owned]) -> bool {
    shown.len() == owned.len()
        && shown
            .iter()
            .zip(owned)
            .all(|(shown, owned)| T::same(shown, owned))
}

fn any_map<K: MapKey + ExerciseShape, V: ExerciseShape>(
    random: &mut Random,
    bound: u32,
) -> BTreeMap<K::Owned, V::Owned> {
    let count = random.count_to(bound);
    (0..count)
        .map(|_| (K::any(random), V::any(random)))
        .collect()
}

fn same_map<K: MapKey + ExerciseShape, V: ExerciseShape>(
    shown: MapView<'_, K, V>,
    owned: &BTreeMap<K::Owned, V::Owned>,
) -> bool {
    let mut entries: Vec<_> = shown.iter().collect();
    // In samples of other writers they come in any order.
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    entries.len() == owned.len()
        && entries
            .into_iter()
            .zip(owned)
            .all(|((key, value), owned)| K::same(key, owned.0) && V::same(value, owned.1))
}

macro_rules! lists {
    ($($shape:ty),*) => {$(
        impl<T: ExerciseShape, const N: u32> ExerciseShape for $shape {
            fn any(random: &mut Random) -> Vec<T::Owned> {
                let count = random.count_to(N);
                (0..count).map(|_| T::any(random)).collect()
            }

            fn same(shown: ListView<'_, T>, owned: &Vec<T::Owned>) -> bool {
                same_list::<T>(shown, owned)
            }

            fn push<E: From<CdrError>>(
                list: &mut List<'_, Self, E>,
                value: &Vec<T::Owned>,
                random: &mut Random,
            ) -> Result<(), E> {
                match random.coin() {
                    true => list.push(value),
                    false => list.push_list(|inner| each(inner, value, random)),
                }
            }
        }
    )*};
}

lists!(Sequence<T, N>, Delimited<Sequence<T, N>>);

macro_rules! arrays {
    ($($shape:ty),*) => {$(
        impl<T: ExerciseShape, const N: usize> ExerciseShape for $shape {
            fn any(random: &mut Random) -> [T::Owned; N] {
                std::array::from_fn(|_| T::any(random))
            }

            fn same(shown: ListView<'_, T>, owned: &[T::Owned; N]) -> bool {
                same_list::<T>(shown, owned)
            }

            fn push<E: From<CdrError>>(
                list: &mut List<'_, Self, E>,
                value: &[T::Owned; N],
                random: &mut Random,
            ) -> Result<(), E> {
                match random.coin() {
                    true => list.push(value),
                    false => list.push_list(|inner| each(inner, value, random)),
                }
            }
        }
    )*};
}

arrays!(Array<T, N>, Delimited<Array<T, N>>);

macro_rules! maps {
    ($($shape:ty),*) => {$(
        impl<K: MapKey + ExerciseShape, V: ExerciseShape, const N: u32> ExerciseShape for $shape {
            fn any(random: &mut Random) -> <Self as Shape>::Owned {
                any_map::<K, V>(random, N)
            }

            fn same(shown: MapView<'_, K, V>, owned: &<Self as Shape>::Owned) -> bool {
                same_map::<K, V>(shown, owned)
            }
        }
    )*};
}

maps!(Map<K, V, N>, Delimited<Map<K, V, N>>);
