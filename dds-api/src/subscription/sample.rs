//! Samples on loan to the application.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use spindle_dds_idl_runtime::{KeyBytes, TopicType, codec};

use super::DataReader;
use super::core::ReaderCore;
use super::info::SampleInfo;
use crate::driver::Item;
use crate::error::{Error, Result};
use crate::wire::Wire;

/// A collection of samples on loan from a reader. Dropping it returns the loan (`return_loan`).
///
/// By default the samples are copies, which the reader made when they were taken, and holding
/// them holds up no writer. With `spindle.reader.storage` = `ring`, `take` copies nothing: the
/// samples lie in the ring where their writer built them, and while they are held, that room
/// is not free for the writer. `read` copies in both cases.
pub struct Samples<T> {
    items: Vec<Item<Wire>>,
    reader: Arc<ReaderCore>,
    marker: PhantomData<fn() -> T>,
}

impl<T> Samples<T> {
    pub(super) fn new(items: Vec<Item<Wire>>, reader: Arc<ReaderCore>) -> Self {
        Self {
            items,
            reader,
            marker: PhantomData,
        }
    }

    /// Whether it is on loan from this reader.
    pub(crate) fn is_of(&self, reader: &DataReader<T>) -> bool {
        Arc::ptr_eq(&self.reader, &reader.core)
    }

    /// The number of samples; at least one.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Always false.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The sample at a position.
    pub fn get(&self, at: usize) -> Option<Sample<'_, T>> {
        self.items.get(at).map(Sample::new)
    }

    /// The samples, in the order that PRESENTATION asks for.
    pub fn iter(&self) -> SamplesIter<'_, T> {
        SamplesIter {
            items: self.items.iter(),
            marker: PhantomData,
        }
    }
}

impl<T> Drop for Samples<T> {
    fn drop(&mut self) {
        self.reader
            .side
            .port
            .return_loan(std::mem::take(&mut self.items));
    }
}

impl<T> fmt::Debug for Samples<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.items.iter().map(|item| item.0))
            .finish()
    }
}

impl<'a, T> IntoIterator for &'a Samples<T> {
    type Item = Sample<'a, T>;
    type IntoIter = SamplesIter<'a, T>;

    fn into_iter(self) -> SamplesIter<'a, T> {
        self.iter()
    }
}

/// Iterator over [`Samples`].
#[derive(Debug)]
pub struct SamplesIter<'a, T> {
    items: std::slice::Iter<'a, Item<Wire>>,
    marker: PhantomData<fn() -> T>,
}

impl<'a, T> Iterator for SamplesIter<'a, T> {
    type Item = Sample<'a, T>;

    fn next(&mut self) -> Option<Sample<'a, T>> {
        self.items.next().map(Sample::new)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }
}

impl<T> ExactSizeIterator for SamplesIter<'_, T> {}

/// One sample: its [`SampleInfo`] and its data.
pub struct Sample<'a, T> {
    item: &'a Item<Wire>,
    marker: PhantomData<fn() -> T>,
}

impl<T> Clone for Sample<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Sample<'_, T> {}

impl<T> fmt::Debug for Sample<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sample")
            .field("info", self.info())
            .finish_non_exhaustive()
    }
}

impl<'a, T> Sample<'a, T> {
    fn new(item: &'a Item<Wire>) -> Self {
        Self {
            item,
            marker: PhantomData,
        }
    }

    /// States, ranks, times and handles.
    #[inline]
    pub fn info(&self) -> &'a SampleInfo {
        &self.item.0
    }

    /// The encoded data, without the encapsulation header: in the reader's copy, or in the
    /// ring (see [`Samples`]).
    ///
    /// # Errors
    /// NO_DATA when the sample only tells of a state (`valid_data` is false).
    #[inline]
    pub fn bytes(&self) -> Result<&'a [u8]> {
        let no_data = || Error::NoData("the sample tells of a change of state only");
        let sample = self.item.1.as_ref().filter(|_| self.item.0.valid_data);
        sample.map(|payload| payload.bytes()).ok_or_else(no_data)
    }
}

impl<'a, T: TopicType> Sample<'a, T> {
    /// The data, decoded member by member where [`bytes`](Self::bytes) are.
    ///
    /// # Errors
    /// NO_DATA as for [`bytes`](Self::bytes); BAD_PARAMETER when the bytes were
    /// changed since they were checked.
    #[inline(always)]
    pub fn view(&self) -> Result<T::View<'a>> {
        Ok(T::view(self.bytes()?, self.info().encapsulation())?)
    }

    /// The data as an owned value.
    ///
    /// # Errors
    /// As for [`view`](Self::view).
    #[inline]
    pub fn data(&self) -> Result<T> {
        Ok(T::decode(self.bytes()?, self.info().encapsulation())?)
    }

    /// The key of its instance, as a value whose other members have their defaults: also of a
    /// sample without data (`valid_data` is false), so that an instance is known that was
    /// disposed of or has lost its writers.
    ///
    /// # Errors
    /// BAD_PARAMETER when the writer has sent bytes that are no key of the type.
    pub fn key(&self) -> Result<T> {
        let handle = self.info().instance_handle;
        let key = match &self.item.1 {
            Some(key) if !self.info().valid_data => codec::decode_key_bytes(key.bytes())?,
            Some(sample) => {
                let mut key = KeyBytes::default();
                let encapsulation = self.info().encapsulation();
                codec::key_bytes_of_sample::<T>(sample.bytes(), encapsulation, &mut key)?;
                codec::decode_key_bytes(key.as_slice())?
            }
            None => match handle.key_hash() {
                Some(key) if !codec::digests_keys::<T>() => codec::decode_key_bytes(&key.0)?,
                _ => {
                    let text = format!("{handle:?} names an instance whose key was not readable");
                    return Err(Error::BadParameter(text));
                }
            },
        };
        Ok(key)
    }
}
