//! A participant of the run, in a process of its own: it writes and reads all topics, does what it is
//! asked to, and says how it is.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use spindle_dds::qos::{DataReaderQos, DataWriterQos, HistoryKind, ReliabilityKind};
use spindle_dds::{DataReader, DataWriter, DomainParticipant, Error, Publisher, Subscriber, Topic};
use spindle_dds_children::die_with_parent;

use super::messages::{Job, Line, Request, State};
use super::tally::Tally;
use crate::exchange::Probe;
use crate::resources::{Resources, anonymous_kib};
use crate::workers::participant::{requests, send};
use crate::{Failure, clock};

/// Is a participant, until its standard input ends.
pub(crate) fn work(job: &str) -> ExitCode {
    let job: Job = match serde_json::from_str(job) {
        Ok(job) => job,
        Err(error) => return fail(&error.to_string()),
    };
    if !die_with_parent(job.parent) {
        return fail("a participant is started by `processes soak` only");
    }
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter);
    subscriber.with_writer(io::stderr).init();
    let requests = requests();
    let outcome = Member::join(&job).and_then(|mut member| member.run(&requests));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(&failure.to_string()),
    }
}

fn fail(error: &str) -> ExitCode {
    print(&Line::Failed(error.to_owned()));
    ExitCode::FAILURE
}

/// Without a main process that reads, the line is lost, which is no failure.
fn print(line: &Line) {
    let mut out = io::stdout().lock();
    let _ = serde_json::to_writer(&mut out, line)
        .map_err(io::Error::from)
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
}

struct Member<'a> {
    job: &'a Job,
    participant: DomainParticipant,
    publisher: Publisher,
    subscriber: Subscriber,
    /// A topic with its endpoints, what the writer sent, and what the reader got.
    topics: Vec<OfTopic>,
    due_ns: u64,
    taken: u64,
    told_at_ns: u64,
    /// Outages of which the reason is told.
    told_outages: i32,
}

struct OfTopic {
    topic: Topic<Probe>,
    writer: DataWriter<Probe>,
    reader: DataReader<Probe>,
    written: u64,
    tally: Tally,
}

impl<'a> Member<'a> {
    /// Joins, and tries again for a while if that is refused for want of resources.
    fn join(job: &'a Job) -> Result<Self, Failure> {
        let give_up_at_ns = clock::monotonic_ns() + JOIN_WITHIN.as_nanos() as u64;
        loop {
            match Self::try_to_join(job) {
                Err(Failure::Dds(error @ (Error::OutOfResources(_) | Error::Timeout(_))))
                    if clock::monotonic_ns() < give_up_at_ns =>
                {
                    print(&Line::Refused(error.to_string()));
                    std::thread::sleep(JOIN_AGAIN_AFTER);
                }
                joined => return joined,
            }
        }
    }

    fn try_to_join(job: &'a Job) -> Result<Self, Failure> {
        let directory = job.directory.to_string_lossy();
        let mut builder = DomainParticipant::builder(0)
            .property("spindle.directory", &directory)
            .property("spindle.ring.messages", RING_MESSAGES)
            .property("spindle.ring.bytes", RING_BYTES)
            // Speed is not measured, and a thread that spins takes the processor from the others.
            .property("spindle.wait", "block");
        if let Some(limit_ms) = job.limit_ms {
            builder = builder.property("spindle.failure.limit_ms", &limit_ms.to_string());
        }
        let participant = builder.disabled().create()?;
        let publisher = participant.publisher().create()?;
        let subscriber = participant.subscriber().create()?;
        let mut topics = Vec::new();
        for number in 0..job.topics {
            let topic = participant.topic(&format!("Topic{number}")).create()?;
            topics.push(OfTopic {
                writer: writer(&publisher, &topic)?,
                reader: reader(&subscriber, &topic)?,
                topic,
                written: 0,
                tally: Tally::default(),
            });
        }
        participant.enable()?;
        Ok(Self {
            job,
            participant,
            publisher,
            subscriber,
            topics,
            due_ns: clock::monotonic_ns(),
            taken: 0,
            told_at_ns: 0,
            told_outages: 0,
        })
    }

    fn run(&mut self, requests: &Receiver<Request>) -> Result<(), Failure> {
        loop {
            match requests.try_recv() {
                Ok(request) => self.handle_request(request)?,
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return self.leave(),
            }
            self.write()?;
            self.take()?;
            let now_ns = clock::monotonic_ns();
            if now_ns >= self.told_at_ns + TELL_EVERY.as_nanos() as u64 {
                self.told_at_ns = now_ns;
                self.tell_reason()?;
                print(&Line::State(self.state()?));
            }
            std::thread::sleep(TICK);
        }
    }

    fn tell_reason(&mut self) -> Result<(), Failure> {
        let status = self.participant.membership_status()?;
        if status.total_count > self.told_outages {
            self.told_outages = status.total_count;
            print(&Line::Out(status.last_reason.unwrap_or_default()));
        }
        Ok(())
    }

    fn leave(&mut self) -> Result<(), Failure> {
        self.take()?;
        let state = self.state()?;
        self.participant.close()?;
        print(&Line::Left(state));
        Ok(())
    }

