//! Topics (DDS 1.4 §2.2.2.3).

use std::any::TypeId;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use spindle_dds_idl_runtime::{Representation, TopicType};
use spindle_dds_qos::{DurabilityService, TopicQos};

use crate::choice::{
    EntityQos, ListenerChoice, QosChoice, builder_setters, shared_listener_setter,
};
use crate::discovery::{LocalType, ProtocolViolation};
use crate::driver::TopicLogs;
use crate::entity::{EntityBase, entity_operations, listener_operations};
use crate::error::{Error, Result};
use crate::lease::check_lease;
use crate::listener::{ListenerSlot, NewListener, TopicListener};
use crate::names::check_name;
use crate::participant::{DomainParticipant, ParticipantCore};
use crate::properties::{self, ParticipantConfig};
use crate::representation;
use crate::sample_type::SampleType;
use crate::status::{InconsistentTopicStatus, StatusMask, TotalCount};

#[derive(Debug)]
pub(crate) struct TopicCore {
    pub(crate) base: EntityBase,
    pub(crate) name: String,
    pub(crate) type_name: Cow<'static, str>,
    pub(crate) has_key: bool,
    /// The representations that the type allows.
    pub(crate) representations: &'static [Representation],
    pub(crate) sample_type: SampleType,
    /// The announcement of its type; `None` for a type that XTypes cannot describe.
    pub(crate) ty: Option<LocalType>,
    type_id: TypeId,
    qos: Mutex<TopicQos>,
    pub(crate) listener: ListenerSlot<dyn TopicListener>,
    inconsistent: Mutex<TotalCount>,
    /// The number of its writers and readers.
    pub(crate) endpoints: AtomicUsize,
    /// How often it has to be deleted besides: once for each time that it was found.
    found: AtomicUsize,
    /// The logs of the topic, as its PERSISTENT writers and readers see them.
    pub(crate) logs: Arc<TopicLogs>,
}

impl TopicCore {
    /// What its QoS asks to be kept for readers that come later.
    pub(crate) fn durability_service(&self) -> DurabilityService {
        let qos = self.qos.lock().unwrap_or_else(PoisonError::into_inner);
        qos.durability_service
    }

    pub(crate) fn set_listener(&self, new: NewListener<dyn TopicListener>) {
        self.base.hears(new.mask);
        self.listener.set(new);
    }

    /// Another participant writes or reads a topic of this name with an inconsistent type.
    pub(crate) fn found_inconsistent(&self) {
        self.inconsistent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(1);
        self.base
            .status_flags()
            .raise(StatusMask::INCONSISTENT_TOPIC);
    }

    pub(crate) fn inconsistent_status(&self) -> InconsistentTopicStatus {
        self.base
            .status_flags()
            .clear(StatusMask::INCONSISTENT_TOPIC);
        let mut count = self
            .inconsistent
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (total_count, total_count_change) = count.read();
        InconsistentTopicStatus {
            total_count,
            total_count_change,
        }
    }

    pub(crate) fn is_of<T: 'static>(&self) -> bool {
        self.type_id == TypeId::of::<T>()
    }

    /// Calls the topic's listener, or else the participant's, for INCONSISTENT_TOPIC. Called by
    /// the dispatch thread.
    pub(crate) fn dispatch(self: &Arc<Self>, participant: &DomainParticipant) {
        let topic = AnyTopic {
            core: self.clone(),
            participant: participant.core.clone(),
        };
        let status = StatusMask::INCONSISTENT_TOPIC;
        let was_called = self.listener.call(status, |listener| {
            listener.on_inconsistent_topic(&topic, &self.inconsistent_status());
        });
        if !was_called {
            participant.core.listener.call(status, |listener| {
                listener.on_inconsistent_topic(&topic, &self.inconsistent_status());
            });
        }
    }
}

/// A topic: a name, a type, and QoS that its writers and readers may copy.
pub struct Topic<T> {
    pub(crate) core: Arc<TopicCore>,
    pub(crate) participant: Arc<ParticipantCore>,
    marker: PhantomData<fn() -> T>,
}

