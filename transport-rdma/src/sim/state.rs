//! The network itself: rows, links between them, and what lands when.

use core::sync::atomic::Ordering;
use std::collections::VecDeque;

use super::link::{Link, Piece};
use super::options::{PlantedBug, SimOptions};
use super::rng::{self, Rng};
use crate::fabric::{FABRIC_AREA, FabricCounters, Failure, SLEEP_WORD};
use crate::mem::Region;
use crate::peers::{PeerSet, Rank};

/// Rows are compared in blocks of this many bytes, as most of them are equal.
const BLOCK: usize = 1024;

/// One member as the network knows it.
#[derive(Debug)]
pub(super) struct Member {
    /// Its view of all rows: its own, and its copies of the others'.
    pub(super) rows: Vec<Region>,
    /// Which words of its row it has ever stored as words; the rest is payload.
    stored: Vec<bool>,
    pub(super) epoch: u64,
    /// Somebody rang since it announced sleep.
    pub(super) rung: bool,
    pub(super) crashed: bool,
    pub(super) failures: VecDeque<Failure>,
    pub(super) counters: FabricCounters,
    /// Newest of its operations that has landed through shared memory.
    pub(super) newest_shown: u64,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) members: Vec<Member>,
    links: Vec<Link>,
    /// Failures on their way to those who will be told.
    pub(super) failing: Vec<(usize, Failure)>,
    pub(super) rng: Rng,
    options: SimOptions,
    steps: u64,
    pub(super) operations: u64,
    pub(super) trace: u64,
}

impl State {
    pub(super) fn new(seed: u64, row_lens: &[usize], options: SimOptions) -> Self {
        let mut rng = Rng::new(seed);
        let count = row_lens.len();
        let members = row_lens
            .iter()
            .map(|&len| Member {
                rows: row_lens.iter().map(|&len| Region::heap(len)).collect(),
                stored: vec![false; Region::heap_len(len) / 8],
                epoch: 0,
                rung: false,
                crashed: false,
                failures: VecDeque::new(),
                counters: FabricCounters::default(),
                newest_shown: 0,
            })
            .collect();
        let links = (0..count * count)
            .map(|_| {
                let shared = rng.chance(options.shared_pairs);
                Link::new(shared, !shared && rng.chance(options.held_batches))
            })
            .collect();
        Self {
            members,
            links,
            failing: Vec::new(),
            rng,
            options,
            steps: 0,
            operations: 0,
            trace: seed,
        }
    }

    pub(super) fn planted(&self, bug: PlantedBug) -> bool {
        self.options.planted == Some(bug)
    }

    pub(super) fn link(&mut self, from: usize, to: usize) -> &mut Link {
        let count = self.members.len();
        &mut self.links[from * count + to]
    }

