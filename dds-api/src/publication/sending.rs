//! The path of a sample through its writer: place, room, ring.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use spindle_dds_core::{DeliveryClass, Kind, Meta};
use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_qos::Duration;

use super::core::WriterCore;
use super::draft::{Draft, Drafting};
use super::receipt::Receipt;
use crate::driver::Mark;
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
        match self.side.class {
            DeliveryClass::Ordered => Some(self.side.max_blocking_time),
            DeliveryClass::Unordered => None,
        }
    }

    /// Room for `len` bytes, within RESOURCE_LIMITS. RELIABLE waits for it at most
    /// max_blocking_time; BEST_EFFORT gets memory that is thrown away.
    #[inline]
    pub(super) fn reserve(
        self: &Arc<Self>,
        draft: &mut Draft,
        len: usize,
        purpose: Purpose,
    ) -> Result<()> {
        let port = self.port()?;
        let mut left = None;
        if let (Some(limits), Purpose::Sample(key)) = (&self.side.limits, purpose) {
            let mut patience = self.patience();
            draft.place = self.place(limits, key, &mut patience)?;
            if draft.place.is_none() {
                draft.scratch(len);
                return Ok(());
            }
            left = patience;
        }
        if draft.claim.is_none() {
            draft.lanes = self.side.drafts.lanes();
        }
        let patience = || left.or_else(|| self.patience());
        if !port.claim(&mut draft.claim, len, patience)? {
            draft.scratch(len);
        }
        Ok(())
    }

    /// Sends the first `used` bytes of what was reserved. A loan of a RELIABLE writer
    /// that limits its samples or instances may wait here: its instance was not known.
    pub(super) fn send(
        &self,
        draft: &mut Draft,
        used: usize,
        kind: Kind,
        key: KeyHash,
        timestamp: i64,
    ) -> Result<Receipt> {
        let claim = match &mut draft.claim {
            Some(claim) if !draft.is_scratch => claim,
            _ => return Ok(self.drop_sample()),
        };
        let limited = match &self.side.limits {
            None => None,
            Some(limits) => match draft.place.take() {
                None => Some((limits, None)),
                Some(place) => match self.name(limits, place, key)? {
                    None => return Ok(self.drop_sample()),
                    named => Some((limits, named)),
                },
            },
        };
        let port = self.port()?;
        let meta = Meta {
            kind,
            flags: 0,
            encapsulation: self.side.encapsulation.0,
            writer: self.number,
            timestamp,
            topic: port.topic(),
            key_hash: key.0,
            skipped: self.take_unannounced(),
        };
        let index = port.commit(claim, used, &meta, || self.patience())?;
        let Some(index) = index else {
            self.side
                .unannounced
                .fetch_add(meta.skipped.into(), Ordering::Relaxed);
            return Ok(self.drop_sample());
        };
        let committed = claim.committed(index);
        if let Some((limits, place)) = limited {
            if let Some(place) = place {
                place.sent(Mark::of(&committed));
            }
            if let Kind::Unregister | Kind::DisposeUnregister = kind {
                limits.unregister(key);
            }
        }
        Ok(self.receipt(Some(committed)))
    }

    /// A BEST_EFFORT sample finds no room.
    fn drop_sample(&self) -> Receipt {
        self.side.dropped.fetch_add(1, Ordering::Relaxed);
        self.side.unannounced.fetch_add(1, Ordering::Relaxed);
        self.receipt(None)
    }

    /// Samples dropped since the last one that was sent.
    fn take_unannounced(&self) -> u32 {
        match self.side.unannounced.load(Ordering::Relaxed) {
            0 => 0,
            _ => {
                u32::try_from(self.side.unannounced.swap(0, Ordering::Relaxed)).unwrap_or(u32::MAX)
            }
        }
    }

    /// Makes an instance one that this writer has.
    pub(crate) fn register(&self, key: KeyHash) -> Result<()> {
        self.base.ready()?;
        let Some(limits) = &self.side.limits else {
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
        let mut drafting = Drafting::new(self);
        let Some((writer, draft)) = drafting.parts() else {
            return Err(Error::IllegalOperation("there is no draft".to_owned()));
        };
        writer.reserve(draft, len, purpose)?;
        let used = encode(draft.bytes())?;
        writer.send(draft, used, kind, key, timestamp)
    }
}
