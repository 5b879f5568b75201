//! A writer's access to the engine: claims room in its ring, and commits messages.
//!
//! ```text
//!   claim   renew the slot's claim --no room, or another epoch--> step, claim anew
//!              --KEEP_ALL, and no room--> wait, at most max_blocking_time
//!              --else--> none: what is sent waits in the writer's history, or is dropped
//!   commit  Engine::send           --epoch wedged--> the same
//! ```
//!
//! When the subgroup changes its members, its epoch is wedged: claims and commits fail until
//! the next view brings the next epoch. A participant that loses its group and comes back has a
//! new session, with a new engine. No writer waits for either, unless its history is full.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};

use spindle_dds_core::{
    AckWait, ClaimError, CommitMeta, Committed, DeliveryClass, MessageKind, RingSpec,
    SubgroupHandle, SubgroupId, TopicKey,
};

use super::acceptance::Acceptor;
use super::waiters::{AcceptanceWait, ObserverRecord, SubgroupObserver, WaitRecord};
use super::writer_claim::WriterClaim;
use super::writer_logs::WriterLogs;
use super::writer_return::Before;
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

/// A writer's access to its ring, through one subgroup epoch after the other.
pub(crate) struct WriterPort {
    pub(super) subgroup: SubgroupId,
    pub(super) class: DeliveryClass,
    topic: TopicKey,
    /// Bytes of the largest message in the ring that the writer has asked for.
    len_max: u64,
    /// Written between two views, when writers hold no lock on it for longer than a claim takes.
    place: RwLock<Place>,
    /// Of a PERSISTENT writer.
    pub(super) logs: Option<WriterLogs>,
    /// The last message that asked readers for releases, in the present session.
    asked: Mutex<Option<Committed>>,
    /// The writer is deleted.
    is_closed: AtomicBool,
    /// Why the group does not accept the writer, if it does not.
    refusal: OnceLock<Error>,
}

/// Where the writer sends now.
pub(super) struct Place {
    pub(super) session: Arc<Session>,
    /// The epoch of the latest view; `None` before the first view that has the writer.
    pub(super) epoch: Option<Arc<SubgroupHandle<Wire>>>,
    /// The members that have to accept what is sent in it.
    pub(super) acceptors: Arc<[Acceptor]>,
    /// How often the participant has come back to its group.
    pub(super) returns: u32,
    /// What the writer sent before that is being sent again: nothing else is sent before it.
    pub(super) sends_again: bool,
    /// What became of the messages before the last return.
    pub(super) before: Option<Before>,
}

/// The position of a message among all that a participant sends with one delivery class in one
/// subgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct SendPosition {
    /// How often the participant had come back to its group.
    pub(crate) returns: u32,
    pub(crate) epoch: u64,
    pub(crate) index: u64,
}

/// While it exists, the threads that step tell an observer of changes of a writer's subgroup.
#[derive(Debug)]
pub(crate) struct SubgroupWait {
    _acks: AckWait,
    record: ObserverRecord,
    session: Arc<Session>,
}

impl SubgroupWait {
    /// The same in the session that the writer is in now.
    pub(crate) fn renewed(self, port: &WriterPort) -> Self {
        let session = port.session();
        Self {
            _acks: session.handle().waiting_for_acks(),
            record: self.record,
            session,
        }
    }

    /// Whether the writer is in the session that is told to wake a thread.
    pub(crate) fn is_of(&self, port: &WriterPort) -> bool {
        Arc::ptr_eq(&self.session, &port.session())
    }
}

/// Why a claim failed.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// Readers, or loans of this participant, hold all room of the ring.
    NoRoom,
    /// RESOURCE_LIMITS of the writer allow no more in flight.
    Limits,
    /// PERSISTENT: the logs of the topic take no samples.
    Shut,
    /// PERSISTENT: the logs of the topic have not recorded what came before the epoch.
    Recording,
    /// No view has the writer yet.
    NoView,
    /// The epoch has begun, and not all members are known to be ready for its messages.
    NotBegun,
    /// The epoch is wedged, and the next one has not begun.
    BetweenEpochs,
    /// The participant has lost its group, and is not back with all that it had sent.
    Out,
    /// The group or the writer has ended, or the message never fits.
    Error(Error),
}

