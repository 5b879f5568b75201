//! A participant of `processes faults`, in a process of its own: does what it is told, and says
//! what it sees.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, DurabilityKind, DurabilityService, HistoryKind, ReliabilityKind,
};
use spindle_dds::{DataReader, DataWriter, DomainParticipant, Publisher, Topic};
use spindle_dds_children::die_with_parent;
use tracing_subscriber::filter::LevelFilter;

use super::calls::Call;
use super::messages::{Job, Reply, Request, Situation};
use super::seccomp::Listener;
use crate::Failure;
use crate::exchange::Probe;
use crate::workers::participant::{SAMPLE_OVERHEAD, requests, send};

/// Is a participant, until it is told to end.
pub(crate) fn work(job: &str) -> ExitCode {
    let outcome = serde_json::from_str(job)
        .map_err(Failure::from)
        .and_then(|job: Job| {
            if !die_with_parent(job.parent) {
                let text = "a participant is started by `processes faults` only";
                return Err(Failure::Run(text.to_owned()));
            }
            // It warns of a log that fails.
            if std::env::var_os("RUST_LOG").is_some() || job.log.is_some() {
                let filter = tracing_subscriber::EnvFilter::builder();
                let filter = filter.with_default_directive(LevelFilter::WARN.into());
                let filter = filter.from_env_lossy();
                let log = tracing_subscriber::fmt().with_env_filter(filter);
                log.with_writer(io::stderr).init();
            }
            hand_over_listener(&job)?;
            let requests = requests();
            Runner::new(&job).run(&requests)
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("participant: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Says that the process is there. If its calls are reported, the listener goes with it.
fn hand_over_listener(job: &Job) -> Result<(), Failure> {
    let listener = match job.reported {
        true => Some(Listener::install(&Call::conditions())?),
        false => None,
    };
    let descriptors: Vec<BorrowedFd<'_>> = listener.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let bytes = [IoSlice::new(b"\n")];
    rustix::net::sendmsg(io::stdin(), &bytes, &mut control, SendFlags::empty())
        .map_err(io::Error::from)?;
    Ok(())
}

fn reply(reply: &Reply) -> Result<(), Failure> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    let mut left = &line[..];
    while !left.is_empty() {
        let written = rustix::io::write(io::stdin(), left).map_err(io::Error::from)?;
        left = &left[written..];
    }
    Ok(())
}

struct Runner<'a> {
    job: &'a Job,
    entities: Option<Entities>,
    pace: bool,
    situation: Situation,
    /// What went wrong between two requests.
    failure: Option<Failure>,
}

struct Entities {
    participant: DomainParticipant,
    publisher: Publisher,
    topic: Topic<Probe>,
    reader: DataReader<Probe>,
    writer: Option<DataWriter<Probe>>,
    /// Samples of this writer.
    sent: u64,
}

impl<'a> Runner<'a> {
    fn new(job: &'a Job) -> Self {
        Self {
            job,
            entities: None,
            pace: false,
            situation: Situation::default(),
            failure: None,
        }
    }

    fn run(mut self, requests: &Receiver<Request>) -> Result<(), Failure> {
        loop {
            match requests.recv_timeout(PACE) {
                Ok(Request::Exit) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(request) => {
                    let outcome = self.handle_request(request).and_then(|()| self.tell());
                    reply(&match outcome {
                        Ok(situation) => Reply::Done(situation),
                        Err(failure) => Reply::Failed(failure.to_string()),
                    })?;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.pace
                && let Err(failure) = self.write(1)
            {
                self.pace = false;
                self.failure = Some(failure);
            }
        }
    }

    fn handle_request(&mut self, request: Request) -> Result<(), Failure> {
        match request {
            Request::Join { writer } => {
                if let Some(lost) = self.entities.take() {
                    // It is out of its group in any case.
                    let _ = lost.participant.close();
                }
                self.situation.got.clear();
                self.entities = Some(Entities::join(self.job, writer)?);
            }
            Request::CreateWriter => {
                if let Some(entities) = &mut self.entities {
                    let (publisher, topic) = (&entities.publisher, &entities.topic);
                    let writer = writer(self.job, publisher, topic)?;
                    // The group takes the writer, which then has the reader of this participant at least;
                    // or refuses it, and each use says why. Until then what is written waits.
                    while writer.publication_matched_status()?.current_count == 0 {
                        if let Err(refused) = writer.loan_with(SAMPLE_OVERHEAD).map(drop) {
                            publisher.delete_datawriter(&writer)?;
                            return Err(refused.into());
                        }
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    (entities.writer, entities.sent) = (Some(writer), 0);
                }
            }
            Request::DeleteWriter => {
                if let Some(entities) = &mut self.entities
                    && let Some(writer) = &entities.writer
                {
                    entities.publisher.delete_datawriter(writer)?;
                    entities.writer = None;
                }
            }
            Request::Write { samples } => {
                self.write(samples)?;
                self.await_acknowledgments()?;
            }
            Request::Pace { on } => self.pace = on,
            Request::Close => {
                self.pace = false;
                if let Some(entities) = self.entities.take() {
                    entities.participant.close()?;
                }
            }
            Request::Tell | Request::Exit => {}
        }
        Ok(())
    }

    fn write(&mut self, samples: u64) -> Result<(), Failure> {
        let Some(entities) = &mut self.entities else {
            return Ok(());
        };
        let Some(writer) = &entities.writer else {
            return Ok(());
        };
        for _ in 0..samples {
            send(
                writer,
                self.job.number,
                self.situation.written,
                0,
                PAYLOAD_LEN,
            )?;
            self.situation.written += 1;
            entities.sent += 1;
        }
        Ok(())
    }

    /// Until all that was written is in logs, if there are any.
    fn await_acknowledgments(&mut self) -> Result<(), Failure> {
        if self.job.log.is_some()
            && let Some(entities) = &self.entities
            && let Some(writer) = &entities.writer
        {
            writer.wait_for_acknowledgments(WRITE_WITHIN)?;
            let name = format!("{:?}", writer.instance_handle());
            self.situation.acknowledged.insert(name, entities.sent);
        }
        Ok(())
    }

    /// Takes all there is, and looks around.
    fn tell(&mut self) -> Result<Situation, Failure> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if let Some(entities) = &self.entities {
            take_all(&entities.reader, &mut self.situation)?;
            let situation = &mut self.situation;
            situation.others = entities.participant.discovered_participants()?.len();
            situation.writers = entities.reader.subscription_matched_status()?.current_count;
            situation.readers = match &entities.writer {
                Some(writer) => writer.publication_matched_status()?.current_count,
                None => 0,
            };
        }
        Ok(self.situation.clone())
    }
}

impl Entities {
    fn join(job: &Job, with_writer: bool) -> Result<Self, Failure> {
        let directory = job.directory.to_string_lossy();
        let mut builder = DomainParticipant::builder(0)
            .property("spindle.directory", &directory)
            .property("spindle.ring.messages", "256")
            .property("spindle.ring.bytes", "65536")
            .property("spindle.subgroups", "2")
            .property("spindle.failure.limit_ms", LIMIT_MS)
            .property("spindle.rejoin", "off")
            .property("spindle.join.timeout_ms", JOIN_TIMEOUT_MS);
        if let Some(log) = &job.log {
            builder = builder.property("spindle.log.directory", &log.to_string_lossy());
        }
        if let Some(host) = &job.host {
            builder = builder
                .property("spindle.listen", &host.listen)
                .property("spindle.contacts", &host.contact)
                .property("spindle.rdma", "off")
                // A run ends with groups of two, of which one is no majority.
                .property("spindle.prefer_availability", "true");
        }
        let participant = builder.disabled().create()?;
        let entities = Self::complete(job, participant.clone(), with_writer);
        if entities.is_err() {
            // It is refused. What it has prepared must not stay.
            let _ = participant.close();
        }
        entities
    }

    fn complete(
        job: &Job,
        participant: DomainParticipant,
        with_writer: bool,
    ) -> Result<Self, Failure> {
        let topic = participant.topic("Log").create()?;
        let publisher = participant.publisher().create()?;
        let mut qos = DataReaderQos::default();
        qos.reliability.kind = ReliabilityKind::Reliable;
        qos.history.kind = HistoryKind::KeepAll;
        if job.log.is_some() {
            qos.durability = DurabilityKind::Persistent.into();
        }
        let subscriber = participant.subscriber().create()?;
        let reader = subscriber.reader(&topic).qos(qos).create()?;
        let writer = match with_writer {
            true => Some(writer(job, &publisher, &topic)?),
            false => None,
        };
        participant.enable()?;
        Ok(Self {
            participant,
            publisher,
            topic,
            reader,
            writer,
            sent: 0,
        })
    }
}

fn writer(
    job: &Job,
    publisher: &Publisher,
    topic: &Topic<Probe>,
) -> Result<DataWriter<Probe>, Failure> {
    let mut qos = DataWriterQos::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.reliability.max_blocking_time = WRITE_WITHIN;
    qos.history.kind = HistoryKind::KeepAll;
    if job.log.is_some() {
        qos.durability = DurabilityKind::Persistent.into();
        qos.durability_service = DurabilityService {
            history_kind: HistoryKind::KeepAll,
            ..DurabilityService::default()
        };
    }
    Ok(publisher.writer(topic).qos(qos).create()?)
}

/// Takes until nothing is left: each writer's samples once, in order, and a writer's first
/// sample first unless the reader came later.
fn take_all(reader: &DataReader<Probe>, situation: &mut Situation) -> Result<(), Failure> {
    loop {
        let samples = match reader.take(TAKE_MAX) {
            Ok(samples) => samples,
            Err(error) if error.is_no_data() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for sample in samples.iter().filter(|sample| sample.info().valid_data) {
            let view = sample.view()?;
            let (writer, found) = (view.writer(), view.number());
            let (_, next) = situation.got.entry(writer).or_insert((found, found));
            let expected = std::mem::replace(next, found + 1);
            if found != expected {
                return Err(Failure::OutOfOrder {
                    writer,
                    found,
                    expected,
                });
            }
        }
    }
}

/// From one sample of a writer that keeps a pace to the next.
const PACE: Duration = Duration::from_millis(2);
const PAYLOAD_LEN: usize = 16;
const TAKE_MAX: usize = 256;
/// A member that is stopped is noticed in a while; one that has to wait for a processor of a
/// busy machine is not taken for stopped.
const LIMIT_MS: &str = "2000";
/// Shorter than a run may take, so that its error is told.
const JOIN_TIMEOUT_MS: &str = "5000";
const WRITE_WITHIN: spindle_dds::Duration = spindle_dds::Duration::from_millis(5000);
