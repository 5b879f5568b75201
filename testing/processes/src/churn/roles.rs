//! The four participants.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use spindle_dds::{DataWriter, StatusMask, WaitSet};

use super::entities::{BUSY, CALM, Entities, FAR, START};
use super::waits::{
    delete_reader, wait_a_while, wait_for_readers, wait_for_view_after, wait_for_writers,
};
use super::watch::{Watch, with};
use crate::exchange::Probe;
use crate::resources::Resources;
use crate::workers::Job;
use crate::workers::participant::{enable, send};
use crate::{Failure, clock};

/// Which participant it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// It publishes.
    Writer,
    /// It reads.
    Reader,
    /// Its endpoints come and go in the subgroup of Busy.
    Near,
    /// Its endpoints come and go in a subgroup of their own.
    Far,
}

/// What a participant found. Each role fills in a part of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Findings {
    /// Samples published of Busy and of Calm.
    pub(super) published: [u64; 2],
    pub(super) longest_write_ns: u64,
    /// Samples taken of Busy and of Calm, without those of guests.
    pub(super) taken: [u64; 2],
    /// Samples taken of Busy, with those of guests, before, during and after the changes.
    pub(super) busy_by_phase: [u64; 3],
    pub(super) calm_by_phase: [u64; 3],
    /// From and to: times without a sample of Busy.
    pub(super) gaps_ns: Vec<(u64, u64)>,
    /// From and to: the phases without changes.
    pub(super) quiet_ns: Vec<(u64, u64)>,
    /// Samples of guests that the reader took.
    pub(super) guests_taken: u64,
    /// Samples that guests sent.
    pub(super) guests_sent: u64,
    /// Samples taken by readers that came and went.
    pub(super) taken_by_guests: u64,
    /// When endpoints were created and deleted.
    pub(super) changed_at_ns: Vec<u64>,
    /// Before the changes and after them.
    pub(super) resources: [Resources; 2],
    /// Views that began in between.
    pub(super) views: u64,
}

/// When endpoints come and go.
#[derive(Debug, Clone, Copy)]
struct Timetable {
    /// CLOCK_MONOTONIC.
    start_ns: u64,
    phase_ns: u64,
}

