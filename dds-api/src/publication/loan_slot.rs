//! One sample on its way through its writer.
//!
//! ```text
//!   LoanPool --take--> reserve --> build in bytes() --> publish --give back--> LoanPool
//!                         \------------- dropped: withdrawn ------/
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;

use spindle_dds_core::{ClaimError, CommitMeta, DeliveryClass, MessageKind};
use spindle_dds_idl_runtime::KeyHash;

use super::core::WriterCore;
use super::limits::Limits;
use super::permit::SamplePermit;
use super::receipt::{Receipt, SentAs};
use super::registered_instances::SeenInstances;
use super::unsent::ToKeep;
use super::writer_history::counts_against_limits;
use crate::driver::{Obstacle, SendPosition, WriterClaim, WriterPort};
use crate::error::{Error, Result};
use crate::time::Deadline;

/// What a sample is built in. It is on the heap, because a loan is moved with each stage of
/// its builder.
#[derive(Debug, Default)]
pub(super) struct LoanSlot {
    /// The writer that is using the slot. Kept between samples, so that a sample does not
    /// count references; `None` before the first sample and once the writer is deleted.
    pub(super) writer: Option<Arc<WriterCore>>,
    /// Room in the ring. A finished claim is kept and renewed: it holds its subgroup epoch.
    pub(super) claim: Option<WriterClaim>,
    /// [`LoanPool::epochs`](super::loan_pool::LoanPool::epochs) when `claim` was made.
    pub(super) epochs: usize,
    /// The sample's share of RESOURCE_LIMITS, if the writer has any.
    permit: Option<SamplePermit>,
    /// Where the sample is built.
    built_in: BuiltIn,
    /// Until when its write may wait, if it has a deadline already. Valid unless it is built in
    /// [`BuiltIn::Ring`].
    deadline: Option<Deadline>,
    /// Until when the caller allows its write to wait, if that is not max_blocking_time. `None` between
    /// samples.
    pub(super) until: Option<Deadline>,
    /// Private memory.
    scratch: Vec<u8>,
    /// The instances of the writer that were sent from here.
    seen: SeenInstances,
    /// Source timestamp in nanoseconds since 1970, if the application gave one.
    pub(super) timestamp: Option<i64>,
    /// It is the pool's first slot.
    pub(super) is_first: bool,
    /// It counts as a loan until it is given back.
    pub(super) is_loan: bool,
}

/// Where a sample is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum BuiltIn {
    /// In the ring, which had room at once.
    #[default]
    Ring,
    /// In the ring, and `deadline` is set.
    RingLate,
    /// In private memory, and `deadline` is set: there is no room in the ring. The sample waits in the
    /// writer's history, or is dropped (BEST_EFFORT).
    Scratch,
}

/// What room is reserved for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    /// A sample or a disposal, with its instance if that is known already.
    Sample(Option<KeyHash>),
    /// RESOURCE_LIMITS do not apply: it gives back what they limit.
    Unregister,
}

impl Purpose {
    #[inline]
    pub(super) fn of(kind: MessageKind, key: KeyHash) -> Self {
        match kind {
            MessageKind::Unregister | MessageKind::DisposeUnregister => Self::Unregister,
            _ => Self::Sample(Some(key)),
        }
    }
}

#[cold]
fn no_writer() -> Error {
    Error::IllegalOperation("the loan has no writer".to_owned())
}

#[cold]
fn no_room() -> Error {
    Error::IllegalOperation("the loan has less room than the sample".to_owned())
}

impl LoanSlot {
    /// The first slot of a pool.
    pub(super) fn first() -> Self {
        Self {
            is_first: true,
            ..Self::default()
        }
    }

