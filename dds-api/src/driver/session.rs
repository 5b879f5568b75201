//! A participant in its group: engine, threads, and how they end.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use spindle_dds_core::membership::{Detection, MemberId, Rules, View};
use spindle_dds_core::{Claim, ClaimError, Engine, EngineConfig, Handle, Meta, Outcome};
use spindle_dds_transport::{Fabric, ParkSlots};

use super::bell::Bells;
use super::clock::Clock;
use super::control::Control;
use super::crew::{self, Crew};
use super::desk::{Desk, News};
use super::fate::Fate;
use super::hold::Hold;
use super::poll::{self, Patience};
use super::room::Room;
use super::seat::Seat;
use super::sink::Sink;
use crate::condition::Couch;
use crate::discovery::{Matcher, Roll};
use crate::error::{Error, Result};
use crate::properties::WaitPolicy;
use crate::wire::Wire;

/// What threads and writers of an enabled participant share.
pub(crate) struct Session {
    engine: Engine<Wire, Sink>,
    handle: Handle<Wire>,
    room: Room,
    /// Whoever gives no sign of life for so long is taken for failed.
    limit: Duration,
    /// When the engine's time began.
    clock: Clock,
    fate: Arc<Fate>,
    bells: Arc<Bells>,
    desk: Arc<Desk>,
    stopping: AtomicBool,
    hold: Hold,
    wake_ups: AtomicU64,
    seat: Seat,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Who this participant is, and with what it begins.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) id: MemberId,
    /// Whoever gives no sign of life for so long is taken for failed.
    pub(crate) limit: Duration,
    /// Whether it goes on without a majority.
    pub(crate) prefer_availability: bool,
    /// How threads wait.
    pub(crate) wait: WaitPolicy,
    pub(crate) engine: EngineConfig,
    pub(crate) first: Arc<View>,
}

