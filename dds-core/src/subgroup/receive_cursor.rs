//! One ring of one sender as a receiver follows it: the receive predicate.
//!
//! ```text
//!   messages   | delivered | received, not delivered | sent: covered by the guard
//!                          ^ delivered               ^ count
//! ```
//!
//! Invariants: a row is input from another process, so each header is copied once, checked, and
//! kept here until its message is delivered; no word is read twice. `delivered <= real`, and both
//! and `count` only rise.
//!
//! Real messages are numbered one after the other; the number says which slots a message has. When
//! all members have released all messages, the sender may *restart* its ring: it goes on with the
//! next number that has the first slot, and says so in a word beside the guard. This word is the
//! index before which it restarted last, and is pushed before the guard of any message after it. So
//! a receiver that reads it after a guard has it before any such message.

use std::ptr::NonNull;

use spindle_dds_transport::Region;
use spindle_dds_transport::memory::{Arena, ZeroedSlice};

use crate::limits::MESSAGE_INDEX_MAX;
use crate::subgroup::header::{Header, WORDS};
use crate::subgroup::layout::RingColumns;
use crate::subgroup::release_tracker::ReleaseTracker;

/// An entry for each message of a ring.
pub(crate) type ReceivedHeaders = ZeroedSlice<HeaderEntry>;

/// Where the header of a received message is kept; none if it was never used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct HeaderEntry(Option<Header>);

impl HeaderEntry {
    #[inline]
    pub(crate) const fn header(&self) -> Option<&Header> {
        self.0.as_ref()
    }
}

/// The receiver's cursor over a ring.
#[derive(Debug)]
pub(crate) struct ReceiveCursor {
    columns: RingColumns,
    /// The sender's row, which holds the payload. Rows stay at their address.
    row: Region,
    /// Messages received, nulls included.
    count: u64,
    /// Number of the next real message.
    real: u64,
    /// Numbers of real messages that restarts have left out.
    left_out: u64,
    /// Index of the message before which the ring was restarted last.
    restarted: u64,
    /// Exclusive index of the newest real message: `count` without the nulls after it.
    newest: u64,
    /// Number of the next real message to deliver.
    delivered: u64,
    /// Headers of the real messages `delivered..real`, as a ring: message `first` is in entry 0.
    headers: ReceivedHeaders,
    /// All real messages below it were delivered when it was set. Reset whenever none waits, so
    /// that a fast receiver uses few entries.
    first: u64,
}

/// A violation of the protocol found in a peer's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ProtocolViolation {
    /// A counter fell.
    #[error("a counter of its row fell")]
    CounterFell,
    /// A guard is above what can have been sent.
    #[error("a guard of its row claims more messages than can have been sent")]
    GuardTooFar,
    /// A header has an unknown kind, or payload outside of its ring.
    #[error("a message header of its row makes no sense")]
    BadHeader,
    /// The sender reused headers that were not released.
    #[error("it overran its ring")]
    Overrun,
    /// The member acknowledged messages that cannot have been sent.
    #[error("it acknowledged what was not sent")]
    AcknowledgedTooMuch,
    /// The sender restarted its ring before its messages were released.
    #[error("it restarted its ring while messages were held")]
    RestartTooSoon,
}

impl ReceiveCursor {
    /// A cursor over a ring in this row, with an entry for each of its messages.
    pub(crate) fn new(columns: RingColumns, row: Region, headers: ReceivedHeaders) -> Self {
        Self {
            columns,
            row,
            count: 0,
            real: 0,
            left_out: 0,
            restarted: 0,
            newest: 0,
            delivered: 0,
            headers,
            first: 0,
        }
    }

    /// Bytes that the entries for a ring of so many messages take of an arena.
    pub(crate) const fn bytes_of(messages: usize) -> usize {
        Arena::bytes_of::<HeaderEntry>(messages)
    }

    /// Messages received, nulls included.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Real messages received.
    pub(crate) fn received(&self) -> u64 {
        self.real - self.left_out
    }

    /// Exclusive index of the newest real message received: the nulls after it are left out.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// Upper bound of the real messages sent and not received here. Called after the word to be
    /// judged was loaded, because a release meanwhile makes room for more.
    pub(crate) fn unseen_max(&self, tracker: &ReleaseTracker) -> u64 {
        let unreleased = self.real.saturating_sub(tracker.released_real());
        u64::from(self.columns.spec.messages).saturating_sub(unreleased)
    }

