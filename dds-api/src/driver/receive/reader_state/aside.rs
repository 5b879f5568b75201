//! What holds arrivals up: a message for which there is no room, and history.
//!
//! While history is awaited, arrivals are copied out of their rings, up to a bound in bytes. The
//! epochs that they came by are kept in their places among them, so that writers are matched and
//! depart there. What exceeds the bound stays in the rings.

use spindle_dds_transport::Fabric;

use super::super::arrival::{Arrival, ArrivalBatch};
use super::super::epoch_cursor::EpochItem;
use super::super::reader_epoch::ReaderEpoch;
use super::{Ahead, Attempt, REPLACED_MAX, ReaderState};
use crate::status::StatusMask;

impl<F: Fabric> ReaderState<F> {
    /// Whether arrivals are not kept aside: nothing is awaited, or there is no more room.
    #[cold]
    pub(super) fn keeps_nothing_aside(&self) -> bool {
        let historical = self.historical.as_ref();
        !self.keeps_aside() || historical.is_some_and(|it| it.is_aside_full)
    }

    /// Goes on with what comes before the arrivals of the cursor, as far as that is possible.
    #[cold]
    pub(super) fn go_on(&mut self, changed: &mut StatusMask) {
        loop {
            match std::mem::replace(&mut self.ahead, Ahead::Nothing) {
                Ahead::Nothing => return,
                Ahead::Message(message) => *changed |= self.offer(message, Attempt::Again),
                Ahead::History if self.is_awaiting() => {
                    self.ahead = Ahead::History;
                    self.look_for_room();
                    return;
                }
                Ahead::History => match self.next_aside() {
                    Some(item) => self.replay(item, changed),
                    None if self.awaits_logs() => {
                        self.ahead = Ahead::History;
                        return;
                    }
                    None => {}
                },
            }
            if let Ahead::Message(_) = self.ahead {
                return;
            }
            if self.historical.as_ref().is_some_and(|it| it.is_ahead()) {
                self.ahead = Ahead::History;
            }
        }
    }

    /// The next item that was kept aside. Behind these comes what is left until the group is lost,
    /// where a transfer was cut off.
    fn next_aside(&mut self) -> Option<EpochItem<F>> {
        let historical = self.historical.as_mut()?;
        if !historical.is_cut_off {
            return self.next_logged();
        }
        let item = historical.handover.pop();
        if item.is_some() {
            return item;
        }
        let historical = self.historical.as_mut()?;
        let item = self.cursor.next();
        if item.as_ref().is_none_or(EpochItem::is_loss) {
            historical.is_cut_off = false;
        }
        item
    }

    fn replay(&mut self, item: EpochItem<F>, changed: &mut StatusMask) {
        match item {
            EpochItem::Enter(matched) => {
                let historical = self.historical();
                // Not all of them were kept aside.
                let aside = historical.transfers_aside;
                historical.transfers_aside =
                    aside.saturating_sub(usize::from(matched.awaits.is_some()));
                *changed |= self.enter(matched);
            }
            EpochItem::Arrival(arrival) => {
                let arrival = self.with_cache_writer(arrival);
                if self.is_to_be_shown(&arrival) {
                    self.append(arrival, changed);
                } else if let Arrival::Message(message) = arrival {
                    self.pool.recycle(message.payload);
                }
            }
        }
    }

    /// Not what was in the history; nor what comes again in one, as its beginning has not come.
    fn is_to_be_shown(&self, arrival: &Arrival<F>) -> bool {
        let Arrival::Message(message) = arrival else {
            return true;
        };
        let origin = &message.origin;
        let historical = self.historical.as_ref();
        let is_cut_off = historical.is_some_and(|it| it.is_cut_off);
        let is_first = historical.is_some_and(|it| it.first.contains(&origin.writer));
        if is_cut_off && (is_first || !self.is_surely_logged(origin.position)) {
            return false;
        }
        origin.writer_sequence > self.sequences[origin.writer as usize]
    }

    /// Arrivals are held up: while history is awaited, they are kept aside. Returns whether they can go
    /// on after all, as the history will not come, or logs have them.
    #[cold]
    pub(super) fn hold_up(
        &mut self,
        new: &mut Option<(&ReaderEpoch<F>, &mut ArrivalBatch<F>)>,
        changed: &mut StatusMask,
    ) -> bool {
        let keeps_aside = self.keeps_aside();
        if keeps_aside {
            self.keep_aside(new);
        }
        self.cursor.catch_up();
        let is_cut_off = self.historical.as_ref().is_some_and(|it| it.is_cut_off);
        let is_lost = keeps_aside && !is_cut_off && self.cursor.has_loss();
        if is_lost {
            *changed |= self.cut_off();
        }
        is_lost || self.has_logged_aside()
    }

    fn keep_aside(&mut self, new: &mut Option<(&ReaderEpoch<F>, &mut ArrivalBatch<F>)>) {
        while let Some(item) = self.cursor.next() {
            if let Err(item) = self.keep_item_aside(item) {
                self.cursor.put_back(item);
                return;
            }
        }
        if let Some((epoch, batch)) = new
            && self.cursor.is_at(epoch)
        {
            while let Some(arrival) = batch.pop() {
                match self.keep_item_aside(EpochItem::Arrival(arrival)) {
                    Ok(()) => {}
                    Err(EpochItem::Arrival(arrival)) => return batch.put_back(arrival),
                    Err(EpochItem::Enter(_)) => return,
                }
            }
        }
    }

    /// Gives it back if there is no room for it, or the group is lost there.
    fn keep_item_aside(&mut self, mut item: EpochItem<F>) -> Result<(), EpochItem<F>> {
        let bytes = item.bytes();
        let Some(historical) = self.historical.as_mut() else {
            return Err(item);
        };
        if item.is_loss() {
            return Err(item);
        }
        historical.is_aside_full = !historical.handover.has_room_for(bytes);
        if historical.is_aside_full {
            return Err(item);
        }
        match &mut item {
            EpochItem::Enter(matched) => {
                historical.transfers_aside += usize::from(matched.awaits.is_some());
                self.received_epoch = matched.number;
            }
            EpochItem::Arrival(Arrival::Message(message)) => {
                self.replaced
                    .extend(self.pool.copy_out(&mut message.payload));
            }
            EpochItem::Arrival(Arrival::Departed { .. }) => {}
        }
        let kept = historical.handover.offer(item, bytes);
        if self.replaced.len() == REPLACED_MAX {
            self.release_replaced();
        }
        kept
    }
}
