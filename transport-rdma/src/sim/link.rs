//! An ordered pair of nodes, and what is in flight from one to the other.

use std::collections::VecDeque;

use crate::fabric::WakeReason;

/// A row of a segment as one of its members sees it: where a write lands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowCopy {
    pub(super) segment: usize,
    /// Rank of the row's owner, the sender.
    pub(super) row: usize,
    /// Rank of the reader.
    pub(super) reader: usize,
}

/// An element in flight from one node to another.
#[derive(Debug)]
pub(super) enum InFlight {
    /// One word with its value: a word push, or a store to shared memory.
    Word {
        target: RowCopy,
        at: u32,
        value: u64,
    },
    /// The rest of a range, whose words land in any order (F4). A word without a value is
    /// fetched from the sender's row when it lands.
    Range {
        target: RowCopy,
        words: Vec<(u32, Option<u64>)>,
    },
    /// Shared memory: the payload of a pushed range is visible from here on.
    Payload { target: RowCopy, at: u32, len: u32 },
    /// The sender's sleep word.
    Sleep(u64),
    /// A doorbell behind the data for which it wakes.
    Doorbell,
    /// Shared memory: the sender says that a batch in this bucket has ended.
    News(u8),
}

impl InFlight {
    /// The copy to which it goes; `None` if it is for the node.
    pub(super) fn target(&self) -> Option<RowCopy> {
        match *self {
            Self::Word { target, .. }
            | Self::Range { target, .. }
            | Self::Payload { target, .. } => Some(target),
            Self::Sleep(_) | Self::Doorbell | Self::News(_) => None,
        }
    }

    pub(super) fn words(&self) -> usize {
        match self {
            Self::Range { words, .. } => words.len(),
            Self::Word { .. }
            | Self::Payload { .. }
            | Self::Sleep(_)
            | Self::Doorbell
            | Self::News(_) => 1,
        }
    }
}

/// An ordered pair of nodes.
#[derive(Debug)]
pub(super) struct SimLink {
    /// The pair behaves like shared memory: the queue is a log of the owner's stores, of
    /// which any prefix may be visible. Otherwise it is a queue of pushes.
    pub(super) shared: bool,
    /// Elements with the number of the operation that made them, over all segments, because
    /// order holds over all of them.
    pub(super) queue: VecDeque<(u64, InFlight)>,
    /// Pushes are held back until the sender's next `wake`.
    pub(super) batching: bool,
    /// The pushes that are held back.
    pub(super) batch: VecDeque<(u64, InFlight)>,
    /// Where elements may land: the segments of both nodes, without those that the receiver
    /// has closed or in which it has fenced the sender.
    pub(super) targets: Vec<RowCopy>,
    /// The receiver's copy of the sender's sleep word.
    pub(super) sleep_word: u64,
    /// The wake-up that the receiver's sleep word did not ask for when `wake` was called.
    pub(super) owed: Option<WakeReason>,
    /// Shared memory: the sender's last operation before it last fenced.
    pub(super) fenced_at: u64,
    /// Nothing lands any more: one of the nodes has crashed.
    pub(super) closed: bool,
    /// Nothing more is sent; what is in flight may land.
    pub(super) severed: bool,
    /// Nothing lands for now, on request of a test.
    pub(super) held: bool,
    /// Nothing lands before this step, if something else can land.
    pub(super) stalled_until: u64,
}

impl SimLink {
    pub(super) fn new(shared: bool, batching: bool) -> Self {
        Self {
            shared,
            queue: VecDeque::new(),
            batching,
            batch: VecDeque::new(),
            targets: Vec::new(),
            sleep_word: 0,
            owed: None,
            fenced_at: 0,
            closed: false,
            severed: false,
            held: false,
            stalled_until: 0,
        }
    }

    /// Elements may land in this copy from now on, if any land at all.
    pub(super) fn add_target(&mut self, target: RowCopy) {
        if !self.closed && !self.severed {
            self.targets.push(target);
        }
    }

    /// Nothing lands in this copy any more; the other elements stay in flight.
    pub(super) fn remove_target(&mut self, target: RowCopy) {
        self.targets.retain(|&other| other != target);
        for queue in [&mut self.queue, &mut self.batch] {
            queue.retain(|(_, piece)| piece.target() != Some(target));
        }
    }

    fn lands(&self, piece: &InFlight) -> bool {
        let lands = piece
            .target()
            .is_none_or(|target| self.targets.contains(&target));
        lands && !self.closed && !self.severed
    }

    pub(super) fn enqueue(&mut self, operation: u64, piece: InFlight) {
        if self.lands(&piece) {
            self.queue.push_back((operation, piece));
        }
    }

    /// Appends a push, which may be held back until the next `wake`.
    pub(super) fn post(&mut self, operation: u64, piece: InFlight) {
        if self.lands(&piece) {
            self.tail().push_back((operation, piece));
        }
    }

    /// The queue to which the next push goes.
    pub(super) fn tail(&mut self) -> &mut VecDeque<(u64, InFlight)> {
        match self.batching {
            true => &mut self.batch,
            false => &mut self.queue,
        }
    }

    pub(super) fn end_batch(&mut self) {
        self.queue.append(&mut self.batch);
    }

    pub(super) fn close(&mut self) {
        self.queue.clear();
        self.batch.clear();
        self.targets.clear();
        self.closed = true;
    }
}
