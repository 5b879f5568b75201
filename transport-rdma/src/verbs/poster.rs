//! Turns pushes into chains of work requests, and posts them.

use std::collections::VecDeque;
use std::sync::Arc;

use super::control_message::{ControlMessage, RemoteRow};
use super::fetched::Fetched;
use super::link_counters::LinkCounters;
use super::open_segments::{Destination, OpenSegments, ProtocolViolation};
use super::send_slots::SendSlots;
use super::sys::{Chain, Memory, Outcome, QueuePair, Remote, Request, status_text};
use crate::fabric::WakeReason;
use crate::push_queue::{OwnSegment, Push, PushQueue, SLOTS};
use crate::station::segment::SegmentKey;

/// Most work requests that are posted by one call.
const CHAIN_MAX: usize = 128;

/// Most bytes of one write; a longer range takes several.
const WRITE_LEN_MAX: usize = 1 << 20;

/// Registered memory that is kept for a segment as long as the peer may write to it.
#[derive(Debug)]
pub(super) struct SegmentMemory {
    /// My row.
    pub(super) row: Arc<Memory>,
    /// My copy of the peer's row, to which it writes.
    pub(super) _copy: Memory,
}

/// A segment whose slot is open in the queue.
#[derive(Debug)]
struct BoundSegment {
    key: SegmentKey,
    row: Arc<Memory>,
    destination: Destination,
    fetched: Fetched,
}

/// Posts work requests to one queue pair.
#[derive(Debug)]
pub(super) struct Poster {
    pair: Arc<QueuePair>,
    /// Where my sleep word goes at the peer. `None` until connected; nothing is posted before.
    line: Option<Remote>,
    chain: Chain,
    /// Bytes of rows in the chain.
    bytes: usize,
    /// Work requests of the current batch, since its last word.
    of_batch: usize,
    write_len_max: usize,
    slots: SendSlots,
    /// By slot.
    bound: Vec<Option<BoundSegment>>,
    pub(super) segments: OpenSegments<SegmentMemory>,
    /// Messages that are sent ahead of the pushes that wait.
    pub(super) express: VecDeque<ControlMessage>,
    /// Rows that are kept until the given work request is complete.
    retired: VecDeque<(u64, Arc<Memory>)>,
    /// The completion channel reports the next completion.
    armed: bool,
    state: PostState,
}

/// Why not everything was posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PostState {
    No,
    /// Waits for free slots.
    Slots,
    /// Waits until the peer has opened a segment, or the queue pair is connected.
    Peer,
}

impl Poster {
    /// `write_len_max` is the limit of the port.
    pub(super) fn new(pair: &Arc<QueuePair>, write_len_max: usize) -> Self {
        let inline = pair.capacity.inline as usize & !7;
        Self {
            pair: Arc::clone(pair),
            line: None,
            chain: Chain::new(CHAIN_MAX, inline),
            bytes: 0,
            of_batch: 0,
            write_len_max: write_len_max.min(WRITE_LEN_MAX) & !7,
            slots: SendSlots::new(pair.capacity.sends),
            bound: Vec::with_capacity(SLOTS),
            segments: OpenSegments::default(),
            express: VecDeque::new(),
            retired: VecDeque::new(),
            armed: false,
            state: PostState::No,
        }
    }

    /// The queue pair is connected.
    pub(super) fn connected(&mut self, line: Remote) {
        self.line = Some(line);
    }

    pub(super) fn waits(&self) -> PostState {
        self.state
    }

