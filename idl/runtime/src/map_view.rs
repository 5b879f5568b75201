//! A map inside a view.

use std::fmt;
use std::marker::PhantomData;

use crate::reader::Reader;
use crate::shape::{MapKey, Shape};

/// A map in place. Entries differ in size, so they are visited in their encoded order,
/// which need not be that of the keys.
pub struct MapView<'a, K, V> {
    reader: Reader<'a>,
    len: usize,
    entry: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for MapView<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for MapView<'_, K, V> {}

impl<'a, K: MapKey, V: Shape> MapView<'a, K, V> {
    pub(crate) fn new(reader: Reader<'a>, len: usize) -> Self {
        Self {
            reader,
            len,
            entry: PhantomData,
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entries in their encoded order.
    pub fn iter(&self) -> MapIter<'a, K, V> {
        MapIter {
            reader: self.reader,
            left: self.len,
            entry: PhantomData,
        }
    }

    /// The value of a key, by linear search.
    pub fn get<Q>(&self, key: Q) -> Option<V::Shown<'a>>
    where
        K::Shown<'a>: PartialEq<Q>,
    {
        self.iter()
            .find(|(other, _)| *other == key)
            .map(|(_, value)| value)
    }
}

impl<'a, K: MapKey, V: Shape> fmt::Debug for MapView<'a, K, V>
where
    K::Shown<'a>: fmt::Debug,
    V::Shown<'a>: fmt::Debug,
{
    /// In the order of the keys, as for the owned map.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut entries: Vec<_> = self.iter().collect();
        entries.sort_by_key(|(key, _)| *key);
        f.debug_map().entries(entries).finish()
    }
}

impl<'a, K: MapKey, V: Shape> IntoIterator for MapView<'a, K, V> {
    type Item = (K::Shown<'a>, V::Shown<'a>);
    type IntoIter = MapIter<'a, K, V>;

    fn into_iter(self) -> MapIter<'a, K, V> {
        self.iter()
    }
}

/// Iterates over a [`MapView`].
pub struct MapIter<'a, K, V> {
    reader: Reader<'a>,
    left: usize,
    entry: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for MapIter<'_, K, V> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<K, V> fmt::Debug for MapIter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapIter")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl<'a, K: MapKey, V: Shape> Iterator for MapIter<'a, K, V> {
    type Item = (K::Shown<'a>, V::Shown<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some((K::show(&mut self.reader), V::show(&mut self.reader)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K: MapKey, V: Shape> ExactSizeIterator for MapIter<'_, K, V> {}
