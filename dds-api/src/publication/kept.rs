//! What a writer sends again after its participant has lost its group and come back.
//!
//! ```text
//!   the ring of the session that has ended      from the first message that the group
//!        --keep_sent--> kept samples            has not delivered
//!        HISTORY: KEEP_LAST keeps the last of each instance
//!        --send_kept--> the new session, before anything that is written now
//! ```
//!
//! Sequence numbers stay: a sample that is gone leaves a gap, which readers count as lost.

use std::collections::{HashMap, VecDeque};
use std::sync::{MutexGuard, PoisonError};

use spindle_dds_core::membership::DeliveredCounts;
use spindle_dds_core::{CommitMeta, DeliveryClass, Header, MessageKind, SentMessage};
use spindle_dds_idl_runtime::{Encapsulation, KeyHash};
use spindle_dds_qos::HistoryKind;

use super::core::WriterCore;
use crate::driver::{Before, Obstacle, SentBefore};
use crate::history::FeedItem;
use crate::keys::KnownKeys;

/// The samples of a writer that the group has not delivered, oldest first.
#[derive(Debug, Default)]
pub(super) struct Kept {
    samples: VecDeque<Sample>,
    /// Sequence number of the last sample that is sent, or was delivered.
    last: u64,
    /// What became of those that were sent before.
    before: Before,
}

#[derive(Debug)]
struct Sample {
    /// Epoch and index of its message.
    at: (u64, u64),
    message: SentMessage,
}

impl Sample {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.message.payload.capacity()
    }
}

impl WriterCore {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        let kept = self.side.kept.lock();
        kept.unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes allocated for slots, and for samples that are kept or wait to be sent. What is being sent
    /// again does not count.
    pub(crate) fn allocated(&self) -> usize {
        let kept = self.side.kept.try_lock();
        let kept = kept.map_or(0, |kept| kept.samples.iter().map(Sample::bytes).sum());
        self.side.pool.allocated() + kept + self.unsent_bytes() + self.side.registered.allocated()
    }

    /// The participant has lost its group, and is about to be in it again, which has delivered so
    /// many of its messages: keeps what it has not delivered, as far as HISTORY says. `last` is the
    /// sequence number of the writer's last message. Returns the one after which it goes on, and
    /// how many samples are gone.
    pub(crate) fn keep_sent(&self, counts: Option<&DeliveredCounts>, last: u64) -> (u64, u64) {
        let mut kept = self.kept();
        kept.before = Before::default();
        kept.last = last;
        self.keep_missed(counts);
        let sent = self
            .side
            .port
            .get()
            .and_then(|port| port.sent_before(counts));
        let Some(sent) = sent.filter(|_| self.side.class() == DeliveryClass::Ordered) else {
            return (kept.first_missing().unwrap_or(last), 0);
        };
        let SentBefore {
            epoch,
            delivered,
            messages,
        } = sent;
        let messages = messages.into_iter().filter(|it| self.is_own(it));
        let own = messages.map(|message| Sample {
            at: (epoch, message.header.index),
            message,
        });
        kept.before.delivered = delivered.map(|end| (epoch, end));
        let mut gone = 0;
        if delivered.is_some() {
            // What was not sent again the last time comes after what was.
            let later = std::mem::take(&mut kept.samples);
            kept.samples = own.chain(later).collect();
        } else {
            // They may be delivered already, and nothing is delivered twice.
            gone += own.count() as u64;
        }
        kept.last = kept.first_missing().unwrap_or(last);
        let history = self.qos().history;
        if history.kind == HistoryKind::KeepLast {
            gone += kept.keep_last(history.depth, self.side.keys.as_ref());
        }
        (kept.last, gone)
    }

    /// Keeps for readers that come later what the group has delivered of the writer without this
    /// participant, which had lost it.
    fn keep_missed(&self, counts: Option<&DeliveredCounts>) {
        let (Some(history), Some(counts)) = (self.side.history(), counts) else {
            return;
        };
        let (Some(port), Some(participant)) = (self.side.port.get(), self.participant.upgrade())
        else {
            return;
        };
        if self.side.class() != DeliveryClass::Ordered {
            return;
        }
        for message in port.delivered_before(counts) {
            if self.is_own(&message) {
                let writer = history.clone();
                participant
                    .history
                    .push(FeedItem::Missed { writer, message });
            }
        }
        participant.history.wake();
    }

    fn is_own(&self, message: &SentMessage) -> bool {
        let header = &message.header;
        header.writer == self.number && header.kind != MessageKind::Control
    }

    /// Sends what was kept, as soon as there is room for it. Returns when all is sent, or when the
    /// group or the writer has ended, with the number of samples that never fit.
    pub(crate) fn send_kept(&self) -> u64 {
        let Some(port) = self.side.port.get() else {
            return 0;
        };
        let mut gone = 0;
        let mut kept = self.kept();
        while let Some(sample) = kept.samples.front() {
            let skipped = sample
                .message
                .header
                .writer_seq
                .saturating_sub(kept.last + 1);
            let meta = meta(&sample.message.header, skipped);
            let sent = match port.send_again(&sample.message.payload, &meta) {
                Ok(sent) => sent,
                Err(Obstacle::Error(error)) if port.check().is_ok() => {
                    let topic = &self.topic.name;
                    tracing::warn!(topic, %error, "a sample that was kept cannot be sent");
                    kept.samples.pop_front();
                    gone += 1;
                    continue;
                }
                // The next return goes on here.
                Err(obstacle) => {
                    tracing::debug!(?obstacle, "what was kept is not sent");
                    return gone;
                }
            };
            let at = sample.at;
            kept.last = sample.message.header.writer_seq;
            kept.samples.pop_front();
            kept.before.again.insert(at, sent);
        }
        port.has_sent_again(std::mem::take(&mut kept.before));
        gone
    }
}

impl Kept {
    /// The sequence number before that of the first kept sample.
    fn first_missing(&self) -> Option<u64> {
        let first = self.samples.front()?;
        Some(first.message.header.writer_seq.saturating_sub(1))
    }

    /// Keeps the last samples of each instance. Returns how many are gone.
    fn keep_last(&mut self, depth: u32, keys: Option<&KnownKeys>) -> u64 {
        let before = self.samples.len();
        let mut left: HashMap<KeyHash, u32> = HashMap::new();
        let mut samples = VecDeque::new();
        // So that names are not given to other keys meanwhile.
        let mut names = Vec::new();
        for sample in std::mem::take(&mut self.samples).into_iter().rev() {
            let SentMessage { header, payload } = &sample.message;
            let named = keys.and_then(|keys| {
                let encapsulation = Encapsulation(header.encapsulation);
                keys.name_on_its_way(header.kind, payload, encapsulation)
                    .ok()
            });
            let key = named
                .as_ref()
                .map_or(KeyHash(header.key_hash), |it| it.name);
            names.extend(named);
            let left = left.entry(key).or_insert(depth);
            if *left > 0 {
                *left -= 1;
                samples.push_front(sample);
            }
        }
        self.samples = samples;
        (before - self.samples.len()) as u64
    }
}

fn meta(header: &Header, skipped: u64) -> CommitMeta {
    CommitMeta {
        kind: header.kind,
        flags: header.flags,
        encapsulation: header.encapsulation,
        writer: header.writer,
        timestamp: header.timestamp,
        topic: header.topic,
        key_hash: header.key_hash,
        skipped: u32::try_from(skipped).unwrap_or(u32::MAX),
    }
}
