//! Waiting until what a writer has written is acknowledged (DDS 1.4 §2.2.2.4.2.15).
//!
//! ```text
//!   Unknown (out of the group) --> Sent --accepted by all that have to--> acknowledged
//!   Waits in the history --sent--> Sent
//! ```
//!
//! What has to be accepted, and by which members, says `driver/send/acceptance`. What is waited for is fixed
//! when the wait begins: what is written later does not prolong it, but for samples that leave the
//! history together with the last one that is waited for.

use std::sync::Arc;

use spindle_dds_core::{Committed, DeliveryClass};

use super::core::WriterCore;
use super::receipt::{Receipt, SentAs};
use crate::driver::{Obstacle, WriterPort};
use crate::error::{Error, Result};
use crate::time::Deadline;

/// What is to be acknowledged.
#[derive(Debug, Clone, Copy)]
pub(super) enum Written {
    /// Nothing that has to be.
    Nothing,
    /// What was sent before; the participant is out of its group, or sends again what it had sent.
    Unknown,
    /// It waits in the writer's history, below this ticket.
    Waits(u64),
    /// The last message, and how often the participant had come back to its group when it was sent.
    Sent(Committed, u32),
    /// The same, and all readers have accepted it: what is left is that logs have it.
    Delivered(Committed, u32),
}

impl WriterCore {
    /// What this writer has written until now.
    pub(super) fn written(&self, port: &WriterPort) -> Written {
        if self.is_best_effort() {
            return Written::Nothing;
        }
        match self.next_ticket() {
            Some(ticket) => Written::Waits(ticket),
            None => self.sent_until_now(port),
        }
    }

    fn sent_until_now(&self, port: &WriterPort) -> Written {
        match port.last_sent(self.number) {
            None => Written::Unknown,
            Some(None) => Written::Nothing,
            Some(Some(last)) if last.is_delivered => Written::Delivered(last.message, last.returns),
            Some(Some(last)) => Written::Sent(last.message, last.returns),
        }
    }

    /// The sample of a receipt.
    ///
    /// # Errors
    /// BAD_PARAMETER for a receipt of another writer.
    pub(super) fn written_of(&self, receipt: &Receipt) -> Result<Written> {
        if receipt.writer != self.base.guid() {
            let what = self.base.what();
            return Err(Error::BadParameter(format!(
                "the receipt is of a sample that another writer wrote, not {what}"
            )));
        }
        Ok(match receipt.sent {
            SentAs::Committed(committed) if committed.class == DeliveryClass::Ordered => {
                Written::Sent(committed, receipt.returns)
            }
            SentAs::Waiting(ticket) => Written::Waits(ticket + 1),
            SentAs::Committed(_) | SentAs::Dropped => Written::Nothing,
        })
    }

    /// Whether it is acknowledged, or why it never will be; `None` if it is not yet. Does not block.
    pub(super) fn is_acknowledged(
        &self,
        port: &WriterPort,
        written: &mut Written,
    ) -> Option<Result<()>> {
        if let Written::Waits(ticket) = *written
            && self.is_settled(ticket)
        {
            *written = self.last_settled();
        }
        if let Written::Unknown = written {
            *written = self.sent_until_now(port);
        }
        let fate = match written {
            Written::Nothing => Some(Ok(())),
            Written::Unknown | Written::Waits(_) => None,
            Written::Delivered(message, returns) => port.log_fate(message, *returns),
            Written::Sent(message, returns) => {
                let fate = port.fate(message, *returns);
                if fate.is_none() {
                    port.ask_for_release(message);
                }
                fate
            }
        };
        fate.or_else(|| port.check().err().map(Err))
    }

    /// Blocks until it is acknowledged.
    ///
    /// # Errors
    /// TIMEOUT; what ended the group or the writer; ERROR if it was lost with the group.
    fn wait_until_acknowledged(&self, mut written: Written, deadline: Deadline) -> Result<()> {
        let port = self.port()?;
        self.send_what_waits();
        if let Some(fate) = self.is_acknowledged(port, &mut written) {
            return fate;
        }
        port.step();
        let _accepting = port.wait_for_acceptance();
        let fate = port.wait_for_acks(deadline, || self.is_acknowledged(port, &mut written));
        fate.unwrap_or_else(|| Err(self.not_acknowledged(port, &written)))
    }

    /// TIMEOUT, with what is in the way.
    #[cold]
    pub(super) fn not_acknowledged(&self, port: &WriterPort, written: &Written) -> Error {
        match written {
            Written::Waits(_) => self.not_settled(port),
            Written::Sent(message, _) | Written::Delivered(message, _) => {
                Error::Timeout(port.describe_unaccepted(message))
            }
            Written::Nothing | Written::Unknown => Error::Timeout(port.describe(&Obstacle::Out)),
        }
    }

    /// Blocks until all RELIABLE readers that match have accepted what was written before the call.
    pub(crate) fn wait_for_acknowledgments(&self, deadline: Deadline) -> Result<()> {
        self.wait_until_acknowledged(self.begin_wait()?, deadline)
    }

    /// The same for several writers: nothing that is written after the call is waited for.
    pub(super) fn wait_for_all(writers: &[Arc<Self>], deadline: Deadline) -> Result<()> {
        let begun: Result<Vec<_>> = writers.iter().map(|it| it.begin_wait()).collect();
        let mut waits = writers.iter().zip(begun?);
        waits.try_for_each(|(writer, written)| writer.wait_until_acknowledged(written, deadline))
    }

    /// What is to be waited for from now on.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED; what ended the group.
    pub(super) fn begin_wait(&self) -> Result<Written> {
        let port = self.port()?;
        port.check()?;
        Ok(self.written(port))
    }

    pub(crate) fn wait_for(&self, receipt: &Receipt, deadline: Deadline) -> Result<()> {
        self.port()?;
        self.wait_until_acknowledged(self.written_of(receipt)?, deadline)
    }
}
