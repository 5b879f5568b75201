//! A snapshot of a domain.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use spindle_dds::monitor::{Monitor, ObservedMember};

use super::Failure;
use super::late::Standstills;
use super::options::TopOptions;
use super::process::Process;

/// The participants of a domain at one moment.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) domain: u32,
    /// Time since the start of the command.
    pub(super) at: Duration,
    pub(super) seen: Vec<ObservedMember>,
    /// The participants' processes on this host, by pid.
    pub(super) processes: BTreeMap<u32, Process>,
    /// Since when the participants' counts have not changed.
    pub(super) standstills: Standstills,
}

/// Takes snapshots.
#[derive(Debug)]
pub(super) struct Sampler {
    monitor: Monitor,
    domain: u32,
    patience: Duration,
    since: Instant,
    /// Those of the last snapshot.
    standstills: Standstills,
}

impl Sampler {
    pub(super) fn new(options: &TopOptions) -> Self {
        Self {
            monitor: Monitor::new(options.domain, options.directory.as_deref()),
            domain: options.domain,
            patience: options.patience(),
            since: Instant::now(),
            standstills: Standstills::default(),
        }
    }

    pub(super) fn sample(&mut self) -> Result<Snapshot, Failure> {
        let seen = self.monitor.observe(self.patience)?;
        let here = seen.iter().filter(|seen| seen.is_here);
        let processes = here.filter_map(|seen| Some((seen.pid, Process::read(seen.pid)?)));
        let at = self.since.elapsed();
        let told = seen.iter().filter_map(|seen| seen.figures.as_ref().ok());
        self.standstills = self.standstills.after(at, told);
        Ok(Snapshot {
            domain: self.domain,
            at,
            processes: processes.collect(),
            standstills: self.standstills.clone(),
            seen,
        })
    }
}
