//! The send predicate: publishes the committed messages and nulls of one own ring.

use spindle_dds_transport::{Fabric, MessagePush, WakeReason};

use crate::limits::{GRANULE, HEADER_LEN};
use crate::subgroup::header::{Header, WRITER_SEQ_WORD};
use crate::subgroup::layout::RingColumns;
use crate::subgroup::pushes::Pushes;
use crate::subgroup::send_ring::{Published, RingPosition, SendRing};

/// The engine's side of one own ring.
#[derive(Debug)]
pub(crate) struct Outgoing {
    columns: RingColumns,
    /// What has been published.
    pub(crate) published: Published,
    /// Numbers of real messages that restarts have left out.
    left_out: u64,
    /// Bytes of payload published.
    pub(crate) bytes: u64,
}

/// Sequence numbers and counts of this participant's writers.
#[derive(Debug, Default)]
pub(crate) struct WriterSeqs(Vec<WriterSeq>);

#[derive(Debug)]
struct WriterSeq {
    /// The writer's number in its participant.
    writer: u32,
    /// Sequence number of the writer's last message.
    last: u64,
    /// Messages published.
    messages: u64,
    /// Bytes of payload published.
    bytes: u64,
}

impl WriterSeqs {
    /// The sequence number of a writer's next message, of `len` bytes, after `skipped` numbers that
    /// are left out.
    #[inline]
    fn next(&mut self, writer: u32, skipped: u64, len: u64) -> u64 {
        // A participant has few writers, and consecutive messages are mostly of one writer.
        match self.0.iter_mut().find(|known| known.writer == writer) {
            Some(known) => {
                known.last += 1 + skipped;
                known.messages += 1;
                known.bytes += len;
                known.last
            }
            None => {
                self.0.push(WriterSeq {
                    writer,
                    last: 1 + skipped,
                    messages: 1,
                    bytes: len,
                });
                1 + skipped
            }
        }
    }

    /// For each writer: its number, and the sequence number of its last message.
    pub(crate) fn last(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.0.iter().map(|it| (it.writer, it.last))
    }

    /// A writer goes on after this sequence number.
    pub(crate) fn go_on_after(&mut self, writer: u32, last: u64) {
        match self.0.iter_mut().find(|known| known.writer == writer) {
            Some(known) => known.last = last,
            None => self.0.push(WriterSeq {
                writer,
                last,
                messages: 0,
                bytes: 0,
            }),
        }
    }

    /// For each writer: its number, messages published, and bytes of their payload.
    pub(crate) fn published(&self) -> impl Iterator<Item = (u32, u64, u64)> + '_ {
        let known = self.0.iter();
        known.map(|it| (it.writer, it.messages, it.bytes))
    }
}

/// Limits of one call of [`Outgoing::send`].
#[derive(Debug)]
pub(crate) struct SendOrder {
    /// Maximum number of real messages.
    pub(crate) limit: u64,
    /// Number of messages, nulls included, to fill up to with nulls.
    pub(crate) null_target: u64,
    /// Why nulls wake receivers if no message comes with them.
    pub(crate) nulls_wake: WakeReason,
    /// Whether nothing is pushed after this batch before the flush.
    pub(crate) is_last: bool,
}

/// A contiguous range of the own row to push.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// Byte offset in the row.
    at: usize,
    /// Length in bytes.
    len: usize,
}

impl Run {
    const EMPTY: Self = Self { at: 0, len: 0 };

    /// Extends the range. If the bytes do not follow it, starts a new range and returns the old
    /// one.
    fn extend(&mut self, at: usize, len: usize) -> Option<Self> {
        if len == 0 {
            return None;
        }
        if self.at + self.len == at {
            self.len += len;
            return None;
        }
        let before = core::mem::replace(self, Self { at, len });
        (before.len > 0).then_some(before)
    }
}

impl Outgoing {
    pub(crate) fn new(columns: RingColumns) -> Self {
        Self {
            columns,
            published: Published::default(),
            left_out: 0,
            bytes: 0,
        }
    }

    /// Real messages published.
    pub(crate) fn sent(&self) -> u64 {
        self.published.real - self.left_out
    }

    /// Restarts the ring, which all members have released: its extents, and its headers if at least
    /// `messages` of them were used. Returns whether the members must be told, as is done before
    /// anything else is published; the next message has the first header then.
    pub(crate) fn restart(
        &mut self,
        send_ring: &SendRing,
        messages: u32,
        pushes: &mut Pushes,
    ) -> bool {
        send_ring.restart_extents();
        let used = self.columns.slot(self.published.real) as u64;
        if used < u64::from(messages) {
            return false;
        }
        let Some(start) = send_ring.restart_numbers(&self.published) else {
            return false;
        };
        self.left_out += start - self.published.real;
        self.published.real = start;
        pushes.restart_word(self.columns.restart(), self.published.index);
        true
    }

