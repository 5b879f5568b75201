//! Which statuses of an entity have changed, and which of these its listeners have not seen.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use spindle_dds_transport::fork::OwnerProcess;

use super::mask::StatusMask;
use super::status_stream::StatusStreams;
use crate::condition::{DataWaiter, Observers, Subject};
use crate::driver::Notifier;

/// Raised by the thread that changes a status, which may be stepping the engine: nothing here
/// waits. Conditions look at `changes`, the dispatch thread at `pending`.
#[derive(Debug)]
pub(crate) struct StatusFlags {
    /// The standard's StatusChangedFlags.
    changes: AtomicU32,
    /// Statuses whose listeners have not been called yet.
    pending: AtomicU32,
    /// The enabled statuses of the entity's StatusCondition.
    enabled: AtomicU32,
    /// The entity is deleted: its conditions hold, so that waiting threads return.
    ended: AtomicBool,
    observers: Observers,
    /// What its streams need, if it has ever had one.
    streams: OnceLock<StatusStreams>,
    notifier: Arc<Notifier>,
    /// The bit of the entity in the dispatch thread's set of callers; shared with others.
    sign: u64,
    owner: OwnerProcess,
}

const OF_DATA: StatusMask =
    StatusMask::from_bits(StatusMask::DATA_AVAILABLE.bits() | StatusMask::DATA_ON_READERS.bits());

impl StatusFlags {
    pub(crate) fn new(notifier: Arc<Notifier>) -> Self {
        Self {
            changes: AtomicU32::new(0),
            pending: AtomicU32::new(0),
            enabled: AtomicU32::new(StatusMask::ALL.bits()),
            ended: AtomicBool::new(false),
            observers: Observers::default(),
            streams: OnceLock::new(),
            sign: notifier.assign_bit(),
            owner: OwnerProcess::this(),
            notifier,
        }
    }

    /// Statuses have changed: notifies the listeners and the conditions that depend on them.
    pub(crate) fn raise(&self, statuses: StatusMask) {
        // DATA_AVAILABLE is usually set already. A thread that clears it looks into the reader
        // afterwards, under the lock under which the data was put there: either it finds the
        // data, or the cleared status is seen here.
        if !(OF_DATA.contains(statuses) && self.changes().contains(statuses)) {
            self.changes.fetch_or(statuses.bits(), Ordering::AcqRel);
        }
        if self.notifier.has_listener_for(statuses) {
            self.pending.fetch_or(statuses.bits(), Ordering::AcqRel);
            self.notifier.notify_listeners(self.sign);
        }
        self.observers.notify_of(|subject| match subject {
            Subject::Statuses => self.enabled().intersects(statuses),
            Subject::Samples => statuses.contains(StatusMask::DATA_AVAILABLE),
            Subject::Guard => true,
        });
        if let Some(streams) = self.streams.get() {
            streams.raised(statuses);
        }
    }

    /// What the streams of its statuses need.
    pub(super) fn streams(&self) -> &StatusStreams {
        self.streams.get_or_init(StatusStreams::default)
    }

    pub(super) fn notifier(&self) -> &Arc<Notifier> {
        &self.notifier
    }

    /// The entity is deleted: wakes the streams, if no thread of the participant does. Called without a
    /// lock, by a thread that does not step.
    pub(crate) fn settle_streams(&self) {
        self.notifier.futures.settle();
    }

    /// Whether the entity is deleted.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Whether its entity was inherited by `fork`.
    pub(crate) fn is_inherited(&self) -> bool {
        self.owner.is_inherited()
    }

    /// The bit by which the entity calls the dispatch thread.
    pub(crate) fn sign(&self) -> u64 {
        self.sign
    }

    /// A listener with this mask is about to be set.
    pub(crate) fn hears(&self, mask: StatusMask) {
        self.notifier.listen_for(mask);
    }

    /// Where a thread that waits for data can step the engine itself.
    pub(crate) fn data_waiter(&self) -> Option<Arc<dyn DataWaiter>> {
        self.notifier.data_waiter()
    }

    /// The same, for a StatusCondition that depends on data.
    pub(crate) fn data_waiter_if_enabled(&self) -> Option<Arc<dyn DataWaiter>> {
        self.enabled()
            .intersects(OF_DATA)
            .then(|| self.data_waiter())?
    }

    /// The entity is deleted: its conditions hold from now on.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.observers.notify();
        if let Some(streams) = self.streams.get() {
            streams.ended();
        }
    }

    /// The statuses have been read.
    pub(crate) fn clear(&self, statuses: StatusMask) {
        // A thread that polls rarely finds anything to clear.
        if self.changes().intersects(statuses) {
            self.changes.fetch_and(!statuses.bits(), Ordering::AcqRel);
        }
    }

    pub(crate) fn changes(&self) -> StatusMask {
        StatusMask::from_bits(self.changes.load(Ordering::Acquire))
    }

    /// Takes what listeners are to be told.
    pub(crate) fn take_pending(&self) -> StatusMask {
        // The common case without a write to a shared line.
        if self.pending.load(Ordering::Acquire) == 0 {
            return StatusMask::NONE;
        }
        StatusMask::from_bits(self.pending.swap(0, Ordering::AcqRel))
    }

    pub(crate) fn enabled(&self) -> StatusMask {
        StatusMask::from_bits(self.enabled.load(Ordering::Acquire))
    }

    pub(crate) fn set_enabled(&self, statuses: StatusMask) {
        self.enabled.store(statuses.bits(), Ordering::Release);
        self.observers.notify();
    }

    /// Whether the entity's StatusCondition is triggered.
    pub(crate) fn is_triggered(&self) -> bool {
        self.ended.load(Ordering::SeqCst) || self.changes().intersects(self.enabled())
    }

    pub(crate) fn observers(&self) -> &Observers {
        &self.observers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::Signal;

    #[test]
    fn a_condition_wakes_for_the_statuses_it_depends_on() {
        let status_flags = StatusFlags::new(Arc::default());
        status_flags.set_enabled(StatusMask::SUBSCRIPTION_MATCHED);
        let check = |subject, status, expected| {
            let signal = Arc::new(Signal::default());
            status_flags.observers().attach(subject, &signal);
            signal.reset();
            status_flags.raise(status);
            assert_eq!(signal.is_raised(), expected, "{subject:?} {status:?}");
            status_flags.observers().detach(subject, &signal);
        };
        check(Subject::Statuses, StatusMask::DATA_AVAILABLE, false);
        check(Subject::Statuses, StatusMask::SUBSCRIPTION_MATCHED, true);
        check(Subject::Samples, StatusMask::DATA_AVAILABLE, true);
        check(Subject::Samples, StatusMask::SUBSCRIPTION_MATCHED, false);
    }

    #[test]
    fn listeners_are_told_of_what_the_mask_of_one_has() {
        let status_flags = StatusFlags::new(Arc::default());
        let data = StatusMask::DATA_AVAILABLE;
        status_flags.raise(data);
        assert_eq!(status_flags.take_pending(), StatusMask::NONE);
        // Told of data on readers by what comes in one.
        status_flags.hears(StatusMask::DATA_ON_READERS);
        status_flags.raise(data);
        status_flags.raise(StatusMask::SAMPLE_LOST);
        assert_eq!(status_flags.take_pending(), data);
    }
}
