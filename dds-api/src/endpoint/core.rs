//! What an endpoint holds, shared by all handles to it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use spindle_dds_core::SubgroupId;
use spindle_dds_qos::{ImmutablePolicy, PolicyId};

use super::{EndpointQos, ErasedListener, FactoryCore, Side};
use crate::choice::{EntityQos, ListenerChoice, QosChoice};
use crate::discovery::Entry;
use crate::driver::LocalEndpoints;
use crate::entity::EntityBase;
use crate::error::{Error, Result};
use crate::handle::InstanceHandle;
use crate::history::{LogService, service_limits};
use crate::lease::check_lease;
use crate::listener::{ListenerSlot, NewListener};
use crate::names::checked_name;
use crate::participant::ParticipantCore;
use crate::representation;
use crate::topic::{Topic, TopicCore};

/// Whether an endpoint asks for the log of its topic, if its participant logs.
struct LogUse {
    logs: Arc<LogService>,
    topic: Arc<TopicCore>,
    is_used: AtomicBool,
}

impl LogUse {
    fn new(participant: &ParticipantCore, topic: &Arc<TopicCore>, is_used: bool) -> Self {
        Self {
            logs: participant.logs.clone(),
            topic: topic.clone(),
            is_used: AtomicBool::new(is_used),
        }
    }

    fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    fn begin(&self) {
        self.is_used.store(true, Ordering::Release);
    }

    fn end(&self) {
        if self.is_used.swap(false, Ordering::AcqRel) {
            self.logs.close(&self.topic.name);
        }
    }
}

impl Drop for LogUse {
    fn drop(&mut self) {
        self.end();
    }
}

/// Opens the log of a topic for an endpoint with this QoS.
fn open_log(
    participant: &ParticipantCore,
    topic: &TopicCore,
    qos: &impl EndpointQos,
) -> Result<()> {
    let service = qos.durability_service();
    let limits = service_limits(&service.unwrap_or_else(|| topic.durability_service()));
    let subgroup = SubgroupId(participant.config.subgroup_of(&topic.name));
    participant.logs.open(topic, subgroup, limits)
}

/// A writer or a reader.
pub(crate) struct EndpointCore<S: Side> {
    pub(crate) base: EntityBase,
    pub(crate) topic: Arc<TopicCore>,
    /// Its publisher or subscriber.
    pub(crate) factory: Weak<FactoryCore<S>>,
    pub(crate) participant: Weak<ParticipantCore>,
    /// The endpoints of its participant.
    local_endpoints: Arc<LocalEndpoints>,
    /// Unique within the participant.
    pub(crate) number: u32,
    /// The log of its topic.
    log: LogUse,
    qos: Mutex<S::EndpointQos>,
    pub(crate) listener: ListenerSlot<dyn ErasedListener<S>>,
    pub(crate) side: S,
}

impl<S: Side> fmt::Debug for EndpointCore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(S::ENDPOINT)
            .field("base", &self.base)
            .field("side", &self.side)
            .finish_non_exhaustive()
    }
}

