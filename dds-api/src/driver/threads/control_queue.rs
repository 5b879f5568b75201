//! What the control thread has to do, and threads that wait until a view has begun or ended.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use spindle_dds_core::membership::{
    Decision, MemberId, Preparation, Proposal, Refusal, Request, View,
};
use spindle_dds_transport::StationTraffic;
use spindle_dds_transport::hybrid::{HybridError, PeerPath, Station};
use spindle_dds_transport::tcp::StreamCalls;

use crate::driver::threads::preparation::{first_epoch_afterwards, key_epoch};

/// An event for the control thread.
#[derive(Debug)]
pub(crate) enum ControlEvent {
    /// To be prepared before it is proposed.
    Prepare(Preparation),
    /// What is prepared is not needed any more.
    CallOff,
    /// To be decided in the domain's record.
    Decide(Decision),
    /// The group cannot do what was requested.
    Refused { request: Request, refusal: Refusal },
    /// A view has ended.
    Ended {
        next: Arc<View>,
        /// Digest of the decision that made the next view.
        digest: u64,
        /// The proposal that was agreed.
        proposal: Arc<Proposal>,
        /// The members that failed, and why.
        expelled: Vec<(MemberId, String)>,
    },
    /// The group has stopped.
    Stopped,
    /// The application wants to leave.
    Leave,
}

/// The queue of the control thread, and the stage that the group has reached. Its locks are held
/// for moments.
pub(crate) struct ControlQueue {
    events: Mutex<VecDeque<ControlEvent>>,
    /// The station whose wait is interrupted by an event; `None` when it is closed.
    station: RwLock<Option<Arc<Station>>>,
    stage: Mutex<Stage>,
    changed: Condvar,
    /// Subgroup epochs began or ended since `subgroups_changed` was called.
    subgroups: AtomicBool,
    /// Number of members of the view that began last.
    members: AtomicUsize,
    /// Requests to join that were accepted.
    join_requests: AtomicU64,
    /// First epoch of keys for which segments are still prepared.
    prepares_from: AtomicU64,
}

#[derive(Debug, Default)]
struct Stage {
    /// The view that began last.
    view: Option<Arc<View>>,
    /// This participant is in no group any more.
    ended: bool,
}

impl fmt::Debug for ControlQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlQueue")
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

impl ControlQueue {
    pub(crate) fn new(station: Arc<Station>) -> Self {
        Self {
            events: Mutex::default(),
            station: RwLock::new(Some(station)),
            stage: Mutex::default(),
            changed: Condvar::new(),
            subgroups: AtomicBool::new(false),
            members: AtomicUsize::new(0),
            join_requests: AtomicU64::new(0),
            prepares_from: AtomicU64::new(0),
        }
    }

    /// The path of pushes to another member; `None` if there is no such member, or the station is
    /// closed.
    pub(crate) fn path_to(&self, member: MemberId) -> Option<PeerPath> {
        let station = self.station.read().unwrap_or_else(PoisonError::into_inner);
        station.as_ref()?.path(member.0)
    }

    /// Queues a packet for another member. Nothing is sent once the station is closed.
    ///
    /// # Errors
    /// The member is not connected, or too much waits for it already.
    pub(crate) fn send(&self, to: MemberId, bytes: &[u8]) -> Result<(), HybridError> {
        let station = self.station.read().unwrap_or_else(PoisonError::into_inner);
        let station = station.as_ref();
        station.map_or(Ok(()), |station| station.send(to.0, bytes))
    }

    /// Whether what goes to another member over the network is encrypted.
    pub(crate) fn encrypts_to(&self, member: MemberId) -> bool {
        let station = self.station.read().unwrap_or_else(PoisonError::into_inner);
        let station = station.as_ref();
        station.is_some_and(|station| station.is_encrypted(member.0))
    }

    /// What the station has sent to others of its host; nothing once it is closed.
    pub(crate) fn station_traffic(&self) -> StationTraffic {
        let station = self.station.read().unwrap_or_else(PoisonError::into_inner);
        let traffic = station.as_ref().map(|station| station.traffic());
        traffic.unwrap_or_default()
    }

