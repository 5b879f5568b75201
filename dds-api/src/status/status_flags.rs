//! Which statuses of an entity have changed, and which of these its listeners have not seen.
//!
//! ```text
//!   raise ----> changed -----------------------------> read, or passed to a listener
//!      `------> called for -> being called -> done     if a listener is to be told
//! ```
//!
//! Listeners come first, then wait-sets (DDS 1.4 §2.2.4.6): a StatusCondition does not make a
//! wait-set return for a status that is called for, or being called.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use spindle_dds_transport::fork::OwnerProcess;

use super::mask::StatusMask;
use super::status_stream::StatusStreams;
use crate::condition::{DataWaiter, Observers, Subject};
use crate::driver::{Notifier, calls_back};

/// Raised by the thread that changes a status, which may be stepping the engine: nothing here
/// waits. Conditions look at what has changed, the dispatch thread at what is called for.
#[derive(Debug)]
pub(crate) struct StatusFlags {
    /// Three sets of statuses, of [`SET_BITS`] each: changed (the standard's
    /// StatusChangedFlags), called for, and being called.
    sets: AtomicU64,
    /// The statuses in the mask of the entity's own listener.
    listened_for: AtomicU32,
    /// Those of the entity that contains it, whose listener is told where its own is not.
    container: Option<Arc<Self>>,
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

/// Bits of a set of statuses in the word.
const SET_BITS: u32 = 21;
/// Position of the statuses that listeners are called for.
const CALLED_FOR: u32 = SET_BITS;
/// Position of the statuses whose listeners are being called.
const BEING_CALLED: u32 = 2 * SET_BITS;
const SET: u64 = (1 << SET_BITS) - 1;

/// In the set of called statuses: `notify_datareaders` asks for on_data_available.
pub(crate) const NOTIFIED: StatusMask = StatusMask::from_bits(1 << (SET_BITS - 1));

const _: () = assert!(StatusMask::SUBSCRIPTION_MATCHED.bits() < NOTIFIED.bits());

fn set_at(statuses: StatusMask, position: u32) -> u64 {
    (u64::from(statuses.bits()) & SET) << position
}

fn statuses_at(sets: u64, position: u32) -> StatusMask {
    StatusMask::from_bits((sets >> position & SET) as u32)
}

impl StatusFlags {
    pub(crate) fn new(notifier: Arc<Notifier>, container: Option<Arc<Self>>) -> Self {
        Self {
            sets: AtomicU64::new(0),
            listened_for: AtomicU32::new(0),
            container,
            enabled: AtomicU32::new(StatusMask::ALL.bits()),
            ended: AtomicBool::new(false),
            observers: Observers::default(),
            streams: OnceLock::new(),
            sign: notifier.assign_bit(),
            owner: OwnerProcess::this(),
            notifier,
        }
    }

