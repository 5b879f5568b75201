//! Participants and their factory (DDS 1.4 §2.2.2.2).

mod any_entity;
mod builder;
mod core;
mod counters;
mod factory;
mod from_config;
mod futures;
mod lifecycle;

use std::fmt;
use std::sync::Arc;

use spindle_dds_idl_runtime::TopicType;
use spindle_dds_qos::{DomainParticipantQos, Duration, PublisherQos, SubscriberQos, TopicQos};
use spindle_dds_xtypes::DynamicType;

use crate::builtin::ParticipantBuiltinTopicData;
use crate::choice::{EntityQos, default_qos};
use crate::discovery::ParticipantInfo;
use crate::dynamic::DynamicTopicBuilder;
use crate::entity::{entity_operations, listener_operations};
use crate::error::{Error, Result};
use crate::handle::InstanceHandle;
use crate::listener::DomainParticipantListener;
use crate::publication::{AnyDataWriter, Publisher, PublisherBuilder};
use crate::status::MembershipStatus;
use crate::subscription::{AnyDataReader, Subscriber, SubscriberBuilder};
use crate::time::Deadline;
use crate::topic::{AnyTopic, Topic, TopicBuilder};

pub use self::any_entity::AnyEntity;
pub use self::builder::ParticipantBuilder;
pub(crate) use self::core::{Defaults, Entities, ParticipantCore};
pub use self::counters::{ParticipantCounters, Peer};
pub use self::factory::DomainParticipantFactory;

/// Membership in a domain; it contains all other entities.
///
/// Cheap to clone. When the last handle to it and to its entities is dropped, it leaves its
/// group as [`close`](Self::close) does, but without blocking.
///
/// ```
/// use spindle_dds::DomainParticipant;
/// # use spindle_dds_test_types::flight::State; // in your crate: include_idl!("flight")
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().join("domains").display().to_string();
///
/// let participant = DomainParticipant::builder(0)
///     # .property("spindle.directory", &directory)
///     .create()?;
/// let topic = participant.topic::<State>("State").create()?;
/// let writer = participant.publisher().create()?.writer(&topic).create()?;
/// let reader = participant.subscriber().create()?.reader(&topic).create()?;
/// assert_eq!(writer.topic().name(), reader.topic().name());
/// participant.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DomainParticipant {
    pub(crate) core: Arc<ParticipantCore>,
}

entity_operations!(DomainParticipant);

impl fmt::Debug for DomainParticipant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DomainParticipant")
            .field("domain_id", &self.core.domain_id)
            .field("guid", &self.core.base.guid())
            .finish_non_exhaustive()
    }
}

impl PartialEq for DomainParticipant {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }
}

impl Eq for DomainParticipant {}

impl DomainParticipant {
    pub(crate) fn of(core: Arc<ParticipantCore>) -> Self {
        Self { core }
    }

    /// A builder of a participant of a domain.
    pub fn builder(domain_id: u32) -> ParticipantBuilder {
        ParticipantBuilder::new(domain_id)
    }

    /// The id of its domain.
    pub fn domain_id(&self) -> u32 {
        self.core.domain_id
    }

