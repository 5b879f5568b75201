//! Events of a station: the queue between the threads that report them and those that wait.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::fabric::FailureCause;

/// Longest message between stations, in bytes.
pub const MESSAGE_LEN_MAX: usize = 1 << 20;

/// Most bytes of messages that wait to be sent to a peer, or to be taken from it.
pub(crate) const QUEUE_LEN_MAX: usize = 16 * MESSAGE_LEN_MAX;

/// Practically for ever: 30 years.
const AGES: Duration = Duration::from_secs(30 * 365 * 86_400);

/// The reason reported for a peer that has closed the connection on purpose.
pub(crate) const CLOSED_BY_PEER: &str = "it has closed the connection";

/// An event of a station.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StationEvent {
    /// A peer is connected, whichever side has called.
    Connected {
        /// Its id.
        id: u128,
    },
    /// A peer has sent a message.
    Message {
        /// The id of the sender.
        from: u128,
        /// The message as it was passed to `send`.
        bytes: Vec<u8>,
    },
    /// A peer is lost. It cannot connect again before `drop_peer`.
    Closed {
        /// Its id.
        id: u128,
        /// How the failure was detected.
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

/// Events that were not taken yet: one queue for all parts of a station.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<StationEvent>,
    /// Bytes of each peer's messages in `events`.
    unread: BTreeMap<u128, usize>,
    interrupted: bool,
    ended: bool,
}

impl EventQueue {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event other than a message.
    pub(crate) fn push(&self, event: StationEvent) {
        self.queue().events.push_back(event);
        self.changed.notify_all();
    }

    /// Appends a message. Fails with a reason if too many bytes of this peer wait.
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

    /// Discards the events of a peer.
    pub(crate) fn forget(&self, id: u128) {
        let mut queue = self.queue();
        queue.unread.remove(&id);
        queue.events.retain(|event| event.peer() != id);
    }

    /// Takes the next event; `None` after `timeout`, an interruption, or the end.
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

    /// Makes `next` return without an event, now or at its next call.
    pub(crate) fn interrupt(&self) {
        self.queue().interrupted = true;
        self.changed.notify_all();
    }

    /// Ends all waiting, now and later.
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
    fn untaken_messages_are_bounded_for_each_peer() {
        let events = EventQueue::default();
        let message = || vec![0; MESSAGE_LEN_MAX];
        for _ in 0..16 {
            events.deliver(1, message()).expect("room");
        }
        let full = events.deliver(1, message()).expect_err("full");
        assert!(full.contains("wait here"), "{full}");
        events.deliver(2, message()).expect("its own room");
        assert!(events.next(Duration::ZERO).is_some());
        events.deliver(1, message()).expect("room again");
        events.forget(1);
        events.deliver(1, message()).expect("room again");
        let from = core::iter::from_fn(|| events.next(Duration::ZERO));
        assert_eq!(from.map(|event| event.peer()).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn waiting_is_interrupted_once_and_ended_for_good() {
        let events = EventQueue::default();
        events.interrupt();
        assert_eq!(events.next(Duration::MAX), None);
        events.push(StationEvent::Connected { id: 1 });
        events.end();
        assert!(events.next(Duration::MAX).is_some());
        assert_eq!(events.next(Duration::MAX), None);
    }
}