impl<S: Side> EndpointCore<S> {
    /// Creates an endpoint of `topic` and announces it. `side` makes what its side holds.
    ///
    /// # Errors
    /// As for `DataWriterBuilder::create`.
    pub(crate) fn create<T>(
        factory: &Arc<FactoryCore<S>>,
        participant: &Arc<ParticipantCore>,
        topic: &Topic<T>,
        (qos, name): (QosChoice<S::EndpointQos>, Option<String>),
        listener: ListenerChoice<dyn ErasedListener<S>>,
        side: impl FnOnce(&EntityBase, &S::EndpointQos) -> Result<S>,
    ) -> Result<Arc<Self>> {
        factory.base.alive()?;
        topic.core.base.alive()?;
        if !Arc::ptr_eq(participant, &topic.participant) {
            let text = "the topic belongs to another participant";
            return Err(Error::PreconditionNotMet(text.to_owned()));
        }
        let topic = &topic.core;
        let mut qos = qos.resolve(participant, &topic.name, || {
            factory.default_endpoint_qos().clone()
        })?;
        representation::settle(
            &topic.type_name,
            topic.representations,
            qos.representation(),
        )?;
        check_lease(qos.liveliness(), participant.config.failure_limit)?;
        if qos.is_durable() {
            participant.history.start()?;
        }
        if qos.is_persistent() {
            open_log(participant, topic, &qos)?;
        }
        let log = LogUse::new(participant, topic, qos.is_persistent());
        let what = format!("the {} of topic {}", S::ENDPOINT, topic.name);
        let container = factory.base.status_flags().clone();
        let (base, number) = participant.new_base(S::ENDPOINT_KIND, what, container);
        base.set_name(checked_name(S::ENDPOINT, name)?);
        let core = Arc::new(Self {
            side: side(&base, &qos)?,
            base,
            topic: topic.clone(),
            factory: Arc::downgrade(factory),
            participant: participant.weak(),
            local_endpoints: participant.local_endpoints.clone(),
            number,
            log,
            qos: Mutex::new(qos),
            listener: ListenerSlot::default(),
        });
        topic.endpoints.fetch_add(1, Ordering::AcqRel);
        if let Some(listener) = listener {
            core.set_listener(listener);
        }
        let added = participant
            .local_endpoints
            .add(number, S::own(core.clone()));
        // The factory may have been deleted meanwhile.
        let added = added.and_then(|()| factory.add(core.clone()));
        added.inspect_err(|_| core.delete(Instant::now()))?;
        Ok(core)
    }

    pub(crate) fn qos(&self) -> MutexGuard<'_, S::EndpointQos> {
        self.qos.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// ALREADY_DELETED, IMMUTABLE_POLICY, INCONSISTENT_POLICY, UNSUPPORTED.
    pub(crate) fn set_qos(&self, mut qos: S::EndpointQos) -> Result<()> {
        self.base.alive()?;
        qos.check()?;
        let topic = &self.topic;
        representation::settle(
            &topic.type_name,
            topic.representations,
            qos.representation(),
        )?;
        let participant = self.participant.upgrade();
        if let Some(participant) = &participant {
            check_lease(qos.liveliness(), participant.config.failure_limit)?;
            if qos.is_durable() {
                participant.history.start()?;
            }
            if qos.is_persistent() && !self.log.is_used() {
                open_log(participant, topic, &qos)?;
                self.log.begin();
            }
        }
        let mut current = self.qos();
        if qos.property() != current.property() {
            let policy = PolicyId::Property;
            return Err(ImmutablePolicy { policy }.into());
        }
        // A participant that joins has announced its endpoints. Asked under the lock under which
        // they read the QoS for that.
        if self.base.is_enabled() || participant.is_some_and(|it| it.is_enabling()) {
            current.check_change(&qos)?;
            if qos.latency_budget() != current.latency_budget() {
                return Err(Error::Unsupported(format!(
                    "LATENCY_BUDGET of {} has been announced, and is not announced again; set it \
                     before the participant is enabled",
                    self.base.what()
                )));
            }
        }
        *current = qos;
        Ok(())
    }

    pub(crate) fn set_listener(&self, new: NewListener<dyn ErasedListener<S>>) {
        self.base.hears(new.mask);
        self.listener.set(new);
    }

    /// Its publisher or subscriber.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub(crate) fn factory(&self) -> Result<Arc<FactoryCore<S>>> {
        self.base.alive()?;
        let deleted = || Error::AlreadyDeleted(format!("the {} was deleted", S::FACTORY));
        self.factory.upgrade().ok_or_else(deleted)
    }

    /// The announcement of an endpoint of the domain.
    pub(crate) fn announced(&self, endpoint: InstanceHandle) -> Option<Arc<Entry>> {
        self.local_endpoints.entry(endpoint)
    }

    /// # Errors
    /// PRECONDITION_NOT_MET while the application has loans or waits for a condition.
    pub(crate) fn check_deletable(&self) -> Result<()> {
        S::check_deletable(self)
    }

    /// `since` is when the deletion began: of several entities one after the other, of the first.
    pub(crate) fn delete(&self, since: Instant) {
        if self.base.delete() {
            self.topic.endpoints.fetch_sub(1, Ordering::AcqRel);
            S::stop(self, since);
            self.local_endpoints.remove(self.number);
            self.log.end();
            self.base.status_flags().settle_streams();
        }
    }
}
