//! One ring of one sender as a receiver follows it: the receive predicate.
//!
//! A row is input from another process. Each header is copied once, checked,
//! and kept here until its message is delivered; nothing is read twice.

use std::ptr::NonNull;

use spindle_dds_transport::Region;

use crate::limits::MESSAGE_INDEX_MAX;
use crate::subgroup::header::{Header, WORDS};
use crate::subgroup::layout::RingColumns;
use crate::subgroup::release_tracker::ReleaseTracker;

/// The receiver's cursor over a ring.
#[derive(Debug)]
pub(crate) struct ReceiveCursor {
    columns: RingColumns,
    /// The sender's, where its payload lies: rows stay where they are.
    row: Region,
    /// Messages received, nulls included.
    count: u64,
    /// Real messages received.
    real: u64,
    /// Messages up to and with the newest real one.
    newest: u64,
    /// Real messages delivered.
    delivered: u64,
    /// Headers of `delivered..real`. Message `first` stands in the first place, and places
    /// go round.
    headers: Box<[Header]>,
    /// All below it were delivered when it was set: who keeps up uses few of the places.
    first: u64,
}

/// What makes no sense in a peer's row.
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
    /// It reused headers that were not released.
    #[error("it overran its ring")]
    Overrun,
    /// It claims to have received what was never sent.
    #[error("it acknowledged what was not sent")]
    AcknowledgedTooMuch,
}

impl ReceiveCursor {
    /// Of a ring in this row.
    pub(crate) fn new(columns: RingColumns, row: Region) -> Self {
        let headers = vec![Header::EMPTY; columns.spec.messages as usize].into_boxed_slice();
        Self {
            columns,
            row,
            count: 0,
            real: 0,
            newest: 0,
            delivered: 0,
            headers,
            first: 0,
        }
    }

    /// Messages received, nulls included.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Real messages received.
    pub(crate) fn real(&self) -> u64 {
        self.real
    }

    /// Messages received up to and with the newest real one: the nulls behind
    /// it are left out.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// How many real messages the sender can have sent that are not received
    /// here. To be asked after the word was loaded that is to be judged: who
    /// releases meanwhile makes room for more.
    pub(crate) fn unseen_max(&self, tracker: &ReleaseTracker) -> u64 {
        let unreleased = self.real.saturating_sub(tracker.released_real());
        u64::from(self.columns.spec.messages).saturating_sub(unreleased)
    }

    /// Where the payload ring begins, all of which lies in the sender's row.
    pub(crate) fn payload(&self) -> NonNull<u8> {
        let len = self.columns.spec.memory() as usize;
        self.row.begin(self.columns.payload, len)
    }

    /// Byte offset of the guard in the sender's row.
    pub(crate) fn guard(&self) -> usize {
        self.columns.guard
    }

