//! What a publisher or subscriber holds, shared by all handles to it.

use std::fmt;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::{EndpointCore, Side};
use crate::choice::{EntityQos, ListenerChoice, QosChoice, default_qos};
use crate::entity::EntityBase;
use crate::error::{Error, Result};
use crate::handle::InstanceHandle;
use crate::listener::{ListenerSlot, NewListener};
use crate::names::checked_name;
use crate::participant::ParticipantCore;

/// A publisher or subscriber: the factory of its endpoints, as the standard calls it.
pub(crate) struct FactoryCore<S: Side> {
    pub(crate) base: EntityBase,
    qos: Mutex<S::FactoryQos>,
    /// For endpoints created without a QoS; `None` until it is set.
    default_endpoint_qos: Mutex<Option<S::EndpointQos>>,
    pub(crate) listener: ListenerSlot<S::FactoryListener>,
    endpoints: Mutex<Vec<Arc<EndpointCore<S>>>>,
    /// Calls of suspend_publications that were not followed by resume_publications.
    pub(crate) suspensions: AtomicU32,
}

impl<S: Side> fmt::Debug for FactoryCore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(S::FACTORY)
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

impl<S: Side> FactoryCore<S> {
    /// Creates a publisher or subscriber.
    ///
    /// # Errors
    /// INCONSISTENT_POLICY, UNSUPPORTED, ALREADY_DELETED; BAD_PARAMETER for an unknown
    /// profile.
    pub(crate) fn create(
        participant: &ParticipantCore,
        qos: QosChoice<S::FactoryQos>,
        name: Option<String>,
        listener: ListenerChoice<S::FactoryListener>,
    ) -> Result<Arc<Self>> {
        participant.base.alive()?;
        let set = || S::default_factory_qos(&participant.defaults());
        let qos = qos.resolve(participant, "", set)?;
        let container = participant.base.status_flags().clone();
        let what = format!("the {}", S::FACTORY);
        let (base, _) = participant.new_base(S::FACTORY_KIND, what, container);
        base.set_name(checked_name(S::FACTORY, name)?);
        let core = Arc::new(Self {
            base,
            qos: Mutex::new(qos),
            default_endpoint_qos: Mutex::default(),
            listener: ListenerSlot::default(),
            endpoints: Mutex::default(),
            suspensions: AtomicU32::new(0),
        });
        if let Some(listener) = listener {
            core.set_listener(listener);
        }
        let autoenables = participant.autoenables();
        participant.add(|entities| {
            if participant.base.is_enabled() && autoenables {
                core.base.set_enabled();
            }
            S::factories(entities).push(core.clone());
        })?;
        Ok(core)
    }

    pub(crate) fn qos(&self) -> MutexGuard<'_, S::FactoryQos> {
        self.qos.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// ALREADY_DELETED, IMMUTABLE_POLICY, INCONSISTENT_POLICY, UNSUPPORTED.
    pub(crate) fn set_qos(&self, qos: S::FactoryQos) -> Result<()> {
        self.base.alive()?;
        qos.check()?;
        let participant = self.base.participant();
        let mut current = self.qos();
        // A participant that joins has announced its endpoints with this QoS. Asked under the lock
        // under which they read it for that.
        if self.base.is_enabled() || participant.is_some_and(|it| it.is_enabling()) {
            current.check_change(&qos)?;
        }
        *current = qos;
        Ok(())
    }

