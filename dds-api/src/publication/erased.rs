//! Listeners of writers without their type, and who of a chain is called.

use super::core::WriterCore;
use super::{AnyDataWriter, DataWriter};
use crate::listener::{DataWriterListener, DomainParticipantListener, PublisherListener};
use crate::participant::DomainParticipant;
use crate::status::{OfferedIncompatibleQosStatus, PublicationMatchedStatus, StatusMask};
use crate::topic::AnyTopic;

/// A [`DataWriterListener`] of a type that only it knows.
pub(crate) trait ErasedWriterListener: Send {
    fn call(&mut self, writer: &AnyDataWriter, event: &WriterEvent);
}

/// What a writer's listener is told.
#[derive(Debug)]
pub(crate) enum WriterEvent {
    IncompatibleQos(OfferedIncompatibleQosStatus),
    Matched(PublicationMatchedStatus),
}

/// The listener with its type.
pub(crate) struct Typed<T>(Box<dyn DataWriterListener<T>>);

impl<T: Send + 'static> Typed<T> {
    pub(crate) fn erase(listener: Box<dyn DataWriterListener<T>>) -> Box<dyn ErasedWriterListener> {
        Box::new(Self(listener))
    }
}

impl<T: 'static> ErasedWriterListener for Typed<T> {
    fn call(&mut self, writer: &AnyDataWriter, event: &WriterEvent) {
        let writer = DataWriter::new(writer.core.clone(), writer.participant.clone());
        match event {
            WriterEvent::IncompatibleQos(status) => {
                self.0.on_offered_incompatible_qos(&writer, status);
            }
            WriterEvent::Matched(status) => self.0.on_publication_matched(&writer, status),
        }
    }
}

fn call_publisher(
    listener: &mut dyn PublisherListener,
    writer: &AnyDataWriter,
    event: &WriterEvent,
) {
    match event {
        WriterEvent::IncompatibleQos(status) => {
            listener.on_offered_incompatible_qos(writer, status);
        }
        WriterEvent::Matched(status) => listener.on_publication_matched(writer, status),
    }
}

fn call_participant(
    listener: &mut dyn DomainParticipantListener,
    writer: &AnyDataWriter,
    event: &WriterEvent,
) {
    match event {
        WriterEvent::IncompatibleQos(status) => {
            listener.on_offered_incompatible_qos(writer, status);
        }
        WriterEvent::Matched(status) => listener.on_publication_matched(writer, status),
    }
}

impl WriterCore {
    /// Tells listeners of the statuses that changed. Dispatch thread.
    pub(crate) fn dispatch(self: &std::sync::Arc<Self>, statuses: StatusMask) {
        let Some(participant) = self.participant.upgrade() else {
            return;
        };
        let writer = AnyDataWriter {
            core: self.clone(),
            participant,
        };
        if statuses.contains(StatusMask::PUBLICATION_MATCHED) {
            let event = || WriterEvent::Matched(self.matched_status());
            self.tell(&writer, StatusMask::PUBLICATION_MATCHED, event);
        }
        if statuses.contains(StatusMask::OFFERED_INCOMPATIBLE_QOS) {
            let event = || WriterEvent::IncompatibleQos(self.incompatible_status());
            self.tell(&writer, StatusMask::OFFERED_INCOMPATIBLE_QOS, event);
        }
    }

    /// The status is read, and so reset, only by who gets it.
    fn tell(&self, writer: &AnyDataWriter, status: StatusMask, event: impl Fn() -> WriterEvent) {
        if self
            .listener
            .call(status, |listener| listener.call(writer, &event()))
        {
            return;
        }
        if let Some(publisher) = self.publisher.upgrade()
            && publisher.listener.call(status, |listener| {
                call_publisher(listener, writer, &event())
            })
        {
            return;
        }
        let participant = &writer.participant;
        participant.listener.call(status, |listener| {
            call_participant(listener, writer, &event())
        });
    }
}

impl crate::topic::TopicCore {
    /// Tells listeners of the statuses that changed. Dispatch thread.
    pub(crate) fn dispatch(self: &std::sync::Arc<Self>, participant: &DomainParticipant) {
        let topic = AnyTopic {
            core: self.clone(),
            participant: participant.core.clone(),
        };
        let status = StatusMask::INCONSISTENT_TOPIC;
        let told = self.listener.call(status, |listener| {
            listener.on_inconsistent_topic(&topic, &self.inconsistent_status());
        });
        if !told {
            participant.core.listener.call(status, |listener| {
                listener.on_inconsistent_topic(&topic, &self.inconsistent_status());
            });
        }
    }
}
