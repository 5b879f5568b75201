//! An ordered pair of nodes: what has left the one and not reached the other.

use std::collections::VecDeque;

/// A row of a segment as one of its members sees it: where a piece lands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) segment: usize,
    /// Rank of the row's owner, which sends.
    pub(super) row: usize,
    /// Rank of the reader.
    pub(super) reader: usize,
}

/// What travels from one node to another.
#[derive(Debug)]
pub(super) enum Piece {
    /// One word with its value: a word push, or a store to shared memory.
    Word { spot: Spot, at: u32, value: u64 },
    /// What is left of a range; a word without a value is fetched from the
    /// sender's row when it lands. Lands in any order (F4).
    Range {
        spot: Spot,
        words: Vec<(u32, Option<u64>)>,
    },
    /// Shared memory: payload bytes of a pushed range show by now at the latest.
    Payload { spot: Spot, at: u32, len: u32 },
    /// The sender's sleep word.
    Sleep(u64),
    /// A doorbell behind the data that it is about.
    Doorbell,
}

impl Piece {
    /// Where it lands; nowhere in particular if it is the node's.
    pub(super) fn spot(&self) -> Option<Spot> {
        match *self {
            Self::Word { spot, .. } | Self::Range { spot, .. } | Self::Payload { spot, .. } => {
                Some(spot)
            }
            Self::Sleep(_) | Self::Doorbell => None,
        }
    }

    pub(super) fn words(&self) -> usize {
        match self {
            Self::Range { words, .. } => words.len(),
            Self::Word { .. } | Self::Payload { .. } | Self::Sleep(_) | Self::Doorbell => 1,
        }
    }
}

/// What a sleeper is owed whose sleep word has not arrived yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owed {
    Nothing,
    Acks,
    Data,
}

/// An ordered pair of nodes.
#[derive(Debug)]
pub(super) struct Link {
    /// Behaves like shared memory: the queue is a log of the owner's stores of
    /// which any prefix may show. Otherwise it is a queue of pushes.
    pub(super) shared: bool,
    /// Pieces with the number of the operation that made them: of all segments
    /// together, as order holds over all of them.
    pub(super) queue: VecDeque<(u64, Piece)>,
    /// Pushes are held back until the sender's next ring, whomever it rings.
    pub(super) batching: bool,
    /// Those that are.
    pub(super) batch: VecDeque<(u64, Piece)>,
    /// Where pieces may land: the segments that both ends are in, but those
    /// that the receiver has closed or in which it has fenced the sender.
    pub(super) spots: Vec<Spot>,
    /// The receiver's copy of the sender's sleep word.
    pub(super) sleep_word: u64,
    /// What the sender's `ring` found awake, by its copy of the sleep word.
    pub(super) owed: Owed,
    /// Shared memory: the sender's last operation before it last fenced.
    pub(super) fenced_at: u64,
    /// Nothing lands any more: an end is dead.
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
            spots: Vec::new(),
            sleep_word: 0,
            owed: Owed::Nothing,
            fenced_at: 0,
            closed: false,
            severed: false,
            held: false,
            stalled_until: 0,
        }
    }

    /// From now on something may land there, if anything lands at all.
    pub(super) fn admit(&mut self, spot: Spot) {
        if !self.closed && !self.severed {
            self.spots.push(spot);
        }
    }

    /// Nothing lands there any more; the queue goes on without it.
    pub(super) fn dismiss(&mut self, spot: Spot) {
        self.spots.retain(|&other| other != spot);
        for queue in [&mut self.queue, &mut self.batch] {
            queue.retain(|(_, piece)| piece.spot() != Some(spot));
        }
    }

    fn lands(&self, piece: &Piece) -> bool {
        let lands = piece.spot().is_none_or(|spot| self.spots.contains(&spot));
        lands && !self.closed && !self.severed
    }

    pub(super) fn enqueue(&mut self, operation: u64, piece: Piece) {
        if self.lands(&piece) {
            self.queue.push_back((operation, piece));
        }
    }

    /// A push: it may be held back until the next ring.
    pub(super) fn post(&mut self, operation: u64, piece: Piece) {
        if self.lands(&piece) {
            self.tail().push_back((operation, piece));
        }
    }

    /// Where the next push goes.
    pub(super) fn tail(&mut self) -> &mut VecDeque<(u64, Piece)> {
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
        self.spots.clear();
        self.closed = true;
    }
}