/// How long `close` waits for the others to let this member go, beyond the time after
/// which one that says nothing has failed: the view without me may have to be without
/// that one, too.
const LEAVE_WITHIN: Duration = Duration::from_secs(10);
/// How long `close` waits for a listener that is running.
const LISTENER_WITHIN: Duration = Duration::from_secs(1);

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Over a bed: a private segment of the participant, in which it sleeps.
    pub(crate) fn new(
        bed: Wire,
        start: Start,
        roll: Arc<Roll>,
        fate: Arc<Fate>,
        bells: Arc<Bells>,
        desk: Arc<Desk>,
    ) -> Arc<Self> {
        let matcher = Matcher::new(roll, start.id);
        let sink = Sink::new(matcher, fate.clone(), bells.clone(), desk.clone());
        let engine = Engine::new(bed, start.engine, sink);
        let handle = engine.handle();
        // Nobody else steps it yet.
        let _ = engine.with_sink(|sink| sink.set_handle(handle.clone()));
        let limit = u64::try_from(start.limit.as_nanos()).unwrap_or(u64::MAX);
        let mut rules = Rules::new(Detection {
            limit,
            // As long as the control thread waits for segments.
            preparation: limit,
        });
        rules.prefer_availability = start.prefer_availability;
        engine.enter(start.id, start.first, rules);
        Arc::new(Self {
            room: Room::default(),
            limit: start.limit,
            clock: Clock::new(),
            handle,
            engine,
            fate,
            bells,
            desk,
            stopping: AtomicBool::new(false),
            hold: Hold::default(),
            wake_ups: AtomicU64::new(0),
            seat: Seat::new(Patience::of(start.wait)),
            threads: Mutex::default(),
        })
    }

    /// The threads begin: one polls, one goes from view to view, one calls
    /// listeners, one wakes.
    pub(crate) fn begin(
        self: &Arc<Self>,
        crew: Crew,
        control: Control,
        dispatch: impl FnOnce(&Self) + Send + 'static,
        wake: impl FnOnce(&Self) + Send + 'static,
    ) {
        let [polling, controlling, dispatching, waking] = [0; 4].map(|_| self.clone());
        let couch: Weak<dyn Couch> = Arc::downgrade(&(self.clone() as Arc<dyn Couch>));
        self.bells.set_couch(couch);
        let patience = self.seat.patience();
        *self.threads() = crew.begin([
            Box::new(move || poll::run(&polling, patience)),
            Box::new(move || control.run(&controlling)),
            Box::new(move || dispatch(&dispatching)),
            Box::new(move || wake(&waking)),
        ]);
    }

    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn handle(&self) -> &Handle<Wire> {
        &self.handle
    }

    pub(super) fn engine(&self) -> &Engine<Wire, Sink> {
        &self.engine
    }

    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    pub(crate) fn fate(&self) -> &Arc<Fate> {
        &self.fate
    }

    pub(crate) fn bells(&self) -> &Bells {
        &self.bells
    }

    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(super) fn hold(&self) -> &Hold {
        &self.hold
    }

    /// The polling thread stands still until [`release`](Self::release): for measurements,
    /// in which whoever calls this steps `alone`, and for tests.
    pub(crate) fn take_hold(&self, alone: bool) {
        // It may be asleep.
        self.hold.begin(alone, || self.handle.fabric().nudge());
    }

    /// See [`take_hold`](Self::take_hold).
    pub(crate) fn release(&self) {
        self.hold.end();
    }

    pub(super) fn woke_up(&self) {
        self.wake_ups.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn wake_ups(&self) -> u64 {
        self.wake_ups.load(Ordering::Relaxed)
    }

    /// Nanoseconds of the engine's time.
    pub(super) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Does nothing for a moment.
    pub(super) fn linger(&self) {
        self.clock.linger();
    }

    /// The same, where each member may have a processor (why: see [`glance`](super::glance)).
    pub(super) fn linger_if_roomy(&self) {
        if !self.is_crowded() {
            self.linger();
        }
    }

    pub(super) fn seat(&self) -> &Seat {
        &self.seat
    }

    /// Before somebody goes to sleep: whether there is more to do. `None` while another
    /// thread steps.
    pub(super) fn upkeep(&self) -> Option<bool> {
        self.engine.with_sink(|sink| sink.relieve())
    }

    /// Where somebody does go to sleep: how often samples have been asked for that fill a
    /// ring, if any do. `None` while another thread steps.
    pub(super) fn tight(&self) -> Option<Option<u64>> {
        self.engine.with_sink(|sink| sink.tight())
    }

    /// Who slept until then has woken: whether anybody has asked for those samples.
    pub(super) fn neglect(&self, rung: bool, tight: Option<u64>) {
        if let (false, Some(before)) = (rung, tight) {
            let _ = self.engine.with_sink(|sink| sink.neglect(before));
        }
    }

    /// One step of the engine, by any thread. `None` when another one steps.
    pub(crate) fn step(&self) -> Option<Outcome> {
        self.step_at(self.now())
    }

    /// The same for who looks again at once, and does not sleep on it.
    pub(super) fn step_briefly(&self) -> Option<Outcome> {
        self.step_briefly_at(self.now())
    }

    /// One step of those of who goes on and on, and `woke` just now: then what woke it may be
    /// in any lane.
    pub(super) fn step_on(&self, woke: bool) -> Option<Outcome> {
        match woke {
            true => self.step(),
            false => self.step_briefly(),
        }
    }

    /// [`step_briefly`](Self::step_briefly), with the engine's time.
    pub(super) fn step_briefly_at(&self, now: u64) -> Option<Outcome> {
        self.heed(self.engine.step_briefly(now)?)
    }

    /// One step, with the engine's time.
    pub(super) fn step_at(&self, now: u64) -> Option<Outcome> {
        self.heed(self.engine.step(now)?)
    }

    /// Lets threads that wait know what a step has brought them.
    fn heed(&self, outcome: Outcome) -> Option<Outcome> {
        if outcome.stopped || self.desk.lanes_changed() {
            self.room.notify_all();
        } else if outcome.room || outcome.stable {
            self.room.notify(|subgroup| {
                let lane = self.handle.lane(subgroup);
                lane.map_or(0, |lane| lane.epoch().rotate_left(32) ^ lane.changes())
            });
        }
        Some(outcome)
    }

    /// Commits a claim; it goes out.
    #[inline]
    pub(super) fn send(
        &self,
        claim: &mut Claim<Wire>,
        used: u32,
        meta: &Meta,
    ) -> std::result::Result<u64, ClaimError> {
        self.engine.send(claim, used, meta)
    }

    /// Blocks until the first view has begun.
    pub(crate) fn wait_begun(&self) -> Result<()> {
        if self.desk.wait_begun() {
            return Ok(());
        }
        self.fate.check()?;
        Err(Error::Error(
            "the group was left before it began".to_owned(),
        ))
    }

    /// Leaves the group and ends the threads. Blocks shortly.
    pub(crate) fn close(&self) -> Result<()> {
        self.abandon();
        let left = self.desk.wait_ended(LEAVE_WITHIN + self.limit);
        self.stop();
        crew::join(std::mem::take(&mut *self.threads()), LISTENER_WITHIN);
        if let Some(reason) = self.fate.failure() {
            return Err(Error::Error(reason.to_owned()));
        }
        if !left {
            let text = "the others did not agree in time; they will see a failure";
            return Err(Error::Error(text.to_owned()));
        }
        Ok(())
    }

    /// The same without blocking: the threads see to it.
    pub(crate) fn abandon(&self) {
        self.fate.close();
        self.desk.put(News::Leave);
        self.room.notify_all();
        self.stop_if_over();
    }

    /// When a group has failed, listeners are still called, until the application leaves.
    /// Called after either of the two has happened, so whoever is later stops.
    pub(super) fn stop_if_over(&self) {
        let told = self.fate.is_closed() || self.fate.failure().is_none();
        if told && self.desk.has_ended() {
            self.stop();
        }
    }

    fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.hold.end();
        self.room.notify_all();
        self.handle.fabric().nudge();
        self.handle.fabric().wake_poller();
        self.desk.call();
        self.bells.listeners.ring();
        self.bells.wakers.ring();
    }
}
