//! A participant in its group: engine, threads, and how they end.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use spindle_dds_core::membership::{Detection, MemberId, Rules, View};
use spindle_dds_core::{DeliveryClass, Engine, EngineConfig, EngineHandle, StepOutcome};
use spindle_dds_transport::fork::OwnerProcess;
use spindle_dds_transport::{Fabric, ParkSlots, WakeInterest};

use crate::driver::endpoints::announced_matches::AnnouncedMatches;
use crate::driver::endpoints::local_endpoints::LocalEndpoints;
use crate::driver::endpoints::view_matcher::ViewMatcher;
use crate::driver::group_status::GroupStatus;
use crate::driver::receive::sink::Sink;
use crate::driver::send::waiters::SendWaiters;
use crate::driver::threads::control_queue::{ControlEvent, ControlQueue};
use crate::driver::threads::join::join;
use crate::driver::threads::spawn::DISPATCH_THREAD;
use crate::driver::waiting::backoff::BackoffLimits;
use crate::driver::waiting::engine_clock::Clock;
use crate::driver::waiting::followers::Followers;
use crate::driver::waiting::notifier::Notifier;
use crate::driver::waiting::polling_pause::PollingPause;
use crate::error::{Error, Result};
use crate::history::{HistoryService, LogService};
use crate::properties::WaitPolicy;
use crate::wire::Wire;

/// What threads and writers of an enabled participant share.
pub(crate) struct Session {
    engine: Engine<Wire, Sink>,
    handle: EngineHandle<Wire>,
    send_waiters: Arc<SendWaiters>,
    history: Arc<HistoryService>,
    logs: Arc<LogService>,
    /// Heartbeat timeout: a member that is silent for longer is suspected.
    limit: Duration,
    /// The engine's time, in nanoseconds since the session began.
    clock: Clock,
    group_status: Arc<GroupStatus>,
    /// How often the participant had lost its group when the session began.
    outages: u32,
    notifier: Arc<Notifier>,
    control_queue: Arc<ControlQueue>,
    stopping: AtomicBool,
    pause: PollingPause,
    wake_ups: AtomicU64,
    wakes_without_work: AtomicU64,
    followers: Followers,
    threads: Mutex<Vec<JoinHandle<()>>>,
    owner: OwnerProcess,
}

/// The identity of this participant, and what it begins with.
#[derive(Debug)]
pub(crate) struct SessionStart {
    pub(crate) id: MemberId,
    /// Heartbeat timeout: a member that is silent for longer is suspected.
    pub(crate) limit: Duration,
    /// Whether it goes on without a majority of the view.
    pub(crate) prefer_availability: bool,
    /// How threads wait.
    pub(crate) wait: WaitPolicy,
    pub(crate) engine: EngineConfig,
    pub(crate) first: Arc<View>,
    /// Numbers of writers, and the sequence numbers after which they go on.
    pub(crate) writers: Vec<(u32, u64)>,
}

/// What a participant keeps from session to session.
#[derive(Debug, Clone)]
pub(crate) struct Lasting {
    pub(crate) local_endpoints: Arc<LocalEndpoints>,
    pub(crate) group_status: Arc<GroupStatus>,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) send_waiters: Arc<SendWaiters>,
    pub(crate) history: Arc<HistoryService>,
    pub(crate) logs: Arc<LogService>,
}

