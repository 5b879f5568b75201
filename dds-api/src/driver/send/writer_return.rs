//! A writer whose participant has lost its group and comes back: what it had sent, and what becomes of
//! that.

use std::collections::BTreeMap;
use std::sync::Arc;

use spindle_dds_core::membership::DeliveredCounts;
use spindle_dds_core::{CommitMeta, Committed, SentMessage};
use spindle_dds_qos::Duration;

use super::writer_logs::LastSent;
use super::writer_port::{Obstacle, WriterPort};
use crate::driver::session::Session;
use crate::error::{Error, Result};
use crate::time::Deadline;

/// What became of the messages that were sent before the participant lost its group.
#[derive(Debug, Default)]
pub(crate) struct Before {
    /// Messages of that epoch below that index were delivered.
    pub(crate) delivered: Option<(u64, u64)>,
    /// By epoch and index: those that were sent again, and as what.
    pub(crate) again: BTreeMap<(u64, u64), Committed>,
}

impl Before {
    /// Whether the group has delivered a message.
    pub(super) fn has_delivered(&self, message: &Committed) -> bool {
        let at = (message.epoch, message.index);
        self.delivered.is_some_and(|delivered| at < delivered)
    }
}

/// What a writer's participant sent in the epoch in which it lost its group.
#[derive(Debug)]
pub(crate) struct SentBefore {
    pub(crate) epoch: u64,
    /// Index below which the group has delivered the messages, if that is known.
    pub(crate) delivered: Option<u64>,
    /// From that index on; all that may not have been delivered, if it is not known.
    pub(crate) messages: Vec<SentMessage>,
}

impl WriterPort {
    /// The participant, which had lost its group, is about to be in one again. Claims are refused
    /// until [`has_sent_again`](Self::has_sent_again).
    pub(crate) fn reconnect(&self, session: Arc<Session>) {
        *self.asked() = None;
        if let Some(logs) = &self.logs {
            logs.connected(session.outages());
        }
        let mut place = self.place_mut();
        place.session = session;
        place.epoch = None;
        place.acceptors = Arc::default();
        place.returns += 1;
        place.sends_again = true;
        place.before = None;
    }

    /// All that the writer had to send again is sent.
    pub(crate) fn has_sent_again(&self, before: Before) {
        let mut place = self.place_mut();
        self.note_before(&before, place.returns);
        place.before = Some(before);
        place.sends_again = false;
        drop(place);
        self.wake_waiters();
    }

    /// The messages that the participant had sent when it lost its group, and that the group has not
    /// delivered. `None` before the first view that had the writer.
    pub(crate) fn sent_before(&self, counts: Option<&DeliveredCounts>) -> Option<SentBefore> {
        let epoch = self.epoch()?;
        let delivered = counts.and_then(|it| it.of(self.subgroup, epoch.epoch()));
        Some(SentBefore {
            epoch: epoch.epoch(),
            delivered,
            messages: epoch.sent_since(self.class, delivered.unwrap_or(0)),
        })
    }

    /// The messages that the participant had sent when it lost its group, and that the group has
    /// delivered, as far as they are in the ring.
    pub(crate) fn delivered_before(&self, counts: &DeliveredCounts) -> Vec<SentMessage> {
        let Some(epoch) = self.epoch() else {
            return Vec::new();
        };
        let Some(delivered) = counts.of(self.subgroup, epoch.epoch()) else {
            return Vec::new();
        };
        let mut sent = epoch.sent_since(self.class, 0);
        sent.retain(|message| message.header.index < delivered);
        sent
    }

    /// Sends what was sent before the participant lost its group. Waits as long as the group can take it
    /// later.
    ///
    /// # Errors
    /// [`Obstacle::Out`]: the participant has lost its group again. [`Obstacle::Error`]: what ended the
    /// group or the writer, or the message never fits.
    pub(crate) fn send_again(
        &self,
        payload: &[u8],
        meta: &CommitMeta,
    ) -> std::result::Result<Committed, Obstacle> {
        let attempt = || match self.try_again(payload, meta) {
            Err(obstacle) if obstacle.passes() => None,
            sent => Some(sent),
        };
        let forever = Deadline::after(Duration::INFINITE);
        self.wait_for_acks(forever, attempt)
            .unwrap_or(Err(Obstacle::Out))
    }

    fn try_again(
        &self,
        payload: &[u8],
        meta: &CommitMeta,
    ) -> std::result::Result<Committed, Obstacle> {
        let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let place = self.place();
        if let Some(shut) = self.shut(&place) {
            drop(place);
            return Err(self.unless_ended(shut));
        }
        let claimed = self.claim_in(&place, len);
        drop(place);
        let claimed = claimed.ok_or(None).and_then(|it| it.map_err(Some));
        let mut claim = claimed.map_err(|refused| self.obstacle(refused))?;
        claim.bytes().copy_from_slice(payload);
        let sent = claim.send(len, meta);
        let sent = sent.map(|index| claim.committed(index));
        if let Ok(committed) = &sent {
            self.note_sent(committed, claim.returns());
        }
        sent.map_err(|refused| self.obstacle(Some(refused)))
    }

    /// The last message that the writer of this number has sent in the order, and how often the
    /// participant had come back to its group then; the inner `None` if nothing that it has sent has to
    /// be accepted any more. The outer `None` while the participant is out of its group.
    pub(crate) fn last_sent(&self, number: u32) -> Option<Option<LastSent>> {
        let place = self.place();
        if place.sends_again || place.session.is_over() {
            return None;
        }
        if let Some(last) = self.last_logged() {
            return Some(last);
        }
        let last = place.epoch.as_ref();
        let last = last.and_then(|epoch| epoch.last_of(self.class, number));
        Some(last.map(|message| LastSent {
            message,
            returns: place.returns,
            is_delivered: false,
        }))
    }

    /// Whether all members with RELIABLE readers that match have accepted an ordered message, which was
    /// sent when the participant had come back to its group so often, and as many logs have it as have to;
    /// or why they never will. `None` if that is not known yet.
    pub(crate) fn fate(&self, message: &Committed, returns: u32) -> Option<Result<()>> {
        match self.acceptance(message, returns)? {
            Ok((message, returns)) => self.log_fate(&message, returns),
            Err(error) => Some(Err(error)),
        }
    }

    /// As what an ordered message was accepted: it may have been sent again.
    fn acceptance(&self, message: &Committed, returns: u32) -> Option<Result<(Committed, u32)>> {
        let place = self.place();
        let is_accepted = |message: &Committed| {
            let mut acceptors = place.acceptors.iter();
            let epoch = place.epoch.as_ref();
            epoch.is_some_and(|epoch| acceptors.all(|it| it.has_accepted(epoch, message)))
        };
        if returns == place.returns {
            return is_accepted(message).then_some(Ok((*message, returns)));
        }
        if place.sends_again {
            return None;
        }
        let before = place
            .before
            .as_ref()
            .filter(|_| returns + 1 == place.returns);
        let at = (message.epoch, message.index);
        if before.is_some_and(|it| it.has_delivered(message)) {
            return Some(Ok((*message, returns)));
        }
        match before.and_then(|it| it.again.get(&at)) {
            Some(again) => is_accepted(again).then_some(Ok((*again, place.returns))),
            None => Some(Err(Error::Error(
                "it is not known that all readers have accepted the sample: the participant has lost \
                 its group since it was written"
                    .to_owned(),
            ))),
        }
    }
}
