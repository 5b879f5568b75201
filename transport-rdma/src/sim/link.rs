//! An ordered pair of members: what has left the one and not reached the other.

use std::collections::VecDeque;

/// What travels from one member to another.
#[derive(Debug)]
pub(super) enum Piece {
    /// One word with its value: a word push, or a store to shared memory.
    Word { at: u32, value: u64 },
    /// What is left of a range; a word without a value is fetched from the
    /// sender's row when it lands. Lands in any order (F4).
    Range(Vec<(u32, Option<u64>)>),
    /// Shared memory: payload bytes of a pushed range show by now at the latest.
    Payload { at: u32, len: u32 },
    /// A doorbell behind the data that it is about.
    Ring,
}

impl Piece {
    pub(super) fn words(&self) -> usize {
        match self {
            Self::Range(words) => words.len(),
            Self::Word { .. } | Self::Payload { .. } | Self::Ring => 1,
        }
    }
}

/// What a sleeper is owed whose epoch has not arrived yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owed {
    Nothing,
    Acks,
    Data,
}

/// An ordered pair of members.
#[derive(Debug)]
pub(super) struct Link {
    /// Behaves like shared memory: the queue is a log of the owner's stores of
    /// which any prefix may show. Otherwise it is a queue of pushes.
    pub(super) shared: bool,
    /// Pieces with the number of the operation that made them.
    pub(super) queue: VecDeque<(u64, Piece)>,
    /// Pushes are held back until the sender's next ring, whomever it rings.
    pub(super) batching: bool,
    /// Those that are.
    pub(super) batch: VecDeque<(u64, Piece)>,
    /// What the sender's `ring` found awake, by its copy of the epoch.
    pub(super) owed: Owed,
    /// Shared memory: the sender's last operation before it last fenced.
    pub(super) fenced_at: u64,
    /// Nothing lands any more: fenced by the receiver, or an end is dead.
    pub(super) closed: bool,
    /// Nothing more is sent; what is on its way may land.
    pub(super) severed: bool,
    /// Nothing lands for now, because a test wants it so.
    pub(super) held: bool,
    /// Nothing lands before this step, if there is something else to land.
    pub(super) stalled_until: u64,
}

impl Link {
    pub(super) fn new(shared: bool, batching: bool) -> Self {
        Self {
            shared,
            queue: VecDeque::new(),
            batching,
            batch: VecDeque::new(),
            owed: Owed::Nothing,
            fenced_at: 0,
            closed: false,
            severed: false,
            held: false,
            stalled_until: 0,
        }
    }

    pub(super) fn close(&mut self) {
        self.queue.clear();
        self.batch.clear();
        self.closed = true;
    }

    /// Where the next push goes.
    pub(super) fn tail(&mut self) -> &mut VecDeque<(u64, Piece)> {
        if self.batching {
            &mut self.batch
        } else {
            &mut self.queue
        }
    }

    pub(super) fn end_batch(&mut self) {
        self.queue.append(&mut self.batch);
    }

    pub(super) fn has_work(&self) -> bool {
        !self.queue.is_empty() && !self.held
    }
}
