//! One look at a domain.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use spindle_dds::monitor::{Monitor, Seen};

use super::Failure;
use super::options::TopOptions;
use super::process::Process;

/// What is there at one moment.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) domain: u32,
    /// Since the first look.
    pub(super) at: Duration,
    pub(super) seen: Vec<Seen>,
    /// By their pids: those of this host.
    pub(super) processes: BTreeMap<u32, Process>,
}

/// Looks again and again.
#[derive(Debug)]
pub(super) struct Looker {
    monitor: Monitor,
    domain: u32,
    patience: Duration,
    since: Instant,
}

impl Looker {
    pub(super) fn new(options: &TopOptions) -> Self {
        Self {
            monitor: Monitor::new(options.domain, options.directory.as_deref()),
            domain: options.domain,
            patience: options.patience(),
            since: Instant::now(),
        }
    }

    pub(super) fn look(&mut self) -> Result<Look, Failure> {
        let seen = self.monitor.look(self.patience)?;
        let here = seen.iter().filter(|seen| seen.is_here);
        let processes = here.filter_map(|seen| Some((seen.pid, Process::look(seen.pid)?)));
        Ok(Look {
            domain: self.domain,
            at: self.since.elapsed(),
            processes: processes.collect(),
            seen,
        })
    }
}
