//! Listeners of readers, called without the topic type.

use std::sync::Arc;

use super::core::{ReaderCore, ReaderSide};
use super::{AnyDataReader, DataReader, Subscriber, SubscriberCore};
use crate::endpoint::ErasedListener;
use crate::listener::DataReaderListener;
use crate::status::{
    LivelinessChangedStatus, NOTIFIED, RequestedIncompatibleQosStatus, SampleLostStatus,
    SampleRejectedStatus, StatusMask, SubscriptionMatchedStatus,
};

/// A change of a reader's status.
#[derive(Debug)]
pub(crate) enum ReaderEvent {
    DataAvailable,
    IncompatibleQos(RequestedIncompatibleQosStatus),
    Rejected(SampleRejectedStatus),
    Matched(SubscriptionMatchedStatus),
    Liveliness(LivelinessChangedStatus),
    Lost(SampleLostStatus),
}

/// The listeners of readers, subscribers and participants name their callbacks alike.
macro_rules! call {
    ($listener:expr, $reader:expr, $event:expr) => {
        match $event {
            ReaderEvent::DataAvailable => $listener.on_data_available($reader),
            ReaderEvent::IncompatibleQos(status) => {
                $listener.on_requested_incompatible_qos($reader, status);
            }
            ReaderEvent::Rejected(status) => $listener.on_sample_rejected($reader, status),
            ReaderEvent::Matched(status) => $listener.on_subscription_matched($reader, status),
            ReaderEvent::Liveliness(status) => $listener.on_liveliness_changed($reader, status),
            ReaderEvent::Lost(status) => $listener.on_sample_lost($reader, status),
        }
    };
}

pub(super) use call;

/// A listener with its type.
pub(super) struct TypedListener<T>(Box<dyn DataReaderListener<T>>);

impl<T: 'static> TypedListener<T> {
    pub(super) fn erase(
        listener: Box<dyn DataReaderListener<T>>,
    ) -> Box<dyn ErasedListener<ReaderSide>> {
        Box::new(Self(listener))
    }
}

impl<T: 'static> ErasedListener<ReaderSide> for TypedListener<T> {
    fn call(&mut self, reader: &AnyDataReader, event: &ReaderEvent) {
        let reader = &DataReader::new(reader.core.clone(), reader.participant.clone());
        call!(self.0, reader, event);
    }
}

impl ReaderCore {
    /// Tells listeners of the statuses that changed. Called by the dispatch thread.
    pub(crate) fn dispatch(self: &Arc<Self>, statuses: StatusMask) {
        let (Some(participant), Some(subscriber)) =
            (self.participant.upgrade(), self.factory.upgrade())
        else {
            return;
        };
        let reader = AnyDataReader {
            core: self.clone(),
            participant: participant.clone(),
        };
        let tell = |status: StatusMask, event: &dyn Fn() -> ReaderEvent| {
            if statuses.contains(status) {
                self.tell(&reader, (&subscriber, &participant), status, event);
            }
        };
        tell(StatusMask::SUBSCRIPTION_MATCHED, &|| {
            ReaderEvent::Matched(self.matched_status())
        });
        tell(StatusMask::LIVELINESS_CHANGED, &|| {
            ReaderEvent::Liveliness(self.liveliness_status())
        });
        tell(StatusMask::REQUESTED_INCOMPATIBLE_QOS, &|| {
            ReaderEvent::IncompatibleQos(self.incompatible_status())
        });
        tell(StatusMask::SAMPLE_LOST, &|| {
            ReaderEvent::Lost(self.lost_status())
        });
        tell(StatusMask::SAMPLE_REJECTED, &|| {
            ReaderEvent::Rejected(self.rejected_status())
        });
        let has_data = statuses.contains(StatusMask::DATA_AVAILABLE);
        let is_untold = has_data && !self.on_readers(&reader, &subscriber);
        if is_untold || statuses.contains(NOTIFIED) {
            let available = || {
                // Of the subscriber, too (DDS 1.4 §2.2.4.2.2).
                self.clear_data_available();
                ReaderEvent::DataAvailable
            };
            let status = StatusMask::DATA_AVAILABLE;
            self.tell(&reader, (&subscriber, &participant), status, available);
        }
    }

    /// DATA_ON_READERS comes before DATA_AVAILABLE. Whether a listener took it.
    fn on_readers(&self, reader: &AnyDataReader, subscriber: &Arc<SubscriberCore>) -> bool {
        let status = StatusMask::DATA_ON_READERS;
        let participant = &reader.participant;
        if !subscriber.listener.wants(status) && !participant.listener.wants(status) {
            return false;
        }
        let status_flags = subscriber.base.status_flags();
        if status_flags.begin_calls().is_empty() && !status_flags.changes().contains(status) {
            // Told when another reader was looked at, after this one had the data: data is put
            // into a reader before its subscriber's status is raised.
            return true;
        }
        let subscriber = Subscriber {
            core: subscriber.clone(),
            participant: participant.clone(),
        };
        let is_told = subscriber.core.listener.call(status, |listener| {
            status_flags.clear(status);
            listener.on_data_on_readers(&subscriber);
        }) || participant.listener.call(status, |listener| {
            status_flags.clear(status);
            listener.on_data_on_readers(&subscriber);
        });
        status_flags.end_calls();
        is_told
    }
}
