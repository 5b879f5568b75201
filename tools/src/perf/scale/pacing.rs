//! Samples at a pace: each participant sends one now and then, and takes those of all.

use std::time::Duration;

use spindle_dds::{DataReader, DataWriter, DomainParticipant};

use super::protocol::Paced;
use super::worker::{matched_readers, matched_writers, reader_qos, writer_qos};
use crate::perf::perf::Probe;
use crate::perf::{Failure, clock};

/// The endpoints of a participant on the topic for samples at a pace.
pub(super) struct Pacing {
    writer: DataWriter<Probe>,
    reader: DataReader<Probe>,
    index: u32,
    participants: u64,
}

impl Pacing {
    pub(super) fn create(
        participant: &DomainParticipant,
        index: u32,
        participants: u32,
    ) -> Result<Self, Failure> {
        let topic = participant.topic::<Probe>(TOPIC).create()?;
        let publisher = participant.publisher().create()?;
        let subscriber = participant.subscriber().create()?;
        Ok(Self {
            writer: publisher.writer(&topic).qos(writer_qos()).create()?,
            reader: subscriber.reader(&topic).qos(reader_qos()).create()?,
            index,
            participants: u64::from(participants),
        })
    }

    pub(super) fn is_matched(&self) -> Result<bool, Failure> {
        let all = self.participants;
        Ok(matched_readers(&self.writer)? >= all && matched_writers(&self.reader)? >= all)
    }

    /// Sends and takes for a while.
    pub(super) fn run(&self, lasts: Duration) -> Result<Paced, Failure> {
        let mut sample = Probe {
            writer: self.index,
            payload: vec![1; PAYLOAD],
            ..Probe::default()
        };
        let ends_at_ns = clock::monotonic_ns() + lasts.as_nanos() as u64;
        // By writer: when a sample of it was taken last.
        let mut taken_at_ns = vec![None; self.participants as usize];
        let (mut taken, mut longest_gap_ns, mut due_at_ns) = (0, 0, 0);
        loop {
            let now_ns = clock::monotonic_ns();
            if now_ns >= ends_at_ns {
                break;
            }
            if now_ns >= due_at_ns {
                self.writer.write(&sample)?;
                sample.number += 1;
                due_at_ns = now_ns + EVERY.as_nanos() as u64;
            }
            for writer in self.take()? {
                let Some(last) = taken_at_ns.get_mut(writer as usize) else {
                    continue;
                };
                let now_ns = clock::monotonic_ns();
                let gap_ns = last.map_or(0, |last| now_ns - last);
                longest_gap_ns = gap_ns.max(longest_gap_ns);
                (*last, taken) = (Some(now_ns), taken + 1);
            }
            std::thread::sleep(LOOK_AFTER);
        }
        // What does not come any more is a gap, too.
        let now_ns = clock::monotonic_ns();
        let ends = taken_at_ns.iter().flatten().map(|last| now_ns - last);
        Ok(Paced {
            taken,
            longest_gap_ns: ends.fold(longest_gap_ns, u64::max),
        })
    }

    /// The writers of the samples that there are.
    fn take(&self) -> Result<Vec<u32>, Failure> {
        let samples = match self.reader.take(TAKE_MAX) {
            Ok(samples) => samples,
            Err(error) if error.is_no_data() => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let valid = samples.iter().filter(|sample| sample.info().valid_data);
        let writers = valid.map(|sample| Ok(sample.view()?.writer()));
        writers.collect()
    }
}

const TOPIC: &str = "Paced";
const PAYLOAD: usize = 64;
const EVERY: Duration = Duration::from_millis(100);
const LOOK_AFTER: Duration = Duration::from_millis(5);
const TAKE_MAX: usize = 256;