    /// The memory to build in.
    #[inline]
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        match &mut self.claim {
            _ if self.built_in == BuiltIn::Scratch => &mut self.scratch,
            Some(claim) => claim.bytes(),
            None => &mut [],
        }
    }

    /// Reserves `len` bytes, within RESOURCE_LIMITS. A KEEP_ALL RELIABLE writer waits at most
    /// max_blocking_time for readers to make room. Else, and while the group changes, it is private
    /// memory where there is no room.
    #[inline]
    pub(super) fn reserve(&mut self, len: usize, purpose: Purpose) -> Result<()> {
        let writer = self.writer.as_ref().ok_or_else(no_writer)?;
        writer.port()?;
        if let (Some(_), Purpose::Sample(key)) = (writer.side.limits(), purpose) {
            return self.reserve_within(len, key);
        }
        if self.claim.is_none() {
            self.epochs = writer.side.pool.epochs();
        }
        match WriterPort::claim(&mut self.claim, len) {
            Ok(()) => Ok(()),
            Err(refused) => {
                let is_loan = matches!(purpose, Purpose::Sample(None));
                self.reserve_late(len, is_loan, None, refused)
            }
        }
    }

    /// The same within RESOURCE_LIMITS, of this instance if it is known.
    #[inline(never)]
    fn reserve_within(&mut self, len: usize, key: Option<KeyHash>) -> Result<()> {
        let writer = self.writer.as_ref().ok_or_else(no_writer)?;
        let port = writer.port()?;
        let is_loan = key.is_none();
        let deadline = writer.deadline(self.until);
        if let Some(limits) = writer.side.limits() {
            // A digest does not identify an instance: its key does, once the sample is built.
            let key = key.filter(|_| writer.side.keys.is_none());
            self.permit = writer.admit(limits, key, deadline)?;
            if self.permit.is_none() {
                port.check_len(len as u64)?;
                self.build_in_scratch(len);
                self.set_deadline(deadline, is_loan);
                return Ok(());
            }
        }
        if self.claim.is_none() {
            self.epochs = writer.side.pool.epochs();
        }
        match WriterPort::claim(&mut self.claim, len) {
            Ok(()) => {
                self.built_in = BuiltIn::RingLate;
                self.set_deadline(deadline, is_loan);
                Ok(())
            }
            Err(refused) => self.reserve_late(len, is_loan, deadline, refused),
        }
    }

    /// There was no room at once.
    #[cold]
    fn reserve_late(
        &mut self,
        len: usize,
        is_loan: bool,
        deadline: Option<Deadline>,
        refused: Option<ClaimError>,
    ) -> Result<()> {
        let writer = self.writer.as_ref().ok_or_else(no_writer)?;
        let deadline = writer.deadline(self.until.or(deadline));
        let claimed = writer
            .port()?
            .claim_late(&mut self.claim, len, deadline, refused);
        match claimed.map_err(|error| writer.with_loans(error))? {
            true => self.built_in = BuiltIn::RingLate,
            false => self.build_in_scratch(len),
        }
        self.set_deadline(deadline, is_loan);
        Ok(())
    }

    fn build_in_scratch(&mut self, len: usize) {
        self.built_in = BuiltIn::Scratch;
        self.scratch.clear();
        self.scratch.resize(len, 0);
    }

    /// A loan is a call of its own: its publication has all the time again.
    fn set_deadline(&mut self, deadline: Option<Deadline>, is_loan: bool) {
        self.deadline = deadline.filter(|_| !is_loan);
    }

    /// Sends the first `used` bytes of what was reserved; or keeps them, to be sent in their turn. A loan
    /// of a KEEP_ALL RELIABLE writer that limits its instances, or the samples of one, may wait here:
    /// only now its instance is known.
    pub(super) fn publish(
        &mut self,
        used: usize,
        kind: MessageKind,
        key: KeyHash,
        timestamp: i64,
    ) -> Result<Receipt> {
        let writer = self.writer.as_ref().ok_or_else(no_writer)?;
        let message = Message {
            used,
            kind,
            key,
            timestamp,
        };
        if !self.seen.is_last(key, writer.side.registered.round()) {
            return self.publish_of_another(message);
        }
        self.send_built(message)
    }

    /// Publishes a message of another instance than the last one, which may be its first.
    #[inline(never)]
    fn publish_of_another(&mut self, message: Message) -> Result<Receipt> {
        let writer = self.writer.as_ref().ok_or_else(no_writer)?;
        let round = writer.side.registered.round();
        if matches!(message.kind, MessageKind::Data | MessageKind::Dispose)
            && !self.seen.see(message.key, round)
        {
            return self.publish_unseen(message, round);
        }
        self.send_built(message)
    }

    /// Publishes a message that registers its instance, unless another slot has sent one.
    #[cold]
    fn publish_unseen(&mut self, message: Message, round: u64) -> Result<Receipt> {
        let Message {
            used, kind, key, ..
        } = message;
        let writer = self.writer.clone().ok_or_else(no_writer)?;
        let built = self.bytes().get(..used).ok_or_else(no_room)?;
        let new = writer.register_written((kind, key), built)?;
        let published = self.send_built(message);
        match (&published, new) {
            (Ok(_), _) => self.seen.note(key, round, writer.side.registered.len()),
            (Err(_), Some(name)) => writer.unregister(name),
            (Err(_), None) => {}
        }
        published
    }

    #[inline(always)]
    fn send_built(&mut self, message: Message) -> Result<Receipt> {
        let Message { used, .. } = message;
        let writer = self.writer.as_ref().ok_or_else(no_writer)?;
        let port = writer.port()?;
        let claim = match &mut self.claim {
            Some(claim) if self.built_in != BuiltIn::Scratch => claim,
            _ => {
                let built = self.scratch.get(..used).ok_or_else(no_room)?;
                let deadline = self.until.or(self.deadline);
                return writer.publish_scratch(built, &mut self.permit, message, deadline);
            }
        };
        let Some(limits) = writer.side.limits() else {
            return match send(writer, port, claim, &message) {
                Ok(index) => {
                    let committed = SentAs::Committed(claim.committed(index));
                    Ok(writer.receipt(committed, claim.returns()))
                }
                Err(not_sent) => {
                    let deadline = self.deadline.filter(|_| self.built_in != BuiltIn::Ring);
                    let deadline = self.until.or(deadline);
                    send_late(writer, claim, None, message, deadline, not_sent)
                }
            };
        };
        let deadline = self.deadline.filter(|_| self.built_in != BuiltIn::Ring);
        let deadline = self.until.or(deadline);
        send_within(limits, writer, claim, &mut self.permit, message, deadline)
    }

    /// Withdraws what was not sent.
    #[inline]
    pub(super) fn clear(&mut self) {
        if let Some(claim) = &mut self.claim {
            claim.withdraw();
        }
        if self.permit.is_some() {
            self.permit = None;
        }
        self.built_in = BuiltIn::default();
    }
}

