//! Samples of a RELIABLE writer that are not sent yet, and how they get sent.
//!
//! ```text
//!   a write that finds no room, or no epoch --keep--> WriterHistory --subgroup_changed--> the ring
//!                                                        ^ by the next write, or by the thread
//!                                                          that steps and finds room
//! ```
//!
//! While something waits, what is written queues behind it: `WriterSide::pending` is set, which each
//! write looks at.
//!
//! Lock order: the names of keys, then this, then RESOURCE_LIMITS. None of them is held across user
//! code, or while a thread waits.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use spindle_dds_core::{CommitMeta, Committed, MessageKind};
use spindle_dds_idl_runtime::KeyHash;

use super::acknowledgments::Written;
use super::core::WriterCore;
use super::permit::SamplePermit;
use super::writer_history::{HistoryFull, WaitingSample, WriterHistory, counts_against_limits};
use crate::driver::{Obstacle, SubgroupObserver, SubgroupWait, WriterPort};
use crate::error::{Error, Result};
use crate::keys::{KnownKeys, OnItsWay};
use crate::time::Deadline;

/// In `WriterSide::pending`, for a RELIABLE writer: samples wait.
const WAITING: u64 = 1;
/// Beside it, for a PERSISTENT writer, always: what is sent is noted.
pub(super) const LOGGED: u64 = 2;

/// What waits of a writer.
#[derive(Debug)]
pub(super) struct Unsent {
    history: WriterHistory,
    /// While something waits.
    wait: Option<SubgroupWait>,
    /// The last sample that has waited and was sent, and how often the participant had come back to its
    /// group then.
    last: Option<(Committed, u32)>,
}

/// What is kept of a message that cannot be sent now.
#[derive(Debug)]
pub(super) struct ToKeep {
    pub(super) kind: MessageKind,
    pub(super) key_hash: KeyHash,
    pub(super) timestamp: i64,
    pub(super) payload: Vec<u8>,
    /// Its instance in this participant, if that is known already.
    pub(super) instance: Option<KeyHash>,
}

impl Unsent {
    pub(super) const fn new(history: WriterHistory) -> Self {
        Self {
            history,
            wait: None,
            last: None,
        }
    }

    /// Acknowledgements are to wake a thread of the session that the writer is in now.
    fn renew_wait(&mut self, port: &WriterPort) {
        if self.wait.as_ref().is_some_and(|wait| !wait.is_of(port))
            && let Some(wait) = self.wait.take()
        {
            self.wait = Some(wait.renewed(port));
        }
    }
}

/// Why a sample cannot be kept now: what is full, and what is in the way of those that wait.
type NotKept = (Option<HistoryFull>, Option<Obstacle>);

impl SubgroupObserver for WriterCore {
    fn subgroup_changed(&self) {
        self.send_unsent(&mut self.unsent());
    }
}

impl WriterCore {
    fn unsent(&self) -> MutexGuard<'_, Unsent> {
        let unsent = self.side.unsent.lock();
        unsent.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether samples wait. They were written before what is written now.
    fn has_waiting(&self) -> bool {
        // A BEST_EFFORT writer counts something else there.
        !self.is_best_effort() && self.side.pending.load(Ordering::Acquire) & WAITING != 0
    }

    /// Samples that wait to be sent, and the bytes that they take.
    pub(crate) fn waiting(&self) -> [u64; 2] {
        if !self.has_waiting() {
            return [0; 2];
        }
        let unsent = self.unsent();
        [unsent.history.len() as u64, unsent.history.bytes() as u64]
    }

    /// Bytes that waiting samples take.
    pub(super) fn unsent_bytes(&self) -> usize {
        let unsent = self.side.unsent.try_lock();
        unsent.map_or(0, |unsent| unsent.history.bytes())
    }

    /// The name of the instance of a built message; it is not forgotten before the guard is dropped.
    ///
    /// # Errors
    /// BAD_PARAMETER for an invalid message.
    pub(super) fn instance_of(
        &self,
        (kind, key_hash): (MessageKind, KeyHash),
        built: &[u8],
    ) -> Result<(KeyHash, Option<OnItsWay<'_>>)> {
        let Some(keys) = &self.side.keys else {
            return Ok((key_hash, None));
        };
        self.forget_keys(keys);
        let named = keys.name_on_its_way(kind, built, self.side.encapsulation())?;
        Ok((named.name, Some(named)))
    }