    pub(crate) fn default_endpoint_qos(&self) -> MutexGuard<'_, Option<S::EndpointQos>> {
        let default = self.default_endpoint_qos.lock();
        default.unwrap_or_else(PoisonError::into_inner)
    }

    /// The QoS of endpoints that are created without one, of a topic that no filter of the
    /// profile names.
    pub(crate) fn endpoint_qos(&self, participant: &ParticipantCore) -> S::EndpointQos {
        let set = self.default_endpoint_qos().clone();
        default_qos(participant.profiles(), "", set)
    }

    /// # Errors
    /// INCONSISTENT_POLICY, UNSUPPORTED.
    pub(crate) fn set_default_endpoint_qos(&self, qos: S::EndpointQos) -> Result<()> {
        self.base.not_inherited()?;
        qos.check()?;
        *self.default_endpoint_qos() = Some(qos);
        Ok(())
    }

    /// As if no default had been set.
    ///
    /// # Errors
    /// ALREADY_DELETED in a child of `fork`.
    pub(crate) fn reset_default_endpoint_qos(&self) -> Result<()> {
        self.base.not_inherited()?;
        *self.default_endpoint_qos() = None;
        Ok(())
    }

    pub(crate) fn set_listener(&self, new: NewListener<S::FactoryListener>) {
        self.base.hears(new.mask);
        self.listener.set(new);
    }

    pub(crate) fn endpoints(&self) -> MutexGuard<'_, Vec<Arc<EndpointCore<S>>>> {
        let endpoints = self.endpoints.lock();
        endpoints.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the handle names it or one of its endpoints.
    pub(crate) fn contains(&self, handle: InstanceHandle) -> bool {
        let is_endpoint = |it: &Arc<EndpointCore<S>>| it.base.handle() == handle;
        self.base.handle() == handle || self.endpoints().iter().any(is_endpoint)
    }

    /// The endpoint with this handle.
    pub(crate) fn endpoint(&self, handle: InstanceHandle) -> Option<Arc<EndpointCore<S>>> {
        let endpoints = self.endpoints();
        let mut named = endpoints.iter().filter(|it| it.base.handle() == handle);
        named.next().cloned()
    }

    /// An endpoint of the topic of this name, if the topic is of type `T`.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub(crate) fn lookup<T: 'static>(&self, topic: &str) -> Result<Option<Arc<EndpointCore<S>>>> {
        self.base.alive()?;
        let endpoints = self.endpoints();
        let mut of_topic = endpoints.iter().filter(|it| it.topic.name == topic);
        Ok(of_topic.find(|it| it.topic.is_of::<T>()).cloned())
    }

    /// An endpoint of this name.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<EndpointCore<S>>> {
        let endpoints = self.endpoints();
        endpoints.iter().find(|it| it.base.name() == name).cloned()
    }

    /// # Errors
    /// ALREADY_DELETED.
    pub(super) fn add(&self, endpoint: Arc<EndpointCore<S>>) -> Result<()> {
        let mut endpoints = self.endpoints();
        self.base.alive()?;
        endpoints.push(endpoint);
        Ok(())
    }

    /// Deletes one of its endpoints.
    ///
    /// # Errors
    /// ALREADY_DELETED; PRECONDITION_NOT_MET when the endpoint belongs to another factory or
    /// contains something, and as for [`EndpointCore::check_deletable`].
    pub(crate) fn delete_endpoint(&self, endpoint: &Arc<EndpointCore<S>>) -> Result<()> {
        self.base.alive()?;
        endpoint.base.alive()?;
        let mut endpoints = self.endpoints();
        let mine = endpoints.iter().position(|it| Arc::ptr_eq(it, endpoint));
        let at = mine.ok_or_else(|| {
            let (endpoint, factory) = (S::ENDPOINT, S::FACTORY);
            Error::PreconditionNotMet(format!("the {endpoint} belongs to another {factory}"))
        })?;
        endpoint.check_deletable()?;
        S::check_contains_nothing(endpoint)?;
        endpoints.remove(at);
        // Deleting a writer may wait for room.
        drop(endpoints);
        endpoint.delete(Instant::now());
        Ok(())
    }

    /// Deletes all endpoints, or none if one of them cannot be deleted.
    ///
    /// # Errors
    /// ALREADY_DELETED, and as for [`EndpointCore::check_deletable`].
    pub(crate) fn delete_endpoints(&self) -> Result<()> {
        self.base.alive()?;
        let mut endpoints = self.endpoints();
        endpoints.iter().try_for_each(|it| it.check_deletable())?;
        let deleted = std::mem::take(&mut *endpoints);
        // Deleting a writer may wait for room.
        drop(endpoints);
        let since = Instant::now();
        deleted.iter().for_each(|it| it.delete(since));
        Ok(())
    }

    /// Deletes it if it has no endpoints.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET.
    pub(crate) fn delete_empty(&self) -> Result<()> {
        let endpoints = self.endpoints();
        if !endpoints.is_empty() {
            return Err(Error::PreconditionNotMet(format!(
                "{} has {} {}s; delete them first",
                self.base.what(),
                endpoints.len(),
                S::ENDPOINT
            )));
        }
        self.base.delete();
        Ok(())
    }

    /// Deletes it with all its endpoints.
    pub(crate) fn delete_all(&self, since: Instant) {
        // Before the endpoints are taken: `add` refuses from now on.
        self.base.delete();
        let endpoints = std::mem::take(&mut *self.endpoints());
        endpoints.iter().for_each(|it| it.delete(since));
    }
}
