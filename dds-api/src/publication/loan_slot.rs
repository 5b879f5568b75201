//! One sample on its way through its writer.
//!
//! ```text
//!   LoanPool --take--> reserve --> build in bytes() --> publish --give back--> LoanPool
//!                         \------------- dropped: withdrawn ------/
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;

use spindle_dds_core::{CommitMeta, DeliveryClass, MessageKind};
use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_qos::Duration;

use super::core::WriterCore;
use super::limits::Limits;
use super::permit::SamplePermit;
use super::receipt::Receipt;
use crate::driver::{SendPosition, WriterClaim};
use crate::error::{Error, Result};

/// What a sample is built in. It is on the heap, because a loan is moved with each stage of
/// its builder.
#[derive(Debug, Default)]
pub(super) struct LoanSlot {
    /// The writer that is using the slot. Kept between samples, so that a sample does not
    /// count references; `None` before the first sample and once the writer is deleted.
    pub(super) writer: Option<Arc<WriterCore>>,
    /// Room in the ring. A finished claim is kept and renewed: it holds its subgroup epoch.
    pub(super) claim: Option<WriterClaim>,
    /// [`LoanPool::epochs`](super::loan_pool::LoanPool::epochs) when `claim` was made.
    pub(super) epochs: usize,
    /// The sample's share of RESOURCE_LIMITS, if the writer has any.
    permit: Option<SamplePermit>,
    /// The sample is dropped instead of sent: a BEST_EFFORT writer found no room, and it is
    /// built in `scratch`.
    is_dropped: bool,
    scratch: Vec<u8>,
    /// Source timestamp in nanoseconds since 1970, if the application gave one.
    pub(super) timestamp: Option<i64>,
    /// It is the pool's first slot.
    pub(super) is_first: bool,
    /// It counts as a loan until it is given back.
    pub(super) is_loan: bool,
}

/// What room is reserved for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    /// A sample or a disposal, with its instance if that is known already.
    Sample(Option<KeyHash>),
    /// RESOURCE_LIMITS do not apply: it gives back what they limit.
    Unregister,
}

#[cold]
fn no_writer() -> Error {
    Error::IllegalOperation("the loan has no writer".to_owned())
}

impl LoanSlot {
    /// The first slot of a pool.
    pub(super) fn first() -> Self {
        Self {
            is_first: true,
            ..Self::default()
        }
    }

    /// The memory to build in.
    #[inline]
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        match &mut self.claim {
            _ if self.is_dropped => &mut self.scratch,
            Some(claim) => claim.bytes(),
            None => &mut [],
        }
    }

    /// Reserves `len` bytes, within RESOURCE_LIMITS. A RELIABLE writer waits for room at most
    /// max_blocking_time; a BEST_EFFORT writer that finds none gets memory that is never sent.
    #[inline]
    pub(super) fn reserve(&mut self, len: usize, purpose: Purpose) -> Result<()> {
        let writer = self.writer.as_ref().ok_or_else(no_writer)?;
        let port = writer.port()?;
        let mut left = None;
        if let (Some(limits), Purpose::Sample(key)) = (&writer.side.limits, purpose) {
            // A digest does not identify an instance: its key does, once the sample is built.
            let key = key.filter(|_| writer.side.keys.is_none());
            let mut patience = writer.patience();
            self.permit = writer.admit(limits, key, &mut patience)?;
            if self.permit.is_none() {
                self.build_in_scratch(len);
                return Ok(());
            }
            left = patience;
        }
        if self.claim.is_none() {
            self.epochs = writer.side.pool.epochs();
        }
        let patience = || left.or_else(|| writer.patience());
        if !port.claim(&mut self.claim, len, patience)? {
            self.build_in_scratch(len);
        }
        Ok(())
    }

    #[cold]
    fn build_in_scratch(&mut self, len: usize) {
        self.is_dropped = true;
        self.scratch.resize(len, 0);
    }

    /// Sends the first `used` bytes of what was reserved. A loan of a RELIABLE writer that
    /// limits its instances, or the samples of one, may wait here: only now its instance is
    /// known.
    pub(super) fn publish(
        &mut self,
        used: usize,
        kind: MessageKind,
        key: KeyHash,
        timestamp: i64,
    ) -> Result<Receipt> {
        let writer = self.writer.as_deref().ok_or_else(no_writer)?;
        let claim = match &mut self.claim {
            Some(claim) if !self.is_dropped => claim,
            _ => return writer.drop_sample(),
        };
        let message = Message {
            used,
            kind,
            key,
            timestamp,
        };
        let Some(limits) = &writer.side.limits else {
            return match send(writer, claim, message)? {
                Some(index) => {
                    let committed = Some(claim.committed(index));
                    Ok(writer.receipt(committed, claim.returns()))
                }
                None => writer.drop_sample(),
            };
        };
        send_within(limits, writer, claim, &mut self.permit, message)
    }

    /// Withdraws what was not sent.
    #[inline]
    pub(super) fn clear(&mut self) {
        if let Some(claim) = &mut self.claim {
            claim.withdraw();
        }
        if self.permit.is_some() {
            self.permit = None;
        }
        self.is_dropped = false;
    }
}

