//! Factory and participant by their literal names.

use spindle_dds_idl_runtime::TopicType;
use spindle_dds_qos::{
    DomainParticipantFactoryQos, DomainParticipantQos, Duration, PublisherQos, SubscriberQos,
    TopicQos,
};

use super::special_qos::{given, is_special};
use super::{
    PARTICIPANT_QOS_DEFAULT, PUBLISHER_QOS_DEFAULT, Publisher, SUBSCRIBER_QOS_DEFAULT,
    SharedListener, Subscriber, TOPIC_QOS_DEFAULT, Topic, entity, put,
};
use crate::builtin::ParticipantBuiltinTopicData;
use crate::error::ReturnCode;
use crate::handle::InstanceHandle;
use crate::listener::{
    DomainParticipantListener, PublisherListener, SubscriberListener, TopicListener,
};
use crate::stamps::source_timestamp;
use crate::status::StatusMask;

/// `DomainParticipantFactory`.
#[derive(Debug, Clone, Copy)]
pub struct DomainParticipantFactory(pub &'static crate::DomainParticipantFactory);

impl DomainParticipantFactory {
    /// `get_instance`.
    pub fn get_instance() -> Self {
        Self(crate::DomainParticipantFactory::instance())
    }

    /// `create_participant`; `None` for `qos` is [`PARTICIPANT_QOS_DEFAULT`].
    pub fn create_participant(
        &self,
        domain_id: u32,
        qos: Option<&DomainParticipantQos>,
        listener: Option<SharedListener<dyn DomainParticipantListener>>,
        mask: StatusMask,
    ) -> Option<DomainParticipant> {
        let mut builder = self.0.create_participant(domain_id);
        builder = builder.shared_listener(mask, listener);
        if let Some(qos) = given(qos, &PARTICIPANT_QOS_DEFAULT) {
            builder = builder.qos(qos.clone());
        }
        builder.create().ok().map(DomainParticipant)
    }

    /// `create_participant_from_config` of DDS-XML's users: the participant that a file describes.
    pub fn create_participant_from_config(&self, config_name: &str) -> Option<DomainParticipant> {
        let builder = self.0.create_participant_from_config(config_name);
        builder.create().ok().map(DomainParticipant)
    }

    /// `delete_participant`.
    pub fn delete_participant(&self, participant: &DomainParticipant) -> ReturnCode {
        ReturnCode::of(&self.0.delete_participant(&participant.0))
    }

    /// `lookup_participant`.
    pub fn lookup_participant(&self, domain_id: u32) -> Option<DomainParticipant> {
        self.0.lookup_participant(domain_id).map(DomainParticipant)
    }

    /// `set_default_participant_qos`.
    pub fn set_default_participant_qos(&self, qos: &DomainParticipantQos) -> ReturnCode {
        if is_special(qos, &PARTICIPANT_QOS_DEFAULT) {
            self.0.reset_default_participant_qos();
            return ReturnCode::Ok;
        }
        ReturnCode::of(&self.0.set_default_participant_qos(qos.clone()))
    }

    /// `get_default_participant_qos`.
    pub fn get_default_participant_qos(&self, qos: &mut DomainParticipantQos) -> ReturnCode {
        put(Ok(self.0.default_participant_qos()), qos)
    }

    /// `set_qos`.
    pub fn set_qos(&self, qos: &DomainParticipantFactoryQos) -> ReturnCode {
        ReturnCode::of(&self.0.set_qos(qos.clone()))
    }

    /// `get_qos`.
    pub fn get_qos(&self, qos: &mut DomainParticipantFactoryQos) -> ReturnCode {
        put(Ok(self.0.qos()), qos)
    }
}

/// `DomainParticipant`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainParticipant(pub crate::DomainParticipant);

entity!(DomainParticipant, |participant| participant.0.enable());

impl DomainParticipant {
    /// `create_publisher`; `None` for `qos` is [`PUBLISHER_QOS_DEFAULT`].
    pub fn create_publisher(
        &self,
        qos: Option<&PublisherQos>,
        listener: Option<SharedListener<dyn PublisherListener>>,
        mask: StatusMask,
    ) -> Option<Publisher> {
        let mut builder = self.0.publisher().shared_listener(mask, listener);
        if let Some(qos) = given(qos, &PUBLISHER_QOS_DEFAULT) {
            builder = builder.qos(qos.clone());
        }
        builder.create().ok().map(Publisher)
    }

    /// `delete_publisher`.
    pub fn delete_publisher(&self, publisher: &Publisher) -> ReturnCode {
        ReturnCode::of(&self.0.delete_publisher(&publisher.0))
    }

    /// `create_subscriber`; `None` for `qos` is [`SUBSCRIBER_QOS_DEFAULT`].
    pub fn create_subscriber(
        &self,
        qos: Option<&SubscriberQos>,
        listener: Option<SharedListener<dyn SubscriberListener>>,
        mask: StatusMask,
    ) -> Option<Subscriber> {
        let mut builder = self.0.subscriber().shared_listener(mask, listener);
        if let Some(qos) = given(qos, &SUBSCRIBER_QOS_DEFAULT) {
            builder = builder.qos(qos.clone());
        }
        builder.create().ok().map(Subscriber)
    }

    /// `delete_subscriber`.
    pub fn delete_subscriber(&self, subscriber: &Subscriber) -> ReturnCode {
        ReturnCode::of(&self.0.delete_subscriber(&subscriber.0))
    }

    /// `create_topic`, of type `T`; its name has to be that of the IDL. `None`
    /// for `qos` is [`TOPIC_QOS_DEFAULT`].
    pub fn create_topic<T: TopicType>(
        &self,
        topic_name: &str,
        type_name: &str,
        qos: Option<&TopicQos>,
        listener: Option<SharedListener<dyn TopicListener>>,
        mask: StatusMask,
    ) -> Option<Topic<T>> {
        if type_name != T::TYPE_NAME {
            return None;
        }
        let mut builder = self.0.topic(topic_name).shared_listener(mask, listener);
        if let Some(qos) = given(qos, &TOPIC_QOS_DEFAULT) {
            builder = builder.qos(qos.clone());
        }
        builder.create().ok().map(Topic)
    }

    /// `delete_topic`.
    pub fn delete_topic<T>(&self, topic: &Topic<T>) -> ReturnCode {
        ReturnCode::of(&self.0.delete_topic(&topic.0))
    }

    /// `lookup_topicdescription`, of type `T`.
    pub fn lookup_topicdescription<T: TopicType>(&self, name: &str) -> Option<Topic<T>> {
        self.0.lookup_topic(name).ok()??.downcast().map(Topic)
    }

    /// `find_topic`, of type `T`.
    pub fn find_topic<T: TopicType>(
        &self,
        topic_name: &str,
        timeout: Duration,
    ) -> Option<Topic<T>> {
        self.0.find_topic(topic_name, timeout).ok().map(Topic)
    }

    /// `assert_liveliness`.
    pub fn assert_liveliness(&self) -> ReturnCode {
        ReturnCode::of(&self.0.assert_liveliness())
    }

    /// `delete_contained_entities`.
    pub fn delete_contained_entities(&self) -> ReturnCode {
        ReturnCode::of(&self.0.delete_contained_entities())
    }

    /// `set_qos`.
    pub fn set_qos(&self, qos: &DomainParticipantQos) -> ReturnCode {
        ReturnCode::of(&self.0.set_qos(qos.clone()))
    }

    /// `get_qos`.
    pub fn get_qos(&self, qos: &mut DomainParticipantQos) -> ReturnCode {
        put(self.0.qos(), qos)
    }

    /// `set_listener`.
    pub fn set_listener(
        &self,
        listener: Option<SharedListener<dyn DomainParticipantListener>>,
        mask: StatusMask,
    ) -> ReturnCode {
        ReturnCode::of(&self.0.set_shared_listener(mask, listener))
    }

    /// `get_listener`.
    pub fn get_listener(&self) -> Option<SharedListener<dyn DomainParticipantListener>> {
        self.0.shared_listener()
    }

    /// `get_domain_id`.
    pub fn get_domain_id(&self) -> u32 {
        self.0.domain_id()
    }

    /// `set_default_publisher_qos`.
    pub fn set_default_publisher_qos(&self, qos: &PublisherQos) -> ReturnCode {
        if is_special(qos, &PUBLISHER_QOS_DEFAULT) {
            return ReturnCode::of(&self.0.reset_default_publisher_qos());
        }
        ReturnCode::of(&self.0.set_default_publisher_qos(qos.clone()))
    }

    /// `get_default_publisher_qos`.
    pub fn get_default_publisher_qos(&self, qos: &mut PublisherQos) -> ReturnCode {
        put(Ok(self.0.default_publisher_qos()), qos)
    }

    /// `set_default_subscriber_qos`.
    pub fn set_default_subscriber_qos(&self, qos: &SubscriberQos) -> ReturnCode {
        if is_special(qos, &SUBSCRIBER_QOS_DEFAULT) {
            return ReturnCode::of(&self.0.reset_default_subscriber_qos());
        }
        ReturnCode::of(&self.0.set_default_subscriber_qos(qos.clone()))
    }

    /// `get_default_subscriber_qos`.
    pub fn get_default_subscriber_qos(&self, qos: &mut SubscriberQos) -> ReturnCode {
        put(Ok(self.0.default_subscriber_qos()), qos)
    }

    /// `set_default_topic_qos`.
    pub fn set_default_topic_qos(&self, qos: &TopicQos) -> ReturnCode {
        if is_special(qos, &TOPIC_QOS_DEFAULT) {
            return ReturnCode::of(&self.0.reset_default_topic_qos());
        }
        ReturnCode::of(&self.0.set_default_topic_qos(qos.clone()))
    }

    /// `get_default_topic_qos`.
    pub fn get_default_topic_qos(&self, qos: &mut TopicQos) -> ReturnCode {
        put(Ok(self.0.default_topic_qos()), qos)
    }

    /// `get_discovered_participants`.
    pub fn get_discovered_participants(
        &self,
        participant_handles: &mut Vec<InstanceHandle>,
    ) -> ReturnCode {
        put(self.0.discovered_participants(), participant_handles)
    }

    /// `get_discovered_participant_data`.
    pub fn get_discovered_participant_data(
        &self,
        participant_data: &mut ParticipantBuiltinTopicData,
        participant_handle: InstanceHandle,
    ) -> ReturnCode {
        let data = self.0.discovered_participant_data(participant_handle);
        put(data, participant_data)
    }

    /// `contains_entity`.
    pub fn contains_entity(&self, a_handle: InstanceHandle) -> bool {
        self.0.contains_entity(a_handle)
    }

    /// `get_current_time`, in nanoseconds since 1970.
    pub fn get_current_time(&self, current_time: &mut i64) -> ReturnCode {
        let ready = self.0.core.base.ready();
        put(ready.map(|()| source_timestamp()), current_time)
    }
}
