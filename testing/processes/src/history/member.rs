//! The participants: writers, and readers that judge what they take.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, DurabilityKind, DurabilityService, HistoryKind, ReliabilityKind,
};
use spindle_dds::{DataReader, DataWriter, DomainParticipant, StatusMask, WaitSet};

use super::messages::{Line, Part, Request, Role, Seen};
use super::numbers::Numbers;
use super::options::Durability;
use crate::exchange::Probe;
use crate::workers::Job;
use crate::workers::participant::{self, requests, send};
use crate::{Failure, clock};

pub(crate) fn work(job: &Job, role: Role) -> ExitCode {
    let done = match role.part {
        Part::Writer(number) => write(job, role, number),
        Part::Keeper(_) | Part::Joiner(_) => read(job, role),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            Line::Failed(failure.to_string()).print();
            ExitCode::FAILURE
        }
    }
}

fn write(job: &Job, role: Role, number: u32) -> Result<(), Failure> {
    let requests = requests();
    let participant = participant::builder(job).disabled().create()?;
    let mut writing = Writing {
        writer: writer(&participant, role.durability)?,
        number,
        payload_len: job.payload_len,
        written: 0,
        longest_ns: 0,
    };
    participant.enable()?;
    while writing.written < job.samples {
        writing.write()?;
    }
    Line::Ready.print();
    let mut due_at_ns = clock::monotonic_ns();
    let mut stopped = false;
    loop {
        match requests.try_recv() {
            Ok(Request::Stop) if !stopped => {
                stopped = true;
                writing.print();
            }
            Ok(_) => {}
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {}
        }
        if !stopped {
            writing.write()?;
        }
        due_at_ns += job.period_ns;
        clock::sleep_until(due_at_ns);
    }
    participant.close()?;
    Ok(())
}

struct Writing {
    writer: DataWriter<Probe>,
    number: u32,
    payload_len: usize,
    written: u64,
    /// The longest write.
    longest_ns: u64,
}

impl Writing {
    fn write(&mut self) -> Result<(), Failure> {
        let begun_at_ns = clock::monotonic_ns();
        let (number, written) = (self.number, self.written);
        send(&self.writer, number, written, begun_at_ns, self.payload_len)?;
        self.written += 1;
        let took_ns = clock::monotonic_ns() - begun_at_ns;
        self.longest_ns = self.longest_ns.max(took_ns);
        Ok(())
    }

    fn print(&self) {
        Line::Written {
            samples: self.written,
            longest_ns: self.longest_ns,
        }
        .print();
    }
}

fn read(job: &Job, role: Role) -> Result<(), Failure> {
    let requests = requests();
    let started_at_ns = clock::monotonic_ns();
    let participant = participant::builder(job).disabled().create()?;
    let reader = reader(&participant, role.durability)?;
    participant.enable()?;
    if let Part::Keeper(_) = role.part {
        Line::Ready.print();
    }
    let mut reading = Reading {
        reader,
        started_at_ns,
        numbers: Numbers::default(),
        seen: Seen::default(),
        told: Seen::default(),
        until: None,
    };
    reading.run(&requests)?;
    participant.close()?;
    Ok(())
}

struct Reading {
    reader: DataReader<Probe>,
    started_at_ns: u64,
    numbers: Numbers,
    seen: Seen,
    /// What was told of it.
    told: Seen,
    /// The samples of each writer that it waits for.
    until: Option<BTreeMap<u32, u64>>,
}

