//! Waiting for RESOURCE_LIMITS of a writer, and giving back what they limit.

use std::sync::Arc;

use spindle_dds_core::MessageKind;
use spindle_dds_idl_runtime::KeyHash;

use super::core::WriterCore;
use super::limits::{Full, Limits};
use crate::driver::{Obstacle, SendPosition};
use crate::error::{Error, Result};
use crate::time::Deadline;

/// Counts one sample among those that its writer may have in flight. Dropped before the
/// sample is sent, it gives its share back.
#[derive(Debug)]
pub(super) struct SamplePermit {
    writer: Arc<WriterCore>,
    /// `None` until the instance is known.
    key: Option<KeyHash>,
    /// Sent, or kept to be sent.
    is_sent: bool,
}

impl SamplePermit {
    /// The sample was sent as this message. Its instance is known by then.
    pub(super) fn sent(mut self, kind: MessageKind, position: SendPosition) {
        self.is_sent = true;
        if let (Some(limits), Some(key)) = (self.writer.side.limits(), self.key) {
            limits.committed(kind, key, position);
        }
        // A thread that looked when the message was already released did not count it.
        if let Ok(port) = self.writer.port()
            && port.released() > position
        {
            port.wake_waiters();
        }
    }

    /// The sample, of this instance, waits in the writer's history, which gives the share back.
    pub(super) fn kept(mut self, instance: KeyHash) {
        self.is_sent = true;
        if let Some(limits) = self.writer.side.limits() {
            limits.kept(instance);
        }
    }
}

impl Drop for SamplePermit {
    fn drop(&mut self) {
        if self.is_sent || self.writer.base.is_inherited() {
            return;
        }
        if let Some(limits) = self.writer.side.limits() {
            limits.withdraw(self.key);
        }
        if let Ok(port) = self.writer.port() {
            port.wake_waiters();
        }
    }
}

impl WriterCore {
    /// Admits a sample, of this instance if it is known. A writer without a deadline does not wait, and
    /// gets `None` if the sample has to wait in its history, or to be dropped.
    ///
    /// # Errors
    /// TIMEOUT; OUT_OF_RESOURCES for an instance too many; what ended the group.
    pub(super) fn admit(
        self: &Arc<Self>,
        limits: &Limits,
        key: Option<KeyHash>,
        deadline: Option<Deadline>,
    ) -> Result<Option<SamplePermit>> {
        // Without a key every sample is of the one instance.
        let key = key.or_else(|| (!self.topic.has_key).then(KeyHash::default));
        let admit = |released| limits.admit(key, released);
        let admitted = self.wait_for_limits(limits, deadline, admit)?;
        Ok(admitted.then(|| SamplePermit {
            writer: self.clone(),
            key,
            is_sent: false,
        }))
    }

    /// The instance of a permitted sample becomes known.
    ///
    /// # Errors
    /// As for [`admit`](Self::admit).
    pub(super) fn name_instance(
        &self,
        limits: &Limits,
        mut permit: SamplePermit,
        key: KeyHash,
        deadline: Option<Deadline>,
    ) -> Result<Option<SamplePermit>> {
        if permit.key.is_some() {
            return Ok(Some(permit));
        }
        let name = |released| limits.name(key, released);
        let named = self.wait_for_limits(limits, deadline, name)?;
        Ok(named.then(|| {
            permit.key = Some(key);
            permit
        }))
    }

    /// Registers an instance.
    ///
    /// # Errors
    /// OUT_OF_RESOURCES for an instance too many; NOT_ENABLED, ALREADY_DELETED; what ended the
    /// group.
    pub(super) fn register(&self, key: KeyHash) -> Result<()> {
        self.port()?.check()?;
        let Some(limits) = self.side.limits() else {
            return Ok(());
        };
        let out_of_resources = |full| Error::OutOfResources(limits.describe(full));
        limits.register(key).map(drop).map_err(out_of_resources)
    }

    fn wait_for_limits(
        &self,
        limits: &Limits,
        deadline: Option<Deadline>,
        attempt: impl Fn(SendPosition) -> std::result::Result<(), Full>,
    ) -> Result<bool> {
        let port = self.port()?;
        // What is kept is not given back by itself: no sample waits for that behind others.
        let waits = limits.keeps_any() && !self.is_best_effort();
        let by_default = || waits.then(|| Deadline::after(self.side.max_blocking_time()));
        let deadline = deadline.or_else(by_default);
        let full = match attempt(port.released()) {
            Ok(()) => return Ok(true),
            Err(full) => full,
        };
        if full == Full::Instances {
            return Err(Error::OutOfResources(limits.describe(full)));
        }
        let waited = port.wait_for_release(deadline, |released| match attempt(released) {
            Err(Full::Samples | Full::SamplesOfInstance) => None,
            result => Some(result),
        })?;
        match (waited, deadline) {
            (Some(Ok(())), _) => Ok(true),
            (Some(Err(full)), _) => Err(Error::OutOfResources(limits.describe(full))),
            (None, None) => Ok(false),
            (None, Some(Deadline::Passed)) => Err(Error::would_block()),
            (None, Some(_)) if limits.keeps_any() => Err(Error::Timeout(limits.describe(full))),
            (None, Some(_)) => Err(Error::Timeout(format!(
                "{}, and none was released in time: {}",
                limits.describe(full),
                self.describe(port, &Obstacle::Limits)
            ))),
        }
    }
}
