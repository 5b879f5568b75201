//! What turns pushes into chains of work requests, and posts them.

use std::collections::VecDeque;
use std::sync::Arc;

use super::counters::Counters;
use super::fetched::Fetched;
use super::ledger::{Ledger, Nonsense, Way};
use super::message::{Message, Place};
use super::slots::Slots;
use super::sys::{Chain, Memory, QueuePair, Remote, Request, What, status_text};
use crate::fabric::WakeReason;
use crate::queue::{Own, Push, Pushes, SLOTS};
use crate::segment::SegmentKey;

/// Work requests that are posted by one call, at most.
const CHAIN_MAX: usize = 128;

/// Bytes of one write, at most: longer ranges go in several.
const WRITE_LEN_MAX: usize = 1 << 20;

/// Kept for a segment as long as the peer may write to it.
#[derive(Debug)]
pub(super) struct Kept {
    /// My row.
    pub(super) row: Arc<Memory>,
    /// My copy of the peer's: where it writes.
    pub(super) _copy: Memory,
}

/// A segment whose pushes may come next in the queue.
#[derive(Debug)]
struct Bound {
    key: SegmentKey,
    row: Arc<Memory>,
    way: Way,
    fetched: Fetched,
}

/// Who posts to one queue pair.
#[derive(Debug)]
pub(super) struct Poster {
    pair: Arc<QueuePair>,
    /// Where the peer wants my sleep word, once it is known: nothing is posted before.
    line: Option<Remote>,
    chain: Chain,
    /// Bytes of rows in it.
    bytes: usize,
    /// Work requests of the batch so far, since its last word.
    of_batch: usize,
    write_len_max: usize,
    slots: Slots,
    /// By slot.
    bound: Vec<Option<Bound>>,
    pub(super) ledger: Ledger<Kept>,
    /// Messages that wait for nothing but slots.
    pub(super) express: VecDeque<Message>,
    /// Rows that are of no use but to work requests up to the given one.
    retired: VecDeque<(u64, Arc<Memory>)>,
    /// The completion channel tells when something is complete.
    armed: bool,
    state: Waits,
}

/// Why not all was posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    No,
    /// Until slots are free.
    Slots,
    /// Until the peer has made a segment, or the queue pair is connected.
    Peer,
}

impl Poster {
    /// `write_len_max` is what the port can.
    pub(super) fn new(pair: &Arc<QueuePair>, write_len_max: usize) -> Self {
        let inline = pair.capacity.inline as usize & !7;
        Self {
            pair: Arc::clone(pair),
            line: None,
            chain: Chain::new(CHAIN_MAX, inline),
            bytes: 0,
            of_batch: 0,
            write_len_max: write_len_max.min(WRITE_LEN_MAX) & !7,
            slots: Slots::new(pair.capacity.sends),
            bound: Vec::with_capacity(SLOTS),
            ledger: Ledger::default(),
            express: VecDeque::new(),
            retired: VecDeque::new(),
            armed: false,
            state: Waits::No,
        }
    }

    /// The queue pair is up.
    pub(super) fn connected(&mut self, line: Remote) {
        self.line = Some(line);
    }

    pub(super) fn waits(&self) -> Waits {
        self.state
    }

    /// Posts what it can of what waits. `tell` is a sleep word that is due, or 0: given
    /// back if there was no room for it. `attentive`: that what is complete is to be
    /// noticed by the thread, which an error is, too. An error is the end of the queue pair.
    pub(super) fn post(
        &mut self,
        queue: &mut Pushes,
        mut tell: u64,
        attentive: bool,
        counters: &Counters,
    ) -> Result<Option<u64>, String> {
        let Some(line) = self.line else {
            self.state = Waits::Peer;
            return Ok(None);
        };
        let waited = self.state == Waits::Slots;
        if self.slots.free() < CHAIN_MAX as u64 {
            self.reap(counters)?;
        }
        loop {
            self.chain.clear();
            self.bytes = 0;
            if tell != 0 && self.has_room() {
                let to = line;
                self.add(&Request::Word { value: tell, to }, false);
                counters.told();
                tell = 0;
            }
            self.state = self.fill(queue, line, counters);
            if tell != 0 {
                self.state = Waits::Slots;
            }
            if !self.chain.is_empty() {
                let posted = self.pair.post(&mut self.chain);
                posted.map_err(|error| format!("its queue pair takes no work: {error}"))?;
                counters.posted(self.chain.len(), self.bytes);
                if self.state == Waits::No && self.chain.is_full() {
                    continue;
                }
            }
            let listens = self.state == Waits::Slots
                || !self.retired.is_empty()
                || attentive && !self.slots.is_still();
            if listens && !self.armed {
                let armed = self.pair.sends.arm();
                armed.map_err(|error| format!("its completions are not told: {error}"))?;
                self.armed = true;
            }
            if listens {
                // Also what has come before it was armed.
                self.reap(counters)?;
            }
            if self.state != Waits::Slots || self.slots.free() == 0 {
                break;
            }
        }
        if self.state == Waits::Slots && !waited {
            counters.waited();
        }
        Ok((tell != 0).then_some(tell))
    }