    /// Start of the payload ring, which lies in the sender's row as a whole.
    pub(crate) fn payload(&self) -> NonNull<u8> {
        let len = self.columns.spec.memory() as usize;
        self.row.begin(self.columns.payload, len)
    }

    /// Byte offset of the guard in the sender's row.
    pub(crate) fn guard(&self) -> usize {
        self.columns.guard
    }

    /// Follows a restart of the ring, if there was one. `row` is the sender's, and its guard was
    /// loaded before.
    #[inline]
    pub(crate) fn follow_restart(
        &mut self,
        row: &Region,
        tracker: &ReleaseTracker,
    ) -> Result<(), ProtocolViolation> {
        let index = row.load(self.columns.restart());
        match index == self.restarted {
            true => Ok(()),
            false => self.restart(index, tracker),
        }
    }

    /// The ring was restarted before the message of this index: the next real message has the first
    /// slot.
    #[cold]
    pub(crate) fn restart(
        &mut self,
        index: u64,
        tracker: &ReleaseTracker,
    ) -> Result<(), ProtocolViolation> {
        if index < self.restarted {
            return Err(ProtocolViolation::CounterFell);
        }
        // All members have released all before it. Acquire (in `released_real`): as for a slot that
        // is used again.
        let is_empty = self.delivered == self.real && tracker.released_real() >= self.real;
        if !is_empty || index < self.newest || index > MESSAGE_INDEX_MAX + 1 {
            return Err(ProtocolViolation::RestartTooSoon);
        }
        let start = self
            .real
            .next_multiple_of(self.columns.spec.messages.into());
        tracker.restart(start);
        self.left_out += start - self.real;
        (self.real, self.delivered, self.first) = (start, start, start);
        self.restarted = index;
        Ok(())
    }

