//! Where samples go out: a writer's access to the engine.

use std::fmt;
use std::sync::Arc;

use spindle_dds_core::{Claim, ClaimError, Committed, Kind, Lane, Meta, Ring, TopicKey};
use spindle_dds_qos::Duration;
use spindle_dds_transport::{Fabric, Park};

use super::session::Session;
use crate::error::{Error, Result};
use crate::time::{Deadline, source_timestamp};

/// In the `flags` of a control message: its writer was deleted.
pub(super) const WRITER_DELETED: u8 = 1;
/// Beside it: its instances are disposed of with that.
pub(super) const DISPOSES: u8 = 2;

/// How long a deleted writer waits for room to say so.
const FAREWELL_WITHIN: Duration = Duration::from_millis(100);

/// A writer's way into its ring.
pub(crate) struct Port<F: Fabric> {
    session: Arc<Session<F>>,
    lane: Arc<Lane<F>>,
    ring: Ring,
    topic: TopicKey,
}

/// What a claim gave.
#[derive(Debug)]
pub(crate) enum Claimed<F: Fabric> {
    /// Memory in the ring.
    Room(Claim<F>),
    /// None, and the writer does not wait.
    NoRoom,
}

impl<F: Fabric> fmt::Debug for Port<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port")
            .field("lane", &self.lane)
            .field("ring", &self.ring)
            .finish_non_exhaustive()
    }
}

impl<F: Park> Port<F> {
    pub(crate) fn new(
        session: Arc<Session<F>>,
        lane: Arc<Lane<F>>,
        ring: Ring,
        topic: TopicKey,
    ) -> Self {
        Self {
            session,
            lane,
            ring,
            topic,
        }
    }

    /// Claims `len` bytes; waits for room at most `patience`, if there is any.
    pub(crate) fn claim(&self, len: usize, patience: Option<Duration>) -> Result<Claimed<F>> {
        let Ok(len) = u32::try_from(len) else {
            return Err(self.too_large(len as u64, self.len_max()));
        };
        match self.lane.claim(self.ring, len) {
            Ok(claim) => Ok(Claimed::Room(claim)),
            Err(ClaimError::NoRoom) => match patience {
                // Nobody else looks for room of a writer that does not wait.
                None => {
                    self.session.step();
                    match self.lane.claim(self.ring, len) {
                        Ok(claim) => Ok(Claimed::Room(claim)),
                        Err(ClaimError::NoRoom) => Ok(Claimed::NoRoom),
                        Err(error) => Err(self.refused(error)),
                    }
                }
                Some(patience) => self.wait_for_room(len, patience).map(Claimed::Room),
            },
            Err(error) => Err(self.refused(error)),
        }
    }

    fn wait_for_room(&self, len: u32, patience: Duration) -> Result<Claim<F>> {
        let session = &self.session;
        let deadline = Deadline::after(patience);
        let _acks = session.handle().waiting_for_acks();
        // What would bring room may have come and not been looked at yet.
        session.step();
        let claimed = session.room().wait(self.lane.subgroup(), deadline, || {
            match self.lane.claim(self.ring, len) {
                Err(ClaimError::NoRoom) => None,
                result => Some(result),
            }
        });
        match claimed {
            Some(Ok(claim)) => Ok(claim),
            Some(Err(error)) => Err(self.refused(error)),
            None => Err(Error::Timeout(format!(
                "no room for {len} bytes within {patience}: a reader does not take its samples, \
                 or holds them"
            ))),
        }
    }

    /// Messages of this participant in this ring below this index are released.
    pub(crate) fn released(&self) -> u64 {
        self.lane.released(self.ring)
    }

