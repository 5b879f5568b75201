//! Listeners of writers, called without the topic type.

use std::sync::Arc;

use super::core::{WriterCore, WriterSide};
use super::{AnyDataWriter, DataWriter};
use crate::endpoint::ErasedListener;
use crate::listener::DataWriterListener;
use crate::status::{
    LivelinessLostStatus, OfferedIncompatibleQosStatus, PublicationMatchedStatus, StatusMask,
};

/// A change of a writer's status.
#[derive(Debug)]
pub(crate) enum WriterEvent {
    IncompatibleQos(OfferedIncompatibleQosStatus),
    Matched(PublicationMatchedStatus),
    LivelinessLost(LivelinessLostStatus),
}

/// The listeners of writers, publishers and participants name their callbacks alike.
macro_rules! call {
    ($listener:expr, $writer:expr, $event:expr) => {
        match $event {
            WriterEvent::IncompatibleQos(status) => {
                $listener.on_offered_incompatible_qos($writer, status);
            }
            WriterEvent::Matched(status) => $listener.on_publication_matched($writer, status),
            WriterEvent::LivelinessLost(status) => $listener.on_liveliness_lost($writer, status),
        }
    };
}

pub(super) use call;

/// A listener with its type.
pub(super) struct TypedListener<T>(Box<dyn DataWriterListener<T>>);

impl<T: 'static> TypedListener<T> {
    pub(super) fn erase(
        listener: Box<dyn DataWriterListener<T>>,
    ) -> Box<dyn ErasedListener<WriterSide>> {
        Box::new(Self(listener))
    }
}

impl<T: 'static> ErasedListener<WriterSide> for TypedListener<T> {
    fn call(&mut self, writer: &AnyDataWriter, event: &WriterEvent) {
        let writer = &DataWriter::new(writer.core.clone(), writer.participant.clone());
        call!(self.0, writer, event);
    }
}

impl WriterCore {
    /// Tells listeners of the statuses that changed. Called by the dispatch thread.
    pub(crate) fn dispatch(self: &Arc<Self>, statuses: StatusMask) {
        let (Some(participant), Some(publisher)) =
            (self.participant.upgrade(), self.factory.upgrade())
        else {
            return;
        };
        let writer = AnyDataWriter {
            core: self.clone(),
            participant: participant.clone(),
        };
        let tell = |status, event: &dyn Fn() -> WriterEvent| {
            if statuses.contains(status) {
                self.tell(&writer, (&publisher, &participant), status, event);
            }
        };
        tell(StatusMask::PUBLICATION_MATCHED, &|| {
            WriterEvent::Matched(self.matched_status())
        });
        tell(StatusMask::OFFERED_INCOMPATIBLE_QOS, &|| {
            WriterEvent::IncompatibleQos(self.incompatible_status())
        });
        tell(StatusMask::LIVELINESS_LOST, &|| {
            WriterEvent::LivelinessLost(self.liveliness_lost_status())
        });
    }
}
