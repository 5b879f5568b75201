//! The slots in which the samples of a writer are built, kept from one sample to the next.
//!
//! A kept slot holds a finished claim, and with it the subgroup epoch, and a reference to its
//! writer. So a sample counts references of neither, takes no lock to find its subgroup
//! epoch, and allocates nothing. The first slot is taken and given back by one exchange of a
//! word each; other slots exist while a writer has several loans at a time, or several threads.
//!
//! Invariants:
//!
//! - A kept slot holds no claim of an epoch that has ended, and no reference to a deleted
//!   writer: [`LoanPool::epoch_begun`] and [`LoanPool::close`] first raise `epochs`, and then
//!   clean the slots that are in the pool; a thread that gives a slot back puts it into the
//!   pool first, and then looks at `epochs`. One of the two sees the other.
//! - A thread that gives back the last reference to a writer still looks at the slots. They
//!   therefore outlive the writer, and are handed to another one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_queue::ArrayQueue;
use crossbeam_utils::atomic::AtomicCell;
use spindle_dds_core::MessageKind;
use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_transport::fork::OwnerProcess;

use super::core::WriterCore;
use super::loan_slot::{LoanSlot, Purpose};
use super::receipt::Receipt;
use crate::error::Result;
use crate::time::Deadline;

/// Slots that are kept beside the first one.
const OTHERS_MAX: usize = 16;

