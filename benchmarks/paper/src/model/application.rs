//! An application thread that sends in one subgroup as fast as it can, or with a delay.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::network::TimedFabric;
use spindle_dds_core::{
    ClaimError, CommitMeta, DeliveryClass, MessageKind, SubgroupHandle, TopicKey,
};

use super::constants::{SEND, copy_ns};
use super::experiment::{Experiment, STAND_IN};

/// The result of an attempt to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tried {
    Sent,
    /// It tries again when the engine has made room.
    NoRoom,
}

pub(super) struct Application {
    subgroup: Arc<SubgroupHandle<TimedFabric>>,
    class: DeliveryClass,
    window: usize,
    /// Messages that it has yet to send.
    left: u32,
    /// Time from one message to the next.
    gap_ns: u64,
    /// Time at which it is ready for the next message.
    pub(super) ready_at: u64,
    /// Indices of its messages that are not released.
    in_flight: VecDeque<u64>,
    /// When it began to wait for room.
    waiting_since: Option<u64>,
    pub(super) waited_ns: u64,
    /// Whether its next turn is scheduled.
    pub(super) has_turn: bool,
}

impl Application {
    /// Waits for `wait_ns` after each message.
    pub(super) fn new(
        subgroup: Arc<SubgroupHandle<TimedFabric>>,
        experiment: &Experiment,
        wait_ns: u64,
    ) -> Self {
        let copies = u64::from(experiment.copies);
        // Delayed senders send for as long as the others do.
        let endless = experiment.delay.is_some();
        Self {
            subgroup,
            class: experiment.class(),
            window: experiment.window as usize,
            left: if endless {
                u32::MAX
            } else {
                experiment.messages
            },
            gap_ns: SEND.value + copies * copy_ns(experiment.size) + wait_ns,
            ready_at: 0,
            in_flight: VecDeque::new(),
            waiting_since: None,
            waited_ns: 0,
            has_turn: false,
        }
    }

    pub(super) fn subgroup(&self) -> usize {
        self.subgroup.id().index()
    }

    pub(super) fn is_done(&self) -> bool {
        self.left == 0
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.waiting_since.is_some()
    }

    pub(super) fn has_room(&mut self) -> bool {
        let released = self.subgroup.released(self.class);
        while self
            .in_flight
            .front()
            .is_some_and(|index| *index < released)
        {
            self.in_flight.pop_front();
        }
        self.in_flight.len() < self.window
    }

    /// Sends a message at `at`, if there is room.
    pub(super) fn try_send(&mut self, at: u64) -> Result<Tried, ClaimError> {
        let claim = match self.has_room() {
            true => self.subgroup.claim(self.class, STAND_IN),
            false => Err(ClaimError::NoRoom),
        };
        let mut claim = match claim {
            Ok(claim) => claim,
            Err(ClaimError::NoRoom | ClaimError::NotBegun) => {
                self.waiting_since.get_or_insert(at);
                return Ok(Tried::NoRoom);
            }
            Err(error) => return Err(error),
        };
        let meta = CommitMeta {
            kind: MessageKind::Data,
            flags: 0,
            encapsulation: 1,
            writer: 0,
            timestamp: at as i64,
            topic: TopicKey::of_name("paper").low(),
            key_hash: [0; 16],
            skipped: 0,
        };
        let index = claim.commit(STAND_IN, &meta)?;
        self.in_flight.push_back(index);
        self.waited_ns += self.waiting_since.take().map_or(0, |since| at - since);
        self.left -= 1;
        self.ready_at = at + self.gap_ns;
        Ok(Tried::Sent)
    }
}
