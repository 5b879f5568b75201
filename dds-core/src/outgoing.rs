//! The send predicate: publishes committed messages and nulls of one ring.

use spindle_dds_transport::{Fabric, Region};

use crate::config::{EngineConfig, PlantedBug};
use crate::header::WRITER_SEQ_WORD;
use crate::layout::RingColumns;
use crate::limits::{GRANULE, HEADER_LEN};
use crate::outbox::{Outbox, Published};
use crate::pushes::Pushes;

/// The engine's side of one of its own rings.
#[derive(Debug)]
pub(crate) struct Outgoing {
    columns: RingColumns,
    pub(crate) published: Published,
    /// Bytes of payload published.
    pub(crate) bytes: u64,
    /// Payload is pushed in multiples of this.
    unit: usize,
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
pub(crate) struct SendOrder<'a> {
    /// Real messages.
    pub(crate) limit: u64,
    /// Messages to fill up to with nulls.
    pub(crate) null_target: u64,
    pub(crate) config: &'a EngineConfig,
}

/// A contiguous run of bytes to push.
#[derive(Debug, Clone, Copy)]
struct Run {
    at: usize,
    len: usize,
}

impl Outgoing {
    /// With `slots`, a message's payload is pushed with all of its slot.
    pub(crate) fn new(columns: RingColumns, slots: bool) -> Self {
        Self {
            columns,
            published: Published::default(),
            bytes: 0,
            unit: match slots {
                true => columns.spec.slot_len() as usize,
                false => GRANULE,
            },
        }
    }

    /// Publishes what is committed, then nulls. A batch is: runs of payload, runs of headers, guard.
    pub(crate) fn send<F: Fabric>(
        &mut self,
        fabric: &F,
        outbox: &Outbox,
        seqs: &mut WriterSeqs,
        order: &SendOrder<'_>,
        pushes: &mut Pushes,
    ) {
        let before = self.published;
        let row = fabric.row(fabric.me());
        let mut payload: Option<Run> = None;
        let mut headers: Option<Run> = None;
        // Header runs go after all payload runs, and a batch has at most two.
        let mut wrapped: Option<Run> = None;
        while self.published.real - before.real < order.limit {
            let Some(index) = outbox.next_written(&self.published) else {
                break;
            };
            let at = self.columns.header(self.published.real);
            self.bytes += self.number(fabric, row, at, seqs);
            self.extend_payload(row, at, &mut payload, pushes);
            match &mut headers {
                Some(run) if run.at + run.len == at => run.len += HEADER_LEN,
                other => {
                    wrapped = wrapped.or(*other);
                    *other = Some(Run {
                        at,
                        len: HEADER_LEN,
                    });
                }
            }
            self.published = Published {
                index: index + 1,
                real: self.published.real + 1,
            };
        }
        self.published.index += outbox.fill_nulls(&self.published, order.null_target);
        if self.published == before {
            return;
        }
        if order.config.plants(PlantedBug::GuardFirst) {
            pushes.word(fabric, self.columns.guard, self.published.index);
        }
        for run in [payload, wrapped, headers].into_iter().flatten() {
            pushes.range(fabric, run.at, run.len);
        }
        let wild = u64::from(order.config.plants(PlantedBug::WildGuard)) << 40;
        pushes.word(fabric, self.columns.guard, self.published.index + wild);
    }

    /// Gives a message its writer sequence number, in place of how many it skips. Returns
    /// the bytes of its payload.
    fn number<F: Fabric>(&self, fabric: &F, row: &Region, at: usize, seqs: &mut WriterSeqs) -> u64 {
        let len = row.load(at + 8) >> 32;
        let writer = (row.load(at + 16) >> 32) as u32;
        let word = at + WRITER_SEQ_WORD * 8;
        fabric.store(word, seqs.next(writer, row.load(word), len));
        len
    }

    fn extend_payload(&self, row: &Region, at: usize, run: &mut Option<Run>, pushes: &mut Pushes) {
        let word = row.load(at + 8);
        let offset = (word & 0xffff_ffff) as usize * GRANULE;
        let len = (word >> 32) as usize;
        // A slot goes out as it is, even for a message without payload.
        let len = match self.unit {
            GRANULE => len.next_multiple_of(GRANULE),
            slot => slot,
        };
        if len == 0 {
            return;
        }
        let begin = self.columns.payload + offset;
        match run {
            Some(run) if run.at + run.len == begin => run.len += len,
            other => {
                if let Some(done) = other.replace(Run { at: begin, len }) {
                    pushes.range_later(done.at, done.len);
                }
            }
        }
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
