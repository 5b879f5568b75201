//! The state of a participant, shared by all handles to it and its entities.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use spindle_dds_idl_runtime::TopicType;
use spindle_dds_qos::{DomainParticipantQos, PublisherQos, SubscriberQos, TopicQos};

use super::lifecycle::Lifecycle;
use crate::driver::{
    CancelToken, GroupStatus, Lasting, LocalEndpoints, Notifier, SendWaiters, Session, Threads,
};
use crate::entity::EntityBase;
use crate::error::{Error, Result};
use crate::handle::{EntityKind, Guid};
use crate::history::{HistoryService, LogService};
use crate::keys::KeyTable;
use crate::listener::{DomainParticipantListener, ListenerSlot, NewListener};
use crate::profiles::Profiles;
use crate::properties::ParticipantConfig;
use crate::publication::PublisherCore;
use crate::status::StatusFlags;
use crate::subscription::SubscriberCore;
use crate::topic::TopicCore;

/// Dropped with the last handle; the participant then leaves its group.
#[derive(Debug)]
pub(crate) struct ParticipantCore {
    pub(crate) base: EntityBase,
    pub(crate) domain_id: u32,
    pub(crate) name: String,
    pub(crate) config: ParticipantConfig,
    pub(crate) listener: Arc<ListenerSlot<dyn DomainParticipantListener>>,
    pub(super) qos: Mutex<DomainParticipantQos>,
    profiles: Profiles,
    defaults: Mutex<Defaults>,
    /// Names of the keys whose hashes are digests.
    keys: Arc<KeyTable>,
    notifier: Arc<Notifier>,
    send_waiters: Arc<SendWaiters>,
    pub(crate) history: Arc<HistoryService>,
    pub(crate) logs: Arc<LogService>,
    pub(crate) group_status: Arc<GroupStatus>,
    pub(crate) local_endpoints: Arc<LocalEndpoints>,
    entities: Mutex<Entities>,
    /// The number of the next entity, part of its GUID.
    next_number: AtomicU32,
    lifecycle: Lifecycle,
    myself: Weak<Self>,
}

/// The default QoS of contained entities; `None` where none was set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Defaults {
    pub(crate) topic: Option<TopicQos>,
    pub(crate) publisher: Option<PublisherQos>,
    pub(crate) subscriber: Option<SubscriberQos>,
}

/// The entities of a participant.
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

    fn delete(&self) {
        let since = Instant::now();
        self.publishers
            .iter()
            .for_each(|publisher| publisher.delete_all(since));
        self.subscribers
            .iter()
            .for_each(|subscriber| subscriber.delete_all(since));
        for topic in &self.topics {
            topic.base.delete();
        }
    }
}

