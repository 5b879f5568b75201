//! A PERSISTENT writer and the logs of its topic: when it may send, and when what it has sent is
//! acknowledged.
//!
//! An epoch takes its samples once the topic's logs are open and have recorded all that came before. Until
//! then its samples wait as they do while the ring is full. What it has sent is acknowledged when readers have
//! accepted it, and as many logs have it on disk as `spindle.log.ack` asks for.
//!
//! Other writers have none of this, and look for none: an epoch in which a writer has a claim takes its
//! samples until it ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spindle_dds_core::Committed;

use super::writer_port::{Obstacle, Place, WriterPort};
use super::writer_return::Before;
use crate::driver::logs::{Degree, Logged, TopicLogs};
use crate::error::{Error, Result};

/// What a PERSISTENT writer knows of the logs.
#[derive(Debug)]
pub(crate) struct WriterLogs {
    topic: Arc<TopicLogs>,
    degree: Degree,
    last: Mutex<Option<LastSent>>,
    /// How often the participant had lost its group at all, for each time that the writer has come
    /// back to it.
    outages: Mutex<Vec<u32>>,
}

/// The last message that a writer has sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastSent {
    pub(crate) message: Committed,
    /// How often the participant had come back to its group then.
    pub(crate) returns: u32,
    /// The group has delivered it, as was found when the participant came back.
    pub(crate) is_delivered: bool,
}

impl LastSent {
    fn key(&self) -> (u32, u64, u64) {
        (self.returns, self.message.epoch, self.message.index)
    }
}

impl WriterLogs {
    pub(crate) fn new(topic: Arc<TopicLogs>, degree: Degree) -> Self {
        Self {
            topic,
            degree,
            last: Mutex::default(),
            outages: Mutex::default(),
        }
    }

    fn outages(&self) -> MutexGuard<'_, Vec<u32>> {
        self.outages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer is in a session, the first or the next one, that began after so many outages.
    pub(super) fn connected(&self, outages: u32) {
        self.outages().push(outages);
    }

    fn last(&self) -> MutexGuard<'_, Option<LastSent>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The topic takes no samples, for this reason.
    #[cold]
    pub(super) fn describe(&self) -> String {
        let why = self.topic.why_shut();
        why.unwrap_or_else(|| "the log was shut".to_owned())
    }
}

impl WriterPort {
    /// What the logs have against a sample in the writer's epoch.
    pub(super) fn shut(&self, place: &Place) -> Option<Obstacle> {
        let (logs, epoch) = (self.logs.as_ref()?, place.epoch.as_ref()?);
        match logs.topic.take_samples(place.session.outages(), epoch) {
            true => None,
            false if logs.topic.is_recording() => Some(Obstacle::Recording),
            false => Some(Obstacle::Shut),
        }
    }

    /// A message of a PERSISTENT writer was committed.
    pub(crate) fn note_sent(&self, message: &Committed, returns: u32) {
        let Some(logs) = &self.logs else {
            return;
        };
        let sent = LastSent {
            message: *message,
            returns,
            is_delivered: false,
        };
        let mut last = logs.last();
        // Threads come here in any order.
        if last.is_none_or(|last| last.key() < sent.key()) {
            *last = Some(sent);
        }
    }

    /// The last message of a PERSISTENT writer; the inner `None` if it has sent none. The outer `None` for
    /// other writers.
    pub(super) fn last_logged(&self) -> Option<Option<LastSent>> {
        let logs = self.logs.as_ref()?;
        Some(*logs.last())
    }

    /// The participant has come back, and so it is known what became of the last message.
    pub(super) fn note_before(&self, before: &Before, returns: u32) {
        let Some(logs) = &self.logs else {
            return;
        };
        let mut last = logs.last();
        if let Some(sent) = last.as_mut().filter(|last| last.returns < returns) {
            sent.is_delivered |= before.has_delivered(&sent.message);
            if !sent.is_delivered {
                // It is told elsewhere that it is gone.
                *last = None;
            }
        }
    }

    /// Whether as many logs have a message as have to; or why they never will. `None` if not yet.
    pub(crate) fn log_fate(&self, message: &Committed, returns: u32) -> Option<Result<()>> {
        let Some(logs) = &self.logs else {
            return Some(Ok(()));
        };
        let outages = logs.outages().get(returns as usize).copied();
        match logs.topic.of_message(logs.degree, message, outages?) {
            Logged::Yes => Some(Ok(())),
            Logged::NotYet => None,
            Logged::Lost => Some(Err(Error::Error(
                "it is not known that a log has the sample: the logs of the topic began anew before \
                 enough of them had it on disk"
                    .to_owned(),
            ))),
        }
    }

    /// Which logs do not have a message, as a sentence without a full stop. `None` for writers that
    /// are not PERSISTENT.
    #[cold]
    pub(crate) fn describe_unlogged(&self, message: &Committed) -> Option<String> {
        let logs = self.logs.as_ref()?;
        Some(logs.topic.why_not_logged(logs.degree, message))
    }
}
