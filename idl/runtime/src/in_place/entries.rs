//! Maps, entry by entry.

use std::fmt;
use std::marker::PhantomData;

use super::composite::{Build, Composite};
use super::frame::{Frame, Head};
use super::room::{Part, Site, offset};
use crate::encode::Encoder as _;
use crate::error::{CdrError, SamplePosition};
use crate::shape::{Delimited, Map, MapKey, Shape};

/// A map that can be built entry by entry.
pub trait Mapped: Shape {
    /// Shape of the keys.
    type Key: MapKey;
    /// Shape of the values.
    type Value: Shape;
    /// Most entries.
    const COUNT_MAX: u32;
    /// Whether XCDR2 puts a delimiter before it.
    const DELIMITED: bool;
}

impl<K: MapKey, V: Shape, const N: u32> Mapped for Map<K, V, N> {
    type Key = K;
    type Value = V;
    const COUNT_MAX: u32 = N;
    const DELIMITED: bool = false;
}

impl<S: Mapped> Mapped for Delimited<S> {
    type Key = S::Key;
    type Value = S::Value;
    const COUNT_MAX: u32 = S::COUNT_MAX;
    const DELIMITED: bool = true;
}

/// A map that grows in place; each key may occur once. In ascending order, that of the
/// encoder, a key is compared with the last one only; otherwise with all of them. An entry
/// that could not be written leaves no trace.
pub struct Entries<'p, K, V, E> {
    part: Part<'p, E>,
    frame: Frame,
    /// Offset of the first entry.
    first: usize,
    /// Offset of the last entry, as long as keys ascend.
    last: Option<usize>,
    entry: PhantomData<fn() -> (K, V)>,
}

impl<'p, K: MapKey, V: Shape, E: From<CdrError>> Entries<'p, K, V, E> {
    pub(super) fn begin<S: Mapped<Key = K, Value = V>>(
        mut part: Part<'p, E>,
        site: Site,
    ) -> Result<Self, CdrError> {
        let head = Head {
            delimited: S::DELIMITED,
            counted: true,
            count_max: S::COUNT_MAX,
        };
        let frame = Frame::begin(part.bytes(), site, &head)?;
        Ok(Self {
            first: frame.end,
            last: Some(frame.end),
            frame,
            part,
            entry: PhantomData,
        })
    }

    pub(super) fn close(&mut self) -> Result<usize, CdrError> {
        self.part.fault().report()?;
        self.frame.close(self.part.bytes())
    }

    /// Number of entries so far.
    pub fn len(&self) -> usize {
        self.frame.count
    }

    /// Whether there are no entries yet.
    pub fn is_empty(&self) -> bool {
        self.frame.count == 0
    }

    /// Appends copies of a key and a value.
    ///
    /// # Errors
    /// [`CdrError::DuplicateKey`]; [`CdrError::BoundExceeded`] when there are as many
    /// entries as the type allows; [`CdrError::Full`], or what is wrong with key or value.
    pub fn insert(&mut self, key: &K::Borrowed, value: &V::Borrowed) -> Result<(), E> {
        let site = self.key(key)?;
        let mut writer = site.writer(self.part.bytes());
        V::write(value, &mut writer)?;
        let end = writer.position();
        self.entry(end);
        Ok(())
    }

    /// Appends a copy of a key, and a structure that `build` builds.
    ///
    /// # Errors
    /// As for [`insert`](Self::insert), and those of `build`.
    pub fn insert_with<F>(&mut self, key: &K::Borrowed, build: F) -> Result<(), E>
    where
        V: Composite,
        F: for<'e> Build<'e, V, E>,
    {
        let site = self.key(key)?;
        let mut last = build(V::begin(self.part.reborrow(), site)?)?;
        let end = V::close(&mut last)?;
        drop(last);
        self.entry(end);
        Ok(())
    }

    /// Writes a new key, and returns the offset of its value.
    fn key(&mut self, key: &K::Borrowed) -> Result<Site, CdrError> {
        let site = self.frame.next(1)?;
        let mut writer = site.writer(self.part.bytes());
        K::write(key, &mut writer)?;
        let behind = Site {
            position: offset(writer.position()),
            ..site
        };
        let end = behind.position as usize;
        let bytes = self.part.bytes().get(..end).unwrap_or_default();
        let at = |position| {
            let position = offset(position);
            Site { position, ..site }.reader(bytes)
        };
        let start = site.position as usize;
        let new = K::show(&mut at(start));
        let ascends =
            self.frame.count == 0 || self.last.is_some_and(|last| K::show(&mut at(last)) < new);
        if ascends {
            return Ok(behind);
        }
        let mut entries = at(self.first);
        for _ in 0..self.frame.count {
            if K::show(&mut entries) == new {
                return Err(CdrError::DuplicateKey {
                    place: SamplePosition::offset(start),
                });
            }
            V::check(&mut entries)?;
        }
        self.last = None;
        Ok(behind)
    }

    /// Counts the entry at the end, which ends at `end`.
    fn entry(&mut self, end: usize) {
        self.last = self.last.map(|_| self.frame.end);
        self.frame.grow(1, end);
    }
}

impl<K, V, E> fmt::Debug for Entries<'_, K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entries")
            .field("count", &self.frame.count)
            .field("end", &self.frame.end)
            .finish_non_exhaustive()
    }
}