impl Obstacle {
    /// Whether it may last: a slow reader, or an outage. Else the group is changing.
    pub(crate) fn lasts(&self) -> bool {
        !matches!(
            self,
            Self::NoView | Self::NotBegun | Self::BetweenEpochs | Self::Recording
        )
    }

    /// Whether a message may be sent in the same session later.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::NoRoom
            | Self::Limits
            | Self::Shut
            | Self::Recording
            | Self::NoView
            | Self::NotBegun
            | Self::BetweenEpochs => true,
            Self::Out | Self::Error(_) => false,
        }
    }
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
        ring: RingSpec,
        logs: Option<WriterLogs>,
    ) -> Self {
        if let Some(logs) = &logs {
            logs.connected(session.outages());
        }
        let place = Place {
            session,
            epoch: None,
            acceptors: Arc::default(),
            returns: 0,
            sends_again: false,
            before: None,
        };
        Self {
            subgroup,
            class,
            topic,
            len_max: ring.memory() / 2,
            place: RwLock::new(place),
            logs,
            asked: Mutex::default(),
            is_closed: AtomicBool::new(false),
            refusal: OnceLock::new(),
        }
    }

    pub(super) fn place(&self) -> RwLockReadGuard<'_, Place> {
        self.place.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn place_mut(&self) -> RwLockWriteGuard<'_, Place> {
        self.place.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn session(&self) -> Arc<Session> {
        self.place().session.clone()
    }

    /// A view has begun, with this epoch of the subgroup, in which these members have to accept what is
    /// sent.
    pub(crate) fn enter_epoch(&self, epoch: Arc<SubgroupHandle<Wire>>, acceptors: Arc<[Acceptor]>) {
        let mut place = self.place_mut();
        place.epoch = Some(epoch);
        place.acceptors = acceptors;
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

    pub(crate) fn is_refused(&self) -> bool {
        self.refusal.get().is_some()
    }

    pub(crate) fn subgroup(&self) -> SubgroupId {
        self.subgroup
    }

    /// The topic as message headers carry it.
    #[inline]
    pub(crate) fn topic(&self) -> u64 {
        self.topic.low()
    }

    pub(super) fn epoch(&self) -> Option<Arc<SubgroupHandle<Wire>>> {
        self.place().epoch.clone()
    }

    /// Claims `len` bytes by renewing `claim`, if that has room at once.
    ///
    /// # Errors
    /// It has not, for this reason; `None` without a claim.
    #[inline(always)]
    pub(crate) fn claim(
        claim: &mut Option<WriterClaim>,
        len: usize,
    ) -> std::result::Result<(), Option<ClaimError>> {
        match (claim.as_mut(), u32::try_from(len)) {
            (Some(known), Ok(len)) => match known.renew(len) {
                Ok(()) => Ok(()),
                Err(refused) => Err(Some(refused)),
            },
            _ => Err(None),
        }
    }

    /// Claims `len` bytes after [`claim`](Self::claim) was `refused`. Waits until `deadline` for readers
    /// to make room, if there is a deadline, and not for changes of the group. Returns false if it has
    /// no room.
    ///
    /// # Errors
    /// TIMEOUT; OUT_OF_RESOURCES for more than ever fits; what ended the group or the writer.
    #[cold]
    pub(crate) fn claim_late(
        &self,
        claim: &mut Option<WriterClaim>,
        len: usize,
        deadline: Option<Deadline>,
        refused: Option<ClaimError>,
    ) -> Result<bool> {
        let Ok(len) = u32::try_from(len) else {
            let max = self.epoch().and_then(|it| it.message_len_max(self.class));
            return Err(too_large(len as u64, max.unwrap_or_default()));
        };
        let obstacle = match self.claim_anew(claim, len, refused, MessageKind::Data) {
            Ok(()) => return Ok(true),
            Err(Obstacle::NoRoom) => {
                // Releases that have arrived may not have been looked at yet.
                self.session().step();
                match self.attempt(claim, len) {
                    Ok(()) => return Ok(true),
                    Err(obstacle) => obstacle,
                }
            }
            Err(obstacle) => obstacle,
        };
        match (obstacle, deadline) {
            (Obstacle::Error(error), _) => Err(error),
            (Obstacle::NoRoom | Obstacle::Shut, Some(deadline)) => {
                self.wait_for_room(claim, len, deadline)
            }
            (Obstacle::Out, _) if self.class == DeliveryClass::Unordered => Err(self.out()),
            _ => self.check_len(len.into()).map(|()| false),
        }
    }

    /// # Errors
    /// OUT_OF_RESOURCES: no ring that the writer is known to have takes so much.
    pub(crate) fn check_len(&self, len: u64) -> Result<()> {
        let known = self.epoch().and_then(|it| it.message_len_max(self.class));
        let max = known.unwrap_or(0).max(self.len_max);
        match len > max {
            true => Err(too_large(len, max)),
            false => Ok(()),
        }
    }

    /// Claims without waiting.
    pub(crate) fn attempt(
        &self,
        claim: &mut Option<WriterClaim>,
        len: u32,
    ) -> std::result::Result<(), Obstacle> {
        self.attempt_for(claim, len, MessageKind::Data)
    }

    /// The same for a message of this kind: control messages are not logged.
    fn attempt_for(
        &self,
        claim: &mut Option<WriterClaim>,
        len: u32,
        kind: MessageKind,
    ) -> std::result::Result<(), Obstacle> {
        let refused = match claim.as_mut().map(|known| known.renew(len)) {
            Some(Ok(())) => return Ok(()),
            Some(Err(error)) => Some(error),
            None => None,
        };
        self.claim_anew(claim, len, refused, kind)
    }

    /// Claims in the epoch of the latest view, unless `claim` was `refused` for another reason
    /// than that its epoch, or its session, is over.
    fn claim_anew(
        &self,
        claim: &mut Option<WriterClaim>,
        len: u32,
        refused: Option<ClaimError>,
        kind: MessageKind,
    ) -> std::result::Result<(), Obstacle> {
        let refused = match refused {
            None | Some(ClaimError::Wedged | ClaimError::Stopped) => {
                *claim = None;
                let place = self.place();
                if kind != MessageKind::Control
                    && let Some(shut) = self.shut(&place)
                {
                    drop(place);
                    return Err(self.unless_ended(shut));
                }
                if place.sends_again {
                    drop(place);
                    return Err(self.obstacle(Some(ClaimError::Stopped)));
                }
                match self.claim_in(&place, len) {
                    Some(Ok(new)) => {
                        *claim = Some(new);
                        return Ok(());
                    }
                    // The thread that stops the engine closes the rings first, then tells why.
                    Some(Err(ClaimError::Stopped)) => {
                        let session = place.session.clone();
                        drop(place);
                        session.wait_for_reason();
                        return Err(self.obstacle(Some(ClaimError::Stopped)));
                    }
                    Some(Err(error)) => Some(error),
                    None => None,
                }
            }
            refused => refused,
        };
        Err(self.obstacle(refused))
    }

    /// `None` if the place has no epoch yet.
    pub(super) fn claim_in(
        &self,
        place: &Place,
        len: u32,
    ) -> Option<std::result::Result<WriterClaim, ClaimError>> {
        let claimed = place.epoch.as_ref()?.claim(self.class, len);
        let session = || place.session.clone();
        Some(claimed.map(|claim| WriterClaim::new(claim, session(), place.returns)))
    }

    /// `refused`: the error of the claim; `None` if there is no epoch yet.
    #[cold]
    pub(super) fn obstacle(&self, refused: Option<ClaimError>) -> Obstacle {
        let obstacle = match refused {
            Some(ClaimError::NoRoom) => return Obstacle::NoRoom,
            Some(ClaimError::TooLarge { len, max }) => Obstacle::Error(too_large(len, max)),
            Some(error @ ClaimError::NotASender) => {
                Obstacle::Error(Error::Error(error.to_string()))
            }
            None => Obstacle::NoView,
            Some(ClaimError::NotBegun) => Obstacle::NotBegun,
            Some(ClaimError::Wedged) => Obstacle::BetweenEpochs,
            Some(ClaimError::Stopped) => Obstacle::Out,
        };
        self.unless_ended(obstacle)
    }

    /// The obstacle, unless the writer has come to its end, or its participant has lost its group.
    pub(super) fn unless_ended(&self, obstacle: Obstacle) -> Obstacle {
        match self.ended() {
            Some(error) => Obstacle::Error(error),
            None if self.session().is_over() => Obstacle::Out,
            None => obstacle,
        }
    }

    /// Whether the participant is out of its group.
    pub(crate) fn is_out(&self) -> bool {
        self.session().is_over()
    }

    /// The participant has lost its group.
    #[cold]
    pub(crate) fn out(&self) -> Error {
        Error::Error(self.session().group_status().why_out())
    }

    /// # Errors
    /// What ended the group or the writer, or that the participant has lost its group for now.
    pub(crate) fn check_member(&self) -> Result<()> {
        self.check()?;
        let place = self.place();
        let is_out = place.sends_again || place.session.is_over();
        drop(place);
        if is_out { Err(self.out()) } else { Ok(()) }
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
        self.place().session.group_status().check().err()
    }

    /// Waits for readers to make room. Returns false if something else than that is lacking.
    fn wait_for_room(
        &self,
        claim: &mut Option<WriterClaim>,
        len: u32,
        deadline: Deadline,
    ) -> Result<bool> {
        if deadline == Deadline::Passed {
            return Err(Error::would_block());
        }
        let _recorded = self.session().send_waiters().record_wait(self.subgroup);
        let mut lacking = None;
        let waited = self.wait_for_acks(deadline, || match self.attempt(claim, len) {
            Ok(()) => Some(Ok(true)),
            Err(obstacle @ (Obstacle::NoRoom | Obstacle::Shut)) => {
                lacking = Some(obstacle);
                None
            }
            Err(Obstacle::Error(error)) => Some(Err(error)),
            Err(_) => Some(Ok(false)),
        });
        waited.unwrap_or_else(|| {
            let lacking = lacking.unwrap_or(Obstacle::NoRoom);
            let why = self.describe(&lacking);
            Err(Error::Timeout(match lacking {
                Obstacle::Shut => why,
                _ => format!("no room for {len} bytes: {why}"),
            }))
        })
    }

    /// Repeats `attempt` until it gives something, or until `deadline`. The thread first steps
    /// the engine itself for a while, so that no other thread has to wake it; then it sleeps
    /// until a thread that steps wakes it.
    pub(crate) fn wait_for_acks<R>(
        &self,
        deadline: Deadline,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        loop {
            let session = self.session();
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
            let waiters = session.send_waiters();
            let waited = waiters.wait(self.subgroup, deadline, || match attempt() {
                // The engine that this thread waits for is over.
                None if !Arc::ptr_eq(&session, &self.session()) => Some(None),
                found => found.map(Some),
            });
            match waited {
                Some(None) => {}
                found => return found.flatten(),
            }
        }
    }

    /// The first position of this participant's messages that is not released by all members.
    pub(crate) fn released(&self) -> SendPosition {
        let place = self.place();
        let (returns, epoch) = (place.returns, place.epoch.as_ref());
        SendPosition {
            returns,
            epoch: epoch.map_or(0, |epoch| epoch.epoch()),
            index: epoch.map_or(0, |epoch| epoch.released(self.class)),
        }
    }

    /// Repeats `attempt`, which is given [`released`](Self::released), whenever that has
    /// risen, until `deadline`; without a deadline, or if it may not wait, once after a step.
    ///
    /// # Errors
    /// What ended the group or the writer.
    pub(crate) fn wait_for_release<R>(
        &self,
        deadline: Option<Deadline>,
        mut attempt: impl FnMut(SendPosition) -> Option<R>,
    ) -> Result<Option<R>> {
        let session = self.session();
        let Some(deadline) = deadline.filter(|it| *it != Deadline::Passed) else {
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

    /// The calling thread waits for room until the record is dropped.
    pub(crate) fn record_wait(&self) -> WaitRecord {
        self.session().send_waiters().record_wait(self.subgroup)
    }

    /// Steps the engine, if no other thread does.
    pub(crate) fn step(&self) {
        self.session().step();
    }

    /// Something waits in this port's subgroup without a thread: see [`SendWaiters::observe`].
    pub(crate) fn observe(&self, observer: Weak<dyn SubgroupObserver>) -> SubgroupWait {
        let session = self.session();
        SubgroupWait {
            _acks: session.handle().waiting_for_acks(),
            record: session.send_waiters().observe(self.subgroup, observer),
            session,
        }
    }

    /// The calling thread waits until single members have accepted a message, until this is dropped.
    pub(crate) fn wait_for_acceptance(&self) -> AcceptanceWait {
        self.session().send_waiters().wait_for_acceptance()
    }

    /// Waiting threads of the subgroup try again, after a change that the engine does not know.
    pub(crate) fn wake_waiters(&self) {
        self.session().send_waiters().wake_subgroup(self.subgroup);
    }

    /// Commits the first `used` bytes and publishes them, if no other thread steps the engine. Returns
    /// the index of the message, with which [`Claim::committed`](spindle_dds_core::Claim::committed)
    /// makes the receipt.
    ///
    /// # Errors
    /// The epoch takes no messages any more, or the session is over.
    #[inline]
    pub(crate) fn commit(
        &self,
        claim: &mut WriterClaim,
        used: usize,
        meta: &CommitMeta,
    ) -> std::result::Result<u64, ClaimError> {
        claim.send(u32::try_from(used).unwrap_or(u32::MAX), meta)
    }

    /// Claims and commits a message without waiting. `claim`, if there is one, is renewed for it.
    pub(crate) fn send_now(
        &self,
        claim: &mut Option<WriterClaim>,
        payload: &[u8],
        meta: &CommitMeta,
    ) -> std::result::Result<(Committed, SendPosition), Obstacle> {
        let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        self.attempt_for(claim, len, meta.kind)?;
        let Some(claimed) = claim.as_mut() else {
            return Err(self.obstacle(None));
        };
        claimed.bytes().copy_from_slice(payload);
        match claimed.send(len, meta) {
            Ok(index) => {
                let committed = claimed.committed(index);
                if meta.kind != MessageKind::Control {
                    self.note_sent(&committed, claimed.returns());
                }
                Ok((committed, claimed.position(&committed)))
            }
            Err(refused) => {
                claimed.withdraw();
                Err(self.obstacle(Some(refused)))
            }
        }
    }

    /// What a control message is committed with.
    pub(super) fn control(&self, writer: u32, flags: u8) -> CommitMeta {
        CommitMeta {
            kind: MessageKind::Control,
            flags,
            encapsulation: 0,
            writer,
            timestamp: source_timestamp(),
            topic: self.topic(),
            key_hash: [0; 16],
            skipped: 0,
        }
    }

    pub(super) fn asked(&self) -> MutexGuard<'_, Option<Committed>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces to the readers that a writer was deleted, and whether its instances are
    /// disposed of. Waits until `deadline` for room; without it, readers learn it from the next view.
    pub(crate) fn writer_deleted(&self, number: u32, disposes: bool, deadline: Deadline) {
        if self.epoch().is_none() {
            // No view has had the writer.
            return;
        }
        let flags = WRITER_DELETED | if disposes { DISPOSES } else { 0 };
        let meta = self.control(number, flags);
        let mut claim = None;
        let mut attempt = || match self.send_now(&mut claim, &[], &meta) {
            Ok(_) => Some(true),
            Err(Obstacle::Error(_)) => Some(false),
            Err(_) => None,
        };
        let sent = attempt().or_else(|| {
            self.session().step();
            self.wait_for_acks(deadline, attempt)
        });
        if sent != Some(true) {
            tracing::debug!(number, "no room to announce that a writer was deleted");
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
