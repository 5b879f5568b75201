//! A writer whose participant has lost its group and comes back: what it had sent, and what becomes of
//! that.

use std::collections::BTreeMap;
use std::sync::Arc;

use spindle_dds_core::membership::DeliveredCounts;
use spindle_dds_core::{CommitMeta, Committed, SentMessage};
use spindle_dds_qos::Duration;

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
        let mut place = self.place_mut();
        place.session = session;
        place.epoch = None;
        place.returns += 1;
        place.sends_again = true;
        place.before = None;
    }

    /// All that the writer had to send again is sent.
    pub(crate) fn has_sent_again(&self, before: Before) {
        let mut place = self.place_mut();
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
        let claimed = self.claim_in(&place, len);
        drop(place);
        let claimed = claimed.ok_or(None).and_then(|it| it.map_err(Some));
        let mut claim = claimed.map_err(|refused| self.obstacle(refused))?;
        claim.bytes().copy_from_slice(payload);
        let sent = claim.send(len, meta);
        sent.map(|index| claim.committed(index))
            .map_err(|refused| self.obstacle(Some(refused)))
    }

    /// Blocks until all members have received what this participant has sent with this delivery
    /// class by now.
    ///
    /// # Errors
    /// TIMEOUT; what ended the group.
    pub(crate) fn wait_all_stable(&self, deadline: Deadline) -> Result<()> {
        let mut last = None;
        self.wait_for_fate(deadline, || {
            let place = self.place();
            if place.sends_again || place.session.is_over() {
                return None;
            }
            let (returns, epoch) = (place.returns, place.epoch.clone());
            drop(place);
            let sent = || epoch.and_then(|epoch| epoch.last_committed(self.class));
            match last.get_or_insert_with(|| (returns, sent())) {
                (_, None) => Some(Ok(())),
                (returns, Some(last)) => self.fate(last, *returns),
            }
        })
    }

    /// Blocks until all members have received an ordered message, which was sent when the
    /// participant had come back to its group so often.
    ///
    /// # Errors
    /// TIMEOUT; what ended the group; ERROR if the message was lost with the group.
    pub(crate) fn wait_stable(
        &self,
        message: &Committed,
        returns: u32,
        deadline: Deadline,
    ) -> Result<()> {
        self.wait_for_fate(deadline, || self.fate(message, returns))
    }

    fn wait_for_fate(
        &self,
        deadline: Deadline,
        mut fate: impl FnMut() -> Option<Result<()>>,
    ) -> Result<()> {
        if let Some(fate) = fate() {
            return fate;
        }
        let session = self.session();
        session.step();
        let known = self.wait_for_acks(deadline, || {
            fate().or_else(|| session.group_status().check().err().map(Err))
        });
        known.unwrap_or_else(|| {
            let text = match session.group_status().is_out() {
                true => session.group_status().why_out(),
                false => "not all participants have received what was written".to_owned(),
            };
            Err(Error::Timeout(text))
        })
    }

    /// Whether all members have received a message, or why they never will. `None` if that is not
    /// known yet.
    fn fate(&self, message: &Committed, returns: u32) -> Option<Result<()>> {
        let place = self.place();
        let is_received = |message| {
            let epoch = place.epoch.as_ref();
            epoch.is_some_and(|epoch| epoch.is_acknowledged(message))
        };
        if returns == place.returns {
            return is_received(message).then_some(Ok(()));
        }
        if place.sends_again {
            return None;
        }
        let before = place
            .before
            .as_ref()
            .filter(|_| returns + 1 == place.returns);
        let at = (message.epoch, message.index);
        let is_delivered = |it: &Before| it.delivered.is_some_and(|delivered| at < delivered);
        if before.is_some_and(is_delivered) {
            return Some(Ok(()));
        }
        match before.and_then(|it| it.again.get(&at)) {
            Some(again) => is_received(again).then_some(Ok(())),
            None => Some(Err(Error::Error(
                "it is not known that all participants have received the sample: the participant \
                 has lost its group since it was written"
                    .to_owned(),
            ))),
        }
    }
}
