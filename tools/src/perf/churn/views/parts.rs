//! The three processes.

use std::io;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use spindle_dds::{DataReader, DataWriter};

use super::super::super::job::{Job, Report};
use super::super::super::perf::Probe;
use super::super::super::place::{self, Place};
use super::super::super::{Failure, clock, participant};
use super::super::belongings::Belongings;
use super::super::devices::OfDevices;
use super::super::endpoints::{BUSY, COUNTED, Entities, START, SharedWatch, Watch, send, with};
use super::super::parts::{
    CATCH_UP_NS, LOOK_AGAIN_AFTER, SAMPLES, TICK, delete_reader, wait_for_readers, wait_for_view,
    wait_for_writers,
};

/// Which of them it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::perf) enum Part {
    /// It publishes.
    Writer,
    /// It reads.
    Reader,
    /// It makes the changes.
    Changer,
}

/// What one of them found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::perf) struct Findings {
    /// Published, or taken by the reader that stays.
    pub(super) samples: u64,
    /// After the first views, and at the end.
    pub(super) belongings: [Belongings; 2],
    /// Of all together, by the changer, at the same times.
    pub(super) devices: Option<[OfDevices; 2]>,
    /// Views that began in between.
    pub(super) views: u64,
    pub(super) elapsed_ns: u64,
    /// Of endpoints and of participants.
    pub(super) changes: [u64; 2],
}

pub(in crate::perf) fn work(job: &Job, part: Part) -> Result<Report, Failure> {
    let entities = Entities::new(job)?;
    let findings = match part {
        Part::Writer => publish(job, &entities),
        Part::Reader => read(job, &entities),
        Part::Changer => change(job, &entities),
    }?;
    entities.participant.close()?;
    Ok(Report {
        views: Some(findings),
        ..Report::default()
    })
}

/// What the changer is told by one of the others, and tells it.
struct Rests {
    told: SharedWatch,
    steps: DataReader<Probe>,
    counted: DataWriter<Probe>,
    writer: u32,
    belongings: Vec<Belongings>,
}

impl Rests {
    /// Before the participant is enabled.
    fn of(entities: &Entities, writer: u32) -> Result<Self, Failure> {
        let told = Watch::from_first();
        Ok(Self {
            steps: entities.reader(START, &told)?,
            told,
            counted: entities.writer(COUNTED)?,
            writer,
            belongings: Vec::new(),
        })
    }

    /// Counts what this process has, if that is due. What it had both times, once all may
    /// go: who goes earlier takes something with it that others count.
    fn look(&mut self) -> Result<Option<[Belongings; 2]>, Failure> {
        let told = with(&self.told, |told| {
            told.take_all(&self.steps)?;
            told.check().map(|()| told.samples().0)
        })?;
        let number = self.belongings.len() as u64;
        if number < RESTS && told > number {
            let has = count(self.belongings.first(), Belongings::now)?;
            self.belongings.push(has);
            send(&self.counted, self.writer, number, 0, 0)?;
        }
        match told > RESTS {
            true => Ok(self.belongings[..].try_into().ok()),
            false => Ok(None),
        }
    }
}

/// What there is at a rest. The first time that is what has not changed for a while: what
/// is on its way out goes, and a view that still begins has its memory registered anew.
/// Then it is waited for longer.
fn count<T: Has>(before: Option<&T>, now: impl Fn() -> io::Result<T>) -> Result<T, Failure> {
    let Some(before) = before else {
        return settled(SETTLED_FOR, COUNT_AGAIN_AFTER, now);
    };
    let start = Instant::now();
    let mut least = now()?;
    while least.is_more_than(before) && start.elapsed() <= GONE_WITHIN {
        std::thread::sleep(COUNT_AGAIN_AFTER);
        least = now()?.least(&least);
    }
    Ok(least)
}

/// The first that is the same so many times in a row; what there is after [`GONE_WITHIN`]
/// if nothing is.
fn settled<T: Has>(
    times: u32,
    pause: Duration,
    now: impl Fn() -> io::Result<T>,
) -> Result<T, Failure> {
    let start = Instant::now();
    let (mut last, mut same) = (now()?, 1);
    while same < times && start.elapsed() <= GONE_WITHIN {
        std::thread::sleep(pause);
        let has = now()?;
        same = if has == last { same + 1 } else { 1 };
        last = has;
    }
    Ok(last)
}

