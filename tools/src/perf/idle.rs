//! `spindle perf idle`: the processor time of idle participants, and the latency of waking them.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::PoisonError;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spindle_dds::{DomainParticipant, PeerPath};

use super::figures::{Counts, Quantiles, merged};
use super::job::{Job, Report, Role};
use super::options::{Doorbell, Durability, IdleOptions, Level, Wait};
use super::place::Place;
use super::scenario::Scenario;
use super::writer::Sender;
use super::{Failure, clock, fleet, participant};

/// What is printed.
#[derive(Debug, Serialize)]
struct Outcome {
    participants: u32,
    seconds: f64,
    doorbells: BTreeMap<Doorbell, OfDoorbell>,
}

#[derive(Debug, Serialize)]
struct OfDoorbell {
    /// Processor time of all participants together, in percent of one processor.
    cpu_percent: f64,
    /// From writing after a pause to taking.
    wake_ns: Quantiles,
    wakes: u64,
    counters: Vec<Counts>,
    /// Pushes of each participant while idle.
    traffic: Vec<Traffic>,
}

/// Counts of pushes.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Traffic {
    /// Pushes of the subgroups: samples, guards, acknowledgements. Not the membership's.
    pub(super) subgroup_pushes: u64,
    /// Work requests to RDMA peers. Includes `sleep_words` and `doorbells`; the rest are
    /// heartbeats of the membership.
    work_requests: u64,
    /// Announcements that this participant sleeps.
    sleep_words: u64,
    doorbells: u64,
}

impl Traffic {
    /// The counts so far.
    pub(super) fn of(participant: &DomainParticipant) -> Result<Self, Failure> {
        let mut all = Self {
            subgroup_pushes: Counts::from(&participant.counters()?).pushes,
            ..Self::default()
        };
        for path in participant::peer_paths(participant)? {
            if let PeerPath::Rdma(counters) = path {
                all.work_requests += counters.work_requests;
                all.sleep_words += counters.sleep_words;
                all.doorbells += counters.doorbells_sent;
            }
        }
        Ok(all)
    }

    /// The difference from an earlier count.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            subgroup_pushes: self.subgroup_pushes - before.subgroup_pushes,
            work_requests: self.work_requests - before.work_requests,
            sleep_words: self.sleep_words - before.sleep_words,
            doorbells: self.doorbells - before.doorbells,
        }
    }

    fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        all.into_iter().fold(Self::default(), |sum, one| Self {
            subgroup_pushes: sum.subgroup_pushes + one.subgroup_pushes,
            work_requests: sum.work_requests + one.work_requests,
            sleep_words: sum.sleep_words + one.sleep_words,
            doorbells: sum.doorbells + one.doorbells,
        })
    }
}

pub(super) fn run(options: &IdleOptions) -> Result<(), Failure> {
    let doorbells = match options.doorbell {
        Some(doorbell) => vec![doorbell],
        None => vec![Doorbell::Futex, Doorbell::Event],
    };
    let mut outcome = Outcome {
        participants: options.participants,
        seconds: options.seconds,
        doorbells: BTreeMap::new(),
    };
    for doorbell in doorbells {
        outcome
            .doorbells
            .insert(doorbell, measure(options, doorbell)?);
    }
    let mut out = io::stdout().lock();
    match options.json {
        true => writeln!(out, "{}", serde_json::to_string(&outcome)?)?,
        false => outcome.print(&mut out)?,
    }
    Ok(())
}

