//! The four participants.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use spindle_dds::{DataReader, DataWriter, Error, StatusCondition, StatusMask, WaitSet};

use super::super::figures::Counts;
use super::super::job::{Job, Report};
use super::super::perf::Probe;
use super::super::{Failure, clock, participant};
use super::belongings::Belongings;
use super::endpoints::{BUSY, CALM, Entities, FAR, START, Watch, send, with};

/// Which participant it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Part {
    /// It publishes.
    Writer,
    /// It reads.
    Reader,
    /// Its endpoints come and go in the subgroup of Busy.
    Near,
    /// Its endpoints come and go elsewhere.
    Far,
}

/// What a participant found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Findings {
    /// Of Busy and Calm.
    pub(super) published: [u64; 2],
    pub(super) longest_write_ns: u64,
    /// Of Busy and Calm, those of guests not counted.
    pub(super) taken: [u64; 2],
    /// Taken of Busy, guests' too, before, while and after endpoints come and go.
    pub(super) busy: [u64; 3],
    pub(super) calm: [u64; 3],
    /// From and to: when nothing of Busy came.
    pub(super) gaps_ns: Vec<(u64, u64)>,
    /// From and to: when nothing came or went.
    pub(super) quiet_ns: Vec<(u64, u64)>,
    /// Samples that the reader took of writers that came and went.
    pub(super) guests_taken: u64,
    /// Samples sent by writers that came and went.
    pub(super) guests_sent: u64,
    /// Samples taken by readers that came and went.
    pub(super) own_taken: u64,
    /// When endpoints were created and deleted.
    pub(super) changed_at_ns: Vec<u64>,
    /// Before anything came or went, and after.
    pub(super) belongings: [Belongings; 2],
    /// Views that began in between.
    pub(super) views: u64,
}

/// When endpoints come and go.
#[derive(Debug, Clone, Copy)]
struct Timetable {
    start_ns: u64,
    phase_ns: u64,
}

impl Timetable {
    /// Before, while, after.
    fn phases(self) -> [(u64, u64); 3] {
        let half_ns = self.phase_ns / 2;
        let from_ns = self.start_ns + half_ns;
        let to_ns = from_ns + self.phase_ns;
        [
            (self.start_ns, from_ns),
            (from_ns, to_ns),
            (to_ns, to_ns + half_ns),
        ]
    }
}

pub(crate) fn work(job: &Job, part: Part) -> Result<Report, Failure> {
    let entities = Entities::new(job)?;
    let findings = match part {
        Part::Writer => publish(job, &entities),
        Part::Reader => read(job, &entities),
        Part::Near => come_and_go(job, &entities, BUSY, 1),
        Part::Far => come_and_go(job, &entities, FAR, 2),
    }?;
    let report = Report {
        counts: Counts::from(&entities.participant.counters()?),
        churn: Some(findings),
        ..Report::default()
    };
    entities.participant.close()?;
    Ok(report)
}

fn publish(job: &Job, entities: &Entities) -> Result<Findings, Failure> {
    let (busy, calm) = (entities.writer(BUSY)?, entities.writer(CALM)?);
    let start = entities.writer(START)?;
    participant::enable(job, &entities.participant)?;
    let timetable = Timetable {
        start_ns: clock::monotonic_ns() + LEAD.as_nanos() as u64,
        phase_ns: job.phase_ns,
    };
    send(&start, 0, 0, timetable.start_ns, 0)?;
    let end_ns = timetable.phases()[2].1;
    let (size, period_ns) = (job.size, job.period_ns);
    let pacing = std::thread::spawn(move || pace(&calm, period_ns, end_ns, size));
    let mut findings = Findings::default();
    let mut now_ns = clock::monotonic_ns();
    while now_ns < end_ns {
        send(&busy, 0, findings.published[0], now_ns, size)?;
        findings.published[0] += 1;
        let done_ns = clock::monotonic_ns();
        findings.longest_write_ns = findings.longest_write_ns.max(done_ns - now_ns);
        now_ns = done_ns;
    }
    let paced = pacing.join();
    findings.published[1] =
        paced.map_err(|_| Failure::Workers("the writer of Calm panicked".to_owned()))??;
    Ok(findings)
}

