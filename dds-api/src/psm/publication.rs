//! Publishers and writers by their literal names.

use spindle_dds_idl_runtime::TopicType;
use spindle_dds_qos::{DataWriterQos, Duration, PublisherQos, TopicQos};

use super::special_qos::{given, is_special};
use super::{
    DATAWRITER_QOS_DEFAULT, DATAWRITER_QOS_USE_TOPIC_QOS, DomainParticipant, SharedListener, Topic,
    enable_part, entity, put,
};
use crate::builtin::SubscriptionBuiltinTopicData;
use crate::error::{Result, ReturnCode};
use crate::handle::InstanceHandle;
use crate::listener::{DataWriterListener, PublisherListener};
use crate::status::{
    LivelinessLostStatus, OfferedDeadlineMissedStatus, OfferedIncompatibleQosStatus,
    PublicationMatchedStatus, StatusMask,
};

/// `Publisher`.
#[derive(Debug, Clone)]
pub struct Publisher(pub crate::Publisher);

entity!(Publisher, |publisher| enable_part(publisher.0.is_enabled()));

impl Publisher {
    /// `create_datawriter`; `None` for `qos` is [`DATAWRITER_QOS_DEFAULT`].
    pub fn create_datawriter<T: TopicType>(
        &self,
        a_topic: &Topic<T>,
        qos: Option<&DataWriterQos>,
        listener: Option<SharedListener<dyn DataWriterListener<T>>>,
        mask: StatusMask,
    ) -> Option<DataWriter<T>> {
        let mut builder = self.0.writer(&a_topic.0).shared_listener(mask, listener);
        if let Some(qos) = given(qos, &DATAWRITER_QOS_DEFAULT) {
            builder = builder.qos(match is_special(qos, &DATAWRITER_QOS_USE_TOPIC_QOS) {
                true => {
                    let mut qos = self.0.default_datawriter_qos();
                    qos.copy_from_topic_qos(&a_topic.0.qos().ok()?);
                    qos
                }
                false => qos.clone(),
            });
        }
        builder.create().ok().map(DataWriter)
    }

    /// `delete_datawriter`.
    pub fn delete_datawriter<T>(&self, a_datawriter: &DataWriter<T>) -> ReturnCode {
        ReturnCode::of(&self.0.delete_datawriter(&a_datawriter.0))
    }

    /// `lookup_datawriter`, of type `T`.
    pub fn lookup_datawriter<T: TopicType>(&self, topic_name: &str) -> Option<DataWriter<T>> {
        self.0.lookup_datawriter(topic_name).ok()?.map(DataWriter)
    }

    /// `delete_contained_entities`.
    pub fn delete_contained_entities(&self) -> ReturnCode {
        ReturnCode::of(&self.0.delete_contained_entities())
    }

    /// `set_qos`.
    pub fn set_qos(&self, qos: &PublisherQos) -> ReturnCode {
        ReturnCode::of(&self.0.set_qos(qos.clone()))
    }

    /// `get_qos`.
    pub fn get_qos(&self, qos: &mut PublisherQos) -> ReturnCode {
        put(self.0.qos(), qos)
    }

    /// `set_listener`.
    pub fn set_listener(
        &self,
        listener: Option<SharedListener<dyn PublisherListener>>,
        mask: StatusMask,
    ) -> ReturnCode {
        ReturnCode::of(&self.0.set_shared_listener(mask, listener))
    }

    /// `get_listener`.
    pub fn get_listener(&self) -> Option<SharedListener<dyn PublisherListener>> {
        self.0.shared_listener()
    }

    /// `suspend_publications`.
    pub fn suspend_publications(&self) -> ReturnCode {
        ReturnCode::of(&self.0.suspend_publications())
    }

    /// `resume_publications`.
    pub fn resume_publications(&self) -> ReturnCode {
        ReturnCode::of(&self.0.resume_publications())
    }

