//! Options of a station.

use std::path::PathBuf;

use crate::shm::doorbell::DoorbellChoice;
use crate::thread_settings::ThreadSettings;

/// How to open a [`Station`](super::Station).
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The domain.
    pub domain: u32,
    /// Id of this participant: drawn at random, never used again.
    pub id: u128,
    /// The domain directory, as for [`DomainRegistry::open`](crate::shm::DomainRegistry::open).
    pub directory: Option<PathBuf>,
    /// How it sleeps. `Auto` and `Futex` fall back to event descriptors while it has more
    /// than 127 peers.
    pub doorbell: DoorbellChoice,
    /// Rows get all their memory when a segment opens, so that the first use of a page does
    /// not fault. Opening takes longer, but not beyond its deadline: memory that is not there
    /// by then follows soon after. Needs Linux 5.14.
    pub prefault: bool,
    /// How its I/O thread is scheduled, and those of a network.
    pub io: ThreadSettings,
}

impl HostOptions {
    /// The defaults for a participant of a domain.
    pub fn new(domain: u32, id: u128) -> Self {
        Self {
            domain,
            id,
            directory: None,
            doorbell: DoorbellChoice::Auto,
            prefault: false,
            io: ThreadSettings::default(),
        }
    }
}
