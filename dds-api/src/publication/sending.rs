//! The path of a sample through its writer: place, room, ring.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use spindle_dds_core::{Kind, Meta, Ring};
use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_qos::Duration;

use super::core::WriterCore;
use super::loan::Memory;
use super::receipt::Receipt;
use crate::driver::Claimed;
use crate::error::{Error, Result};

/// What room is wanted for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    /// A sample or a disposal, of this instance if it is known already.
    Sample(Option<KeyHash>),
    /// RESOURCE_LIMITS do not apply: it gives back what they limit.
    Unregister,
}

impl WriterCore {
    /// How long it waits for room; `None`: it never does.
    pub(super) fn patience(&self) -> Option<Duration> {
        match self.settings.ring {
            Ring::Ordered => Some(self.settings.max_blocking_time),
            Ring::Unordered => None,
        }
    }

    /// Room for `len` bytes, within RESOURCE_LIMITS. RELIABLE waits for it at most
    /// max_blocking_time; BEST_EFFORT gets memory that is thrown away.
    pub(crate) fn reserve(self: &Arc<Self>, len: usize, purpose: Purpose) -> Result<Memory> {
        let port = self.port()?;
        let mut patience = self.patience();
        let place = match (&self.limits, purpose) {
            (None, _) | (_, Purpose::Unregister) => None,
            (Some(limits), Purpose::Sample(key)) => {
                match self.place(limits, key, &mut patience)? {
                    Some(place) => Some(place),
                    None => return Ok(self.scratch(len)),
                }
            }
        };
        Ok(match port.claim(len, patience)? {
            Claimed::Room(claim) => Memory::Ring(claim, place),
            Claimed::NoRoom => self.scratch(len),
        })
    }

    fn scratch(&self, len: usize) -> Memory {
        let mut scratch = self.scratches().pop().unwrap_or_default();
        scratch.resize(len, 0);
        Memory::Scratch(scratch)
    }

    fn scratches(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the first `used` bytes of what was reserved. A loan of a RELIABLE writer
    /// that limits its samples or instances may wait here: its instance was not known.
    pub(crate) fn send(
        &self,
        memory: Memory,
        used: usize,
        kind: Kind,
        key: KeyHash,
        timestamp: i64,
    ) -> Result<Receipt> {
        let (claim, place) = match memory {
            Memory::Ring(claim, place) => (claim, place),
            Memory::Scratch(scratch) => {
                self.scratches().push(scratch);
                return Ok(self.drop_sample());
            }
        };
        let place = match (&self.limits, place) {
            (Some(limits), Some(place)) => match self.name(limits, place, key)? {
                Some(place) => Some(place),
                None => return Ok(self.drop_sample()),
            },
            _ => None,
        };
        let meta = Meta {
            kind,
            flags: 0,
            encapsulation: self.settings.encapsulation.0,
            writer: self.settings.number,
            timestamp,
            topic: 0,
            key_hash: key.0,
            skipped: self.take_untold(),
        };
        let committed = self.port()?.commit(claim, used, meta)?;
        self.committed
            .fetch_max(committed.index + 1, Ordering::AcqRel);
        if let Some(place) = place {
            place.sent(committed.index);
        }
        if let (Some(limits), Kind::Unregister | Kind::DisposeUnregister) = (&self.limits, kind) {
            limits.unregister(key);
        }
        Ok(self.receipt(Some(committed)))
    }

    /// A BEST_EFFORT sample finds no room.
    fn drop_sample(&self) -> Receipt {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        self.untold.fetch_add(1, Ordering::Relaxed);
        self.receipt(None)
    }

    /// Samples dropped since the last one that was sent.
    fn take_untold(&self) -> u32 {
        match self.untold.load(Ordering::Relaxed) {
            0 => 0,
            _ => u32::try_from(self.untold.swap(0, Ordering::Relaxed)).unwrap_or(u32::MAX),
        }
    }

    /// Makes an instance one that this writer has.
    pub(crate) fn register(&self, key: KeyHash) -> Result<()> {
        self.base.ready()?;
        let Some(limits) = &self.limits else {
            return Ok(());
        };
        let told = |full| Error::OutOfResources(limits.describe(full));
        limits.register(key).map_err(told)
    }

    /// Encodes straight into the ring and sends.
    pub(crate) fn write(
        self: &Arc<Self>,
        len: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize>,
        kind: Kind,
        key: KeyHash,
        timestamp: i64,
    ) -> Result<Receipt> {
        let purpose = match kind {
            Kind::Unregister | Kind::DisposeUnregister => Purpose::Unregister,
            _ => Purpose::Sample(Some(key)),
        };
        let mut memory = self.reserve(len, purpose)?;
        let used = encode(memory.bytes())?;
        self.send(memory, used, kind, key, timestamp)
    }
}
