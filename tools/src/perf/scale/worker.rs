//! A process of Spindle's: a participant with a writer and a reader on each topic.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use spindle_dds::qos::{DataReaderQos, DataWriterQos, HistoryKind, ReliabilityKind};
use spindle_dds::{DataReader, DataWriter, DomainParticipant};
use spindle_dds_children::die_with_parent;

use super::contender::Contender;
use super::cyclone;
use super::pacing::Pacing;
use super::protocol::{Closed, Counted, Exchange, Group, Job, Matched, Order, Paced, Told};
use crate::perf::participant::BLOCKING_S;
use crate::perf::perf::Probe;
use crate::perf::{Failure, clock};

pub(in crate::perf) fn run(job: &str) -> ExitCode {
    let Err(failure) = work(job) else {
        return ExitCode::SUCCESS;
    };
    let error = failure.to_string();
    // Without a reader of its output it is about to be killed.
    let _ = tell(&Told::Failed { error });
    ExitCode::FAILURE
}

fn work(job: &str) -> Result<(), Failure> {
    let job: Job = serde_json::from_str(job)?;
    if !die_with_parent(job.parent) {
        return Err(Failure::Workers("not started by `spindle perf`".to_owned()));
    }
    match job.contender {
        Contender::Spindle => follow_orders(&job),
        // The other program ends with the parent too: that survives the change of program.
        Contender::Cyclone => Err(cyclone::become_process(&job).into()),
    }
}

fn follow_orders(job: &Job) -> Result<(), Failure> {
    tell(&Told::Ready)?;
    let mut orders = io::stdin().lines();
    let mut next = || -> Result<Order, Failure> {
        let line = orders.next().transpose()?;
        let line = line.ok_or_else(|| Failure::Workers("no more orders".to_owned()))?;
        Ok(serde_json::from_str(&line)?)
    };
    let Order::Begin = next()? else {
        return Err(Failure::Workers("told to go on before to begin".to_owned()));
    };
    let (process, matched) = Process::begin(job)?;
    tell(&Told::Matched(matched))?;
    loop {
        match next()? {
            Order::Begin => return Err(Failure::Workers("told to begin twice".to_owned())),
            Order::Count => tell(&Told::Counted(process.count()?))?,
            Order::Exchange(exchange) => {
                process.exchange(&exchange)?;
                tell(&Told::Exchanged)?;
            }
            Order::Pace { ms } => {
                let paced = process.pace(Duration::from_millis(ms))?;
                tell(&Told::Paced(paced))?;
            }
            Order::Close => return tell(&Told::Closed(process.close()?)),
        }
    }
}

fn tell(told: &Told) -> Result<(), Failure> {
    Ok(writeln!(io::stdout(), "{}", serde_json::to_string(told)?)?)
}

struct Process<'a> {
    job: &'a Job,
    participant: DomainParticipant,
    writers: Vec<DataWriter<Probe>>,
    readers: Vec<DataReader<Probe>>,
    pacing: Option<Pacing>,
    cpu_began_ns: u64,
}

impl<'a> Process<'a> {
    /// Creates the participant and its endpoints, one after the other, as programs do, and waits
    /// until all are matched.
    fn begin(job: &'a Job) -> Result<(Self, Matched), Failure> {
        let cpu_began_ns = clock::process_cpu_ns();
        let began_at_ns = clock::monotonic_ns();
        let participant = DomainParticipant::builder(0)
            .property("spindle.directory", &job.directory.to_string_lossy())
            .create()?;
        let participant_at_ns = clock::monotonic_ns();
        let (publisher, subscriber) = (
            participant.publisher().create()?,
            participant.subscriber().create()?,
        );
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        for at in 0..job.topics {
            let topic = participant.topic::<Probe>(&format!("T{at}")).create()?;
            writers.push(publisher.writer(&topic).qos(writer_qos()).create()?);
            readers.push(subscriber.reader(&topic).qos(reader_qos()).create()?);
        }
        let pacing = job.has_paced_topic.then(|| {
            let (index, participants) = (job.index, job.participants);
            Pacing::create(&participant, index, participants)
        });
        let process = Self {
            job,
            pacing: pacing.transpose()?,
            participant,
            writers,
            readers,
            cpu_began_ns,
        };
        let endpoints_at_ns = clock::monotonic_ns();
        process.wait_until_matched()?;
        let matched = Matched {
            began_at_ns,
            participant_at_ns,
            endpoints_at_ns,
            matched_at_ns: clock::monotonic_ns(),
        };
        Ok((process, matched))
    }

    /// Looks at one endpoint at a time, so that looking costs little beside what is measured. The
    /// parent adds up all matches afterwards.
    fn wait_until_matched(&self) -> Result<(), Failure> {
        // One that joins late finds all the others.
        let all = u64::from(self.job.participants.max(self.job.index + 1));
        let wait = || std::thread::sleep(LOOK_FOR_MATCHES_AFTER);
        for writer in &self.writers {
            while matched_readers(writer)? < all {
                wait();
            }
        }
        for reader in &self.readers {
            while matched_writers(reader)? < all {
                wait();
            }
        }
        if let Some(pacing) = &self.pacing {
            while !pacing.is_matched()? {
                wait();
            }
        }
        Ok(())
    }