/// What is sent of what was built.
#[derive(Debug, Clone, Copy)]
struct Message {
    /// Bytes from the start of the claim.
    used: usize,
    kind: MessageKind,
    key: KeyHash,
    timestamp: i64,
}

/// Why a message was not sent at once.
#[derive(Debug)]
enum NotSent {
    /// Older samples of the writer wait.
    Waiting,
    /// The epoch takes nothing any more. So many dropped samples are to be announced yet.
    Refused(ClaimError, u32),
}

impl Message {
    fn meta(&self, writer: &WriterCore, topic: u64, skipped: u32) -> CommitMeta {
        CommitMeta {
            kind: self.kind,
            flags: 0,
            encapsulation: writer.side.encapsulation().0,
            writer: writer.number,
            timestamp: self.timestamp,
            topic,
            key_hash: self.key.0,
            skipped,
        }
    }
}

/// Returns the index of the message, and moves nothing larger: it is on the path of each sample.
#[inline(always)]
fn send(
    writer: &WriterCore,
    port: &WriterPort,
    claim: &mut WriterClaim,
    message: &Message,
) -> std::result::Result<u64, NotSent> {
    // Acquire: what has waited is in the ring before this.
    if writer.side.pending.load(Ordering::Acquire) != 0 {
        return send_after_pending(writer, port, claim, message);
    }
    let meta = message.meta(writer, port.topic(), 0);
    let sent = port.commit(claim, message.used, &meta);
    sent.map_err(|refused| NotSent::Refused(refused, 0))
}