    fn has_room(&self) -> bool {
        !self.chain.is_full() && self.slots.free() > 0
    }

    /// Appends to the chain.
    fn add(&mut self, request: &Request<'_>, told: bool) -> u64 {
        let (id, signals) = self.slots.take(told);
        self.chain.add(request, id, signals);
        id
    }

    /// Fills the chain, as far as it goes.
    fn fill(&mut self, queue: &mut Pushes, line: Remote, counters: &Counters) -> Waits {
        while self.has_room()
            && let Some(message) = self.express.pop_front()
        {
            let told = matches!(message, Message::Over { .. });
            self.add(&Request::Message(&message.encode()), told);
        }
        while self.has_room() {
            let waits = match queue.front() {
                None => return Waits::No,
                Some(&(Push::Range { slot, .. } | Push::Word { slot, .. })) => {
                    self.way(slot) == Way::NotYet
                }
                Some(_) => false,
            };
            if waits {
                return Waits::Peer;
            }
            if queue.begins_batch() {
                self.of_batch = 0;
            }
            match queue.take(self.write_len_max) {
                Some(Push::Range { slot, at, len }) => self.add_range(slot, at, len),
                Some(Push::Word { slot, at, value }) => {
                    if let Way::To(place) = self.way(slot) {
                        let to = place.to.at(at);
                        self.add(&Request::Word { value, to }, false);
                        self.bytes += 8;
                        counters.vouched(self.of_batch + 1);
                        self.of_batch = 0;
                    }
                }
                Some(Push::Wake(ring)) => {
                    let number = ring as u32;
                    // What was pushed before it carries it.
                    if !self.chain.ring(number) {
                        self.add(&Request::Ring { number, to: line }, false);
                    }
                    counters.rang();
                }
                Some(Push::Open(own)) => self.bind(&own),
                Some(Push::Shut { slot }) => self.unbind(slot),
                None => return Waits::No,
            }
        }
        let all = queue.is_empty() && self.express.is_empty();
        match all || self.slots.free() > 0 {
            true => Waits::No,
            false => Waits::Slots,
        }
    }

    fn way(&self, slot: u16) -> Way {
        let bound = self.bound.get(usize::from(slot));
        bound.map_or(Way::Over, |bound| {
            bound.as_ref().map_or(Way::Over, |it| it.way)
        })
    }

    fn add_range(&mut self, slot: u16, at: usize, len: usize) {
        let Some(Some(bound)) = self.bound.get_mut(usize::from(slot)) else {
            return;
        };
        let Way::To(place) = bound.way else {
            return;
        };
        let (to, completed) = (place.to.at(at), self.slots.completed());
        let now = len <= self.chain.inline_len() && !bound.fetched.may_touch(at, len, completed);
        let (id, signals) = self.slots.take(false);
        let from = &*bound.row;
        let request = match now {
            true => Request::WriteNow { from, at, len, to },
            false => Request::Write { from, at, len, to },
        };
        self.chain.add(&request, id, signals);
        if !now {
            bound.fetched.add(at, len, id, completed);
        }
        self.bytes += len;
        self.of_batch += 1;
    }

    fn bind(&mut self, own: &Arc<Own>) {
        let slot = usize::from(own.slot);
        if self.bound.len() <= slot {
            self.bound.resize_with(slot + 1, || None);
        }
        let (key, way) = (own.key, self.ledger.way(own.key));
        self.bound[slot] = self.ledger.kept(key).map(|kept| Bound {
            key,
            row: Arc::clone(&kept.row),
            way,
            fetched: Fetched::default(),
        });
    }

