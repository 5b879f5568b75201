//! A participant in its group: engine, threads, and how they end.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use spindle_dds_core::{Engine, Handle, Lane, Outcome, SubgroupId};
use spindle_dds_transport::{Fabric, Park, Rank};

use super::bell::Bells;
use super::crew::{self, Crew};
use super::fate::Fate;
use super::poll;
use super::room::Room;
use super::sink::Sink;
use crate::error::{Error, Result};
use crate::properties::WaitPolicy;

/// What threads and writers of an enabled participant share.
pub(crate) struct Session<F: Fabric> {
    engine: Engine<F, Sink<F>>,
    handle: Handle<F>,
    /// By subgroup, ascending.
    lanes: Box<[Arc<Lane<F>>]>,
    room: Room,
    /// When the engine's time began.
    since: Instant,
    fate: Arc<Fate>,
    bells: Arc<Bells>,
    pub(super) left: Arc<ArrayQueue<Rank>>,
    /// Takes this member out of the domain's record.
    depart: fn(&F),
    stopping: AtomicBool,
    /// The last handle is gone: the polling thread leaves as soon as it can.
    leaving: AtomicBool,
    wake_ups: AtomicU64,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// How long `close` waits for the last messages to be on their way.
const LEAVE_WITHIN: Duration = Duration::from_secs(10);
/// How long `close` waits for a listener that is running.
const LISTENER_WITHIN: Duration = Duration::from_secs(1);

impl<F: Fabric> fmt::Debug for Session<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

impl<F: Park> Session<F> {
    pub(crate) fn new(
        engine: Engine<F, Sink<F>>,
        fate: Arc<Fate>,
        bells: Arc<Bells>,
        left: Arc<ArrayQueue<Rank>>,
        depart: fn(&F),
    ) -> Arc<Self> {
        let handle = engine.handle();
        let subgroups = handle.subgroups();
        let lanes = subgroups.iter().filter_map(|id| handle.lane(*id));
        Arc::new(Self {
            lanes: lanes.collect(),
            room: Room::new(subgroups.into_iter()),
            since: Instant::now(),
            handle,
            engine,
            fate,
            bells,
            left,
            depart,
            stopping: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            wake_ups: AtomicU64::new(0),
            threads: Mutex::default(),
        })
    }

    /// The threads begin: one polls, one calls listeners, one wakes.
    pub(crate) fn begin(
        self: &Arc<Self>,
        crew: Crew,
        wait: WaitPolicy,
        dispatch: impl FnOnce(&Self) + Send + 'static,
        wake: impl FnOnce(&Self) + Send + 'static,
    ) {
        let [polling, dispatching, waking] = [0; 3].map(|_| self.clone());
        *self.threads() = crew.begin([
            Box::new(move || poll::run(&polling, wait)),
            Box::new(move || dispatch(&dispatching)),
            Box::new(move || wake(&waking)),
        ]);
    }

    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn handle(&self) -> &Handle<F> {
        &self.handle
    }

    /// The lane of a subgroup that this participant is in.
    pub(crate) fn lane(&self, subgroup: SubgroupId) -> Option<&Arc<Lane<F>>> {
        let at = self
            .lanes
            .binary_search_by_key(&subgroup, |lane| lane.subgroup());
        Some(&self.lanes[at.ok()?])
    }

    pub(super) fn engine(&self) -> &Engine<F, Sink<F>> {
        &self.engine
    }

    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    pub(crate) fn fate(&self) -> &Arc<Fate> {
        &self.fate
    }

    pub(super) fn bells(&self) -> &Bells {
        &self.bells
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(super) fn woke_up(&self) {
        self.wake_ups.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn wake_ups(&self) -> u64 {
        self.wake_ups.load(Ordering::Relaxed)
    }

    /// One step of the engine, by any thread. `None` when another one steps.
    pub(super) fn step(&self) -> Option<Outcome> {
        let now = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let outcome = self.engine.step(now)?;
        if outcome.stopped {
            self.room.notify_all();
        } else if outcome.room || outcome.stable {
            let changes = |subgroup| self.lane(subgroup).map_or(0, |lane| lane.changes());
            self.room.notify(changes);
        }
        Some(outcome)
    }

    /// What was committed goes out.
    pub(super) fn publish(&self, lane: &Arc<Lane<F>>) {
        self.engine.publish(lane);
    }

    /// Leaves the group and ends the threads. Blocks shortly.
    pub(crate) fn close(&self) -> Result<()> {
        self.fate.close();
        let left = self.leave(|since| since.elapsed() < LEAVE_WITHIN);
        self.stop();
        crew::join(std::mem::take(&mut *self.threads()), LISTENER_WITHIN);
        if let Some(reason) = self.fate.failure() {
            return Err(Error::Error(reason.to_owned()));
        }
        if !left {
            let text = "the last messages could not be sent; the others will see a failure";
            return Err(Error::Error(text.to_owned()));
        }
        Ok(())
    }

    /// The same as far as it goes without blocking.
    pub(crate) fn abandon(&self) {
        if self.is_stopping() {
            return;
        }
        self.fate.close();
        if self.try_to_leave() {
            self.stop();
            return;
        }
        // Somebody steps just now, or samples are out that lie in rings.
        self.leaving.store(true, Ordering::SeqCst);
        self.handle.fabric().nudge();
    }

    /// Whether the polling thread is to leave.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::SeqCst)
    }

    /// The polling thread leaves, if it can by now.
    pub(super) fn leave_at_last(&self) {
        if self.try_to_leave() {
            self.stop();
        }
    }

    fn try_to_leave(&self) -> bool {
        let left = self.engine.leave();
        if left {
            (self.depart)(self.handle.fabric());
        }
        left
    }

    fn leave(&self, mut go_on: impl FnMut(Instant) -> bool) -> bool {
        let since = Instant::now();
        loop {
            if self.try_to_leave() {
                return true;
            }
            if !go_on(since) {
                return false;
            }
            self.step();
            thread::yield_now();
        }
    }

    fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.room.notify_all();
        self.handle.fabric().nudge();
        self.bells.listeners.ring();
        self.bells.wakers.ring();
    }
}