/// Sends at a pace, in bursts of a millisecond.
fn pace(
    writer: &DataWriter<Probe>,
    period_ns: u64,
    end_ns: u64,
    size: usize,
) -> Result<u64, Failure> {
    let mut sent = 0;
    let mut due_ns = clock::monotonic_ns();
    loop {
        let now_ns = clock::monotonic_ns();
        if now_ns >= end_ns {
            return Ok(sent);
        }
        // A short delay is caught up with.
        due_ns = due_ns.max(now_ns.saturating_sub(CATCH_UP_NS));
        while due_ns <= now_ns {
            send(writer, 0, sent, due_ns, size)?;
            sent += 1;
            due_ns += period_ns;
        }
        std::thread::sleep(TICK);
    }
}

fn read(job: &Job, entities: &Entities) -> Result<Findings, Failure> {
    let readers = [entities.quiet_reader(BUSY)?, entities.quiet_reader(CALM)?];
    let mut watches = [Watch::of_all(), Watch::of_all()];
    let waits = WaitSet::new();
    for reader in &readers {
        let condition = reader.status_condition()?;
        condition
            .set_enabled_statuses(StatusMask::DATA_AVAILABLE | StatusMask::SUBSCRIPTION_MATCHED);
        waits.attach(&condition);
    }
    let timetable = begin(job, entities)?;
    loop {
        // Who has left has left after its last sample: look first, then take.
        let (mut over, mut any) = (true, false);
        for (reader, watch) in readers.iter().zip(&mut watches) {
            let writers = reader.subscription_matched_status()?;
            over &= writers.total_count > 0 && writers.current_count == 0;
            // Once, and then of the other: Busy need not come to an end.
            any |= watch.take_some(reader)?;
        }
        match (any, over) {
            (true, _) => {}
            (false, true) => break,
            (false, false) => wait_for_any(&waits)?,
        }
    }
    let [before, during, after] = timetable.phases();
    let by_phase = |watch: &Watch| [before, during, after].map(|phase| watch.samples_in(phase));
    let ((busy_taken, guests_taken), (calm_taken, _)) =
        (watches[0].samples(), watches[1].samples());
    Ok(Findings {
        taken: [busy_taken, calm_taken],
        guests_taken,
        busy: by_phase(&watches[0]),
        calm: by_phase(&watches[1]),
        gaps_ns: std::mem::take(&mut watches[0].gaps_ns),
        quiet_ns: vec![before, after],
        ..Findings::default()
    })
}

fn come_and_go(
    job: &Job,
    entities: &Entities,
    topic: &str,
    mut guest: u32,
) -> Result<Findings, Failure> {
    let timetable = begin(job, entities)?;
    let [_, (from_ns, to_ns), (_, end_ns)] = timetable.phases();
    clock::wait_until(from_ns);
    let mut findings = Findings::default();
    findings.belongings[0] = Belongings::now()?;
    let first_view = entities.participant.counters()?.view;
    while clock::monotonic_ns() < to_ns {
        let watch = match topic {
            BUSY => Watch::from_any(),
            _ => Watch::from_first(),
        };
        findings.changed_at_ns.push(clock::monotonic_ns());
        let reader = entities.reader(topic, &watch)?;
        // In a subgroup of its own nobody is there to match.
        let others = i32::from(topic == BUSY);
        wait_for_writers(&reader, others)?;
        findings.changed_at_ns.push(clock::monotonic_ns());
        let writer = entities.writer(topic)?;
        wait_for_readers(&writer, others + 1)?;
        for number in 0..SAMPLES {
            send(&writer, guest, number, 0, job.size)?;
        }
        findings.guests_sent += SAMPLES;
        guest += 2;

        findings.changed_at_ns.push(clock::monotonic_ns());
        let view = entities.participant.counters()?.view;
        entities.publisher.delete_datawriter(&writer)?;
        wait_for_writers(&reader, others)?;
        wait_for_view(entities, view)?;
        with(&watch, |watch| watch.take_all(&reader))?;

        findings.changed_at_ns.push(clock::monotonic_ns());
        let view = entities.participant.counters()?.view;
        delete_reader(entities, &reader)?;
        wait_for_view(entities, view)?;
        findings.own_taken += with(&watch, |watch| {
            let (busy, guests) = watch.samples();
            watch.check().map(|()| busy + guests)
        })?;
    }
    findings.views = entities.participant.counters()?.view - first_view;
    // What is in use for the last of them is given back soon.
    clock::wait_until(to_ns.midpoint(end_ns));
    findings.belongings[1] = Belongings::now()?;
    Ok(findings)
}