    /// Writes a sample of each topic, if one is due. What finds no room is written the next time.
    fn write(&mut self) -> Result<(), Failure> {
        if clock::monotonic_ns() < self.due_ns {
            return Ok(());
        }
        let due_ns = self.due_ns;
        // What a long delay has cost is left out.
        self.due_ns = (due_ns + self.job.period_ns).max(clock::monotonic_ns());
        for of in &mut self.topics {
            match send(
                &of.writer,
                self.job.writer,
                of.written + 1,
                due_ns,
                PAYLOAD_LEN,
            ) {
                Ok(()) => of.written += 1,
                Err(Failure::Dds(error)) if error.is_timeout() => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    fn take(&mut self) -> Result<(), Failure> {
        for of in &mut self.topics {
            loop {
                let samples = match of.reader.take(TAKE_MAX) {
                    Ok(samples) => samples,
                    Err(error) if error.is_no_data() => break,
                    Err(error) => return Err(error.into()),
                };
                let outages = outages(&self.participant)?;
                for sample in samples.iter().filter(|it| it.info().valid_data) {
                    let view = sample.view()?;
                    if view.writer() == VISITOR {
                        continue;
                    }
                    self.taken += 1;
                    let counted = of.tally.add(view.writer(), view.number(), outages);
                    counted.map_err(|what| {
                        let topic = of.topic.name();
                        Failure::Run(format!("topic {topic}: {what}"))
                    })?;
                }
            }
        }
        Ok(())
    }

    fn state(&self) -> Result<State, Failure> {
        let membership = self.participant.membership_status()?;
        let mut missed = 0;
        for of in &self.topics {
            missed += of.reader.sample_lost_status()?.total_count;
        }
        let Resources {
            descriptors,
            threads,
            ..
        } = Resources::now()?;
        let others = self.participant.discovered_participants()?.len();
        Ok(State {
            is_member: membership.is_member,
            outages: u32::try_from(membership.total_count).unwrap_or(0),
            members: others as u32 + 1,
            written: self.topics.iter().map(|of| of.written).sum(),
            taken: self.taken,
            missed: u64::try_from(missed).unwrap_or(0),
            missing: self.topics.iter().map(|of| of.tally.missing).sum(),
            gone: membership.samples_gone,
            descriptors,
            threads,
            memory_kib: anonymous_kib()?,
        })
    }

    fn handle_request(&mut self, request: Request) -> Result<(), Failure> {
        let before = getrlimit(Resource::Nofile);
        if let Request::WithoutDescriptors = request {
            // Some numbers below may be free: they are few.
            let current = Some(Resources::now()?.descriptors);
            setrlimit(Resource::Nofile, Rlimit { current, ..before }).map_err(io::Error::from)?;
        }
        let done = self.come_and_go();
        setrlimit(Resource::Nofile, before).map_err(io::Error::from)?;
        match done {
            Ok(()) => {}
            // Also another participant may lack what it takes.
            Err(Failure::Dds(error @ Error::OutOfResources(_))) => {
                print(&Line::Refused(error.to_string()));
            }
            Err(failure) => return Err(failure),
        }
        print(&Line::Done);
        Ok(())
    }

    /// A writer and a reader come, exchange samples, and go.
    fn come_and_go(&mut self) -> Result<(), Failure> {
        let topic = &self.topics[self.job.writer as usize % self.topics.len()].topic;
        let reader = reader(&self.subscriber, topic)?;
        let visit = || {
            let writer = writer(&self.publisher, topic)?;
            let until_ns = clock::monotonic_ns() + VISIT_FOR.as_nanos() as u64;
            let mut sent = 0;
            while clock::monotonic_ns() < until_ns {
                match send(&writer, VISITOR, sent, 0, PAYLOAD_LEN) {
                    Ok(()) => sent += 1,
                    Err(Failure::Dds(error)) if error.is_timeout() => {}
                    Err(failure) => return Err(failure),
                }
                match reader.take(TAKE_MAX) {
                    Ok(_) => {}
                    Err(error) if error.is_no_data() => {}
                    Err(error) => return Err(error.into()),
                }
                std::thread::sleep(TICK);
            }
            Ok(self.publisher.delete_datawriter(&writer)?)
        };
        let visited = visit();
        self.subscriber.delete_datareader(&reader)?;
        visited
    }
}

fn outages(participant: &DomainParticipant) -> Result<u32, Failure> {
    let status = participant.membership_status()?;
    Ok(u32::try_from(status.total_count).unwrap_or(0))
}

fn writer(publisher: &Publisher, topic: &Topic<Probe>) -> Result<DataWriter<Probe>, Error> {
    let mut qos = DataWriterQos::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.reliability.max_blocking_time = spindle_dds::Duration::from_millis(100);
    qos.history.kind = HistoryKind::KeepAll;
    publisher.writer(topic).qos(qos).create()
}

fn reader(subscriber: &Subscriber, topic: &Topic<Probe>) -> Result<DataReader<Probe>, Error> {
    let mut qos = DataReaderQos::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.history.kind = HistoryKind::KeepAll;
    subscriber.reader(topic).qos(qos).create()
}

/// The number of writers that come and go.
const VISITOR: u32 = u32::MAX;
const PAYLOAD_LEN: usize = 64;
const RING_MESSAGES: &str = "256";
const RING_BYTES: &str = "65536";
const TAKE_MAX: usize = 256;
const TICK: Duration = Duration::from_millis(10);
const TELL_EVERY: Duration = Duration::from_millis(500);
const VISIT_FOR: Duration = Duration::from_millis(300);
const JOIN_WITHIN: Duration = Duration::from_secs(60);
const JOIN_AGAIN_AFTER: Duration = Duration::from_millis(500);