/// How long `close` waits for the view without this member, beyond the heartbeat timeout: that
/// view may have to exclude a member that has failed, too.
const LEAVE_WITHIN: Duration = Duration::from_secs(10);
/// How often [`repeat_until`] yields before it sleeps between tries: the thread that steps may
/// need the processor, and have too low a priority to get it by a yield.
const YIELDS_MAX: u32 = 100;
const PREPARE_NAP: Duration = Duration::from_micros(20);
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
    /// Over a private segment of the participant, in which its threads sleep.
    pub(crate) fn new(
        sleep_segment: Wire,
        start: SessionStart,
        lasting: Lasting,
        control_queue: Arc<ControlQueue>,
    ) -> Arc<Self> {
        let Lasting {
            local_endpoints,
            group_status,
            notifier,
            send_waiters,
            history,
            logs,
        } = lasting;
        let me = (start.id, group_status.outages());
        let matcher = ViewMatcher::new(local_endpoints, me, (history.clone(), logs.clone()));
        let sink = Sink::new(
            matcher,
            group_status.clone(),
            notifier.clone(),
            control_queue.clone(),
            (history.clone(), logs.clone()),
        );
        let engine = Engine::new(sleep_segment, start.engine, sink);
        let handle = engine.handle();
        // No other thread has the engine yet.
        let _ = engine.with_sink(|sink| sink.set_handle(handle.clone()));
        let limit = u64::try_from(start.limit.as_nanos()).unwrap_or(u64::MAX);
        let mut rules = Rules::new(Detection {
            timeout_ns: limit,
            // As long as the control thread waits for segments.
            preparation_ns: limit,
        });
        rules.prefer_availability = start.prefer_availability;
        engine.enter(start.id, start.first, rules);
        engine.go_on_after(&start.writers);
        Arc::new(Self {
            send_waiters,
            history,
            logs,
            limit: start.limit,
            clock: Clock::new(),
            handle,
            engine,
            outages: group_status.outages(),
            group_status,
            notifier,
            control_queue,
            stopping: AtomicBool::new(false),
            pause: PollingPause::default(),
            wake_ups: AtomicU64::new(0),
            wakes_without_work: AtomicU64::new(0),
            followers: Followers::new(BackoffLimits::of(start.wait)),
            threads: Mutex::default(),
            owner: OwnerProcess::this(),
        })
    }

    pub(crate) fn threads(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn handle(&self) -> &EngineHandle<Wire> {
        &self.handle
    }

    #[inline]
    pub(crate) fn engine(&self) -> &Engine<Wire, Sink> {
        &self.engine
    }

    pub(crate) fn send_waiters(&self) -> &Arc<SendWaiters> {
        &self.send_waiters
    }

    pub(crate) fn history(&self) -> &HistoryService {
        &self.history
    }

    pub(crate) fn logs(&self) -> &LogService {
        &self.logs
    }

    pub(crate) fn group_status(&self) -> &Arc<GroupStatus> {
        &self.group_status
    }

    /// How often the participant had lost its group when the session began.
    pub(crate) fn outages(&self) -> u32 {
        self.outages
    }

    /// Whether the group has ended for this session. The participant may be in another session
    /// already.
    pub(crate) fn is_over(&self) -> bool {
        self.group_status.check().is_err() || self.group_status.outages() != self.outages
    }

    /// The view that began last; `None` once the group has ended for this session.
    pub(crate) fn view(&self) -> Option<Arc<View>> {
        self.control_queue.view().filter(|_| !self.is_over())
    }

    pub(crate) fn notifier(&self) -> &Notifier {
        &self.notifier
    }

    pub(crate) fn control_queue(&self) -> &ControlQueue {
        &self.control_queue
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Whether this process has inherited it by `fork`.
    pub(crate) fn is_inherited(&self) -> bool {
        self.owner.is_inherited()
    }

    pub(crate) fn pause(&self) -> &PollingPause {
        &self.pause
    }

    /// Pauses the polling thread until [`resume_polling`](Self::resume_polling), for measurements
    /// and tests. If the caller steps `alone`, threads that wait for data do not step either.
    pub(crate) fn pause_polling(&self, alone: bool) {
        // The polling thread may be asleep.
        self.pause.begin(alone, || self.handle.fabric().nudge());
        self.handle.fabric().set_polled(false);
    }

    /// See [`pause_polling`](Self::pause_polling).
    pub(crate) fn resume_polling(&self) {
        self.handle.fabric().set_polled(true);
        self.pause.end();
    }

    pub(crate) fn woke_up(&self) {
        self.wake_ups.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn wake_ups(&self) -> u64 {
        self.wake_ups.load(Ordering::Relaxed)
    }

    /// Called with the outcome of the first step after a doorbell has woken a thread.
    pub(crate) fn note_work_after_wake(&self, outcome: Option<StepOutcome>) {
        // `None`: another thread steps, for what woke this one, too.
        if outcome.is_some_and(|outcome| !outcome.progress && !outcome.stopped) {
            self.wakes_without_work.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn wakes_without_work(&self) -> u64 {
        self.wakes_without_work.load(Ordering::Relaxed)
    }

    /// The engine's time, in nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Spins for less than a microsecond.
    pub(crate) fn linger(&self) {
        self.clock.linger();
    }

    /// The same, where each member may have a processor (why: see
    /// [`poll_on_read`](crate::driver::waiting::poll_on_read)).
    pub(crate) fn linger_if_roomy(&self) {
        if !self.is_crowded() {
            self.linger();
        }
    }

    /// How often a thread steps in vain before it sleeps.
    pub(crate) fn backoff_limits(&self) -> BackoffLimits {
        let limits = self.followers.backoff_limits();
        match self.is_crowded() {
            true => limits.crowded(),
            false => limits,
        }
    }

    pub(crate) fn followers(&self) -> &Followers {
        &self.followers
    }

    /// Hands the sink what the view that begins next means to the local endpoints. Waits while
    /// another thread steps.
    pub(super) fn prepare(&self, announced: AnnouncedMatches) {
        let mut announced = Some(announced);
        let mut hand_over = |sink: &mut Sink| announced.take().map(|it| sink.prepare(it));
        repeat_until(|| self.engine.with_sink(&mut hand_over).is_some());
    }

    /// The participant cannot go on in its group, for this reason. Waits for commits that are under
    /// way.
    pub(crate) fn fail(&self, why: &str) {
        repeat_until(|| self.engine.stop(why.to_owned()));
    }

    /// A subgroup takes nothing any more, as the group has stopped. Waits until it is told why.
    pub(crate) fn wait_for_reason(&self) {
        repeat_until(|| {
            // Wakes no waiting thread: the calling thread may be one, and hold their lock.
            let _ = self.engine.step_briefly(self.now());
            self.is_over()
        });
    }

    /// Work before a thread sleeps. Returns whether there is more; `None` while another thread
    /// steps.
    pub(crate) fn upkeep(&self) -> Option<bool> {
        self.engine.with_sink(|sink| sink.relieve())
    }

    /// How often readers have asked for samples whose samples stay in a ring that is nearly full;
    /// the inner `None` if there is no such ring. The outer `None` while another thread steps.
    pub(crate) fn selects_if_nearly_full(&self) -> Option<Option<u64>> {
        self.engine.with_sink(|sink| sink.selects_if_nearly_full())
    }

    /// After a sleep that no doorbell ended: copies samples out of rings that are nearly full if
    /// their readers have not asked for any since `selects_if_nearly_full` returned `before`.
    pub(crate) fn copy_out_neglected(&self, woken: bool, before: Option<u64>) {
        if let (false, Some(before)) = (woken, before) {
            let _ = self
                .engine
                .with_sink(|sink| sink.copy_out_neglected(before));
        }
    }

    /// One step of the engine, by any thread. `None` while another thread steps.
    pub(crate) fn step(&self) -> Option<StepOutcome> {
        self.step_at(self.now())
    }

    /// Receives, and then the same for a thread that steps again at once, and does not sleep after
    /// this step.
    pub(crate) fn step_briefly(&self) -> Option<StepOutcome> {
        self.handle.fabric().receive();
        self.step_briefly_at(self.now())
    }

    /// Receives, and then one step of a thread that steps again and again. If it has just woken, the
    /// step polls all subgroups: any of them may have woken it.
    pub(crate) fn step_repeatedly(&self, has_woken: bool) -> Option<StepOutcome> {
        self.handle.fabric().receive();
        match has_woken {
            true => self.step(),
            false => self.step_briefly_at(self.now()),
        }
    }

    /// [`step_briefly`](Self::step_briefly), with the engine's time.
    pub(crate) fn step_briefly_at(&self, now: u64) -> Option<StepOutcome> {
        self.notify_waiters(self.engine.step_briefly(now)?)
    }

    /// [`step`](Self::step), with the engine's time.
    pub(crate) fn step_at(&self, now: u64) -> Option<StepOutcome> {
        self.notify_waiters(self.engine.step(now)?)
    }

    /// Wakes threads that wait for what a step has brought.
    fn notify_waiters(&self, outcome: StepOutcome) -> Option<StepOutcome> {
        if outcome.stopped || self.control_queue.subgroups_changed() {
            self.send_waiters.wake_all();
        } else if outcome.room || outcome.stable || self.waits_for_acceptance(&outcome) {
            // Another group numbers its epochs from 1, too.
            let session = u64::from(self.outages).rotate_left(48);
            self.send_waiters.wake_changed(|subgroup| {
                let subgroup = self.handle.subgroup(subgroup);
                subgroup.map_or(0, |subgroup| {
                    let releases = subgroup.releases(DeliveryClass::Ordered);
                    let changes = subgroup.changes().wrapping_add(releases);
                    session ^ subgroup.epoch().rotate_left(32) ^ changes
                })
            });
        }
        Some(outcome)
    }

    /// Whether anything waits for a release of a single member: a step does not say that one came.
    fn waits_for_acceptance(&self, outcome: &StepOutcome) -> bool {
        outcome.want == WakeInterest::Room && self.send_waiters.has_acceptance_waits()
    }

    /// Blocks until the first view has begun.
    pub(crate) fn wait_begun(&self) -> Result<()> {
        if self.control_queue.wait_begun() {
            return Ok(());
        }
        self.group_status.check()?;
        let reason = self.group_status.never_began();
        let reason = reason.unwrap_or_else(|| "the group was left before it began".to_owned());
        Err(Error::Error(reason))
    }

    /// Leaves the group and ends the threads. Blocks shortly.
    pub(crate) fn close(&self) -> Result<()> {
        self.abandon();
        let left = self.control_queue.wait_ended(LEAVE_WITHIN + self.limit);
        self.end_threads();
        if let Some(reason) = self.group_status.failure() {
            return Err(Error::Error(reason.to_owned()));
        }
        if !left {
            let text = "the others did not agree in time; they will see a failure";
            return Err(Error::Error(text.to_owned()));
        }
        Ok(())
    }

    /// Ends the threads, but not the calling one. Waits shortly.
    pub(crate) fn end_threads(&self) {
        self.stop();
        join(std::mem::take(&mut *self.threads()), LISTENER_WITHIN);
    }

    /// Ends the threads that do not call user code, and returns the others: they end when they
    /// return from it. The calling thread, which is one of them, goes on.
    pub(crate) fn retire(&self) -> Vec<JoinHandle<()>> {
        self.stop();
        let me = thread::current().id();
        let threads = std::mem::take(&mut *self.threads());
        let calls_back = |it: &JoinHandle<()>| {
            it.thread().id() == me || it.thread().name() == Some(DISPATCH_THREAD)
        };
        let (later, now): (Vec<_>, Vec<_>) = threads.into_iter().partition(calls_back);
        join(now, Duration::MAX);
        later
    }

    /// The same without blocking: the threads leave and end by themselves.
    pub(crate) fn abandon(&self) {
        self.group_status.close();
        self.control_queue.put(ControlEvent::Leave);
        self.send_waiters.wake_all();
        self.stop_if_over();
    }

    /// Stops the threads when both have happened: the group has ended, and the application knows.
    /// After a failure, listeners are still called until the application leaves, or until the
    /// participant is back. Called after each of the two events, so the later call stops.
    pub(crate) fn stop_if_over(&self) {
        let goes_on = self.group_status.failure().is_some() || self.group_status.is_out();
        let is_known = self.group_status.is_closed() || !goes_on;
        if is_known && self.control_queue.has_ended() {
            self.stop();
        }
    }

    fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.pause.end();
        self.send_waiters.wake_all();
        self.handle.fabric().nudge();
        self.handle.fabric().wake_poller();
        self.control_queue.wake();
        self.notifier.dispatching.notify();
        self.notifier.waking.notify();
    }
}

/// Repeats what soon succeeds: other threads have to go on first.
fn repeat_until(mut attempt: impl FnMut() -> bool) {
    let mut yields = 0;
    while !attempt() {
        if yields < YIELDS_MAX {
            yields += 1;
            thread::yield_now();
        } else {
            thread::sleep(PREPARE_NAP);
        }
    }
}