    /// Forgets the keys that are not in use, if there are many.
    pub(super) fn forget_keys(&self, keys: &KnownKeys) {
        if keys.has_many() {
            let limits = self.side.limits();
            keys.forget(|name| {
                limits.is_some_and(|limits| limits.knows(name)) || self.unsent().history.has(name)
            });
        }
    }

    /// Sends what waits, in its order, until something is in the way, which is returned. Returns
    /// `None` when nothing waits any more.
    fn send_unsent(&self, unsent: &mut Unsent) -> Option<Obstacle> {
        let port = self.side.port.get()?;
        unsent.renew_wait(port);
        let mut claim = None;
        while let Some(sample) = unsent.history.front() {
            let limits = self.side.limits();
            let limits = limits.filter(|_| counts_against_limits(sample.kind));
            let admits = limits.filter(|_| !sample.is_admitted);
            if let Some(limits) = admits
                && limits
                    .admit_waiting(sample.instance, port.released())
                    .is_err()
            {
                return Some(Obstacle::Limits);
            }
            let meta = CommitMeta {
                kind: sample.kind,
                flags: 0,
                encapsulation: self.side.encapsulation().0,
                writer: self.number,
                timestamp: sample.timestamp,
                topic: port.topic(),
                key_hash: sample.key_hash.0,
                skipped: sample.skipped,
            };
            match port.send_now(&mut claim, &sample.payload, &meta) {
                Ok((committed, position)) => {
                    if let Some(limits) = limits {
                        limits.committed_waiting(sample.kind, sample.instance, position);
                    }
                    unsent.last = Some((committed, position.returns));
                    unsent.history.pop_front();
                }
                Err(obstacle) => {
                    if let Some(limits) = admits {
                        limits.withdraw_waiting(sample.instance);
                    }
                    let Obstacle::Error(error) = &obstacle else {
                        return Some(obstacle);
                    };
                    if port.check().is_err() {
                        self.give_up(unsent, error);
                        return Some(obstacle);
                    }
                    let topic = &self.topic.name;
                    tracing::warn!(topic, %error, "a sample that waited cannot be sent");
                    let gone = unsent.history.give_up_front();
                    self.settle_gone(gone);
                }
            }
        }
        self.nothing_waits(unsent);
        None
    }

    fn nothing_waits(&self, unsent: &mut Unsent) {
        // Without something that waits, nothing of it was set.
        if unsent.wait.take().is_some() {
            self.side.pending.fetch_and(!WAITING, Ordering::Release);
        }
    }

    /// What waits is never sent. Says so.
    fn give_up(&self, unsent: &mut Unsent, why: &Error) {
        let gone = unsent.history.clear();
        self.nothing_waits(unsent);
        if !gone.is_empty() {
            let (topic, samples) = (&self.topic.name, gone.len());
            tracing::warn!(topic, samples, %why, "samples that a writer has accepted are not sent");
        }
        self.settle_gone(gone);
    }

    /// Counts what is gone, and gives back what it had of RESOURCE_LIMITS.
    fn settle_gone(&self, gone: impl IntoIterator<Item = WaitingSample>) {
        for sample in gone {
            if sample.kind == MessageKind::Data {
                self.side.dropped.fetch_add(1, Ordering::Relaxed);
            }
            if let Some(limits) = self.side.limits().filter(|_| sample.is_admitted) {
                limits.withdraw_waiting(sample.instance);
            }
        }
    }

    /// Sends what waits, if anything does. Returns whether nothing waits any more.
    pub(super) fn send_what_waits(&self) -> bool {
        if !self.has_waiting() {
            return true;
        }
        let mut unsent = self.unsent();
        let before = unsent.history.len();
        let obstacle = self.send_unsent(&mut unsent);
        let any = unsent.history.len() < before;
        drop(unsent);
        if any && let Some(port) = self.side.port.get() {
            // Threads may wait for just that.
            port.wake_waiters();
        }
        obstacle.is_none()
    }