/// In `Slots::epochs`: the writer is deleted.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// The slots of one writer, and the process that has them.
pub(super) struct LoanPool(&'static Slots, OwnerProcess);

struct Slots {
    /// `None` while a sample is built in it.
    first: AtomicCell<Option<Box<LoanSlot>>>,
    others: ArrayQueue<Box<LoanSlot>>,
    /// The first slot is a loan. Written only by the thread that has the slot.
    first_is_loan: AtomicBool,
    /// Loans in other slots.
    other_loans: AtomicUsize,
    /// Subgroup epochs that have begun, and the flag [`CLOSED`].
    epochs: AtomicUsize,
}

/// Slots of deleted writers.
static SPARE: Mutex<Vec<&'static Slots>> = Mutex::new(Vec::new());

fn spare() -> MutexGuard<'static, Vec<&'static Slots>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LoanPool {
    pub(super) fn new() -> Self {
        Self(
            spare().pop().unwrap_or_else(Slots::leak),
            OwnerProcess::this(),
        )
    }

    /// A slot with room for `len` bytes, which counts as a loan. Not generic: only a few
    /// instructions of a loan depend on its type, and are inlined where the sample is built.
    #[inline(never)]
    pub(super) fn lend(
        writer: &Arc<WriterCore>,
        len: usize,
        timestamp: Option<i64>,
    ) -> Result<Box<LoanSlot>> {
        let pool = &writer.side.pool;
        let mut slot = pool.take(writer);
        if let Err(error) = slot.reserve(len, Purpose::Sample(None)) {
            Self::give_back(slot);
            return Err(error);
        }
        slot.timestamp = timestamp;
        pool.0.count_loan(&mut slot);
        Ok(slot)
    }

    /// The same, but waits until that time at most.
    pub(super) fn lend_until(
        writer: &Arc<WriterCore>,
        len: usize,
        timestamp: Option<i64>,
        until: Deadline,
    ) -> Result<Box<LoanSlot>> {
        let pool = &writer.side.pool;
        let mut slot = pool.take(writer);
        slot.until = Some(until);
        let reserved = slot.reserve(len, Purpose::Sample(None));
        slot.until = None;
        if let Err(error) = reserved {
            Self::give_back(slot);
            return Err(error);
        }
        slot.timestamp = timestamp;
        pool.0.count_loan(&mut slot);
        Ok(slot)
    }

    #[inline]
    fn take(&self, writer: &Arc<WriterCore>) -> Box<LoanSlot> {
        let mut slot = self.0.take();
        if slot.writer.is_none() {
            slot.writer = Some(writer.clone());
        }
        slot
    }

    /// Withdraws what was reserved and not published, and keeps the slot.
    #[inline(never)]
    pub(super) fn give_back(slot: Box<LoanSlot>) {
        if let Some(slots) = slot.writer.as_ref().map(|writer| writer.side.pool.0) {
            slots.give_back(slot);
        }
    }

    /// Loans that are neither published nor dropped.
    pub(super) fn loans(&self) -> usize {
        let first = self.0.first_is_loan.load(Ordering::Acquire);
        self.0.other_loans.load(Ordering::Acquire) + usize::from(first)
    }

    /// Bytes of the slots that are kept.
    pub(super) fn allocated(&self) -> usize {
        (1 + self.0.others.len()) * size_of::<LoanSlot>()
    }

    /// How many subgroup epochs have begun: to be noted in a slot before it gets a claim.
    #[inline]
    pub(super) fn epochs(&self) -> usize {
        self.0.epochs.load(Ordering::Acquire)
    }

    /// A subgroup epoch has begun: slots let go of the memory of earlier ones.
    pub(super) fn epoch_begun(&self) {
        self.0.epochs.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        self.0.clean();
    }

    /// The writer is deleted: slots in the pool no longer keep it alive.
    pub(super) fn close(&self) {
        self.0.epochs.fetch_or(CLOSED, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        self.0.clean();
    }
}

/// No slot is out: it would keep the writer alive. A thread that gave the last one back may
/// still be in [`Slots::clean`], where it finds nothing to do.
impl Drop for LoanPool {
    fn drop(&mut self) {
        if self.1.is_inherited() {
            return;
        }
        self.close();
        self.0.epochs.store(0, Ordering::Release);
        spare().push(self.0);
    }
}

impl Slots {
    fn leak() -> &'static Self {
        Box::leak(Box::new(Self {
            first: AtomicCell::new(Some(Box::new(LoanSlot::first()))),
            others: ArrayQueue::new(OTHERS_MAX),
            first_is_loan: AtomicBool::new(false),
            other_loans: AtomicUsize::new(0),
            epochs: AtomicUsize::new(0),
        }))
    }

    #[inline]
    fn take(&self) -> Box<LoanSlot> {
        match self.first.take() {
            Some(slot) => slot,
            None => self.take_other(),
        }
    }

    #[cold]
    fn take_other(&self) -> Box<LoanSlot> {
        self.others.pop().unwrap_or_default()
    }

    #[inline]
    fn count_loan(&self, slot: &mut LoanSlot) {
        slot.is_loan = true;
        if slot.is_first {
            self.first_is_loan.store(true, Ordering::Release);
        } else {
            self.other_loans.fetch_add(1, Ordering::AcqRel);
        }
    }

    #[inline]
    fn give_back(&'static self, mut slot: Box<LoanSlot>) {
        slot.clear();
        if !slot.is_first {
            return self.give_other_back(slot);
        }
        if slot.is_loan {
            slot.is_loan = false;
            self.first_is_loan.store(false, Ordering::Release);
        }
        let epochs = slot.epochs;
        self.first.store(Some(slot));
        // Acquire, by the exchange: a thread that raised `epochs` and found no slot here to
        // clean, raised it before.
        if self.is_past(epochs) {
            self.clean();
        }
    }

    #[cold]
    fn give_other_back(&'static self, mut slot: Box<LoanSlot>) {
        if slot.is_loan {
            slot.is_loan = false;
            self.other_loans.fetch_sub(1, Ordering::AcqRel);
        }
        let epochs = slot.epochs;
        // Dropped if enough are kept.
        let _ = self.others.push(slot);
        // Pairs with the fences in `epoch_begun` and `close`: either the slot is found there,
        // or `epochs` is seen raised here.
        fence(Ordering::SeqCst);
        if self.is_past(epochs) {
            self.clean();
        }
    }

    /// Whether more epochs than these have begun, or the writer is deleted.
    #[inline]
    fn is_past(&self, epochs: usize) -> bool {
        let now = self.epochs.load(Ordering::Relaxed);
        now != epochs || now & CLOSED != 0
    }

    /// Drops the claims of slots in the pool, and their references to a deleted writer. The
    /// last reference may be among them: each is dropped after its slot is back in the pool.
    #[cold]
    fn clean(&'static self) {
        if let Some(slot) = self.first.take() {
            let (slot, writer) = self.cleaned(slot);
            self.first.store(Some(slot));
            drop(writer);
        }
        for _ in 0..self.others.len() {
            if let Some(slot) = self.others.pop() {
                let (slot, writer) = self.cleaned(slot);
                let _ = self.others.push(slot);
                drop(writer);
            }
        }
    }

    fn cleaned(&self, mut slot: Box<LoanSlot>) -> (Box<LoanSlot>, Option<Arc<WriterCore>>) {
        let epochs = self.epochs.load(Ordering::Acquire);
        slot.claim = None;
        slot.epochs = epochs;
        let writer = match epochs & CLOSED {
            0 => None,
            _ => slot.writer.take(),
        };
        (slot, writer)
    }
}

impl WriterCore {
    /// Writes a sample, or a change of an instance's state, of `len` bytes at most: `encode`
    /// writes them into the ring.
    pub(crate) fn write(
        self: &Arc<Self>,
        len: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize>,
        kind: MessageKind,
        key: KeyHash,
        timestamp: i64,
    ) -> Result<Receipt> {
        let mut slot = self.side.pool.take(self);
        let written = slot.reserve(len, Purpose::of(kind, key)).and_then(|()| {
            let used = encode(slot.bytes())?;
            slot.publish(used, kind, key, timestamp)
        });
        LoanPool::give_back(slot);
        written
    }

    /// The same, but waits until that time at most.
    pub(super) fn write_until(
        self: &Arc<Self>,
        until: Deadline,
        len: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize>,
        (kind, key): (MessageKind, KeyHash),
        timestamp: i64,
    ) -> Result<Receipt> {
        let mut slot = self.side.pool.take(self);
        slot.until = Some(until);
        let written = slot.reserve(len, Purpose::of(kind, key)).and_then(|()| {
            let used = encode(slot.bytes())?;
            slot.publish(used, kind, key, timestamp)
        });
        slot.until = None;
        LoanPool::give_back(slot);
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_slot_is_reused_and_others_come_and_go() {
        let slots = Slots::leak();
        let address = |slot: &LoanSlot| std::ptr::from_ref(slot).addr();
        let first = slots.take();
        let at_first = address(&first);
        let other = slots.take();
        let at_other = address(&other);
        assert!(first.is_first && !other.is_first);
        slots.give_back(other);
        slots.give_back(first);
        let again = [slots.take(), slots.take()];
        let addresses = again.each_ref().map(|slot| address(slot));
        assert_eq!(addresses, [at_first, at_other]);
        let many: Vec<_> = (0..OTHERS_MAX).map(|_| slots.take()).collect();
        let all = again.into_iter().chain(many);
        all.for_each(|slot| slots.give_back(slot));
        assert_eq!(slots.others.len(), OTHERS_MAX);
        assert!(slots.take().is_first);
    }

    #[test]
    fn loans_are_counted_until_they_are_given_back() {
        let slots = Slots::leak();
        let pool = LoanPool(slots, OwnerProcess::this());
        let mut taken = [0; 3].map(|_| slots.take());
        assert_eq!(pool.loans(), 0, "a write is no loan");
        for (slot, loans) in taken.iter_mut().zip(1..) {
            slots.count_loan(slot);
            assert_eq!(pool.loans(), loans);
        }
        for (slot, loans) in taken.into_iter().zip([2, 1, 0]) {
            slots.give_back(slot);
            assert_eq!(pool.loans(), loans);
        }
    }

    #[test]
    fn a_slot_given_back_after_an_epoch_began_forgets_the_old_one() {
        let slots = Slots::leak();
        let pool = LoanPool(slots, OwnerProcess::this());
        let [first, other] = [slots.take(), slots.take()];
        pool.epoch_begun();
        slots.give_back(first);
        slots.give_back(other);
        for _ in 0..2 {
            let slot = slots.take();
            assert_eq!(slot.epochs, pool.epochs());
            std::mem::forget(slot);
        }
    }
}
