//! What a participant's part in RDMA, its segments and its thread share.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::core::Hooks;
use super::device::Device;
use super::link::{Link, Role};
use super::message::Message;
use super::sys::Channel;
use crate::fabric::WakeReason;
use crate::peers::MEMBERS_MAX;
use crate::queue::Full;
use crate::segment::SegmentKey;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) links: BTreeMap<u128, Arc<Link>>,
    /// The same, for those who go through them.
    list: Arc<[Arc<Link>]>,
    next_link: u64,
    /// Segments that are made.
    open: BTreeSet<SegmentKey>,
    /// The newest epoch of which there was one: what is older and not open will not be
    /// made any more.
    epoch: u64,
    /// Those of this epoch or later that will not be either.
    gone: BTreeSet<SegmentKey>,
    slots: BTreeSet<u16>,
    stopped: bool,
}

impl State {
    pub(super) fn is_over(&self, key: SegmentKey) -> bool {
        let waits = key.epoch >= self.epoch && !self.gone.contains(&key);
        !waits && !self.open.contains(&key)
    }

    /// A segment is made: its slot. Those of epochs that are over by that are to be ended.
    pub(super) fn admit(&mut self, key: SegmentKey) -> Result<u16, &'static str> {
        if self.open.contains(&key) || self.is_over(key) {
            return Err("it is there already, or it is over");
        }
        let free = (0..=u16::MAX).find(|slot| !self.slots.contains(slot));
        let slot = free.ok_or("there are 65536 segments")?;
        self.slots.insert(slot);
        self.open.insert(key);
        self.epoch = self.epoch.max(key.epoch);
        let epoch = self.epoch;
        self.gone.retain(|gone| gone.epoch >= epoch);
        Ok(slot)
    }

    /// It is there no more, or will not be.
    pub(super) fn dismiss(&mut self, key: SegmentKey) {
        self.open.remove(&key);
        if key.epoch >= self.epoch {
            self.gone.insert(key);
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
    /// Ends the thread.
    pub(super) kick: OwnedFd,
    patience: Duration,
    hooks: Hooks,
    state: Mutex<State>,
    /// My sleeper has announced itself.
    asleep: AtomicBool,
    /// Doorbells that woke somebody here.
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

    pub(super) fn links(&self) -> Arc<[Arc<Link>]> {
        Arc::clone(&self.state().list)
    }

    pub(super) fn link(&self, peer: u128) -> Option<Arc<Link>> {
        self.state().links.get(&peer).cloned()
    }

    fn link_of_number(&self, number: u64) -> Option<Arc<Link>> {
        let links = self.links();
        links.iter().find(|link| link.number == number).cloned()
    }

    pub(super) fn add(&self, peer: u128, role: Role) -> Result<Arc<Link>, String> {
        let mut state = self.state();
        let number = state.next_link;
        state.next_link += 1;
        drop(state);
        let link = Arc::new(Link::new(&self.device, &self.channel, number, peer, role)?);
        let mut state = self.state();
        let refusal = if state.stopped {
            Some("the station has been closed")
        } else if state.links.contains_key(&peer) {
            Some("it has a queue pair already")
        } else if state.links.len() >= MEMBERS_MAX - 1 {
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

    pub(super) fn connect(&self, link: &Link, theirs: &[u8]) -> Result<(), String> {
        link.connect(&self.device, theirs, self.patience)?;
        if link.role == Role::Offers {
            self.say(link, Message::Hello);
        }
        Ok(())
    }

    /// Ends the queue pair of a peer, if there is one.
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

    /// Nobody comes any more, and those who are there go.
    pub(super) fn stop(&self) {
        self.state().stopped = true;
        self.links().iter().for_each(|link| self.close(link.peer));
    }

    /// The queue pair has failed: told once.
    pub(super) fn fail(&self, link: &Link, reason: String) {
        if !link.told.swap(true, Ordering::AcqRel) {
            (self.hooks.failed)(link.peer, reason);
        }
    }

    /// What came of sending.
    pub(super) fn sent(&self, link: &Link, sent: Result<(), String>) {
        if let Err(reason) = sent {
            self.fail(link, reason);
        }
    }

    /// What came of putting something into a queue.
    pub(super) fn put(&self, link: &Link, put: Result<bool, Full>) {
        match put {
            Ok(false) => {}
            Ok(true) => self.sent(link, link.outgoing.send(self.is_asleep())),
            Err(Full { waiting }) => {
                let reason = format!("it takes too little: {waiting} records wait for it already");
                self.fail(link, reason);
            }
        }
    }

    /// Sends a message that waits for nothing.
    pub(super) fn say(&self, link: &Link, message: Message) {
        if let Some(poster) = &mut *link.outgoing.poster() {
            poster.express.push_back(message);
        }
        self.sent(link, link.outgoing.send(self.is_asleep()));
    }

    pub(super) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// Rings those of what was noted for them that sleep, or may. It is sent with the
    /// batch.
    pub(super) fn ring_if_due(&self, link: &Link) -> bool {
        // Pairs with that of `announce_sleep`: either this one sees that I sleep, or the
        // sleeper sees what was noted.
        fence(Ordering::SeqCst);
        let due = link.sleeper.due(link.sleep_word(), self.is_asleep());
        if let Some(ring) = due {
            self.put(link, link.outgoing.put_wake(ring).map(|()| false));
        }
        due.is_some()
    }

    pub(super) fn announce_sleep(&self, word: u64) {
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        for link in self.links().iter() {
            link.outgoing.tell(word);
            self.ring_if_due(link);
            self.sent(link, link.outgoing.send(true));
        }
    }

    pub(super) fn announce_awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    pub(super) fn poll(&self) {
        let list = match self.state.try_lock() {
            Ok(state) => Arc::clone(&state.list),
            // Somebody comes or goes: next time.
            Err(TryLockError::WouldBlock) => return,
            Err(TryLockError::Poisoned(poisoned)) => Arc::clone(&poisoned.into_inner().list),
        };
        let asleep = self.is_asleep();
        for link in list.iter() {
            let sent = match self.ring_if_due(link) {
                true => link.outgoing.end_batch(asleep),
                false => link.outgoing.upkeep(asleep),
            };
            self.sent(link, sent);
        }
    }

    /// By the thread: a completion queue has something.
    pub(super) fn attend(&self, number: u64) {
        let Some(link) = self.link_of_number(number >> 1) else {
            return;
        };
        match number & 1 == 0 {
            true => {
                // It looks at once, as somebody is to be woken; and once more, as of what
                // has come before the channel was armed again nobody tells.
                let received = self.receive(&link);
                let armed = received.and_then(|()| link.arm());
                if let Err(reason) = armed.and_then(|()| self.receive(&link)) {
                    // What is sent fails first, if that is why nothing comes.
                    self.sent(&link, link.outgoing.go_on(self.is_asleep()));
                    self.fail(&link, reason);
                }
            }
            false => self.sent(&link, link.outgoing.go_on(self.is_asleep())),
        }
    }

    fn receive(&self, link: &Link) -> Result<(), String> {
        let received = link.receive()?;
        self.take(link, received.messages, received.ring);
        // Last: who sees the count sees what came of it.
        link.outgoing.counters.heard(received.peer_wakes);
        Ok(())
    }

    fn take(&self, link: &Link, messages: Vec<Message>, ring: Option<WakeReason>) {
        for message in messages {
            if let Err(reason) = self.hear(link, message) {
                return self.fail(link, reason);
            }
        }
        if let Some(ring) = ring {
            let before = self.woken.load(Ordering::Relaxed);
            (self.hooks.wake)(ring, &self.woken);
            let woken = self.woken.load(Ordering::Relaxed) - before;
            link.outgoing.counters.slept_on(woken);
        }
    }

    fn hear(&self, link: &Link, message: Message) -> Result<(), String> {
        match message {
            Message::Hello => {
                if !link.is_proved.swap(true, Ordering::AcqRel) {
                    if link.role == Role::Answers {
                        self.say(link, Message::Hello);
                    }
                    (self.hooks.proved)(link.peer);
                }
                return Ok(());
            }
            Message::Open { key, place } => {
                // Held meanwhile: who ends a segment finds what was heard, or is found.
                let state = self.state();
                let is_over = state.is_over(key);
                if let Some(poster) = &mut *link.outgoing.poster() {
                    poster.hear_open(key, place, is_over)?;
                }
                drop(state);
            }
            Message::Over { key } => {
                if let Some(poster) = &mut *link.outgoing.poster() {
                    let heard = poster.hear_over(key);
                    heard.map_err(|nonsense| nonsense.to_string())?;
                }
            }
        }
        link.outgoing.send(self.is_asleep())
    }

    /// By the thread: something has happened to the device.
    pub(super) fn look_at_device(&self) {
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

    /// OVER is due for those that peers have opened and that will not be made here.
    pub(super) fn end_overdue(&self, state: &State) {
        for link in state.links.values() {
            if let Some(poster) = &mut *link.outgoing.poster() {
                let keys = poster.ledger.overdue(|key| state.is_over(key));
                poster.end(&keys);
            }
        }
    }
}