    /// Keeps a message that cannot be sent now; it is sent in its turn. Waits until `deadline`, by
    /// default for max_blocking_time, where too much waits already. Returns its ticket.
    ///
    /// # Errors
    /// TIMEOUT; OUT_OF_RESOURCES for an instance too many; what ended the group or the writer.
    #[cold]
    pub(super) fn keep(
        self: &Arc<Self>,
        to_keep: ToKeep,
        permit: Option<SamplePermit>,
        deadline: Option<Deadline>,
    ) -> Result<u64> {
        let port = self.port()?;
        port.check()?;
        let ToKeep {
            kind,
            key_hash,
            timestamp,
            payload,
            instance,
        } = to_keep;
        let (instance, _on_its_way) = match instance {
            Some(instance) => (instance, None),
            None => self.instance_of((kind, key_hash), &payload)?,
        };
        let mut sample = Some(WaitingSample {
            kind,
            instance,
            key_hash,
            timestamp,
            payload,
            is_admitted: permit.is_some(),
            skipped: 0,
        });
        let mut why = (None, None);
        let mut permit = permit;
        let mut attempt = || match self.try_to_keep(port, &mut sample, &mut permit) {
            Err(not_kept) => {
                why = not_kept;
                None
            }
            Ok(kept) => Some(kept),
        };
        let kept = attempt().or_else(|| {
            let deadline =
                deadline.unwrap_or_else(|| Deadline::after(self.side.max_blocking_time()));
            if deadline == Deadline::Passed {
                return Some(Err(Error::would_block()));
            }
            let _recorded = port.record_wait();
            port.step();
            port.wait_for_acks(deadline, || match port.check() {
                Err(error) => Some(Err(error)),
                Ok(()) => attempt(),
            })
        });
        kept.unwrap_or_else(|| Err(self.not_kept(port, why)))
    }

    /// Adds a sample to the history if it fits, and sends what can be sent. Does not wait.
    fn try_to_keep(
        self: &Arc<Self>,
        port: &WriterPort,
        sample: &mut Option<WaitingSample>,
        permit: &mut Option<SamplePermit>,
    ) -> std::result::Result<Result<u64>, NotKept> {
        let mut unsent = self.unsent();
        let obstacle = match self.send_unsent(&mut unsent) {
            Some(Obstacle::Error(error)) => return Ok(Err(error)),
            lacking @ Some(Obstacle::NoRoom | Obstacle::Limits | Obstacle::Shut)
                if self.side.waits_for_room() =>
            {
                return Err((None, lacking));
            }
            obstacle => obstacle,
        };
        let Some(new) = sample.take() else {
            return Ok(Err(Error::Error("the sample is kept already".to_owned())));
        };
        let (kind, instance) = (new.kind, new.instance);
        let limits = self.side.limits();
        let registers = limits.filter(|_| counts_against_limits(kind));
        let is_new = match registers.map(|limits| (limits, limits.register(instance))) {
            Some((limits, Err(full))) => {
                return Ok(Err(Error::OutOfResources(limits.describe(full))));
            }
            Some((_, Ok(is_new))) => is_new,
            None => false,
        };
        let replaces = obstacle.as_ref().is_some_and(Obstacle::lasts);
        let (ticket, gone) = match unsent.history.push(new, replaces) {
            Ok(pushed) => pushed,
            Err((new, full)) => {
                if let Some(limits) = limits.filter(|_| is_new) {
                    limits.unregister(MessageKind::Unregister, instance);
                }
                *sample = Some(new);
                return Err((Some(full), obstacle));
            }
        };
        if let Some(permit) = permit.take() {
            permit.kept(instance);
        }
        self.settle_gone(gone);
        if let Some(limits) = limits.filter(|_| !counts_against_limits(kind)) {
            limits.unregister(kind, instance);
        }
        self.side.pending.fetch_or(WAITING, Ordering::Release);
        if unsent.wait.is_none() {
            let writer: Weak<dyn SubgroupObserver> = Arc::downgrade(&(self.clone() as Arc<_>));
            unsent.wait = Some(port.observe(writer));
        }
        // What has come before it was recorded is not told.
        match self.send_unsent(&mut unsent) {
            Some(Obstacle::Error(error)) => Ok(Err(error)),
            _ => Ok(Ok(ticket)),
        }
    }

