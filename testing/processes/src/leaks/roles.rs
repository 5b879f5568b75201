//! The three processes.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use spindle_dds::{DataReader, DataWriter};

use super::device_resources::DeviceResources;
use super::rest::{RESTS, Rests, SETTLE_WITHIN, count};
use crate::churn::{
    BUSY, CATCH_UP_NS, COUNTED, Entities, GUEST_SAMPLES, START, SharedWatch, TICK, Watch,
    delete_reader, wait_for_readers, wait_for_view_after, wait_for_writers, with,
};
use crate::exchange::Probe;
use crate::resources::Resources;
use crate::workers::Job;
use crate::workers::participant::{enable, send};
use crate::{Failure, clock};

/// Which process it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// It publishes.
    Writer,
    /// It reads.
    Reader,
    /// It makes the changes.
    Changer,
}

/// What a process found. Each role fills in a part of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Findings {
    /// Samples published; by the reader, taken.
    pub(super) samples: u64,
    /// At the first rest and at the second.
    pub(super) resources: [Resources; 2],
    /// Of the devices of all hosts, counted by the changer.
    pub(super) devices: Option<[DeviceResources; 2]>,
    /// Views that began between the rests.
    pub(super) views: u64,
    /// Time between the rests.
    pub(super) elapsed_ns: u64,
    /// Changes of endpoints and of participants between the rests.
    pub(super) changes: [u64; 2],
}

/// Does the work of one role.
pub(crate) fn work(job: &Job, role: Role) -> Result<Findings, Failure> {
    let entities = Entities::new(job)?;
    let findings = match role {
        Role::Writer => publish(job, &entities),
        Role::Reader => read(job, &entities),
        Role::Changer => change(job, &entities),
    }?;
    entities.participant.close()?;
    Ok(findings)
}

fn publish(job: &Job, entities: &Entities) -> Result<Findings, Failure> {
    let busy = entities.writer(BUSY)?;
    let mut rests = Rests::new(entities, 1)?;
    enable(job, &entities.participant)?;
    let mut sent = 0;
    let mut due_ns = clock::monotonic_ns();
    loop {
        if let Some(resources) = rests.poll()? {
            return Ok(Findings {
                samples: sent,
                resources,
                ..Findings::default()
            });
        }
        let now_ns = clock::monotonic_ns();
        // A short delay is caught up with; what a long one has cost is left out.
        due_ns = due_ns.max(now_ns.saturating_sub(CATCH_UP_NS));
        while due_ns <= now_ns {
            send(&busy, 0, sent, due_ns, job.payload_len)?;
            sent += 1;
            due_ns += job.period_ns;
        }
        std::thread::sleep(TICK);
    }
}

fn read(job: &Job, entities: &Entities) -> Result<Findings, Failure> {
    let watch = Watch::from_first();
    let busy = entities.reader(BUSY, &watch)?;
    let mut rests = Rests::new(entities, 2)?;
    enable(job, &entities.participant)?;
    loop {
        let resources = rests.poll()?;
        // The status first, then the samples: a writer leaves after its last sample.
        let all_left = busy.subscription_matched_status()?.current_count == 0;
        with(&watch, |watch| {
            watch.check()?;
            watch.take_all(&busy)?;
            watch.forget_times();
            Ok::<_, Failure>(())
        })?;
        if let Some(resources) = resources
            && all_left
        {
            let (of_writer, of_others) = with(&watch, |watch| watch.samples());
            return Ok(Findings {
                samples: of_writer + of_others,
                resources,
                ..Findings::default()
            });
        }
        std::thread::sleep(READ_EVERY);
    }
}

fn change(job: &Job, entities: &Entities) -> Result<Findings, Failure> {
    let answers = Watch::from_first();
    let (start, counted) = (entities.writer(START)?, entities.reader(COUNTED, &answers)?);
    enable(job, &entities.participant)?;
    wait_for_readers(&start, 2)?;
    wait_for_writers(&counted, 2)?;
    let mut changer = Changer {
        job,
        entities,
        start,
        answers,
        sent: [0; 2],
        changes: [0; 2],
    };
    let view = || Ok::<_, Failure>(entities.participant.counters()?.view);
    changer.change_until(view()? + WARM_UP_VIEWS)?;
    let before = changer.rest(0, None)?;
    changer.changes = [0; 2];
    let (first_view, start_ns) = (view()?, clock::monotonic_ns());
    changer.change_until(first_view + job.views)?;
    let (views, elapsed_ns) = (view()? - first_view, clock::monotonic_ns() - start_ns);
    let after = changer.rest(1, Some(&before))?;
    // All may leave.
    send(&changer.start, 0, RESTS, 0, 0)?;
    Ok(Findings {
        samples: changer.sent.iter().sum(),
        resources: [before.0, after.0],
        devices: before.1.zip(after.1).map(|(before, after)| [before, after]),
        views,
        elapsed_ns,
        changes: changer.changes,
    })
}

