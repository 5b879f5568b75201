//! Links that do not send, as the kernel lacked memory for the last write. No event says when it has
//! some again, so the I/O thread tries now and then.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::fault::Fault;
use super::shared::Shared;
use crate::retry::Classified;

/// Pause between two attempts.
const AGAIN_AFTER: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct StalledLinks {
    /// By link number, since when.
    links: Mutex<BTreeMap<u64, Instant>>,
    /// How long that may last before the peer counts as lost.
    max: Duration,
}

impl StalledLinks {
    pub(super) fn new(max: Duration) -> Self {
        let links = Mutex::default();
        Self { links, max }
    }

    fn links(&self) -> MutexGuard<'_, BTreeMap<u64, Instant>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last write of this link has failed.
    pub(super) fn add(&self, link: u64) {
        let now = Instant::now();
        self.links().entry(link).or_insert(now);
    }
}

impl Shared {
    /// Tries all stalled links. Returns when to try again, if some are left.
    pub(super) fn send_stalled(&self) -> Option<Duration> {
        let stalled = core::mem::take(&mut *self.stalled.links());
        for (number, since) in stalled {
            let Some(link) = self.link(number) else {
                continue;
            };
            match link.outgoing.send_again() {
                Err(error) if error.may_pass() && since.elapsed() < self.stalled.max => {
                    self.stalled.links().insert(number, since);
                }
                Err(error) if error.may_pass() => self.fail(&link, &Fault::Broken(error)),
                sent => self.sent(&link, sent),
            }
        }
        (!self.stalled.links().is_empty()).then_some(AGAIN_AFTER)
    }
}
