//! An entity of any kind.

use std::sync::Arc;

use super::{DomainParticipant, ParticipantCore};
use crate::handle::InstanceHandle;
use crate::publication::{AnyDataWriter, Publisher};
use crate::subscription::{AnyDataReader, Subscriber};
use crate::topic::AnyTopic;

/// An entity of any kind, as a StatusCondition knows it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AnyEntity {
    /// A participant.
    Participant(DomainParticipant),
    /// A topic.
    Topic(AnyTopic),
    /// A publisher.
    Publisher(Publisher),
    /// A subscriber.
    Subscriber(Subscriber),
    /// A writer.
    Writer(AnyDataWriter),
    /// A reader.
    Reader(AnyDataReader),
}

impl AnyEntity {
    /// The handle that names this entity in its domain.
    pub fn instance_handle(&self) -> InstanceHandle {
        match self {
            Self::Participant(entity) => entity.instance_handle(),
            Self::Topic(entity) => entity.instance_handle(),
            Self::Publisher(entity) => entity.instance_handle(),
            Self::Subscriber(entity) => entity.instance_handle(),
            Self::Writer(entity) => entity.instance_handle(),
            Self::Reader(entity) => entity.instance_handle(),
        }
    }

    /// The entity of a participant with this handle; `None` if it is deleted.
    pub(crate) fn find(core: &Arc<ParticipantCore>, handle: InstanceHandle) -> Option<Self> {
        core.base.alive().ok()?;
        if core.base.handle() == handle {
            return Some(Self::Participant(DomainParticipant::of(core.clone())));
        }
        let entities = core.entities();
        let participant = || core.clone();
        let mut topics = entities.topics.iter();
        if let Some(core) = topics.find(|it| it.base.handle() == handle) {
            let (core, participant) = (core.clone(), participant());
            return Some(Self::Topic(AnyTopic { core, participant }));
        }
        let mut publishers = entities.publishers.iter().filter(|it| it.contains(handle));
        if let Some(core) = publishers.next() {
            let (core, participant) = (core.clone(), participant());
            let Some(writer) = core.endpoint(handle) else {
                return Some(Self::Publisher(Publisher { core, participant }));
            };
            return Some(Self::Writer(AnyDataWriter {
                core: writer,
                participant,
            }));
        }
        let mut subscribers = entities.subscribers.iter().filter(|it| it.contains(handle));
        let (core, participant) = (subscribers.next()?.clone(), participant());
        Some(match core.endpoint(handle) {
            None => Self::Subscriber(Subscriber { core, participant }),
            Some(core) => Self::Reader(AnyDataReader { core, participant }),
        })
    }
}
