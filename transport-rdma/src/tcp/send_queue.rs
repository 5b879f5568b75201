//! What waits to be sent to one peer: pushes in call order, and messages in an order of
//! their own.
//!
//! A long message does not hold up pushes: it is sent in parts between them. But a record
//! that opens a segment is sent behind the messages that were queued before it, because one
//! of them may cause the peer to open that segment.

use std::collections::VecDeque;
use std::sync::Arc;

use super::record::{HEADER_LEN, Header, PART_LEN_MAX, RECORD_LEN_MAX};
use crate::fabric::WakeReason;
use crate::push_queue::{Full, OwnSegment, Push, PushQueue, SLOTS};
use crate::station::event::QUEUE_LEN_MAX;

/// Most bytes of stream that one part of a message takes.
pub(super) const PART_ROOM: usize = HEADER_LEN + PART_LEN_MAX;

/// A message, and how many of its bytes were taken.
#[derive(Debug)]
struct QueuedMessage {
    bytes: Arc<[u8]>,
    taken: usize,
}

/// Part of a message.
#[derive(Debug)]
pub(super) struct MessagePart {
    bytes: Arc<[u8]>,
    from: usize,
    to: usize,
}

impl MessagePart {
    pub(super) fn header(&self) -> Header {
        Header::Part {
            len: self.to - self.from,
            last: self.to == self.bytes.len(),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..self.to]
    }
}

/// A bounded queue. It allocates only while it grows.
#[derive(Debug)]
pub(super) struct SendQueue {
    pushes: PushQueue,
    messages: VecDeque<QueuedMessage>,
    /// Bytes of messages that wait.
    messages_len: usize,
    /// Number of messages that were put, and of those that were taken whole.
    messages_put: u64,
    messages_taken: u64,
    /// For each waiting record that opens a segment: `messages_put` when it was put. It is
    /// taken only once so many messages were taken.
    opens_after: VecDeque<u64>,
    closed: bool,
    /// The final record is still to be taken.
    bye: bool,
    /// The I/O thread is told to take what waits, and has not begun.
    is_handed_over: bool,
}

/// What the end of a batch leaves to its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchEnd {
    /// Nothing: there is nothing to send, or the I/O thread sends it.
    Over,
    /// To send what waits.
    Send,
    /// To tell the I/O thread that it has to send.
    HandOver,
}

impl SendQueue {
    pub(super) fn new(max: usize) -> Self {
        Self {
            pushes: PushQueue::new(max),
            messages: VecDeque::new(),
            messages_len: 0,
            messages_put: 0,
            messages_taken: 0,
            opens_after: VecDeque::with_capacity(SLOTS),
            closed: false,
            bye: false,
            is_handed_over: false,
        }
    }

    /// Whether nothing is left to be taken.
    pub(super) fn is_empty(&self) -> bool {
        self.pushes.is_empty() && self.messages.is_empty() && !self.bye
    }

    /// Bytes of stream that the waiting pushes take, as they are now.
    pub(super) fn bytes(&self) -> usize {
        self.pushes.bytes() + self.pushes.len() * HEADER_LEN
    }

    pub(super) fn messages_len(&self) -> usize {
        self.messages_len
    }