    pub(super) fn others(&self, me: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.members.len()).filter(move |&peer| peer != me)
    }

    pub(super) fn note(&mut self, what: u64, who: usize, at: usize, value: u64) {
        let event = what << 56 | (who as u64) << 32 | at as u64;
        self.trace = rng::mix(self.trace ^ rng::mix(event).wrapping_add(rng::mix(value)));
    }

    pub(super) fn enqueue(&mut self, from: usize, to: usize, piece: Piece) {
        let operation = self.operations;
        let link = self.link(from, to);
        if !link.closed && !link.severed {
            link.queue.push_back((operation, piece));
        }
    }

    /// A push: it may be held back until the next ring.
    fn post(&mut self, from: usize, to: usize, piece: Piece) {
        let operation = self.operations;
        let link = self.link(from, to);
        if !link.closed && !link.severed {
            link.tail().push_back((operation, piece));
        }
    }

    // What members do.

    /// A store to the own row; shows early to those who share the memory.
    pub(super) fn store(&mut self, me: usize, at: usize, value: u64) {
        if self.members[me].crashed {
            return;
        }
        self.operations += 1;
        self.note(1, me, at, value);
        let member = &mut self.members[me];
        member.rows[me].store(at, value);
        member.stored[at / 8] = true;
        for peer in self.others(me) {
            if self.link(me, peer).shared {
                self.enqueue(me, peer, word(at, value));
            }
        }
    }

    pub(super) fn push(&mut self, me: usize, at: usize, len: usize, to: &PeerSet) {
        self.check(me, at, len);
        if self.members[me].crashed || len == 0 {
            return;
        }
        self.operations += 1;
        self.note(2, me, at, len as u64);
        for peer in to.iter().map(Rank::index).filter(|&peer| peer != me) {
            self.members[me].counters.pushes += 1;
            self.members[me].counters.bytes_pushed += len as u64;
            if self.lost(me, peer) {
                continue;
            }
            if self.link(me, peer).shared {
                let (at, len) = (at as u32, len as u32);
                self.enqueue(me, peer, Piece::Payload { at, len });
            } else {
                self.fetch(me, peer, at, len);
            }
        }
    }

    /// Whether the planted bug swallows this push.
    fn lost(&mut self, me: usize, peer: usize) -> bool {
        self.planted(PlantedBug::LostPush) && !self.link(me, peer).shared && self.rng.chance(0.05)
    }

    /// The words of a range: fetched when they land, or now, and then with all
    /// that is queued before them, as later pushes fetch nothing older.
    fn fetch(&mut self, me: usize, peer: usize, at: usize, len: usize) {
        let words = (at..at + len).step_by(8).map(|at| (at as u32, None));
        self.post(me, peer, Piece::Range(words.collect()));
        if self.rng.chance(self.options.early_fetch) {
            let row = self.members[me].rows[me].clone();
            let link = self.link(me, peer);
            for (_, piece) in link.queue.iter_mut().chain(&mut link.batch) {
                if let Piece::Range(words) = piece {
                    for (at, value) in words {
                        value.get_or_insert_with(|| row.load(*at as usize));
                    }
                }
            }
        }
    }

    pub(super) fn push_word(&mut self, me: usize, at: usize, value: u64, to: &PeerSet) {
        self.check(me, at, 8);
        self.store(me, at, value);
        if self.members[me].crashed {
            return;
        }
        for peer in to.iter().map(Rank::index).filter(|&peer| peer != me) {
            self.members[me].counters.word_pushes += 1;
            self.members[me].counters.bytes_pushed += 8;
            if !self.link(me, peer).shared && !self.lost(me, peer) {
                self.post_word(me, peer, at, value);
            }
        }
    }

    fn post_word(&mut self, me: usize, peer: usize, at: usize, value: u64) {
        if self.planted(PlantedBug::MergedPush)
            && let Some((_, Piece::Range(words))) = self.link(me, peer).tail().back_mut()
        {
            words.push((at as u32, Some(value)));
            return;
        }
        self.post(me, peer, word(at, value));
    }

    fn check(&self, me: usize, at: usize, len: usize) {
        let inside = at >= FABRIC_AREA && self.members[me].rows[me].contains(at, len);
        assert!(
            inside && at.is_multiple_of(8) && len.is_multiple_of(8),
            "push of {len} bytes at {at}: unaligned, outside the row or in the fabric's area"
        );
    }

    pub(super) fn fence(&mut self, me: usize, peer: usize) {
        if peer != me && !self.planted(PlantedBug::FenceLeaks) {
            self.link(peer, me).close();
        }
    }

    // What the network does.

    pub(super) fn pending(&self) -> usize {
        let words = |link: &Link| {
            link.queue
                .iter()
                .map(|(_, piece)| piece.words())
                .sum::<usize>()
        };
        let landing = self.links.iter().filter(|link| link.has_work());
        landing.map(words).sum::<usize>() + self.failing.len()
    }

    pub(super) fn step(&mut self) -> bool {
        let mut busy: Vec<usize> = (0..self.links.len())
            .filter(|&at| self.links[at].has_work())
            .collect();
        if busy.is_empty() && self.failing.is_empty() {
            return false;
        }
        self.steps += 1;
        self.ring_without_cause();
        // A failure is told late more often than early.
        if busy.is_empty() || (!self.failing.is_empty() && self.rng.chance(0.05)) {
            self.tell_failure();
            return true;
        }
        if busy
            .iter()
            .any(|&at| self.links[at].stalled_until <= self.steps)
        {
            busy.retain(|&at| self.links[at].stalled_until <= self.steps);
        }
        let at = busy[self.rng.below(busy.len())];
        self.land(at);
        if self.rng.chance(self.options.stalls) {
            let pause = 1 + self.rng.below(self.options.stall_steps_max.max(1));
            self.links[at].stalled_until = self.steps + pause as u64;
        }
        true
    }

    fn ring_without_cause(&mut self) {
        if self.rng.chance(self.options.spurious_rings) {
            let rank = self.rng.below(self.members.len());
            self.wake(rank);
        }
    }

    /// Lands one piece of a link, at times a few.
    fn land(&mut self, at: usize) {
        let (from, to) = (at / self.members.len(), at % self.members.len());
        let shared = self.links[at].shared;
        let disordered = if shared {
            self.planted(PlantedBug::StoresOutOfOrder)
        } else {
            self.planted(PlantedBug::Overtaking)
        };
        if disordered {
            let len = self.links[at].queue.len();
            let ahead = self.rng.below(len);
            self.links[at].queue.swap(0, ahead);
        }
        if shared && self.rng.chance(0.25) {
            self.show_some_payload(from, to);
        }
        let pieces = if self.rng.chance(0.25) {
            1 + self.rng.below(4)
        } else {
            1
        };
        for _ in 0..pieces {
            self.land_front(from, to);
        }
    }

    fn land_front(&mut self, from: usize, to: usize) {
        let Some((operation, piece)) = self.link(from, to).queue.pop_front() else {
            return;
        };
        match piece {
            Piece::Word { at, value } if self.link(from, to).shared => {
                // A release store: the payload written before it shows with it.
                self.show_payload(from, to, 0, usize::MAX);
                let member = &mut self.members[from];
                member.newest_shown = member.newest_shown.max(operation);
                self.write(from, to, at as usize, value);
            }
            Piece::Word { at, value } => {
                let late = self.planted(PlantedBug::LateWord).then_some(());
                let now = late.map(|()| self.members[from].rows[from].load(at as usize));
                self.write(from, to, at as usize, now.unwrap_or(value));
            }
            Piece::Range(words) => self.land_range(from, to, operation, words),
            Piece::Payload { at, len } => self.show_payload(from, to, at as usize, len as usize),
            Piece::Ring => self.wake(to),
        }
    }

    /// Lands some words of a range, any of them, and puts the rest back.
    fn land_range(
        &mut self,
        from: usize,
        to: usize,
        operation: u64,
        mut words: Vec<(u32, Option<u64>)>,
    ) {
        let some = 1 + self.rng.below(words.len() / 4 + 1);
        for _ in 0..some.min(words.len()) {
            let (at, value) = words.swap_remove(self.rng.below(words.len()));
            let at_byte = at as usize;
            let value = value.unwrap_or_else(|| self.members[from].rows[from].load(at_byte));
            if self.planted(PlantedBug::TornWord) && self.rng.chance(0.3) {
                let old = self.members[to].rows[from].load(at_byte);
                let low = u64::from(u32::MAX);
                self.write(from, to, at_byte, old & !low | value & low);
                words.push((at, Some(value)));
            } else {
                self.write(from, to, at_byte, value);
            }
        }
        if !words.is_empty() {
            let front = (operation, Piece::Range(words));
            self.link(from, to).queue.push_front(front);
        }
    }

    /// Some payload shows before anybody asked for it.
    fn show_some_payload(&mut self, from: usize, to: usize) {
        let words = self.members[from].rows[from].len() / 8;
        let at = self.rng.below(words) * 8;
        let len = 8 * (1 + self.rng.below(8));
        self.show_payload(from, to, at, len);
    }

    /// The payload of a range, as it stands now, shows through shared memory.
    fn show_payload(&mut self, from: usize, to: usize, at: usize, len: usize) {
        let (source, copy) = (&self.members[from].rows[from], &self.members[to].rows[from]);
        let end = at.saturating_add(len).min(source.len());
        for at in (at..end).step_by(BLOCK) {
            let len = BLOCK.min(end - at);
            // SAFETY: in bounds; members and network are stepped by one thread,
            // so nobody writes while the two are compared.
            let now = unsafe { source.bytes(at, len) };
            // SAFETY: as above.
            if now == unsafe { copy.bytes(at, len) } {
                continue;
            }
            let words = at / 8..(at + len) / 8;
            let pairs = source.words()[words.clone()]
                .iter()
                .zip(&copy.words()[words.clone()]);
            let stored = &self.members[from].stored[words];
            for ((now, then), _) in pairs.zip(stored).filter(|(_, stored)| !**stored) {
                then.store(now.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }

    /// The only way into a copy. A new odd epoch is answered by a doorbell if
    /// its owner was found awake when it should have been rung.
    fn write(&mut self, from: usize, to: usize, at: usize, value: u64) {
        self.note(5, from << 8 | to, at, value);
        let copy = &self.members[to].rows[from];
        let news = at == SLEEP_WORD && copy.load(at) != value;
        copy.store(at, value);
        if news && !self.link(to, from).shared && !self.planted(PlantedBug::EpochNotAnswered) {
            self.ring_posted(to, from, value);
        }
    }

    /// What left `from` for `to` up to an operation lands now.
    pub(super) fn flush(&mut self, from: usize, to: usize, last: u64) {
        let due = |link: &Link| link.queue.front().is_some_and(|(at, _)| *at <= last);
        while due(self.link(from, to)) {
            self.land_front(from, to);
        }
    }

    pub(super) fn settle(&mut self) {
        for link in &mut self.links {
            link.held = false;
        }
        while self.step() {}
    }

    pub(super) fn hold(&mut self, from: usize, to: usize, held: bool) {
        self.link(from, to).held = held;
    }
}

pub(super) fn word(at: usize, value: u64) -> Piece {
    Piece::Word {
        at: at as u32,
        value,
    }
}
