//! A writer's access to the engine: claims room in its ring, and commits messages.
//!
//! ```text
//!   claim   renew the slot's claim --no room, or another epoch--> step, wait, claim anew
//!   commit  Engine::send           --epoch wedged--> copy into a claim of the next epoch
//! ```
//!
//! When the subgroup changes its members, its epoch is wedged: claims and commits fail until
//! the next view brings the next epoch. A writer that waits sleeps over that time, which does
//! not count against max_blocking_time.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use spindle_dds_core::{
    Claim, ClaimError, CommitMeta, Committed, DeliveryClass, MessageKind, SubgroupHandle,
    SubgroupId, TopicKey,
};
use spindle_dds_qos::Duration;

use crate::driver::session::Session;
use crate::driver::waiting::backoff::Backoff;
use crate::error::{Error, Result};
use crate::stamps::source_timestamp;
use crate::time::Deadline;
use crate::wire::Wire;

/// In the `flags` of a control message: its writer was deleted.
pub(crate) const WRITER_DELETED: u8 = 1;
/// Beside it: its instances are disposed of with that.
pub(crate) const DISPOSES: u8 = 2;

/// How long a deleted writer waits for room to announce it.
const FAREWELL_WITHIN: Duration = Duration::from_millis(100);

/// A writer's access to its ring, through one subgroup epoch after the other.
pub(crate) struct WriterPort {
    session: Arc<Session>,
    subgroup: SubgroupId,
    class: DeliveryClass,
    topic: TopicKey,
    /// The epoch of the latest view; `None` before the first view that has the writer. Written
    /// between two views, when writers hold no lock on it for longer than a claim takes.
    epoch: RwLock<Option<Arc<SubgroupHandle<Wire>>>>,
    /// The writer is deleted.
    is_closed: AtomicBool,
    /// Why the group does not accept the writer, if it does not.
    refusal: OnceLock<Error>,
}

/// The position of a message among all that a participant sends with one delivery class in one
/// subgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct SendPosition {
    pub(crate) epoch: u64,
    pub(crate) index: u64,
}

impl SendPosition {
    pub(crate) fn of(committed: &Committed) -> Self {
        Self {
            epoch: committed.epoch,
            index: committed.index,
        }
    }
}

/// Why a claim failed.
enum Obstacle {
    NoRoom,
    /// No view has the writer yet.
    NoView,
    /// The epoch is wedged, and the next one has not begun.
    BetweenEpochs,
    Error(Error),
}

impl fmt::Debug for WriterPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterPort")
            .field("subgroup", &self.subgroup)
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}

impl WriterPort {
    pub(crate) fn new(
        session: Arc<Session>,
        subgroup: SubgroupId,
        class: DeliveryClass,
        topic: TopicKey,
    ) -> Self {
        Self {
            session,
            subgroup,
            class,
            topic,
            epoch: RwLock::default(),
            is_closed: AtomicBool::new(false),
            refusal: OnceLock::new(),
        }
    }

    /// A view has begun, with this epoch of the subgroup.
    pub(crate) fn enter_epoch(&self, epoch: Arc<SubgroupHandle<Wire>>) {
        *self.epoch.write().unwrap_or_else(PoisonError::into_inner) = Some(epoch);
    }

