//! Where samples go out: a writer's access to the engine.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use spindle_dds_core::{
    Claim, ClaimError, Committed, DeliveryClass, Kind, Meta, SubgroupHandle, SubgroupId, TopicKey,
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

/// How long a deleted writer waits for room to say so.
const FAREWELL_WITHIN: Duration = Duration::from_millis(100);

/// A writer's way into its ring: into that of one lane after the other.
pub(crate) struct Port {
    session: Arc<Session>,
    subgroup: SubgroupId,
    ring: DeliveryClass,
    topic: TopicKey,
    /// That of the view that began last. `None` before the first that has the
    /// writer. Changed between two views; who writes never waits for it.
    lane: RwLock<Option<Arc<SubgroupHandle<Wire>>>>,
    /// The writer is deleted.
    closed: AtomicBool,
    /// The group does not take the writer, and why.
    refused: OnceLock<String>,
}

/// A place in all that a participant sends by one ring in one subgroup: of lanes
/// one after the other, each message by message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Mark {
    pub(crate) epoch: u64,
    pub(crate) index: u64,
}

/// Why there is no claim now.
enum Obstacle {
    NoRoom,
    /// No view has the writer yet.
    Unknown,
    /// Between two lanes.
    Outage,
    Error(Error),
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port")
            .field("subgroup", &self.subgroup)
            .field("ring", &self.ring)
            .finish_non_exhaustive()
    }
}

impl Mark {
    pub(crate) fn of(committed: &Committed) -> Self {
        Self {
            epoch: committed.epoch,
            index: committed.index,
        }
    }
}

impl Port {
    pub(crate) fn new(
        session: Arc<Session>,
        subgroup: SubgroupId,
        ring: DeliveryClass,
        topic: TopicKey,
    ) -> Self {
        Self {
            session,
            subgroup,
            ring,
            topic,
            lane: RwLock::default(),
            closed: AtomicBool::new(false),
            refused: OnceLock::new(),
        }
    }

    /// A view has begun in which this is the lane of its subgroup.
    pub(crate) fn set_lane(&self, lane: Arc<SubgroupHandle<Wire>>) {
        *self.lane.write().unwrap_or_else(PoisonError::into_inner) = Some(lane);
    }

