//! Topics and type supports by their literal names.

use std::marker::PhantomData;

use spindle_dds_idl_runtime::TopicType;
use spindle_dds_qos::TopicQos;

use super::{DomainParticipant, SharedListener, enable_part, entity, put};
use crate::error::ReturnCode;
use crate::listener::TopicListener;
use crate::status::{InconsistentTopicStatus, StatusMask};

/// `FooTypeSupport`.
#[derive(Debug, Clone, Copy, Default)]
pub struct TypeSupport<T>(PhantomData<fn() -> T>);

impl<T: TopicType> TypeSupport<T> {
    /// The support of `T`.
    pub fn new() -> Self {
        Self(PhantomData)
    }

    /// `register_type`: types are known by their IDL name, and by no other.
    pub fn register_type(&self, _: &DomainParticipant, type_name: &str) -> ReturnCode {
        if type_name == T::TYPE_NAME || type_name.is_empty() {
            ReturnCode::Ok
        } else {
            ReturnCode::Unsupported
        }
    }

    /// `get_type_name`.
    pub fn get_type_name(&self) -> &'static str {
        T::TYPE_NAME
    }
}

/// `Topic`, which is a `TopicDescription`.
#[derive(Debug)]
pub struct Topic<T>(pub crate::Topic<T>);

entity!(Topic<T>, |topic| enable_part(topic.0.is_enabled()));

impl<T> Topic<T> {
    /// `get_type_name`.
    pub fn get_type_name(&self) -> &str {
        self.0.type_name()
    }

    /// `get_name`.
    pub fn get_name(&self) -> &str {
        self.0.name()
    }

    /// `get_participant`.
    pub fn get_participant(&self) -> DomainParticipant {
        DomainParticipant(self.0.participant())
    }

    /// `set_qos`.
    pub fn set_qos(&self, qos: &TopicQos) -> ReturnCode {
        ReturnCode::of(&self.0.set_qos(qos.clone()))
    }

    /// `get_qos`.
    pub fn get_qos(&self, qos: &mut TopicQos) -> ReturnCode {
        put(self.0.qos(), qos)
    }

    /// `set_listener`.
    pub fn set_listener(
        &self,
        listener: Option<SharedListener<dyn TopicListener>>,
        mask: StatusMask,
    ) -> ReturnCode {
        ReturnCode::of(&self.0.set_shared_listener(mask, listener))
    }

    /// `get_listener`.
    pub fn get_listener(&self) -> Option<SharedListener<dyn TopicListener>> {
        self.0.shared_listener()
    }

    /// `get_inconsistent_topic_status`.
    pub fn get_inconsistent_topic_status(
        &self,
        status: &mut InconsistentTopicStatus,
    ) -> ReturnCode {
        put(self.0.inconsistent_topic_status(), status)
    }
}
