//! Messages of a ring that wait for one peer, one behind the other, as one record of the queue.

use super::Push;

/// Most bytes between the payloads of two messages that are sent as one range: less than the
/// header of a range and what handling it costs.
const GAP_MAX: usize = 64;

/// Most bytes of messages in one record. A record to which messages are added is sent whole
/// within one system call, so its guard does not wait for what is published meanwhile.
const MESSAGES_LEN_MAX: usize = 1 << 15;

/// A range of a row, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Span {
    at: usize,
    len: usize,
}

impl Span {
    const fn new((at, len): (usize, usize)) -> Self {
        Self { at, len }
    }

    fn end(self) -> usize {
        self.at + self.len
    }

    /// Both, with the gap between them: the next one begins where this one ends, or a few bytes
    /// behind. An empty one adds nothing.
    fn followed_by(self, next: Self) -> Option<Self> {
        match (self.len, next.len) {
            (_, 0) => Some(self),
            (0, _) => Some(next),
            _ if next.at < self.end() || next.at - self.end() > GAP_MAX => None,
            _ => Some(Self {
                at: self.at,
                len: next.end() - self.at,
            }),
        }
    }

    /// Takes at most `most` bytes from the front.
    fn take(&mut self, most: usize) -> Self {
        let taken = Self {
            at: self.at,
            len: self.len.min(most),
        };
        (self.at, self.len) = (taken.end(), self.len - taken.len);
        taken
    }
}

/// Messages of a ring that wait, one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueuedMessages {
    slot: u16,
    payload: Span,
    headers: Span,
    /// Offset and value of the word that vouches for all of them.
    guard: (usize, u64),
    /// A part was taken: no message is added any more.
    is_begun: bool,
}

impl QueuedMessages {
    /// One message: offset and length of its payload and of its header; its guard.
    pub(super) fn one(
        slot: u16,
        payload: (usize, usize),
        header: (usize, usize),
        guard: (usize, u64),
    ) -> Self {
        Self {
            slot,
            payload: Span::new(payload),
            headers: Span::new(header),
            guard,
            is_begun: false,
        }
    }

    /// Bytes of rows.
    pub(super) fn len(&self) -> usize {
        self.payload.len + self.headers.len + 8
    }

    /// Adds a message that was pushed directly behind these; false if it has to wait in a
    /// record of its own.
    pub(super) fn add(&mut self, next: &Self) -> bool {
        let follows = !self.is_begun
            && self.slot == next.slot
            && self.guard.0 == next.guard.0
            && self.guard.1 < next.guard.1
            && self.len() + next.len() <= MESSAGES_LEN_MAX;
        let payload = self.payload.followed_by(next.payload);
        let headers = self.headers.followed_by(next.headers);
        match (follows, payload, headers) {
            (true, Some(payload), Some(headers)) => {
                (self.payload, self.headers, self.guard) = (payload, headers, next.guard);
                true
            }
            _ => false,
        }
    }

    /// Takes a part of at most `most` bytes: payload, headers, and last the guard. Whether it
    /// was the last.
    pub(super) fn take(&mut self, most: usize) -> (Push, bool) {
        self.is_begun = true;
        let slot = self.slot;
        for span in [&mut self.payload, &mut self.headers] {
            if span.len > 0 {
                let Span { at, len } = span.take(most);
                return (Push::Range { slot, at, len }, false);
            }
        }
        let (at, value) = self.guard;
        (Push::Word { slot, at, value }, true)
    }
}
