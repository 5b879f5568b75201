//! The writers of a reader: they are matched, depart, and may come back.

use spindle_dds_idl_runtime::Encapsulation;
use spindle_dds_transport::Fabric;

use super::super::arrival::{DeliveryPoint, Departure};
use super::ReaderState;
use crate::cache::Origin;
use crate::handle::InstanceHandle;
use crate::status::StatusMask;

/// Absent writers that are remembered.
const ABSENT_MAX: usize = 256;
/// Of a durable reader, to which samples of writers may come that are long gone.
const ABSENT_MAX_DURABLE: usize = 4096;

impl<F: Fabric> ReaderState<F> {
    /// A writer is matched, and alive: its participant is in the view.
    pub(super) fn writer_matched(&mut self, writer: u32, handle: InstanceHandle) -> StatusMask {
        self.go_on_after_last(writer, handle);
        self.statuses.writers.push(handle);
        self.statuses.matched.matched(handle);
        self.statuses.liveliness.came(handle);
        StatusMask::SUBSCRIPTION_MATCHED | StatusMask::LIVELINESS_CHANGED
    }

    pub(super) fn writer_departed(
        &mut self,
        writer: u32,
        at: DeliveryPoint,
        departure: Departure,
    ) -> StatusMask {
        let handle = self.cache.writer(writer);
        self.statuses.writers.retain(|known| *known != handle);
        self.statuses.matched.unmatched(handle);
        let disposes = match departure {
            Departure::Left { disposes } => {
                self.statuses.liveliness.left(handle);
                disposes
            }
            Departure::Failed => {
                self.statuses.liveliness.failed(handle);
                false
            }
        };
        if self.is_durable || departure == Departure::Failed {
            self.note_absent(writer, handle);
        }
        if let Some(historical) = &mut self.historical {
            historical.writer_departed(writer);
        }
        let origin = Origin {
            writer,
            writer_sequence: 0,
            position: at.position,
            timestamp: at.timestamp,
            encapsulation: Encapsulation::CDR_LE,
        };
        let mut changed = StatusMask::SUBSCRIPTION_MATCHED | StatusMask::LIVELINESS_CHANGED;
        if self.cache.writer_gone(origin, disposes) {
            changed |= StatusMask::DATA_AVAILABLE;
        }
        changed
    }

    /// The samples of a writer that is new to the cache go on after the last one that came before it
    /// was absent.
    pub(super) fn go_on_after_last(&mut self, writer: u32, handle: InstanceHandle) {
        if writer as usize >= self.sequences.len() {
            self.sequences.resize(writer as usize + 1, 0);
        }
        let mut absent = self.absent.iter();
        let before = absent.position(|(known, _)| *known == handle);
        let before = before.and_then(|at| self.absent.remove(at));
        self.sequences[writer as usize] = before.map_or(0, |(_, last)| last);
    }

    /// A writer is gone: its last sample is remembered.
    pub(super) fn note_absent(&mut self, writer: u32, handle: InstanceHandle) {
        let last = self.sequences[writer as usize];
        if last == 0 {
            return;
        }
        let most = match self.is_durable {
            true => ABSENT_MAX_DURABLE,
            false => ABSENT_MAX,
        };
        self.absent.truncate(most - 1);
        self.absent.push_front((handle, last));
    }
}
