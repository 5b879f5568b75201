//! Subscribers and readers by their literal names.

use spindle_dds_idl_runtime::TopicType;
use spindle_dds_qos::{DataReaderQos, SubscriberQos, TopicQos};

use super::{DomainParticipant, ReadCondition, Topic, enable_part, entity, put};
use crate::builtin::PublicationBuiltinTopicData;
use crate::condition::{InstanceStateMask, SampleStateMask, StateMasks, ViewStateMask};
use crate::error::{Result, ReturnCode};
use crate::handle::InstanceHandle;
use crate::listener::{DataReaderListener, SubscriberListener};
use crate::status::{
    LivelinessChangedStatus, RequestedIncompatibleQosStatus, SampleLostStatus,
    SampleRejectedStatus, StatusMask, SubscriptionMatchedStatus,
};
use crate::subscription::{AnyDataReader, Samples};

/// `Subscriber`.
#[derive(Debug, Clone)]
pub struct Subscriber(pub crate::Subscriber);

entity!(Subscriber, |subscriber| enable_part(
    subscriber.0.is_enabled()
));

impl Subscriber {
    /// `create_datareader`; `None` for `qos` is `DATAREADER_QOS_DEFAULT`.
    pub fn create_datareader<T: TopicType>(
        &self,
        a_topic: &Topic<T>,
        qos: Option<&DataReaderQos>,
        listener: Option<Box<dyn DataReaderListener<T>>>,
        mask: StatusMask,
    ) -> Option<DataReader<T>> {
        let mut builder = self.0.reader(&a_topic.0);
        if let Some(qos) = qos {
            builder = builder.qos(qos.clone());
        }
        let reader = builder.create().ok()?;
        reader.set_listener(mask, listener).ok()?;
        Some(DataReader(reader))
    }

    /// `delete_datareader`.
    pub fn delete_datareader<T>(&self, a_datareader: &DataReader<T>) -> ReturnCode {
        ReturnCode::of(&self.0.delete_datareader(&a_datareader.0))
    }

    /// `delete_contained_entities`.
    pub fn delete_contained_entities(&self) -> ReturnCode {
        ReturnCode::of(&self.0.delete_contained_entities())
    }

    /// `lookup_datareader`, of type `T`.
    pub fn lookup_datareader<T: TopicType>(&self, topic_name: &str) -> Option<DataReader<T>> {
        self.0.lookup_datareader(topic_name).ok()?.map(DataReader)
    }

    /// `get_datareaders`.
    pub fn get_datareaders(
        &self,
        readers: &mut Vec<AnyDataReader>,
        sample_states: SampleStateMask,
        view_states: ViewStateMask,
        instance_states: InstanceStateMask,
    ) -> ReturnCode {
        let masks = masks(sample_states, view_states, instance_states);
        put(self.0.datareaders(masks), readers)
    }

    /// `notify_datareaders`.
    pub fn notify_datareaders(&self) -> ReturnCode {
        ReturnCode::of(&self.0.notify_datareaders())
    }

    /// `set_qos`.
    pub fn set_qos(&self, qos: &SubscriberQos) -> ReturnCode {
        ReturnCode::of(&self.0.set_qos(qos.clone()))
    }

    /// `get_qos`.
    pub fn get_qos(&self, qos: &mut SubscriberQos) -> ReturnCode {
        put(self.0.qos(), qos)
    }

    /// `set_listener`.
    pub fn set_listener(
        &self,
        listener: Option<Box<dyn SubscriberListener>>,
        mask: StatusMask,
    ) -> ReturnCode {
        ReturnCode::of(&self.0.set_listener(mask, listener))
    }

    /// `get_participant`.
    pub fn get_participant(&self) -> DomainParticipant {
        DomainParticipant(self.0.participant())
    }

    /// `set_default_datareader_qos`.
    pub fn set_default_datareader_qos(&self, qos: &DataReaderQos) -> ReturnCode {
        ReturnCode::of(&self.0.set_default_datareader_qos(qos.clone()))
    }

