//! `map<K, V>` and `map<K, V, N>`.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use crate::encode::{Encoder, check_bound};
use crate::error::{CdrError, SamplePosition};
use crate::map_view::MapView;
use crate::measure::Measure;
use crate::reader::Reader;
use crate::shape::{LengthCode, Shape, Trimmable, UNBOUNDED};

/// A possible key of a map: its values are ordered, and their views have the same order.
pub trait MapKey: for<'a> Shape<Owned: Ord, Shown<'a>: Ord> {}

impl<K: for<'a> Shape<Owned: Ord, Shown<'a>: Ord>> MapKey for K {}

/// A map: a count, then keys and values alternately, each key once. It is written in the
/// order of the keys and read in any order. Its delimiter in XCDR2, present unless keys and
/// values are both primitive, is the task of [`Delimited`](super::Delimited).
#[derive(Debug)]
pub struct Map<K, V, const N: u32 = UNBOUNDED>(PhantomData<(K, V)>);

impl<K: MapKey, V: Shape, const N: u32> Map<K, V, N> {
    /// Fewest bytes of a key with its value.
    const ENTRY_MIN: usize = K::SIZE_MIN.saturating_add(V::SIZE_MIN);
    /// Memory of an entry in bytes: the nodes of the map are not always full.
    const ENTRY_MEMORY: usize = (size_of::<K::Owned>() + size_of::<V::Owned>())
        .saturating_mul(2)
        .saturating_add(V::INITIAL_HEAP);

    fn entries(
        reader: &mut Reader<'_>,
        count: usize,
    ) -> Result<BTreeMap<K::Owned, V::Owned>, CdrError> {
        let mut entries = BTreeMap::new();
        let mut twice = None;
        for _ in 0..count {
            reader.spend(Self::ENTRY_MEMORY)?;
            let place = reader.place();
            let key = K::read(reader)?;
            let value = V::read(reader)?;
            if entries.insert(key, value).is_some() {
                twice.get_or_insert(CdrError::DuplicateKey { place });
            }
        }
        twice.map_or(Ok(entries), Err)
    }

    /// Checks entries. Ascending keys are distinct and need no allocation; for other maps the
    /// offsets of the keys are sorted.
    fn check_entries(reader: &mut Reader<'_>, count: usize) -> Result<(), CdrError> {
        let first = *reader;
        let mut previous: Option<K::Shown<'_>> = None;
        let mut ascending = true;
        for _ in 0..count {
            let mut key = *reader;
            K::check(reader)?;
            V::check(reader)?;
            if ascending {
                let key = K::show(&mut key);
                ascending = previous.is_none_or(|previous| previous < key);
                previous = Some(key);
            }
        }
        // While skipping, keys that are not values of their type compare equal.
        match ascending || reader.is_skipping() {
            true => Ok(()),
            false => Self::check_distinct(first, count),
        }
    }

    /// Checks that the keys are distinct, and finds the first repeated one.
    fn check_distinct(mut reader: Reader<'_>, count: usize) -> Result<(), CdrError> {
        let mut keys = Vec::new();
        for _ in 0..count {
            let place = reader.place();
            let key = K::show(&mut reader);
            V::check(&mut reader)?;
            keys.push((key, place.offset));
        }
        keys.sort_unstable();
        let twice = keys.windows(2).filter_map(|pair| match pair {
            [(one, _), (other, offset)] if one == other => Some(*offset),
            _ => None,
        });
        match twice.min() {
            Some(offset) => Err(CdrError::DuplicateKey {
                place: SamplePosition::offset(offset),
            }),
            None => Ok(()),
        }
    }

    fn transcribe<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
        count: usize,
    ) -> Result<(), CdrError> {
        encoder.length(count)?;
        for _ in 0..count {
            K::transcribe_key(reader, encoder)?;
            V::transcribe_key(reader, encoder)?;
        }
        Ok(())
    }

    fn skip(reader: &mut Reader<'_>, count: usize) -> Result<(), CdrError> {
        for _ in 0..count {
            reader.skip::<K>(1)?;
            reader.skip::<V>(1)?;
        }
        Ok(())
    }
}

impl<K: MapKey, V: Shape, const N: u32> Shape for Map<K, V, N>
where
    K::Owned: 'static,
    V::Owned: 'static,
{
    type Owned = BTreeMap<K::Owned, V::Owned>;
    type Borrowed = BTreeMap<K::Owned, V::Owned>;
    type Shown<'a> = MapView<'a, K, V>;
    const SIZE_MIN: usize = 4;
    const LENGTH_CODE: LengthCode = LengthCode::Next;

    fn initial() -> Self::Owned {
        BTreeMap::new()
    }

    fn write<E: Encoder>(value: &Self::Borrowed, encoder: &mut E) -> Result<(), CdrError> {
        check_bound(value.len(), N, encoder.position())?;
        encoder.length(value.len())?;
        for (key, value) in value {
            K::write(key.borrow(), encoder)?;
            V::write(value.borrow(), encoder)?;
        }
        Ok(())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self::Owned, CdrError> {
        let count = reader.count(Self::ENTRY_MIN, N)?;
        Self::entries(reader, count)
    }

    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        let count = reader.count(Self::ENTRY_MIN, N)?;
        Self::check_entries(reader, count)
    }

    fn show<'a>(reader: &mut Reader<'a>) -> MapView<'a, K, V> {
        let map = Self::show_at(*reader);
        // Stops at the first error; the error also ends the enclosing read.
        if let Ok(count) = reader.count(Self::ENTRY_MIN, N) {
            let _ = Self::skip(reader, count);
        }
        map
    }

    fn show_at(mut reader: Reader<'_>) -> MapView<'_, K, V> {
        match reader.count(Self::ENTRY_MIN, N) {
            Ok(count) => MapView::new(reader, count),
            Err(_) => Self::absent(),
        }
    }

    fn absent<'a>() -> MapView<'a, K, V> {
        MapView::new(Reader::empty(), 0)
    }

    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        let count = reader.count(Self::ENTRY_MIN, N)?;
        Self::transcribe(reader, encoder, count)
    }

    fn measure(measure: &mut Measure) {
        measure.primitives(4, 1);
        measure.repeat_of(N, |measure| {
            K::measure(measure);
            V::measure(measure);
        });
    }
}

impl<K: MapKey, V: Shape, const N: u32> Trimmable for Map<K, V, N>
where
    K::Owned: 'static,
    V::Owned: 'static,
{
    fn read_trimmed(reader: &mut Reader<'_>) -> Result<Self::Owned, CdrError> {
        let (kept, left_out) = reader.count_trimmed(Self::ENTRY_MIN, N)?;
        let entries = Self::entries(reader, kept)?;
        Self::skip(reader, left_out)?;
        Ok(entries)
    }

    fn check_trimmed(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        let (kept, left_out) = reader.count_trimmed(Self::ENTRY_MIN, N)?;
        Self::check_entries(reader, kept)?;
        Self::skip(reader, left_out)
    }

    fn show_trimmed(mut reader: Reader<'_>) -> MapView<'_, K, V> {
        match reader.count_trimmed(Self::ENTRY_MIN, N) {
            Ok((kept, _)) => MapView::new(reader, kept),
            Err(_) => Self::absent(),
        }
    }

    fn transcribe_trimmed<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        let (kept, left_out) = reader.count_trimmed(Self::ENTRY_MIN, N)?;
        Self::transcribe(reader, encoder, kept)?;
        Self::skip(reader, left_out)
    }
}
