//! Memory of the ring in the hands of the application.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use spindle_dds_core::Kind;
use spindle_dds_idl_runtime::{KeyHash, Slot};

use super::core::WriterCore;
use super::draft::Drafting;
use super::receipt::Receipt;
use super::sending::Purpose;
use crate::error::{Error, Result};
use crate::stamps::source_timestamp;

/// Room for one sample of type `T` where readers will find it: what a generated
/// builder builds in. Dropped without publishing, it is withdrawn without a
/// trace; held for long, it costs room in this participant's own ring only.
pub struct Loan<T> {
    drafting: Drafting,
    marker: PhantomData<fn() -> T>,
}

impl<T> Loan<T> {
    /// Room for `len` bytes.
    #[inline]
    pub(super) fn new(
        writer: &Arc<WriterCore>,
        len: usize,
        timestamp: Option<i64>,
    ) -> Result<Self> {
        Ok(Self {
            drafting: lend(writer, len, timestamp)?,
            marker: PhantomData,
        })
    }
}

/// A draft with room for `len` bytes. (Once for all types: what depends on them is small, and
/// becomes a part of the function that builds.)
#[inline(never)]
fn lend(writer: &Arc<WriterCore>, len: usize, timestamp: Option<i64>) -> Result<Drafting> {
    let mut drafting = Drafting::new(writer);
    if let Some((writer, draft)) = drafting.parts() {
        writer.reserve(draft, len, Purpose::Sample(None))?;
        draft.timestamp = timestamp;
        writer.side.drafts.lend(draft);
    }
    Ok(drafting)
}

impl<T> Slot for Loan<T> {
    type Receipt = Receipt;
    type Error = Error;

    #[inline]
    fn bytes(&mut self) -> &mut [u8] {
        self.drafting.bytes()
    }

    #[inline]
    fn finish(mut self, used: usize, key: KeyHash) -> Result<Receipt> {
        let Some((writer, draft)) = self.drafting.parts() else {
            return Err(Error::IllegalOperation("the loan is finished".to_owned()));
        };
        let timestamp = draft.timestamp.unwrap_or_else(source_timestamp);
        writer.send(draft, used, Kind::Data, key, timestamp)
    }
}

impl<T> fmt::Debug for Loan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan")
            .field("drafting", &self.drafting)
            .finish_non_exhaustive()
    }
}
