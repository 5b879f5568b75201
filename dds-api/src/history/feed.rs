//! What the engine, and other threads, hand to the history thread.
//!
//! ```text
//!   the thread that steps   messages of kept topics, held in their rings; where views begin --> items
//!   control thread          packets about transfers ---------------------------------------> packets
//!   readers                 they may take more ---------------------------------------------> a flag
//! ```
//!
//! Items keep the engine's order. The thread that steps allocates hardly anything here, and never waits.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::Duration;

use crossbeam_queue::SegQueue;
use spindle_dds_core::membership::MemberId;
use spindle_dds_core::storage::RecordMeta;
use spindle_dds_core::{Held, SentMessage};

use super::TransferId;
use super::kept::{KeptHistory, KeptWriter, TopicHistory};
use super::logging::LogFill;
use super::packet::{HistoryPacket, TransferName};
use crate::driver::{ControlQueue, ReaderPort};
use crate::wire::Wire;

/// One thing after the other, as the engine tells it.
pub(crate) enum FeedItem {
    /// A delivered message of a writer whose messages are kept.
    Message {
        writer: Arc<KeptWriter>,
        meta: RecordMeta,
        held: Held<Wire>,
    },
    /// A message that the group has delivered, but not to this participant, which had lost it.
    Missed {
        writer: Arc<KeptWriter>,
        message: SentMessage,
    },
    /// A view begins.
    View(ViewMarker),
    /// All that a log has before this position is in the history of its topic.
    LogRead {
        topic: Arc<TopicHistory>,
        base: u64,
        /// Which attempt to get the history this was.
        attempt: u64,
    },
    /// The group is lost: nothing comes of its members any more.
    GroupLost,
}

/// The beginning of a view, and what begins with it.
pub(crate) struct ViewMarker {
    pub(crate) view: u64,
    pub(crate) me: MemberId,
    pub(crate) members: BTreeSet<MemberId>,
    /// By which packets are sent.
    pub(crate) control_queue: Arc<ControlQueue>,
    /// Histories of subgroups that begin an epoch at this position.
    pub(crate) bases: Vec<(Arc<KeptHistory>, u64)>,
    /// TRANSIENT writers that are gone, and whether they have left in order.
    pub(crate) gone: Vec<(Arc<KeptWriter>, bool)>,
    /// GUIDs of the TRANSIENT writers that there are.
    pub(crate) writers: BTreeSet<[u8; 16]>,
    pub(crate) topics: Vec<NewTopic>,
    pub(crate) pins: Vec<Pin>,
    pub(crate) transfers: Vec<NewTransfer>,
}

/// This participant begins to keep a topic, which these members have kept before: it gets from one of
/// them what comes before this position.
pub(crate) struct NewTopic {
    pub(crate) id: TransferId,
    pub(crate) name: TransferName,
    pub(crate) topic: Arc<TopicHistory>,
    pub(crate) base: u64,
    pub(crate) donors: Vec<MemberId>,
    /// It has kept the topic up to here, and what it has of TRANSIENT writers stays: the others are got from
    /// logs.
    pub(crate) keeps_unlogged: bool,
    /// The log of this participant, which has it; then no donor is asked.
    pub(crate) log: Option<LogFill>,
}

/// History as it is at the marker, which a joiner may ask for.
pub(crate) struct Pin {
    pub(crate) joiner: MemberId,
    pub(crate) endpoint: [u8; 16],
    /// The marker's position in the order of the subgroup.
    pub(crate) base: u64,
    pub(crate) parts: Vec<PinPart>,
}

/// A history, or a part of it.
pub(crate) enum PinPart {
    /// Of a TRANSIENT_LOCAL writer.
    Writer(Arc<KeptHistory>),
    /// Of a topic: all, or what one writer has written.
    Topic(Arc<TopicHistory>, Option<[u8; 16]>),
}

/// A reader of this participant gets history from these members, each of which has that of these
/// writers; of all that it has, where no writer is named.
pub(crate) struct NewTransfer {
    pub(crate) id: TransferId,
    pub(crate) name: TransferName,
    pub(crate) topic: String,
    pub(crate) port: Arc<ReaderPort<Wire>>,
    pub(crate) sources: Vec<(MemberId, Vec<[u8; 16]>)>,
    /// Writers of the topic that do not match the reader: it wants nothing of them.
    pub(crate) unmatched: Vec<[u8; 16]>,
}

impl Pin {
    /// Whether it has the history of such a topic.
    pub(super) fn is_of(&self, is_such: impl Fn(&Arc<TopicHistory>) -> bool) -> bool {
        self.parts.iter().any(|part| match part {
            PinPart::Topic(topic, _) => is_such(topic),
            PinPart::Writer(_) => false,
        })
    }
}

/// The queues of the history thread, and its sleep. The log thread has the same with other items.
pub(super) struct Feed<I = FeedItem, P = HistoryPacket> {
    items: SegQueue<I>,
    packets: SegQueue<(MemberId, P)>,
    /// A reader may take more; logs have more on disk.
    is_reader_ready: AtomicBool,
    is_stopped: AtomicBool,
    thread: OnceLock<Thread>,
    is_asleep: AtomicBool,
}

impl<I, P> Default for Feed<I, P> {
    fn default() -> Self {
        Self {
            items: SegQueue::new(),
            packets: SegQueue::new(),
            is_reader_ready: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            thread: OnceLock::new(),
            is_asleep: AtomicBool::new(false),
        }
    }
}

impl<I, P> fmt::Debug for Feed<I, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed")
            .field("items", &self.items.len())
            .finish_non_exhaustive()
    }
}

impl<I, P> Feed<I, P> {
    /// Adds an item, unless the thread has ended: then it is dropped.
    pub(super) fn push(&self, item: I) {
        if !self.is_stopped() {
            self.items.push(item);
        }
    }

    pub(super) fn push_packet(&self, from: MemberId, packet: P) {
        self.packets.push((from, packet));
        self.wake();
    }

    pub(super) fn reader_is_ready(&self) {
        self.is_reader_ready.store(true, Ordering::Release);
        self.wake();
    }

    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.wake();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    pub(super) fn pop(&self) -> Option<I> {
        self.items.pop()
    }

    /// Whether no item is there.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn pop_packet(&self) -> Option<(MemberId, P)> {
        self.packets.pop()
    }

    pub(super) fn take_reader_ready(&self) -> bool {
        self.is_reader_ready.swap(false, Ordering::AcqRel)
    }

    /// Wakes the thread if it sleeps: after all that was pushed before.
    pub(super) fn wake(&self) {
        // Pairs with the fence in `sleep`: either the thread sees what was pushed, or this sees that it
        // sleeps.
        fence(Ordering::SeqCst);
        if self.is_asleep.load(Ordering::Relaxed)
            && self.is_asleep.swap(false, Ordering::AcqRel)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    /// The history thread begins.
    pub(super) fn set_thread(&self) {
        let _ = self.thread.set(thread::current());
    }

    /// Called by the history thread: sleeps until something has come, at most for so long.
    pub(super) fn sleep(&self, time: Option<Duration>) {
        self.is_asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !self.has_any() {
            match time {
                Some(time) => thread::park_timeout(time),
                None => thread::park(),
            }
        }
        self.is_asleep.store(false, Ordering::Relaxed);
    }

    fn has_any(&self) -> bool {
        !self.items.is_empty()
            || !self.packets.is_empty()
            || self.is_reader_ready.load(Ordering::Acquire)
            || self.is_stopped()
    }
}