/// What can be counted.
trait Has: PartialEq {
    fn least(&self, other: &Self) -> Self;
    fn is_more_than(&self, before: &Self) -> bool;
}

impl Has for Belongings {
    fn least(&self, other: &Self) -> Self {
        self.least(other)
    }

    fn is_more_than(&self, before: &Self) -> bool {
        !self.more_than(before).is_empty()
    }
}

impl Has for OfDevices {
    fn least(&self, other: &Self) -> Self {
        self.least(other)
    }

    fn is_more_than(&self, before: &Self) -> bool {
        !self.more_than(before).is_empty()
    }
}

fn publish(job: &Job, entities: &Entities) -> Result<Findings, Failure> {
    let busy = entities.writer(BUSY)?;
    let mut rests = Rests::of(entities, 1)?;
    participant::enable(job, &entities.participant)?;
    let mut sent = 0;
    let mut due_ns = clock::monotonic_ns();
    loop {
        if let Some(belongings) = rests.look()? {
            return Ok(Findings {
                samples: sent,
                belongings,
                ..Findings::default()
            });
        }
        let now_ns = clock::monotonic_ns();
        // A short delay is caught up with.
        due_ns = due_ns.max(now_ns.saturating_sub(CATCH_UP_NS));
        while due_ns <= now_ns {
            send(&busy, 0, sent, due_ns, job.size)?;
            sent += 1;
            due_ns += job.period_ns;
        }
        std::thread::sleep(TICK);
    }
}

fn read(job: &Job, entities: &Entities) -> Result<Findings, Failure> {
    let watch = Watch::from_first();
    let busy = entities.reader(BUSY, &watch)?;
    let mut rests = Rests::of(entities, 2)?;
    participant::enable(job, &entities.participant)?;
    loop {
        let belongings = rests.look()?;
        // Who has left has left after its last sample: look first, then take.
        let gone = busy.subscription_matched_status()?.current_count == 0;
        with(&watch, |watch| {
            watch.check()?;
            watch.take_all(&busy)?;
            watch.forget_times();
            Ok::<_, Failure>(())
        })?;
        if let Some(belongings) = belongings
            && gone
        {
            let (own, others) = with(&watch, |watch| watch.samples());
            return Ok(Findings {
                samples: own + others,
                belongings,
                ..Findings::default()
            });
        }
        std::thread::sleep(LOOK_AGAIN_AFTER * 4);
    }
}

/// Who makes the changes, and what it has sent.
struct Changer<'a> {
    job: &'a Job,
    entities: &'a Entities,
    /// Of the endpoints that come and go, and of the guest.
    sent: [u64; 2],
    changes: [u64; 2],
}

fn change(job: &Job, entities: &Entities) -> Result<Findings, Failure> {
    let told = Watch::from_first();
    let (start, answers) = (entities.writer(START)?, entities.reader(COUNTED, &told)?);
    participant::enable(job, &entities.participant)?;
    wait_for_readers(&start, 2)?;
    wait_for_writers(&answers, 2)?;
    // All rest: what this process has, and when all have counted theirs, the devices.
    let rest = |number: u64, before: Option<&(Belongings, Option<OfDevices>)>| {
        send(&start, 0, number, 0, 0)?;
        let has = count(before.map(|it| &it.0), Belongings::now)?;
        while with(&told, |told| told.check().map(|()| told.samples().1))? < 2 * (number + 1) {
            std::thread::sleep(LOOK_AGAIN_AFTER);
        }
        let devices: Vec<&str> = job.places.iter().filter_map(Place::device).collect();
        let before = before.and_then(|it| it.1.as_ref());
        let of_devices = match devices[..] {
            [] => None,
            _ => Some(count(before, || OfDevices::now(&devices))?),
        };
        Ok::<_, Failure>((has, of_devices))
    };
    let mut changer = Changer {
        job,
        entities,
        sent: [0; 2],
        changes: [0; 2],
    };
    let view = || Ok::<_, Failure>(entities.participant.counters()?.view);
    changer.until(view()? + WARM_UP_VIEWS)?;
    let before = rest(0, None)?;
    changer.changes = [0; 2];
    let (first_view, start_ns) = (view()?, clock::monotonic_ns());
    changer.until(first_view + job.views)?;
    let (views, elapsed_ns) = (view()? - first_view, clock::monotonic_ns() - start_ns);
    let after = rest(1, Some(&before))?;
    // All may go.
    send(&start, 0, RESTS, 0, 0)?;
    Ok(Findings {
        samples: changer.sent.iter().sum(),
        belongings: [before.0, after.0],
        devices: before.1.zip(after.1).map(|(before, after)| [before, after]),
        views,
        elapsed_ns,
        changes: changer.changes,
    })
}

