//! What has happened at a station, from whoever notices to whoever asks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::fabric::FailureCause;

/// Longest message between stations, in bytes.
pub const MESSAGE_LEN_MAX: usize = 1 << 20;

/// Most bytes of messages that wait for a peer, or of a peer to be taken.
pub(crate) const QUEUE_LEN_MAX: usize = 16 * MESSAGE_LEN_MAX;

/// As good as for ever: 30 years.
const AGES: Duration = Duration::from_secs(30 * 365 * 86_400);

/// What is said of a peer that has gone on purpose.
pub(crate) const LEFT: &str = "it has closed the connection";

/// What happened at a station.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StationEvent {
    /// A peer is connected, whoever of the two called.
    Connected {
        /// Who.
        id: u128,
    },
    /// A peer has sent a message.
    Message {
        /// Who.
        from: u128,
        /// What, as it was given to `send`.
        bytes: Vec<u8>,
    },
    /// A peer is lost. Its id does not come back before `drop_peer`.
    Closed {
        /// Who.
        id: u128,
        /// How it is known.
        cause: FailureCause,
    },
}

impl StationEvent {
    fn peer(&self) -> u128 {
        match *self {
            Self::Connected { id } | Self::Closed { id, .. } => id,
            Self::Message { from, .. } => from,
        }
    }
}

/// Events that nobody has taken yet: one queue for all parts of a station.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<StationEvent>,
    /// Bytes of each peer's messages among them.
    unread: BTreeMap<u128, usize>,
    interrupted: bool,
    ended: bool,
}

impl EventQueue {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something that is no message.
    pub(crate) fn tell(&self, event: StationEvent) {
        self.queue().events.push_back(event);
        self.changed.notify_all();
    }

    /// A message, unless too many of this peer wait: the error says so.
    pub(crate) fn deliver(&self, from: u128, bytes: Vec<u8>) -> Result<(), String> {
        let mut queue = self.queue();
        let unread = queue.unread.entry(from).or_default();
        if *unread + bytes.len() > QUEUE_LEN_MAX {
            return Err(format!(
                "more than {QUEUE_LEN_MAX} bytes of its messages wait here"
            ));
        }
        *unread += bytes.len();
        queue
            .events
            .push_back(StationEvent::Message { from, bytes });
        drop(queue);
        self.changed.notify_all();
        Ok(())
    }

    /// What a peer had said or been is not told any more.
    pub(crate) fn forget(&self, id: u128) {
        let mut queue = self.queue();
        queue.unread.remove(&id);
        queue.events.retain(|event| event.peer() != id);
    }

    /// The next one; `None` after `timeout`, an interruption, or the end.
    pub(crate) fn next(&self, timeout: Duration) -> Option<StationEvent> {
        let now = Instant::now();
        let deadline = now.checked_add(timeout).unwrap_or(now + AGES);
        let mut queue = self.queue();
        loop {
            if let Some(event) = queue.take() {
                return Some(event);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if queue.ended || core::mem::take(&mut queue.interrupted) || left.is_zero() {
                return None;
            }
            let waited = self.changed.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whoever waits, or comes next, is to look at something else.
    pub(crate) fn interrupt(&self) {
        self.queue().interrupted = true;
        self.changed.notify_all();
    }

    /// Nobody waits any more.
    pub(crate) fn end(&self) {
        self.queue().ended = true;
        self.changed.notify_all();
    }
}

impl Queue {
    fn take(&mut self) -> Option<StationEvent> {
        let event = self.events.pop_front()?;
        if let StationEvent::Message { from, bytes } = &event
            && let Some(unread) = self.unread.get_mut(from)
        {
            *unread -= bytes.len();
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_nobody_takes_are_bounded_for_each_peer() {
        let news = EventQueue::default();
        let message = || vec![0; MESSAGE_LEN_MAX];
        for _ in 0..16 {
            news.deliver(1, message()).expect("room");
        }
        let full = news.deliver(1, message()).expect_err("full");
        assert!(full.contains("wait here"), "{full}");
        news.deliver(2, message()).expect("its own room");
        assert!(news.next(Duration::ZERO).is_some());
        news.deliver(1, message()).expect("room again");
        news.forget(1);
        news.deliver(1, message()).expect("room again");
        let from = core::iter::from_fn(|| news.next(Duration::ZERO));
        assert_eq!(from.map(|event| event.peer()).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn who_waits_is_interrupted_once_and_ended_for_good() {
        let news = EventQueue::default();
        news.interrupt();
        assert_eq!(news.next(Duration::MAX), None);
        news.tell(StationEvent::Connected { id: 1 });
        news.end();
        assert!(news.next(Duration::MAX).is_some());
        assert_eq!(news.next(Duration::MAX), None);
    }
}