/// The same, after something else. What a PERSISTENT writer sends is noted.
#[inline(never)]
fn send_after_pending(
    writer: &WriterCore,
    port: &WriterPort,
    claim: &mut WriterClaim,
    message: &Message,
) -> std::result::Result<u64, NotSent> {
    let skipped = writer.see_to_pending()?;
    let meta = message.meta(writer, port.topic(), skipped);
    let sent = port.commit(claim, message.used, &meta);
    let index = sent.map_err(|refused| NotSent::Refused(refused, skipped))?;
    port.note_sent(&claim.committed(index), claim.returns());
    Ok(index)
}

/// The same within RESOURCE_LIMITS, to the receipt.
#[inline(never)]
fn send_within(
    limits: &Limits,
    writer: &Arc<WriterCore>,
    claim: &mut WriterClaim,
    permit: &mut Option<SamplePermit>,
    message: Message,
    deadline: Option<Deadline>,
) -> Result<Receipt> {
    let (name, _on_its_way) = match &writer.side.keys {
        None => (message.key, None),
        Some(_) => {
            let built = claim.bytes().get(..message.used).unwrap_or_default();
            writer.instance_of((message.kind, message.key), built)?
        }
    };
    let permit = match permit.take() {
        None => None,
        Some(permit) => {
            let until = writer.deadline(deadline);
            match writer.name_instance(limits, permit, name, until)? {
                None if writer.is_best_effort() => return writer.drop_sample(),
                None => {
                    let late = Some((None, name));
                    return send_late(writer, claim, late, message, deadline, NotSent::Waiting);
                }
                permit => permit,
            }
        }
    };
    match send(writer, writer.port()?, claim, &message) {
        Ok(index) => {
            let committed = claim.committed(index);
            settle(
                limits,
                permit,
                message.kind,
                name,
                claim.position(&committed),
            );
            if limits.keeps_any() && !counts_against_limits(message.kind) {
                // What was kept of the instance may be removed.
                writer.port()?.wake_waiters();
            }
            Ok(writer.receipt(SentAs::Committed(committed), claim.returns()))
        }
        Err(not_sent) => {
            let late = Some((permit, name));
            send_late(writer, claim, late, message, deadline, not_sent)
        }
    }
}

/// A built message was not sent at once. `limited`: its share of RESOURCE_LIMITS, and its instance.
#[cold]
fn send_late(
    writer: &Arc<WriterCore>,
    claim: &mut WriterClaim,
    limited: Option<(Option<SamplePermit>, KeyHash)>,
    message: Message,
    deadline: Option<Deadline>,
    not_sent: NotSent,
) -> Result<Receipt> {
    let skipped = match not_sent {
        NotSent::Waiting => 0,
        NotSent::Refused(refused, skipped) => {
            if refused == ClaimError::Stopped {
                claim.wait_for_reason();
            }
            skipped
        }
    };
    let built = claim.bytes().get(..message.used);
    let built = built.map(<[u8]>::to_vec);
    claim.withdraw();
    let built = built.ok_or_else(no_room)?;
    let (permit, instance) = match limited {
        Some((permit, instance)) => (permit, Some(instance)),
        None => (None, None),
    };
    if writer.is_best_effort() {
        return writer.send_anew(&built, permit, message, skipped);
    }
    writer.keep_message(built, instance, permit, message, deadline)
}

/// RESOURCE_LIMITS after a message was sent.
fn settle(
    limits: &Limits,
    permit: Option<SamplePermit>,
    kind: MessageKind,
    key: KeyHash,
    sent: SendPosition,
) {
    if let Some(permit) = permit {
        permit.sent(kind, sent);
    }
    if let MessageKind::Unregister | MessageKind::DisposeUnregister = kind {
        limits.unregister(kind, key);
    }
}

