//! The entities of a participant.

use std::collections::BTreeMap;

use spindle_dds::qos::{DataReaderQos, DataWriterQos, HistoryKind, ReliabilityKind};
use spindle_dds::{
    DataReader, DataReaderBuilder, DataWriter, DomainParticipant, Publisher, StatusMask,
    Subscriber, Topic,
};

use super::watch::{SharedWatch, TakingListener};
use crate::Failure;
use crate::exchange::Probe;
use crate::workers::{Job, participant};

pub(crate) const BUSY: &str = "Busy";
pub(super) const CALM: &str = "Calm";
pub(super) const FAR: &str = "Far";
/// Its samples say when phases begin, or that resources are to be counted.
pub(crate) const START: &str = "Start";
/// A sample of each process that has counted its resources.
pub(crate) const COUNTED: &str = "Counted";

/// A participant, still disabled, with topics that share no subgroup.
pub(crate) struct Entities {
    pub(crate) participant: DomainParticipant,
    pub(crate) publisher: Publisher,
    pub(super) subscriber: Subscriber,
    topics: BTreeMap<&'static str, Topic<Probe>>,
}

impl Entities {
    pub(crate) fn new(job: &Job) -> Result<Self, Failure> {
        let names = [BUSY, CALM, FAR, START, COUNTED];
        let mut builder = participant::builder(job);
        for (name, subgroup) in names.iter().zip(1..) {
            let property = format!("spindle.topic.{name}.subgroup");
            builder = builder.property(&property, &u32::to_string(&subgroup));
        }
        let participant = builder.disabled().create()?;
        let mut topics = BTreeMap::new();
        for name in names {
            topics.insert(name, participant.topic(name).create()?);
        }
        Ok(Self {
            topics,
            publisher: participant.publisher().create()?,
            subscriber: participant.subscriber().create()?,
            participant,
        })
    }

    /// A RELIABLE, KEEP_ALL writer that waits for room as long as it takes.
    pub(crate) fn writer(&self, topic: &str) -> Result<DataWriter<Probe>, Failure> {
        let mut qos = DataWriterQos::default();
        qos.reliability.kind = ReliabilityKind::Reliable;
        qos.reliability.max_blocking_time = spindle_dds::Duration::INFINITE;
        qos.history.kind = HistoryKind::KeepAll;
        let topic = &self.topics[topic];
        Ok(self.publisher.writer(topic).qos(qos).create()?)
    }

    /// A RELIABLE, KEEP_ALL reader with a listener that takes into `watch`.
    pub(crate) fn reader(
        &self,
        topic: &str,
        watch: &SharedWatch,
    ) -> Result<DataReader<Probe>, Failure> {
        let listener = TakingListener(watch.clone());
        let builder = self.reader_builder(topic);
        Ok(builder
            .listener(StatusMask::DATA_AVAILABLE, listener)
            .create()?)
    }

    /// The same without a listener.
    pub(super) fn reader_without_listener(
        &self,
        topic: &str,
    ) -> Result<DataReader<Probe>, Failure> {
        Ok(self.reader_builder(topic).create()?)
    }

    fn reader_builder(&self, topic: &str) -> DataReaderBuilder<'_, Probe> {
        let mut qos = DataReaderQos::default();
        qos.reliability.kind = ReliabilityKind::Reliable;
        qos.history.kind = HistoryKind::KeepAll;
        self.subscriber.reader(&self.topics[topic]).qos(qos)
    }
}
