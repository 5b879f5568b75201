//! One ring of one sender as a receiver follows it: the receive predicate.
//!
//! A row is input from another process. Each header is copied once, checked,
//! and kept here until its message is delivered; nothing is read twice.

use spindle_dds_transport::Region;

use crate::config::{EngineConfig, PlantedBug};
use crate::header::{Header, WORDS};
use crate::inbox::Inbox;
use crate::layout::RingColumns;
use crate::limits::MESSAGE_INDEX_MAX;

/// The receiver's cursor over a ring.
#[derive(Debug)]
pub(crate) struct Stream {
    columns: RingColumns,
    /// Messages received, nulls included.
    count: u64,
    /// Real messages received.
    real: u64,
    /// Messages up to and with the newest real one.
    newest: u64,
    /// Real messages delivered.
    delivered: u64,
    /// Headers of `delivered..real`, by slot.
    headers: Box<[Header]>,
}

/// What makes no sense in a peer's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Nonsense {
    /// A counter fell.
    #[error("a counter of its row fell")]
    CounterFell,
    /// A guard stands where nobody can have come yet.
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

impl Stream {
    pub(crate) fn new(columns: RingColumns) -> Self {
        let empty = Header {
            index: 0,
            offset: 0,
            len: 0,
            kind: crate::header::Kind::Control,
            flags: 0,
            encapsulation: 0,
            writer: 0,
            writer_seq: 0,
            timestamp: 0,
            topic: 0,
            key_hash: [0; 16],
        };
        let headers = vec![empty; columns.spec.messages as usize].into_boxed_slice();
        Self {
            columns,
            count: 0,
            real: 0,
            newest: 0,
            delivered: 0,
            headers,
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
    pub(crate) fn unseen_max(&self, inbox: &Inbox) -> u64 {
        let unreleased = self.real.saturating_sub(inbox.released_real());
        u64::from(self.columns.spec.messages).saturating_sub(unreleased)
    }

    /// Byte offset of the payload ring in the sender's row.
    pub(crate) fn payload(&self) -> usize {
        self.columns.payload
    }

    /// Byte offset of the guard in the sender's row.
    pub(crate) fn guard(&self) -> usize {
        self.columns.guard
    }

    /// Takes what `guard` vouches for, at most `limit` real messages. Returns
    /// how many real messages were taken. Nobody who keeps to the protocol has a
    /// guard above `reach`.
    pub(crate) fn receive(
        &mut self,
        row: &Region,
        inbox: &Inbox,
        guard: u64,
        reach: u64,
        limit: u64,
        config: &EngineConfig,
    ) -> Result<u64, Nonsense> {
        if guard < self.count {
            return Err(Nonsense::CounterFell);
        }
        if guard > reach.min(MESSAGE_INDEX_MAX + 1) {
            return Err(Nonsense::GuardTooFar);
        }
        let before = self.real;
        while self.count < guard && self.real - before < limit {
            let at = self.columns.header(self.real);
            // A stale header carries less, one that is not vouched for more.
            let index_end = row.load(at);
            let hasty =
                config.plants(PlantedBug::NullsBeforeHeaders) && index_end != self.count + 1;
            if index_end <= self.count || index_end > guard || hasty {
                self.count = guard;
                break;
            }
            if self.real - inbox.released_real() >= self.columns.spec.messages.into() {
                return Err(Nonsense::Overrun);
            }
            let header = self.read(row, at).ok_or(Nonsense::BadHeader)?;
            if header.index + 1 != index_end {
                return Err(Nonsense::BadHeader);
            }
            let slot = self.columns.slot(self.real);
            self.headers[slot] = header;
            self.real += 1;
            self.count = index_end;
            self.newest = index_end;
        }
        Ok(self.real - before)
    }

    fn read(&self, row: &Region, at: usize) -> Option<Header> {
        let words: [u64; WORDS] = row.copy_words(at);
        Header::from_words(&words, self.columns.spec.bytes)
    }

    /// The oldest message that is not delivered, and which real one it is.
    #[inline]
    pub(crate) fn front(&self) -> Option<(u64, &Header)> {
        let waiting = self.delivered < self.real;
        waiting.then(|| {
            (
                self.delivered,
                &self.headers[self.columns.slot(self.delivered)],
            )
        })
    }

    /// Source timestamp of the last message that was delivered; 0 before there is one.
    pub(crate) fn last_timestamp(&self) -> i64 {
        let last = self.delivered.checked_sub(1);
        last.map_or(0, |last| self.headers[self.columns.slot(last)].timestamp)
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
    pub(crate) fn pop(&mut self, inbox: &Inbox) {
        let header = &self.headers[self.columns.slot(self.delivered)];
        inbox.pass_real(self.delivered, header.index, header.offset, header.len);
        self.delivered += 1;
    }

    /// Whether so many messages are half of what the ring holds.
    pub(crate) fn fills_half(&self, messages: u64) -> bool {
        messages * 2 >= self.columns.spec.messages.into()
    }
}