    fn unbind(&mut self, slot: u16) {
        let Some(bound) = self.bound.get_mut(usize::from(slot)).and_then(Option::take) else {
            return;
        };
        let (says, kept) = self.ledger.end(bound.key);
        if says {
            let over = Message::Over { key: bound.key };
            let id = self.add(&Request::Message(&over.encode()), true);
            self.retired.push_back((id, bound.row));
        }
        drop(kept);
    }

    /// OVER is due for segments that will not be made.
    pub(super) fn end(&mut self, keys: &[SegmentKey]) {
        for &key in keys {
            if self.ledger.end(key).0 {
                self.express.push_back(Message::Over { key });
            }
        }
    }

    /// The peer says OPEN; `is_over` that this segment will not be made here.
    pub(super) fn hear_open(
        &mut self,
        key: SegmentKey,
        place: Place,
        is_over: bool,
    ) -> Result<(), String> {
        let said = self.ledger.hear_open(key, place);
        said.map_err(|nonsense| nonsense.to_string())?;
        self.check(key)?;
        self.set_way(key);
        if is_over {
            self.end(&[key]);
        }
        Ok(())
    }

    /// The peer says OVER.
    pub(super) fn hear_over(&mut self, key: SegmentKey) -> Result<(), Nonsense> {
        drop(self.ledger.hear_over(key)?);
        self.set_way(key);
        Ok(())
    }

    fn set_way(&mut self, key: SegmentKey) {
        let way = self.ledger.way(key);
        let bound = self.bound.iter_mut().flatten();
        bound.filter(|it| it.key == key).for_each(|it| it.way = way);
    }

    /// Whether my row fits its copy at the peer.
    pub(super) fn check(&self, key: SegmentKey) -> Result<(), String> {
        match (self.ledger.way(key), self.ledger.kept(key)) {
            (Way::To(place), Some(kept)) if place.len != kept.row.region().len() as u64 => {
                let (there, here) = (place.len, kept.row.region().len());
                Err(format!("it has {there} bytes for a row of {here} bytes"))
            }
            _ => Ok(()),
        }
    }

    /// The channel has told: it is to be asked again.
    pub(super) fn heard(&mut self) {
        self.armed = false;
    }

    /// Takes what is complete.
    pub(super) fn reap(&mut self, counters: &Counters) -> Result<(), String> {
        let (slots, mut fault) = (&mut self.slots, None);
        let taken = self.pair.sends.poll(|done| match done.what {
            What::Failed(status) => drop(fault.get_or_insert(status)),
            _ => slots.complete(done.id),
        });
        let taken = taken.map_err(|error| error.to_string())?;
        counters.completed(taken);
        if let Some(status) = fault {
            return Err(format!("a write to it failed: {}", status_text(status)));
        }
        let completed = self.slots.completed();
        while self.retired.front().is_some_and(|&(id, _)| id <= completed) {
            self.retired.pop_front();
        }
        Ok(())
    }

    /// Whether completions may have come that nobody has taken: an error is one, whether
    /// it was signalled or not.
    pub(super) fn awaits(&self) -> bool {
        !self.slots.is_still()
    }

    /// Whether all that was posted is known to be complete. Has the rest tell when it is.
    pub(super) fn is_still(&mut self, counters: &Counters) -> Result<bool, String> {
        self.reap(counters)?;
        if let Some(to) = self.line
            && !self.slots.is_still()
            && !self.slots.awaits()
            && self.slots.free() > 0
        {
            self.chain.clear();
            self.add(&Request::Nothing { to }, true);
            let posted = self.pair.post(&mut self.chain);
            posted.map_err(|error| error.to_string())?;
        }
        Ok(self.slots.is_still())
    }

    /// Work requests so far.
    #[cfg(test)]
    pub(super) fn posted(&self) -> u64 {
        self.slots.posted()
    }

    #[cfg(test)]
    pub(super) fn retired(&self) -> usize {
        self.retired.len()
    }
}

/// A ring, as its number stands in an immediate value.
pub(super) fn ring_of(number: u32) -> Option<WakeReason> {
    [WakeReason::Acks, WakeReason::Data]
        .into_iter()
        .find(|&ring| ring as u32 == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_have_numbers() {
        for ring in [WakeReason::Acks, WakeReason::Data] {
            assert_eq!(ring_of(ring as u32), Some(ring));
        }
        assert_eq!(ring_of(2), None);
    }
}
