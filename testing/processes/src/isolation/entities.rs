//! The entities of the participants.

use std::collections::BTreeMap;
use std::time::Duration;

use spindle_dds::qos::{DataReaderQos, DataWriterQos, HistoryKind, Length, ReliabilityKind};
use spindle_dds::{
    DataReader, DataReaderListener, DataWriter, DomainParticipant, Publisher, StatusMask,
    Subscriber, Topic,
};

use super::timetable::{EXTRA_TOPIC, TOPICS};
use super::watch::{SharedWatch, with};
use crate::Failure;
use crate::exchange::Probe;
use crate::workers::{Job, participant};

/// A participant, still disabled, with a publisher and a subscriber.
pub(super) struct Entities {
    pub(super) participant: DomainParticipant,
    pub(super) publisher: Publisher,
    subscriber: Subscriber,
    topics: BTreeMap<&'static str, Topic<Probe>>,
}

/// A reader and the watch of what it takes.
pub(super) struct Watched {
    pub(super) reader: DataReader<Probe>,
    pub(super) watch: SharedWatch,
}

/// A listener that takes all there is.
pub(super) struct TakingListener(pub(super) SharedWatch);

impl DataReaderListener<Probe> for TakingListener {
    fn on_data_available(&mut self, reader: &DataReader<Probe>) {
        with(&self.0, |watch| watch.take_all_quietly(reader));
    }
}

impl Entities {
    pub(super) fn new(job: &Job) -> Result<Self, Failure> {
        let participant = participant::builder(job).disabled().create()?;
        let mut topics = BTreeMap::new();
        for name in TOPICS.into_iter().chain([EXTRA_TOPIC]) {
            topics.insert(name, participant.topic(name).create()?);
        }
        Ok(Self {
            topics,
            publisher: participant.publisher().create()?,
            subscriber: participant.subscriber().create()?,
            participant,
        })
    }

    /// A RELIABLE, KEEP_ALL writer with a ring of its own size, or of the participant's.
    pub(super) fn writer(
        &self,
        topic: &str,
        ring_messages: Option<u32>,
    ) -> Result<DataWriter<Probe>, Failure> {
        let mut qos = DataWriterQos::default();
        qos.reliability.kind = ReliabilityKind::Reliable;
        qos.reliability.max_blocking_time = spindle_dds::Duration::INFINITE;
        qos.history.kind = HistoryKind::KeepAll;
        if let Some(messages) = ring_messages {
            qos.property
                .set("spindle.ring.messages", messages.to_string());
        }
        Ok(self
            .publisher
            .writer(&self.topics[topic])
            .qos(qos)
            .create()?)
    }

    /// A RELIABLE, KEEP_ALL reader that keeps at most `samples_max` samples.
    pub(super) fn reader(
        &self,
        topic: &str,
        samples_max: Option<u32>,
        watch: SharedWatch,
        listener: Option<impl DataReaderListener<Probe> + 'static>,
    ) -> Result<Watched, Failure> {
        let mut qos = DataReaderQos::default();
        qos.reliability.kind = ReliabilityKind::Reliable;
        qos.history.kind = HistoryKind::KeepAll;
        if let Some(max) = samples_max {
            qos.resource_limits.max_samples = Length::Limited(max);
            qos.resource_limits.max_samples_per_instance = Length::Limited(max);
        }
        let builder = self.subscriber.reader(&self.topics[topic]).qos(qos);
        let reader = match listener {
            Some(listener) => builder.listener(StatusMask::DATA_AVAILABLE, listener),
            None => builder,
        };
        Ok(Watched {
            reader: reader.create()?,
            watch,
        })
    }
}

impl Watched {
    pub(super) fn take_all(&self) -> Result<(), Failure> {
        with(&self.watch, |watch| watch.take_all(&self.reader))
    }

    /// Takes; whether all writers have left, and all that they wrote is taken.
    fn take_last(&self) -> Result<bool, Failure> {
        // The status first, then the samples: a writer leaves after its last sample.
        let all_left = self.reader.subscription_matched_status()?.current_count == 0;
        self.take_all()?;
        Ok(all_left)
    }
}

/// Takes until all writers of all readers have left.
pub(super) fn drain<'a>(readers: impl Iterator<Item = &'a Watched> + Clone) -> Result<(), Failure> {
    loop {
        let mut done = true;
        for reader in readers.clone() {
            done &= reader.take_last()?;
        }
        if done {
            return Ok(());
        }
        std::thread::sleep(POLL_EVERY);
    }
}

/// Between two looks of a thread that waits for something.
pub(super) const POLL_EVERY: Duration = Duration::from_millis(1);
