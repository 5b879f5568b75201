//! What waits to be sent to one peer: ranges and words, in the order of calls, and
//! messages, in an order of their own.
//!
//! A long message does not hold up pushes: it goes in parts between them. But what
//! opens a segment goes behind the messages that were there before it, for they may
//! be what has the peer make that segment.

use std::collections::VecDeque;
use std::sync::Arc;

use super::record::{HEADER_LEN, Header, PART_LEN_MAX, RECORD_LEN_MAX};
use crate::fabric::WakeReason;
use crate::queue::{Full, Own, Push, Pushes, SLOTS};
use crate::station_event::QUEUE_LEN_MAX;

/// Bytes of stream that one part of a message takes, at most.
pub(super) const PART_ROOM: usize = HEADER_LEN + PART_LEN_MAX;

/// A message, and how much of it was taken.
#[derive(Debug)]
struct Message {
    bytes: Arc<[u8]>,
    taken: usize,
}

/// Part of a message.
#[derive(Debug)]
pub(super) struct Part {
    bytes: Arc<[u8]>,
    from: usize,
    to: usize,
}

impl Part {
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
pub(super) struct Queue {
    pushes: Pushes,
    messages: VecDeque<Message>,
    /// Bytes of messages that wait.
    messages_len: usize,
    /// How many messages were put, and how many of them were taken.
    messages_put: u64,
    messages_taken: u64,
    /// For each record among those that wait that opens a segment: how many
    /// messages go before it.
    behind: VecDeque<u64>,
    closed: bool,
    /// A farewell is the last that is taken.
    bye: bool,
}

impl Queue {
    pub(super) fn new(max: usize) -> Self {
        Self {
            pushes: Pushes::new(max),
            messages: VecDeque::new(),
            messages_len: 0,
            messages_put: 0,
            messages_taken: 0,
            behind: VecDeque::with_capacity(SLOTS),
            closed: false,
            bye: false,
        }
    }

    /// Whether nothing is left to be taken.
    pub(super) fn is_empty(&self) -> bool {
        self.pushes.is_empty() && self.messages.is_empty() && !self.bye
    }

    /// Bytes of stream that its records of rows take, as they are now.
    pub(super) fn bytes(&self) -> usize {
        self.pushes.bytes() + self.pushes.len() * HEADER_LEN
    }

    pub(super) fn messages_len(&self) -> usize {
        self.messages_len
    }

    /// Whether anything of it is dropped, because the peer has failed.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Drops all, and all that comes.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.pushes.clear();
        self.messages = VecDeque::new();
        self.messages_len = 0;
        self.behind = VecDeque::new();
        self.bye = false;
    }

    /// Drops all, and all that comes, but for a farewell.
    pub(super) fn leave(&mut self) {
        let is_open = !self.closed;
        self.close();
        self.bye = is_open;
    }

    /// Whether all that is left is a farewell, which is taken by this.
    pub(super) fn take_bye(&mut self) -> bool {
        core::mem::take(&mut self.bye)
    }

    /// Appends a message, unless too much waits.
    pub(super) fn put_message(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let waiting = self.messages_len;
        if waiting + bytes.len() > QUEUE_LEN_MAX {
            return Err(Full { waiting });
        }
        if !self.closed {
            self.messages_len += bytes.len();
            self.messages_put += 1;
            let bytes = bytes.into();
            self.messages.push_back(Message { bytes, taken: 0 });
        }
        Ok(())
    }

    /// Moves the next part of a message out.
    pub(super) fn take_part(&mut self) -> Option<Part> {
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
        Some(Part { bytes, from, to })
    }

    /// Whether what is next has to wait for a message.
    fn is_behind(&self) -> bool {
        let opens = matches!(self.pushes.front(), Some(Push::Open(_)));
        opens && self.behind.front() > Some(&self.messages_taken)
    }

    /// Appends a record of a segment, behind one that opens it if it is the first.
    pub(super) fn put_in(&mut self, own: &Arc<Own>, record: Push) -> Result<(), Full> {
        if self.closed {
            return Ok(());
        }
        if self.pushes.open(own)? {
            self.behind.push_back(self.messages_put);
        }
        self.pushes.put(record)
    }

    /// The end of a segment, if anything of it was ever put.
    pub(super) fn shut(&mut self, slot: u16) -> Result<(), Full> {
        match self.closed {
            true => Ok(()),
            false => self.pushes.shut(slot),
        }
    }

    /// Appends a ring, unless what waits already says the same.
    pub(super) fn put_wake(&mut self, ring: WakeReason) -> Result<(), Full> {
        match self.closed {
            true => Ok(()),
            false => self.pushes.put(Push::Wake(ring)),
        }
    }

    /// Moves records from the front into `plan` that take at most `room` bytes
    /// of stream, the last of them perhaps a part of a range. If messages wait, a
    /// part of one has its share of the room.
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
                self.behind.pop_front();
            }
            room -= HEADER_LEN + taken.len();
            plan.push(taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::Region;
    use crate::segment::SegmentKey;

    fn range(at: usize, len: usize) -> Push {
        Push::Range { slot: 0, at, len }
    }

    fn own(slot: u16) -> Arc<Own> {
        let key = SegmentKey { epoch: 1, index: 0 };
        let row = Region::heap(512);
        Arc::new(Own { slot, key, row })
    }

    /// A queue in which segment 0 is open, and nothing waits.
    fn queue() -> (Queue, Arc<Own>) {
        let (mut queue, own) = (Queue::new(100), own(0));
        queue.put_in(&own, range(0, 8)).expect("room");
        assert_eq!(taken(&mut queue, 1000).len(), 2);
        (queue, own)
    }

    fn taken(queue: &mut Queue, room: usize) -> Vec<Push> {
        let mut plan = Vec::with_capacity(64);
        queue.take(&mut plan, room);
        plan
    }

    #[test]
    fn long_ranges_are_taken_as_there_is_room() {
        let (mut queue, own) = queue();
        queue.put_in(&own, range(0, 100)).expect("room");
        assert_eq!(taken(&mut queue, 23), []);
        assert_eq!(taken(&mut queue, 16 + 47), [range(0, 40)]);
        assert_eq!(queue.bytes(), 16 + 60);
        assert_eq!(taken(&mut queue, 1000), [range(40, 60)]);
        assert_eq!(queue.bytes(), 0);
    }

    /// A message goes in parts between pushes, but what opens a segment does not
    /// overtake it.
    #[test]
    fn messages_hold_up_only_what_they_may_announce() {
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
    fn messages_are_bounded_and_go_with_who_leaves() {
        let mut queue = Queue::new(100);
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