    /// Takes what `guard` vouches for, at most `limit` real messages. Returns
    /// how many real messages were taken. No guard of a member that keeps
    /// to the protocol is above `reach`.
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
        self.begin_anew();
        let before = self.real;
        let messages = self.headers.len() as u64;
        let memory = self.columns.spec.memory();
        // It only rises: what it was is enough, for as long as there is room by that.
        let mut released = tracker.released_real();
        let (mut real, mut count) = (before, self.count);
        let mut result = Ok(());
        'stretches: while real - before < limit {
            // Up to the end of the ring, or of the places.
            let stretch = self.columns.stretch(real).min(limit - (real - before));
            let headers = row.word_groups::<WORDS>(self.columns.header(real), stretch as usize);
            let place = self.place(real);
            let places = self.headers.get_mut(place..).unwrap_or_default();
            for (words, place) in headers.zip(places) {
                if count >= guard {
                    break 'stretches;
                }
                // A stale header carries less, one that is not vouched for more.
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
                *place = header;
                real += 1;
                count = index_end;
                self.newest = index_end;
            }
        }
        (self.real, self.count) = (real, count);
        result.map(|()| real - before)
    }

    /// Where the header of a real message is kept.
    #[inline]
    fn place(&self, real: u64) -> usize {
        self.columns.slot(real - self.first)
    }

    /// Where nothing waits, the next message takes the first place again.
    fn begin_anew(&mut self) {
        if self.delivered == self.real {
            self.first = self.real;
        }
    }

    /// The oldest message that is not delivered, and which real one it is.
    #[inline]
    pub(crate) fn front(&self) -> Option<(u64, &Header)> {
        let waiting = self.delivered < self.real;
        waiting.then(|| (self.delivered, &self.headers[self.place(self.delivered)]))
    }

    /// Index of the first real message that is not delivered, and has this index or a higher
    /// one.
    pub(crate) fn first_from(&self, index: u64) -> Option<u64> {
        let (_, front) = self.front().filter(|_| index < self.newest)?;
        let index_of = |real| self.headers[self.place(real)].index;
        // They stand in order, so it is there at the latest; and just there without nulls.
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

    /// Messages that are not delivered, from the oldest on, as many as stand one behind the
    /// other; and how many real ones are delivered, which rises as they are handed over (see
    /// [`ReleaseTracker::pass_real`]).
    #[inline]
    pub(crate) fn waiting_run(&mut self) -> (&[Header], &mut u64) {
        let at = self.place(self.delivered);
        let run = self.headers.get(at..).unwrap_or_default();
        let waiting = (self.real - self.delivered) as usize;
        (&run[..run.len().min(waiting)], &mut self.delivered)
    }

    /// Real messages that are received and not delivered.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting_below(self.real)
    }

    /// Of the first `real` ones, those that are not delivered, whether they are received or
    /// not.
    pub(crate) fn waiting_below(&self, real: u64) -> u64 {
        real - self.delivered
    }

    /// The oldest one has been handed over.
    #[inline]
    pub(crate) fn pop(&mut self, tracker: &ReleaseTracker) {
        let header = &self.headers[self.place(self.delivered)];
        tracker.pass_real(self.delivered, tracker.place(self.delivered), header);
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

    /// Messages come and go, so many at a time: over the end of the ring, with some that
    /// wait or none. What is handed over is what came, in order.
    #[test]
    fn messages_that_wait_stand_in_a_row() {
        let (_network, fabrics) = SimNetwork::group(1, &[1024], SimOptions::default());
        let [fabric] = &fabrics[..] else {
            unreachable!("one fabric")
        };
        let row = fabric.row(fabric.me());
        let (mut cursor, tracker) = (
            ReceiveCursor::new(COLUMNS, row.clone()),
            ReleaseTracker::new(4),
        );
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
                for header in run.iter().take((until - taken) as usize) {
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
        assert_eq!(first, last, "who keeps up uses the same places");
        assert_eq!(cursor.waiting_run().0, []);
    }

    /// Real messages are found among nulls, over the end of the places.
    #[test]
    fn the_first_real_message_from_an_index_on_is_found() {
        let (_network, fabrics) = SimNetwork::group(1, &[1024], SimOptions::default());
        let [fabric] = &fabrics[..] else {
            unreachable!("one fabric")
        };
        let row = fabric.row(fabric.me());
        let (mut cursor, tracker) = (
            ReceiveCursor::new(COLUMNS, row.clone()),
            ReleaseTracker::new(4),
        );
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

    /// A sender that overwrites what is held, or waits, violates the protocol.
    #[test]
    fn overrunning_a_ring_is_a_violation() {
        let (_network, fabrics) = SimNetwork::group(1, &[1024], SimOptions::default());
        let [fabric] = &fabrics[..] else {
            unreachable!("one fabric")
        };
        let row = fabric.row(fabric.me());
        let (mut cursor, tracker) = (
            ReceiveCursor::new(COLUMNS, row.clone()),
            ReleaseTracker::new(4),
        );
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
        assert!(tracker.let_go(0, 4));
        tracker.release(|_| ());
        assert_eq!(receive(5, &tracker), Ok(1));
    }
}
