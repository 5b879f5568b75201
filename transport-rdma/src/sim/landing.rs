//! What the network does: which piece lands next, and how.

use core::sync::atomic::Ordering;

use super::link::{Piece, Spot};
use super::options::PlantedBug;
use super::segment::{Phase, Seat};
use super::state::State;

/// Rows are compared in blocks of this many bytes, as most of them are equal.
const BLOCK: usize = 1024;

impl State {
    /// Whether something of a pair may land now.
    fn has_work(&self, from: usize, to: usize) -> bool {
        let link = &self.links[from][to];
        !link.queue.is_empty() && !link.held && !self.is_blocked(from, to)
    }

    /// Whether the front is for a segment that the receiver has yet to open.
    /// (Shared memory is there, whether somebody has opened it or not.)
    fn is_blocked(&self, from: usize, to: usize) -> bool {
        let link = &self.links[from][to];
        let front = link.queue.front().and_then(|(_, piece)| piece.spot());
        !link.shared
            && !self.planted(PlantedBug::UnopenedLost)
            && front.is_some_and(|spot| !self.is_open(spot))
    }

    fn is_open(&self, spot: Spot) -> bool {
        let (segment, rank) = (spot.segment, spot.reader);
        self.end(Seat { segment, rank }).phase == Phase::Open
    }

    pub(super) fn pending(&self) -> usize {
        let busy = self.pairs().filter(|&(from, to)| self.has_work(from, to));
        let words = |(from, to): (usize, usize)| {
            let queue = &self.links[from][to].queue;
            queue.iter().map(|(_, piece)| piece.words()).sum::<usize>()
        };
        busy.map(words).sum::<usize>() + self.failing.len()
    }

    pub(super) fn step(&mut self) -> bool {
        let pairs = self.pairs();
        let mut busy: Vec<_> = pairs
            .filter(|&(from, to)| self.has_work(from, to))
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
        let moves = |&(from, to): &(usize, usize)| self.links[from][to].stalled_until <= self.steps;
        if busy.iter().any(moves) {
            busy.retain(moves);
        }
        let (from, to) = busy[self.rng.below(busy.len())];
        self.land(from, to);
        if self.rng.chance(self.options.stalls) {
            let pause = 1 + self.rng.below(self.options.stall_steps_max.max(1));
            self.link(from, to).stalled_until = self.steps + pause as u64;
        }
        true
    }

    fn ring_without_cause(&mut self) {
        if self.rng.chance(self.options.spurious_wakes) {
            let node = self.rng.below(self.nodes.len());
            self.wake(node);
        }
    }

    /// Lands one piece of a link, at times a few.
    fn land(&mut self, from: usize, to: usize) {
        self.disorder(from, to);
        if self.link(from, to).shared && self.rng.chance(0.25) {
            self.show_some_payload(from, to);
        }
        let pieces = if self.rng.chance(0.25) {
            1 + self.rng.below(4)
        } else {
            1
        };
        for _ in 0..pieces {
            if !self.is_blocked(from, to) {
                self.land_front(from, to);
            }
        }
    }

    /// Planted bugs that change the order of a queue.
    fn disorder(&mut self, from: usize, to: usize) {
        let overtaking = if self.link(from, to).shared {
            self.planted(PlantedBug::StoresOutOfOrder)
        } else {
            self.planted(PlantedBug::Overtaking)
        };
        let across = self.planted(PlantedBug::OvertakingSegments);
        let queue = &mut self.links[from][to].queue;
        if overtaking {
            let ahead = self.rng.below(queue.len());
            queue.swap(0, ahead);
        }
        if across && self.rng.chance(0.25) {
            // The first piece of another segment passes all of this one's.
            let segment = |piece: &Piece| piece.spot().map(|spot| spot.segment);
            let front = queue.front().and_then(|(_, piece)| segment(piece));
            let other =
                |(_, piece): &(u64, Piece)| segment(piece).is_some_and(|at| Some(at) != front);
            let passing = queue.iter().position(other);
            if let Some(piece) = passing.and_then(|at| queue.remove(at)) {
                queue.push_front(piece);
            }
        }
    }