    /// Posts as much as possible of what waits. `tell` is a sleep word to send, or 0; it is
    /// returned if there was no room for it. With `attentive`, completions are to be reported
    /// to the completion thread, because an error is one. After an error the queue pair is
    /// unusable.
    pub(super) fn post(
        &mut self,
        queue: &mut PushQueue,
        mut tell: u64,
        attentive: bool,
        counters: &LinkCounters,
    ) -> Result<Option<u64>, String> {
        let Some(line) = self.line else {
            self.state = PostState::Peer;
            return Ok(None);
        };
        let waited = self.state == PostState::Slots;
        if self.slots.free() < CHAIN_MAX as u64 {
            self.reap(counters)?;
        }
        loop {
            self.chain.clear();
            self.bytes = 0;
            if tell != 0 && self.has_room() {
                let to = line;
                self.add(&Request::Word { value: tell, to }, false);
                counters.sleep_word_posted();
                tell = 0;
            }
            self.state = self.fill(queue, line, counters);
            if tell != 0 {
                self.state = PostState::Slots;
            }
            if !self.chain.is_empty() {
                let posted = self.pair.post(&mut self.chain);
                posted.map_err(|error| format!("its queue pair takes no work: {error}"))?;
                counters.posted(self.chain.len(), self.bytes);
                if self.state == PostState::No && self.chain.is_full() {
                    continue;
                }
            }
            let listens = self.state == PostState::Slots
                || !self.retired.is_empty()
                || attentive && !self.slots.is_still();
            if listens && !self.armed {
                let armed = self.pair.sends.arm();
                armed.map_err(|error| format!("its completions are not told: {error}"))?;
                self.armed = true;
            }
            if listens {
                // Completions that arrived before the queue was armed are not reported.
                self.reap(counters)?;
            }
            if self.state != PostState::Slots || self.slots.free() == 0 {
                break;
            }
        }
        if self.state == PostState::Slots && !waited {
            counters.waited();
        }
        Ok((tell != 0).then_some(tell))
    }

    fn has_room(&self) -> bool {
        !self.chain.is_full() && self.slots.free() > 0
    }

    /// Appends a work request to the chain; returns its id.
    fn add(&mut self, request: &Request<'_>, told: bool) -> u64 {
        let (id, signals) = self.slots.take(told);
        self.chain.add(request, id, signals);
        id
    }

    /// Fills the chain with what can be sent.
    fn fill(&mut self, queue: &mut PushQueue, line: Remote, counters: &LinkCounters) -> PostState {
        while self.has_room()
            && let Some(message) = self.express.pop_front()
        {
            let told = matches!(message, ControlMessage::Over { .. });
            self.add(&Request::Message(&message.encode()), told);
        }
        while self.has_room() {
            let waits = match queue.front() {
                None => return PostState::No,
                Some(&(Push::Range { slot, .. } | Push::Word { slot, .. })) => {
                    self.destination(slot) == Destination::NotYet
                }
                Some(_) => false,
            };
            if waits {
                return PostState::Peer;
            }
            if queue.begins_batch() {
                self.of_batch = 0;
            }
            match queue.take(self.write_len_max) {
                Some(Push::Range { slot, at, len }) => self.add_range(slot, at, len),
                Some(Push::Word { slot, at, value }) => {
                    if let Destination::To(place) = self.destination(slot) {
                        let to = place.to.at(at);
                        self.add(&Request::Word { value, to }, false);
                        self.bytes += 8;
                        counters.vouched(self.of_batch + 1);
                        self.of_batch = 0;
                    }
                }
                Some(Push::Wake(reason)) => {
                    let number = reason as u32;
                    // The last write of the chain carries it, if there is one.
                    if !self.chain.add_doorbell(number) {
                        self.add(&Request::Doorbell { number, to: line }, false);
                    }
                    counters.doorbell_sent();
                }
                Some(Push::Open(own)) => self.bind(&own),
                Some(Push::Shut { slot }) => self.unbind(slot),
                // Messages are taken in parts.
                Some(Push::Messages(_)) | None => return PostState::No,
            }
        }
        let all = queue.is_empty() && self.express.is_empty();
        match all || self.slots.free() > 0 {
            true => PostState::No,
            false => PostState::Slots,
        }
    }

    fn destination(&self, slot: u16) -> Destination {
        let bound = self.bound.get(usize::from(slot));
        bound.map_or(Destination::Over, |bound| {
            bound
                .as_ref()
                .map_or(Destination::Over, |it| it.destination)
        })
    }

