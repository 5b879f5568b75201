//! Memory of the ring in the hands of the application.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use spindle_dds_core::{Claim, Kind};
use spindle_dds_idl_runtime::{KeyHash, Slot};

use super::core::WriterCore;
use super::place::Place;
use super::receipt::Receipt;
use crate::error::{Error, Result};
use crate::time::source_timestamp;
use crate::wire::Wire;

/// What a sample is built in.
#[derive(Debug)]
pub(crate) enum Memory {
    /// The place in the ring where readers will find it, and one within
    /// RESOURCE_LIMITS if there are any.
    Ring(Claim<Wire>, Option<Place>),
    /// A BEST_EFFORT writer found no room: thrown away.
    Scratch(Vec<u8>),
}

impl Memory {
    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Ring(claim, _) => claim.bytes(),
            Self::Scratch(bytes) => bytes,
        }
    }
}

/// Room for one sample of type `T` where readers will find it: what a generated
/// builder builds in. Dropped without publishing, it is withdrawn without a
/// trace; held for long, it costs room in this participant's own ring only.
pub struct Loan<T> {
    writer: Arc<WriterCore>,
    memory: Option<Memory>,
    timestamp: Option<i64>,
    marker: PhantomData<fn() -> T>,
}

impl<T> Loan<T> {
    #[inline]
    pub(crate) fn new(writer: Arc<WriterCore>, memory: Memory, timestamp: Option<i64>) -> Self {
        writer.loans.fetch_add(1, Ordering::AcqRel);
        Self {
            writer,
            memory: Some(memory),
            timestamp,
            marker: PhantomData,
        }
    }
}

impl<T> Slot for Loan<T> {
    type Receipt = Receipt;
    type Error = Error;

    #[inline]
    fn bytes(&mut self) -> &mut [u8] {
        self.memory.as_mut().map_or(&mut [], Memory::bytes)
    }

    #[inline]
    fn finish(mut self, used: usize, key: KeyHash) -> Result<Receipt> {
        let Some(memory) = self.memory.take() else {
            return Err(Error::IllegalOperation("the loan is finished".to_owned()));
        };
        let timestamp = self.timestamp.unwrap_or_else(source_timestamp);
        self.writer.send(memory, used, Kind::Data, key, timestamp)
    }
}

impl<T> Drop for Loan<T> {
    fn drop(&mut self) {
        self.writer.loans.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<T> fmt::Debug for Loan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan")
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}