    /// The writer is deleted: waiting threads return with an error.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.wake_waiters();
    }

    /// The group does not accept the writer: waiting threads return with this reason.
    pub(crate) fn refuse(&self, reason: Error) {
        let _ = self.refusal.set(reason);
        self.wake_waiters();
    }

    /// The topic as message headers carry it.
    #[inline]
    pub(crate) fn topic(&self) -> u64 {
        self.topic.low()
    }

    fn epoch(&self) -> Option<Arc<SubgroupHandle<Wire>>> {
        let epoch = self.epoch.read();
        epoch.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Claims `len` bytes, and renews `claim` for it if it can. Waits for room for as long as
    /// `patience` says; returns false if there is no room and `patience` is `None`.
    ///
    /// # Errors
    /// TIMEOUT; OUT_OF_RESOURCES for more than ever fits; what ended the group or the writer.
    #[inline]
    pub(crate) fn claim(
        &self,
        claim: &mut Option<Claim<Wire>>,
        len: usize,
        patience: impl FnOnce() -> Option<Duration>,
    ) -> Result<bool> {
        let refused = match (claim.as_mut(), u32::try_from(len)) {
            (Some(known), Ok(len)) => match known.renew(len) {
                Ok(()) => return Ok(true),
                Err(error) => Some(error),
            },
            _ => None,
        };
        self.claim_slowly(claim, len, patience(), refused)
    }

    /// `refused`: why `claim`, if there is one, was not renewed.
    #[cold]
    fn claim_slowly(
        &self,
        claim: &mut Option<Claim<Wire>>,
        len: usize,
        patience: Option<Duration>,
        refused: Option<ClaimError>,
    ) -> Result<bool> {
        let Ok(len) = u32::try_from(len) else {
            let max = self.epoch().and_then(|it| it.message_len_max(self.class));
            return Err(too_large(len as u64, max.unwrap_or_default()));
        };
        let obstacle = match self.claim_anew(claim, len, refused) {
            Ok(()) => return Ok(true),
            Err(obstacle) => obstacle,
        };
        match (obstacle, patience) {
            (Obstacle::Error(error), _) => Err(error),
            (_, Some(patience)) => self.wait_for_room(claim, len, patience).map(|()| true),
            (_, None) => {
                // Nothing else brings room to a writer that does not wait.
                self.session.step();
                match self.attempt(claim, len) {
                    Ok(()) => Ok(true),
                    Err(Obstacle::Error(error)) => Err(error),
                    Err(_) => Ok(false),
                }
            }
        }
    }

    fn attempt(
        &self,
        claim: &mut Option<Claim<Wire>>,
        len: u32,
    ) -> std::result::Result<(), Obstacle> {
        let refused = match claim.as_mut().map(|known| known.renew(len)) {
            Some(Ok(())) => return Ok(()),
            Some(Err(error)) => Some(error),
            None => None,
        };
        self.claim_anew(claim, len, refused)
    }

    /// Claims in the epoch of the latest view, unless `claim` was `refused` for another reason
    /// than that its epoch is over.
    fn claim_anew(
        &self,
        claim: &mut Option<Claim<Wire>>,
        len: u32,
        refused: Option<ClaimError>,
    ) -> std::result::Result<(), Obstacle> {
        let refused = match refused {
            None | Some(ClaimError::Wedged) => {
                *claim = None;
                let epoch = self.epoch.read().unwrap_or_else(PoisonError::into_inner);
                match epoch.as_ref().map(|epoch| epoch.claim(self.class, len)) {
                    Some(Ok(new)) => {
                        *claim = Some(new);
                        return Ok(());
                    }
                    Some(Err(error)) => Some(error),
                    None => None,
                }
            }
            refused => refused,
        };
        Err(self.obstacle(refused))
    }

    /// `refused`: the error of the claim; `None` if there is no epoch yet.
    #[cold]
    fn obstacle(&self, refused: Option<ClaimError>) -> Obstacle {
        let unless_ended = |obstacle| match self.ended() {
            Some(error) => Obstacle::Error(error),
            None => obstacle,
        };
        match refused {
            None => unless_ended(Obstacle::NoView),
            Some(ClaimError::NoRoom) => Obstacle::NoRoom,
            Some(ClaimError::Wedged) => unless_ended(Obstacle::BetweenEpochs),
            Some(error) => Obstacle::Error(self.error(error)),
        }
    }

    /// # Errors
    /// Why no epoch will ever take messages of the writer again.
    pub(crate) fn check(&self) -> Result<()> {
        self.ended().map_or(Ok(()), Err)
    }

    /// Why no epoch will ever take messages of the writer again, if that is so.
    fn ended(&self) -> Option<Error> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Some(Error::AlreadyDeleted("the writer was deleted".to_owned()));
        }
        if let Some(reason) = self.refusal.get() {
            return Some(reason.clone());
        }
        self.session.group_status().check().err()
    }

    /// The time between two epochs does not count.
    fn wait_for_room(
        &self,
        claim: &mut Option<Claim<Wire>>,
        len: u32,
        patience: Duration,
    ) -> Result<()> {
        let session = &self.session;
        let mut deadline = Deadline::after(patience);
        let _recorded = session.send_waiters().record_wait(self.subgroup);
        // Releases that have arrived may not have been looked at yet. In an idle subgroup the
        // polling thread looks: it has just been told that a thread waits.
        session.step_briefly();
        let mut is_in_view = true;
        loop {
            let mut attempt = || match self.attempt(claim, len) {
                Ok(()) => Some(Ok(())),
                Err(Obstacle::NoRoom) => {
                    is_in_view = true;
                    None
                }
                Err(Obstacle::NoView) => {
                    is_in_view = false;
                    None
                }
                Err(obstacle) => Some(Err(obstacle)),
            };
            match self.wait_for_acks(deadline, &mut attempt) {
                Some(Ok(())) => return Ok(()),
                Some(Err(Obstacle::Error(error))) => return Err(error),
                Some(Err(_)) => {
                    let since = Instant::now();
                    self.wait_for_epoch()?;
                    deadline = deadline.later_by(since.elapsed());
                }
                None if is_in_view => {
                    return Err(Error::Timeout(format!(
                        "no room for {len} bytes within {patience}: a reader does not take its \
                         samples, or holds them"
                    )));
                }
                None => {
                    return Err(Error::Timeout(format!(
                        "the other participants have not taken notice of the writer within \
                         {patience}"
                    )));
                }
            }
        }
    }

    /// Repeats `attempt` until it gives something, or until `deadline`. The thread first steps
    /// the engine itself for a while, so that no other thread has to wake it; then it sleeps
    /// until a thread that steps wakes it.
    fn wait_for_acks<R>(
        &self,
        deadline: Deadline,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        let session = &self.session;
        let (mut backoff, limits) = (Backoff::default(), session.followers().backoff_limits());
        loop {
            let found = attempt();
            if found.is_some() || deadline.left().is_none() {
                return found;
            }
            if !backoff.again(limits) {
                break;
            }
            session.step_briefly();
        }
        let _acks = session.handle().waiting_for_acks();
        session
            .send_waiters()
            .wait(self.subgroup, deadline, attempt)
    }

    /// Blocks until there is an epoch that is not wedged.
    fn wait_for_epoch(&self) -> Result<()> {
        let forever = Deadline::after(Duration::INFINITE);
        let waiters = self.session.send_waiters();
        let waited = waiters.wait(self.subgroup, forever, || {
            if let Some(error) = self.ended() {
                return Some(Err(error));
            }
            let is_open = self.epoch().is_some_and(|epoch| !epoch.is_wedged());
            is_open.then_some(Ok(()))
        });
        waited.unwrap_or(Ok(()))
    }

    /// The first position of this participant's messages that is not released by all members.
    pub(crate) fn released(&self) -> SendPosition {
        let position = |epoch: Arc<SubgroupHandle<Wire>>| SendPosition {
            epoch: epoch.epoch(),
            index: epoch.released(self.class),
        };
        self.epoch().map(position).unwrap_or_default()
    }

    /// Repeats `attempt`, which is given [`released`](Self::released), whenever that has
    /// risen, until `deadline`; without a deadline, once after a step.
    ///
    /// # Errors
    /// What ended the group or the writer.
    pub(crate) fn wait_for_release<R>(
        &self,
        deadline: Option<Deadline>,
        mut attempt: impl FnMut(SendPosition) -> Option<R>,
    ) -> Result<Option<R>> {
        let session = &self.session;
        let Some(deadline) = deadline else {
            session.step();
            return Ok(attempt(self.released()));
        };
        let _recorded = session.send_waiters().record_wait(self.subgroup);
        session.step();
        let waited = self.wait_for_acks(deadline, || {
            let result = attempt(self.released());
            result.map(Ok).or_else(|| self.ended().map(Err))
        });
        waited.transpose()
    }

    /// Waiting threads of the subgroup try again, after a change that the engine does not know.
    pub(crate) fn wake_waiters(&self) {
        self.session.send_waiters().wake_subgroup(self.subgroup);
    }

    /// Commits the first `used` bytes and publishes them, if no other thread steps the engine.
    /// A claim of a wedged epoch is copied, once, into one of the next epoch. Returns the index
    /// of the message, with which [`Claim::committed`] makes the receipt; `None` if the next
    /// epoch has no room and `patience` is `None`.
    ///
    /// # Errors
    /// As for [`claim`](Self::claim).
    #[inline]
    pub(crate) fn commit(
        &self,
        claim: &mut Claim<Wire>,
        used: usize,
        meta: &CommitMeta,
        patience: impl FnOnce() -> Option<Duration>,
    ) -> Result<Option<u64>> {
        let used = u32::try_from(used).unwrap_or(u32::MAX);
        match self.session.engine().send(claim, used, meta) {
            Ok(index) => Ok(Some(index)),
            Err(error) => self.commit_in_next_epoch(claim, used, meta, patience(), error),
        }
    }

    #[cold]
    fn commit_in_next_epoch(
        &self,
        claim: &mut Claim<Wire>,
        used: u32,
        meta: &CommitMeta,
        patience: Option<Duration>,
        mut refused: ClaimError,
    ) -> Result<Option<u64>> {
        loop {
            if refused != ClaimError::Wedged {
                return Err(self.error(refused));
            }
            let built = claim.bytes();
            let built = &built[..built.len().min(used as usize)];
            let mut next = None;
            self.claim(&mut next, built.len(), || patience)?;
            let Some(mut next) = next else {
                return Ok(None);
            };
            next.bytes().copy_from_slice(built);
            *claim = next;
            match self.session.engine().send(claim, used, meta) {
                Ok(index) => return Ok(Some(index)),
                Err(error) => refused = error,
            }
        }
    }

    /// Announces to the readers that a writer was deleted, and whether its instances are
    /// disposed of. Waits shortly for room; without it, readers learn it from the next view.
    pub(crate) fn writer_deleted(&self, number: u32, disposes: bool) {
        if self.epoch().is_none() {
            // No view has had the writer.
            return;
        }
        let meta = CommitMeta {
            kind: MessageKind::Control,
            flags: WRITER_DELETED | if disposes { DISPOSES } else { 0 },
            encapsulation: 0,
            writer: number,
            timestamp: source_timestamp(),
            topic: self.topic(),
            key_hash: [0; 16],
            skipped: 0,
        };
        let patience = || Some(FAREWELL_WITHIN);
        let mut claim = None;
        let claimed = self.claim(&mut claim, 0, patience);
        let is_sent = match (claimed, &mut claim) {
            (Ok(true), Some(claim)) => self.commit(claim, 0, &meta, patience).is_ok(),
            _ => false,
        };
        if !is_sent {
            tracing::debug!(number, "no room to announce that a writer was deleted");
        }
    }

    /// The last message of this participant with this delivery class.
    pub(crate) fn last_committed(&self) -> Option<Committed> {
        self.epoch()?.last_committed(self.class)
    }

    /// Blocks until all members have received an ordered message.
    ///
    /// # Errors
    /// TIMEOUT; what ended the group.
    pub(crate) fn wait_stable(&self, message: &Committed, deadline: Deadline) -> Result<()> {
        let session = &self.session;
        let is_stable = || {
            let epoch = self.epoch();
            epoch.is_some_and(|epoch| epoch.is_acknowledged(message))
        };
        if is_stable() {
            return Ok(());
        }
        session.step();
        let stable = self.wait_for_acks(deadline, || {
            if is_stable() {
                return Some(Ok(()));
            }
            session.group_status().check().err().map(Err)
        });
        stable.unwrap_or_else(|| {
            let text = "not all participants have received what was written";
            Err(Error::Timeout(text.to_owned()))
        })
    }

    #[cold]
    fn error(&self, error: ClaimError) -> Error {
        match error {
            ClaimError::TooLarge { len, max } => too_large(len, max),
            ClaimError::NoRoom => Error::Timeout(error.to_string()),
            ClaimError::NotASender => Error::Error(error.to_string()),
            ClaimError::Wedged | ClaimError::Stopped => {
                if error == ClaimError::Stopped {
                    // The thread that stops the engine closes the rings first, then tells why.
                    self.session.wait_for_reason();
                }
                self.ended()
                    .unwrap_or_else(|| Error::Error(error.to_string()))
            }
        }
    }
}

#[cold]
fn too_large(len: u64, max: u64) -> Error {
    Error::OutOfResources(format!(
        "a sample of {len} bytes does not fit: the ring takes samples of up to {max}; raise the \
         property spindle.ring.bytes to at least twice the sample"
    ))
}
