//! The changes of an entity's statuses as a `Stream`, for any executor.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use futures_core::Stream;

use super::mask::StatusMask;
use super::status_flags::StatusFlags;
use crate::driver::{FutureWaker, Notifier, WaitingFuture};

/// See [`DataWriter::status_stream`](crate::DataWriter::status_stream): the statuses that have changed
/// since the last item. Ends when the entity is deleted; it does not keep its participant alive.
#[derive(Debug)]
pub struct StatusStream {
    flags: Arc<StatusFlags>,
    /// The statuses that it is about.
    mask: StatusMask,
    /// What has changed, of that.
    changed: StatusMask,
    /// The changes of each status that it has told of.
    seen: [u32; STATUSES],
    /// Once it has waited.
    waits: Option<Listed>,
}

/// One for each bit of a mask.
const STATUSES: usize = u32::BITS as usize;

/// What the streams of an entity need: made for the first of them.
#[derive(Default)]
pub(super) struct StatusStreams {
    /// The changes of each status since then; wrapping.
    changes: [AtomicU32; STATUSES],
    waiting: RwLock<Vec<(StatusMask, Arc<FutureWaker>)>>,
}

impl fmt::Debug for StatusStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusStreams").finish_non_exhaustive()
    }
}

impl StatusStreams {
    /// Statuses have changed. Never waits.
    #[cold]
    pub(super) fn raised(&self, statuses: StatusMask) {
        for (bit, changes) in self.changes.iter().enumerate() {
            if statuses.bits() & 1 << bit != 0 {
                changes.fetch_add(1, Ordering::Relaxed);
            }
        }
        fence(Ordering::SeqCst);
        self.mark(statuses);
    }

    /// The entity is deleted.
    pub(super) fn ended(&self) {
        self.mark(StatusMask::ALL);
    }

    fn mark(&self, statuses: StatusMask) {
        // A thread that has it locked marks all when it has unlocked it.
        if let Ok(waiting) = self.waiting.try_read() {
            let concerned = waiting.iter().filter(|(mask, _)| mask.intersects(statuses));
            concerned.for_each(|(_, waker)| waker.mark());
        }
    }

    fn change_list(&self, change: impl FnOnce(&mut Vec<(StatusMask, Arc<FutureWaker>)>)) {
        let mut waiting = self.waiting.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut waiting);
        drop(waiting);
        fence(Ordering::SeqCst);
        let waiting = self.waiting.read().unwrap_or_else(PoisonError::into_inner);
        waiting.iter().for_each(|(_, waker)| waker.mark());
    }
}

/// A stream in the list of those that wait, until this is dropped.
#[derive(Debug)]
struct Listed {
    flags: Arc<StatusFlags>,
    future: WaitingFuture,
}

impl Listed {
    fn new(flags: &Arc<StatusFlags>, notifier: &Arc<Notifier>, mask: StatusMask) -> Self {
        let future = WaitingFuture::new(notifier, None);
        let entry = (mask, future.marker().clone());
        flags.streams().change_list(|waiting| waiting.push(entry));
        Self {
            flags: flags.clone(),
            future,
        }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        if self.future.is_inherited() {
            return;
        }
        let marker = self.future.marker();
        let is_other = |it: &(StatusMask, Arc<FutureWaker>)| !Arc::ptr_eq(&it.1, marker);
        let streams = self.flags.streams();
        streams.change_list(|waiting| waiting.retain(is_other));
    }
}

impl StatusStream {
    pub(crate) fn new(flags: Arc<StatusFlags>, mask: StatusMask) -> Self {
        let streams = flags.streams();
        // Either a thread that raises a status sees the streams, or its change is seen here.
        fence(Ordering::SeqCst);
        let seen = streams
            .changes
            .each_ref()
            .map(|it| it.load(Ordering::Acquire));
        let changed = StatusMask::from_bits(flags.changes().bits() & mask.bits());
        Self {
            mask,
            changed,
            seen,
            waits: None,
            flags,
        }
    }

    /// Adds what has changed since the last look.
    fn look(&mut self) {
        let now = &self.flags.streams().changes;
        for (bit, (seen, now)) in self.seen.iter_mut().zip(now).enumerate() {
            let now = now.load(Ordering::Acquire);
            if std::mem::replace(seen, now) != now {
                self.changed |= StatusMask::from_bits(self.mask.bits() & 1 << bit);
            }
        }
    }

    /// The next item, if there is one, or the end.
    fn next_now(&mut self) -> Option<Option<StatusMask>> {
        // Before the look: what was raised before the end is told.
        let has_ended = self.flags.has_ended() || self.flags.is_inherited();
        self.look();
        let changed = std::mem::take(&mut self.changed);
        match changed.is_empty() {
            false => Some(Some(changed)),
            true => has_ended.then_some(None),
        }
    }
}

impl Stream for StatusStream {
    type Item = StatusMask;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<StatusMask>> {
        if let Some(next) = self.next_now() {
            return Poll::Ready(next);
        }
        if self.waits.is_none() {
            let notifier = self.flags.notifier().clone();
            self.waits = Some(Listed::new(&self.flags, &notifier, self.mask));
        }
        if let Some(waits) = &self.waits {
            waits.future.set_waker(context.waker());
        }
        self.next_now().map_or(Poll::Pending, Poll::Ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Wake, Waker};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    const MATCHED: StatusMask = StatusMask::PUBLICATION_MATCHED;
    const LOST: StatusMask = StatusMask::LIVELINESS_LOST;

    #[test]
    fn a_stream_tells_what_has_changed_since_its_last_item_and_ends() {
        let notifier = Arc::<Notifier>::default();
        let flags = Arc::new(StatusFlags::new(notifier.clone(), None));
        flags.raise(LOST);
        let count = Arc::<Count>::default();
        let waker = Waker::from(count.clone());
        let mut stream = StatusStream::new(flags.clone(), MATCHED | LOST);
        let mut next = || Pin::new(&mut stream).poll_next(&mut Context::from_waker(&waker));
        assert_eq!(next(), Poll::Ready(Some(LOST)), "it was not read yet");
        flags.clear(LOST);
        assert_eq!(next(), Poll::Pending);
        notifier.futures.settle();
        assert_eq!(next(), Poll::Pending);
        let before = count.0.load(Ordering::SeqCst);
        flags.raise(StatusMask::SAMPLE_LOST);
        notifier.futures.settle();
        assert_eq!(
            count.0.load(Ordering::SeqCst),
            before,
            "it is not asked for"
        );
        flags.raise(MATCHED);
        flags.clear(MATCHED);
        flags.raise(MATCHED);
        notifier.futures.settle();
        assert_eq!(count.0.load(Ordering::SeqCst), before + 1);
        assert_eq!(next(), Poll::Ready(Some(MATCHED)), "read or not");
        assert_eq!(next(), Poll::Pending);
        flags.raise(LOST);
        flags.end();
        notifier.futures.settle();
        assert_eq!(count.0.load(Ordering::SeqCst), before + 2);
        assert_eq!(next(), Poll::Ready(Some(LOST)), "what came before the end");
        assert_eq!(next(), Poll::Ready(None));
        drop(stream);
        assert_eq!(notifier.futures.len(), 0);
    }
}