    #[cold]
    fn not_kept(&self, port: &WriterPort, (full, obstacle): NotKept) -> Error {
        let (samples, bytes) = {
            let unsent = self.unsent();
            (unsent.history.len(), unsent.history.bytes())
        };
        let limit = match full {
            Some(HistoryFull::Samples) => ", and max_samples of RESOURCE_LIMITS allows no more",
            Some(HistoryFull::Bytes) => ", and spindle.writer.history_bytes allows no more",
            None => "",
        };
        let why = obstacle.map(|obstacle| self.describe(port, &obstacle));
        Error::Timeout(format!(
            "{samples} samples ({bytes} bytes) wait to be sent{limit}: {}",
            why.unwrap_or_else(|| "other threads write as well".to_owned())
        ))
    }

    /// What is in the way of a sample.
    #[cold]
    pub(super) fn describe(&self, port: &WriterPort, obstacle: &Obstacle) -> String {
        let text = port.describe(obstacle);
        match (obstacle, self.side.pool.loans()) {
            (Obstacle::NoRoom | Obstacle::Limits, loans @ 1..) => {
                format!("{text}; the writer has {loans} loans, neither published nor dropped")
            }
            _ => text,
        }
    }

    /// An error of a wait for room, with the writer's own loans.
    #[cold]
    pub(super) fn with_loans(&self, error: Error) -> Error {
        match (error, self.side.pool.loans()) {
            (Error::Timeout(text), loans @ 1..) => Error::Timeout(format!(
                "{text}; the writer has {loans} loans, neither published nor dropped"
            )),
            (error, _) => error,
        }
    }

    /// Blocks until all that was written so far is sent, or replaced; unless the participant `comes_back`
    /// to a group that it loses, only while it is a member.
    ///
    /// # Errors
    /// TIMEOUT; what ended the group or the writer.
    pub(super) fn wait_until_sent(&self, deadline: Deadline, comes_back: bool) -> Result<()> {
        let (Some(ticket), Some(port)) = (self.next_ticket(), self.side.port.get()) else {
            return Ok(());
        };
        port.step();
        let settled = port.wait_for_acks(deadline, || {
            let is_settled = self.is_settled(ticket).then_some(Ok(()));
            let is_over = || !comes_back && port.is_out();
            let ended = || port.check().err().or_else(|| is_over().then(|| port.out()));
            is_settled.or_else(|| ended().map(Err))
        });
        settled.unwrap_or_else(|| Err(self.not_settled(port)))
    }

    /// The ticket below which all that waits stands, after an attempt to send it. `None` if nothing
    /// waits.
    pub(super) fn next_ticket(&self) -> Option<u64> {
        (!self.send_what_waits()).then(|| self.unsent().history.next())
    }

    /// Whether nothing waits any more below this ticket.
    pub(super) fn is_settled(&self, ticket: u64) -> bool {
        self.unsent().history.settled() >= ticket
    }

    /// The last sample that has waited and was sent.
    pub(super) fn last_settled(&self) -> Written {
        let last = self.unsent().last;
        last.map_or(Written::Nothing, |(last, returns)| {
            Written::Sent(last, returns)
        })
    }

    /// TIMEOUT, as samples wait to be sent.
    #[cold]
    pub(super) fn not_settled(&self, port: &WriterPort) -> Error {
        let mut unsent = self.unsent();
        let obstacle = self.send_unsent(&mut unsent);
        let waiting = unsent.history.len();
        drop(unsent);
        let why = obstacle.map(|obstacle| self.describe(port, &obstacle));
        Error::Timeout(format!(
            "{waiting} samples wait to be sent: {}",
            why.unwrap_or_default()
        ))
    }

    /// The writer is deleted: what waits is never sent.
    pub(super) fn give_up_unsent(&self) {
        let why = Error::AlreadyDeleted("the writer is deleted".to_owned());
        self.give_up(&mut self.unsent(), &why);
    }
}