entity_operations!(Topic<T>);

impl<T> Clone for Topic<T> {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
            participant: self.participant.clone(),
            marker: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Topic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topic")
            .field("name", &self.core.name)
            .field("type_name", &self.core.type_name)
            .finish_non_exhaustive()
    }
}

impl<T> Topic<T> {
    pub(crate) fn new(core: Arc<TopicCore>, participant: Arc<ParticipantCore>) -> Self {
        Self {
            core,
            participant,
            marker: PhantomData,
        }
    }

    /// The topic's name.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// The IDL name of its type.
    pub fn type_name(&self) -> &str {
        &self.core.type_name
    }

    /// The participant that it belongs to.
    pub fn participant(&self) -> DomainParticipant {
        DomainParticipant::of(self.participant.clone())
    }

    /// Its QoS.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn qos(&self) -> Result<TopicQos> {
        self.core.base.alive()?;
        Ok(self
            .core
            .qos
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone())
    }

    /// Changes its QoS.
    ///
    /// # Errors
    /// INCONSISTENT_POLICY, UNSUPPORTED, IMMUTABLE_POLICY once it is enabled.
    pub fn set_qos(&self, qos: TopicQos) -> Result<()> {
        self.core.base.alive()?;
        qos.check()?;
        let core = &self.core;
        representation::check(&core.type_name, core.representations, &qos.representation)?;
        check_lease(&qos.liveliness, self.participant.config.failure_limit)?;
        properties::placed(&qos.property, &qos.origins, ParticipantConfig::check_topic)?;
        let mut current = self.core.qos.lock().unwrap_or_else(PoisonError::into_inner);
        if self.core.base.is_enabled() {
            current.check_mutable(&qos)?;
        }
        *current = qos;
        Ok(())
    }

    listener_operations!(TopicListener, |listener| listener);

    /// Counts the participants that write or read a topic of this name with a type that is not
    /// assignable to this one, or this one to it (XTypes 1.3 §7.6.3.4.2).
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn inconsistent_topic_status(&self) -> Result<InconsistentTopicStatus> {
        self.core.base.alive()?;
        Ok(self.core.inconsistent_status())
    }

    /// The topic without its type.
    pub fn as_any(&self) -> AnyTopic {
        AnyTopic {
            core: self.core.clone(),
            participant: self.participant.clone(),
        }
    }
}

/// A topic whose type is not known.
#[derive(Clone)]
pub struct AnyTopic {
    pub(crate) core: Arc<TopicCore>,
    pub(crate) participant: Arc<ParticipantCore>,
}

entity_operations!(AnyTopic);

impl AnyTopic {
    /// The topic's name.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// The IDL name of its type.
    pub fn type_name(&self) -> &str {
        &self.core.type_name
    }

    /// The topic with its type, if it is `T`, which may be [`Dynamic`](crate::Dynamic).
    pub fn downcast<T: 'static>(&self) -> Option<Topic<T>> {
        let typed = || Topic::new(self.core.clone(), self.participant.clone());
        self.core.is_of::<T>().then(typed)
    }
}

impl fmt::Debug for AnyTopic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyTopic")
            .field("name", &self.core.name)
            .field("type_name", &self.core.type_name)
            .finish_non_exhaustive()
    }
}