/// Enables the participant and waits to be told when it begins.
fn begin(job: &Job, entities: &Entities) -> Result<Timetable, Failure> {
    let told = Watch::from_first();
    let start = entities.reader(START, &told)?;
    participant::enable(job, &entities.participant)?;
    loop {
        with(&told, |watch| watch.take_all(&start))?;
        let start_ns = with(&told, |watch| watch.due_at_ns);
        if start_ns > 0 {
            return Ok(Timetable {
                start_ns,
                phase_ns: job.phase_ns,
            });
        }
        std::thread::sleep(LOOK_AGAIN_AFTER);
    }
}

pub(super) fn wait_for_writers(reader: &DataReader<Probe>, count: i32) -> Result<(), Failure> {
    let condition = reader.status_condition()?;
    wait(&condition, StatusMask::SUBSCRIPTION_MATCHED, || {
        Ok(reader.subscription_matched_status()?.current_count == count)
    })
}

pub(super) fn wait_for_readers(writer: &DataWriter<Probe>, count: i32) -> Result<(), Failure> {
    let condition = writer.status_condition()?;
    wait(&condition, StatusMask::PUBLICATION_MATCHED, || {
        Ok(writer.publication_matched_status()?.current_count >= count)
    })
}

fn wait(
    condition: &StatusCondition,
    mask: StatusMask,
    done: impl Fn() -> Result<bool, Failure>,
) -> Result<(), Failure> {
    condition.set_enabled_statuses(mask);
    let waits = WaitSet::new();
    waits.attach(condition);
    while !done()? {
        wait_for_any(&waits)?;
    }
    Ok(())
}

/// Until one of its conditions is, or for a while.
fn wait_for_any(waits: &WaitSet) -> Result<(), Failure> {
    match waits.wait(LOOK_ANYWAY_AFTER) {
        Err(error) if !error.is_timeout() => Err(error.into()),
        _ => Ok(()),
    }
}

/// Until there is another view than this.
pub(super) fn wait_for_view(entities: &Entities, view: u64) -> Result<(), Failure> {
    while entities.participant.counters()?.view == view {
        std::thread::sleep(TICK / 4);
    }
    Ok(())
}

/// Its listener may be taking.
pub(super) fn delete_reader(
    entities: &Entities,
    reader: &DataReader<Probe>,
) -> Result<(), Failure> {
    loop {
        match entities.subscriber.delete_datareader(reader) {
            Ok(()) => return Ok(()),
            Err(Error::PreconditionNotMet(_)) => std::thread::yield_now(),
            Err(error) => return Err(error.into()),
        }
    }
}

/// From the formation of the group to the first phase.
const LEAD: Duration = Duration::from_millis(500);
pub(super) const TICK: Duration = Duration::from_millis(1);
pub(super) const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(1);
const LOOK_ANYWAY_AFTER: Duration = Duration::from_secs(1);
pub(super) const CATCH_UP_NS: u64 = 100_000_000;
/// Of each writer that comes and goes.
pub(super) const SAMPLES: u64 = 3;
