//! The entities of the participants.

use std::collections::BTreeMap;
use std::time::Duration;

use spindle_dds::qos::{DataReaderQos, DataWriterQos, HistoryKind, Length, ReliabilityKind};
use spindle_dds::{
    DataReader, DataReaderListener, DataWriter, DomainParticipant, Publisher, StatusMask,
    Subscriber, Topic,
};

use super::super::Failure;
use super::super::job::Job;
use super::super::participant;
use super::super::perf::Probe;
use super::timetable::{EXTRA_TOPIC, TOPICS};
use super::watch::{SharedWatch, with};

/// A participant, still disabled, with a publisher and a subscriber.
pub(super) struct Entities {
    pub(super) participant: DomainParticipant,
    pub(super) publisher: Publisher,
    subscriber: Subscriber,
    topics: BTreeMap<&'static str, Topic<Probe>>,
}

/// A reader and who watches it.
pub(super) struct Watched {
    pub(super) reader: DataReader<Probe>,
    pub(super) watch: SharedWatch,
}

/// Takes whatever is there.
pub(super) struct Taker(pub(super) SharedWatch);

impl DataReaderListener<Probe> for Taker {
    fn on_data_available(&mut self, reader: &DataReader<Probe>) {
        with(&self.0, |watch| watch.take_all_quietly(reader));
    }
}

impl Entities {
    pub(super) fn new(job: &Job) -> Result<Self, Failure> {
        let participant = participant::disabled(job)?;
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

    /// A RELIABLE, KEEP_ALL writer; it may have so many messages in flight, or as many as
    /// the participant says.
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

    /// A RELIABLE, KEEP_ALL reader.
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
        if let Some(most) = samples_max {
            qos.resource_limits.max_samples = Length::Limited(most);
            qos.resource_limits.max_samples_per_instance = Length::Limited(most);
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

    /// Whether all writers are gone, and all that they wrote is taken.
    fn is_done(&self) -> Result<bool, Failure> {
        // Who has left has left after its last sample: look first, then take.
        let gone = self.reader.subscription_matched_status()?.current_count == 0;
        self.take_all()?;
        Ok(gone)
    }
}

/// Takes until all writers of all readers are gone.
pub(super) fn drain<'a>(readers: impl Iterator<Item = &'a Watched> + Clone) -> Result<(), Failure> {
    loop {
        let mut done = true;
        for reader in readers.clone() {
            done &= reader.is_done()?;
        }
        if done {
            return Ok(());
        }
        std::thread::sleep(LOOK_AGAIN_AFTER);
    }
}

/// How often those look that wait for something.
pub(super) const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(1);