    fn add_range(&mut self, slot: u16, at: usize, len: usize) {
        let Some(Some(bound)) = self.bound.get_mut(usize::from(slot)) else {
            return;
        };
        let Destination::To(place) = bound.destination else {
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

    fn bind(&mut self, own: &Arc<OwnSegment>) {
        let slot = usize::from(own.slot);
        if self.bound.len() <= slot {
            self.bound.resize_with(slot + 1, || None);
        }
        let (key, destination) = (own.key, self.segments.destination(own.key));
        self.bound[slot] = self.segments.kept(key).map(|kept| BoundSegment {
            key,
            row: Arc::clone(&kept.row),
            destination,
            fetched: Fetched::default(),
        });
    }

    fn unbind(&mut self, slot: u16) {
        let Some(bound) = self.bound.get_mut(usize::from(slot)).and_then(Option::take) else {
            return;
        };
        let (says, kept) = self.segments.end(bound.key);
        if says {
            let over = ControlMessage::Over { key: bound.key };
            let id = self.add(&Request::Message(&over.encode()), true);
            self.retired.push_back((id, bound.row));
        }
        drop(kept);
    }

    /// Sends OVER for segments that will not be opened here.
    pub(super) fn end(&mut self, keys: &[SegmentKey]) {
        for &key in keys {
            if self.segments.end(key).0 {
                self.express.push_back(ControlMessage::Over { key });
            }
        }
    }

    /// Handles OPEN from the peer; `is_over` if the segment will not be opened here.
    pub(super) fn peer_opened(
        &mut self,
        key: SegmentKey,
        place: RemoteRow,
        is_over: bool,
    ) -> Result<(), String> {
        let said = self.segments.peer_opened(key, place);
        said.map_err(|violation| violation.to_string())?;
        self.check(key)?;
        self.update_destination(key);
        if is_over {
            self.end(&[key]);
        }
        Ok(())
    }

    /// Handles OVER from the peer.
    pub(super) fn peer_ended(&mut self, key: SegmentKey) -> Result<(), ProtocolViolation> {
        drop(self.segments.peer_ended(key)?);
        self.update_destination(key);
        Ok(())
    }

    fn update_destination(&mut self, key: SegmentKey) {
        let destination = self.segments.destination(key);
        let bound = self.bound.iter_mut().flatten();
        bound
            .filter(|it| it.key == key)
            .for_each(|it| it.destination = destination);
    }

    /// Checks that my row has the length of its copy at the peer.
    pub(super) fn check(&self, key: SegmentKey) -> Result<(), String> {
        match (self.segments.destination(key), self.segments.kept(key)) {
            (Destination::To(place), Some(kept)) if place.len != kept.row.region().len() as u64 => {
                let (there, here) = (place.len, kept.row.region().len());
                Err(format!("it has {there} bytes for a row of {here} bytes"))
            }
            _ => Ok(()),
        }
    }

    /// The channel has reported: it must be armed again.
    pub(super) fn heard(&mut self) {
        self.armed = false;
    }

    /// Takes completions.
    pub(super) fn reap(&mut self, counters: &LinkCounters) -> Result<(), String> {
        let (slots, mut fault) = (&mut self.slots, None);
        let taken = self.pair.sends.poll(|done| match done.what {
            Outcome::Failed(status) => drop(fault.get_or_insert(status)),
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

    /// Whether completions may have arrived. An error completes a work request, whether it
    /// was signalled or not.
    pub(super) fn awaits(&self) -> bool {
        !self.slots.is_still()
    }

    /// Whether all that was posted is complete. If not, a signalled request is posted, so
    /// that this is reported.
    pub(super) fn is_still(&mut self, counters: &LinkCounters) -> Result<bool, String> {
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

    /// Number of work requests so far.
    #[cfg(test)]
    pub(super) fn posted(&self) -> u64 {
        self.slots.posted()
    }

    #[cfg(test)]
    pub(super) fn retired(&self) -> usize {
        self.retired.len()
    }
}

const REASONS: [WakeReason; 3] = [WakeReason::Room, WakeReason::Stability, WakeReason::Data];

/// The wake reason with this number in an immediate value.
pub(super) fn reason_of(number: u32) -> Option<WakeReason> {
    REASONS.into_iter().find(|&reason| reason as u32 == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_reasons_have_numbers() {
        for reason in REASONS {
            assert_eq!(reason_of(reason as u32), Some(reason));
        }
        assert_eq!(reason_of(3), None);
    }
}
