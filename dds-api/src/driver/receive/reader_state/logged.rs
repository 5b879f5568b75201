//! A reader that shows a sample once logs have it on disk (`spindle.log.deliver`).
//!
//! Its arrivals go the way of those that come while history is awaited: they are copied aside, up to a bound
//! in bytes, and what exceeds it stays in the rings. From there they go into the cache in their order, as
//! far as the logs have them. What no log will have is dropped, and counted as lost with the next sample of
//! its writer.
//!
//! Where the participant loses its group, what is not known to be on disk is dropped, too: the history that
//! the reader gets when it is back has what the logs have.

use std::sync::Arc;

use spindle_dds_transport::Fabric;

use super::super::arrival::Arrival;
use super::super::epoch_cursor::EpochItem;
use super::{Ahead, ReaderState};
use crate::driver::logs::Logged;

/// How the message at a position stands to the logs.
pub(crate) type LoggedAt = Arc<dyn Fn(u64) -> Logged + Send + Sync>;

impl<F: Fabric> ReaderState<F> {
    /// Before anything has come: whether the reader shows what logs have only.
    pub(crate) fn show_logged(&mut self, logged: Option<LoggedAt>) {
        if logged.is_none() && self.logged.is_none() {
            return;
        }
        self.historical().awaits_logs = logged.is_some();
        self.ahead = match logged {
            Some(_) => Ahead::History,
            None => Ahead::Nothing,
        };
        self.logged = logged;
    }

    pub(super) fn awaits_logs(&self) -> bool {
        self.logged.is_some()
    }

    /// Whether arrivals are kept aside, as far as there is room.
    pub(super) fn keeps_aside(&self) -> bool {
        // A cache that is full leaves them in their rings.
        let has_room = !matches!(self.ahead, Ahead::Message(_));
        self.is_awaiting() || self.awaits_logs() && has_room
    }

    /// Whether the logs have the message at a position, or it is not asked; not, if they may have it later.
    pub(super) fn is_logged(&self, position: u64) -> bool {
        let logged = self.logged.as_ref();
        logged.is_none_or(|logged| logged(position) != Logged::NotYet)
    }

    /// Of what is kept aside the next item, if the logs have it.
    pub(super) fn next_logged(&mut self) -> Option<EpochItem<F>> {
        loop {
            let handover = &mut self.historical.as_mut()?.handover;
            let item = handover.pop()?;
            let EpochItem::Arrival(Arrival::Message(message)) = &item else {
                return Some(item);
            };
            let logged = self.logged.as_ref();
            match logged.map_or(Logged::Yes, |logged| logged(message.origin.position)) {
                Logged::Yes => return Some(item),
                Logged::NotYet => {
                    let bytes = item.bytes();
                    self.put_back_aside(item, bytes);
                    return None;
                }
                Logged::Lost => self.forget_item(item),
            }
        }
    }

    /// Whether something that is kept aside can go into the cache.
    pub(super) fn has_logged_aside(&mut self) -> bool {
        if !self.awaits_logs() || self.is_awaiting() || !matches!(self.ahead, Ahead::History) {
            return false;
        }
        match self.next_logged() {
            Some(item) => {
                let bytes = item.bytes();
                self.put_back_aside(item, bytes);
                true
            }
            None => false,
        }
    }

    /// Whether a message may be shown though its group is lost.
    pub(super) fn is_surely_logged(&self, position: u64) -> bool {
        let logged = self.logged.as_ref();
        logged.is_none_or(|logged| logged(position) == Logged::Yes)
    }

    fn put_back_aside(&mut self, item: EpochItem<F>, bytes: usize) {
        if let Some(historical) = &mut self.historical {
            historical.handover.put_back(item, bytes);
        }
    }

    fn forget_item(&mut self, item: EpochItem<F>) {
        if let EpochItem::Arrival(Arrival::Message(message)) = item {
            self.pool.recycle(message.payload);
        }
    }

    /// Whether anything waits to go into the cache.
    #[cold]
    pub(crate) fn has_waiting(&self) -> bool {
        let is_idle = self.awaits_logs()
            && matches!(self.ahead, Ahead::History)
            && self.bytes_aside() == 0
            && !self.is_awaiting();
        if is_idle {
            return self.cursor.has_any();
        }
        self.has_arrivals()
    }
}