    /// `get_default_datareader_qos`.
    pub fn get_default_datareader_qos(&self, qos: &mut DataReaderQos) -> ReturnCode {
        put(Ok(self.0.default_datareader_qos()), qos)
    }

    /// `copy_from_topic_qos`.
    pub fn copy_from_topic_qos(
        &self,
        a_datareader_qos: &mut DataReaderQos,
        a_topic_qos: &TopicQos,
    ) -> ReturnCode {
        a_datareader_qos.copy_from_topic_qos(a_topic_qos);
        ReturnCode::Ok
    }
}

fn masks(sample: SampleStateMask, view: ViewStateMask, instance: InstanceStateMask) -> StateMasks {
    StateMasks {
        sample,
        view,
        instance,
    }
}

/// `LENGTH_UNLIMITED` is no limit.
fn limit(max_samples: i32) -> usize {
    usize::try_from(max_samples).unwrap_or(usize::MAX)
}

/// The sequences that `read` and `take` fill: data and infos together.
#[derive(Debug)]
pub struct Received<T>(pub Option<Samples<T>>);

impl<T> Default for Received<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Received<T> {
    /// What came is on loan until `return_loan`; a loan that is still out
    /// breaks the precondition.
    fn fill(&mut self, read: impl FnOnce() -> Result<Samples<T>>) -> ReturnCode {
        if self.0.is_some() {
            return ReturnCode::PreconditionNotMet;
        }
        let samples = read();
        let code = ReturnCode::of(&samples);
        self.0 = samples.ok();
        code
    }
}

/// `FooDataReader`.
#[derive(Debug)]
pub struct DataReader<T>(pub crate::DataReader<T>);

entity!(DataReader<T>, |reader| enable_part(reader.0.is_enabled()));

/// `read` and `take` in their forms with masks.
macro_rules! with_masks {
    ($($name:ident($($argument:ident: $type:ty),*) as $form:ident;)+) => { $(
        #[doc = concat!("`", stringify!($name), "`.")]
        pub fn $name(
            &self,
            received: &mut Received<T>,
            max_samples: i32,
            $($argument: $type,)*
            sample_states: SampleStateMask,
            view_states: ViewStateMask,
            instance_states: InstanceStateMask,
        ) -> ReturnCode {
            let masks = masks(sample_states, view_states, instance_states);
            received.fill(|| self.0.$form(limit(max_samples), $($argument,)* masks))
        }
    )+ };
}

/// The forms with a condition.
macro_rules! with_condition {
    ($($name:ident($($argument:ident: $type:ty),*);)+) => { $(
        #[doc = concat!("`", stringify!($name), "`.")]
        pub fn $name(
            &self,
            received: &mut Received<T>,
            max_samples: i32,
            $($argument: $type,)*
            a_condition: &ReadCondition,
        ) -> ReturnCode {
            received.fill(|| self.0.$name(limit(max_samples), $($argument,)* &a_condition.0))
        }
    )+ };
}

impl<T: TopicType> DataReader<T> {
    /// `set_qos`.
    pub fn set_qos(&self, qos: &DataReaderQos) -> ReturnCode {
        ReturnCode::of(&self.0.set_qos(qos.clone()))
    }

    with_masks! {
        read() as read_states;
        take() as take_states;
        read_instance(a_handle: InstanceHandle) as read_instance;
        take_instance(a_handle: InstanceHandle) as take_instance;
        read_next_instance(previous_handle: InstanceHandle) as read_next_instance;
        take_next_instance(previous_handle: InstanceHandle) as take_next_instance;
    }

    with_condition! {
        read_w_condition();
        take_w_condition();
        read_next_instance_w_condition(previous_handle: InstanceHandle);
        take_next_instance_w_condition(previous_handle: InstanceHandle);
    }