    /// Publishes committed messages, then nulls. The order of a batch is: payload ranges, header
    /// ranges, guard. Returns the number of messages and the number of nulls after them.
    pub(crate) fn send<F: Fabric>(
        &mut self,
        fabric: &F,
        send_ring: &SendRing,
        seqs: &mut WriterSeqs,
        order: &SendOrder,
        pushes: &mut Pushes,
    ) -> (u64, u64) {
        let before = self.published;
        let row = fabric.row(fabric.me());
        let mut payload = Run::EMPTY;
        let mut headers = Run::EMPTY;
        // Header ranges go after all payload ranges; a batch has at most two.
        let mut wrapped = Run::EMPTY;
        while self.published.real - before.real < order.limit {
            let Some(index) = send_ring.next_written(&self.published) else {
                break;
            };
            let at = self.columns.header(self.published.real);
            let words: [u64; WRITER_SEQ_WORD + 1] = row.copy_words(at);
            let (offset, len) = (words[1] & 0xffff_ffff, words[1] >> 32);
            // Replaces the number of skipped messages by the sequence number. (Only 32 bits are
            // read, as in `CommitMeta`, whatever the row contains.)
            let skipped = u64::from(words[WRITER_SEQ_WORD] as u32);
            let seq = seqs.next((words[2] >> 32) as u32, skipped, len);
            fabric.store(at + WRITER_SEQ_WORD * 8, seq);
            self.bytes += len;
            let begin = self.columns.payload + offset as usize * GRANULE;
            if let Some(done) = payload.extend(begin, (len as usize).next_multiple_of(GRANULE)) {
                pushes.range_later(done.at, done.len);
            }
            if let Some(done) = headers.extend(at, HEADER_LEN) {
                wrapped = done;
            }
            self.published = Published {
                index: index + 1,
                real: self.published.real + 1,
            };
        }
        let sent = self.published.real - before.real;
        let nulls = send_ring.fill_nulls(&self.published, order.null_target);
        self.published.index += nulls;
        if sent + nulls == 0 {
            return (0, 0);
        }
        let mut ranges = [(0, 0); 3];
        let mut runs = 0;
        for run in [payload, wrapped, headers] {
            if run.len > 0 {
                ranges[runs] = (run.at, run.len);
                runs += 1;
            }
        }
        let (ranges, guard) = (&ranges[..runs], self.published.index);
        let reason = match sent {
            0 => order.nulls_wake,
            _ => WakeReason::Data,
        };
        if order.is_last {
            pushes.last_batch(fabric, ranges, self.columns.guard, guard, reason);
        } else {
            pushes.batch(ranges, self.columns.guard, guard, reason);
        }
        (sent, nulls)
    }

    /// Whether this is the next message to publish, and all before it are published.
    #[inline]
    pub(crate) fn is_next(&self, place: RingPosition) -> bool {
        self.published.index == place.index
    }

    /// Publishes the next message, whose header is not in the row yet: the same as
    /// [`send`](Self::send) of one message, without a hand-over between threads. Nothing may be
    /// pushed after it before the flush.
    #[inline]
    pub(crate) fn send_next<F: Fabric>(
        &mut self,
        fabric: &F,
        header: Header,
        seqs: &mut WriterSeqs,
        pushes: &mut Pushes,
    ) {
        let mut words = header.to_words();
        words[WRITER_SEQ_WORD] = seqs.next(header.writer, header.writer_seq, header.len.into());
        let payload = self.columns.payload + header.offset as usize;
        let message = MessagePush {
            payload: (payload, (header.len as usize).next_multiple_of(GRANULE)),
            header: self.columns.header(self.published.real),
            words: &words,
            guard: self.columns.guard,
            count: header.index + 1,
        };
        self.bytes += u64::from(header.len);
        self.published = Published {
            index: header.index + 1,
            real: self.published.real + 1,
        };
        pushes.last_message(fabric, &message);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn writers_are_numbered_each_from_one() {
        let mut seqs = WriterSeqs::default();
        let numbers: Vec<u64> = [7, 7, 9, 7, 9]
            .map(|writer| seqs.next(writer, 0, 10))
            .into();
        assert_eq!(numbers, [1, 2, 1, 3, 2]);
        let published: Vec<_> = seqs.published().collect();
        assert_eq!(published, [(7, 3, 30), (9, 2, 20)]);
    }

    #[test]
    fn a_writer_that_comes_back_goes_on_after_its_last_number() {
        let mut seqs = WriterSeqs::default();
        seqs.go_on_after(7, 41);
        let numbers = [(7, 0), (9, 0), (7, 2)];
        let numbers = numbers.map(|(writer, skipped)| seqs.next(writer, skipped, 0));
        assert_eq!(numbers, [42, 1, 45]);
        seqs.go_on_after(9, 5);
        assert_eq!(seqs.last().collect::<Vec<_>>(), [(7, 45), (9, 5)]);
    }

    #[test]
    fn dropped_messages_leave_a_gap() {
        let mut seqs = WriterSeqs::default();
        let numbers = [(7, 2), (9, 0), (7, 0), (9, 3)];
        let numbers = numbers.map(|(writer, skipped)| seqs.next(writer, skipped, 0));
        assert_eq!(numbers, [3, 1, 4, 5]);
    }
}