impl Changer<'_> {
    /// Until this view has begun.
    fn until(&mut self, last: u64) -> Result<(), Failure> {
        while self.entities.participant.counters()?.view < last {
            self.endpoints()?;
            self.guest()?;
            if self.job.forget {
                std::mem::forget(std::fs::File::open("/proc/self/status")?);
            }
        }
        Ok(())
    }

    /// A reader and a writer come and go.
    fn endpoints(&mut self) -> Result<(), Failure> {
        let entities = self.entities;
        let watch = Watch::from_any();
        let reader = entities.reader(BUSY, &watch)?;
        wait_for_writers(&reader, 1)?;
        let writer = entities.writer(BUSY)?;
        self.send(&writer, 0)?;
        let view = entities.participant.counters()?.view;
        entities.publisher.delete_datawriter(&writer)?;
        wait_for_writers(&reader, 1)?;
        wait_for_view(entities, view)?;
        let view = entities.participant.counters()?.view;
        delete_reader(entities, &reader)?;
        wait_for_view(entities, view)?;
        self.changes[0] += 4;
        with(&watch, |watch| watch.check())
    }

    /// A participant comes with both, on another host if there is one, and goes.
    fn guest(&mut self) -> Result<(), Failure> {
        let job = self.job;
        let host = job.participants as usize % job.places.len().max(1);
        let below = job.directory.parent().unwrap_or(&job.directory);
        let job = Job {
            directory: place::directory(below, host)?,
            place: job.places.get(host).cloned(),
            participants: job.participants + 1,
            ..job.clone()
        };
        let guest = Entities::new(&job)?;
        let watch = Watch::from_any();
        let reader = guest.reader(BUSY, &watch)?;
        let writer = guest.writer(BUSY)?;
        participant::enable(&job, &guest.participant)?;
        self.send(&writer, 1)?;
        // Its own are the last that it waits for.
        while with(&watch, |watch| {
            watch.take_all(&reader)?;
            watch.check().map(|()| watch.samples().1)
        })? < SAMPLES
        {
            std::thread::sleep(LOOK_AGAIN_AFTER);
        }
        let view = self.entities.participant.counters()?.view;
        guest.participant.close()?;
        wait_for_view(self.entities, view)?;
        self.changes[1] += 2;
        Ok(())
    }

    /// A few samples, once both readers are there; numbers go on from writer to writer.
    fn send(&mut self, writer: &DataWriter<Probe>, of: usize) -> Result<(), Failure> {
        wait_for_readers(writer, 2)?;
        for _ in 0..SAMPLES {
            send(writer, of as u32 + 1, self.sent[of], 0, self.job.size)?;
            self.sent[of] += 1;
        }
        Ok(())
    }
}

/// What is only ever made once has been made by then.
const WARM_UP_VIEWS: u64 = 18;
/// How often all count.
const RESTS: u64 = 2;
const COUNT_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// Counts in a row that are the same: two seconds.
const SETTLED_FOR: u32 = 11;
const GONE_WITHIN: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A view that still begins has nothing registered for a moment: that once was taken
    /// for what there is.
    #[test]
    fn what_there_is_for_a_moment_does_not_count() {
        let check = |all: &[u64], expected: u64| {
            let at = Cell::new(0);
            let now = || {
                let pinned_kib = all[at.get()];
                at.set((at.get() + 1).min(all.len() - 1));
                Ok(Belongings {
                    pinned_kib,
                    ..Belongings::default()
                })
            };
            let has = settled(3, Duration::ZERO, now).expect("a count");
            assert_eq!(has.pinned_kib, expected, "{all:?}");
        };
        check(&[980], 980);
        check(&[980, 44, 980], 980);
        check(&[44, 44, 980], 980);
        check(&[980, 1_916, 1_916, 980], 980);
    }
}