/// What the changer counts at a rest: of its process, and of the devices if there are any.
type Held = (Resources, Option<DeviceResources>);

/// The process that makes the changes.
struct Changer<'a> {
    job: &'a Job,
    entities: &'a Entities,
    /// Announces the rests.
    start: DataWriter<Probe>,
    /// From the processes that have counted.
    answers: SharedWatch,
    /// Samples of the endpoints that come and go, and of the guest.
    sent: [u64; 2],
    changes: [u64; 2],
}

impl Changer<'_> {
    /// Announces a rest, and counts what this process holds; when all have counted, the devices.
    fn rest(&self, number: u64, before: Option<&Held>) -> Result<Held, Failure> {
        send(&self.start, 0, number, 0, 0)?;
        // A descriptor that is left open on purpose does not go, however long one waits.
        let within = match self.job.forget {
            true => Duration::ZERO,
            false => SETTLE_WITHIN,
        };
        let of_process = count(before.map(|held| &held.0), within, Resources::now)?;
        let answers = || {
            with(&self.answers, |answers| {
                answers.check().map(|()| answers.samples().1)
            })
        };
        while answers()? < 2 * (number + 1) {
            std::thread::sleep(TICK);
        }
        let hosts = self.job.hosts.iter();
        let devices: Vec<&str> = hosts.filter_map(|host| host.device.as_deref()).collect();
        let before = before.and_then(|held| held.1.as_ref());
        let of_devices = match devices[..] {
            [] => None,
            _ => Some(count(before, SETTLE_WITHIN, || {
                DeviceResources::now(&devices)
            })?),
        };
        Ok((of_process, of_devices))
    }

    /// Makes changes until this view has begun.
    fn change_until(&mut self, last_view: u64) -> Result<(), Failure> {
        while self.entities.participant.counters()?.view < last_view {
            self.change_endpoints()?;
            self.change_participants()?;
            if self.job.forget {
                std::mem::forget(std::fs::File::open("/proc/self/status")?);
            }
        }
        Ok(())
    }

    /// A reader and a writer come and go.
    fn change_endpoints(&mut self) -> Result<(), Failure> {
        let entities = self.entities;
        let watch = Watch::from_any();
        let reader = entities.reader(BUSY, &watch)?;
        wait_for_writers(&reader, 1)?;
        let writer = entities.writer(BUSY)?;
        self.send_some(&writer, 0)?;
        let view = entities.participant.counters()?.view;
        entities.publisher.delete_datawriter(&writer)?;
        wait_for_writers(&reader, 1)?;
        wait_for_view_after(entities, view)?;
        let view = entities.participant.counters()?.view;
        delete_reader(entities, &reader)?;
        wait_for_view_after(entities, view)?;
        self.changes[0] += 4;
        with(&watch, |watch| watch.check())
    }

    /// The guest joins with a reader and a writer, on another host if there is one, and leaves.
    fn change_participants(&mut self) -> Result<(), Failure> {
        let hosts = &self.job.hosts;
        let host = self.job.participants as usize % hosts.len().max(1);
        let job = Job {
            host: hosts.get(host).cloned(),
            participants: self.job.participants + 1,
            ..self.job.clone()
        };
        let guest = Entities::new(&job)?;
        let watch = Watch::from_any();
        let reader = guest.reader(BUSY, &watch)?;
        let writer = guest.writer(BUSY)?;
        enable(&job, &guest.participant)?;
        self.send_some(&writer, 1)?;
        self.wait_for_own_samples(&reader, &watch)?;
        let view = self.entities.participant.counters()?.view;
        guest.participant.close()?;
        wait_for_view_after(self.entities, view)?;
        self.changes[1] += 2;
        Ok(())
    }

    /// Until the reader of the guest has all samples of its own writer.
    fn wait_for_own_samples(
        &self,
        reader: &DataReader<Probe>,
        watch: &SharedWatch,
    ) -> Result<(), Failure> {
        loop {
            let taken = with(watch, |watch| {
                watch.take_all(reader)?;
                watch.check().map(|()| watch.samples().1)
            })?;
            if taken >= GUEST_SAMPLES {
                return Ok(());
            }
            std::thread::sleep(TICK);
        }
    }

    /// Sends a few samples, once both readers are matched. Their numbers continue from writer to
    /// writer: `of` is 0 for the endpoints that come and go, 1 for the guest.
    fn send_some(&mut self, writer: &DataWriter<Probe>, of: usize) -> Result<(), Failure> {
        wait_for_readers(writer, 2)?;
        for _ in 0..GUEST_SAMPLES {
            let payload_len = self.job.payload_len;
            send(writer, of as u32 + 1, self.sent[of], 0, payload_len)?;
            self.sent[of] += 1;
        }
        Ok(())
    }
}

/// By then all exists that is made only once.
const WARM_UP_VIEWS: u64 = 18;
const READ_EVERY: Duration = Duration::from_millis(4);