    /// The writer is deleted: nobody waits any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.tell_waiters();
    }

    /// The group does not take the writer: nobody waits any more.
    pub(crate) fn refuse(&self, why: String) {
        let _ = self.refused.set(why);
        self.tell_waiters();
    }

    /// What headers carry of its topic.
    #[inline]
    pub(crate) fn topic(&self) -> u64 {
        self.topic.low()
    }

    fn lane(&self) -> Option<Arc<SubgroupHandle<Wire>>> {
        self.lane
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Claims `len` bytes; waits for room for as long as `patience` says, if it says so.
    /// False: there is no room, and the writer does not wait. A claim that is finished is
    /// used again.
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
        self.claim_otherwise(claim, len, patience(), refused)
    }

    /// The claim that there is cannot be used again; why, if there is one.
    #[cold]
    fn claim_otherwise(
        &self,
        claim: &mut Option<Claim<Wire>>,
        len: usize,
        patience: Option<Duration>,
        refused: Option<ClaimError>,
    ) -> Result<bool> {
        let Ok(len) = u32::try_from(len) else {
            let lane = self.lane();
            let max = lane.and_then(|lane| lane.message_len_max(self.ring));
            return Err(too_large(len as u64, max.unwrap_or_default()));
        };
        let obstacle = match self.attempt_after(claim, len, refused) {
            Ok(()) => return Ok(true),
            Err(obstacle) => obstacle,
        };
        match (obstacle, patience) {
            (Obstacle::Error(error), _) => Err(error),
            (_, Some(patience)) => self.wait_for_room(claim, len, patience).map(|()| true),
            (_, None) => {
                // Nobody else looks for room of a writer that does not wait.
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
        match claim.as_mut().map(|claim| claim.renew(len)) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => self.attempt_after(claim, len, Some(error)),
            None => self.attempt_after(claim, len, None),
        }
    }

    /// The same without a claim that can be used again: there is none, or this is why not.
    fn attempt_after(
        &self,
        claim: &mut Option<Claim<Wire>>,
        len: u32,
        refused: Option<ClaimError>,
    ) -> std::result::Result<(), Obstacle> {
        match refused {
            // Another lane may have begun.
            None | Some(ClaimError::Wedged) => self.attempt_anew(claim, len),
            Some(error) => Err(self.obstacle(Some(error))),
        }
    }

    fn attempt_anew(
        &self,
        claim: &mut Option<Claim<Wire>>,
        len: u32,
    ) -> std::result::Result<(), Obstacle> {
        *claim = None;
        let lane = self.lane.read().unwrap_or_else(PoisonError::into_inner);
        let claimed = lane.as_ref().map(|lane| lane.claim(self.ring, len));
        drop(lane);
        match claimed {
            Some(Ok(new)) => {
                *claim = Some(new);
                Ok(())
            }
            Some(Err(error)) => Err(self.obstacle(Some(error))),
            None => Err(self.obstacle(None)),
        }
    }

    /// What a claim was refused for; `None`: there is no lane yet.
    #[cold]
    fn obstacle(&self, refused: Option<ClaimError>) -> Obstacle {
        let unless_ended = |obstacle| match self.ended() {
            Some(error) => Obstacle::Error(error),
            None => obstacle,
        };
        match refused {
            None => unless_ended(Obstacle::Unknown),
            Some(ClaimError::NoRoom) => Obstacle::NoRoom,
            Some(ClaimError::Wedged) => unless_ended(Obstacle::Outage),
            Some(error) => Obstacle::Error(self.refused(error)),
        }
    }

    /// Why there will never be a lane again.
    fn ended(&self) -> Option<Error> {
        if self.closed.load(Ordering::SeqCst) {
            return Some(Error::AlreadyDeleted("the writer was deleted".to_owned()));
        }
        if let Some(why) = self.refused.get() {
            return Some(Error::Error(why.clone()));
        }
        self.session.group_status().check().err()
    }

    /// The time between two lanes does not count.
    fn wait_for_room(
        &self,
        claim: &mut Option<Claim<Wire>>,
        len: u32,
        patience: Duration,
    ) -> Result<()> {
        let session = &self.session;
        let mut deadline = Deadline::after(patience);
        let _waiting = session.room().waiting(self.subgroup);
        // What would bring room may have come and not been looked at yet. In a lane at rest,
        // whoever polls looks: it has just been told that somebody waits.
        session.step_briefly();
        let mut known = true;
        loop {
            let mut attempt = || match self.attempt(claim, len) {
                Ok(()) => Some(Ok(())),
                Err(Obstacle::NoRoom) => {
                    known = true;
                    None
                }
                Err(Obstacle::Unknown) => {
                    known = false;
                    None
                }
                Err(obstacle) => Some(Err(obstacle)),
            };
            match self.wait_for_acks(deadline, &mut attempt) {
                Some(Ok(())) => return Ok(()),
                Some(Err(Obstacle::Error(error))) => return Err(error),
                Some(Err(_)) => {
                    let since = Instant::now();
                    self.wait_for_lane()?;
                    deadline = deadline.later_by(since.elapsed());
                }
                None if known => {
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

    /// Repeats `attempt` until it gives something, or `deadline` is over. Who has just stepped in
    /// vain looks for acknowledgements itself for a while, in between, and nobody is woken for
    /// them; then it sleeps, until whoever steps tells it of some.
    fn wait_for_acks<R>(
        &self,
        deadline: Deadline,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        let session = &self.session;
        let (mut looks, patience) = (Backoff::default(), session.followers().backoff_limits());
        loop {
            let found = attempt();
            if found.is_some() || deadline.left().is_none() {
                return found;
            }
            if !looks.again(patience) {
                break;
            }
            session.step_briefly();
        }
        let _acks = session.handle().waiting_for_acks();
        session.room().wait(self.subgroup, deadline, attempt)
    }

    /// Blocks until the lane is not one that ends.
    fn wait_for_lane(&self) -> Result<()> {
        let forever = Deadline::after(Duration::INFINITE);
        let waited = self.session.room().wait(self.subgroup, forever, || {
            if let Some(error) = self.ended() {
                return Some(Err(error));
            }
            let open = self.lane().is_some_and(|lane| !lane.is_wedged());
            open.then_some(Ok(()))
        });
        waited.unwrap_or(Ok(()))
    }

    /// Messages of this participant in this ring below this mark are released.
    pub(crate) fn released(&self) -> Mark {
        let mark = |lane: Arc<SubgroupHandle<Wire>>| Mark {
            epoch: lane.epoch(),
            index: lane.released(self.ring),
        };
        self.lane().map(mark).unwrap_or_default()
    }

    /// Repeats `attempt`, which is given [`released`](Self::released), whenever more
    /// messages are, until `deadline`; without one, once after a look.
    ///
    /// # Errors
    /// What ended the group.
    pub(crate) fn wait_for_release<R>(
        &self,
        deadline: Option<Deadline>,
        mut attempt: impl FnMut(Mark) -> Option<R>,
    ) -> Result<Option<R>> {
        let session = &self.session;
        let Some(deadline) = deadline else {
            session.step();
            return Ok(attempt(self.released()));
        };
        let _waiting = session.room().waiting(self.subgroup);
        session.step();
        let waited = self.wait_for_acks(deadline, || {
            let result = attempt(self.released());
            result.map(Ok).or_else(|| self.ended().map(Err))
        });
        waited.transpose()
    }

    /// Whoever waits in `wait_for_release` tries again: something else than a
    /// release came in between.
    pub(crate) fn tell_waiters(&self) {
        self.session.room().tell(self.subgroup);
    }

    /// Sends the first `used` bytes. Publishes them by itself if it can. A claim in a
    /// lane that ends is copied, once, into one of the next lane; there is `None` if
    /// that has no room and the writer has no `patience` to wait for it. Else which message
    /// it is, of whose receipt the claim knows the rest.
    #[inline]
    pub(crate) fn commit(
        &self,
        claim: &mut Claim<Wire>,
        used: usize,
        meta: &Meta,
        patience: impl FnOnce() -> Option<Duration>,
    ) -> Result<Option<u64>> {
        let used = u32::try_from(used).unwrap_or(u32::MAX);
        match self.session.engine().send(claim, used, meta) {
            Ok(index) => Ok(Some(index)),
            Err(error) => self.commit_later(claim, used, meta, patience(), error),
        }
    }

    #[cold]
    fn commit_later(
        &self,
        claim: &mut Claim<Wire>,
        used: u32,
        meta: &Meta,
        patience: Option<Duration>,
        mut refused: ClaimError,
    ) -> Result<Option<u64>> {
        loop {
            if refused != ClaimError::Wedged {
                return Err(self.refused(refused));
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

    /// Tells the readers that a writer is gone, and whether its instances are
    /// disposed of with that. Waits a little for room to say so; without it they
    /// find out by the next view.
    pub(crate) fn writer_deleted(&self, number: u32, disposes: bool) {
        if self.lane().is_none() {
            // Nobody knows of it.
            return;
        }
        let meta = Meta {
            kind: Kind::Control,
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
        let said = match (claimed, &mut claim) {
            (Ok(true), Some(claim)) => self.commit(claim, 0, &meta, patience).is_ok(),
            _ => false,
        };
        if !said {
            tracing::debug!(number, "no room to tell that a writer was deleted");
        }
    }

    /// The last message of this participant in this ring.
    pub(crate) fn last_committed(&self) -> Option<Committed> {
        self.lane()?.last_committed(self.ring)
    }

    /// Blocks until all members have received a message of the ordered ring.
    pub(crate) fn wait_stable(&self, message: &Committed, deadline: Deadline) -> Result<()> {
        let session = &self.session;
        let is_stable = || {
            let lane = self.lane();
            lane.is_some_and(|lane| lane.is_acknowledged(message))
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
    fn refused(&self, error: ClaimError) -> Error {
        match error {
            ClaimError::TooLarge { len, max } => too_large(len, max),
            ClaimError::NoRoom => Error::Timeout(error.to_string()),
            ClaimError::NotASender => Error::Error(error.to_string()),
            ClaimError::Wedged | ClaimError::Leaving | ClaimError::Stopped => self
                .ended()
                .unwrap_or_else(|| Error::Error(error.to_string())),
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