/// Makes a [`Topic`].
#[must_use = "a builder does nothing until `create`"]
pub struct TopicBuilder<'a, T> {
    participant: &'a DomainParticipant,
    name: String,
    qos: QosChoice<TopicQos>,
    listener: ListenerChoice<dyn TopicListener>,
    marker: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for TopicBuilder<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopicBuilder")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<'a, T: 'static> TopicBuilder<'a, T> {
    pub(crate) fn new(participant: &'a DomainParticipant, name: &str) -> Self {
        Self {
            participant,
            name: name.to_owned(),
            qos: QosChoice::Default,
            listener: None,
            marker: PhantomData,
        }
    }

    pub(crate) fn with(mut self, qos: QosChoice<TopicQos>) -> Self {
        self.qos = qos;
        self
    }

    builder_setters!(
        TopicQos,
        TopicListener,
        "With the QoS that the profile `Library::Profile` has for it.",
        |listener| listener
    );

    shared_listener_setter!(TopicListener, |listener| listener);

    pub(crate) fn with_listener(mut self, listener: ListenerChoice<dyn TopicListener>) -> Self {
        self.listener = listener;
        self
    }

    pub(crate) fn create_of(self, of: TopicOf) -> Result<Topic<T>> {
        let participant = &self.participant.core;
        participant.base.alive()?;
        check_name("topic", &self.name)?;
        check_name("type", &of.type_name)?;
        let qos = self.qos.resolve(participant, &self.name, || {
            participant.defaults().topic.clone()
        })?;
        representation::check(&of.type_name, of.representations, &qos.representation)?;
        check_lease(&qos.liveliness, participant.config.failure_limit)?;
        properties::placed(&qos.property, &qos.origins, ParticipantConfig::check_topic)?;
        let ty = of.described.map_err(|why| {
            let name = &of.type_name;
            Error::BadParameter(format!("the description of type {name} is invalid: {why}"))
        })?;
        let name = self.name;
        let core = participant.add_topic(&name, |base| TopicCore {
            base,
            name: name.clone(),
            type_name: of.type_name,
            has_key: of.has_key,
            representations: of.representations,
            sample_type: of.sample_type,
            ty,
            type_id: TypeId::of::<T>(),
            qos: Mutex::new(qos),
            listener: ListenerSlot::default(),
            inconsistent: Mutex::default(),
            endpoints: AtomicUsize::new(0),
            found: AtomicUsize::new(0),
            logs: Arc::new(TopicLogs::new(&name, participant.logs.troubles().clone())),
        })?;
        // Before an endpoint of it exists: no status can have changed.
        if let Some(listener) = self.listener {
            core.set_listener(listener);
        }
        Ok(Topic::new(core, participant.clone()))
    }
}

/// What a topic has by its type.
pub(crate) struct TopicOf {
    pub(crate) type_name: Cow<'static, str>,
    pub(crate) has_key: bool,
    pub(crate) representations: &'static [Representation],
    pub(crate) sample_type: SampleType,
    pub(crate) described: std::result::Result<Option<LocalType>, ProtocolViolation>,
}

impl<T: TopicType> TopicBuilder<'_, T> {
    /// Creates the topic (`create_topic`; the type is registered by its IDL name).
    ///
    /// # Errors
    /// BAD_PARAMETER for an empty name, an unknown profile, or a type with an invalid
    /// `DESCRIPTION`; PRECONDITION_NOT_MET when the participant has a topic of this name;
    /// INCONSISTENT_POLICY, UNSUPPORTED.
    pub fn create(self) -> Result<Topic<T>> {
        self.create_of(TopicOf {
            type_name: Cow::Borrowed(T::TYPE_NAME),
            has_key: T::HAS_KEY,
            representations: T::REPRESENTATIONS,
            sample_type: SampleType::of::<T>(),
            described: T::DESCRIPTION.as_ref().map(LocalType::of).transpose(),
        })
    }
}

impl TopicCore {
    /// It was found: it has to be deleted once more. Called under the lock of the participant's
    /// entities, as is [`give_back`](Self::give_back).
    pub(crate) fn hand_out(&self) {
        self.found.fetch_add(1, Ordering::Relaxed);
    }

    /// It is deleted. Whether it goes on to exist, because it was found.
    pub(crate) fn give_back(&self) -> bool {
        let is_found = self.found.load(Ordering::Relaxed) != 0;
        if is_found {
            self.found.fetch_sub(1, Ordering::Relaxed);
        }
        is_found
    }

    /// Whether writers or readers use it.
    pub(crate) fn is_used(&self) -> bool {
        self.endpoints.load(Ordering::Acquire) != 0
    }
}
