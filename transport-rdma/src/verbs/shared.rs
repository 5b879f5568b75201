//! State shared by a station's RDMA transport, its segments and its completion thread.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::control_message::ControlMessage;
use super::device::Device;
use super::hooks::Hooks;
use super::link::{RdmaLink, Role};
use super::sys::Channel;
use crate::fabric::WakeReason;
use crate::fabric::peers::PEERS_MAX;
use crate::push_queue::Full;
use crate::station::segment::SegmentKey;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) links: BTreeMap<u128, Arc<RdmaLink>>,
    /// The same links, as a snapshot for iterating without the lock.
    list: Arc<[Arc<RdmaLink>]>,
    next_link: u64,
    /// Segments that are open here.
    open: BTreeSet<SegmentKey>,
    /// The newest epoch in which a segment was opened. An older segment that is not open
    /// will not be opened any more.
    epoch: u64,
    /// Segments of this epoch or later that will not be opened any more.
    closed: BTreeSet<SegmentKey>,
    slots: BTreeSet<u16>,
    stopped: bool,
}

impl State {
    pub(super) fn is_over(&self, key: SegmentKey) -> bool {
        let waits = key.epoch >= self.epoch && !self.closed.contains(&key);
        !waits && !self.open.contains(&key)
    }

    /// Registers an open segment and returns its slot. Older segments may be over by that:
    /// see `end_overdue`.
    pub(super) fn open_segment(&mut self, key: SegmentKey) -> Result<u16, &'static str> {
        if self.open.contains(&key) || self.is_over(key) {
            return Err("it is there already, or it is over");
        }
        let free = (0..=u16::MAX).find(|slot| !self.slots.contains(slot));
        let slot = free.ok_or("there are 65536 segments")?;
        self.slots.insert(slot);
        self.open.insert(key);
        self.epoch = self.epoch.max(key.epoch);
        let epoch = self.epoch;
        self.closed.retain(|gone| gone.epoch >= epoch);
        Ok(slot)
    }

    /// The segment is dropped, or will not be opened.
    pub(super) fn close_segment(&mut self, key: SegmentKey) {
        self.open.remove(&key);
        if key.epoch >= self.epoch {
            self.closed.insert(key);
        }
    }

    pub(super) fn return_slot(&mut self, slot: u16) {
        self.slots.remove(&slot);
    }

    fn changed(&mut self) {
        self.list = self.links.values().cloned().collect();
    }
}

pub(super) struct Shared {
    pub(super) device: Device,
    pub(super) channel: Arc<Channel>,
    /// The event descriptor that ends the completion thread.
    pub(super) kick: OwnedFd,
    patience: Duration,
    hooks: Hooks,
    state: Mutex<State>,
    /// The sleeper of this process has announced.
    asleep: AtomicBool,
    /// Doorbells that woke a thread here.
    pub(super) woken: AtomicU64,
}