    pub(super) fn land_front(&mut self, from: usize, to: usize) {
        let Some((operation, piece)) = self.link(from, to).queue.pop_front() else {
            return;
        };
        let shared = self.link(from, to).shared;
        if !shared && piece.spot().is_some_and(|spot| !self.is_open(spot)) {
            return; // only by a planted bug
        }
        if shared && matches!(piece, Piece::Word { .. } | Piece::Sleep(_)) {
            // A release store: the payload written before it shows with it.
            self.show_all_payload(from, to);
            let node = &mut self.nodes[from];
            node.newest_shown = node.newest_shown.max(operation);
        }
        match piece {
            Piece::Word { spot, at, value } => {
                let late = !shared && self.planted(PlantedBug::LateWord);
                let late = late.then(|| self.source(spot).load(at as usize));
                self.write(spot, at as usize, late.unwrap_or(value));
            }
            Piece::Range { spot, words } => self.land_range(operation, spot, words),
            Piece::Payload { spot, at, len } => self.show_payload(spot, at as usize, len as usize),
            Piece::Sleep(word) => self.land_sleep_word(from, to, word),
            Piece::Doorbell => self.wake(to),
        }
    }

    /// Lands some words of a range, any of them, and puts the rest back.
    fn land_range(&mut self, operation: u64, spot: Spot, mut words: Vec<(u32, Option<u64>)>) {
        let some = 1 + self.rng.below(words.len() / 4 + 1);
        for _ in 0..some.min(words.len()) {
            let (at, value) = words.swap_remove(self.rng.below(words.len()));
            let at_byte = at as usize;
            let value = value.unwrap_or_else(|| self.source(spot).load(at_byte));
            if self.planted(PlantedBug::TornWord) && self.rng.chance(0.3) {
                let old = self.copy(spot).load(at_byte);
                let low = u64::from(u32::MAX);
                self.write(spot, at_byte, old & !low | value & low);
                words.push((at, Some(value)));
            } else {
                self.write(spot, at_byte, value);
            }
        }
        if !words.is_empty() {
            let nodes = &self.segments[spot.segment].nodes;
            let (from, to) = (nodes[spot.row], nodes[spot.reader]);
            let front = (operation, Piece::Range { spot, words });
            self.link(from, to).queue.push_front(front);
        }
    }

    /// Some payload shows before anybody asked for it.
    fn show_some_payload(&mut self, from: usize, to: usize) {
        let Some(&spot) = self.rng.pick(&self.links[from][to].spots) else {
            return;
        };
        let words = self.source(spot).len() / 8;
        let at = self.rng.below(words) * 8;
        let len = 8 * (1 + self.rng.below(8));
        self.show_payload(spot, at, len);
    }

    /// The payload of all segments of a pair, as it stands now.
    fn show_all_payload(&self, from: usize, to: usize) {
        for &spot in &self.links[from][to].spots {
            self.show_payload(spot, 0, usize::MAX);
        }
    }

    /// The payload of a range, as it stands now, shows through shared memory.
    fn show_payload(&self, spot: Spot, at: usize, len: usize) {
        let (source, copy) = (self.source(spot), self.copy(spot));
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
            let stored = &self.segments[spot.segment].ends[spot.row].stored[words];
            for ((now, then), _) in pairs.zip(stored).filter(|(_, stored)| !**stored) {
                then.store(now.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }

    /// The only way of a word into a copy.
    fn write(&mut self, spot: Spot, at: usize, value: u64) {
        let who = (spot.row as u64) << 32 | spot.reader as u64;
        self.note(&[5, spot.segment as u64, who, at as u64, value]);
        self.copy(spot).store(at, value);
    }

    /// What left `from` for `to` up to an operation lands now.
    pub(super) fn flush(&mut self, from: usize, to: usize, last: u64) {
        while let Some(&(operation, _)) = self.link(from, to).queue.front()
            && operation <= last
        {
            self.land_front(from, to);
        }
    }

    pub(super) fn settle(&mut self) {
        for link in self.links.iter_mut().flatten() {
            link.held = false;
        }
        while self.step() {}
    }
}