    /// Whether everything is discarded, because the peer has failed or was dropped.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Discards everything, now and later.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.pushes.clear();
        self.messages = VecDeque::new();
        self.messages_len = 0;
        self.opens_after = VecDeque::new();
        self.bye = false;
    }

    /// Discards everything, now and later, except for one final record.
    pub(super) fn leave(&mut self) {
        let is_open = !self.closed;
        self.close();
        self.bye = is_open;
    }

    /// Takes the final record; whether there is one.
    pub(super) fn take_bye(&mut self) -> bool {
        core::mem::take(&mut self.bye)
    }

    /// Appends a message, unless too many bytes wait.
    pub(super) fn put_message(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let waiting = self.messages_len;
        if waiting + bytes.len() > QUEUE_LEN_MAX {
            return Err(Full { waiting });
        }
        if !self.closed {
            self.messages_len += bytes.len();
            self.messages_put += 1;
            let bytes = bytes.into();
            self.messages.push_back(QueuedMessage { bytes, taken: 0 });
        }
        Ok(())
    }

    /// Takes the next part of a message.
    pub(super) fn take_part(&mut self) -> Option<MessagePart> {
        let message = self.messages.front_mut()?;
        let from = message.taken;
        let to = message.bytes.len().min(from + PART_LEN_MAX);
        message.taken = to;
        self.messages_len -= to - from;
        let bytes = Arc::clone(&message.bytes);
        if to == bytes.len() {
            self.messages.pop_front();
            self.messages_taken += 1;
        }
        Some(MessagePart { bytes, from, to })
    }

    /// Whether the next push opens a segment and has to wait for a message.
    fn is_behind(&self) -> bool {
        let opens = matches!(self.pushes.front(), Some(Push::Open(_)));
        opens && self.opens_after.front() > Some(&self.messages_taken)
    }

    /// Appends a push of a segment; the first is preceded by a record that opens it.
    pub(super) fn put_in(&mut self, own: &Arc<OwnSegment>, record: Push) -> Result<(), Full> {
        if self.closed {
            return Ok(());
        }
        if self.pushes.open(own)? {
            self.opens_after.push_back(self.messages_put);
        }
        self.pushes.put(record)
    }

    /// Appends the end of a segment, if it was ever opened.
    pub(super) fn shut(&mut self, slot: u16) -> Result<(), Full> {
        match self.closed {
            true => Ok(()),
            false => self.pushes.shut(slot),
        }
    }

    /// Appends a wake-up, unless the last record says the same.
    pub(super) fn put_wake(&mut self, reason: WakeReason) -> Result<(), Full> {
        match self.closed {
            true => Ok(()),
            false => self.pushes.put(Push::Wake(reason)),
        }
    }

    /// Hands over what waits, unless there is nothing, or another thread has done so. Whether it did.
    pub(super) fn hand_over_rest(&mut self) -> bool {
        let hands_over = !self.is_handed_over && !self.is_empty();
        self.is_handed_over |= hands_over;
        hands_over
    }

    /// Ends a batch. What waits for a `busy` stream is handed over.
    pub(super) fn end_batch(&mut self, is_busy: impl FnOnce() -> bool) -> BatchEnd {
        if self.is_empty() || self.is_handed_over {
            return BatchEnd::Over;
        }
        self.is_handed_over = is_busy();
        match self.is_handed_over {
            true => BatchEnd::HandOver,
            false => BatchEnd::Send,
        }
    }

    /// The I/O thread is about to take what was handed over.
    pub(super) fn take_hand_over(&mut self) {
        self.is_handed_over = false;
    }

    /// Takes pushes from the front into `plan` that fit into `room` bytes of stream; the
    /// last may be a part of a range. If messages wait, one part keeps its share of the
    /// room.
    pub(super) fn take(&mut self, plan: &mut Vec<Push>, room: usize) {
        let mut room = match self.messages.is_empty() {
            true => room,
            false => room.saturating_sub(PART_ROOM),
        };
        while plan.len() < plan.capacity() && !self.is_behind() && room >= HEADER_LEN + 8 {
            let most = (room - HEADER_LEN).min(RECORD_LEN_MAX) & !7;
            let Some(taken) = self.pushes.take(most) else {
                return;
            };
            if matches!(taken, Push::Open(_)) {
                self.opens_after.pop_front();
            }
            room -= HEADER_LEN + taken.len();
            plan.push(taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Region;
    use crate::station::segment::SegmentKey;

    fn range(at: usize, len: usize) -> Push {
        Push::Range { slot: 0, at, len }
    }

    fn own(slot: u16) -> Arc<OwnSegment> {
        let key = SegmentKey { epoch: 1, index: 0 };
        let row = Region::heap(512);
        Arc::new(OwnSegment { slot, key, row })
    }

    /// A queue in which segment 0 is open and nothing waits.
    fn queue() -> (SendQueue, Arc<OwnSegment>) {
        let (mut queue, own) = (SendQueue::new(100), own(0));
        queue.put_in(&own, range(0, 8)).expect("room");
        assert_eq!(taken(&mut queue, 1000).len(), 2);
        (queue, own)
    }

    fn taken(queue: &mut SendQueue, room: usize) -> Vec<Push> {
        let mut plan = Vec::with_capacity(64);
        queue.take(&mut plan, room);
        plan
    }

    #[test]
    fn a_batch_is_handed_over_once_until_it_is_taken() {
        let (mut queue, own) = queue();
        let quiet = || unreachable!("there is nothing to send");
        assert_eq!(queue.end_batch(quiet), BatchEnd::Over);
        queue.put_in(&own, range(0, 8)).expect("room");
        assert_eq!(queue.end_batch(|| false), BatchEnd::Send);
        assert_eq!(queue.end_batch(|| true), BatchEnd::HandOver);
        queue.put_in(&own, range(64, 8)).expect("room");
        assert_eq!(
            queue.end_batch(|| unreachable!("it is told")),
            BatchEnd::Over
        );
        queue.take_hand_over();
        // What comes before it is taken may be told again, and is not left.
        queue.put_in(&own, range(128, 8)).expect("room");
        assert_eq!(queue.end_batch(|| true), BatchEnd::HandOver);
        queue.take_hand_over();
        assert_eq!(taken(&mut queue, 1000).len(), 3);
        assert_eq!(queue.end_batch(quiet), BatchEnd::Over);
    }

    #[test]
    fn long_ranges_are_taken_in_parts_that_fit() {
        let (mut queue, own) = queue();
        queue.put_in(&own, range(0, 100)).expect("room");
        assert_eq!(taken(&mut queue, 23), []);
        assert_eq!(taken(&mut queue, 16 + 47), [range(0, 40)]);
        assert_eq!(queue.bytes(), 16 + 60);
        assert_eq!(taken(&mut queue, 1000), [range(40, 60)]);
        assert_eq!(queue.bytes(), 0);
    }

    /// A message is sent in parts between pushes, but a record that opens a segment does
    /// not overtake it.
    #[test]
    fn messages_hold_up_only_segments_that_they_may_announce() {
        let (mut queue, first) = queue();
        let second = own(1);
        let word = |slot, value| Push::Word {
            slot,
            at: 256,
            value,
        };
        queue.put_in(&first, word(0, 1)).expect("room");
        queue.put_message(&[7; PART_LEN_MAX + 1]).expect("room");
        queue.put_in(&first, word(0, 2)).expect("room");
        queue.put_in(&second, word(1, 3)).expect("room");
        queue.put_message(&[]).expect("room");
        assert_eq!(queue.messages_len(), PART_LEN_MAX + 1);
        let mut part = |last, len, pushes: &[Push]| {
            assert_eq!(taken(&mut queue, 1 << 16), pushes);
            let part = queue.take_part().expect("a part");
            assert_eq!(part.header(), Header::Part { len, last });
            assert_eq!(part.bytes(), vec![7; len]);
        };
        part(false, PART_LEN_MAX, &[word(0, 1), word(0, 2)]);
        part(true, 1, &[]);
        part(true, 0, &[Push::Open(Arc::clone(&second)), word(1, 3)]);
        assert!(queue.is_empty() && queue.take_part().is_none());
    }

    #[test]
    fn messages_are_bounded_and_discarded_on_leave() {
        let mut queue = SendQueue::new(100);
        let message = vec![0; QUEUE_LEN_MAX / 2];
        for _ in 0..2 {
            queue.put_message(&message).expect("room");
        }
        let waiting = QUEUE_LEN_MAX;
        assert_eq!(queue.put_message(&[0]), Err(Full { waiting }));
        assert!(!queue.take_bye());
        queue.leave();
        assert!(queue.take_part().is_none() && !queue.is_empty());
        assert!(queue.take_bye() && queue.is_empty());
        queue.put_message(&[0]).expect("dropped");
        queue.leave();
        assert!(queue.is_empty(), "it was closed");
    }
}
