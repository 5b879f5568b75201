//! Listeners of readers without their type, and who of a chain is called.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::core::ReaderCore;
use super::{AnyDataReader, DataReader, Subscriber, SubscriberCore};
use crate::listener::{DataReaderListener, DomainParticipantListener, SubscriberListener};
use crate::status::{
    LivelinessChangedStatus, RequestedIncompatibleQosStatus, SampleLostStatus,
    SampleRejectedStatus, StatusMask, SubscriptionMatchedStatus,
};

/// A [`DataReaderListener`] of a type that only it knows.
pub(crate) trait ErasedReaderListener: Send {
    fn call(&mut self, reader: &AnyDataReader, event: &ReaderEvent);
}

/// What a reader's listener is told.
#[derive(Debug)]
pub(crate) enum ReaderEvent {
    DataAvailable,
    IncompatibleQos(RequestedIncompatibleQosStatus),
    Rejected(SampleRejectedStatus),
    Matched(SubscriptionMatchedStatus),
    Liveliness(LivelinessChangedStatus),
    Lost(SampleLostStatus),
}

/// The listener with its type.
pub(crate) struct Typed<T>(Box<dyn DataReaderListener<T>>);

impl<T: 'static> Typed<T> {
    pub(crate) fn erase(listener: Box<dyn DataReaderListener<T>>) -> Box<dyn ErasedReaderListener> {
        Box::new(Self(listener))
    }
}

/// One `match` for all three kinds of listeners: their callbacks have the same names.
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

impl<T: 'static> ErasedReaderListener for Typed<T> {
    fn call(&mut self, reader: &AnyDataReader, event: &ReaderEvent) {
        let reader = &DataReader::new(reader.core.clone(), reader.participant.clone());
        call!(self.0, reader, event);
    }
}

impl ReaderCore {
    /// Tells listeners of the statuses that changed. Dispatch thread.
    pub(crate) fn dispatch(self: &Arc<Self>, statuses: StatusMask) {
        let (Some(participant), Some(subscriber)) =
            (self.participant.upgrade(), self.subscriber.upgrade())
        else {
            return;
        };
        let reader = AnyDataReader {
            core: self.clone(),
            participant,
        };
        let tell = |status: StatusMask, event: &dyn Fn() -> ReaderEvent| {
            if statuses.contains(status) {
                self.tell(&reader, &subscriber, status, event);
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
        if statuses.contains(StatusMask::DATA_AVAILABLE) && !self.on_readers(&reader, &subscriber) {
            tell(StatusMask::DATA_AVAILABLE, &|| {
                self.status_flags().clear(StatusMask::DATA_AVAILABLE);
                ReaderEvent::DataAvailable
            });
        }
    }

    /// DATA_ON_READERS comes first; true when somebody has it.
    fn on_readers(&self, reader: &AnyDataReader, subscriber: &Arc<SubscriberCore>) -> bool {
        if self.notified.swap(false, Ordering::AcqRel) {
            return false;
        }
        let status = StatusMask::DATA_ON_READERS;
        let participant = &reader.participant;
        if !subscriber.listener.wants(status) && !participant.listener.wants(status) {
            return false;
        }
        subscriber.base.status_flags().clear(status);
        let subscriber = Subscriber {
            core: subscriber.clone(),
            participant: participant.clone(),
        };
        subscriber
            .core
            .listener
            .call(status, |listener| listener.on_data_on_readers(&subscriber))
            || participant
                .listener
                .call(status, |listener| listener.on_data_on_readers(&subscriber))
    }

    /// The status is read, and so reset, only by who gets it.
    fn tell(
        &self,
        reader: &AnyDataReader,
        subscriber: &SubscriberCore,
        status: StatusMask,
        event: &dyn Fn() -> ReaderEvent,
    ) {
        let told = self
            .listener
            .call(status, |listener| listener.call(reader, &event()))
            || subscriber.listener.call(status, |listener| {
                call_subscriber(listener, reader, &event())
            });
        if !told {
            reader.participant.listener.call(status, |listener| {
                call_participant(listener, reader, &event())
            });
        }
    }
}

fn call_subscriber(
    listener: &mut dyn SubscriberListener,
    reader: &AnyDataReader,
    event: &ReaderEvent,
) {
    call!(listener, reader, event);
}

fn call_participant(
    listener: &mut dyn DomainParticipantListener,
    reader: &AnyDataReader,
    event: &ReaderEvent,
) {
    call!(listener, reader, event);
}