impl ParticipantCore {
    pub(super) fn new(
        domain_id: u32,
        name: String,
        qos: DomainParticipantQos,
        config: ParticipantConfig,
        profiles: Profiles,
    ) -> Arc<Self> {
        let guid = Guid::new_participant();
        let notifier = Arc::<Notifier>::default();
        let what = format!("the participant of domain {domain_id}");
        let keys = Arc::<KeyTable>::default();
        let history = Arc::new(HistoryService::new(
            config.threads.history,
            config.failure_limit,
            keys.clone(),
        ));
        let logs = Arc::new(LogService::new(
            config.log.clone(),
            domain_id,
            config.threads.log,
            history.clone(),
        ));
        Arc::new_cyclic(|myself| Self {
            base: EntityBase::new(guid, what, myself.clone(), &notifier, None),
            domain_id,
            name,
            group_status: Arc::new(GroupStatus::new(config.rejoin)),
            send_waiters: Arc::default(),
            local_endpoints: Arc::new(LocalEndpoints::new(config.clone(), logs.clone())),
            history,
            logs,
            config,
            listener: Arc::default(),
            qos: Mutex::new(qos),
            profiles,
            defaults: Mutex::default(),
            notifier,
            keys,
            entities: Mutex::default(),
            next_number: AtomicU32::new(1),
            lifecycle: Lifecycle::new(),
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

    pub(crate) fn keys(&self) -> &Arc<KeyTable> {
        &self.keys
    }

    pub(crate) fn notifier(&self) -> &Arc<Notifier> {
        &self.notifier
    }

    /// What is kept from session to session.
    pub(crate) fn lasting(&self) -> Lasting {
        Lasting {
            local_endpoints: self.local_endpoints.clone(),
            group_status: self.group_status.clone(),
            notifier: self.notifier.clone(),
            send_waiters: self.send_waiters.clone(),
            history: self.history.clone(),
            logs: self.logs.clone(),
        }
    }

    /// See [`Lifecycle::begin_returning`].
    pub(crate) fn begin_returning(&self, ended: &Arc<Session>) -> Option<CancelToken> {
        self.lifecycle.begin_returning(ended)
    }

    /// The participant is about to be a member again, or leaves if it is closed meanwhile.
    pub(crate) fn end_returning(&self, session: &Arc<Session>) {
        if !self.lifecycle.end_returning(session) {
            if let Err(error) = session.close() {
                tracing::warn!(%error, "leaving a group that was joined again meanwhile");
            }
            self.lifecycle.end_closing();
        }
        self.lifecycle_changed();
    }

    /// The participant is closed before it has come back.
    pub(crate) fn return_cancelled(&self) {
        self.lifecycle.end_closing();
        self.lifecycle_changed();
    }

    pub(crate) fn weak(&self) -> Weak<Self> {
        self.myself.clone()
    }

    /// The base of a new entity of this participant, and its number. `container` has the statuses
    /// of the entity that contains it.
    pub(crate) fn new_base(
        &self,
        kind: EntityKind,
        what: String,
        container: Arc<StatusFlags>,
    ) -> (EntityBase, u32) {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let guid = self.base.guid().entity(kind, number);
        let (participant, notifier) = (self.weak(), &self.notifier);
        let base = EntityBase::new(guid, what, participant, notifier, Some(container));
        (base, number)
    }

    pub(crate) fn set_listener(&self, new: NewListener<dyn DomainParticipantListener>) {
        self.base.hears(new.mask);
        self.listener.set(new);
    }

    /// Adds an entity, unless the participant is deleted.
    pub(crate) fn add<R>(&self, add: impl FnOnce(&mut Entities) -> R) -> Result<R> {
        let mut entities = self.entities();
        self.base.alive()?;
        Ok(add(&mut entities))
    }

    pub(crate) fn add_topic(
        &self,
        name: &str,
        make: impl FnOnce(EntityBase) -> TopicCore,
    ) -> Result<Arc<TopicCore>> {
        let mut entities = self.entities();
        self.base.alive()?;
        if let Some(known) = entities.topics.iter().find(|topic| topic.name == name) {
            return Err(Error::PreconditionNotMet(format!(
                "the participant has a topic {name:?} of type {} already; clone it, or look it up",
                known.type_name
            )));
        }
        let container = self.base.status_flags().clone();
        let (base, _) = self.new_base(EntityKind::Topic, format!("topic {name}"), container);
        if self.base.is_enabled() {
            base.set_enabled();
        }
        let topic = Arc::new(make(base));
        entities.topics.push(topic.clone());
        drop(entities);
        self.local_endpoints.note_topics();
        Ok(topic)
    }

    /// The topic of this name, which has to be deleted once more from now on if it is of type `T`.
    pub(crate) fn hand_out_topic<T: TopicType>(&self, name: &str) -> Option<Arc<TopicCore>> {
        let entities = self.entities();
        let topic = entities.topics.iter().find(|topic| topic.name == name)?;
        if topic.is_of::<T>() {
            topic.hand_out();
        }
        Some(topic.clone())
    }

    /// Joins the group of its domain, or founds it, and starts the threads. Blocks until it is
    /// a member, or the participant is closed.
    pub(crate) fn enable(&self) -> Result<()> {
        self.base.not_inherited()?;
        let Some(cancel) = self.lifecycle.begin_enabling()? else {
            return Ok(());
        };
        let threads = Threads::spawn(&self.config.threads);
        self.join(threads, &cancel)
    }

    /// Enables it with these threads, after [`Lifecycle::begin_enabling`].
    pub(super) fn join(&self, threads: Result<Threads>, cancel: &CancelToken) -> Result<()> {
        let joined = threads.and_then(|threads| crate::joining::join(self, threads, cancel));
        let enabled = self.lifecycle.end_enabling(joined, || {
            // First: from now on, a thread that adds an entity also enables it.
            self.base.set_enabled();
            self.enable_contained();
        });
        self.lifecycle_changed();
        enabled
    }

    /// Futures may wait for just that. Called without a lock.
    pub(super) fn lifecycle_changed(&self) {
        self.notifier.futures.mark_all();
    }

    pub(super) fn lifecycle(&self) -> &Lifecycle {
        &self.lifecycle
    }

    /// Enables topics, publishers and subscribers, but not endpoints.
    pub(crate) fn enable_contained(&self) {
        let Entities {
            topics,
            publishers,
            subscribers,
        } = &*self.entities();
        topics.iter().for_each(|topic| topic.base.set_enabled());
        publishers.iter().for_each(|it| it.base.set_enabled());
        subscribers.iter().for_each(|it| it.base.set_enabled());
    }

    /// Leaves the group and deletes all entities; see [`DomainParticipant::close`](super::DomainParticipant::close).
    pub(crate) fn close(&self) -> Result<()> {
        self.base.not_inherited()?;
        let session = self.lifecycle.begin_closing()?;
        let left = self.leave(session);
        self.lifecycle.wait_closed();
        left
    }

    /// Deletes all entities, and leaves the group of the session, after [`Lifecycle::begin_closing`].
    pub(super) fn leave(&self, session: Option<Arc<Session>>) -> Result<()> {
        self.delete_all();
        let Some(session) = session else {
            self.logs.end();
            self.history.end();
            return Ok(());
        };
        let left = session.close();
        self.logs.end();
        self.history.end();
        self.lifecycle.end_closing();
        self.lifecycle_changed();
        left
    }

    /// Whether a thread is enabling it.
    pub(crate) fn is_enabling(&self) -> bool {
        self.lifecycle.is_enabling()
    }

    /// Whether entities are enabled when they are created.
    pub(crate) fn autoenables(&self) -> bool {
        let qos = self.qos.lock().unwrap_or_else(PoisonError::into_inner);
        qos.entity_factory.autoenable_created_entities
    }

    /// The session of an enabled participant.
    pub(crate) fn ready(&self) -> Result<Arc<Session>> {
        self.base.ready()?;
        let not_enabled = || Error::NotEnabled(format!("{} is disabled", self.base.what()));
        self.lifecycle.session().ok_or_else(not_enabled)
    }

    /// Marks the participant and its entities deleted.
    fn delete_all(&self) {
        // First: from now on, no entity can be added.
        self.base.delete();
        self.local_endpoints.note_topics();
        let entities = std::mem::take(&mut *self.entities());
        entities.delete();
        self.notifier.futures.settle();
    }

    /// Deletes all entities, or none if one of them cannot be deleted.
    pub(crate) fn delete_contained(&self) -> Result<()> {
        let mut entities = self.entities();
        for publisher in &entities.publishers {
            let writers = publisher.endpoints();
            writers.iter().try_for_each(|it| it.check_deletable())?;
        }
        for subscriber in &entities.subscribers {
            let readers = subscriber.endpoints();
            readers.iter().try_for_each(|it| it.check_deletable())?;
        }
        let deleted = std::mem::take(&mut *entities);
        drop(entities);
        deleted.delete();
        self.notifier.futures.settle();
        Ok(())
    }
}

impl Drop for ParticipantCore {
    fn drop(&mut self) {
        if self.base.is_inherited() {
            // It belongs to the parent process. Nothing that it holds is dropped here: a lock may
            // have been held when the process was forked, and is never released in the child.
            let entities = self.entities.get_mut();
            std::mem::forget(std::mem::take(
                entities.unwrap_or_else(PoisonError::into_inner),
            ));
            std::mem::forget(self.local_endpoints.clone());
            std::mem::forget(self.history.clone());
            std::mem::forget(self.logs.clone());
            self.lifecycle.leak_session();
            return;
        }
        // Wakes the threads that wait on a condition of the participant.
        self.delete_all();
        self.lifecycle.cancel_return();
        if let Some(session) = self.lifecycle.session() {
            session.abandon();
        }
        self.local_endpoints.leave();
        self.history.abandon();
        self.logs.abandon();
        super::factory::forget(self.base.guid());
    }
}