impl WriterCore {
    pub(super) fn is_best_effort(&self) -> bool {
        self.side.class() == DeliveryClass::Unordered
    }

    /// Until when a write waits for readers to make room; `None`: it does not wait, as what has no room is
    /// kept or dropped. `known`: it has a deadline already; else it begins now.
    pub(super) fn deadline(&self, known: Option<Deadline>) -> Option<Deadline> {
        let begins = || Deadline::after(self.side.max_blocking_time());
        let waits = self.side.waits_for_room();
        waits.then(|| known.unwrap_or_else(begins))
    }

    /// Publishes what was built in private memory.
    #[cold]
    fn publish_scratch(
        self: &Arc<Self>,
        built: &[u8],
        permit: &mut Option<SamplePermit>,
        message: Message,
        deadline: Option<Deadline>,
    ) -> Result<Receipt> {
        if self.is_best_effort() {
            return self.drop_sample();
        }
        let (instance, _on_its_way) = self.instance_of((message.kind, message.key), built)?;
        let permit = match (permit.take(), self.side.limits()) {
            (Some(permit), Some(limits)) => {
                let until = self.deadline(deadline);
                self.name_instance(limits, permit, instance, until)?
            }
            _ => None,
        };
        self.keep_message(built.to_vec(), Some(instance), permit, message, deadline)
    }

    fn keep_message(
        self: &Arc<Self>,
        payload: Vec<u8>,
        instance: Option<KeyHash>,
        permit: Option<SamplePermit>,
        message: Message,
        deadline: Option<Deadline>,
    ) -> Result<Receipt> {
        let to_keep = ToKeep {
            kind: message.kind,
            key_hash: message.key,
            timestamp: message.timestamp,
            payload,
            instance,
        };
        let ticket = self.keep(to_keep, permit, deadline)?;
        Ok(self.receipt(SentAs::Waiting(ticket), 0))
    }

    /// Sends a BEST_EFFORT sample whose epoch has ended in the next one, if that has room.
    fn send_anew(
        &self,
        built: &[u8],
        permit: Option<SamplePermit>,
        message: Message,
        skipped: u32,
    ) -> Result<Receipt> {
        let port = self.port()?;
        let meta = message.meta(self, port.topic(), skipped);
        match port.send_now(&mut None, built, &meta) {
            Ok((committed, position)) => {
                if let Some(permit) = permit {
                    permit.sent(message.kind, position);
                }
                Ok(self.receipt(SentAs::Committed(committed), position.returns))
            }
            Err(Obstacle::Error(error)) => Err(error),
            Err(_) => {
                let pending = &self.side.pending;
                pending.fetch_add(skipped.into(), Ordering::Relaxed);
                self.drop_sample()
            }
        }
    }

    /// Counts a BEST_EFFORT sample that finds no room.
    ///
    /// # Errors
    /// What ended the group, for now or for good: no room is a matter of writers that can send.
    #[cold]
    fn drop_sample(&self) -> Result<Receipt> {
        self.port()?.check_member()?;
        self.side.dropped.fetch_add(1, Ordering::Relaxed);
        self.side.pending.fetch_add(1, Ordering::Relaxed);
        Ok(self.receipt(SentAs::Dropped, 0))
    }

    /// How many samples a BEST_EFFORT writer has dropped since the last one that was sent; or, that
    /// older samples of a RELIABLE writer wait.
    fn see_to_pending(&self) -> std::result::Result<u32, NotSent> {
        if !self.is_best_effort() {
            return match self.send_what_waits() {
                true => Ok(0),
                false => Err(NotSent::Waiting),
            };
        }
        let dropped = self.side.pending.swap(0, Ordering::Relaxed);
        Ok(u32::try_from(dropped).unwrap_or(u32::MAX))
    }
}
