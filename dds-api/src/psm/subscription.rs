//! Subscribers and readers by their literal names.

use spindle_dds_idl_runtime::TopicType;
use spindle_dds_qos::{DataReaderQos, Duration, SubscriberQos, TopicQos};

use super::special_qos::{given, is_special};
use super::{
    DATAREADER_QOS_DEFAULT, DATAREADER_QOS_USE_TOPIC_QOS, DomainParticipant, ReadCondition,
    Received, SharedListener, Topic, enable_part, entity, put,
};
use crate::builtin::PublicationBuiltinTopicData;
use crate::condition::{InstanceStateMask, SampleStateMask, StateMasks, ViewStateMask};
use crate::error::ReturnCode;
use crate::handle::InstanceHandle;
use crate::listener::{DataReaderListener, SubscriberListener};
use crate::status::{
    LivelinessChangedStatus, RequestedDeadlineMissedStatus, RequestedIncompatibleQosStatus,
    SampleLostStatus, SampleRejectedStatus, StatusMask, SubscriptionMatchedStatus,
};
use crate::subscription::AnyDataReader;

/// `Subscriber`.
#[derive(Debug, Clone)]
pub struct Subscriber(pub crate::Subscriber);

entity!(Subscriber, |subscriber| enable_part(
    subscriber.0.is_enabled()
));

impl Subscriber {
    /// `create_datareader`; `None` for `qos` is [`DATAREADER_QOS_DEFAULT`].
    pub fn create_datareader<T: TopicType>(
        &self,
        a_topic: &Topic<T>,
        qos: Option<&DataReaderQos>,
        listener: Option<SharedListener<dyn DataReaderListener<T>>>,
        mask: StatusMask,
    ) -> Option<DataReader<T>> {
        let mut builder = self.0.reader(&a_topic.0).shared_listener(mask, listener);
        if let Some(qos) = given(qos, &DATAREADER_QOS_DEFAULT) {
            builder = builder.qos(match is_special(qos, &DATAREADER_QOS_USE_TOPIC_QOS) {
                true => {
                    let mut qos = self.0.default_datareader_qos();
                    qos.copy_from_topic_qos(&a_topic.0.qos().ok()?);
                    qos
                }
                false => qos.clone(),
            });
        }
        builder.create().ok().map(DataReader)
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
        listener: Option<SharedListener<dyn SubscriberListener>>,
        mask: StatusMask,
    ) -> ReturnCode {
        ReturnCode::of(&self.0.set_shared_listener(mask, listener))
    }

    /// `get_listener`.
    pub fn get_listener(&self) -> Option<SharedListener<dyn SubscriberListener>> {
        self.0.shared_listener()
    }

    /// `get_participant`.
    pub fn get_participant(&self) -> DomainParticipant {
        DomainParticipant(self.0.participant())
    }

    /// `set_default_datareader_qos`.
    pub fn set_default_datareader_qos(&self, qos: &DataReaderQos) -> ReturnCode {
        if is_special(qos, &DATAREADER_QOS_DEFAULT) {
            return ReturnCode::of(&self.0.reset_default_datareader_qos());
        }
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
            received.fill(max_samples, |max| self.0.$form(max, $($argument,)* masks))
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
            received.fill(max_samples, |max| self.0.$name(max, $($argument,)* &a_condition.0))
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
        received.fill(1, |_| self.0.read_next_sample())
    }

    /// `take_next_sample`.
    pub fn take_next_sample(&self, received: &mut Received<T>) -> ReturnCode {
        received.fill(1, |_| self.0.take_next_sample())
    }

    /// `return_loan`; without a loan this has no effect, and a loan of another reader stays.
    pub fn return_loan(&self, received: &mut Received<T>) -> ReturnCode {
        if received.0.as_ref().is_some_and(|loan| !loan.is_of(&self.0)) {
            return ReturnCode::PreconditionNotMet;
        }
        received.0 = None;
        ReturnCode::Ok
    }

    /// `get_key_value`; members of `key_holder` that are not of the key get their defaults.
    pub fn get_key_value(&self, key_holder: &mut T, handle: InstanceHandle) -> ReturnCode {
        put(self.0.key_value(handle), key_holder)
    }

    /// `wait_for_historical_data`.
    pub fn wait_for_historical_data(&self, max_wait: Duration) -> ReturnCode {
        ReturnCode::of(&self.0.wait_for_historical_data(max_wait))
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
        listener: Option<SharedListener<dyn DataReaderListener<T>>>,
        mask: StatusMask,
    ) -> ReturnCode {
        ReturnCode::of(&self.0.set_shared_listener(mask, listener))
    }

    /// `get_listener`.
    pub fn get_listener(&self) -> Option<SharedListener<dyn DataReaderListener<T>>> {
        self.0.shared_listener()
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

    /// `delete_readcondition`.
    pub fn delete_readcondition(&self, a_condition: &ReadCondition) -> ReturnCode {
        ReturnCode::of(&self.0.delete_read_condition(&a_condition.0))
    }

    /// `delete_contained_entities`.
    pub fn delete_contained_entities(&self) -> ReturnCode {
        ReturnCode::of(&self.0.delete_contained_entities())
    }

    /// `get_requested_deadline_missed_status`.
    pub fn get_requested_deadline_missed_status(
        &self,
        status: &mut RequestedDeadlineMissedStatus,
    ) -> ReturnCode {
        put(self.0.requested_deadline_missed_status(), status)
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
