//! Waiting for RESOURCE_LIMITS, and giving back what they lent.

use std::sync::Arc;

use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_qos::Duration;

use super::core::WriterCore;
use super::limits::{Full, Limits};
use crate::driver::Mark;
use crate::error::{Error, Result};
use crate::time::Deadline;

/// A sample's place among those that its writer may have in flight. Dropped before
/// it is sent, it is free again.
#[derive(Debug)]
pub(crate) struct Place {
    writer: Arc<WriterCore>,
    key: Option<KeyHash>,
    sent: bool,
}

impl Place {
    /// Its sample is this message. Its instance is known by then.
    pub(super) fn sent(mut self, mark: Mark) {
        self.sent = true;
        if let (Some(limits), Some(key)) = (&self.writer.side.limits, self.key) {
            limits.committed(key, mark);
        }
        // Who looked when it was released already did not know that it was sent.
        if let Ok(port) = self.writer.port()
            && port.released() > mark
        {
            port.tell_waiters();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.sent {
            return;
        }
        if let Some(limits) = &self.writer.side.limits {
            limits.withdraw(self.key);
        }
        if let Ok(port) = self.writer.port() {
            port.tell_waiters();
        }
    }
}

impl WriterCore {
    /// A place for a sample, of this instance if it is known. A RELIABLE writer waits
    /// for it, and `patience` is what is left of its time afterwards; `None`: a
    /// BEST_EFFORT writer has none and drops the sample.
    ///
    /// # Errors
    /// TIMEOUT; OUT_OF_RESOURCES for an instance too many; what ended the group.
    pub(super) fn place(
        self: &Arc<Self>,
        limits: &Limits,
        key: Option<KeyHash>,
        patience: &mut Option<Duration>,
    ) -> Result<Option<Place>> {
        // Without a key every sample is of the one instance.
        let key = key.or_else(|| (!self.topic.has_key).then(KeyHash::default));
        let admit = |released| limits.admit(key, released);
        let admitted = self.wait_for_limits(limits, patience, admit)?;
        Ok(admitted.then(|| Place {
            writer: self.clone(),
            key,
            sent: false,
        }))
    }

    /// The same for a place of which the instance becomes known.
    ///
    /// # Errors
    /// As for [`place`](Self::place).
    pub(super) fn name(
        &self,
        limits: &Limits,
        mut place: Place,
        key: KeyHash,
    ) -> Result<Option<Place>> {
        if place.key.is_some() {
            return Ok(Some(place));
        }
        let mut patience = self.patience();
        let name = |released| limits.name(key, released);
        let named = self.wait_for_limits(limits, &mut patience, name)?;
        Ok(named.then(|| {
            place.key = Some(key);
            place
        }))
    }

    fn wait_for_limits(
        &self,
        limits: &Limits,
        patience: &mut Option<Duration>,
        attempt: impl Fn(Mark) -> std::result::Result<(), Full>,
    ) -> Result<bool> {
        let port = self.port()?;
        let full = match attempt(port.released()) {
            Ok(()) => return Ok(true),
            Err(full) => full,
        };
        if full == Full::Instances {
            return Err(Error::OutOfResources(limits.describe(full)));
        }
        let deadline = patience.map(Deadline::after);
        let waited = port.wait_for_release(deadline, |released| match attempt(released) {
            Err(Full::Samples | Full::SamplesOfInstance) => None,
            result => Some(result),
        })?;
        match (waited, deadline) {
            (Some(Ok(())), _) => {
                *patience = deadline.map(Deadline::remaining);
                Ok(true)
            }
            (Some(Err(full)), _) => Err(Error::OutOfResources(limits.describe(full))),
            (None, None) => Ok(false),
            (None, Some(_)) => Err(Error::Timeout(format!(
                "{}, and none was released within {}: a reader does not take its samples, or \
                 holds them",
                limits.describe(full),
                self.side.max_blocking_time
            ))),
        }
    }
}