    /// `read_next_sample`.
    pub fn read_next_sample(&self, received: &mut Received<T>) -> ReturnCode {
        received.fill(|| self.0.read_next_sample())
    }

    /// `take_next_sample`.
    pub fn take_next_sample(&self, received: &mut Received<T>) -> ReturnCode {
        received.fill(|| self.0.take_next_sample())
    }

    /// `return_loan`.
    pub fn return_loan(&self, received: &mut Received<T>) -> ReturnCode {
        received.0 = None;
        ReturnCode::Ok
    }

    /// `get_key_value`; members of `key_holder` that are not of the key get their defaults.
    pub fn get_key_value(&self, key_holder: &mut T, handle: InstanceHandle) -> ReturnCode {
        put(self.0.key_value(handle), key_holder)
    }

    /// `lookup_instance`; nil when it is not known.
    pub fn lookup_instance(&self, instance: &T) -> InstanceHandle {
        self.0
            .lookup_instance(instance)
            .ok()
            .flatten()
            .unwrap_or_default()
    }

    /// `set_listener`.
    pub fn set_listener(
        &self,
        listener: Option<Box<dyn DataReaderListener<T>>>,
        mask: StatusMask,
    ) -> ReturnCode {
        ReturnCode::of(&self.0.set_listener(mask, listener))
    }
}

impl<T> DataReader<T> {
    /// `create_readcondition`.
    pub fn create_readcondition(
        &self,
        sample_states: SampleStateMask,
        view_states: ViewStateMask,
        instance_states: InstanceStateMask,
    ) -> Option<ReadCondition> {
        let masks = masks(sample_states, view_states, instance_states);
        self.0.read_condition(masks).ok().map(ReadCondition)
    }

    /// `get_qos`.
    pub fn get_qos(&self, qos: &mut DataReaderQos) -> ReturnCode {
        put(self.0.qos(), qos)
    }

    /// `get_sample_rejected_status`.
    pub fn get_sample_rejected_status(&self, status: &mut SampleRejectedStatus) -> ReturnCode {
        put(self.0.sample_rejected_status(), status)
    }

    /// `get_requested_incompatible_qos_status`.
    pub fn get_requested_incompatible_qos_status(
        &self,
        status: &mut RequestedIncompatibleQosStatus,
    ) -> ReturnCode {
        put(self.0.requested_incompatible_qos_status(), status)
    }

    /// `get_liveliness_changed_status`.
    pub fn get_liveliness_changed_status(
        &self,
        status: &mut LivelinessChangedStatus,
    ) -> ReturnCode {
        put(self.0.liveliness_changed_status(), status)
    }

    /// `get_subscription_matched_status`.
    pub fn get_subscription_matched_status(
        &self,
        status: &mut SubscriptionMatchedStatus,
    ) -> ReturnCode {
        put(self.0.subscription_matched_status(), status)
    }

    /// `get_sample_lost_status`.
    pub fn get_sample_lost_status(&self, status: &mut SampleLostStatus) -> ReturnCode {
        put(self.0.sample_lost_status(), status)
    }

    /// `get_topicdescription`.
    pub fn get_topicdescription(&self) -> Topic<T> {
        Topic(self.0.topic())
    }

    /// `get_subscriber`.
    pub fn get_subscriber(&self) -> Option<Subscriber> {
        self.0.subscriber().ok().map(Subscriber)
    }

    /// `get_matched_publications`.
    pub fn get_matched_publications(
        &self,
        publication_handles: &mut Vec<InstanceHandle>,
    ) -> ReturnCode {
        put(self.0.matched_publications(), publication_handles)
    }

    /// `get_matched_publication_data`.
    pub fn get_matched_publication_data(
        &self,
        publication_data: &mut PublicationBuiltinTopicData,
        publication_handle: InstanceHandle,
    ) -> ReturnCode {
        let data = self.0.matched_publication_data(publication_handle);
        put(data, publication_data)
    }
}