    /// `wait_for_acknowledgments`.
    pub fn wait_for_acknowledgments(&self, max_wait: Duration) -> ReturnCode {
        ReturnCode::of(&self.0.wait_for_acknowledgments(max_wait))
    }

    /// `get_participant`.
    pub fn get_participant(&self) -> DomainParticipant {
        DomainParticipant(self.0.participant())
    }

    /// `set_default_datawriter_qos`.
    pub fn set_default_datawriter_qos(&self, qos: &DataWriterQos) -> ReturnCode {
        if is_special(qos, &DATAWRITER_QOS_DEFAULT) {
            return ReturnCode::of(&self.0.reset_default_datawriter_qos());
        }
        ReturnCode::of(&self.0.set_default_datawriter_qos(qos.clone()))
    }

    /// `get_default_datawriter_qos`.
    pub fn get_default_datawriter_qos(&self, qos: &mut DataWriterQos) -> ReturnCode {
        put(Ok(self.0.default_datawriter_qos()), qos)
    }

    /// `copy_from_topic_qos`.
    pub fn copy_from_topic_qos(
        &self,
        a_datawriter_qos: &mut DataWriterQos,
        a_topic_qos: &TopicQos,
    ) -> ReturnCode {
        a_datawriter_qos.copy_from_topic_qos(a_topic_qos);
        ReturnCode::Ok
    }
}

/// `FooDataWriter`.
#[derive(Debug)]
pub struct DataWriter<T>(pub crate::DataWriter<T>);

entity!(DataWriter<T>, |writer| enable_part(writer.0.is_enabled()));

impl<T: TopicType> DataWriter<T> {
    /// `set_qos`.
    pub fn set_qos(&self, qos: &DataWriterQos) -> ReturnCode {
        ReturnCode::of(&self.0.set_qos(qos.clone()))
    }

    /// `register_instance`; nil when it fails.
    pub fn register_instance(&self, instance: &T) -> InstanceHandle {
        self.0.register_instance(instance).unwrap_or_default()
    }

    /// `register_instance_w_timestamp`; nil when it fails.
    pub fn register_instance_w_timestamp(
        &self,
        instance: &T,
        source_timestamp: i64,
    ) -> InstanceHandle {
        let registered = self
            .0
            .register_instance_w_timestamp(instance, source_timestamp);
        registered.unwrap_or_default()
    }

    /// `lookup_instance`; nil when it is not registered.
    pub fn lookup_instance(&self, instance: &T) -> InstanceHandle {
        let registered = self.0.lookup_instance(instance);
        registered.ok().flatten().unwrap_or_default()
    }

    /// `get_key_value`; members of `key_holder` that are not of the key get their defaults.
    pub fn get_key_value(&self, key_holder: &mut T, handle: InstanceHandle) -> ReturnCode {
        put(self.0.key_value(handle), key_holder)
    }

    /// A handle that is given has to be the sample's own.
    fn with<R>(
        &self,
        instance: &T,
        handle: InstanceHandle,
        operation: impl FnOnce() -> Result<R>,
    ) -> ReturnCode {
        let checked = self.0.check_handle(instance, handle);
        ReturnCode::of(&checked.and_then(|()| operation()))
    }

    /// `unregister_instance`.
    pub fn unregister_instance(&self, instance: &T, handle: InstanceHandle) -> ReturnCode {
        self.with(instance, handle, || self.0.unregister_instance(instance))
    }

    /// `unregister_instance_w_timestamp`.
    pub fn unregister_instance_w_timestamp(
        &self,
        instance: &T,
        handle: InstanceHandle,
        source_timestamp: i64,
    ) -> ReturnCode {
        self.with(instance, handle, || {
            self.0
                .unregister_instance_w_timestamp(instance, source_timestamp)
        })
    }

    /// `write`.
    pub fn write(&self, instance_data: &T, handle: InstanceHandle) -> ReturnCode {
        self.with(instance_data, handle, || self.0.write(instance_data))
    }