    /// Its name, which others see: given to its [builder](ParticipantBuilder::name), or that of the
    /// executable and the process id.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// A builder of a topic of type `T`.
    pub fn topic<T: TopicType>(&self, name: &str) -> TopicBuilder<'_, T> {
        TopicBuilder::new(self, name)
    }

    /// A builder of a topic whose type is known only at run time: described in a file of DDS-XML, or
    /// announced by others.
    pub fn dynamic_topic(&self, name: &str, ty: &DynamicType) -> DynamicTopicBuilder<'_> {
        DynamicTopicBuilder::new(self, name, ty)
    }

    /// A builder of a publisher.
    pub fn publisher(&self) -> PublisherBuilder<'_> {
        PublisherBuilder::new(self)
    }

    /// A builder of a subscriber.
    pub fn subscriber(&self) -> SubscriberBuilder<'_> {
        SubscriberBuilder::new(self)
    }

    /// The participant's topic of this name, whatever its type
    /// (`lookup_topicdescription`).
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn lookup_topic(&self, name: &str) -> Result<Option<AnyTopic>> {
        self.core.base.alive()?;
        let topics = &self.core.entities().topics;
        let found = topics.iter().find(|topic| topic.name == name);
        Ok(found.map(|core| AnyTopic {
            core: core.clone(),
            participant: self.core.clone(),
        }))
    }

    /// The writer of this name, as `Publisher::Writer`; `Writer` alone for one whose publisher has
    /// no name. [`downcast`](AnyDataWriter::downcast) gives it its type.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn lookup_datawriter_by_name(&self, name: &str) -> Result<Option<AnyDataWriter>> {
        self.core.base.alive()?;
        let publishers = &self.core.entities().publishers;
        let (factory, endpoint) = name.rsplit_once("::").unwrap_or(("", name));
        let mut named = publishers.iter().filter(|it| it.base.name() == factory);
        let found = named.find_map(|publisher| publisher.named(endpoint));
        Ok(found.map(|core| AnyDataWriter {
            core,
            participant: self.core.clone(),
        }))
    }

    /// The reader of this name, as `Subscriber::Reader`; `Reader` alone for one whose subscriber has
    /// no name. [`downcast`](AnyDataReader::downcast) gives it its type.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn lookup_datareader_by_name(&self, name: &str) -> Result<Option<AnyDataReader>> {
        self.core.base.alive()?;
        let subscribers = &self.core.entities().subscribers;
        let (factory, endpoint) = name.rsplit_once("::").unwrap_or(("", name));
        let mut named = subscribers.iter().filter(|it| it.base.name() == factory);
        let found = named.find_map(|subscriber| subscriber.named(endpoint));
        Ok(found.map(|core| AnyDataReader {
            core,
            participant: self.core.clone(),
        }))
    }

    /// The publisher of this name.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn lookup_publisher_by_name(&self, name: &str) -> Result<Option<Publisher>> {
        self.core.base.alive()?;
        let publishers = &self.core.entities().publishers;
        let found = publishers.iter().find(|it| it.base.name() == name);
        Ok(found.map(|core| Publisher {
            core: core.clone(),
            participant: self.core.clone(),
        }))
    }

    /// The subscriber of this name.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn lookup_subscriber_by_name(&self, name: &str) -> Result<Option<Subscriber>> {
        self.core.base.alive()?;
        let subscribers = &self.core.entities().subscribers;
        let found = subscribers.iter().find(|it| it.base.name() == name);
        Ok(found.map(|core| Subscriber {
            core: core.clone(),
            participant: self.core.clone(),
        }))
    }

    /// The participant's topic of this name; or, when another participant of the domain writes or
    /// reads one of this name, a new topic, with the default QoS: topics themselves are not
    /// announced. Blocks until there is one, at most for `timeout`. It has to be deleted like a
    /// topic that was created, as often as it was found.
    ///
    /// # Errors
    /// TIMEOUT; PRECONDITION_NOT_MET when the participant's topic is of another type; NOT_ENABLED,
    /// ALREADY_DELETED; those of [`TopicBuilder::create`].
    pub fn find_topic<T: TopicType>(
        &self,
        name: &str,
        timeout: impl Into<Duration>,
    ) -> Result<Topic<T>> {
        let timeout = timeout.into();
        let deadline = Deadline::after(timeout);
        loop {
            self.core.base.ready()?;
            let local_endpoints = &self.core.local_endpoints;
            // Before the looks: what changes after them ends the wait.
            let seen = local_endpoints.topics_changed();
            if let Some(core) = self.core.hand_out_topic::<T>(name) {
                if core.is_of::<T>() {
                    return Ok(Topic::new(core, self.core.clone()));
                }
                let (its, wanted) = (&core.type_name, T::TYPE_NAME);
                return Err(Error::PreconditionNotMet(format!(
                    "the participant has topic {name:?} with type {its}, not {wanted}"
                )));
            }
            if local_endpoints.is_announced(name) {
                match self.topic(name).create() {
                    // Another thread was faster.
                    Err(Error::PreconditionNotMet(_)) => continue,
                    created => return created,
                }
            }
            if !local_endpoints.wait_for_topics(seen, deadline) {
                return Err(Error::Timeout(format!(
                    "no participant had topic {name:?} within {timeout}"
                )));
            }
        }
    }

    /// Says that the participant is alive. With LIVELINESS AUTOMATIC, the one that is supported,
    /// this has no effect: it says so all the time.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn assert_liveliness(&self) -> Result<()> {
        self.core.base.ready()
    }

    /// Enables the participant and all its entities: joins the group of its domain, or founds
    /// it if there is none. Blocks until it is a member, together with its endpoints, for at
    /// most `spindle.join.timeout_ms`, or until another thread calls [`close`](Self::close).
    /// Endpoints may be created and deleted at any time, before and after. If it is enabled
    /// already, this does nothing; after an error it may be called again.
    ///
    /// Endpoints beyond the first 32 KiB of announcements (some dozens) are matched shortly
    /// after this returns. An application that writes VOLATILE samples for a certain reader has
    /// to wait for PUBLICATION_MATCHED, as with any DDS.
    ///
    /// # Errors
    /// TIMEOUT when no member admits it; OUT_OF_RESOURCES; ERROR when the members have another
    /// version or contradicting settings; ALREADY_DELETED when it was closed meanwhile.
    pub fn enable(&self) -> Result<()> {
        self.core.enable()
    }

    /// Its QoS.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn qos(&self) -> Result<DomainParticipantQos> {
        self.core.base.alive()?;
        let qos = self.core.qos.lock();
        Ok(qos
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone())
    }

    /// Changes its QoS. Properties cannot change after creation.
    ///
    /// # Errors
    /// IMMUTABLE_POLICY, INCONSISTENT_POLICY, UNSUPPORTED.
    pub fn set_qos(&self, qos: DomainParticipantQos) -> Result<()> {
        self.core.base.alive()?;
        qos.check()?;
        let current = self.core.qos.lock();
        let mut current = current.unwrap_or_else(std::sync::PoisonError::into_inner);
        current.check_mutable(&qos)?;
        *current = qos;
        Ok(())
    }

    /// Default QoS of topics: the one that was set; else that of the participant's profile, for
    /// a topic name that matches none of its filters; else the standard's.
    pub fn default_topic_qos(&self) -> TopicQos {
        let set = self.core.defaults().topic.clone();
        let profiles = self.core.profiles();
        default_qos(profiles, "", set)
    }

    /// Sets the default QoS of topics. It comes before the participant's profile.
    ///
    /// # Errors
    /// INCONSISTENT_POLICY, UNSUPPORTED.
    pub fn set_default_topic_qos(&self, qos: TopicQos) -> Result<()> {
        self.core.base.not_inherited()?;
        qos.check()?;
        self.core.defaults().topic = Some(qos);
        Ok(())
    }

    /// Undoes [`set_default_topic_qos`](Self::set_default_topic_qos).
    ///
    /// # Errors
    /// ALREADY_DELETED in a child of `fork`.
    pub fn reset_default_topic_qos(&self) -> Result<()> {
        self.core.base.not_inherited()?;
        self.core.defaults().topic = None;
        Ok(())
    }

    /// Default QoS of publishers: the one that was set; else that of the participant's profile;
    /// else the standard's.
    pub fn default_publisher_qos(&self) -> PublisherQos {
        let set = self.core.defaults().publisher.clone();
        let profiles = self.core.profiles();
        default_qos(profiles, "", set)
    }

    /// Sets the default QoS of publishers. It comes before the participant's profile.
    ///
    /// # Errors
    /// INCONSISTENT_POLICY, UNSUPPORTED.
    pub fn set_default_publisher_qos(&self, qos: PublisherQos) -> Result<()> {
        self.core.base.not_inherited()?;
        qos.check()?;
        self.core.defaults().publisher = Some(qos);
        Ok(())
    }

    /// Undoes [`set_default_publisher_qos`](Self::set_default_publisher_qos).
    ///
    /// # Errors
    /// ALREADY_DELETED in a child of `fork`.
    pub fn reset_default_publisher_qos(&self) -> Result<()> {
        self.core.base.not_inherited()?;
        self.core.defaults().publisher = None;
        Ok(())
    }

    /// Default QoS of subscribers: the one that was set; else that of the participant's profile;
    /// else the standard's.
    pub fn default_subscriber_qos(&self) -> SubscriberQos {
        let set = self.core.defaults().subscriber.clone();
        let profiles = self.core.profiles();
        default_qos(profiles, "", set)
    }

    /// Sets the default QoS of subscribers. It comes before the participant's profile.
    ///
    /// # Errors
    /// INCONSISTENT_POLICY, UNSUPPORTED.
    pub fn set_default_subscriber_qos(&self, qos: SubscriberQos) -> Result<()> {
        self.core.base.not_inherited()?;
        qos.check()?;
        self.core.defaults().subscriber = Some(qos);
        Ok(())
    }

    /// Undoes [`set_default_subscriber_qos`](Self::set_default_subscriber_qos).
    ///
    /// # Errors
    /// ALREADY_DELETED in a child of `fork`.
    pub fn reset_default_subscriber_qos(&self) -> Result<()> {
        self.core.base.not_inherited()?;
        self.core.defaults().subscriber = None;
        Ok(())
    }

    listener_operations!(DomainParticipantListener, |listener| listener);

    /// Whether an entity belongs to it, directly or not.
    pub fn contains_entity(&self, handle: InstanceHandle) -> bool {
        if self.core.base.is_inherited() {
            return false;
        }
        let entities = self.core.entities();
        entities
            .topics
            .iter()
            .any(|topic| topic.base.handle() == handle)
            || entities
                .publishers
                .iter()
                .any(|publisher| publisher.contains(handle))
            || entities
                .subscribers
                .iter()
                .any(|subscriber| subscriber.contains(handle))
    }

    /// Deletes a publisher.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET when it has writers, or belongs to another participant.
    pub fn delete_publisher(&self, publisher: &Publisher) -> Result<()> {
        self.core.base.alive()?;
        publisher.core.base.alive()?;
        let mut entities = self.core.entities();
        let known = |core: &Arc<_>| Arc::ptr_eq(core, &publisher.core);
        let at = entities.publishers.iter().position(known);
        let at = at.ok_or_else(|| not_mine("publisher"))?;
        publisher.core.delete_empty()?;
        entities.publishers.remove(at);
        drop(entities);
        self.core.notifier().futures.settle();
        Ok(())
    }

    /// Deletes a subscriber.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET when it has readers, or belongs to another participant.
    pub fn delete_subscriber(&self, subscriber: &Subscriber) -> Result<()> {
        self.core.base.alive()?;
        subscriber.core.base.alive()?;
        let mut entities = self.core.entities();
        let known = |core: &Arc<_>| Arc::ptr_eq(core, &subscriber.core);
        let at = entities.subscribers.iter().position(known);
        let at = at.ok_or_else(|| not_mine("subscriber"))?;
        subscriber.core.delete_empty()?;
        entities.subscribers.remove(at);
        drop(entities);
        self.core.notifier().futures.settle();
        Ok(())
    }

    /// Deletes a topic; if [`find_topic`](Self::find_topic) has found it, when this has been called
    /// once more for each time that it did.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET when a writer or reader uses it, or it belongs to another
    /// participant.
    pub fn delete_topic<T>(&self, topic: &Topic<T>) -> Result<()> {
        self.core.base.alive()?;
        topic.core.base.alive()?;
        let mut entities = self.core.entities();
        let known = |core: &Arc<_>| Arc::ptr_eq(core, &topic.core);
        let at = entities.topics.iter().position(known);
        let at = at.ok_or_else(|| not_mine("topic"))?;
        if topic.core.give_back() {
            return Ok(());
        }
        if topic.core.is_used() {
            return Err(Error::PreconditionNotMet(format!(
                "topic {} is used by writers or readers; delete them first",
                topic.core.name
            )));
        }
        topic.core.base.delete();
        entities.topics.remove(at);
        drop(entities);
        self.core.notifier().futures.settle();
        Ok(())
    }

    /// Deletes all its entities recursively, or none if one of them cannot be deleted.
    ///
    /// # Errors
    /// ALREADY_DELETED; PRECONDITION_NOT_MET when a writer has loans that are not
    /// published, or a reader has samples on loan or conditions that threads wait on.
    pub fn delete_contained_entities(&self) -> Result<()> {
        self.core.base.alive()?;
        self.core.delete_contained()
    }

    /// Leaves the group and deletes the participant with all its entities. The other members
    /// deliver all samples that it has written, then unmatch its writers, and go on without
    /// error. Taken samples stay readable. Usually blocks only briefly: first until what waits in the
    /// histories of its writers is sent, as long as a deleted writer has for that, then at most 10 s longer
    /// than `spindle.failure.limit_ms`. It cancels an [`enable`](Self::enable) in another thread,
    /// and waits for the end of that.
    ///
    /// # Errors
    /// ALREADY_DELETED; ERROR when the group had failed, or the participant could not leave in
    /// time. It is deleted in any case.
    pub fn close(&self) -> Result<()> {
        self.core.close()
    }

    /// The other participants of its domain in the current view
    /// (`get_discovered_participants`).
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED; ERROR when the group failed.
    pub fn discovered_participants(&self) -> Result<Vec<InstanceHandle>> {
        let others = self.others()?.into_iter();
        Ok(others
            .map(|info| InstanceHandle::of_entity(info.guid))
            .collect())
    }

    /// The data of another participant of its domain
    /// (`get_discovered_participant_data`).
    ///
    /// # Errors
    /// BAD_PARAMETER when the group has no such participant; NOT_ENABLED, ALREADY_DELETED;
    /// ERROR when the group failed.
    pub fn discovered_participant_data(
        &self,
        participant: InstanceHandle,
    ) -> Result<ParticipantBuiltinTopicData> {
        let mut others = self.others()?.into_iter();
        let found = others.find(|info| InstanceHandle::of_entity(info.guid) == participant);
        let info = found.ok_or_else(|| {
            Error::BadParameter(format!(
                "{participant:?} is no other participant of this domain"
            ))
        })?;
        Ok(ParticipantBuiltinTopicData {
            key: info.guid,
            participant_name: info.name,
            ..ParticipantBuiltinTopicData::default()
        })
    }

    /// The other participants of its domain to which it is connected, and the path to each:
    /// shared memory on one host, RDMA or streams (TCP) between hosts.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED; ERROR when the group failed.
    pub fn peers(&self) -> Result<Vec<Peer>> {
        let session = self.core.ready()?;
        session.group_status().check()?;
        let view = session.view();
        let members = view.iter().flat_map(|view| &view.members);
        let peer = |member| {
            let guid = ParticipantInfo::of(member).ok()?.guid;
            let path = session.control_queue().path_to(member.id)?;
            let encrypted = session.control_queue().encrypts_to(member.id);
            Some(Peer {
                guid,
                path,
                encrypted,
            })
        };
        Ok(members.filter_map(peer).collect())
    }

    fn others(&self) -> Result<Vec<ParticipantInfo>> {
        let session = self.core.ready()?;
        session.group_status().check()?;
        let view = session.view();
        let members = view.iter().flat_map(|view| &view.members);
        let infos = members.filter_map(|member| ParticipantInfo::of(member).ok());
        Ok(infos
            .filter(|info| info.guid != self.core.base.guid())
            .collect())
    }

    /// Whether it is a member of its group, and when and why it was not the last time. An extension of
    /// Spindle.
    ///
    /// # Errors
    /// ALREADY_DELETED.
    pub fn membership_status(&self) -> Result<MembershipStatus> {
        self.core.base.alive()?;
        Ok(self.core.group_status.membership())
    }

    /// The counters of the engine, the fabric, and the logs.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn counters(&self) -> Result<ParticipantCounters> {
        let session = self.core.ready()?;
        Ok(ParticipantCounters::of(&session, &self.core.logs))
    }
}

fn not_mine(kind: &str) -> Error {
    Error::PreconditionNotMet(format!("the {kind} belongs to another participant"))
}