impl Timetable {
    /// From and to, before, during and after the changes.
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

/// Does the work of one role.
pub(crate) fn work(job: &Job, role: Role) -> Result<Findings, Failure> {
    let entities = Entities::new(job)?;
    let findings = match role {
        Role::Writer => publish(job, &entities),
        Role::Reader => read(job, &entities),
        Role::Near => come_and_go(job, &entities, BUSY, 1),
        Role::Far => come_and_go(job, &entities, FAR, 2),
    }?;
    entities.participant.close()?;
    Ok(findings)
}

fn publish(job: &Job, entities: &Entities) -> Result<Findings, Failure> {
    let (busy, calm) = (entities.writer(BUSY)?, entities.writer(CALM)?);
    let start = entities.writer(START)?;
    enable(job, &entities.participant)?;
    let timetable = Timetable {
        start_ns: clock::monotonic_ns() + LEAD.as_nanos() as u64,
        phase_ns: job.phase_ns,
    };
    send(&start, 0, 0, timetable.start_ns, 0)?;
    let end_ns = timetable.phases()[2].1;
    let (payload_len, period_ns) = (job.payload_len, job.period_ns);
    let pacing = std::thread::spawn(move || publish_paced(&calm, period_ns, end_ns, payload_len));
    let mut findings = Findings::default();
    let mut now_ns = clock::monotonic_ns();
    while now_ns < end_ns {
        send(&busy, 0, findings.published[0], now_ns, payload_len)?;
        findings.published[0] += 1;
        let done_ns = clock::monotonic_ns();
        findings.longest_write_ns = findings.longest_write_ns.max(done_ns - now_ns);
        now_ns = done_ns;
    }
    let paced = pacing.join();
    findings.published[1] =
        paced.map_err(|_| Failure::Run("the writer of Calm panicked".to_owned()))??;
    Ok(findings)
}

/// Sends at a pace, in bursts of a millisecond, until the end; how many samples.
fn publish_paced(
    writer: &DataWriter<Probe>,
    period_ns: u64,
    end_ns: u64,
    payload_len: usize,
) -> Result<u64, Failure> {
    let mut sent = 0;
    let mut due_ns = clock::monotonic_ns();
    loop {
        let now_ns = clock::monotonic_ns();
        if now_ns >= end_ns {
            return Ok(sent);
        }
        // A short delay is caught up with; what a long one has cost is left out.
        due_ns = due_ns.max(now_ns.saturating_sub(CATCH_UP_NS));
        while due_ns <= now_ns {
            send(writer, 0, sent, due_ns, payload_len)?;
            sent += 1;
            due_ns += period_ns;
        }
        std::thread::sleep(TICK);
    }
}

fn read(job: &Job, entities: &Entities) -> Result<Findings, Failure> {
    let readers = [
        entities.reader_without_listener(BUSY)?,
        entities.reader_without_listener(CALM)?,
    ];
    let mut watches = [Watch::from_first_unshared(), Watch::from_first_unshared()];
    let waits = WaitSet::new();
    for reader in &readers {
        let condition = reader.status_condition()?;
        condition
            .set_enabled_statuses(StatusMask::DATA_AVAILABLE | StatusMask::SUBSCRIPTION_MATCHED);
        waits.attach(&condition);
    }
    let timetable = begin(job, entities)?;
    loop {
        let (mut all_left, mut any_taken) = (true, false);
        for (reader, watch) in readers.iter().zip(&mut watches) {
            // The status first, then the samples: a writer leaves after its last sample.
            let writers = reader.subscription_matched_status()?;
            all_left &= writers.total_count > 0 && writers.current_count == 0;
            // Once, and then of the other topic: taking Busy until nothing is left may not end.
            any_taken |= watch.take_some(reader)?;
        }
        match (any_taken, all_left) {
            (true, _) => {}
            (false, true) => break,
            (false, false) => wait_a_while(&waits)?,
        }
    }
    let phases = timetable.phases();
    let by_phase = |watch: &Watch| phases.map(|phase| watch.samples_in(phase));
    let ((busy_taken, guests_taken), (calm_taken, _)) =
        (watches[0].samples(), watches[1].samples());
    Ok(Findings {
        taken: [busy_taken, calm_taken],
        guests_taken,
        busy_by_phase: by_phase(&watches[0]),
        calm_by_phase: by_phase(&watches[1]),
        gaps_ns: std::mem::take(&mut watches[0].gaps_ns),
        quiet_ns: vec![phases[0], phases[2]],
        ..Findings::default()
    })
}

fn come_and_go(
    job: &Job,
    entities: &Entities,
    topic: &str,
    first_guest: u32,
) -> Result<Findings, Failure> {
    let timetable = begin(job, entities)?;
    let [_, (from_ns, to_ns), (_, end_ns)] = timetable.phases();
    clock::sleep_until(from_ns);
    let mut findings = Findings::default();
    findings.resources[0] = Resources::now()?;
    let first_view = entities.participant.counters()?.view;
    // The guests of `near` have odd numbers, those of `far` even ones.
    let mut guest = first_guest;
    while clock::monotonic_ns() < to_ns {
        come_and_go_once(job, entities, topic, guest, &mut findings)?;
        guest += 2;
    }
    findings.views = entities.participant.counters()?.view - first_view;
    // What the last change still uses is released within this time.
    clock::sleep_until(to_ns.midpoint(end_ns));
    findings.resources[1] = Resources::now()?;
    Ok(findings)
}

/// A reader and a writer are created, the writer sends a few samples, and both are deleted.
fn come_and_go_once(
    job: &Job,
    entities: &Entities,
    topic: &str,
    guest: u32,
    findings: &mut Findings,
) -> Result<(), Failure> {
    // In the subgroup of Busy there are a writer and a reader that stay.
    let (watch, others) = match topic {
        BUSY => (Watch::from_any(), 1),
        _ => (Watch::from_first(), 0),
    };
    findings.changed_at_ns.push(clock::monotonic_ns());
    let reader = entities.reader(topic, &watch)?;
    wait_for_writers(&reader, others)?;

    findings.changed_at_ns.push(clock::monotonic_ns());
    let writer = entities.writer(topic)?;
    wait_for_readers(&writer, others + 1)?;
    for number in 0..GUEST_SAMPLES {
        send(&writer, guest, number, 0, job.payload_len)?;
    }
    findings.guests_sent += GUEST_SAMPLES;

    findings.changed_at_ns.push(clock::monotonic_ns());
    let view = entities.participant.counters()?.view;
    entities.publisher.delete_datawriter(&writer)?;
    wait_for_writers(&reader, others)?;
    wait_for_view_after(entities, view)?;
    with(&watch, |watch| watch.take_all(&reader))?;

    findings.changed_at_ns.push(clock::monotonic_ns());
    let view = entities.participant.counters()?.view;
    delete_reader(entities, &reader)?;
    wait_for_view_after(entities, view)?;
    findings.taken_by_guests += with(&watch, |watch| {
        let (of_busy, of_guests) = watch.samples();
        watch.check().map(|()| of_busy + of_guests)
    })?;
    Ok(())
}

/// Enables the participant, and waits until it is told when the phases begin.
fn begin(job: &Job, entities: &Entities) -> Result<Timetable, Failure> {
    let told = Watch::from_first();
    let start = entities.reader(START, &told)?;
    enable(job, &entities.participant)?;
    loop {
        with(&told, |watch| watch.take_all(&start))?;
        let start_ns = with(&told, |watch| watch.due_at_ns);
        if start_ns > 0 {
            return Ok(Timetable {
                start_ns,
                phase_ns: job.phase_ns,
            });
        }
        std::thread::sleep(TICK);
    }
}

/// From the formation of the group to the first phase.
const LEAD: Duration = Duration::from_millis(500);
/// Between two looks at the clock, or at what has come.
pub(crate) const TICK: Duration = Duration::from_millis(1);
/// A longer delay of a paced writer is not caught up with.
pub(crate) const CATCH_UP_NS: u64 = 100_000_000;
/// Samples of each writer that comes and goes.
pub(crate) const GUEST_SAMPLES: u64 = 3;