    /// Repeats `attempt`, which is given [`released`](Self::released), whenever more
    /// messages are, until `deadline`; without one, once after a look.
    ///
    /// # Errors
    /// What ended the group.
    pub(crate) fn wait_for_release<R>(
        &self,
        deadline: Option<Deadline>,
        mut attempt: impl FnMut(u64) -> Option<R>,
    ) -> Result<Option<R>> {
        let session = &self.session;
        let Some(deadline) = deadline else {
            session.step();
            return Ok(attempt(self.released()));
        };
        let _acks = session.handle().waiting_for_acks();
        session.step();
        let waited = session.room().wait(self.lane.subgroup(), deadline, || {
            let result = attempt(self.released());
            let ended = || session.fate().check().err().map(Err);
            result.map(Ok).or_else(ended)
        });
        waited.transpose()
    }

    /// Whoever waits in `wait_for_release` tries again: something else than a
    /// release came in between.
    pub(crate) fn tell_waiters(&self) {
        self.session.room().tell(self.lane.subgroup());
    }

    /// Sends the first `used` bytes. Publishes them by itself if it can.
    pub(crate) fn commit(&self, claim: Claim<F>, used: usize, mut meta: Meta) -> Result<Committed> {
        meta.topic = self.topic.low();
        let used = u32::try_from(used).unwrap_or(u32::MAX);
        let committed = claim
            .commit(used, &meta)
            .map_err(|refused| self.refused(refused.error))?;
        self.session.publish(&self.lane);
        Ok(committed)
    }

    /// Tells the readers that a writer is gone, and whether its instances are
    /// disposed of with that. Waits a little for room to say so; without it they
    /// find out when this member leaves.
    pub(crate) fn writer_deleted(&self, number: u32, disposes: bool) {
        let meta = Meta {
            kind: Kind::Control,
            flags: WRITER_DELETED | if disposes { DISPOSES } else { 0 },
            encapsulation: 0,
            writer: number,
            timestamp: source_timestamp(),
            topic: 0,
            key_hash: [0; 16],
            skipped: 0,
        };
        match self.claim(0, Some(FAREWELL_WITHIN)) {
            Ok(Claimed::Room(claim)) => {
                let _ = self.commit(claim, 0, meta);
            }
            Ok(Claimed::NoRoom) | Err(_) => tracing::warn!(
                number,
                "no room to tell that a writer was deleted: its readers learn it when this \
                 participant leaves"
            ),
        }
    }

    /// Blocks until all members have received message `index` of the ordered ring.
    pub(crate) fn wait_stable(&self, index: u64, deadline: Deadline) -> Result<()> {
        let (session, lane) = (&self.session, &self.lane);
        let message = Committed {
            subgroup: lane.subgroup(),
            epoch: lane.epoch(),
            ring: self.ring,
            index,
        };
        if lane.is_acknowledged(&message) {
            return Ok(());
        }
        let _acks = session.handle().waiting_for_acks();
        session.step();
        let stable = session.room().wait(lane.subgroup(), deadline, || {
            if lane.is_acknowledged(&message) {
                return Some(Ok(()));
            }
            session.fate().check().err().map(Err)
        });
        stable.unwrap_or_else(|| {
            let text = "not all participants have received what was written";
            Err(Error::Timeout(text.to_owned()))
        })
    }

    fn len_max(&self) -> u64 {
        self.lane.message_len_max(self.ring).unwrap_or_default()
    }

    #[cold]
    fn too_large(&self, len: u64, max: u64) -> Error {
        Error::OutOfResources(format!(
            "a sample of {len} bytes does not fit: the ring takes samples of up to {max}; raise \
             the property spindle.ring.bytes to at least twice the sample"
        ))
    }

    #[cold]
    fn refused(&self, error: ClaimError) -> Error {
        match error {
            ClaimError::TooLarge { len, max } => self.too_large(len, max),
            ClaimError::NoRoom => Error::Timeout(error.to_string()),
            ClaimError::NotASender => Error::Error(error.to_string()),
            ClaimError::Wedged | ClaimError::Leaving | ClaimError::Stopped => {
                let ended = self.session.fate().check().err();
                ended.unwrap_or_else(|| Error::Error(error.to_string()))
            }
        }
    }
}
