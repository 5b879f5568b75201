//! What a participant holds, shared by all handles to it and its entities.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use spindle_dds_qos::{DomainParticipantQos, PublisherQos, SubscriberQos, TopicQos};

use crate::driver::{DispatchBell, Session};
use crate::entity::EntityBase;
use crate::error::{Error, Result};
use crate::handle::{EntityKind, Guid};
use crate::listener::{DomainParticipantListener, ListenerSlot};
use crate::profiles::Profiles;
use crate::properties::ParticipantConfig;
use crate::publication::PublisherCore;
use crate::subscription::SubscriberCore;
use crate::topic::TopicCore;
use crate::wire::Wire;

/// Dropped with the last handle: leaves the group then.
#[derive(Debug)]
pub(crate) struct ParticipantCore {
    pub(crate) base: EntityBase,
    pub(crate) domain_id: u32,
    pub(crate) config: ParticipantConfig,
    pub(crate) listener: Arc<ListenerSlot<dyn DomainParticipantListener>>,
    pub(super) qos: Mutex<DomainParticipantQos>,
    profiles: Profiles,
    defaults: Mutex<Defaults>,
    bell: Arc<DispatchBell>,
    entities: Mutex<Entities>,
    numbers: AtomicU32,
    session: OnceLock<Arc<Session<Wire>>>,
    /// An `enable` is under way.
    forming: AtomicBool,
    myself: Weak<Self>,
}

/// QoS for entities about which nothing is said, as far as it was set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Defaults {
    pub(crate) topic: Option<TopicQos>,
    pub(crate) publisher: Option<PublisherQos>,
    pub(crate) subscriber: Option<SubscriberQos>,
}

/// What a participant contains.
#[derive(Debug, Default)]
pub(crate) struct Entities {
    pub(crate) topics: Vec<Arc<TopicCore>>,
    pub(crate) publishers: Vec<Arc<PublisherCore>>,
    pub(crate) subscribers: Vec<Arc<SubscriberCore>>,
}

impl Entities {
    pub(crate) fn is_empty(&self) -> bool {
        self.topics.is_empty() && self.publishers.is_empty() && self.subscribers.is_empty()
    }
}

impl ParticipantCore {
    pub(super) fn new(
        domain_id: u32,
        qos: DomainParticipantQos,
        config: ParticipantConfig,
        profiles: Profiles,
    ) -> Arc<Self> {
        let guid = Guid::new_participant();
        let bell = Arc::<DispatchBell>::default();
        let what = format!("the participant of domain {domain_id}");
        Arc::new_cyclic(|myself| Self {
            base: EntityBase::new(guid, what, &bell),
            domain_id,
            config,
            listener: Arc::default(),
            qos: Mutex::new(qos),
            profiles,
            defaults: Mutex::default(),
            bell,
            entities: Mutex::default(),
            numbers: AtomicU32::new(1),
            session: OnceLock::new(),
            forming: AtomicBool::new(false),
            myself: myself.clone(),
        })
    }

    pub(crate) fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    pub(crate) fn defaults(&self) -> MutexGuard<'_, Defaults> {
        self.defaults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn entities(&self) -> MutexGuard<'_, Entities> {
        self.entities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn bell(&self) -> &Arc<DispatchBell> {
        &self.bell
    }

    pub(crate) fn weak(&self) -> Weak<Self> {
        self.myself.clone()
    }

    pub(crate) fn session(&self) -> Option<&Arc<Session<Wire>>> {
        self.session.get()
    }

    /// A base for a new entity of this participant, and its number.
    pub(crate) fn new_base(&self, kind: EntityKind, what: String) -> (EntityBase, u32) {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let guid = self.base.guid().entity(kind, number);
        (EntityBase::new(guid, what, &self.bell), number)
    }

    /// Endpoints are part of what the group is formed of.
    pub(crate) fn accepts_endpoints(&self) -> Result<()> {
        self.base.alive()?;
        if self.base.is_enabled() || self.forming.load(Ordering::Acquire) {
            return Err(Error::PreconditionNotMet(
                "writers and readers are created before their participant is enabled: build it \
                 with disabled(), create them, then call enable()"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    pub(crate) fn add_topic(
        &self,
        name: &str,
        make: impl FnOnce(EntityBase) -> TopicCore,
    ) -> Result<Arc<TopicCore>> {
        let mut entities = self.entities();
        if let Some(known) = entities.topics.iter().find(|topic| topic.name == name) {
            return Err(Error::PreconditionNotMet(format!(
                "the participant has a topic {name:?} of type {} already; clone it, or look it up",
                known.type_name
            )));
        }
        let (base, _) = self.new_base(EntityKind::Topic, format!("topic {name}"));
        if self.base.is_enabled() {
            base.set_enabled();
        }
        let topic = Arc::new(make(base));
        entities.topics.push(topic.clone());
        Ok(topic)
    }

    /// Forms the group and starts the threads. Blocks until all have come.
    pub(crate) fn enable(&self) -> Result<()> {
        self.base.alive()?;
        if self.base.is_enabled() {
            return Ok(());
        }
        if self.forming.swap(true, Ordering::AcqRel) {
            let text = "another thread is enabling this participant";
            return Err(Error::PreconditionNotMet(text.to_owned()));
        }
        let formed = crate::formation::form(self);
        let result = formed.map(|session| {
            let _ = self.session.set(session);
            self.base.set_enabled();
        });
        self.forming.store(false, Ordering::Release);
        result
    }

    /// Whether what it creates is enabled at once.
    pub(crate) fn autoenables(&self) -> bool {
        let qos = self.qos.lock().unwrap_or_else(PoisonError::into_inner);
        qos.entity_factory.autoenable_created_entities
    }

    /// Whether the group still works.
    pub(crate) fn ready(&self) -> Result<&Arc<Session<Wire>>> {
        self.base.ready()?;
        let not_enabled = || Error::NotEnabled(format!("{} is disabled", self.base.what()));
        self.session().ok_or_else(not_enabled)
    }

    /// Marks all it contains, and itself, deleted. False when it was already.
    pub(crate) fn delete_all(&self) -> bool {
        self.delete_contained();
        self.base.delete()
    }

    /// Refuses while samples are out that lie in rings.
    pub(crate) fn check_ring_loans(&self) -> Result<()> {
        for subscriber in &self.entities().subscribers {
            let readers = subscriber.readers();
            let mut in_ring = readers.iter().filter(|reader| reader.inlet.keeps_in_ring());
            in_ring.try_for_each(|reader| reader.deletable())?;
        }
        Ok(())
    }

    pub(crate) fn delete_contained(&self) {
        let entities = std::mem::take(&mut *self.entities());
        entities
            .publishers
            .iter()
            .for_each(|publisher| publisher.delete_all());
        entities
            .subscribers
            .iter()
            .for_each(|subscriber| subscriber.delete_all());
        for topic in &entities.topics {
            topic.base.delete();
        }
    }
}

impl Drop for ParticipantCore {
    fn drop(&mut self) {
        // Whoever waits on a condition of it finds out.
        self.delete_all();
        if let Some(session) = self.session.get() {
            session.abandon();
        }
        super::factory::forget(self.base.guid());
    }
}