    /// `write_w_timestamp`.
    pub fn write_w_timestamp(
        &self,
        instance_data: &T,
        handle: InstanceHandle,
        source_timestamp: i64,
    ) -> ReturnCode {
        self.with(instance_data, handle, || {
            self.0.write_w_timestamp(instance_data, source_timestamp)
        })
    }

    /// `dispose`.
    pub fn dispose(&self, instance_data: &T, handle: InstanceHandle) -> ReturnCode {
        self.with(instance_data, handle, || self.0.dispose(instance_data))
    }

    /// `dispose_w_timestamp`.
    pub fn dispose_w_timestamp(
        &self,
        instance_data: &T,
        handle: InstanceHandle,
        source_timestamp: i64,
    ) -> ReturnCode {
        self.with(instance_data, handle, || {
            self.0.dispose_w_timestamp(instance_data, source_timestamp)
        })
    }

    /// `set_listener`.
    pub fn set_listener(
        &self,
        listener: Option<SharedListener<dyn DataWriterListener<T>>>,
        mask: StatusMask,
    ) -> ReturnCode {
        ReturnCode::of(&self.0.set_shared_listener(mask, listener))
    }

    /// `get_listener`.
    pub fn get_listener(&self) -> Option<SharedListener<dyn DataWriterListener<T>>> {
        self.0.shared_listener()
    }
}

impl<T> DataWriter<T> {
    /// `get_qos`.
    pub fn get_qos(&self, qos: &mut DataWriterQos) -> ReturnCode {
        put(self.0.qos(), qos)
    }

    /// `get_topic`.
    pub fn get_topic(&self) -> Topic<T> {
        Topic(self.0.topic())
    }

    /// `get_publisher`.
    pub fn get_publisher(&self) -> Option<Publisher> {
        self.0.publisher().ok().map(Publisher)
    }

    /// `wait_for_acknowledgments`.
    pub fn wait_for_acknowledgments(&self, max_wait: Duration) -> ReturnCode {
        ReturnCode::of(&self.0.wait_for_acknowledgments(max_wait))
    }

    /// `assert_liveliness`.
    pub fn assert_liveliness(&self) -> ReturnCode {
        ReturnCode::of(&self.0.assert_liveliness())
    }

    /// `get_liveliness_lost_status`.
    pub fn get_liveliness_lost_status(&self, status: &mut LivelinessLostStatus) -> ReturnCode {
        put(self.0.liveliness_lost_status(), status)
    }

    /// `get_offered_deadline_missed_status`.
    pub fn get_offered_deadline_missed_status(
        &self,
        status: &mut OfferedDeadlineMissedStatus,
    ) -> ReturnCode {
        put(self.0.offered_deadline_missed_status(), status)
    }

    /// `get_offered_incompatible_qos_status`.
    pub fn get_offered_incompatible_qos_status(
        &self,
        status: &mut OfferedIncompatibleQosStatus,
    ) -> ReturnCode {
        put(self.0.offered_incompatible_qos_status(), status)
    }

    /// `get_publication_matched_status`.
    pub fn get_publication_matched_status(
        &self,
        status: &mut PublicationMatchedStatus,
    ) -> ReturnCode {
        put(self.0.publication_matched_status(), status)
    }

    /// `get_matched_subscriptions`.
    pub fn get_matched_subscriptions(
        &self,
        subscription_handles: &mut Vec<InstanceHandle>,
    ) -> ReturnCode {
        put(self.0.matched_subscriptions(), subscription_handles)
    }

    /// `get_matched_subscription_data`.
    pub fn get_matched_subscription_data(
        &self,
        subscription_data: &mut SubscriptionBuiltinTopicData,
        subscription_handle: InstanceHandle,
    ) -> ReturnCode {
        let data = self.0.matched_subscription_data(subscription_handle);
        put(data, subscription_data)
    }
}