    /// Receives what `guard` covers, at most `limit` real messages, and returns how many. A guard
    /// of a correct member is at most `reach`.
    pub(crate) fn receive(
        &mut self,
        row: &Region,
        tracker: &ReleaseTracker,
        guard: u64,
        reach: u64,
        limit: u64,
    ) -> Result<u64, ProtocolViolation> {
        if guard < self.count {
            return Err(ProtocolViolation::CounterFell);
        }
        if guard > reach.min(MESSAGE_INDEX_MAX + 1) {
            return Err(ProtocolViolation::GuardTooFar);
        }
        self.reset_if_empty();
        let before = self.real;
        let messages = self.headers.len() as u64;
        let memory = self.columns.spec.memory();
        // `released` only rises: an old value is enough while it leaves room.
        let mut released = tracker.released_real();
        let (mut real, mut count) = (before, self.count);
        let mut result = Ok(());
        'stretches: while real - before < limit {
            // Up to the end of the ring, or of the entries.
            let stretch = self.columns.stretch(real).min(limit - (real - before));
            let headers = row.word_groups::<WORDS>(self.columns.header(real), stretch as usize);
            let place = self.place(real);
            let places = self.headers.get_mut(place..).unwrap_or_default();
            for (words, place) in headers.zip(places) {
                if count >= guard {
                    break 'stretches;
                }
                // A stale header has a lower index, one not yet covered a higher index.
                let index_end = words.load(0);
                if index_end <= count || index_end > guard {
                    count = guard;
                    break 'stretches;
                }
                if real - released >= messages {
                    released = tracker.released_real();
                    if real - released >= messages {
                        result = Err(ProtocolViolation::Overrun);
                        break 'stretches;
                    }
                }
                let header = Header::from_words(&words.copy(), memory);
                let Some(header) = header.filter(|header| header.index + 1 == index_end) else {
                    result = Err(ProtocolViolation::BadHeader);
                    break 'stretches;
                };
                *place = HeaderEntry(Some(header));
                real += 1;
                count = index_end;
                self.newest = index_end;
            }
        }
        (self.real, self.count) = (real, count);
        result.map(|()| real - before)
    }

    /// The entry of a real message's header.
    #[inline]
    fn place(&self, real: u64) -> usize {
        self.columns.slot(real - self.first)
    }

    /// If no message waits, the next one uses entry 0 again.
    fn reset_if_empty(&mut self) {
        if self.delivered == self.real {
            self.first = self.real;
        }
    }

    /// The oldest undelivered message, with its number.
    #[inline]
    pub(crate) fn front(&self) -> Option<(u64, &Header)> {
        let waiting = self.delivered < self.real;
        let header = waiting.then(|| self.headers[self.place(self.delivered)].header())?;
        Some((self.delivered, header?))
    }

    /// Index of the first undelivered real message with this index or a higher one.
    pub(crate) fn first_from(&self, index: u64) -> Option<u64> {
        let (_, front) = self.front().filter(|_| index < self.newest)?;
        let index_of = |real| {
            let header = self.headers[self.place(real)].header();
            header.map_or(0, |header| header.index)
        };
        // Indexes rise, so the message is at most that many entries further; exactly there without
        // nulls.
        let further = index.saturating_sub(front.index);
        let (mut below, mut end) = (self.delivered, self.real - 1);
        end = end.min(below + further);
        if index_of(end) == index {
            return Some(index);
        }
        while below < end {
            let middle = u64::midpoint(below, end);
            if index_of(middle) < index {
                below = middle + 1;
            } else {
                end = middle;
            }
        }
        Some(index_of(below))
    }

    /// Undelivered messages from the oldest on, as far as they are contiguous, and the number of the
    /// oldest, which the caller raises as it hands them over (see [`ReleaseTracker::pass_real`]).
    #[inline]
    pub(crate) fn waiting_run(&mut self) -> (&[HeaderEntry], &mut u64) {
        let at = self.place(self.delivered);
        let run = self.headers.get(at..).unwrap_or_default();
        let waiting = (self.real - self.delivered) as usize;
        (&run[..run.len().min(waiting)], &mut self.delivered)
    }

    /// Real messages received and not delivered.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting_below(self.real)
    }

    /// How many of the real messages below this number are not delivered, received or not. No
    /// restart lies between.
    pub(crate) fn waiting_below(&self, real: u64) -> u64 {
        real - self.delivered
    }

    /// Passes the oldest message: it has been handed over.
    #[inline]
    pub(crate) fn pop(&mut self, tracker: &ReleaseTracker) {
        if let Some(header) = self.headers[self.place(self.delivered)].header() {
            tracker.pass_real(self.delivered, tracker.place(self.delivered), header);
        }
        self.delivered += 1;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use spindle_dds_transport::sim::{SimNetwork, SimOptions};
    use spindle_dds_transport::{FABRIC_AREA, Fabric};

    use super::*;
    use crate::spec::RingSpec;

    const COLUMNS: RingColumns = RingColumns {
        guard: FABRIC_AREA,
        headers: FABRIC_AREA + 64,
        payload: FABRIC_AREA + 64 + 4 * 64,
        spec: RingSpec {
            messages: 4,
            bytes: 64,
        },
    };

    fn cursor(row: &Region) -> (ReceiveCursor, ReleaseTracker) {
        let mut arena = Arena::new(0);
        let headers = arena.slice(4).expect("memory");
        let tracker = ReleaseTracker::new(4, &mut arena).expect("memory");
        (ReceiveCursor::new(COLUMNS, row.clone(), headers), tracker)
    }

    /// Batches of several sizes cross the end of the ring, with and without waiting messages. What
    /// is handed over is what was sent, in order.
    #[test]
    fn waiting_messages_are_kept_in_order() {
        let (_network, fabrics) = SimNetwork::group(1, &[1024], SimOptions::default());
        let [fabric] = &fabrics[..] else {
            unreachable!("one fabric")
        };
        let row = fabric.row(fabric.me());
        let (mut cursor, tracker) = cursor(row);
        let (mut sent, mut taken) = (0, 0);
        let mut first_places = Vec::new();
        for (come, go) in [(3, 2), (3, 1), (1, 4), (2, 1), (1, 2), (4, 4)] {
            for _ in 0..come {
                let header = Header::test(sent, 0, 8);
                fabric.store_words(COLUMNS.header(sent), &header.to_words());
                sent += 1;
            }
            let was_empty = cursor.waiting() == 0;
            let received = cursor.receive(row, &tracker, sent, sent, u64::MAX);
            assert_eq!(received, Ok(come));
            assert_eq!(cursor.waiting(), sent - taken);
            if was_empty {
                first_places.push(cursor.waiting_run().0.as_ptr());
            }
            let until = taken + go;
            while taken < until {
                assert_eq!(
                    cursor.front().map(|(real, it)| (real, it.index)),
                    Some((taken, taken))
                );
                let (run, delivered) = cursor.waiting_run();
                let headers = run.iter().filter_map(HeaderEntry::header);
                for header in headers.take((until - taken) as usize) {
                    assert_eq!((header.index, *delivered), (taken, taken));
                    tracker.pass_real(taken, tracker.place(taken), header);
                    *delivered += 1;
                    taken += 1;
                }
            }
            tracker.pass(taken);
            tracker.release(|_| ());
        }
        assert_eq!((sent, taken), (14, 14));
        let [first, .., last] = first_places[..] else {
            unreachable!("it was empty more than once")
        };
        assert_eq!(first, last, "a fast receiver uses the same entries");
        assert_eq!(cursor.waiting_run().0, []);
    }

    /// Real messages are found among nulls, across the end of the entries.
    #[test]
    fn the_first_real_message_from_an_index_on_is_found() {
        let (_network, fabrics) = SimNetwork::group(1, &[1024], SimOptions::default());
        let [fabric] = &fabrics[..] else {
            unreachable!("one fabric")
        };
        let row = fabric.row(fabric.me());
        let (mut cursor, tracker) = cursor(row);
        let receive = |cursor: &mut ReceiveCursor, reals: &[(u64, u64)], guard: u64| {
            for &(real, index) in reals {
                let header = Header::test(index, 0, 8);
                fabric.store_words(COLUMNS.header(real), &header.to_words());
            }
            let taken = cursor.receive(row, &tracker, guard, guard, u64::MAX);
            assert_eq!(taken, Ok(reals.len() as u64));
        };
        let all = |cursor: &ReceiveCursor| -> Vec<_> {
            (0..14).map(|it| cursor.first_from(it)).collect()
        };
        assert_eq!(all(&cursor), [None; 14]);
        receive(&mut cursor, &[], 2);
        assert_eq!(all(&cursor), [None; 14], "nulls alone");
        receive(&mut cursor, &[(0, 2), (1, 3), (2, 6)], 8);
        let found = |index| [2, 3, 6].into_iter().find(|it| *it >= index);
        assert_eq!(all(&cursor), Vec::from_iter((0..14).map(found)));
        for index in [2, 3] {
            cursor.pop(&tracker);
            tracker.pass(index + 1);
        }
        tracker.release(|_| ());
        receive(&mut cursor, &[(3, 8), (4, 12)], 13);
        let found = |index| [6, 8, 12].into_iter().find(|it| *it >= index);
        assert_eq!(all(&cursor), Vec::from_iter((0..14).map(found)));
    }

    /// A sender that overwrites a held or waiting message violates the protocol.
    #[test]
    fn overrunning_a_ring_is_a_violation() {
        let (_network, fabrics) = SimNetwork::group(1, &[1024], SimOptions::default());
        let [fabric] = &fabrics[..] else {
            unreachable!("one fabric")
        };
        let row = fabric.row(fabric.me());
        let (mut cursor, tracker) = cursor(row);
        let mut receive = |sent: u64, tracker: &ReleaseTracker| {
            let header = Header::test(sent - 1, 0, 8);
            fabric.store_words(COLUMNS.header(sent - 1), &header.to_words());
            let limit = u64::MAX;
            let taken = cursor.receive(row, tracker, sent, sent, limit);
            while let Some((real, &header)) = cursor.front() {
                let place = tracker.place(real);
                place.hold_first();
                tracker.pass_real(real, place, &header);
                cursor.delivered += 1;
            }
            tracker.pass(sent);
            taken
        };
        for sent in 1..=4 {
            assert_eq!(receive(sent, &tracker), Ok(1));
        }
        assert_eq!(receive(5, &tracker), Err(ProtocolViolation::Overrun));
        assert!(tracker.end_hold(0, 4));
        tracker.release(|_| ());
        assert_eq!(receive(5, &tracker), Ok(1));
    }
}