    /// The system calls of its streams to other hosts; zeros once it is closed.
    pub(crate) fn stream_calls(&self) -> StreamCalls {
        let station = self.station.read().unwrap_or_else(PoisonError::into_inner);
        let calls = station.as_ref().map(|station| station.stream_calls());
        calls.unwrap_or_default()
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event. The end of a view ends the making of segments that are prepared for the
    /// next one, which the control thread may be waiting for.
    pub(crate) fn put(&self, event: ControlEvent) {
        let agreed = match &event {
            ControlEvent::Decide(Decision { next, .. }) | ControlEvent::Ended { next, .. } => {
                Some(next.id)
            }
            ControlEvent::Stopped => Some(u64::MAX),
            _ => None,
        };
        if let Some(view) = agreed {
            self.end_preparations_before(first_epoch_afterwards(view));
        }
        let queue = self.events.lock();
        queue
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(event);
        self.subgroups.store(true, Ordering::Release);
        self.wake();
    }

    fn end_preparations_before(&self, epoch: u64) {
        self.prepares_from.fetch_max(epoch, Ordering::AcqRel);
        let station = self.station.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(station) = &*station {
            station.end_exchanges_before(epoch);
        }
    }

    /// Another member cannot prepare this view: the control thread does not wait for it.
    pub(crate) fn stop_preparing(&self, view: u64, number: u64) {
        self.end_preparations_before(key_epoch(view, number) + 1);
        self.wake();
    }

    pub(crate) fn take(&self) -> Option<ControlEvent> {
        let queue = self.events.lock();
        queue.unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Whether nothing is prepared for this view by this number any more: it, or a later one, is
    /// agreed or about to be, or another member cannot prepare it.
    pub(crate) fn is_stopped(&self, view: u64, number: u64) -> bool {
        self.prepares_from.load(Ordering::Acquire) > key_epoch(view, number)
    }

    /// Wakes the control thread.
    pub(crate) fn wake(&self) {
        let station = self.station.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(station) = &*station {
            station.interrupt();
        }
    }

    /// Drops this handle of the station.
    pub(crate) fn close(&self) {
        let mut station = self.station.write().unwrap_or_else(PoisonError::into_inner);
        *station = None;
    }

    /// A view has begun.
    pub(crate) fn begun(&self, view: Arc<View>) {
        self.members.store(view.members.len(), Ordering::Relaxed);
        self.stage().view = Some(view);
        self.subgroups.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    /// The view that began last.
    pub(crate) fn view(&self) -> Option<Arc<View>> {
        self.stage().view.clone()
    }

    /// How many members that view has.
    pub(crate) fn members(&self) -> usize {
        self.members.load(Ordering::Relaxed)
    }

    /// This participant is in no group any more.
    pub(crate) fn ended(&self) {
        self.stage().ended = true;
        self.changed.notify_all();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.stage().ended
    }

    /// Whether subgroup epochs began or ended since the last call.
    pub(crate) fn subgroups_changed(&self) -> bool {
        self.subgroups.load(Ordering::Acquire) && self.subgroups.swap(false, Ordering::AcqRel)
    }

    /// A request to join was accepted.
    pub(crate) fn count_join_request(&self) {
        self.join_requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn join_requests(&self) -> u64 {
        self.join_requests.load(Ordering::Relaxed)
    }

    /// Blocks until a view has begun. False if the group has ended before that.
    pub(crate) fn wait_begun(&self) -> bool {
        let stage = self.stage();
        let waits = |stage: &mut Stage| stage.view.is_none() && !stage.ended;
        let stage = self.changed.wait_while(stage, waits);
        let stage = stage.unwrap_or_else(PoisonError::into_inner);
        stage.view.is_some()
    }

    /// Blocks until the group has ended. False if it has not within `patience`.
    pub(crate) fn wait_ended(&self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        let mut stage = self.stage();
        while !stage.ended {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(stage, left);
            stage = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}