impl Reading {
    /// Takes until it is to leave.
    fn run(&mut self, requests: &Receiver<Request>) -> Result<(), Failure> {
        let condition = self.reader.status_condition()?;
        condition.set_enabled_statuses(StatusMask::DATA_AVAILABLE);
        let waits = WaitSet::new();
        waits.attach(&condition);
        loop {
            match requests.try_recv() {
                Ok(Request::Until(samples)) => self.until = Some(samples),
                Ok(Request::Stop) | Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
            // Asked before: what is there by then is history, or behind it.
            let has_history = self.has_history()?;
            self.take()?;
            if has_history && !self.seen.has_history {
                self.seen.has_history = true;
                self.seen.history_ns = clock::monotonic_ns() - self.started_at_ns;
            }
            self.tell()?;
            match waits.wait(LOOK_EVERY) {
                Ok(_) => {}
                Err(error) if error.is_timeout() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn has_history(&self) -> Result<bool, Failure> {
        let none = spindle_dds::Duration::ZERO;
        match self.reader.wait_for_historical_data(none) {
            Ok(()) => Ok(true),
            Err(error) if error.is_timeout() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn take(&mut self) -> Result<(), Failure> {
        loop {
            let samples = match self.reader.take(TAKE_MAX) {
                Ok(samples) => samples,
                Err(error) if error.is_no_data() => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            for sample in samples.iter().filter(|it| it.info().valid_data) {
                let view = sample.view()?;
                if let Err(jump) = self.numbers.take(view.writer(), view.number()) {
                    let text = jump.describe(self.seen.has_history);
                    let (lost, twice) = (jump.lost(), jump.twice());
                    Line::Wrong {
                        lost,
                        twice,
                        text: text.clone(),
                    }
                    .print();
                    return Err(Failure::Run(text));
                }
                self.seen.samples += 1;
            }
            drop(samples);
            if self.seen.samples >= self.told.samples + TELL_SAMPLES {
                self.tell()?;
            }
        }
    }

    /// Says how far it is, if there is something new.
    fn tell(&mut self) -> Result<(), Failure> {
        let lost = self.reader.sample_lost_status()?.total_count;
        self.seen.sample_lost = u64::try_from(lost).unwrap_or(0);
        let until = self.until.as_ref();
        if self.seen.has_history && until.is_some_and(|it| self.numbers.has(it)) {
            self.until = None;
            self.told = self.seen;
            Line::Complete(self.seen).print();
        } else if self.seen.samples >= self.told.samples + TELL_SAMPLES
            || self.seen.has_history != self.told.has_history
            || self.seen.sample_lost != self.told.sample_lost
        {
            self.told = self.seen;
            Line::Seen(self.seen).print();
        }
        Ok(())
    }
}

fn kind(durability: Durability) -> DurabilityKind {
    match durability {
        Durability::TransientLocal => DurabilityKind::TransientLocal,
        Durability::Transient => DurabilityKind::Transient,
    }
}

/// A RELIABLE writer that keeps all, and waits for room as long as it takes.
fn writer(
    participant: &DomainParticipant,
    durability: Durability,
) -> Result<DataWriter<Probe>, Failure> {
    let mut qos = DataWriterQos::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.reliability.max_blocking_time = spindle_dds::Duration::INFINITE;
    qos.history.kind = HistoryKind::KeepAll;
    qos.durability = kind(durability).into();
    qos.durability_service = DurabilityService {
        history_kind: HistoryKind::KeepAll,
        ..DurabilityService::default()
    };
    let topic = participant.topic(TOPIC).create()?;
    let publisher = participant.publisher().create()?;
    Ok(publisher.writer(&topic).qos(qos).create()?)
}

/// A RELIABLE reader that keeps all.
fn reader(
    participant: &DomainParticipant,
    durability: Durability,
) -> Result<DataReader<Probe>, Failure> {
    let mut qos = DataReaderQos::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.history.kind = HistoryKind::KeepAll;
    qos.durability = kind(durability).into();
    let topic = participant.topic(TOPIC).create()?;
    let subscriber = participant.subscriber().create()?;
    Ok(subscriber.reader(&topic).qos(qos).create()?)
}

const TOPIC: &str = "Kept";
const TAKE_MAX: usize = 256;
const TELL_SAMPLES: u64 = 1000;
/// Requests, and the end of history, wake no condition.
const LOOK_EVERY: Duration = Duration::from_millis(10);
