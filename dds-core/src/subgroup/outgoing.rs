//! The send predicate: publishes committed messages and nulls of one ring.

use spindle_dds_transport::{Fabric, MessagePush};

use crate::limits::{GRANULE, HEADER_LEN};
use crate::subgroup::header::{Header, WRITER_SEQ_WORD};
use crate::subgroup::layout::RingColumns;
use crate::subgroup::pushes::Pushes;
use crate::subgroup::send_ring::{Place, Published, SendRing};

/// The engine's side of one of its own rings.
#[derive(Debug)]
pub(crate) struct Outgoing {
    columns: RingColumns,
    pub(crate) published: Published,
    /// Bytes of payload published.
    pub(crate) bytes: u64,
}

/// What this participant's writers have published.
#[derive(Debug, Default)]
pub(crate) struct WriterSeqs(Vec<WriterSeq>);

#[derive(Debug)]
struct WriterSeq {
    writer: u32,
    /// Sequence number of its last message.
    last: u64,
    messages: u64,
    bytes: u64,
}

impl WriterSeqs {
    /// The number of a writer's next message, which has `len` bytes; `skipped` ones are
    /// left out.
    #[inline]
    fn next(&mut self, writer: u32, skipped: u64, len: u64) -> u64 {
        // Writers of a participant are few, and a run of messages is mostly of one.
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

    /// Messages that a writer has published, and the bytes of their payload.
    pub(crate) fn published(&self) -> impl Iterator<Item = (u32, u64, u64)> + '_ {
        let known = self.0.iter();
        known.map(|it| (it.writer, it.messages, it.bytes))
    }
}

/// What to send at most.
#[derive(Debug)]
pub(crate) struct SendOrder {
    /// Real messages.
    pub(crate) limit: u64,
    /// Messages to fill up to with nulls.
    pub(crate) null_target: u64,
    /// Nothing is pushed behind it before the flush.
    pub(crate) is_last: bool,
}

/// A contiguous run of bytes to push.
#[derive(Debug, Clone, Copy)]
struct Run {
    at: usize,
    len: usize,
}

impl Run {
    const EMPTY: Self = Self { at: 0, len: 0 };

    /// Takes more bytes; the run that it was before, if they do not follow it.
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
            bytes: 0,
        }
    }

    /// Publishes what is committed, then nulls. A batch is: runs of payload, runs of headers, guard.
    /// Returns how many messages, and how many nulls behind them.
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
        // Header runs go after all payload runs, and a batch has at most two.
        let mut wrapped = Run::EMPTY;
        while self.published.real - before.real < order.limit {
            let Some(index) = send_ring.next_written(&self.published) else {
                break;
            };
            let at = self.columns.header(self.published.real);
            let words: [u64; WRITER_SEQ_WORD + 1] = row.copy_words(at);
            let (offset, len) = (words[1] & 0xffff_ffff, words[1] >> 32);
            // The number of the message, in place of how many it skips.
            // (As `CommitMeta` has it, in 32 bits, whatever became of the row.)
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
        if order.is_last {
            pushes.last_batch(fabric, ranges, self.columns.guard, guard);
        } else {
            pushes.batch(ranges, self.columns.guard, guard);
        }
        (sent, nulls)
    }

    /// Whether it is the next message to publish, and all before it are published.
    #[inline]
    pub(crate) fn is_next(&self, place: Place) -> bool {
        self.published.index == place.index
    }

    /// Publishes the next message at once, which is written nowhere yet: what
    /// [`send`](Self::send) does with one, without having it handed over. Nothing is pushed
    /// behind it before the flush.
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
    fn what_was_dropped_leaves_a_gap() {
        let mut seqs = WriterSeqs::default();
        let numbers = [(7, 2), (9, 0), (7, 0), (9, 3)];
        let numbers = numbers.map(|(writer, skipped)| seqs.next(writer, skipped, 0));
        assert_eq!(numbers, [3, 1, 4, 5]);
    }
}