impl core::fmt::Debug for Shared {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shared")
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(
        device: Device,
        channel: Arc<Channel>,
        kick: OwnedFd,
        patience: Duration,
        hooks: Hooks,
    ) -> Self {
        Self {
            device,
            channel,
            kick,
            patience,
            hooks,
            state: Mutex::default(),
            asleep: AtomicBool::new(false),
            woken: AtomicU64::new(0),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn links(&self) -> Arc<[Arc<RdmaLink>]> {
        Arc::clone(&self.state().list)
    }

    pub(super) fn link(&self, peer: u128) -> Option<Arc<RdmaLink>> {
        self.state().links.get(&peer).cloned()
    }

    fn link_of_number(&self, number: u64) -> Option<Arc<RdmaLink>> {
        let links = self.links();
        links.iter().find(|link| link.number == number).cloned()
    }

    pub(super) fn add(&self, peer: u128, role: Role) -> Result<Arc<RdmaLink>, String> {
        let mut state = self.state();
        let number = state.next_link;
        state.next_link += 1;
        drop(state);
        let link = Arc::new(RdmaLink::new(
            &self.device,
            &self.channel,
            number,
            peer,
            role,
        )?);
        let mut state = self.state();
        let refusal = if state.stopped {
            Some("the station has been closed")
        } else if state.links.contains_key(&peer) {
            Some("it has a queue pair already")
        } else if state.links.len() >= PEERS_MAX {
            Some("there are too many queue pairs")
        } else {
            None
        };
        if let Some(refusal) = refusal {
            drop(state);
            return Err(refusal.to_owned());
        }
        state.links.insert(peer, Arc::clone(&link));
        state.changed();
        Ok(link)
    }

    pub(super) fn connect(&self, link: &RdmaLink, theirs: &[u8]) -> Result<(), String> {
        link.connect(&self.device, theirs, self.patience)?;
        if link.role == Role::Offers {
            self.say(link, ControlMessage::Hello);
        }
        Ok(())
    }

    /// Closes the queue pair of a peer, if there is one.
    pub(super) fn close(&self, peer: u128) {
        let mut state = self.state();
        let link = state.links.remove(&peer);
        state.changed();
        drop(state);
        if let Some(link) = link {
            link.told.store(true, Ordering::Release);
            link.close();
        }
    }

    /// Closes all queue pairs, and adds no more.
    pub(super) fn stop(&self) {
        self.state().stopped = true;
        self.links().iter().for_each(|link| self.close(link.peer));
    }

    /// A queue pair has failed; reported once.
    pub(super) fn fail(&self, link: &RdmaLink, reason: String) {
        if !link.told.swap(true, Ordering::AcqRel) {
            (self.hooks.failed)(link.peer, reason);
        }
    }

    /// Handles the result of sending.
    pub(super) fn sent(&self, link: &RdmaLink, sent: Result<(), String>) {
        if let Err(reason) = sent {
            self.fail(link, reason);
        }
    }

    /// Handles the result of appending to a queue.
    pub(super) fn put(&self, link: &RdmaLink, put: Result<bool, Full>) {
        match put {
            Ok(false) => {}
            Ok(true) => self.sent(link, link.outgoing.send(self.is_asleep())),
            Err(Full { waiting }) => {
                let reason = format!("it takes too little: {waiting} records wait for it already");
                self.fail(link, reason);
            }
        }
    }

    /// Sends a message ahead of the pushes that wait.
    pub(super) fn say(&self, link: &RdmaLink, message: ControlMessage) {
        if let Some(poster) = &mut *link.outgoing.poster() {
            poster.express.push_back(message);
        }
        self.sent(link, link.outgoing.send(self.is_asleep()));
    }

    pub(super) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// Queues a doorbell for a peer that sleeps, or may sleep, if pushes to it need one. It
    /// is sent with the batch.
    pub(super) fn wake_if_due(&self, link: &RdmaLink) -> bool {
        // Pairs with the fence of `announce_sleep`: either this thread sees that the process
        // sleeps, or the sleeper sees the reason that was noted.
        fence(Ordering::SeqCst);
        let due = link.sleep.due(link.sleep_word(), self.is_asleep());
        if let Some(reason) = due {
            self.put(link, link.outgoing.put_wake(reason).map(|()| false));
        }
        due.is_some()
    }

    pub(super) fn announce_sleep(&self, word: u64) {
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        for link in self.links().iter() {
            link.outgoing.tell(word);
            self.wake_if_due(link);
            self.sent(link, link.outgoing.send(true));
        }
    }

    pub(super) fn announce_awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    pub(super) fn poll(&self) {
        let list = match self.state.try_lock() {
            Ok(state) => Arc::clone(&state.list),
            // A peer is being added or removed: the next poll will do.
            Err(TryLockError::WouldBlock) => return,
            Err(TryLockError::Poisoned(poisoned)) => Arc::clone(&poisoned.into_inner().list),
        };
        let asleep = self.is_asleep();
        for link in list.iter() {
            let sent = match self.wake_if_due(link) {
                true => link.outgoing.end_batch(asleep),
                false => link.outgoing.upkeep(asleep),
            };
            self.sent(link, sent);
        }
    }

    /// Called by the completion thread: a completion queue has an entry.
    pub(super) fn handle_completions(&self, number: u64) {
        let Some(link) = self.link_of_number(number >> 1) else {
            return;
        };
        match number & 1 == 0 {
            true => {
                // Received at once, because a thread may have to be woken; and again, because
                // completions that arrived before the queue was armed are not reported.
                let received = self.receive(&link);
                let armed = received.and_then(|()| link.arm());
                if let Err(reason) = armed.and_then(|()| self.receive(&link)) {
                    // A failure of sending is the better reason for both.
                    self.sent(&link, link.outgoing.go_on(self.is_asleep()));
                    self.fail(&link, reason);
                }
            }
            false => self.sent(&link, link.outgoing.go_on(self.is_asleep())),
        }
    }

    fn receive(&self, link: &RdmaLink) -> Result<(), String> {
        let received = link.receive()?;
        self.take(link, received.messages, received.wake);
        // Counted last: a reader of the count sees the effects.
        link.outgoing.counters.heard(received.peer_wakes);
        Ok(())
    }

    fn take(&self, link: &RdmaLink, messages: Vec<ControlMessage>, reason: Option<WakeReason>) {
        for message in messages {
            if let Err(reason) = self.hear(link, message) {
                return self.fail(link, reason);
            }
        }
        if let Some(reason) = reason {
            let before = self.woken.load(Ordering::Relaxed);
            (self.hooks.wake)(reason, &self.woken);
            let woken = self.woken.load(Ordering::Relaxed) - before;
            link.outgoing.counters.slept_on(woken);
        }
    }

    fn hear(&self, link: &RdmaLink, message: ControlMessage) -> Result<(), String> {
        match message {
            ControlMessage::Hello => {
                if !link.is_proved.swap(true, Ordering::AcqRel) {
                    if link.role == Role::Answers {
                        self.say(link, ControlMessage::Hello);
                    }
                    (self.hooks.proved)(link.peer);
                }
                return Ok(());
            }
            ControlMessage::Open { key, place } => {
                // Locked, so that a segment that ends at the same time is seen as over here,
                // or finds what the peer has opened.
                let state = self.state();
                let is_over = state.is_over(key);
                if let Some(poster) = &mut *link.outgoing.poster() {
                    poster.peer_opened(key, place, is_over)?;
                }
                drop(state);
            }
            ControlMessage::Over { key } => {
                if let Some(poster) = &mut *link.outgoing.poster() {
                    let heard = poster.peer_ended(key);
                    heard.map_err(|violation| violation.to_string())?;
                }
            }
        }
        link.outgoing.send(self.is_asleep())
    }

    /// Called by the completion thread when the device has events.
    pub(super) fn handle_device_events(&self) {
        while let Some(event) = self.device.context.next_event() {
            let device = self.device.context.name();
            tracing::debug!(device, event = event.text, "an RDMA event");
            let reason = || format!("the RDMA device {device} says: {}", event.text);
            for link in self.links().iter() {
                if event.is_fatal || event.about == Some(link.number) {
                    self.fail(link, reason());
                }
            }
        }
    }

    /// Sends OVER for segments that peers have opened and that will not be made here.
    pub(super) fn end_overdue(&self, state: &State) {
        for link in state.links.values() {
            if let Some(poster) = &mut *link.outgoing.poster() {
                let keys = poster.segments.overdue(|key| state.is_over(key));
                poster.end(&keys);
            }
        }
    }
}