    /// Statuses have changed: calls for the listeners, and notifies the conditions that depend on
    /// them.
    pub(crate) fn raise(&self, statuses: StatusMask) {
        let heard = self.heard(statuses);
        let sets = set_at(statuses, 0) | set_at(heard, CALLED_FOR);
        // DATA_AVAILABLE is usually set already. A thread that clears it looks into the reader
        // afterwards, under the lock under which the data was put there: either it finds the
        // data, or the cleared status is seen here.
        if !(OF_DATA.contains(statuses) && self.sets.load(Ordering::Acquire) & sets == sets) {
            self.sets.fetch_or(sets, Ordering::AcqRel);
        }
        if !heard.is_empty() {
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

    /// Calls for on_data_available, without a change of status.
    pub(crate) fn call_for_data(&self) {
        self.sets
            .fetch_or(set_at(NOTIFIED, CALLED_FOR), Ordering::AcqRel);
        self.notifier.notify_listeners(self.sign);
    }

    /// Those of `statuses` that the mask of a listener has: the entity's own, or that of an entity
    /// that contains it.
    fn heard(&self, statuses: StatusMask) -> StatusMask {
        // One load where no listener of the participant has them.
        if !self.notifier.has_listener_for(statuses) {
            return StatusMask::NONE;
        }
        let mut masks = 0;
        let mut next = Some(self);
        while let Some(flags) = next {
            masks |= flags.listened_for.load(Ordering::SeqCst);
            next = flags.container.as_deref();
        }
        statuses & StatusMask::from_bits(masks)
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
        let statuses = Notifier::triggers(mask);
        self.listened_for.store(statuses.bits(), Ordering::SeqCst);
        self.notifier.listen_for(statuses);
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
            self.sets.fetch_and(!set_at(statuses, 0), Ordering::AcqRel);
        }
    }

    pub(crate) fn changes(&self) -> StatusMask {
        statuses_at(self.sets.load(Ordering::Acquire), 0)
    }

    /// Takes what listeners are to be told. [`end_calls`](Self::end_calls) follows when they have
    /// been.
    pub(crate) fn begin_calls(&self) -> StatusMask {
        let take = |sets: u64| {
            let called_for = sets >> CALLED_FOR & SET;
            // The common case without a write to a shared line.
            (called_for != 0).then_some(sets & !(SET << CALLED_FOR) | called_for << BEING_CALLED)
        };
        let taken = self
            .sets
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        taken.map_or(StatusMask::NONE, |sets| statuses_at(sets, CALLED_FOR))
    }

    /// The listeners have been told: now it is the turn of the wait-sets.
    pub(crate) fn end_calls(&self) {
        self.sets
            .fetch_and(!(SET << BEING_CALLED), Ordering::AcqRel);
        self.observers.notify();
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

    /// Whether the StatusCondition makes a wait-set return: it is triggered by a status that no
    /// listener is to be told of first.
    pub(crate) fn is_signaled(&self) -> bool {
        if self.ended.load(Ordering::SeqCst) {
            return true;
        }
        let sets = self.sets.load(Ordering::Acquire);
        let triggering = statuses_at(sets, 0) & self.enabled();
        let calls = statuses_at(sets, CALLED_FOR) | statuses_at(sets, BEING_CALLED);
        let withheld = triggering & calls;
        // A listener that waits would wait for itself.
        if withheld.is_empty() || calls_back() || !self.notifier.is_dispatching() {
            return !triggering.is_empty();
        }
        !(triggering & !self.heard(withheld)).is_empty()
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
        let status_flags = StatusFlags::new(Arc::default(), None);
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
        let status_flags = StatusFlags::new(Arc::default(), None);
        let data = StatusMask::DATA_AVAILABLE;
        status_flags.raise(data);
        assert_eq!(status_flags.begin_calls(), StatusMask::NONE);
        // Told of data on readers by what comes in one.
        status_flags.hears(StatusMask::DATA_ON_READERS);
        status_flags.raise(data);
        status_flags.raise(StatusMask::SAMPLE_LOST);
        assert_eq!(status_flags.begin_calls(), data);
        status_flags.end_calls();
        assert_eq!(status_flags.begin_calls(), StatusMask::NONE);
    }

    #[test]
    fn only_entities_with_a_listener_in_reach_are_called_for() {
        let notifier = Arc::<Notifier>::default();
        let flags = |container| Arc::new(StatusFlags::new(notifier.clone(), container));
        let participant = flags(None);
        let subscriber = flags(Some(participant.clone()));
        let readers = [subscriber.clone(), participant.clone()].map(|it| flags(Some(it)));
        let lost = StatusMask::SAMPLE_LOST;
        subscriber.hears(lost);
        readers.iter().for_each(|reader| reader.raise(lost));
        let called = readers.each_ref().map(|reader| reader.begin_calls());
        assert_eq!(called, [lost, StatusMask::NONE]);
        subscriber.hears(StatusMask::NONE);
        readers[0].end_calls();
        readers[0].raise(lost);
        assert_eq!(readers[0].begin_calls(), StatusMask::NONE);
    }

    #[test]
    fn wait_sets_wait_for_listeners() {
        let notifier = Arc::<Notifier>::default();
        let flags = StatusFlags::new(notifier.clone(), None);
        let (matched, lost) = (StatusMask::SUBSCRIPTION_MATCHED, StatusMask::SAMPLE_LOST);
        flags.hears(matched);
        flags.raise(matched);
        assert!(flags.is_signaled(), "no thread calls listeners");
        notifier.dispatching.begin(None);
        assert!(flags.is_triggered() && !flags.is_signaled(), "called for");
        flags.raise(lost);
        assert!(flags.is_signaled(), "no listener has this one");
        flags.clear(lost);
        assert_eq!(flags.begin_calls(), matched);
        assert!(!flags.is_signaled(), "being called");
        let signal = Arc::new(Signal::default());
        flags.observers().attach(Subject::Statuses, &signal);
        signal.reset();
        flags.end_calls();
        // A listener that reads the status clears it; a nil listener leaves it.
        assert!(signal.is_raised() && flags.is_signaled());
        flags.raise(matched);
        flags.end();
        assert!(flags.is_signaled(), "deleted");
    }
}