fn measure(options: &IdleOptions, doorbell: Doorbell) -> Result<OfDoorbell, Failure> {
    let job = Job {
        parent: std::process::id(),
        role: Role::Idler(0),
        directory: std::path::PathBuf::new(),
        places: Place::all(&options.on)?,
        outsider: None,
        place: None,
        participants: options.participants,
        writers: options.participants as i32,
        level: Level::Atomic,
        durability: Durability::Volatile,
        log_sync: None,
        doorbell,
        wait: Wait::Balanced,
        prefault: false,
        limit_ms: options.limit_ms,
        ring_messages: Some(64),
        ring_bytes: Some(1 << 16),
        without: Vec::new(),
        copy: false,
        fill: false,
        listener: true,
        idle_topics: 0,
        poll: false,
        scenario: Scenario::default(),
        size: 64,
        samples: options.wakes,
        warm_up: 0,
        period_ns: PAUSE.as_nanos() as u64,
        silent: 0,
        idle_ns: Duration::try_from_secs_f64(options.seconds)
            .map_err(|error| Failure::Workers(error.to_string()))?
            .as_nanos() as u64,
    };
    let roles: Vec<Role> = (0..options.participants).map(Role::Idler).collect();
    let waking = PAUSE * u32::try_from(options.wakes).unwrap_or(u32::MAX);
    let time_limit = Duration::from_secs(120) + Duration::from_nanos(job.idle_ns) + waking;
    let reports = fleet::run(&job, &roles, time_limit)?;
    let idle_cpu_ns: u64 = reports.iter().map(|report| report.idle_cpu_ns).sum();
    // The first participant wakes the others.
    let wakes = merged(reports.iter().skip(1).map(|report| &report.uncorrected))?;
    Ok(OfDoorbell {
        cpu_percent: 100.0 * idle_cpu_ns as f64 / job.idle_ns.max(1) as f64,
        wake_ns: Quantiles::from(&wakes),
        wakes: wakes.len(),
        counters: reports.iter().map(|report| report.counts.clone()).collect(),
        traffic: reports.iter().map(|it| it.idle_traffic).collect(),
    })
}

/// Runs a participant in its own process.
pub(super) fn work(job: &Job, index: u32) -> Result<Report, Failure> {
    let (participant, topic) = participant::create(job)?;
    let writer = participant::writer(job, &participant, &topic)?;
    let (reader, log) = participant::logged_reader(job, &participant, &topic)?;
    let mut sender = Sender::new(job, index, writer);
    participant::enable(job, &participant)?;

    let before = settled(&participant)?;
    let cpu_started_ns = clock::process_cpu_ns();
    std::thread::sleep(Duration::from_nanos(job.idle_ns));
    let idle_cpu_ns = clock::process_cpu_ns() - cpu_started_ns;
    let idle_traffic = Traffic::of(&participant)?.since(&before);

    if index == 0 {
        // The others' idle times end at nearly the same moment.
        std::thread::sleep(2 * SETTLE);
        for number in 0..job.samples {
            std::thread::sleep(PAUSE);
            sender.send(number, clock::monotonic_ns())?;
        }
    } else {
        // The first participant leaves after the last wake-up.
        let all = job.writers;
        participant::wait_until(&reader, &log, job.listener, |matched| {
            matched.total_count >= all && matched.current_count < all
        })?;
    }
    let mut report = log.lock().unwrap_or_else(PoisonError::into_inner).report();
    report.idle_cpu_ns = idle_cpu_ns;
    report.idle_traffic = idle_traffic;
    report.counts = Counts::from(&participant.counters()?);
    participant.close()?;
    Ok(report)
}

/// Waits until the subgroups have begun and push nothing any more. Returns the counts then.
pub(super) fn settled(participant: &DomainParticipant) -> Result<Traffic, Failure> {
    let mut before = Traffic::of(participant)?;
    loop {
        std::thread::sleep(SETTLE);
        let now = Traffic::of(participant)?;
        if now.subgroup_pushes == before.subgroup_pushes {
            return Ok(now);
        }
        before = now;
    }
}

impl Outcome {
    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "{} participants, idle for {} s",
            self.participants, self.seconds
        )?;
        writeln!(out)?;
        writeln!(
            out,
            "{:<9} {:>8} {:>12} {:>12} {:>12}",
            "doorbell", "CPU %", "wake p50 us", "p99 us", "max us"
        )?;
        for (doorbell, one) in &self.doorbells {
            let wake = &one.wake_ns;
            let [p50, p99, max] = [wake.p50, wake.p99, wake.max].map(|ns| ns as f64 / 1e3);
            writeln!(
                out,
                "{:<9} {:>8.3} {p50:>12.1} {p99:>12.1} {max:>12.1}",
                doorbell.to_string(),
                one.cpu_percent
            )?;
        }
        writeln!(out)?;
        for (doorbell, one) in &self.doorbells {
            let all = Traffic::sum(&one.traffic);
            writeln!(
                out,
                "{doorbell}: pushes while idle, all participants: {} in subgroups; RDMA work requests {}, \
                 of them {} sleep words, {} doorbells",
                all.subgroup_pushes, all.work_requests, all.sleep_words, all.doorbells
            )?;
        }
        Ok(())
    }
}

/// Without a push for so long, a subgroup is settled.
pub(super) const SETTLE: Duration = Duration::from_secs(1);
/// Long enough for all participants to sleep again.
const PAUSE: Duration = Duration::from_millis(50);