/// What is sent of what was built.
#[derive(Debug, Clone, Copy)]
struct Message {
    /// Bytes from the start of the claim.
    used: usize,
    kind: MessageKind,
    key: KeyHash,
    timestamp: i64,
}

/// Returns the index of the message, and moves nothing larger: it is on the path of each sample.
/// `None` if a BEST_EFFORT writer finds no room.
#[inline(always)]
fn send(writer: &WriterCore, claim: &mut WriterClaim, message: Message) -> Result<Option<u64>> {
    let port = writer.port()?;
    let meta = CommitMeta {
        kind: message.kind,
        flags: 0,
        encapsulation: writer.side.encapsulation.0,
        writer: writer.number,
        timestamp: message.timestamp,
        topic: port.topic(),
        key_hash: message.key.0,
        skipped: writer.take_unannounced(),
    };
    let index = port.commit(claim, message.used, &meta, || writer.patience())?;
    if index.is_none() {
        let unannounced = &writer.side.unannounced;
        unannounced.fetch_add(meta.skipped.into(), Ordering::Relaxed);
    }
    Ok(index)
}

/// The same within RESOURCE_LIMITS, to the receipt.
#[inline(never)]
fn send_within(
    limits: &Limits,
    writer: &WriterCore,
    claim: &mut WriterClaim,
    permit: &mut Option<SamplePermit>,
    message: Message,
) -> Result<Receipt> {
    let (name, _on_its_way) = match &writer.side.keys {
        None => (message.key, None),
        Some(keys) => {
            let built = claim.bytes().get(..message.used).unwrap_or_default();
            let named = limits.name_key(keys, message.kind, built, writer.side.encapsulation)?;
            (named.name, Some(named))
        }
    };
    let permit = match permit.take() {
        None => None,
        Some(permit) => match writer.name_instance(limits, permit, name)? {
            None => return writer.drop_sample(),
            permit => permit,
        },
    };
    let Some(index) = send(writer, claim, message)? else {
        return writer.drop_sample();
    };
    let committed = claim.committed(index);
    settle(
        limits,
        permit,
        message.kind,
        name,
        claim.position(&committed),
    );
    Ok(writer.receipt(Some(committed), claim.returns()))
}

/// RESOURCE_LIMITS after a message was sent.
fn settle(
    limits: &Limits,
    permit: Option<SamplePermit>,
    kind: MessageKind,
    key: KeyHash,
    sent: SendPosition,
) {
    if let Some(permit) = permit {
        permit.sent(sent);
    }
    if let MessageKind::Unregister | MessageKind::DisposeUnregister = kind {
        limits.unregister(key);
    }
}

impl WriterCore {
    /// How long the writer waits for room; `None`: it does not wait.
    pub(super) fn patience(&self) -> Option<Duration> {
        match self.side.class {
            DeliveryClass::Ordered => Some(self.side.max_blocking_time),
            DeliveryClass::Unordered => None,
        }
    }

    /// Counts a BEST_EFFORT sample that finds no room.
    ///
    /// # Errors
    /// What ended the group, for now or for good: no room is a matter of writers that can send.
    #[cold]
    fn drop_sample(&self) -> Result<Receipt> {
        self.port()?.check_member()?;
        self.side.dropped.fetch_add(1, Ordering::Relaxed);
        self.side.unannounced.fetch_add(1, Ordering::Relaxed);
        Ok(self.receipt(None, 0))
    }

    /// How many samples were dropped since the last one that was sent.
    fn take_unannounced(&self) -> u32 {
        let unannounced = &self.side.unannounced;
        match unannounced.load(Ordering::Relaxed) {
            0 => 0,
            _ => u32::try_from(unannounced.swap(0, Ordering::Relaxed)).unwrap_or(u32::MAX),
        }
    }
}
