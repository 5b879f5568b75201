//! Memory of the ring, lent to the application.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use spindle_dds_core::MessageKind;
use spindle_dds_idl_runtime::{KeyHash, Slot};

use super::core::WriterCore;
use super::loan_pool::LoanPool;
use super::loan_slot::LoanSlot;
use super::receipt::Receipt;
use crate::error::{Error, Result};
use crate::stamps::source_timestamp;
use crate::time::Deadline;

/// Room for one sample of type `T` in the writer's ring, where readers will find it; or in private memory,
/// where there is none in the ring. What a generated builder builds in. A loan that is dropped without being published is withdrawn
/// without a trace. While it is held, it takes room in this participant's own ring only.
pub struct Loan<T> {
    /// `None` only while it is dropped.
    slot: Option<Box<LoanSlot>>,
    marker: PhantomData<fn() -> T>,
}

impl<T> Loan<T> {
    /// Reserves room for `len` bytes. The sample gets the time of its publication as source
    /// timestamp, unless `timestamp` is given.
    #[inline]
    pub(crate) fn reserve(
        writer: &Arc<WriterCore>,
        len: usize,
        timestamp: Option<i64>,
    ) -> Result<Self> {
        Ok(Self {
            slot: Some(LoanPool::lend(writer, len, timestamp)?),
            marker: PhantomData,
        })
    }

    /// The same, but waits until that time at most.
    pub(super) fn reserve_until(
        writer: &Arc<WriterCore>,
        len: usize,
        timestamp: Option<i64>,
        until: Deadline,
    ) -> Result<Self> {
        Ok(Self {
            slot: Some(LoanPool::lend_until(writer, len, timestamp, until)?),
            marker: PhantomData,
        })
    }
}

impl<T> Slot for Loan<T> {
    type Receipt = Receipt;
    type Error = Error;

    #[inline]
    fn bytes(&mut self) -> &mut [u8] {
        match &mut self.slot {
            Some(slot) => slot.bytes(),
            None => &mut [],
        }
    }

    #[inline]
    fn finish(mut self, used: usize, key: KeyHash) -> Result<Receipt> {
        let Some(slot) = &mut self.slot else {
            return Err(Error::IllegalOperation("the loan is finished".to_owned()));
        };
        let timestamp = slot.timestamp.unwrap_or_else(source_timestamp);
        slot.publish(used, MessageKind::Data, key, timestamp)
    }
}

/// The slot is moved out, so that the address of a builder does not escape here: a builder
/// whose address is known nowhere stays in registers.
impl<T> Drop for Loan<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            LoanPool::give_back(slot);
        }
    }
}

impl<T> fmt::Debug for Loan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan")
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}