    fn pace(&self, lasts: Duration) -> Result<Paced, Failure> {
        let none = || Failure::Workers("it has no topic for samples at a pace".to_owned());
        self.pacing.as_ref().ok_or_else(none)?.run(lasts)
    }

    fn count(&self) -> Result<Counted, Failure> {
        let cpu_ns = clock::process_cpu_ns() - self.cpu_began_ns;
        let counters = self.participant.counters()?;
        let mut matches = 0;
        for (writer, reader) in self.writers.iter().zip(&self.readers) {
            matches += matched_readers(writer)? + matched_writers(reader)?;
        }
        Ok(Counted {
            cpu_ns,
            matches,
            group: Some(Group {
                view: counters.view,
                epochs: counters.engine.epochs,
                control_pushes: counters.engine.control.pushes,
                control_pushed_bytes: counters.engine.control.bytes,
                packets: counters.station.packets,
                packet_bytes: counters.station.bytes,
                rows: counters.station.rows,
                pushes: counters.fabric.pushes + counters.fabric.word_pushes,
                pushed_bytes: counters.fabric.bytes_pushed,
            }),
        })
    }

    /// Sends in a thread while this one takes: a writer may have to wait for its own reader.
    fn exchange(&self, exchange: &Exchange) -> Result<(), Failure> {
        let per_reader = exchange.samples_per_reader(self.job.participants);
        let mut left = vec![per_reader; exchange.topics as usize];
        std::thread::scope(|scope| {
            let mut sending = Some(scope.spawn(|| self.send(exchange)));
            while sending.is_some() || left.iter().any(|left| *left > 0) {
                std::thread::sleep(LOOK_AGAIN_AFTER);
                self.take(&mut left)?;
                if let Some(ended) = sending.take_if(|it| it.is_finished()) {
                    match ended.join() {
                        Ok(sent) => sent?,
                        Err(panic) => std::panic::resume_unwind(panic),
                    }
                }
            }
            Ok(())
        })
    }

    fn send(&self, exchange: &Exchange) -> Result<(), Failure> {
        let (index, participants) = (self.job.index, self.job.participants);
        let topics = (0..exchange.topics).zip(&self.writers);
        let own = topics.filter(|(topic, _)| exchange.is_sent_by(index, *topic, participants));
        for (_, writer) in own {
            let mut sample = Probe {
                writer: index,
                payload: vec![1; exchange.size as usize],
                ..Probe::default()
            };
            for number in 0..u64::from(exchange.samples) {
                sample.number = number;
                writer.write(&sample)?;
            }
        }
        Ok(())
    }

    /// Takes what there is. `left` has, for each topic of the exchange, the samples still to come.
    fn take(&self, left: &mut [u64]) -> Result<(), Failure> {
        let open = self.readers.iter().zip(left).filter(|(_, left)| **left > 0);
        for (reader, left) in open {
            loop {
                let samples = match reader.take(TAKE_MAX) {
                    Ok(samples) => samples,
                    Err(error) if error.is_no_data() => break,
                    Err(error) => return Err(error.into()),
                };
                let valid = samples.iter().filter(|sample| sample.info().valid_data);
                let rest = left.checked_sub(valid.count() as u64);
                *left = rest.ok_or_else(|| Failure::Workers(TOO_MANY.to_owned()))?;
            }
        }
        Ok(())
    }

    fn close(self) -> Result<Closed, Failure> {
        let began_at_ns = clock::monotonic_ns();
        self.participant.close()?;
        Ok(Closed {
            began_at_ns,
            ended_at_ns: clock::monotonic_ns(),
        })
    }
}

pub(super) fn matched_readers(writer: &DataWriter<Probe>) -> Result<u64, Failure> {
    let count = writer.publication_matched_status()?.current_count;
    Ok(u64::try_from(count).unwrap_or(0))
}

pub(super) fn matched_writers(reader: &DataReader<Probe>) -> Result<u64, Failure> {
    let count = reader.subscription_matched_status()?.current_count;
    Ok(u64::try_from(count).unwrap_or(0))
}

pub(super) fn writer_qos() -> DataWriterQos {
    let mut qos = DataWriterQos::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.reliability.max_blocking_time = spindle_dds::Duration::from_secs(BLOCKING_S);
    qos.history.kind = HistoryKind::KeepAll;
    qos
}

pub(super) fn reader_qos() -> DataReaderQos {
    let mut qos = DataReaderQos::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.history.kind = HistoryKind::KeepAll;
    qos
}

/// Where there are many processes, looking more often takes much of their processor time.
const LOOK_FOR_MATCHES_AFTER: Duration = Duration::from_millis(5);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(1);
const TAKE_MAX: usize = 256;
const TOO_MANY: &str = "a reader has more samples than were sent";
