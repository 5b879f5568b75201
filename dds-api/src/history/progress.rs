//! The transfers that are under way, for monitors.

use std::sync::{Mutex, PoisonError};

use crate::monitor::TransferFigures;

/// Written by the history thread.
#[derive(Debug, Default)]
pub(super) struct Progress(Mutex<Vec<TransferFigures>>);

impl Progress {
    pub(super) fn set(&self, transfers: Vec<TransferFigures>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = transfers;
    }

    pub(super) fn figures(&self) -> Vec<TransferFigures> {
        let transfers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        transfers.clone()
    }
}
