//! Steps of the network: which write lands next, and how.

use core::sync::atomic::Ordering;

use super::link::{InFlight, RowCopy};
use super::segment::{MemberRef, OpenPhase};
use super::state::State;

/// The bucket in which the news of a segment are found. There are few, so that segments share one.
pub(super) const fn news_bucket(segment: usize) -> u8 {
    (segment % 5) as u8
}

/// Rows are compared in blocks of this many bytes, because most of them are equal.
const BLOCK: usize = 1024;

impl State {
    /// Whether something of a pair can land now.
    fn has_work(&self, from: usize, to: usize) -> bool {
        let link = &self.links[from][to];
        !link.queue.is_empty() && !link.held && !self.is_blocked(from, to)
    }

    /// Whether the front is for a segment that the receiver has not opened yet. (Shared
    /// memory exists whether it is opened or not.)
    fn is_blocked(&self, from: usize, to: usize) -> bool {
        let link = &self.links[from][to];
        let front = link.queue.front().and_then(|(_, piece)| piece.target());
        !link.shared && front.is_some_and(|target| !self.is_open(target))
    }

    fn is_open(&self, target: RowCopy) -> bool {
        let (segment, rank) = (target.segment, target.reader);
        self.endpoint(MemberRef { segment, rank }).phase == OpenPhase::Open
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
        self.wake_spuriously();
        // A failure is reported late more often than early.
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

    fn wake_spuriously(&mut self) {
        if self.rng.chance(self.options.spurious_wakes) {
            let node = self.rng.below(self.nodes.len());
            self.wake(node);
        }
    }

    /// Lands the front of a pair's queue, sometimes a few elements.
    fn land(&mut self, from: usize, to: usize) {
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

    pub(super) fn land_front(&mut self, from: usize, to: usize) {
        let Some((operation, piece)) = self.link(from, to).queue.pop_front() else {
            return;
        };
        let shared = self.link(from, to).shared;
        if shared && matches!(piece, InFlight::Word { .. } | InFlight::Sleep(_)) {
            // A release store: the payload written before it becomes visible with it.
            self.show_all_payload(from, to);
            let node = &mut self.nodes[from];
            node.newest_shown = node.newest_shown.max(operation);
        }
        match piece {
            InFlight::Word { target, at, value } => self.write(target, at as usize, value),
            InFlight::Range { target, words } => self.land_range(operation, target, words),
            InFlight::Payload { target, at, len } => {
                self.show_payload(target, at as usize, len as usize)
            }
            InFlight::Sleep(word) => self.land_sleep_word(from, to, word),
            InFlight::Doorbell => self.wake(to),
            InFlight::News(bucket) => self.nodes[to].news.insert(bucket),
        }
    }

    /// Lands some words of a range, in any order, and puts the rest back.
    fn land_range(&mut self, operation: u64, target: RowCopy, mut words: Vec<(u32, Option<u64>)>) {
        let some = 1 + self.rng.below(words.len() / 4 + 1);
        for _ in 0..some.min(words.len()) {
            let (at, value) = words.swap_remove(self.rng.below(words.len()));
            let at_byte = at as usize;
            let value = value.unwrap_or_else(|| self.source(target).load(at_byte));
            self.write(target, at_byte, value);
        }
        if !words.is_empty() {
            let nodes = &self.segments[target.segment].nodes;
            let (from, to) = (nodes[target.row], nodes[target.reader]);
            let front = (operation, InFlight::Range { target, words });
            self.link(from, to).queue.push_front(front);
        }
    }

    /// Some payload becomes visible before it is pushed.
    fn show_some_payload(&mut self, from: usize, to: usize) {
        let Some(&target) = self.rng.pick(&self.links[from][to].targets) else {
            return;
        };
        let words = self.source(target).len() / 8;
        let at = self.rng.below(words) * 8;
        let len = 8 * (1 + self.rng.below(8));
        self.show_payload(target, at, len);
    }

    /// The payload of all segments of a pair becomes visible as it is now.
    fn show_all_payload(&self, from: usize, to: usize) {
        for &target in &self.links[from][to].targets {
            self.show_payload(target, 0, usize::MAX);
        }
    }

    /// The payload of a range becomes visible through shared memory as it is now.
    fn show_payload(&self, target: RowCopy, at: usize, len: usize) {
        let (source, copy) = (self.source(target), self.copy(target));
        let end = at.saturating_add(len).min(source.len());
        for at in (at..end).step_by(BLOCK) {
            let len = BLOCK.min(end - at);
            // SAFETY: in bounds. Members and network are stepped by one thread, so nothing
            // writes while the two are compared.
            let now = unsafe { source.bytes(at, len) };
            // SAFETY: as above.
            if now == unsafe { copy.bytes(at, len) } {
                continue;
            }
            let words = at / 8..(at + len) / 8;
            let pairs = source.words()[words.clone()]
                .iter()
                .zip(&copy.words()[words.clone()]);
            let stored = &self.segments[target.segment].endpoints[target.row].stored[words];
            for ((now, then), _) in pairs.zip(stored).filter(|(_, stored)| !**stored) {
                then.store(now.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }

    /// Writes a word into a copy; all writes to copies go through here.
    fn write(&mut self, target: RowCopy, at: usize, value: u64) {
        let pair = (target.row as u64) << 32 | target.reader as u64;
        self.note(&[5, target.segment as u64, pair, at as u64, value]);
        self.copy(target).store(at, value);
        let segment = &self.segments[target.segment];
        let (from, to) = (segment.nodes[target.row], segment.nodes[target.reader]);
        // Of shared memory the receiver hears by the sender's word.
        if !segment.control && !self.links[from][to].shared {
            self.nodes[to].news.insert(news_bucket(target.segment));
        }
    }

    /// Lands everything that left `from` for `to` up to operation `last`.
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
